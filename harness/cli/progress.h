/* One line on the terminal that tells how far a long command is, on stderr and only when that is a terminal. */
#ifndef CK_PROGRESS_H
#define CK_PROGRESS_H

#include <stdbool.h>

typedef struct ck_progress {
	bool on;
	double shown; /* when it was last drawn, seconds; so that drawing takes no time that counts */
} ck_progress;

ck_progress ck_progress_new(bool quiet);
/* Draws the line anew, ten times a second at most unless `now`. */
void ck_progress_show(ck_progress *p, bool now, const char *format, ...) __attribute__((format(printf, 3, 4)));
void ck_progress_clear(ck_progress *p);

#endif
