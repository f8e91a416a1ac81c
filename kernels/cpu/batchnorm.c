/* BATCHNORM, with ReLU and a residual in the same pass: y = act(gamma (x - mean) rstd + beta + r).
 *
 * Bound by memory. Forward: one reading for the moments, one reading and writing to normalise. Backward: one reading of dy, y
 * and x for the two sums, one more to write dx (and dr, the masked dy). The second pass walks backwards, so that what the
 * first left in cache is met first. Rows are split over threads; per-thread results are merged in thread order. */
#include <math.h>
#include <string.h>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/vec_norm.h"

enum { X, GAMMA, BETA, RMEAN, RVAR, COUNT, RESIDUAL };
enum {
	VECTORS = 4,
	SHARED = 4,
	BLOCK_BYTES = 1 << 17
}; /* workspace vectors of C, per thread and in all; a block of the second pass */

typedef struct bn_call {
	const ck_device *device;
	const struct ck_vec_norm *vec;
	ck_dtype t; /* of x, y, r and their gradients */
	int64_t rows, cols, padded;
	int team;
	float *shared, *own; /* workspace: SHARED vectors, then VECTORS for each thread; each of `padded` floats */
} bn_call;

static bn_call prepare_call(const ck_cpu_kernel *k, const ck_args *a)
{
	ck_shape x = k->desc.in[X].shape;
	bn_call b = {.device = k->device,
		     .vec = ck__vec(k->device, k->desc.in[X].dtype)->norm,
		     .t = k->desc.in[X].dtype,
		     .rows = ck_shape_rows(x),
		     .cols = ck_shape_last(x),
		     .padded = ck__padded(ck_shape_last(x)),
		     .team = ck__team(k->device, ck_shape_count(x))};
	b.shared = a->workspace;
	b.own = b.shared + SHARED * b.padded;
	return b;
}

static float *shared(const bn_call *b, int i)
{
	return b->shared + i * b->padded;
}

static float *own(const bn_call *b, int part, int i)
{
	return b->own + (part * VECTORS + i) * b->padded;
}

/* The block of rows of a span that ends at `to`; empty at the span's beginning. */
static ck_span block_before(const bn_call *b, ck_span span, int64_t to)
{
	int64_t rows = BLOCK_BYTES / (b->cols * (int64_t)ck_dtype_size(b->t));
	int64_t from = to - (rows < 1 ? 1 : rows);
	return (ck_span){from > span.from ? from : span.from, to};
}

/* ---- forward ------------------------------------------------------------------------------------------------------------- */

/* mean and rstd of all rows, into mean and rstd; the unbiased variance into `unbiased`. */
static void batch_statistics(const bn_call *b, double eps, const ck_stored *x, float *mean, float *rstd, float *unbiased)
{
	CK_PARTS(b->team, part)
	{
		ck_span s = ck__span(b->rows, b->team, part, 1);
		b->vec->moments(s.to - s.from, b->cols, ck__at(b->t, x, s.from * b->cols), own(b, part, 0), own(b, part, 1),
				own(b, part, 2));
	}
	float *all_mean = own(b, 0, 0), *m2 = own(b, 0, 1);
	for (int part = 1; part < b->team; part++) {
		ck_span s = ck__span(b->rows, b->team, part, 1);
		b->vec->merge(b->cols, s.from, all_mean, m2, s.to - s.from, own(b, part, 0), own(b, part, 1));
	}
	for (int64_t c = 0; c < b->cols; c++) {
		mean[c] = all_mean[c];
		rstd[c] = (float)(1.0 / sqrt((double)m2[c] / (double)b->rows + eps));
		unbiased[c] = (float)((double)m2[c] / (double)(b->rows - 1));
	}
}

/* On a first forward only: as torch.nn.BatchNorm2d. */
static void update_running(const bn_call *b, const ck_args *a, double momentum, const float *mean, const float *unbiased)
{
	if (!a->state[RMEAN])
		return;
	float *running_mean = a->state[RMEAN], *running_var = a->state[RVAR], m = (float)momentum;
	for (int64_t c = 0; c < b->cols; c++) {
		running_mean[c] += m * (mean[c] - running_mean[c]);
		running_var[c] += m * (unbiased[c] - running_var[c]);
	}
	*(int32_t *)a->state[COUNT] += 1;
}

static void running_rstd(const bn_call *b, double eps, const float *running_var, float *rstd)
{
	for (int64_t c = 0; c < b->cols; c++)
		rstd[c] = (float)(1.0 / sqrt((double)running_var[c] + eps));
}

static void forward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_cpu_kernel *k = ck__cpu_kernel(kernel);
	const ck_attr *attr = &k->desc.attr;
	bn_call b = prepare_call(k, a);
	const ck_stored *x = a->in[X], *r = attr->residual ? a->in[RESIDUAL] : NULL;
	const float *gamma = a->in[GAMMA], *mean = a->in[RMEAN];
	float *scale = shared(&b, 0), *rstd = shared(&b, 1);
	if (attr->training) {
		mean = a->stash[0], rstd = a->stash[1];
		batch_statistics(&b, attr->eps, x, a->stash[0], rstd, shared(&b, 2));
		update_running(&b, a, attr->momentum, mean, shared(&b, 2));
	} else {
		running_rstd(&b, attr->eps, a->in[RVAR], rstd);
	}
	for (int64_t c = 0; c < b.cols; c++)
		scale[c] = gamma[c] * rstd[c];
	CK_PARTS(b.team, part)
	{
		ck_span s = ck__span(b.rows, b.team, part, 1);
		for (ck_span at = block_before(&b, s, s.to); at.from < at.to; at = block_before(&b, s, at.from)) {
			int64_t i = at.from * b.cols;
			b.vec->apply(at.to - at.from, b.cols, ck__at(b.t, x, i), mean, scale, a->in[BETA], ck__at(b.t, r, i),
				     attr->act == CK_ACT_RELU, ck__at(b.t, a->out[0], i));
		}
	}
}

