/* Mistakes with mixed precision: a recompute in another type than its forward, casts and the copies of weights that they make,
 * gradients between the two.
 *
 *     w (real) ──CAST──▶ copy (16 bit), once a step ──▶ F … F again … B      gradient of the copy: real, and the weight's own
 *
 * What cannot be made here: sums formed in 16 bits inside a product (a backend's arithmetic is real; another order of adding is
 * recompute-one-ulp), and an infinity that a right forward leaves (the loss would not be finite then, and nothing is proved by
 * it: overflow-zeroed makes one in the recompute alone). The loss scaler's mistakes are not about recomputes. */
#include <math.h>
#include <stdlib.h>

#include "harness/fault/internal.h"
#include "kernels/alloc.h"

static const char needs_half[] = "nothing that is recomputed, and read, is stored in 16 bits";

static bool recomputes(const ck_call *c)
{
	return c->code == 'F' && c->recompute;
}

static bool mixed(const ck_faulty *f)
{
	return f->graph->low != CK_DTYPE_NONE;
}

static ck_dtype other_half(ck_dtype t)
{
	return t == CK_BF16 ? CK_F16 : CK_BF16;
}

static void free_all(void *const tensors[], int n)
{
	for (int i = 0; i < n; i++)
		free(tensors[i]);
}

/* ---- a recompute under another autocast ---------------------------------------------------------------------------------- */

/* The op as it is where `to` stands for the 16-bit type. */
static ck_op_desc described_in(const ck_op_desc *d, ck_dtype to, ck_dtype real)
{
	ck_op_desc other = *d;
	ck_err err;
	for (int i = 0; i < d->nin; i++)
		other.in[i].dtype = ck_dtype_half(d->in[i].dtype) ? to : d->in[i].dtype;
	if (ck_dtype_half(d->attr.to))
		other.attr.to = d->kind == CK_LAYERNORM && to == real ? CK_DTYPE_NONE : to;
	if (d->kind == CK_CAST) /* real to real is none: it only hands on */
		other.out[0].dtype = ck_dtype_half(d->out[0].dtype) ? to : d->out[0].dtype;
	else if (ck_op_infer(&other, real, &err) != CK_OK)
		return *d;
	return other;
}

/* Input i of the op in dtype `to`, fresh memory: as the recompute under the other autocast, whose type is `low`, made it (kept), if
 * it did; a weight from the parameter itself, cast anew; else what lies there. */
static void *input_in(const ck_faulty *f, const ck_op_info *op, const ck_args *a, int i, ck_dtype low, ck_dtype to)
{
	ck_value v = op->in[i];
	ck_tensor_desc t = op->desc.in[i];
	const void *place = a->in[i];
	if (f->kept[v]) {
		t.dtype = ck_dtype_half(t.dtype) ? low : t.dtype;
		return ck__convert(t, f->kept[v], to);
	}
	if (f->graph->values[v].kind == CK_WEIGHT_COPY) {
		v = ck__master(f, v);
		t = ck__tensor(f, v);
		place = f->memory.base + f->program->layout.persistent[v];
	}
	void *host = ck__read(f, t, place), *converted = ck__convert(t, host, to);
	free(host);
	return converted;
}

/* What the op makes of `in` under the other autocast; stash may be left NULL. */
static bool make_other(ck_faulty *f, const ck_args *a, const ck_op_info *op, const ck_op_desc *other, void *const in[],
		       void **out, void *stash[])
{
	if (op->desc.kind != CK_CAST)
		return ck__run_aside(f, a, other, in, out, stash);
	*out = ck__convert(other->in[0], in[0], other->out[0].dtype);
	return true;
}

/* Places are 16 bits wide still, so that results are rounded into them; the next op of the segment has them unrounded. */
static void store_other(ck_faulty *f, const ck_args *a, const ck_op_info *op, const ck_op_desc *other, void *out, void *stash[])
{
	const ck_op_desc *d = &op->desc;
	void *host = ck__convert(other->out[0], out, d->out[0].dtype);
	ck__change(f, d->out[0], a->out[0], host);
	free(host);
	free(f->kept[op->out[0]]);
	f->kept[op->out[0]] = out;
	for (int i = 0; i < other->nstash; i++) {
		if (ck_dtype_real(d->stash[i].dtype) && ck_shape_equal(d->stash[i].shape, other->stash[i].shape)) {
			host = ck__convert(other->stash[i], stash[i], d->stash[i].dtype);
			ck__change(f, d->stash[i], a->stash[i], host);
			free(host);
		}
		free(stash[i]);
	}
}

