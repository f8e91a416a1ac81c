/* blocks:N: the first N stages are recomputed one by one, all others kept: saves just as much as is needed, at the places that are
 * held longest (the "block" method of Megatron-LM). */
#include "harness/plan/planner.h"

static int segments(const ck_graph *g, int64_t knob)
{
	return (int)knob + (knob < g->nstages);
}

static ck_status make(const ck_graph *g, int64_t knob, ck_schedule *s, ck_err *err)
{
	(void)g;
	return ck_plan_equal_segments(g, (int)knob, 1, s, err);
}

const ck_planner ck_planner_blocks = {
    .name = "blocks",
    .knob = "N",
    .summary = "the first N stages each recomputed, the rest kept",
    .range = ck_knob_up_to_stages,
    .segments = segments,
    .make = make,
};
