/* Mistakes with what a recompute reads and makes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/fault/internal.h"
#include "kernels/half.h"

static bool recomputes(const ck_call *c)
{
	return c->code == 'F' && c->recompute;
}

static bool makes_output_again(const ck_faulty *f, const ck_call *c)
{
	return recomputes(c) && ck__output_is_read(f, c);
}

/* ---- weights ------------------------------------------------------------------------------------------------------------- */

static int weight_of(const ck_faulty *f, const ck_op_info *op)
{
	for (int i = 0; i < op->desc.nin; i++)
		if (ck__is_weight(f, op->in[i]) && f->graph->values[ck__master(f, op->in[i])].trainable)
			return i;
	return -1;
}

/* A step of weight decay: the least that any optimizer does to a weight. */
#define DECAY (1 - 0x1p-10)

static void decay(ck_faulty *f, void *host, ck_dtype t, int64_t n)
{
	(void)f;
	for (int64_t i = 0; i < n; i++)
		ck_element_put(t, host, i, ck_element_get(t, host, i) * DECAY);
}

static bool stepped_copy(ck_faulty *f, const ck_call *c, ck_args *a, ck_step *step)
{
	(void)step;
	const ck_op_info *op = ck__op(f, c);
	int i = recomputes(c) ? weight_of(f, op) : -1;
	void *copy = i >= 0 ? ck__scratch(f) : NULL;
	if (!copy)
		return true;
	ck_tensor_desc t = ck__tensor(f, op->in[i]);
	void *host = ck__read(f, t, a->in[i]), *newer = ck__scaled_weight(f, op->in[i], DECAY);
	ck__write(f, t, copy, host);
	ck__change(f, t, copy, newer);
	free(host);
	free(newer);
	a->in[i] = copy;
	return true;
}

/* Once its own backward has run; in plan none that would be late enough, but here the weight is read again. */
static void stepped_in_place(ck_faulty *f, const ck_call *c, const ck_args *a, ck_step *step)
{
	(void)step;
	const ck_op_info *op = ck__op(f, c);
	int i = c->code == 'B' && ck__recompute_of(f, c->id) ? weight_of(f, op) : -1;
	if (i < 0 || !a->din[i])
		return;
	ck_value w = ck__master(f, op->in[i]);
	ck__edit(f, ck__tensor(f, w), f->memory.base + f->program->layout.persistent[w], decay);
}

/* ---- what is not made again ---------------------------------------------------------------------------------------------- */

static bool skipped(ck_faulty *f, const ck_call *c, ck_args *a, ck_step *step)
{
	(void)a;
	(void)step;
	if (!recomputes(c) || ck__index(f, c) != ck__last_recompute(f->program))
		return true;
	f->hits++;
	return false;
}

/* The first forward's F of the op that makes v. */
static const ck_call *first_forward(const ck_program *p, int op)
{
	for (int i = 0; i < p->ncalls; i++)
		if (p->calls[i].code == 'F' && p->calls[i].id == op)
			return &p->calls[i];
	return NULL;
}

/* A backward is given the place where a saved value lay before it was dropped. */
static bool stale_place(ck_program *p, const ck_schedule *s)
{
	(void)s;
	const ck_graph *g = p->session->graph;
	for (int i = 0; i < p->ncalls; i++) {
		ck_call *c = &p->calls[i];
		for (int k = 0; c->code == 'B' && k < g->ops[c->id].desc.nin; k++) {
			const ck_value_info *v = &g->values[g->ops[c->id].in[k]];
			if (c->in[k] == CK_NOWHERE || v->kind != CK_ACTIVATION)
				continue;
			size_t old = first_forward(p, v->producer)->out[0];
			if (old == c->in[k])
				continue;
			c->in[k] = old;
			return true;
		}
	}
	return false;
}

/* ---- inputs that are not what they were ---------------------------------------------------------------------------------- */

