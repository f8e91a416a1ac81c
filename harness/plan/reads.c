#include "harness/plan/reads.h"

static void add(const ck_graph *g, ck_reads *r, const ck_value *values, int n, unsigned mask)
{
	for (int i = 0; i < n; i++) {
		bool wanted = mask >> i & 1 && ck_value_managed(&g->values[values[i]]);
		for (int k = 0; k < r->n && wanted; k++)
			wanted = r->at[k] != values[i];
		if (wanted)
			r->at[r->n++] = values[i];
	}
}

ck_reads ck_reads_of(const ck_graph *g, ck_instr in)
{
	ck_reads r = {0};
	const ck_op_info *op = &g->ops[in.id];
	if (in.code == 'F')
		add(g, &r, op->in, op->desc.nin, ~0u);
	if (in.code == 'B' && op->has_backward) {
		add(g, &r, op->in, op->desc.nin, op->contract.reads_in);
		add(g, &r, op->out, op->desc.nout, op->contract.reads_out);
		add(g, &r, op->stash, op->desc.nstash, op->contract.reads_stash);
	}
	return r;
}

ck_reads ck_writes_of(const ck_graph *g, ck_instr in)
{
	ck_reads r = {0};
	const ck_op_info *op = &g->ops[in.id];
	if (in.code == 'F') {
		add(g, &r, op->out, op->desc.nout, ~0u);
		add(g, &r, op->stash, op->desc.nstash, ~0u);
	}
	return r;
}

/* Backwards run in the reverse of the graph's order, and an op's inputs in order: so it is the first reader that wants one. */
bool ck_gradient_completes(const ck_graph *g, int op, int i)
{
	const ck_value_info *v = &g->values[g->ops[op].in[i]];
	const ck_op_desc *own = &g->ops[op].desc;
	for (int k = i + 1; k < own->nin; k++)
		if (g->ops[op].in[k] == g->ops[op].in[i] && own->needs >> k & 1)
			return false;
	for (int r = 0; r < v->nreaders && v->readers[r] < op; r++) {
		const ck_op_info *earlier = &g->ops[v->readers[r]];
		for (int k = 0; k < earlier->desc.nin; k++)
			if (earlier->in[k] == g->ops[op].in[i] && earlier->desc.needs >> k & 1)
				return false;
	}
	return true;
}
