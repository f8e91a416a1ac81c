/* EMBEDDING: y[b, t] = wte[ids[b, t]] + wpe[t]. */
#include "kernels/ref/ref.h"

void ck__ref_embedding_forward(const ck_op_desc *d, const ck_args *a)
{
	int64_t tokens = ck_shape_count(d->in[0].shape), length = ck_shape_last(d->in[0].shape);
	int64_t width = ck_shape_last(d->out[0].shape);
	const int32_t *ids = a->in[0];                      // (B, T)
	const double *wte = a->in[1];                       // (V, C)
	const double *wpe = d->attr.bias ? a->in[2] : NULL; // (S, C)
	double *y = a->out[0];                              // (B, T, C)
	for (int64_t t = 0; t < tokens; t++)
		for (int64_t c = 0; c < width; c++)
			y[t * width + c] = wte[ids[t] * width + c] + (wpe ? wpe[t % length * width + c] : 0);
}

static void add_row(double *to, const double *row, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		to[i] += row[i];
}

static void put_row(double *to, double *row, int64_t n, bool acc)
{
	for (int64_t i = 0; i < n; i++) {
		ck__ref_put(&to[i], row[i], acc);
		row[i] = 0;
	}
}

void ck__ref_embedding_backward(const ck_op_desc *d, const ck_args *a)
{
	int64_t tokens = ck_shape_count(d->in[0].shape), length = ck_shape_last(d->in[0].shape);
	int64_t width = ck_shape_last(d->out[0].shape);
	const int32_t *ids = a->in[0];
	const double *dout = a->dout;
	double *dwte = a->din[1], *dwpe = d->attr.bias ? a->din[2] : NULL;
	double *row = a->workspace; // (C)
	for (int64_t c = 0; c < width; c++)
		row[c] = 0;
	for (int64_t v = 0; dwte && v < d->in[1].shape.d[0]; v++) {
		for (int64_t t = 0; t < tokens; t++)
			if (ids[t] == v)
				add_row(row, dout + t * width, width);
		put_row(dwte + v * width, row, width, a->acc[1]);
	}
	for (int64_t s = 0; dwpe && s < d->in[2].shape.d[0]; s++) {
		for (int64_t t = s; s < length && t < tokens; t += length)
			add_row(row, dout + t * width, width);
		put_row(dwpe + s * width, row, width, a->acc[2]);
	}
}
