/* EMBEDDING: y[b,t] = wte[ids[b,t]] + wpe[t].
 *
 * In the backward the same row of dwte may be hit many times: columns, not tokens, are split over the threads, so that each
 * element's sum runs over the tokens in order, whatever the number of threads. */
#include <string.h>

#include "kernels/cpu/parallel.h"

enum { IDS, WTE, WPE };

static void forward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_cpu_kernel *k = ck__cpu_kernel(kernel);
	const ck_vec_act *vec = k->device->vec->f32->act;
	int64_t tokens = ck_shape_count(k->desc.in[IDS].shape), length = ck_shape_last(k->desc.in[IDS].shape);
	int64_t cols = ck_shape_last(k->desc.in[WTE].shape);
	const int32_t *ids = a->in[IDS];                                             /* (B, T) */
	const float *wte = a->in[WTE], *wpe = k->desc.attr.bias ? a->in[WPE] : NULL; /* (V, C), (S, C) */
	float *y = a->out[0];                                                        /* (B, T, C) */
	int team = ck__team(k->device, tokens * cols);
#pragma omp parallel for num_threads(team) schedule(static) if (team > 1)
	for (int64_t token = 0; token < tokens; token++) {
		const float *row = wte + ids[token] * cols;
		if (wpe)
			vec->add(cols, row, wpe + token % length * cols, y + token * cols);
		else
			memcpy(y + token * cols, row, (size_t)cols * sizeof(*y));
	}
}

static void clear(const ck_device *d, int64_t n, float *x)
{
	int team = ck__team(d, n);
	CK_PARTS(team, part)
	{
		ck_span s = ck__span(n, team, part, CK_UNIT);
		memset(x + s.from, 0, (size_t)(s.to - s.from) * sizeof(*x));
	}
}

/* sum[row(token)] += dy[token] over all tokens in order; ids NULL: row is the position. */
static void scatter(const ck_cpu_kernel *k, const int32_t *ids, const float *dy, float *sum)
{
	int64_t tokens = ck_shape_count(k->desc.in[IDS].shape), length = ck_shape_last(k->desc.in[IDS].shape);
	int64_t cols = ck_shape_last(k->desc.in[WTE].shape);
	int team = ck__team(k->device, tokens * cols);
	CK_PARTS(team, part)
	{
		ck_span s = ck__span(cols, team, part, CK_UNIT);
		for (int64_t token = 0; token < tokens && s.from < s.to; token++) {
			float *row = sum + (ids ? ids[token] : token % length) * cols + s.from;
			k->device->vec->f32->act->add(s.to - s.from, row, dy + token * cols + s.from, row);
		}
	}
}

static void backward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_cpu_kernel *k = ck__cpu_kernel(kernel);
	for (int i = WTE; i < k->desc.nin; i++) {
		if (!a->din[i])
			continue;
		if (!a->acc[i])
			clear(k->device, ck_shape_count(k->desc.in[i].shape), a->din[i]);
		scatter(k, i == WTE ? a->in[IDS] : NULL, a->dout, a->din[i]);
	}
}

ck_status ck__cpu_embedding(ck_device *device, const ck_op_desc *desc, ck_kernel **kernel, ck_err *err)
{
	return ck__vec_kernel(device, desc, forward, backward, kernel, err);
}