static void twofold(ck_faulty *f, void *host, ck_dtype t, int64_t n)
{
	(void)f;
	for (int64_t i = 0; i < n; i++)
		ck_element_put(t, host, i, 2 * ck_element_get(t, host, i));
}

/* Whether v stays in its place from call `from` to call `to`. */
static bool stays(const ck_program *p, ck_value v, int from, int to)
{
	for (int k = 0; k < p->trace.nlives; k++) {
		const ck_lifetime *l = &p->trace.lives[k];
		if (l->slot == v && l->from <= from && l->to >= to)
			return true;
	}
	return false;
}

static void spoil_kept(ck_faulty *f, const ck_call *c, const ck_args *a, ck_step *step)
{
	(void)step;
	const ck_call *again = c->code == 'F' && !c->recompute ? ck__recompute_of(f, c->id) : NULL;
	ck_value v = ck__op(f, c)->in[0];
	bool kept = again && f->graph->values[v].kind == CK_ACTIVATION;
	if (kept && stays(f->program, v, ck__index(f, c), ck__index(f, again)))
		ck__edit(f, ck__tensor(f, v), (void *)a->in[0], twofold);
}

/* The first F of the block of recomputes that `again` stands in: that of the segment's first op. */
static const ck_call *segment_begins(const ck_faulty *f, const ck_call *again)
{
	const ck_call *first = again;
	for (const ck_call *c = again; c >= f->program->calls && (c->code == 'D' || recomputes(c)); c--)
		first = c->code == 'F' ? c : first;
	return first;
}

/* for layer in group: y = layer(x), where x = layer(x) was meant. Stages are the layers. */
static bool group_input(ck_faulty *f, const ck_call *c, ck_args *a, ck_step *step)
{
	(void)step;
	const ck_graph *g = f->graph;
	const ck_op_info *op = ck__op(f, c);
	const ck_call *again = c->code == 'F' ? ck__recompute_of(f, c->id) : NULL;
	int begins = g->stage_first[op->stage];
	while (g->values[g->ops[begins].out[0]].kind == CK_WEIGHT_COPY)
		begins++;
	if (!again || begins != c->id)
		return true;
	const ck_call *first = segment_begins(f, again);
	const ck_value_info *mine = &g->values[op->in[0]], *entry = &g->values[g->ops[first->id].in[0]];
	if (first == again || mine->bytes != entry->bytes || mine->dtype != entry->dtype)
		return true;
	a->in[0] = f->memory.base + first->in[0];
	f->hits++;
	return true;
}

/* Input i of the op is taken for zeros. */
static void drop_operand(ck_faulty *f, const ck_call *c, ck_args *a, int i)
{
	const ck_session *s = f->program->session;
	void *zeros = ck__scratch(f);
	if (!zeros)
		return;
	s->backend->fill(s->device, zeros, 0, f->graph->values[ck__op(f, c)->in[i]].bytes);
	a->in[i] = zeros;
	f->hits++;
}

static bool no_residual(ck_faulty *f, const ck_call *c, ck_args *a, ck_step *step)
{
	(void)step;
	const ck_op_desc *d = &ck__op(f, c)->desc;
	int i = d->kind == CK_ADD ? 1 : ck_op_residual(d);
	if (makes_output_again(f, c) && i >= 0)
		drop_operand(f, c, a, i);
	return true;
}

static bool swapped(ck_faulty *f, const ck_call *c, ck_args *a, ck_step *step)
{
	(void)step;
	ck_op_kind kind = ck__op(f, c)->desc.kind;
	if (!makes_output_again(f, c) || (kind != CK_LAYERNORM && kind != CK_BATCHNORM))
		return true;
	const void *gamma = a->in[1];
	a->in[1] = a->in[2];
	a->in[2] = gamma;
	f->hits++;
	return true;
}