/* The op runs as it should, and then once more under the other autocast. */
static bool recompute_in(ck_faulty *f, const ck_call *c, const ck_args *a, ck_dtype to)
{
	const ck_op_info *op = ck__op(f, c);
	if (!mixed(f) || !recomputes(c))
		return true;
	ck_op_desc other = described_in(&op->desc, to, f->graph->real);
	void *in[CK_MAX_IN] = {NULL}, *out, *stash[CK_MAX_STASH] = {NULL};
	for (int i = 0; i < other.nin; i++)
		in[i] = input_in(f, op, a, i, to, other.in[i].dtype);
	const ck_kernel *k = f->program->session->kernels[c->id];
	k->forward(k, a);
	if (make_other(f, a, op, &other, in, &out, stash))
		store_other(f, a, op, &other, out, stash);
	free_all(in, other.nin);
	f->shapes += ck__shapes(&other, c->id);
	return false;
}

static bool outside_autocast(ck_faulty *f, const ck_call *c, ck_args *a, ck_step *step)
{
	(void)step;
	return recompute_in(f, c, a, f->graph->real);
}

static bool under_other_half(ck_faulty *f, const ck_call *c, ck_args *a, ck_step *step)
{
	(void)step;
	return recompute_in(f, c, a, other_half(f->graph->low));
}

/* ---- results ------------------------------------------------------------------------------------------------------------- */

static bool makes_half_again(const ck_faulty *f, const ck_call *c)
{
	return recomputes(c) && ck_dtype_half(ck__op(f, c)->desc.out[0].dtype) && ck__output_goes_on(f, c);
}

static void bits_of_other(ck_faulty *f, void *host, ck_dtype t, int64_t n)
{
	(void)f;
	for (int64_t i = 0; i < n; i++)
		ck_element_put(other_half(t), host, i, ck_element_get(t, host, i));
}

static void misread(ck_faulty *f, const ck_call *c, const ck_args *a, ck_step *step)
{
	(void)step;
	if (makes_half_again(f, c))
		ck__edit(f, ck__op(f, c)->desc.out[0], a->out[0], bits_of_other);
}

static void zero_greatest(ck_faulty *f, void *host, ck_dtype t, int64_t n)
{
	(void)f;
	int64_t greatest = 0;
	for (int64_t i = 1; i < n; i++)
		if (fabs(ck_element_get(t, host, i)) > fabs(ck_element_get(t, host, greatest)))
			greatest = i;
	ck_element_put(t, host, greatest, 0);
}

static void overflow(ck_faulty *f, const ck_call *c, const ck_args *a, ck_step *step)
{
	(void)step;
	if (makes_half_again(f, c) && f->graph->low == CK_F16)
		ck__edit(f, ck__op(f, c)->desc.out[0], a->out[0], zero_greatest);
}

/* The op without its residual, and the ReLU that comes after that. */
static ck_op_desc without_residual(const ck_op_desc *d, ck_dtype real)
{
	ck_op_desc bare = *d;
	ck_err err;
	bare.nin--;
	bare.attr.residual = false;
	bare.attr.act = CK_ACT_NONE;
	return ck_op_infer(&bare, real, &err) == CK_OK ? bare : *d;
}

/* `rounded` and r, added and rounded again. */
static void *add_residual(const ck_op_desc *d, const ck_op_desc *bare, const void *rounded, const void *r)
{
	int64_t n = ck_shape_count(d->out[0].shape);
	ck_dtype t = d->out[0].dtype, half = bare->out[0].dtype, other = d->in[bare->nin].dtype;
	void *sum = ck_alloc((size_t)n, ck_dtype_size(t));
	for (int64_t i = 0; i < n; i++) {
		double y = ck_element_get(half, rounded, i) + ck_element_get(other, r, i);
		ck_element_put(t, sum, i, d->attr.act == CK_ACT_RELU && y < 0 ? 0 : y);
	}
	return sum;
}

