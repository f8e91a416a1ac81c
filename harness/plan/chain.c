/* What the chain planners share. */
#include <stdlib.h>

#include "harness/plan/planner.h"
#include "harness/plan/reads.h"
#include "kernels/alloc.h"

ck_status ck_plan_equal_segments(const ck_graph *g, int n, int length, ck_schedule *s, ck_err *err)
{
	ck_segments c = {.first = ck_alloc((size_t)n + 2, sizeof *c.first), .kept = ck_alloc((size_t)n + 1, sizeof *c.kept)};
	for (; c.n < n; c.n++)
		c.first[c.n] = c.n * length;
	if (n * length < g->nstages) {
		c.first[c.n] = n * length;
		c.kept[c.n++] = true;
	}
	c.first[c.n] = g->nstages;
	ck_status status = ck_lower_segments(g, &c, s, err);
	free(c.first);
	free(c.kept);
	return status;
}

void ck_stage_saved_bytes(const ck_graph *g, size_t *saved)
{
	bool *seen = ck_alloc((size_t)g->nvalues, sizeof *seen);
	for (int s = 0; s < g->nstages; s++)
		saved[s] = 0;
	for (int o = 0; o < g->nops; o++) {
		ck_reads reads = ck_reads_of(g, (ck_instr){'B', o});
		for (int k = 0; k < reads.n; k++) {
			const ck_value_info *v = &g->values[reads.at[k]];
			if (!seen[reads.at[k]] && v->kind != CK_WEIGHT_COPY) /* held under every plan */
				saved[g->ops[v->producer].stage] += v->bytes;
			seen[reads.at[k]] = true;
		}
	}
	free(seen);
}
