#include "kernels/cpu/parallel.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/alloc.h"
#include "kernels/philox.h"

/* Elements below which one thread is faster: a pass over them takes about as long as waking the others, some microseconds. */
enum { LEAST_SHARED = 16384 };

int ck__team(const ck_device *d, int64_t elements)
{
	return elements < LEAST_SHARED ? 1 : d->threads;
}

ck_span ck__span(int64_t n, int parts, int part, int64_t unit)
{
	int64_t units = (n + unit - 1) / unit;
	int64_t from = units * part / parts * unit, to = units * (part + 1) / parts * unit;
	return (ck_span){from, to < n ? to : n};
}

int64_t ck__padded(int64_t n)
{
	return (n + CK_UNIT - 1) / CK_UNIT * CK_UNIT;
}

/* ---- elementwise --------------------------------------------------------------------------------------------------------- */

void ck__act_forward(const ck_device *d, ck_act act, int64_t n, const ck_stored *x, ck_stored *y)
{
	int team = ck__team(d, n);
	CK_PARTS(team, part)
	{
		ck_span s = ck__span(n, team, part, CK_UNIT);
		d->vec->act->forward[act](s.to - s.from, x + s.from, y + s.from);
	}
}

void ck__act_backward(const ck_device *d, ck_act act, int64_t n, const ck_stored *dy, const ck_stored *saved, ck_stored *dx,
		      bool acc)
{
	int team = ck__team(d, n);
	CK_PARTS(team, part)
	{
		ck_span s = ck__span(n, team, part, CK_UNIT);
		d->vec->act->backward[act](s.to - s.from, dy + s.from, saved ? saved + s.from : NULL, dx + s.from, acc);
	}
}

void ck__add(const ck_device *d, int64_t n, const ck_stored *a, const ck_stored *b, ck_stored *y)
{
	int team = ck__team(d, n);
	CK_PARTS(team, part)
	{
		ck_span s = ck__span(n, team, part, CK_UNIT);
		d->vec->act->add(s.to - s.from, a + s.from, b + s.from, y + s.from);
	}
}

void ck__copy(const ck_device *d, int64_t n, const ck_stored *x, ck_stored *y)
{
	if (x != y)
		ck__act_forward(d, CK_ACT_NONE, n, x, y);
}

void ck__pass(const ck_device *d, int64_t n, const ck_stored *dy, ck_stored *dx, bool acc)
{
	if (acc)
		ck__add(d, n, dx, dy, dx);
	else
		ck__copy(d, n, dy, dx);
}

/* ---- dropout ------------------------------------------------------------------------------------------------------------- */

enum { DROP_UNIT = 64 }; /* elements that the generator serves at a time */

ck_drop ck__drop(double p, const ck_args *a)
{
	return (ck_drop){.seed = a->seed,
			 .step = a->step,
			 .op = a->op,
			 .block = a->block,
			 .threshold = a->mask ? 1 : ck_drop_threshold(p), /* a mask's bytes stand in for the words */
			 .mask = a->mask,
			 .scale = (float)(1.0 / (1.0 - p))};
}

void ck__dropout_forward(const ck_device *d, const ck_drop *drop, int64_t n, const ck_stored *x, const ck_stored *r,
			 ck_stored *y)
{
	int team = ck__team(d, n);
	CK_PARTS(team, part)
	{
		ck_span s = ck__span(n, team, part, DROP_UNIT);
		d->vec->drop->forward(drop, s.from, s.to - s.from, x + s.from, r ? r + s.from : NULL, y + s.from);
	}
}

void ck__dropout_backward(const ck_device *d, const ck_drop *drop, int64_t n, const ck_stored *dy, ck_stored *dx, bool acc)
{
	int team = ck__team(d, n);
	CK_PARTS(team, part)
	{
		ck_span s = ck__span(n, team, part, DROP_UNIT);
		d->vec->drop->backward(drop, s.from, s.to - s.from, dy + s.from, dx + s.from, acc);
	}
}

/* ---- with sums down columns ---------------------------------------------------------------------------------------------- */

