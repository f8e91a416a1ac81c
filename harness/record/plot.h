/* Plots of a record, drawn by gnuplot from the scripts in plots/, which are part of the program. */
#ifndef CK_PLOT_H
#define CK_PLOT_H

#include "harness/record/result.h"

/* Draws memory against time in the form that the ending names ("svg", "png", "pdf"), as bytes in fresh memory. CK_USAGE: no
 * point of the record has a time. CK_MISSING: gnuplot is not there, or it failed. */
ck_status ck_plot_sweep(const ck_result *r, const char *ending, char **image, size_t *bytes, ck_err *err);

/* Runs gnuplot over the script and takes what it writes to its standard output, a whole image of the form that the ending names. */
ck_status ck__gnuplot(const char *script, size_t length, const char *ending, char **image, size_t *bytes, ck_err *err);

#endif
