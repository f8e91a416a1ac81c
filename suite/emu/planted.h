/* Programs for the emulated device, each of which is right once and wrong once. */
#ifndef CK_SUITE_PLANTED_H
#define CK_SUITE_PLANTED_H

#include <stdbool.h>

typedef enum planted_end {
	PLANTED_SAYS,  /* abort(), after a line on stderr that contains `message` */
	PLANTED_DIES,  /* SIGSEGV: the host touched device memory */
	PLANTED_WRONG, /* the program ends with wrong results */
} planted_end;

typedef struct planted {
	const char *name;
	bool (*run)(bool wrong); /* whether its results are right */
	planted_end end;         /* of the wrong one */
	bool sometimes;          /* whether the seed decides if it shows */
	const char *message;
} planted;

extern const planted planted_programs[]; /* ends with a NULL name */

/* Whether float atomics added in another order in any of `launches` launches. */
bool planted_float_atomics_differ(int launches);

#endif