static bool rounded_twice(ck_faulty *f, const ck_call *c, ck_args *a, ck_step *step)
{
	(void)step;
	const ck_op_info *op = ck__op(f, c);
	const ck_op_desc *d = &op->desc;
	if (!recomputes(c) || ck_op_residual(d) < 0 || !ck_dtype_half(d->in[0].dtype) || !ck__output_goes_on(f, c))
		return true;
	ck_op_desc bare = without_residual(d, f->graph->real);
	void *in[CK_MAX_IN], *rounded, *stash[CK_MAX_STASH] = {NULL};
	for (int i = 0; i < d->nin; i++)
		in[i] = ck__read(f, d->in[i], a->in[i]);
	const ck_kernel *k = f->program->session->kernels[c->id];
	k->forward(k, a);
	if (ck__run_aside(f, a, &bare, in, &rounded, stash)) {
		void *sum = add_residual(d, &bare, rounded, in[bare.nin]);
		ck__change(f, d->out[0], a->out[0], sum);
		free(sum);
		free(rounded);
		free_all(stash, bare.nstash);
	}
	free_all(in, d->nin);
	f->shapes += ck__shapes(d, c->id);
	return false;
}

/* The real activation that the op reads is rounded to 16 bits before. */
static bool real_in_half(ck_faulty *f, const ck_call *c, ck_args *a, ck_step *step)
{
	(void)step;
	const ck_op_info *op = ck__op(f, c);
	ck_tensor_desc t = op->desc.in[0];
	bool applies = mixed(f) && recomputes(c) && t.dtype == f->graph->real && op->desc.kind != CK_CAST &&
		       f->graph->values[op->in[0]].kind == CK_ACTIVATION;
	void *scratch = applies ? ck__scratch(f) : NULL;
	if (!scratch)
		return true;
	void *host = ck__read(f, t, a->in[0]), *half = ck__convert(t, host, f->graph->low);
	void *rounded = ck__convert((ck_tensor_desc){f->graph->low, t.shape}, half, t.dtype);
	ck__write(f, t, scratch, host);
	ck__change(f, t, scratch, rounded);
	a->in[0] = scratch;
	free(host);
	free(half);
	free(rounded);
	return true;
}

/* ---- copies of weights --------------------------------------------------------------------------------------------------- */

/* The input that is a weight's copy, or -1. */
static int copy_of_weight(const ck_faulty *f, const ck_op_info *op)
{
	for (int i = 0; i < op->desc.nin; i++)
		if (f->graph->values[op->in[i]].kind == CK_WEIGHT_COPY)
			return i;
	return -1;
}

/* As the weight was before the optimizer's last step, one of weight decay. Forward and recompute read the same then: in plan none,
 * whose cache was cleared, they do not. */
static void stale(ck_faulty *f, const ck_call *c, const ck_args *a, ck_step *step)
{
	(void)step;
	ck_value v = ck__op(f, c)->out[0];
	if (c->code != 'F' || f->graph->values[v].kind != CK_WEIGHT_COPY)
		return;
	void *older = ck__scaled_weight(f, v, 1 + 0x1p-10);
	ck__change(f, ck__tensor(f, v), a->out[0], older);
	free(older);
}

/* Bytes of second copies, from an op's recompute to its backward, beside all that is held. f->beside is what they take now,
 * f->peak_beside the most that was held with them. */
static void second_copies(ck_faulty *f, const ck_call *c, const ck_args *a, ck_step *step)
{
	(void)a;
	(void)step;
	const ck_op_info *op = ck__op(f, c);
	int i = copy_of_weight(f, op);
	size_t bytes = i >= 0 ? f->graph->values[op->in[i]].bytes : 0;
	if (recomputes(c))
		f->beside += bytes;
	size_t held = f->program->trace.live[ck__index(f, c)] + f->beside;
	if (f->beside > 0 && held > f->peak_beside)
		f->peak_beside = held;
	if (c->code == 'B' && ck__recompute_of(f, c->id))
		f->beside -= bytes;
}

