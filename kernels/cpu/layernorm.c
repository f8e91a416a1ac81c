/* LAYERNORM: y = gamma (x - mean) rstd + beta, mean and rstd of each row.
 *
 * Bound by memory; a row stays in the first-level cache between its passes. The parameters' gradients are sums over rows: each
 * thread has its own, added up in thread order. */
#include <string.h>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/vec_norm.h"

enum { X, GAMMA, BETA };

static void forward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_cpu_kernel *k = ck__cpu_kernel(kernel);
	ck_dtype t = k->desc.out[0].dtype;
	int64_t rows = ck_shape_rows(k->desc.in[X].shape), cols = ck_shape_last(k->desc.in[X].shape);
	const float *x = a->in[X]; /* (rows, cols) */
	bool stashes = ck_layernorm_stashes_xhat(&k->desc);
	ck_stored *xhat = stashes ? a->stash[0] : NULL;                  /* (rows, cols) */
	float *mean = stashes ? NULL : a->stash[0], *rstd = a->stash[1]; /* (rows) */
	int team = ck__team(k->device, rows * cols);
	CK_PARTS(team, part)
	{
		ck_span s = ck__span(rows, team, part, CK_UNIT);
		int64_t at = s.from * cols;
		ck__vec(k->device, t)
		    ->norm->layer(s.to - s.from, cols, (float)k->desc.attr.eps, x + at, a->in[GAMMA], a->in[BETA],
				  ck__at(t, a->out[0], at), ck__at(t, xhat, at), mean ? mean + s.from : NULL, rstd + s.from);
	}
}

/* What is saved of the rows from `row` on. */
static ck_ln_saved saved_at(const ck_cpu_kernel *k, const ck_args *a, int64_t row)
{
	int64_t at = row * ck_shape_last(k->desc.in[X].shape);
	const float *x = a->in[X], *rstd = a->stash[1];
	ck_ln_saved s = {.rstd = rstd ? rstd + row : NULL};
	if (ck_layernorm_stashes_xhat(&k->desc))
		s.xhat = ck__at(k->desc.out[0].dtype, a->stash[0], at);
	else if (x)
		s.x = x + at, s.mean = (const float *)a->stash[0] + row;
	return s;
}

/* One thread's rows: sums into dgamma and dbeta (may be NULL), and dx. */
static void backward_rows(const ck_cpu_kernel *k, const ck_args *a, ck_span s, float *dgamma, float *dbeta)
{
	enum { ROWS = 8 }; /* for which both are done, while they are in the first-level cache */
	ck_dtype t = k->desc.out[0].dtype;
	const struct ck_vec_norm *vec = ck__vec(k->device, t)->norm;
	int64_t cols = ck_shape_last(k->desc.in[X].shape);
	float *dx = a->din[X]; /* (rows, cols) */
	for (int64_t row = s.from; row < s.to; row += ROWS) {
		int64_t n = s.to - row < ROWS ? s.to - row : ROWS, at = row * cols;
		const ck_stored *dy = ck__at(t, a->dout, at);
		const ck_ln_saved saved = saved_at(k, a, row);
		if (dgamma)
			vec->layer_sums(n, cols, dy, &saved, dgamma, dbeta);
		if (dx)
			vec->layer_gradient(n, cols, dy, &saved, a->in[GAMMA], dx + at, a->acc[X]);
	}
}

/* to (+)= the sum over threads of part[thread * stride + c] */
static void store_sums(int64_t cols, int team, int64_t stride, const float *part, float *to, bool acc)
{
	for (int64_t c = 0; to && c < cols; c++) {
		float sum = part[c];
		for (int t = 1; t < team; t++)
			sum += part[t * stride + c];
		to[c] = acc ? to[c] + sum : sum;
	}
}

static void backward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_cpu_kernel *k = ck__cpu_kernel(kernel);
	int64_t rows = ck_shape_rows(k->desc.in[X].shape), cols = ck_shape_last(k->desc.in[X].shape);
	int64_t padded = ck__padded(cols);
	int team = ck__team(k->device, rows * cols);
	bool sums = a->din[GAMMA] || a->din[BETA];
	float *work = a->workspace; /* (team, 2, padded): dgamma, dbeta */
	CK_PARTS(team, part)
	{
		float *dgamma = work + 2 * part * padded;
		memset(dgamma, 0, 2 * (size_t)padded * sizeof(*work));
		backward_rows(k, a, ck__span(rows, team, part, CK_UNIT), sums ? dgamma : NULL, dgamma + padded);
	}
	store_sums(cols, team, 2 * padded, work, a->din[GAMMA], a->acc[GAMMA]);
	store_sums(cols, team, 2 * padded, work + padded, a->din[BETA], a->acc[BETA]);
}

ck_status ck__cpu_layernorm(ck_device *device, const ck_op_desc *desc, ck_kernel **kernel, ck_err *err)
{
	if (ck__vec_kernel(device, desc, forward, backward, kernel, err) != CK_OK)
		return CK_USAGE;
	int team = ck__team(device, ck_shape_count(desc->in[X].shape));
	size_t vector = (size_t)ck__padded(ck_shape_last(desc->in[X].shape)) * sizeof(float);
	(*kernel)->workspace_backward = 2 * vector * (size_t)team;
	return CK_OK;
}
