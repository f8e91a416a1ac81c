/* Every other backend agrees with the reference one, op by op: outputs, stashes, state and gradients.
 *
 * Both get the same inputs, exact in the dtypes that the case stores them in, and both backwards get what the reference's forward
 * saved, rounded to those: so forward and backward are judged apart, and a ReLU's output that is all but zero falls to the same side.
 *
 * What is stored in 32 bits: scale is the largest element of the tensor, since its elements are sums of terms about as large as that;
 * times 1 + shift, where the case shifts its input and the op takes the shift out again. Tolerance: 32 roundings of that scale, a
 * rounding being 2^-24 (half of f32's epsilon). Indices and counts agree exactly.
 *
 * What is stored in 16 bits is held against the reference's float64 result, not rounded. An element may be off by
 *     the above, for arithmetic is in float32 and its operands are the same numbers,
 *     half the distance between 16-bit numbers at that place, for it is rounded once, to nearest,
 *     and what became of roundings before, where a backend's kernels store something on the way: see result_before and
 *     gradients_before.
 * And the reference backend's own 16-bit result is its float64 one, rounded to nearest even: the same bits. */
#include "suite/ops/op_run.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/alloc.h"

TestSuite(agreement, .init = device_or_skip);

extern const ck_backend ck_ref_backend;

static const double tolerance = 32;

/* The worst that was seen of a kind of op and a way to store: as a part of what is allowed. */
typedef struct worst_seen {
	double part;
	char where[600];
} worst_seen;

static double largest_of(const double *v, int64_t n)
{
	double largest = 0;
	for (int64_t e = 0; e < n; e++)
		largest = fabs(v[e]) > largest ? fabs(v[e]) : largest;
	return largest;
}

/* ---- roundings on the way, in 16 bits -------------------------------------------------------------------------------------
 *
 * Of the ops on the cpu, LINEAR stores results of its own on the way, on cuda CONV2D as well. All others round each result once, but for a gradient that has
 * two sources: those of images, of q, k and v, and of cuDNN's batch normalisation are formed before they are added to what is there. */

/* |gelu'| is 1.129 at most, in either form (where gelu'' = 0: at sqrt(2) for erf). */
static const double steepest = 1.13;

typedef struct linear_way {
	ck_dtype t; /* of x, w and z */
	double scale;
	bool gelu, drops, unrounded; /* unrounded: the output is real, and dropout is on it */
} linear_way;

static linear_way linear_way_of(const ck_op_desc *d)
{
	return (linear_way){.t = d->in[0].dtype,
			    .scale = 1 / (1 - d->attr.p),
			    .gelu = ck_act_gelu(d->attr.act),
			    .drops = d->attr.p > 0,
			    .unrounded = d->in[0].dtype != d->out[0].dtype};
}

/* Whether the cuda backend's code computes: its bias or what it is added to is rounded, and so is CONV2D's weight gradient. */
static bool by_cuda(const ck_backend *b)
{
	return !strcmp(b->name, "cuda") || !strcmp(b->name, "emu");
}

/* What a result that is stored in t, before a bias is added or with it, may be off by on the cuda backend: either the bias is rounded (LINEAR,
 * by cuBLASLt) or what it is added to (LINEAR in a pass, CONV2D), which is as large as both together at most. */
static double bias_off(const op_run *r, const op_values *v, int64_t e, double result)
{
	const ck_op_desc *d = &r->desc;
	if (!by_cuda(r->backend) || !d->attr.bias || !ck_dtype_half(d->out[0].dtype))
		return 0;
	double bias = v->at[OP_IN + 2][e % ck_shape_last(d->out[0].shape)];
	return op_half_spacing(d->out[0].dtype, fabs(result) + fabs(bias));
}

/* y of LINEAR, element e: z as stashed goes through GELU, and what dropout scales has been stored before. (y - r) / scale is as large
 * as that, where kept; where dropped all is exact. A ReLU's 0 does not tell why it is 0. */
static double linear_output_before(const op_run *run, const op_values *want, int64_t e)
{
	const ck_op_desc *d = &run->desc;
	const linear_way w = linear_way_of(d);
	int r = ck_op_residual(d);
	double through = want->at[OP_OUT][e] - (r >= 0 ? want->at[OP_IN + r][e] : 0);
	double z = w.gelu ? want->at[OP_STASH][e] : through / w.scale, off = bias_off(run, want, e, z);
	if (w.unrounded || (w.drops && through == 0 && d->attr.act != CK_ACT_RELU))
		return 0;
	if (w.gelu)
		off = steepest * fmax(off, op_half_spacing(w.t, z));
	if (w.drops && (through != 0 || off > 0))
		off = w.scale * (off + op_half_spacing(w.t, fabs(through) / w.scale + off));
	return off;
}