/* ---- backward ------------------------------------------------------------------------------------------------------------ */

/* Sums over rows of dz and of dz (x - mean), into own(0, 0) and own(0, 1). x NULL: of dz alone, the other is 0. */
static void gradient_sums(const bn_call *b, const ck_stored *dy, const ck_stored *y, const ck_stored *x, const float *mean)
{
	CK_PARTS(b->team, part)
	{
		ck_span s = ck__span(b->rows, b->team, part, 1);
		int64_t i = s.from * b->cols;
		b->vec->gradient_sums(s.to - s.from, b->cols, ck__at(b->t, dy, i), ck__at(b->t, y, i), ck__at(b->t, x, i), mean,
				      own(b, part, 0), own(b, part, 1), own(b, part, 2));
	}
	for (int part = 1; part < b->team; part++)
		for (int i = 0; i < 2; i++)
			for (int64_t c = 0; c < b->cols; c++)
				own(b, 0, i)[c] += own(b, part, i)[c];
}

static void store_sum(int64_t n, const float *sum, const float *factor, float *to, bool acc)
{
	for (int64_t c = 0; to && c < n; c++)
		to[c] = (acc ? to[c] : 0.0f) + sum[c] * (factor ? factor[c] : 1.0f);
}

static void input_gradients(const bn_call *b, const ck_bn_gradient *all)
{
	CK_PARTS(b->team, part)
	{
		ck_span s = ck__span(b->rows, b->team, part, 1);
		for (ck_span at = block_before(b, s, s.to); at.from < at.to; at = block_before(b, s, at.from)) {
			int64_t i = at.from * b->cols;
			ck_bn_gradient g = *all;
			g.dy = ck__at(b->t, g.dy, i), g.x = ck__at(b->t, g.x, i), g.y = ck__at(b->t, g.y, i);
			g.dx = ck__at(b->t, g.dx, i), g.dr = ck__at(b->t, g.dr, i);
			b->vec->gradient(at.to - at.from, b->cols, &g);
		}
	}
}

/* What dx is made of, from the sums. In evaluation the statistics are constants, so nothing is subtracted: x, which is then not
 * there, is multiplied by 0, for which dy does as well. */
static void input_terms(const bn_call *b, bool training, const float *gamma, const float *rstd, ck_bn_gradient *g)
{
	float *scale = shared(b, 0), *offset = shared(b, 2), *slope = shared(b, 3), m = (float)b->rows;
	const float *sum = own(b, 0, 0), *sum_x = own(b, 0, 1);
	for (int64_t c = 0; c < b->cols; c++) {
		scale[c] = gamma[c] * rstd[c];
		offset[c] = training ? sum[c] / m : 0.0f;
		slope[c] = training ? sum_x[c] / m * rstd[c] * rstd[c] : 0.0f;
	}
	g->scale = scale, g->offset = offset, g->slope = slope;
	if (!training)
		g->x = g->dy, g->mean = offset;
}

static void residual_gradient(const bn_call *b, const ck_stored *dy, const ck_stored *y, ck_stored *dr, bool acc)
{
	ck__act_backward(b->device, b->t, y ? CK_ACT_RELU : CK_ACT_NONE, b->rows * b->cols, dy, y, dr, acc);
}

static void backward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_cpu_kernel *k = ck__cpu_kernel(kernel);
	const ck_attr *attr = &k->desc.attr;
	bn_call b = prepare_call(k, a);
	const ck_stored *y = attr->act == CK_ACT_RELU ? a->out[0] : NULL;
	const float *mean = attr->training ? a->stash[0] : a->in[RMEAN], *rstd = attr->training ? a->stash[1] : NULL;
	if (!attr->training && a->in[RVAR]) {
		running_rstd(&b, attr->eps, a->in[RVAR], shared(&b, 1));
		rstd = shared(&b, 1);
	}
	bool want_x = a->din[X];
	if (a->din[GAMMA] || a->din[BETA] || (want_x && attr->training)) {
		gradient_sums(&b, a->dout, y, a->din[GAMMA] || want_x ? a->in[X] : NULL, mean);
		store_sum(b.cols, own(&b, 0, 1), rstd, a->din[GAMMA], a->acc[GAMMA]);
		store_sum(b.cols, own(&b, 0, 0), NULL, a->din[BETA], a->acc[BETA]);
	}
	if (want_x) {
		ck_bn_gradient g = {.dy = a->dout,
				    .y = y,
				    .x = a->in[X],
				    .mean = mean,
				    .dx = a->din[X],
				    .dr = a->din[RESIDUAL],
				    .acc_x = a->acc[X],
				    .acc_r = a->acc[RESIDUAL]};
		input_terms(&b, attr->training, a->in[GAMMA], rstd, &g);
		input_gradients(&b, &g);
	} else if (a->din[RESIDUAL]) {
		residual_gradient(&b, a->dout, y, a->din[RESIDUAL], a->acc[RESIDUAL]);
	}
}

ck_status ck__cpu_batchnorm(ck_device *device, const ck_op_desc *desc, ck_kernel **kernel, ck_err *err)
{
	if (ck__vec_kernel(device, desc, forward, backward, kernel, err) != CK_OK)
		return CK_USAGE;
	int team = ck__team(device, ck_shape_count(desc->in[X].shape));
	size_t vector = (size_t)ck__padded(ck_shape_last(desc->in[X].shape)) * sizeof(float);
	(*kernel)->workspace_forward = (*kernel)->workspace_backward = vector * (size_t)(SHARED + VECTORS * team);
	return CK_OK;
}
