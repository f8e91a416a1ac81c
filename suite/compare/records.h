/* Records made up for comparing: known samples, and any field changed. */
#ifndef CK_TEST_COMPARE_RECORDS_H
#define CK_TEST_COMPARE_RECORDS_H

#include "harness/record/compare.h"

enum { FEW = 9 }; /* samples of a made-up point, where they are all the same */

/* mlp on a cpu, 2 threads, seed 1, with no plan yet. */
ck_result *made_record(void);
/* A proved plan with these step times; n = 0: not timed. */
ck_point *made_point(ck_result *r, const char *plan, const double *seconds, int n);
/* The same FEW times over. */
ck_point *made_steady(ck_result *r, const char *plan, double seconds);
void set_text(char **field, const char *text);

/* Written and read back, so that it has a digest; frees r. */
ck_result *made_sealed(ck_result *r);
/* Adds a side of one record, which it takes over. */
void add_side(ck_comparison *c, ck_result *r);
/* Of two records, which it takes over, made. Ends the test when it cannot. */
void compare_made(ck_comparison *c, ck_result *a, ck_result *b);

#endif
