/* Machines or builds against each other, on the cases that they share: `ckbench-compare/1` (results/SCHEMA.md).
 *
 *     A.json ──┐                                   ┌──▶ table (for people)
 *     B.json ──┼──▶ cases ──▶ plans ──▶ ratios ────┼──▶ json, tsv
 *     C/       ┘   (what cannot be compared: why)  └──▶ plot
 *
 * Each argument is a side: a record, or a folder of them. The first is the baseline. A ratio is a side's median step time over the
 * baseline's. Its interval holds the true ratio of medians in 95 % of cases whatever the times' distributions are, as long as
 * samples are independent: each median has an order-statistic interval (J.-Y. Le Boudec, Performance Evaluation of Computer and
 * Communication Systems, 2010, section 2.2) with probability sqrt(0.95), so both hold with 0.95, and then the ratio lies between
 * low over high and high over low. That takes seven samples on either side. What differs from run to run but not within one, no
 * interval from two runs can know.
 *
 * Ratios are averaged by their geometric mean (P. J. Fleming and J. J. Wallace, How not to lie with statistics, CACM 29(3), 1986):
 * over a case's plans, then over cases, each counting the same. The mean's interval lies between the means of the ends of m intervals
 * that hold together with 95 %, each with 1 - 0.05 / m (Bonferroni): sound though plans measured in the same rounds depend on each
 * other. */
#ifndef CK_COMPARE_H
#define CK_COMPARE_H

#include "harness/record/result.h"

#define CK_COMPARE_SCHEMA "ckbench-compare/1"
enum { CK_SIDES_MOST = 9 }; /* as many as a plot has colours for */

/* Same: the interval holds 1 and nothing further than 5 % from it. Unclear: it holds 1 and more, or there is none. */
typedef enum ck_speed { CK_FASTER, CK_SLOWER, CK_SAME, CK_UNCLEAR, CK_SPEEDS } ck_speed;
extern const char *const ck_speed_names[CK_SPEEDS]; /* "faster", … */

typedef struct ck_ratio {
	double at, low, high; /* the ends are NaN where there are too few samples for them; all where there is none */
	ck_speed speed;
} ck_ratio;

typedef struct ck_side {
	char *source; /* the file or folder, as it was given */
	char *name;   /* what it is: "Intel Xeon, 7225b418314e"; no two sides have the same */
	ck_result **records;
	char **files; /* by record: where it stands */
	int n, records_capacity, files_capacity;
} ck_side;

/* A plan on both sides, fit to be compared. */
typedef struct ck_pair_point {
	const ck_point *base, *other;
	ck_ratio time;
} ck_pair_point;

/* A case on the baseline's side and on another. */
typedef struct ck_pair {
	int side;
	const ck_result *base, *other;
	ck_pair_point *at; /* in the baseline's order */
	int n, capacity;
	ck_ratio mean;
} ck_pair;

/* A record, or a plan of a case, that is not compared. */
typedef struct ck_left_out {
	int side;   /* the one that is not the baseline; 0: the baseline's, whatever the side */
	char *what; /* the case in words, or the record's file */
	char *plan; /* NULL: the whole record */
	char *why;
} ck_left_out;

typedef struct ck_comparison {
	ck_result *about; /* the tool that compares; nothing else of it */
	ck_side sides[CK_SIDES_MOST];
	int nsides;
	ck_pair *pairs; /* in the order of the baseline's records, then of sides */
	int npairs, pairs_capacity;
	ck_ratio means[CK_SIDES_MOST]; /* by side, over its cases; none of side 0 */
	ck_left_out *left_out;
	int nleft_out, left_out_capacity;
	char **warnings; /* what makes the figures doubtful */
	int nwarnings, warnings_capacity;
} ck_comparison;

void ck_comparison_open(ck_comparison *c, int argc, char *const *argv);
void ck_comparison_free(ck_comparison *c);

/* One more side, with no record yet; at most CK_SIDES_MOST. */
int ck_comparison_add_side(ck_comparison *c, const char *source);
/* Takes over the record. CK_USAGE: it has no digest, or is there already; then nothing is taken. */
ck_status ck_comparison_add(ck_comparison *c, int side, const char *file, ck_result *r, ck_err *err);
/* Lists what cannot be compared, and why. */
void ck_comparison_leave_out(ck_comparison *c, int side, const char *what, const char *plan, char *why); /* takes over `why` */

/* Once all are added: names the sides, matches cases and plans, works all out. CK_USAGE: no plan can be compared. */
ck_status ck_comparison_make(ck_comparison *c, ck_err *err);

/* The case as one would name it on a command line, without the device and its threads. Fresh memory. */
char *ck_case_words(const ck_result *r);
/* One past the pairs of the case that pair `first` begins: the same one of the baseline's records against one side each. */
int ck_comparison_case_end(const ck_comparison *c, int first);
int ck_comparison_count(const ck_comparison *c, int side, ck_speed speed); /* of the side's plans */

/* ---- forms --------------------------------------------------------------------------------------------------------------- */

char *ck_comparison_json(const ck_comparison *c); /* fresh text, ends with a newline */
char *ck_comparison_tsv(const ck_comparison *c);  /* fresh text: a head line, then a line per case, side and plan */
void ck_comparison_table(const ck_comparison *c, FILE *to);

/* ---- between the files that make it ---------------------------------------------------------------------------------------- */

ck_ratio ck__ratio_of(const ck_samples *base, const ck_samples *other, double confidence);
/* The geometric mean of ratios, and of their intervals' ends. */
ck_ratio ck__ratio_mean(const ck_ratio *at, int n);
void ck__compare_name(ck_comparison *c); /* gives the sides their names */
void ck__compare_warn(ck_comparison *c); /* fills warnings */
/* More behind a text that it takes over; the two in fresh memory. */
char *ck__append(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
