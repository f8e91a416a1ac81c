/* uniform:K: K segments, as even as stages allow in bytes saved for the backward. The last is kept, since its backward comes at
 * once; the others keep their inputs only (Chen et al., "Training deep nets with sublinear memory cost", 2016).
 *
 * Even means that the largest segment is as small as it can be: the bytes of the largest are found by bisection, a greedy pass
 * telling whether K segments within a cap suffice. */
#include <stdlib.h>

#include "harness/plan/planner.h"
#include "kernels/alloc.h"

/* Cuts n stages into at most k segments of at most `cap` bytes (a single larger stage fits nowhere); exactly k when first is given.
 * Returns whether it can be done. */
static bool cut(const size_t *saved, int n, int k, size_t cap, int *first)
{
	int segments = 0;
	size_t held = 0;
	for (int s = 0; s < n; s++) {
		if (saved[s] > cap)
			return false;
		bool forced = first && n - s == k - segments; /* just one stage left for each segment that is to come */
		if (s == 0 || held + saved[s] > cap || forced) {
			if (segments == k)
				return false;
			if (first)
				first[segments] = s;
			segments++;
			held = 0;
		}
		held += saved[s];
	}
	return true;
}

static size_t smallest_cap(const size_t *saved, int n, int k)
{
	size_t low = 0, high = 0;
	for (int s = 0; s < n; s++)
		high += saved[s];
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (cut(saved, n, k, middle, NULL))
			high = middle;
		else
			low = middle + 1;
	}
	return high;
}

void ck_balanced_partition(const size_t *saved, int n, int k, int *first)
{
	cut(saved, n, k, smallest_cap(saved, n, k), first);
	first[k] = n;
}

static int segments(const ck_graph *g, int64_t knob)
{
	(void)g;
	return (int)knob;
}

static ck_status make(const ck_graph *g, int64_t knob, ck_schedule *s, ck_err *err)
{
	int k = (int)knob, n = g->nstages;
	size_t *saved = ck_alloc((size_t)n, sizeof *saved);
	ck_segments c = {
	    .n = k, .first = ck_alloc((size_t)k + 1, sizeof *c.first), .kept = ck_alloc((size_t)k, sizeof *c.kept)};
	ck_stage_saved_bytes(g, saved);
	ck_balanced_partition(saved, n, k, c.first);
	c.kept[k - 1] = true;
	ck_status status = ck_lower_segments(g, &c, s, err);
	free(c.first);
	free(c.kept);
	free(saved);
	return status;
}

const ck_planner ck_planner_uniform = {
    .name = "uniform",
    .knob = "K",
    .summary = "K segments of even saved bytes; all but the last are recomputed",
    .range = ck_knob_up_to_stages,
    .segments = segments,
    .make = make,
};
