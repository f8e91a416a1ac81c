/* every:N: segments of N stages each; the last (of N or fewer) is kept, the others are recomputed. */
#include "harness/plan/planner.h"

static int segments(const ck_graph *g, int64_t knob)
{
	return (g->nstages + (int)knob - 1) / (int)knob;
}

static ck_status make(const ck_graph *g, int64_t knob, ck_schedule *s, ck_err *err)
{
	return ck_plan_equal_segments(g, segments(g, knob) - 1, (int)knob, s, err);
}

const ck_planner ck_planner_every = {
    .name = "every",
    .knob = "N",
    .summary = "a checkpoint every N stages; the last segment is kept",
    .range = ck_knob_up_to_stages,
    .segments = segments,
    .make = make,
};