/* The softmax is done over, by a kernel that knows of no mask. It works in place, so the scores are kept first. */
static bool keep_scores(ck_faulty *f, const ck_call *c, ck_args *a, ck_step *step)
{
	(void)step;
	const ck_op_info *op = ck__op(f, c);
	if (recomputes(c) && op->desc.kind == CK_SOFTMAX && op->desc.attr.causal)
		ck__keep(f, op->in[0], ck__tensor(f, op->in[0]), a->in[0]);
	return true;
}

static void without_mask(ck_faulty *f, const ck_call *c, const ck_args *a, ck_step *step)
{
	(void)step;
	const ck_op_info *op = ck__op(f, c);
	ck_op_desc desc = op->desc;
	void *out;
	if (!makes_output_again(f, c) || desc.kind != CK_SOFTMAX || !desc.attr.causal)
		return;
	desc.attr.causal = false;
	if (!ck__run_aside(f, a, &desc, &f->kept[op->in[0]], &out, NULL))
		return;
	ck__write(f, desc.out[0], a->out[0], out);
	free(out);
	f->hits++;
}

/* ---- results that are slightly off --------------------------------------------------------------------------------------- */

static void edit_results(ck_faulty *f, const ck_call *c, const ck_args *a, ck_edit *edit)
{
	const ck_op_info *op = ck__op(f, c);
	if (!recomputes(c))
		return;
	if (ck_dtype_real(op->desc.out[0].dtype))
		ck__edit(f, op->desc.out[0], a->out[0], edit);
	for (int i = 0; i < op->desc.nstash; i++)
		if (ck_dtype_real(op->desc.stash[i].dtype))
			ck__edit(f, op->desc.stash[i], a->stash[i], edit);
}

/* To the nearest bfloat16, ties to even. */
static float bf16(float x)
{
	return ck_bf16_get(ck_bf16_put(x));
}

static void round_all(ck_faulty *f, void *host, ck_dtype t, int64_t n)
{
	(void)f;
	for (int64_t i = 0; i < n; i++)
		ck_element_put(t, host, i, (double)bf16((float)ck_element_get(t, host, i)));
}

static void lower_precision(ck_faulty *f, const ck_call *c, const ck_args *a, ck_step *step)
{
	(void)step;
	edit_results(f, c, a, round_all);
}

/* The next number up in element i's own type. Both 16-bit types count up in their bits as magnitudes do. */
static void next_up(void *host, ck_dtype t, int64_t i)
{
	double x = ck_element_get(t, host, i);
	uint16_t *bits = (uint16_t *)host + i;
	if (ck_dtype_half(t))
		*bits = (uint16_t)(x > 0 ? *bits + 1 : *bits - 1);
	else
		ck_element_put(t, host, i, t == CK_F64 ? nextafter(x, INFINITY) : (double)nextafterf((float)x, INFINITY));
}

static void next_all(ck_faulty *f, void *host, ck_dtype t, int64_t n)
{
	(void)f;
	for (int64_t i = 0; i < n; i++) {
		double x = ck_element_get(t, host, i);
		if (x != 0 && isfinite(x))
			next_up(host, t, i);
	}
}

static void other_order(ck_faulty *f, const ck_call *c, const ck_args *a, ck_step *step)
{
	(void)step;
	edit_results(f, c, a, next_all);
}

/* The first place in output e's window whose value is, in bfloat16, that of the maximum. x (N,H,W,C), y (N,OH,OW,C). */
static uint8_t tied_place(const ck_op_desc *d, const void *x, int64_t e, double maximum)
{
	const ck_shape in = d->in[0].shape, out = d->out[0].shape;
	int64_t c = e % out.d[3], ow = e / out.d[3] % out.d[2], oh = e / out.d[3] / out.d[2] % out.d[1];
	int64_t n = e / out.d[3] / out.d[2] / out.d[1];
	for (int place = 0; place < d->attr.kh * d->attr.kw; place++) {
		int64_t h = oh * d->attr.stride - d->attr.pad + place / d->attr.kw;
		int64_t w = ow * d->attr.stride - d->attr.pad + place % d->attr.kw;
		if (h < 0 || w < 0 || h >= in.d[1] || w >= in.d[2])
			continue;
		double value = ck_element_get(d->in[0].dtype, x, ((n * in.d[1] + h) * in.d[2] + w) * in.d[3] + c);
		if (bf16((float)value) == bf16((float)maximum))
			return (uint8_t)place;
	}
	return 0;
}