static size_t with_second_copies(ck_faulty *f, size_t seen)
{
	f->hits += f->peak_beside > seen;
	return f->peak_beside > seen ? f->peak_beside : seen;
}

/* ---- gradients ----------------------------------------------------------------------------------------------------------- */

static void round_to_low(ck_faulty *f, void *host, ck_dtype t, int64_t n)
{
	uint16_t half;
	for (int64_t i = 0; i < n; i++) {
		ck_element_put(f->graph->low, &half, 0, ck_element_get(t, host, i));
		ck_element_put(t, host, i, ck_element_get(f->graph->low, &half, 0));
	}
}

static void gradient_rounded(ck_faulty *f, const ck_call *c, const ck_args *a, ck_step *step)
{
	(void)step;
	const ck_op_info *op = ck__op(f, c);
	int i = c->code == 'B' && ck__recompute_of(f, c->id) ? copy_of_weight(f, op) : -1;
	if (i >= 0 && a->din[i])
		ck__edit(f, ck__gradient(f, op->in[i]), a->din[i], round_to_low);
}

/* Nothing comes through: what is there stays where it would be added to, else it is zero. */
static bool cast_cut(ck_faulty *f, const ck_call *c, ck_args *a, ck_step *step)
{
	(void)step;
	const ck_op_desc *d = &ck__op(f, c)->desc;
	if (c->code != 'B' || d->kind != CK_CAST)
		return true;
	ck_tensor_desc from = ck_op_dout(d), to = ck_op_din(d, 0);
	void *host = ck__read(f, from, a->dout);
	for (int64_t i = 0, hit = 0; i < ck_shape_count(from.shape) && !hit; i++)
		f->hits += hit = ck_element_get(from.dtype, host, i) != 0;
	free(host);
	if (!a->acc[0])
		f->program->session->backend->fill(f->program->session->device, a->din[0], 0, ck__bytes(to));
	return false;
}

const ck_fault ck__precision_faults[] = {
    {.name = "recompute-outside-autocast",
     .field = "the backward, and so the recompute, runs outside the autocast region: in float32, with weights uncast",
     .needs = needs_half,
     .before = outside_autocast},
    {.name = "recompute-in-other-16-bit",
     .field = "the recompute's autocast has the default type, not the forward's: float16 for bfloat16, of the same sizes",
     .needs = needs_half,
     .before = under_other_half},
    {.name = "16-bit-type-mistaken",
     .field = "raw 16-bit words (packed, offloaded) are read back as the other type: bfloat16 for float16",
     .needs = needs_half,
     .after = misread},
    {.name = "overflow-zeroed",
     .field = "the recompute's greatest number overflows float16, and a clean-up of infinities makes it zero",
     .needs = "nothing that is recomputed, and read, is stored in float16",
     .after = overflow},
    {.name = "rounded-twice",
     .field = "forward fused, recompute not: what the residual is added to is rounded to 16 bits before",
     .needs = "no op of 16-bit tensors with a residual is recomputed",
     .before = rounded_twice},
    {.name = "float32-op-in-16-bits",
     .field = "an op on autocast's float32 list (layer norm, softmax) is not on the recompute's, and gets 16-bit inputs",
     .needs = "no op of mixed precision that is recomputed reads a real activation",
     .before = real_in_half},
    {.name = "weight-copy-stale",
     .field = "the cast cache is not cleared after the optimizer's step, so forward and recompute read the older weights",
     .needs = "no weight has a 16-bit copy",
     .after = stale},
    {.name = "cast-cache-missed",
     .field = "the recompute does not find the forward's casts in the cache, and makes and keeps a second copy of each weight",
     .needs = "no second copy of a weight would be there at the peak",
     .after = second_copies,
     .meter = with_second_copies},
    {.name = "copy-gradient-rounded",
     .field = "the gradient of a 16-bit weight is rounded to 16 bits on its way to the weight",
     .needs = "no op that is recomputed has a weight with a 16-bit copy",
     .after = gradient_rounded},
    {.name = "cast-without-backward",
     .field = "a hand-made cast (detach, .data, a custom function) lets no gradient through",
     .needs = "no cast has a backward",
     .before = cast_cut},
    {.name = NULL},
};
