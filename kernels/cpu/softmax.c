/* SOFTMAX over the last extent. Causal: row i of each (T,T) matrix has its first i + 1 elements; the others are never read, and
 * are 0 in p and in ds. */
#include <string.h>

#include "kernels/cpu/parallel.h"

/* Rows are dealt out in small groups, since causal ones grow longer down the matrix. Each row is a sum of its own, so the
 * division has no part in the result. */
enum { GROUP = 16 };

static int64_t length(const ck_op_desc *d, int64_t row)
{
	int64_t cols = ck_shape_last(d->in[0].shape);
	return d->attr.causal ? row % cols + 1 : cols;
}

static void clear(ck_dtype t, ck_stored *row, int64_t from, int64_t to)
{
	memset(ck__at(t, row, from), 0, (size_t)(to - from) * ck_dtype_size(t));
}

static void forward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_cpu_kernel *k = ck__cpu_kernel(kernel);
	ck_dtype t = k->desc.in[0].dtype;
	const ck_vec_rows *vec = ck__vec(k->device, t)->rows;
	int64_t rows = ck_shape_rows(k->desc.in[0].shape), cols = ck_shape_last(k->desc.in[0].shape);
	int team = ck__team(k->device, rows * cols);
#pragma omp parallel for num_threads(team) schedule(static, GROUP) if (team > 1)
	for (int64_t row = 0; row < rows; row++) {
		int64_t n = length(&k->desc, row);
		ck_stored *p = ck__at(t, a->out[0], row * cols); /* (cols) */
		vec->softmax(n, ck__at(t, a->in[0], row * cols), p);
		clear(t, p, n, cols);
	}
}

static void backward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_cpu_kernel *k = ck__cpu_kernel(kernel);
	ck_dtype t = k->desc.in[0].dtype;
	const ck_vec_rows *vec = ck__vec(k->device, t)->rows;
	int64_t rows = ck_shape_rows(k->desc.in[0].shape), cols = ck_shape_last(k->desc.in[0].shape);
	bool acc = a->acc[0];
	int team = ck__team(k->device, rows * cols);
#pragma omp parallel for num_threads(team) schedule(static, GROUP) if (team > 1)
	for (int64_t row = 0; row < rows; row++) {
		int64_t at = row * cols, n = length(&k->desc, row);
		ck_stored *ds = ck__at(t, a->din[0], at); /* (cols) */
		vec->softmax_backward(n, ck__at(t, a->out[0], at), ck__at(t, a->dout, at), ds, acc);
		if (!acc)
			clear(t, ds, n, cols);
	}
}

ck_status ck__cpu_softmax(ck_device *device, const ck_op_desc *desc, ck_kernel **kernel, ck_err *err)
{
	return ck__vec_kernel(device, desc, forward, backward, kernel, err);
}
