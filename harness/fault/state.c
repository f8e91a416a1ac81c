/* Mistakes with BatchNorm's running statistics: state that a forward changes must change once a step. */
#include <math.h>
#include <stdlib.h>

#include "harness/fault/internal.h"

enum { BN_MEAN = 3, BN_VAR, BN_COUNT }; /* its inputs, as kernels/ops.h has them */

static const char needs[] = "no op that keeps statistics is recomputed";

static bool updates(const ck_faulty *f, const ck_call *c)
{
	return c->code == 'F' && ck__op(f, c)->contract.state;
}

static bool twice(ck_faulty *f, const ck_call *c, ck_args *a, ck_step *step)
{
	(void)step;
	for (int i = BN_MEAN; i <= BN_COUNT && updates(f, c) && c->recompute; i++)
		a->state[i] = (void *)a->in[i];
	f->hits += updates(f, c) && c->recompute;
	return true;
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
	if (updates(f, c) && c->recompute)
		ck__edit(f, ck__tensor(f, ck__op(f, c)->in[BN_COUNT]), (void *)a->in[BN_COUNT], one_more);
}

static bool frozen(ck_faulty *f, const ck_call *c, ck_args *a, ck_step *step)
{
	(void)step;
	if (!updates(f, c) || c->recompute || !ck__recompute_of(f, c->id))
		return true;
	for (int i = BN_MEAN; i <= BN_COUNT; i++)
		a->state[i] = NULL;
	f->hits++;
	return true;
}

static bool keep_statistics(ck_faulty *f, const ck_call *c, ck_args *a, ck_step *step)
{
	(void)step;
	for (int i = BN_MEAN; i <= BN_VAR && updates(f, c) && !c->recompute; i++)
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
	for (int i = BN_MEAN; i <= BN_VAR && updates(f, c) && c->recompute; i++)
		update_by_halves(f, op->in[i], op->desc.attr.momentum, (void *)a->in[i]);
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
    {.name = NULL},
};
