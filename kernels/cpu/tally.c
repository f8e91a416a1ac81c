/* TALLY: y = x, and a count of which channel was the largest of its row. Rows are split over the threads; counts are whole
 * numbers, so that their sum is the same in whatever order threads add to it. */
#include "kernels/cpu/parallel.h"

enum { X, LOAD, CALLS };

/* The first NaN, or else the first of the largest, of n elements from element `first` on. */
static int64_t largest(ck_dtype t, const ck_stored *x, int64_t first, int64_t n)
{
	int64_t best = 0;
	double most = ck_element_get(t, x, first);
	for (int64_t c = 1; c < n && most == most; c++) {
		double value = ck_element_get(t, x, first + c);
		if (!(value <= most))
			best = c, most = value;
	}
	return best;
}

static void count(const ck_cpu_kernel *k, const ck_stored *x, int32_t *load)
{
	const ck_tensor_desc *d = &k->desc.in[X];
	int64_t rows = ck_shape_rows(d->shape), channels = ck_shape_last(d->shape);
	int team = ck__team(k->device, rows * channels);
	CK_PARTS(team, part)
	{
		ck_span s = ck__span(rows, team, part, 1);
		for (int64_t r = s.from; r < s.to; r++) {
			int32_t *at = &load[largest(d->dtype, x, r * channels, channels)];
#pragma omp atomic
			++*at;
		}
	}
}

static void forward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_cpu_kernel *k = ck__cpu_kernel(kernel);
	if (a->state[LOAD]) {
		count(k, a->in[X], a->state[LOAD]);
		++*(int32_t *)a->state[CALLS];
	}
	ck_dtype t = k->desc.in[X].dtype;
	ck__pass(k->device, ck_shape_count(k->desc.in[X].shape), t, a->in[X], t, a->out[0], false);
}

static void backward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_cpu_kernel *k = ck__cpu_kernel(kernel);
	ck_dtype t = k->desc.in[X].dtype;
	ck__pass(k->device, ck_shape_count(k->desc.in[X].shape), t, a->dout, t, a->din[X], a->acc[X]);
}

ck_status ck__cpu_tally(ck_device *device, const ck_op_desc *desc, ck_kernel **kernel, ck_err *err)
{
	return ck__vec_kernel(device, desc, forward, backward, kernel, err);
}