/* Ties at 0 are left alone: there the ReLU before lets no gradient through, wherever it goes. */
static void flip_ties(ck_faulty *f, const ck_call *c, const ck_args *a, ck_step *step)
{
	(void)step;
	const ck_op_info *op = ck__op(f, c);
	if (!recomputes(c) || op->desc.kind != CK_MAXPOOL)
		return;
	void *x = ck__read(f, op->desc.in[0], a->in[0]), *y = ck__read(f, op->desc.out[0], a->out[0]);
	uint8_t *at = ck__read(f, op->desc.stash[0], a->stash[0]);
	for (int64_t e = 0; e < ck_shape_count(op->desc.out[0].shape); e++) {
		double maximum = ck_element_get(op->desc.out[0].dtype, y, e);
		uint8_t place = maximum != 0 ? tied_place(&op->desc, x, e, maximum) : at[e];
		f->hits += place != at[e];
		at[e] = place;
	}
	ck__write(f, op->desc.stash[0], a->stash[0], at);
	free(x);
	free(y);
	free(at);
}

const ck_fault ck__value_faults[] = {
    {.name = "weight-stepped",
     .field = "the recompute reads a newer copy of the weight, after an optimizer step or an update of an average",
     .needs = "no op with a trained weight is recomputed",
     .before = stepped_copy},
    {.name = "weight-stepped-in-backward",
     .field = "an optimizer fused into the backward changes a weight as soon as its gradient is there",
     .needs = "no op with a trained weight is recomputed",
     .after = stepped_in_place},
    {.name = "recompute-skipped",
     .field = "a cache believes that a dropped value is still there, so the op does not run again",
     .needs = "nothing is recomputed",
     .before = skipped},
    {.name = "stale-place",
     .field = "a saved pointer is not renewed, so a backward reads where the value lay before its memory was reused",
     .needs = "every value that is made again comes to lie where it was",
     .program = stale_place},
    {.name = "kept-input-spoiled",
     .field = "an in-place op at the start of a segment changes the input that was kept for its recompute",
     .needs = "no segment begins with a kept activation",
     .after = spoil_kept},
    {.name = "group-input-to-each",
     .field = "the loop over a group of layers hands each the group's input in place of the layer's before",
     .needs = "no segment has two layers whose inputs are of one shape and type",
     .before = group_input},
    {.name = "residual-missing",
     .field = "the checkpointed branch is called without one of its arguments, the residual",
     .needs = "no op with a residual is recomputed",
     .before = no_residual},
    {.name = "arguments-reordered",
     .field = "arguments reach the recompute in another order: two of one shape, scale and shift, change places",
     .needs = "no op with two parameters of one shape is recomputed",
     .before = swapped},
    {.name = "causal-mask-dropped",
     .field = "the attention mask is a keyword argument, and the recompute is not given keyword arguments",
     .needs = "no softmax with a mask is recomputed",
     .before = keep_scores,
     .after = without_mask},
    {.name = "recompute-in-bf16",
     .field = "the backward runs under another autocast than the forward: same shapes, results rounded to bfloat16",
     .needs = "nothing that is recomputed has other bits in bfloat16",
     .after = lower_precision},
    {.name = "recompute-one-ulp",
     .field = "the library picks another algorithm for the recompute, which adds in another order",
     .needs = "all that is recomputed is zero",
     .after = other_order},
    {.name = "maxpool-tie-flips",
     .field = "the recompute is coarser, so two places of a window tie and the other one wins",
     .needs = "no max-pooling is recomputed that has a tie in bfloat16, other than between zeros",
     .after = flip_ties},
    {.name = NULL},
};
