/* Plots of a record, drawn by gnuplot from the scripts in plots/, which are part of the program. */
#ifndef CK_PLOT_H
#define CK_PLOT_H

#include "harness/record/compare.h"
#include "harness/record/training.h"

/* Draws memory against time in the form that the ending names ("svg", "png", "pdf"), as bytes in fresh memory. CK_USAGE: no
 * point of the record has a time. CK_MISSING: gnuplot is not there, or it failed. */
ck_status ck_plot_sweep(const ck_result *r, const char *ending, char **image, size_t *bytes, ck_err *err);

/* Draws the loss of every plan over the steps. CK_USAGE: no curve has two steps or more. */
ck_status ck_plot_training(const ck_training *t, const char *ending, char **image, size_t *bytes, ck_err *err);

/* Draws all sides of a comparison, a row for each case that they share: memory against time, and saving against overhead. */
ck_status ck_plot_comparison(const ck_comparison *c, const char *ending, char **image, size_t *bytes, ck_err *err);

/* ---- shared by the plots -------------------------------------------------------------------------------------------------- */

/* `name = 'text'`, for gnuplot: quotes and the characters that enhanced text gives a meaning to are taken care of. */
void ck__plot_quoted(FILE *to, const char *name, const char *text);
/* Sets out, heading and subheading, as the theme takes them. */
void ck__plot_heading(FILE *to, const ck_result *r, const char *ending);
/* The theme's style for a plan: its planner's place in the registry, from 1; one more than all of them for schedules that were
 * read from a file. */
int ck__plot_style(const ck_point *p);
/* The unit for figures up to `largest` bytes or `longest` seconds, in these; gives its name. */
double ck__plot_memory_unit(double largest, const char **name);
double ck__plot_time_unit(double longest, const char **name);
/* A point's name in the plot: its knob, or its planner where there is none; NULL for a schedule from a file. */
const char *ck__plot_name(const ck_point *p);
void ck__plot_theme(FILE *to);
/* A script that is part of the program, after all that it takes. */
void ck__plot_script(FILE *to, const char *const *lines, size_t n);

/* Runs gnuplot over the script and takes what it writes to its standard output, a whole image of the form that the ending names. */
ck_status ck__gnuplot(const char *script, size_t length, const char *ending, char **image, size_t *bytes, ck_err *err);

#endif
