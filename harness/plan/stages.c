/* stages: every stage is its own segment and recomputed, the last one too: what switching checkpointing on for each layer does
 * in the common frameworks. */
#include "harness/plan/planner.h"

static int segments(const ck_graph *g, int64_t knob)
{
	(void)knob;
	return g->nstages;
}

static ck_status make(const ck_graph *g, int64_t knob, ck_schedule *s, ck_err *err)
{
	(void)knob;
	return ck_plan_equal_segments(g, g->nstages, 1, s, err);
}

const ck_planner ck_planner_stages = {
    .name = "stages",
    .summary = "every stage its own segment, all recomputed: per-layer checkpointing as frameworks do it",
    .segments = segments,
    .make = make,
};