/* Of an output or a stash. */
static double result_before(const op_run *r, const op_values *want, int slot, int64_t e)
{
	if (!ck_dtype_half(r->desc.in[0].dtype))
		return 0;
	if (slot == OP_OUT && r->desc.kind == CK_LINEAR)
		return linear_output_before(r, want, e);
	if ((slot == OP_OUT && r->desc.kind == CK_CONV2D) || (slot == OP_STASH && r->desc.kind == CK_LINEAR))
		return bias_off(r, want, e, want->at[slot][e]);
	return 0;
}

/* dz of LINEAR: what enters its products is dy itself, or is stored; after dropout, and after GELU's slope again. */
static double linear_dz_off(const linear_way *w, const ck_op_desc *d, double dy)
{
	bool formed = d->attr.act != CK_ACT_NONE || w->drops || w->unrounded;
	double dropped = w->scale * fabs(dy), off = 0;
	if (w->drops && w->gelu)
		off = steepest * op_half_spacing(w->t, dropped);
	return formed ? off + op_half_spacing(w->t, (w->gelu ? steepest : 1) * dropped + off) : 0;
}

/* The products' sums over it: dx (m,k) = sum over n of dz (m,n) w (n,k), dw (n,k) = sum over m of dz x, db (n) = sum over m. */
static void linear_gradients_before(const ck_op_desc *d, const op_values *v, double *before[CK_MAX_IN])
{
	const linear_way w = linear_way_of(d);
	int64_t rows = ck_shape_rows(d->out[0].shape), outs = d->in[1].shape.d[0], ins = d->in[1].shape.d[1];
	for (int64_t m = 0; m < rows; m++)
		for (int64_t n = 0; n < outs; n++) {
			double off = linear_dz_off(&w, d, v->at[OP_DOUT][m * outs + n]);
			for (int64_t k = 0; off != 0 && k < ins; k++) {
				before[0][m * ins + k] += off * fabs(v->at[OP_IN + 1][n * ins + k]);
				before[1][n * ins + k] += off * fabs(v->at[OP_IN][m * ins + k]);
			}
			if (d->attr.bias)
				before[2][n] += off;
		}
}

/* The input whose gradient is formed first, then added to what is there; -1: none. BATCHNORM's, where it is cuDNN's. */
static int formed_aside(const ck_backend *b, const ck_op_desc *d)
{
	const ck_attr *a = &d->attr;
	bool by_cudnn = by_cuda(b) && d->kind == CK_BATCHNORM && a->training && a->act == CK_ACT_NONE && !a->residual &&
			d->in[0].dtype != CK_BF16;
	if (d->kind == CK_CONV2D || d->kind == CK_SCORES || by_cudnn)
		return 0;
	return d->kind == CK_WSUM ? 1 : -1;
}

/* By input and element, on this backend. `added`: gradients are added to what v has there. */
static void gradients_before(const ck_backend *b, const op_run *r, const op_values *v, const op_values *want, bool added,
			     double *before[CK_MAX_IN])
{
	const ck_op_desc *d = &r->desc;
	ck_dtype t = d->in[0].dtype;
	int aside = formed_aside(b, d);
	if (d->kind == CK_LINEAR)
		linear_gradients_before(d, v, before);
	for (int64_t e = 0; aside >= 0 && added && e < v->n[OP_DIN + aside]; e++)
		if (op_touches(r, aside, e))
			before[aside][e] += op_half_spacing(t, want->at[OP_DIN + aside][e] - v->at[OP_DIN + aside][e]);
	for (int64_t e = 0; d->kind == CK_CONV2D && by_cuda(b) && e < v->n[OP_DIN + 1]; e++) /* cuDNN's is stored as x is */
		before[1][e] += op_half_spacing(t, want->at[OP_DIN + 1][e] - (added ? v->at[OP_DIN + 1][e] : 0));
	for (int64_t e = 0; r->twice && e < v->n[OP_DIN]; e++) /* one source's, then the residual's dy on top */
		before[0][e] += op_half_spacing(t, fabs(want->at[OP_DIN][e]) + fabs(v->at[OP_DOUT][e]));
}

/* ---- comparing ----------------------------------------------------------------------------------------------------------- */

/* What slot's element e, stored in t, may be off by, given what the rest of the case says. */
static double allowed(ck_dtype t, double scale, double want, double before)
{
	double arithmetic = t == CK_I32 || t == CK_U8 ? 0 : tolerance * scale * FLT_EPSILON / 2;
	double off = arithmetic + before;
	return off + op_half_spacing(t, fabs(want) + off);
}

