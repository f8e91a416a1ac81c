/* Programs for the emulated device: each runs in a process of its own (programs.c), for the seed is read once in each. */
#ifndef CK_SUITE_EMU_PROGRAMS_H
#define CK_SUITE_EMU_PROGRAMS_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum planted_end {
	PLANTED_SAYS,  /* abort(), after a line on stderr that contains `message` */
	PLANTED_DIES,  /* SIGSEGV: the host touched device memory */
	PLANTED_WRONG, /* the program ends with wrong results */
} planted_end;

/* Right once, wrong once. */
typedef struct planted {
	const char *name;
	bool (*run)(bool wrong); /* whether its results are right */
	planted_end end;         /* of the wrong one */
	bool sometimes;          /* whether the seed decides if it shows */
	const char *message;
} planted;

extern const planted planted_programs[]; /* ends with a NULL name */

/* How a program's process ends. */
enum { RIGHT, DIFFERS };

/* Right ones alone. */
typedef struct good {
	const char *name;
	bool (*run)(void);
} good;

extern const good good_programs[]; /* ends with a NULL name */

#ifdef __cplusplus
}
#endif

#endif
