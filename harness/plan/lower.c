/* Lowering: from what a planner decides to a schedule. */
#include <stdlib.h>

#include "harness/plan/reads.h"
#include "harness/plan/schedule.h"
#include "kernels/alloc.h"

/* Walks the work backwards, so that "is it read again before it is written again?" is known at every place. */
ck_status ck_lower_drops(const ck_graph *g, const ck_schedule *work, ck_schedule *s, ck_err *err)
{
	bool *needed = ck_alloc((size_t)g->nvalues, sizeof *needed);
	ck_schedule reversed = {0};
	ck_status status = CK_OK;
	for (int i = work->n - 1; i >= 0 && status == CK_OK; i--) {
		const ck_instr *in = &work->at[i];
		if (in->code != 'F' && in->code != 'B') {
			status = ck_fail(err, CK_USAGE, "instruction %d is '%c': lowering takes F and B only", i, in->code);
			break;
		}
		ck_reads reads = ck_reads_of(g, *in), writes = ck_writes_of(g, *in);
		for (int k = 0; k < reads.n; k++)
			if (!needed[reads.at[k]]) {
				needed[reads.at[k]] = true;
				ck_schedule_add(&reversed, 'D', reads.at[k]);
			}
		for (int k = 0; k < writes.n; k++) {
			if (!needed[writes.at[k]])
				ck_schedule_add(&reversed, 'D', writes.at[k]);
			needed[writes.at[k]] = false;
		}
		ck_schedule_add(&reversed, in->code, in->id);
	}
	*s = (ck_schedule){0};
	for (int i = reversed.n - 1; i >= 0 && status == CK_OK; i--)
		ck_schedule_add(s, reversed.at[i].code, reversed.at[i].id);
	ck_schedule_free(&reversed);
	free(needed);
	return status;
}

/* Adds the F's that make again, from the segment's input, what its backwards read. Not all: what only leads to the segment's
 * output is left out, since that output is still there; unless its op must run for its stash. A weight's copy is made once a step. */
static void recompute(const ck_graph *g, int from, int to, bool *needed, ck_schedule *work)
{
	ck_value output = g->ops[to - 1].out[0];
	needed[output] = false; /* a later segment's recompute read it; that is past */
	for (int o = to - 1; o >= from; o--) {
		ck_reads reads = ck_reads_of(g, (ck_instr){'B', o});
		for (int k = 0; k < reads.n; k++)
			needed[reads.at[k]] = needed[reads.at[k]] || reads.at[k] != output;
	}
	bool *runs = ck_alloc((size_t)(to - from), sizeof *runs);
	for (int o = to - 1; o >= from; o--) {
		ck_reads writes = ck_writes_of(g, (ck_instr){'F', o}), reads = ck_reads_of(g, (ck_instr){'F', o});
		for (int k = 0; k < writes.n; k++)
			runs[o - from] = runs[o - from] || needed[writes.at[k]];
		for (int k = 0; runs[o - from] && k < reads.n; k++)
			needed[reads.at[k]] = true;
	}
	for (int o = from; o < to; o++)
		if (runs[o - from] && g->values[g->ops[o].out[0]].kind != CK_WEIGHT_COPY)
			ck_schedule_add(work, 'F', o);
	free(runs);
}

ck_status ck_lower_segments(const ck_graph *g, const ck_segments *c, ck_schedule *s, ck_err *err)
{
	ck_schedule work = {0};
	bool *needed = ck_alloc((size_t)g->nvalues, sizeof *needed);
	for (int o = 0; o < g->nops; o++)
		ck_schedule_add(&work, 'F', o);
	for (int k = c->n - 1; k >= 0; k--) {
		int from = g->stage_first[c->first[k]], to = g->stage_first[c->first[k + 1]];
		if (!c->kept[k])
			recompute(g, from, to, needed, &work);
		for (int o = to - 1; o >= from; o--)
			if (g->ops[o].has_backward)
				ck_schedule_add(&work, 'B', o);
	}
	ck_status status = ck_lower_drops(g, &work, s, err);
	ck_schedule_free(&work);
	free(needed);
	return status;
}