/* Columns are split over the threads, not rows: then no partial sums need be kept and merged. */
static ck_span columns(int64_t cols, int team, int part)
{
	return ck__span(cols, team, part, cols >= (int64_t)DROP_UNIT * team ? DROP_UNIT : CK_UNIT);
}

void ck__column_sums(const ck_device *d, int64_t rows, int64_t cols, const ck_stored *x, float *sum, bool acc)
{
	ck__epilogue_backward(d, CK_ACT_NONE, NULL, rows, cols, x, NULL, (ck_stored *)x, sum, acc); /* in place: not written */
}

/* dz = act'(saved) dropout'(dy) for n elements from element `first` of the op on. */
static void epilogue(const struct ck_vec *vec, ck_act act, const ck_drop *drop, int64_t first, int64_t n, const ck_stored *dy,
		     const ck_stored *saved, ck_stored *dz)
{
	if (drop && act == CK_ACT_RELU) {
		vec->drop->relu_backward(drop, n, dy, saved, dz);
		return;
	}
	if (drop) {
		vec->drop->backward(drop, first, n, dy, dz, false);
		dy = dz;
	}
	vec->act->backward[act](n, dy, saved, dz, false);
}

/* Rows that are done and then summed while they are in the first-level cache, the other operands passing through it. */
static int64_t rows_in_cache(int64_t width)
{
	enum { ELEMENTS = 2048, LEAST = 4, MOST = 64 }; /* four at a time are summed fastest */
	int64_t rows = width > 0 ? ELEMENTS / width / LEAST * LEAST : LEAST;
	return rows < LEAST ? LEAST : rows > MOST ? MOST : rows;
}

void ck__epilogue_backward(const ck_device *d, ck_act act, const ck_drop *drop, int64_t rows, int64_t cols, const ck_stored *dy,
			   const ck_stored *saved, ck_stored *dz, float *sum, bool acc)
{
	enum { ROWS = 8 };                            /* done, then summed while they are in the first-level cache */
	if (drop && act != CK_ACT_RELU && cols % 4) { /* a row does not begin at a block of the generator */
		ck__dropout_backward(d, drop, rows * cols, dy, dz, false);
		dy = dz, drop = NULL;
	}
	int team = ck__team(d, rows * cols);
	CK_PARTS(team, part)
	{
		ck_span s = columns(cols, team, part);
		int64_t width = s.to - s.from, step = rows_in_cache(width);
		if (sum && !acc)
			memset(sum + s.from, 0, (size_t)width * sizeof(*sum));
		for (int64_t row = 0; row < rows && width > 0; row += step) {
			int64_t n = rows - row < step ? rows - row : step;
			for (int64_t at = row * cols + s.from; at < (row + n) * cols; at += cols)
				epilogue(d->vec, act, drop, at, width, dy + at, saved ? saved + at : NULL, dz + at);
			if (sum)
				d->vec->rows->column_sums(n, width, cols, dz + row * cols + s.from, sum + s.from);
		}
	}
}

/* ---- kernels ------------------------------------------------------------------------------------------------------------- */

static void destroy(ck_cpu_kernel *k)
{
	free(k);
}

ck_status ck__vec_kernel(ck_device *device, const ck_op_desc *desc, ck_kernel_run *forward, ck_kernel_run *backward,
			 ck_kernel **kernel, ck_err *err)
{
	for (int i = 0; i < desc->nin; i++)
		if (desc->in[i].dtype != CK_F32 && desc->in[i].dtype != CK_I32)
			return ck_fail(err, CK_USAGE, "device cpu has no %s over %s, only over f32",
				       ck_op_kind_name(desc->kind), ck_dtype_name(desc->in[i].dtype));
	ck_cpu_kernel *k = ck_alloc(1, sizeof(*k));
	k->base.forward = forward;
	k->base.backward = desc->needs ? backward : NULL;
	k->destroy = destroy;
	k->device = device;
	k->desc = *desc;
	*kernel = &k->base;
	return CK_OK;
}
