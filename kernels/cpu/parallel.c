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

const struct ck_vec *ck__vec(const ck_device *d, ck_dtype t)
{
	return t == CK_BF16 ? d->vec->bf16 : t == CK_F16 ? d->vec->f16 : d->vec->f32;
}

void ck__act_forward(const ck_device *d, ck_dtype t, ck_act act, int64_t n, const ck_stored *x, ck_stored *y)
{
	int team = ck__team(d, n);
	CK_PARTS(team, part)
	{
		ck_span s = ck__span(n, team, part, CK_UNIT);
		ck__vec(d, t)->act->forward[act](s.to - s.from, ck__at(t, x, s.from), ck__at(t, y, s.from));
	}
}

void ck__act_backward(const ck_device *d, ck_dtype t, ck_act act, int64_t n, const ck_stored *dy, const ck_stored *saved,
		      ck_stored *dx, bool acc)
{
	int team = ck__team(d, n);
	CK_PARTS(team, part)
	{
		ck_span s = ck__span(n, team, part, CK_UNIT);
		ck__vec(d, t)->act->backward[act](s.to - s.from, ck__at(t, dy, s.from), ck__at(t, saved, s.from),
						  ck__at(t, dx, s.from), acc);
	}
}

void ck__add(const ck_device *d, int64_t n, ck_dtype t, const ck_stored *a, ck_dtype tb, const ck_stored *b, ck_stored *y)
{
	const ck_vec_act *vec = ck__vec(d, tb)->act;
	int team = ck__team(d, n);
	CK_PARTS(team, part)
	{
		ck_span s = ck__span(n, team, part, CK_UNIT);
		if (t == tb)
			vec->add(s.to - s.from, ck__at(t, a, s.from), ck__at(t, b, s.from), ck__at(t, y, s.from));
		else
			vec->add_wide(s.to - s.from, ck__at(t, a, s.from), ck__at(tb, b, s.from), ck__at(t, y, s.from));
	}
}

/* y = x in another dtype; y += x where y is the 16-bit one. */
static void convert(const ck_device *d, int64_t n, ck_dtype tx, const ck_stored *x, ck_dtype ty, ck_stored *y, bool acc)
{
	int team = ck__team(d, n);
	CK_PARTS(team, part)
	{
		ck_span s = ck__span(n, team, part, CK_UNIT);
		if (tx == CK_F32)
			ck__vec(d, ty)->act->narrow(s.to - s.from, ck__at(tx, x, s.from), ck__at(ty, y, s.from), acc);
		else
			ck__vec(d, tx)->act->widen(s.to - s.from, ck__at(tx, x, s.from), ck__at(ty, y, s.from));
	}
}

