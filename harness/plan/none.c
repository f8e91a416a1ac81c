/* none: every op once, everything kept that a backward reads. The baseline that every other plan is held against. */
#include "harness/plan/planner.h"

static int segments(const ck_graph *g, int64_t knob)
{
	(void)g, (void)knob;
	return 1;
}

static ck_status make(const ck_graph *g, int64_t knob, ck_schedule *s, ck_err *err)
{
	(void)knob;
	return ck_plan_equal_segments(g, 0, 0, s, err); /* one kept segment */
}

const ck_planner ck_planner_none = {
    .name = "none",
    .summary = "keep everything: no recompute, the baseline",
    .segments = segments,
    .make = make,
};