/* before: by input, NULL where nothing is stored on the way to a gradient. */
static void compare(worst_seen *seen, const op_run *r, const op_values *want, const op_values *got, unsigned slots,
		    double shift, double *const before[CK_MAX_IN])
{
	for (int slot = 0; slot < OP_SLOTS; slot++) {
		if (!(slots >> slot & 1) || !want->at[slot] || (r->twice && slot == OP_DIN + r->desc.nin - 1))
			continue;
		ck_dtype t = op_slot_desc(&r->desc, slot).dtype;
		double scale = largest_of(want->at[slot], want->n[slot]) * (1 + fabs(shift));
		for (int64_t e = 0; e < want->n[slot]; e++) {
			double w = want->at[slot][e], off = fabs(w - got->at[slot][e]), on_the_way = 0;
			if (slot >= OP_DIN && !op_touches(r, slot - OP_DIN, e))
				continue;
			if (slot >= OP_DIN && before)
				on_the_way = before[slot - OP_DIN][e];
			if (slot == OP_OUT || slot == OP_STASH)
				on_the_way = result_before(r, want, slot, e);
			double most = allowed(t, scale, w, on_the_way);
			cr_assert(off <= most, "%s: %s element %lld is %.9g, not %.9g: off by %.3g, %.2f of what is allowed",
				  r->name, op_slot_name(slot), (long long)e, got->at[slot][e], w, off, off / most);
			if (off > seen->part * most) {
				seen->part = off / most;
				snprintf(seen->where, sizeof seen->where, "%s of %s", op_slot_name(slot), r->name);
			}
		}
	}
}

/* The same case in real storage throughout. A cast is a copy there. */
static ck_op_case in_real(const ck_op_case *c)
{
	ck_op_case real = *c;
	ck_op_desc *d = &real.desc;
	ck_err err = {""};
	for (int i = 0; i < d->nin; i++)
		if (ck_dtype_half(d->in[i].dtype))
			d->in[i].dtype = CK_F64;
	d->attr.to = CK_DTYPE_NONE;
	d->kind = d->kind == CK_CAST ? CK_FLATTEN : d->kind;
	cr_assert(ck_op_infer(d, CK_F64, &err) == CK_OK, "%s: %s", c->line, err.text);
	return real;
}

/* xhat, where the real layer norm stashed the mean. */
static void fill_xhat(const op_run *stored, op_values *want)
{
	if (stored->desc.kind != CK_LAYERNORM || !ck_layernorm_stashes_xhat(&stored->desc))
		return;
	int64_t n = want->n[OP_IN], cols = ck_shape_last(stored->desc.in[0].shape);
	double *xhat = ck_alloc((size_t)n, sizeof *xhat);
	for (int64_t e = 0; e < n; e++)
		xhat[e] = (want->at[OP_IN][e] - want->at[OP_STASH][e / cols]) * want->at[OP_STASH + 1][e / cols];
	free(want->at[OP_STASH]);
	want->at[OP_STASH] = xhat;
	want->n[OP_STASH] = n;
}

/* The reference's results as the case stores them are its float64 ones, rounded. */
static void expect_rounded(const op_run *stored, const op_values *exact, const op_values *got, unsigned slots)
{
	op_values rounded = op_values_copy(exact);
	for (int slot = 0; slot < OP_SLOTS; slot++)
		for (int64_t e = 0; e < rounded.n[slot]; e++) {
			ck_dtype t = op_slot_desc(&stored->desc, slot).dtype;
			double *v = &rounded.at[slot][e];
			if (ck_dtype_half(t)) {
				uint16_t bits;
				ck_element_put(t, &bits, 0, *v);
				*v = ck_element_get(t, &bits, 0);
			}
		}
	const char *difference = op_difference(&rounded, got, slots);
	cr_expect(!difference, "%s: not its float64 result, rounded: %s", stored->name, difference);
	op_values_free(&rounded);
}

/* ---- cases --------------------------------------------------------------------------------------------------------------- */

enum { MOST_THREADS = 3 }; /* 1, 2, 4 */

typedef struct bodies {
	const ck_backend *backend;
	ck_device *device[MOST_THREADS];      /* NULL: none with so many, but on cpu */
	worst_seen seen[3][CK_OP_KIND_COUNT]; /* f32, bf16, f16 */
} bodies;

static worst_seen *seen_by(bodies *b, const ck_op_case *c)
{
	return &b->seen[c->low == CK_BF16 ? 1 : c->low == CK_F16 ? 2 : 0][c->desc.kind];
}