void ck__pass(const ck_device *d, int64_t n, ck_dtype tx, const ck_stored *x, ck_dtype ty, ck_stored *y, bool acc)
{
	if (acc && (tx == ty || ty == CK_F32))
		ck__add(d, n, ty, y, tx, x, y);
	else if (tx != ty)
		convert(d, n, tx, x, ty, y, acc);
	else if (x != y)
		ck__act_forward(d, tx, CK_ACT_NONE, n, x, y);
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

void ck__dropout_forward(const ck_device *d, const ck_drop *drop, int64_t n, ck_dtype tx, const ck_stored *x, ck_dtype ty,
			 const ck_stored *r, ck_stored *y)
{
	const ck_vec_drop *vec = ck__vec(d, tx)->drop;
	int team = ck__team(d, n);
	CK_PARTS(team, part)
	{
		ck_span s = ck__span(n, team, part, DROP_UNIT);
		int64_t i = s.from, count = s.to - s.from;
		if (tx == ty)
			vec->forward(drop, i, count, ck__at(tx, x, i), ck__at(ty, r, i), ck__at(ty, y, i));
		else
			vec->forward_wide(drop, i, count, ck__at(tx, x, i), ck__at(ty, r, i), ck__at(ty, y, i));
	}
}

void ck__dropout_backward(const ck_device *d, const ck_drop *drop, int64_t n, ck_dtype ty, const ck_stored *dy, ck_dtype tx,
			  ck_stored *dx, bool acc)
{
	const ck_vec_drop *vec = ck__vec(d, tx)->drop;
	int team = ck__team(d, n);
	CK_PARTS(team, part)
	{
		ck_span s = ck__span(n, team, part, DROP_UNIT);
		int64_t i = s.from, count = s.to - s.from;
		if (tx == ty)
			vec->backward(drop, i, count, ck__at(ty, dy, i), ck__at(tx, dx, i), acc);
		else
			vec->backward_wide(drop, i, count, ck__at(ty, dy, i), ck__at(tx, dx, i), acc);
	}
}

/* ---- with sums down columns ---------------------------------------------------------------------------------------------- */

/* Columns are split over the threads, not rows: then no partial sums need be kept and merged. */
static ck_span columns(int64_t cols, int team, int part)
{
	return ck__span(cols, team, part, cols >= (int64_t)DROP_UNIT * team ? DROP_UNIT : CK_UNIT);
}

void ck__column_sums(const ck_device *d, ck_dtype t, int64_t rows, int64_t cols, const ck_stored *x, float *sum, bool acc)
{
	const ck_epilogue in_place = {.rows = rows, /* nothing is written */
				      .cols = cols,
				      .ty = t,
				      .tz = t,
				      .dy = x,
				      .dz = (ck_stored *)x,
				      .sum = sum,
				      .acc = acc};
	ck__epilogue_backward(d, &in_place);
}

/* dz = act'(saved) dropout'(dy) for n elements from element `first` of the op on. */
static void epilogue(const struct ck_vec *vec, const ck_epilogue *e, int64_t first, int64_t n)
{
	const ck_stored *dy = ck__at(e->ty, e->dy, first), *saved = ck__at(e->tz, e->saved, first);
	ck_stored *dz = ck__at(e->tz, e->dz, first);
	if (e->ty != e->tz) {
		if (e->drop)
			vec->drop->backward_wide(e->drop, first, n, dy, dz, false);
		else
			vec->act->narrow(n, dy, dz, false);
		return;
	}
	if (e->drop && e->act == CK_ACT_RELU) {
		vec->drop->relu_backward(e->drop, n, dy, saved, dz);
		return;
	}
	if (e->drop) {
		vec->drop->backward(e->drop, first, n, dy, dz, false);
		dy = dz;
	}
	vec->act->backward[e->act](n, dy, saved, dz, false);
}

/* Rows that are done and then summed while they are in the first-level cache, the other operands passing through it. */
static int64_t rows_in_cache(int64_t width)
{
	enum { ELEMENTS = 2048, LEAST = 4, MOST = 64 }; /* four at a time are summed fastest */
	int64_t rows = width > 0 ? ELEMENTS / width / LEAST * LEAST : LEAST;
	return rows < LEAST ? LEAST : rows > MOST ? MOST : rows;
}

void ck__epilogue_backward(const ck_device *d, const ck_epilogue *all)
{
	const struct ck_vec *vec = ck__vec(d, all->tz);
	ck_epilogue e = *all;
	if (e.drop && e.act != CK_ACT_RELU && e.cols % 4) { /* a row does not begin at a block of the generator */
		ck__dropout_backward(d, e.drop, e.rows * e.cols, e.ty, e.dy, e.tz, e.dz, false);
		e.dy = e.dz, e.ty = e.tz, e.drop = NULL;
	}
	int team = ck__team(d, e.rows * e.cols);
	CK_PARTS(team, part)
	{
		ck_span s = columns(e.cols, team, part);
		int64_t width = s.to - s.from, step = rows_in_cache(width);
		if (e.sum && !e.acc)
			memset(e.sum + s.from, 0, (size_t)width * sizeof(*e.sum));
		for (int64_t row = 0; row < e.rows && width > 0; row += step) {
			int64_t n = e.rows - row < step ? e.rows - row : step;
			for (int64_t at = row * e.cols + s.from; at < (row + n) * e.cols; at += e.cols)
				epilogue(vec, &e, at, width);
			if (e.sum)
				vec->rows->column_sums(n, width, e.cols, ck__at(e.tz, e.dz, row * e.cols + s.from),
						       e.sum + s.from);
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
	if (desc->real != CK_F32)
		return ck_fail(err, CK_USAGE, "device cpu computes in f32 only, not in %s", ck_dtype_name(desc->real));
	ck_cpu_kernel *k = ck_alloc(1, sizeof(*k));
	k->base.forward = forward;
	k->base.backward = desc->needs ? backward : NULL;
	k->destroy = destroy;
	k->device = device;
	k->desc = *desc;
	*kernel = &k->base;
	return CK_OK;
}
