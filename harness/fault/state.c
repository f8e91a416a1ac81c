/* Mistakes with state that a forward changes, BatchNorm's running statistics and counters: it must change once a step, and in the
 * forward. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/fault/internal.h"

enum { BN_MEAN = 3, BN_VAR, BN_COUNT }; /* inputs, as kernels/ops.h has them */
enum { TALLY_CALLS = 2 };

static const char needs[] = "no op that keeps statistics is recomputed";

static bool runs(const ck_faulty *f, const ck_call *c, ck_op_kind kind)
{
	return c->code == 'F' && ck__op(f, c)->desc.kind == kind && ck__op(f, c)->contract.state;
}

static bool runs_again(const ck_faulty *f, const ck_call *c, ck_op_kind kind)
{
	return runs(f, c, kind) && c->recompute;
}

static bool update_again(ck_faulty *f, const ck_call *c, ck_args *a)
{
	for (int i = 0; i < ck__op(f, c)->desc.nin; i++)
		if (ck__op(f, c)->contract.state >> i & 1)
			a->state[i] = (void *)a->in[i];
	f->hits++;
	return true;
}

static bool twice(ck_faulty *f, const ck_call *c, ck_args *a, ck_step *step)
{
	(void)step;
	return !runs_again(f, c, CK_BATCHNORM) || update_again(f, c, a);
}

static bool tally_twice(ck_faulty *f, const ck_call *c, ck_args *a, ck_step *step)
{
	(void)step;
	return !runs_again(f, c, CK_TALLY) || update_again(f, c, a);
}

static void one_more(ck_faulty *f, void *host, ck_dtype t, int64_t n)
{
	(void)f;
	(void)t;
	(void)n;
	++*(int32_t *)host;
}

static void count_twice(ck_faulty *f, const ck_call *c, const ck_args *a, ck_step *step)
{
	(void)step;
	if (runs_again(f, c, CK_BATCHNORM))
		ck__edit(f, ck__tensor(f, ck__op(f, c)->in[BN_COUNT]), (void *)a->in[BN_COUNT], one_more);
}

static void calls_twice(ck_faulty *f, const ck_call *c, const ck_args *a, ck_step *step)
{
	(void)step;
	if (runs_again(f, c, CK_TALLY))
		ck__edit(f, ck__tensor(f, ck__op(f, c)->in[TALLY_CALLS]), (void *)a->in[TALLY_CALLS], one_more);
}

static bool frozen(ck_faulty *f, const ck_call *c, ck_args *a, ck_step *step)
{
	(void)step;
	if (!runs(f, c, CK_BATCHNORM) || c->recompute || !ck__recompute_of(f, c->id))
		return true;
	for (int i = BN_MEAN; i <= BN_COUNT; i++)
		a->state[i] = NULL;
	f->hits++;
	return true;
}

static bool keep_statistics(ck_faulty *f, const ck_call *c, ck_args *a, ck_step *step)
{
	(void)step;
	for (int i = BN_MEAN; i <= BN_VAR && runs(f, c, CK_BATCHNORM) && !c->recompute; i++)
		ck__keep(f, ck__op(f, c)->in[i], ck__tensor(f, ck__op(f, c)->in[i]), a->in[i]);
	return true;
}

/* Two updates with 1 - sqrt(1 - m) come to one with m, but for rounding. `at` holds what the one update with m left. */
static void update_by_halves(ck_faulty *f, ck_value v, double m, void *at)
{
	ck_tensor_desc t = ck__tensor(f, v);
	double half = 1 - sqrt(1 - m);
	void *host = ck__read(f, t, at);
	for (int64_t i = 0; i < ck_shape_count(t.shape); i++) {
		double old = ck_element_get(t.dtype, f->kept[v], i), now = ck_element_get(t.dtype, host, i);
		ck_element_put(t.dtype, host, i, old + (now - old) / m);
		double batch = ck_element_get(t.dtype, host, i); /* each step is rounded, as it would be */
		ck_element_put(t.dtype, host, i, old + half * (batch - old));
		double once = ck_element_get(t.dtype, host, i);
		ck_element_put(t.dtype, host, i, once + half * (batch - once));
		f->hits += ck_element_get(t.dtype, host, i) != now;
	}
	ck__write(f, t, at, host);
	free(host);
}

static void corrected(ck_faulty *f, const ck_call *c, const ck_args *a, ck_step *step)
{
	(void)step;
	const ck_op_info *op = ck__op(f, c);
	for (int i = BN_MEAN; i <= BN_VAR && runs_again(f, c, CK_BATCHNORM); i++)
		update_by_halves(f, op->in[i], op->desc.attr.momentum, (void *)a->in[i]);
}

static bool keep_state(ck_faulty *f, const ck_call *c, ck_args *a, ck_step *step)
{
	(void)step;
	const ck_op_info *op = ck__op(f, c);
	for (int i = 0; i < op->desc.nin && c->code == 'F' && !c->recompute; i++)
		if (op->contract.state >> i & 1 && op->has_backward)
			ck__keep(f, op->in[i], ck__tensor(f, op->in[i]), a->in[i]);
	return true;
}

/* What the forward has made of its state is taken back, and kept for the backward. */
static void take_back(ck_faulty *f, ck_value v, void *at)
{
	void *updated = ck__read(f, ck__tensor(f, v), at);
	f->hits += memcmp(updated, f->kept[v], ck__bytes(ck__tensor(f, v))) != 0;
	ck__write(f, ck__tensor(f, v), at, f->kept[v]);
	free(f->kept[v]);
	f->kept[v] = updated;
}

static void late(ck_faulty *f, const ck_call *c, const ck_args *a, ck_step *step)
{
	(void)step;
	const ck_op_info *op = ck__op(f, c);
	for (int i = 0; i < op->desc.nin; i++) {
		ck_value v = op->in[i];
		if (!(op->contract.state >> i & 1) || !op->has_backward)
			continue;
		if (c->code == 'F' && !c->recompute)
			take_back(f, v, (void *)a->in[i]);
		if (c->code == 'B')
			ck__write(f, ck__tensor(f, v), f->memory.base + f->program->layout.persistent[v], f->kept[v]);
	}
}

const ck_fault ck__state_faults[] = {
    {.name = "statistics-twice",
     .field = "BatchNorm in training mode updates its running statistics again when its segment is recomputed",
     .needs = needs,
     .before = twice},
    {.name = "statistics-count-twice",
     .field = "the statistics are guarded in the recompute, but num_batches_tracked is counted up again",
     .needs = needs,
     .after = count_twice},
    {.name = "statistics-frozen",
     .field = "tracking is switched off for checkpointed segments, in the first forward as well",
     .needs = needs,
     .before = frozen},
    {.name = "statistics-momentum-corrected",
     .field = "both passes update, with momentum 1-sqrt(1-m): the right mean in theory, other bits in the checkpoint file",
     .needs = needs,
     .before = keep_statistics,
     .after = corrected},
    {.name = "state-in-backward",
     .field = "the first forward runs without state, and statistics and counters move only when the backward runs it again",
     .needs = "no op that keeps state has a backward",
     .before = keep_state,
     .after = late},
    {.name = "counter-twice",
     .field = "any accumulator in the forward, such as a router's expert load, adds up again when its segment is recomputed",
     .needs = "no op that counts is recomputed",
     .before = tally_twice},
    {.name = "counter-calls-twice",
     .field = "the load is guarded in the recompute, but the number of calls that it is divided by is counted up again",
     .needs = "no op that counts is recomputed",
     .after = calls_twice},
    {.name = NULL},
};
