/* CONV2D: oneDNN's convolution over plain NHWC activations. The weights are copied into the layout that its kernel asks for (a
 * few per cent of the time; over plain ones oneDNN has reference code only), and the weight gradient is copied or added back.
 * A data gradient that is to be added is formed aside first. */
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/product.h"
#include "kernels/cpu/unfold.h"

enum { X, W, B, DX = 0, DW = 1 };

static void forward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_product_kernel *k = (const ck_product_kernel *)kernel;
	ck__prim_run(k->forward,
		     (const void *[CK_PLACES]){a->in[X], a->in[W], a->out[0], k->base.desc.attr.bias ? a->in[B] : NULL},
		     a->workspace);
}

/* Whether the weight gradient is one matrix product over unfolded windows: over few places oneDNN's convolution is slow (at 7x7, half of a
 * product's rate), and so few cost little to unfold. */
static bool unfolds(const ck_op_desc *d)
{
	const int64_t *y = d->out[0].shape.d;
	return d->attr.groups == 1 && d->attr.kh * d->attr.kw > 1 && y[1] * y[2] <= 64;
}

static void backward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_product_kernel *k = (const ck_product_kernel *)kernel;
	ck_shape y = k->base.desc.out[0].shape;
	ck_dtype t = k->base.desc.in[X].dtype;
	if (a->din[X]) {
		void *dx = a->acc[X] ? a->workspace : a->din[X];
		ck__product_gradient(k, DX, false, (const void *[CK_PLACES]){dx, a->in[W], a->dout}, a->workspace);
		if (a->acc[X])
			ck__add(k->base.device, ck_shape_count(k->base.desc.in[X].shape), t, a->din[X], t, dx, a->din[X]);
	}
	if (a->din[W] && unfolds(&k->base.desc)) {
		ck__unfold(k->base.device, &k->base.desc, a->in[X], a->workspace);
		ck__product_gradient(k, DW, a->acc[W], (const void *[CK_PLACES]){a->dout, a->workspace, a->din[W]},
				     a->workspace);
	} else if (a->din[W]) {
		ck__product_gradient(k, DW, a->acc[W], (const void *[CK_PLACES]){a->in[X], a->din[W], a->dout}, a->workspace);
	}
	if (a->din[B])
		ck__column_sums(k->base.device, t, ck_shape_rows(y), ck_shape_last(y), a->dout, a->din[B], a->acc[B]);
}

/* (N,H,W,C) in memory as oneDNN's logical (N,C,H,W). */
static ck_view image(const ck_tensor_desc *t)
{
	const int64_t *d = t->shape.d;
	return (ck_view){
	    .dtype = t->dtype, .nd = 4, .d = {d[0], d[3], d[1], d[2]}, .stride = {d[1] * d[2] * d[3], 1, d[2] * d[3], d[3]}};
}

/* (O,kh,kw,C/g) in memory as logical (O,C,kh,kw), or (g,O/g,C/g,kh,kw). */
static ck_view filter(const ck_tensor_desc *t, int64_t groups)
{
	const int64_t *d = t->shape.d, each = d[1] * d[2] * d[3], per = d[0] / groups;
	if (groups == 1)
		return (ck_view){.dtype = t->dtype,
				 .nd = 4,
				 .d = {d[0], d[3], d[1], d[2]},
				 .stride = {each, 1, d[2] * d[3], d[3]},
				 .pack = true};
	return (ck_view){.dtype = t->dtype,
			 .nd = 5,
			 .d = {groups, per, d[3], d[1], d[2]},
			 .stride = {per * each, each, 1, d[2] * d[3], d[3]},
			 .pack = true};
}

/* Whether the weight gradient is faster (by up to a third) over blocked copies of x and dy: with strides, where oneDNN's kernel
 * for plain ones gathers from x, and with channels enough to fill a block of 16. */
static bool blocked_pays(const ck_conv *c)
{
	int window = c->b.nd - 2;
	return c->stride > 1 && c->b.d[window] * c->b.d[window + 1] > 1 && c->b.nd == 4 && c->a.d[1] >= 16 && c->c.d[1] >= 16;
}

/* dw (O,K) = dy^T (O,M) windows (M,K): M places, K = kh kw C. */
static ck_status unfolded_gradient(ck_product_kernel *k, ck_err *err)
{
	const ck_op_desc *d = &k->base.desc;
	int64_t m = ck_shape_rows(d->out[0].shape), o = ck_shape_last(d->out[0].shape), n = ck_shape_count(d->in[W].shape) / o;
	ck_dtype t = d->in[X].dtype;
	k->ahead[DW] = ck__product_align((size_t)(m * n) * ck_dtype_size(t));
	ck_matmul product = {.a = {.dtype = t, .nd = 2, .d = {o, m}, .stride = {1, o}},
			     .b = {.dtype = t, .nd = 2, .d = {m, n}, .stride = {n, 1}},
			     .c = {.dtype = d->real, .nd = 2, .d = {o, n}, .stride = {n, 1}},
			     .scale = 1};
	return ck__product_matmul(k, DW, true, product, err);
}

static ck_status make(ck_product_kernel *k, ck_err *err)
{
	const ck_op_desc *d = &k->base.desc;
	ck_conv c = {.pass = CK_CONV_FORWARD,
		     .a = image(&d->in[X]),
		     .b = filter(&d->in[W], d->attr.groups),
		     .c = image(&d->out[0]),
		     .stride = d->attr.stride,
		     .pad = d->attr.pad};
	ck_conv with_bias = c, dx = c, dw = c;
	if (d->attr.bias)
		with_bias.bias = (ck_view){.dtype = d->in[B].dtype, .nd = 1, .d = {c.c.d[1]}, .stride = {1}};
	dx.pass = CK_CONV_DATA, dw.pass = CK_CONV_WEIGHTS;
	dw.b.dtype = d->real;
	dw.a.pack = dw.c.pack = blocked_pays(&dw);
	ck_status status = ck__prim_conv(k->base.device->dnnl, &with_bias, &k->forward, err);
	if (status == CK_OK && ck_op_wants(d, X))
		status = ck__prim_conv(k->base.device->dnnl, &dx, &k->gradient[DX][false], err);
	if (status == CK_OK && ck_op_wants(d, W) && unfolds(d))
		return unfolded_gradient(k, err);
	for (int added = 0; status == CK_OK && ck_op_wants(d, W) && added < 2; added++) {
		dw.accumulate = added;
		status = ck__prim_conv(k->base.device->dnnl, &dw, &k->gradient[DW][added], err);
	}
	return status;
}

ck_status ck__cpu_conv2d(ck_device *device, const ck_op_desc *desc, ck_kernel **kernel, ck_err *err)
{
	ck_product_kernel *k;
	if (ck__product_new(device, desc, &k, err) != CK_OK)
		return CK_USAGE;
	k->base.base.forward = forward;
	k->base.base.backward = desc->needs ? backward : NULL;
	if (ck_op_wants(desc, X))
		k->ahead[DX] = ck__product_align((size_t)ck_shape_count(desc->in[X].shape) * ck_dtype_size(desc->in[X].dtype));
	return ck__product_finish(k, make(k, err), kernel);
}
