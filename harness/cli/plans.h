/* Which plans a command runs: those that the command line lists, or all that are distinct. */
#ifndef CK_PLANS_H
#define CK_PLANS_H

#include "harness/cli/case.h"
#include "harness/plan/planner.h"

typedef struct ck_plan_entry {
	char *name;                /* "uniform:4", "schedule:FILE" */
	int segments;              /* 0: the plan has none */
	const ck_planner *planner; /* NULL: the schedule is from a file */
	int64_t knob;
	ck_schedule schedule;
	ck_program *program; /* NULL before ck_plans_make */
} ck_plan_entry;

typedef struct ck_plans { /* ck_plans_free */
	ck_plan_entry *at;
	int n, capacity;
	int same;     /* plans left out since another has the same schedule */
	int left_out; /* plans left out since there were too many */
} ck_plans;

/* From --plans, --segments and --schedule, `none` first in any case; without these, every distinct schedule among the
 * planners that need no budget, thinned out where there would be more than 64. */
ck_status ck_plans_choose(const ck_graph *g, const ck_options *o, ck_plans *p, ck_err *err);
/* `none`, every stage recomputed, and uniform segments in between: those of them that are distinct. */
ck_status ck_plans_few(const ck_graph *g, ck_plans *p, ck_err *err);
/* Turns the schedules into programs; the schedules go. */
ck_status ck_plans_make(ck_plans *p, const ck_session *s, ck_err *err);
void ck_plans_free(ck_plans *p);

#endif
