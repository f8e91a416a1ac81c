/* Cuts and stages, found from the graph.
 *
 * The place before op i is a cut when exactly one activation made before i is read at i or later: all that goes forward goes
 * through it. (A real-valued input counts as an activation made before op 0; labels, token ids and parameters do not count:
 * they are there anyway.) A residual block's inside has two such values, its end one:
 *
 *     x ──▶ conv ──▶ bn ──▶ conv ──▶ bn + x ──▶ …
 *     1     2        2      2        1   values that cross
 *
 * A value that an op must work in place over is gone after that op, so that no recompute can start from it: it is no cut.
 * The place before the loss's own op is no cut, either: a stage of nothing but the loss would be of no use to a plan. Nor is one
 * after a cast, which belongs to the op that it is made for: so a model has the same stages with mixed precision as without. */
#include <stdlib.h>

#include "harness/graph/internal.h"
#include "kernels/alloc.h"

static bool carries(const ck_graph *g, ck_value v)
{
	const ck_value_info *i = &g->values[v];
	return i->nreaders > 0 && (i->kind == CK_ACTIVATION || (i->kind == CK_INPUT && i->dtype == g->real));
}

static bool is_cast(const ck_graph *g, int o)
{
	return g->ops[o].desc.kind == CK_CAST;
}

/* Where the loss begins: its op, and the casts right before it. */
static int loss_begins(const ck_graph *g)
{
	int o = g->nops - 1;
	while (o > 0 && is_cast(g, o - 1))
		o--;
	return o;
}

/* Whether an op must lie over v. */
static bool overwritten(const ck_graph *g, ck_value v)
{
	for (int r = 0; r < g->values[v].nreaders; r++) {
		const ck_op_info *op = &g->ops[g->values[v].readers[r]];
		if (op->contract.inplace_required && op->in[op->contract.inplace_forward] == v)
			return true;
	}
	return false;
}

void ck__graph_stages(ck_graph *g)
{
	int end = loss_begins(g);
	/* crossing[i]: values that cross the place before op i; sum[i]: the sum of their indices, which is the one when there
	 * is one */
	int *crossing = ck_alloc((size_t)g->nops + 1, sizeof *crossing);
	int64_t *sum = ck_alloc((size_t)g->nops + 1, sizeof *sum);
	for (int v = 0; v < g->nvalues; v++) {
		if (!carries(g, v))
			continue;
		int from = g->values[v].producer + 1; /* CK_NONE + 1 = 0 */
		int to = g->values[v].readers[g->values[v].nreaders - 1];
		crossing[from]++, sum[from] += v;
		crossing[to + 1]--, sum[to + 1] -= v;
	}
	g->stage_first = ck_alloc((size_t)g->nops + 1, sizeof *g->stage_first);
	g->cut = ck_alloc((size_t)g->nops + 1, sizeof *g->cut);
	int live = 0;
	int64_t which = 0;
	for (int o = 0; o < g->nops; o++) {
		live += crossing[o];
		which += sum[o];
		if (o == 0 || (live == 1 && o < end && !is_cast(g, o - 1) && !overwritten(g, (ck_value)which))) {
			g->cut[g->nstages] = o == 0 ? g->ops[0].in[0] : (ck_value)which;
			g->stage_first[g->nstages++] = o;
		}
		g->ops[o].stage = g->nstages - 1;
	}
	g->stage_first[g->nstages] = g->nops;
	free(crossing);
	free(sum);
}