/* All threads' results against `want`, forward, or backward of v with `add`. */
static void compare_others(bodies *b, const ck_op_case *c, const op_values *v, const op_values *want, const op_how *backward,
			   double *const before[CK_MAX_IN])
{
	for (int k = 0; k < MOST_THREADS && b->device[k]; k++) {
		ck_op_case other_case;
		ck_err err = {""};
		op_run other;
		cr_assert(ck_op_case_read(c->line, b->backend->real, &other_case, &err) == CK_OK, "%s: %s", c->line, err.text);
		op_run_open(&other, b->backend, b->device[k], &other_case, c->desc.needs);
		op_values got = backward ? op_backward(&other, v, *backward) : op_forward(&other, v, (op_how){0});
		compare(seen_by(b, c), &other, want, &got, backward ? OP_GRADIENTS : OP_RESULTS | other.contract.state,
			c->shift, before);
		op_values_free(&got);
		op_run_close(&other);
	}
}

/* `exact` computes the gradients of what `saved` says the forward left; `stored` is the same op as the case stores it. */
static void compare_backward(bodies *b, const ck_op_case *c, op_run *exact, op_run *stored, op_values *saved)
{
	bool stashes_more = c->low && c->desc.kind == CK_LAYERNORM; /* then its gradients are real, and it is exact itself */
	for (unsigned add = 0; add <= c->desc.needs; add += c->desc.needs) {
		const op_how how = {.add = add};
		op_values want = op_backward(stashes_more ? stored : exact, saved, how);
		double *before[CK_MAX_IN] = {NULL};
		for (int i = 0; i < CK_MAX_IN; i++)
			before[i] = ck_alloc((size_t)want.n[OP_DIN + i] + 1, sizeof **before);
		if (c->low) {
			op_values got = op_backward(stored, saved, how);
			expect_rounded(stored, &want, &got, OP_GRADIENTS);
			op_values_free(&got);
			gradients_before(b->backend, stored, saved, &want, add != 0, before);
		}
		compare_others(b, c, saved, &want, &how, before);
		for (int i = 0; i < CK_MAX_IN; i++)
			free(before[i]);
		op_values_free(&want);
	}
}

static void compare_case(bodies *b, ck_device *ref_device, const ck_op_case *c)
{
	op_run exact, stored;
	const ck_op_case real = in_real(c);
	op_run_open(&exact, &ck_ref_backend, ref_device, &real, c->desc.needs);
	op_run_open(&stored, &ck_ref_backend, ref_device, c, c->desc.needs);
	op_values v = op_values_draw(c), want = op_forward(&exact, &v, (op_how){0});
	fill_xhat(&stored, &want);
	if (c->low) {
		op_values got = op_forward(&stored, &v, (op_how){0});
		expect_rounded(&stored, &want, &got, OP_RESULTS | stored.contract.state);
		op_values_free(&got);
	}
	compare_others(b, c, &v, &want, NULL, NULL);
	for (int slot = OP_DOUT; slot < OP_SLOTS; slot++) {
		if (v.at[slot])
			memcpy(want.at[slot], v.at[slot], (size_t)v.n[slot] * sizeof(double));
	}
	op_values_round(&want, &c->desc, (1u << OP_SLOTS) - 1);
	compare_backward(b, c, &exact, &stored, &want);
	op_values_free(&v);
	op_values_free(&want);
	op_run_close(&exact);
	op_run_close(&stored);
}

Test(agreement, with_the_reference)
{
	ck_device *ref_device = op_device(&ck_ref_backend, 1);
	for (const ck_backend *const *backend = backends_under_test(); *backend; backend++) {
		bodies b = {.backend = *backend};
		ck_op_case c;
		if (*backend == &ck_ref_backend)
			continue;
		bool threads = strcmp((*backend)->name, "cpu") == 0;
		for (int k = 0; k < (threads ? MOST_THREADS : 1); k++)
			cr_assert(b.device[k] = op_device(*backend, 1 << k));
		for (int i = 0; ck_op_case_next(&i, CK_F64, &c);)
			compare_case(&b, ref_device, &c);
		for (int k = 0; k < 3 * CK_OP_KIND_COUNT && getenv("CK_VERBOSE"); k++) {
			const worst_seen *w = &b.seen[k / CK_OP_KIND_COUNT][k % CK_OP_KIND_COUNT];
			if (w->part > 0)
				fprintf(stderr, "%.2f of what is allowed, in %s\n", w->part, w->where);
		}
		for (int k = 0; k < MOST_THREADS; k++)
			if (b.device[k])
				(*backend)->close(b.device[k]);
	}
	ck_ref_backend.close(ref_device);
}
