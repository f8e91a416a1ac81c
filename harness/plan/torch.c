/* torch:K: the partition of PyTorch's checkpoint_sequential: K - 1 segments of floor(L / K) stages, recomputed; all stages that
 * remain run without checkpointing (torch/utils/checkpoint.py). When K does not divide L, that tail is long. */
#include "harness/plan/planner.h"

static int segments(const ck_graph *g, int64_t knob)
{
	(void)g;
	return (int)knob;
}

static ck_status make(const ck_graph *g, int64_t knob, ck_schedule *s, ck_err *err)
{
	return ck_plan_equal_segments(g, (int)knob - 1, g->nstages / (int)knob, s, err);
}

const ck_planner ck_planner_torch = {
    .name = "torch",
    .knob = "K",
    .summary = "PyTorch's checkpoint_sequential: K-1 segments of floor(L/K) stages recomputed, the rest kept",
    .range = ck_knob_up_to_stages,
    .segments = segments,
    .make = make,
};
