/* Planners: from a graph and a knob to a schedule. A planner is one file with one ck_planner, and one line in registry.c.
 *
 * A plan is written `none`, `uniform:4`, …: the planner's name and its knob. */
#ifndef CK_PLANNER_H
#define CK_PLANNER_H

#include "harness/plan/schedule.h"

typedef struct ck_planner {
	const char *name;
	const char *knob;    /* NULL: takes none. Else what it is, "K" */
	const char *summary; /* one line for `ckbench list planners` */
	/* Least and most sensible knob for this graph. NULL when there is no knob. */
	void (*range)(const ck_graph *g, int64_t *least, int64_t *most);
	/* How many segments the plan has; 0 when that is not what it is about. */
	int (*segments)(const ck_graph *g, int64_t knob);
	ck_status (*make)(const ck_graph *g, int64_t knob, ck_schedule *s, ck_err *err);
} ck_planner;

extern const ck_planner *const ck_planners[]; /* NULL-terminated, in the order of tables */

typedef struct ck_plan {
	char name[64]; /* "uniform:4" */
	const ck_planner *planner;
	int64_t knob;
	int segments; /* for chain plans: how many segments; 0: does not apply */
} ck_plan;

/* Reads "uniform:4"; refuses unknown planners, knobs that are not numbers or lie out of range, with the range (CK_USAGE). */
ck_status ck_plan_read(const ck_graph *g, const char *text, ck_plan *p, ck_err *err);
ck_status ck_plan_make(const ck_graph *g, const ck_plan *p, ck_schedule *s, ck_err *err);

/* ---- what chain planners share -------------------------------------------------------------------------------------------- */

void ck_knob_up_to_stages(const ck_graph *g, int64_t *least, int64_t *most); /* a range: 1 .. stages */

/* n equal segments of `length` stages from stage 0 on, each dropped and recomputed, then (if stages are left) one kept segment. */
ck_status ck_plan_equal_segments(const ck_graph *g, int n, int length, ck_schedule *s, ck_err *err);

/* Cuts n stages into k (1 <= k <= n) segments first[i] .. first[i + 1] - 1, none empty, so that the largest sum of saved[] in a
 * segment is the least that it can be. first holds k + 1. */
void ck_balanced_partition(const size_t *saved, int n, int k, int *first);

/* Bytes that a keep-all forward of each stage saves for the backward (stashes and activations that some B reads, the stage's
 * output included, its input not). saved holds nstages. */
void ck_stage_saved_bytes(const ck_graph *g, size_t *saved);

#endif
