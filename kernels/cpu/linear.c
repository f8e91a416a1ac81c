/* LINEAR: z = x w^T + b, y = r + dropout(act(z)), as one matrix product with what fits in its epilogue (bias, residual).
 * GELU and dropout are a pass each over its result; ReLU as well, since oneDNN's takes NaN for 0.
 *
 * Backward: dz = act'(z) dropout'(dy), in a pass that sums the columns for db as well; then dx = dz w and dw = dz^T x. Without
 * activation and dropout dz is dy itself, unless that is float32 and the products are in 16 bits.
 *
 * Plain row-major operands all along: copies of w or x into oneDNN's own layouts cost more than they gain here. */
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/product.h"
#include "kernels/linear_shape.h"

enum { X, W, DX = 0, DW = 1 };

static void forward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_product_kernel *k = (const ck_product_kernel *)kernel;
	const ck_device *device = k->base.device;
	ck_linear_shape s = ck_linear_shape_of(&k->base.desc);
	const void *bias = s.bias < 0 ? NULL : a->in[s.bias], *r = s.residual < 0 ? NULL : a->in[s.residual];
	void *z = ck_act_gelu(s.act) ? a->stash[0] : a->out[0];
	ck__prim_run(k->forward, (const void *[CK_PLACES]){a->in[X], a->in[W], z, bias, r}, a->workspace);
	if (s.act != CK_ACT_NONE)
		ck__act_forward(device, s.t, s.act, s.m * s.n, z, a->out[0]);
	if (s.drops) {
		ck_drop drop = ck__drop(k->base.desc.attr.p, a);
		ck__dropout_forward(device, &drop, s.m * s.n, s.ty, a->out[0], s.ty, r, a->out[0]);
	}
}

/* dz, and db where wanted. Returns dy when that is dz. */
static const void *epilogue_backward(const ck_product_kernel *k, const ck_linear_shape *s, const ck_args *a)
{
	const ck_device *device = k->base.device;
	float *db = s->bias < 0 ? NULL : a->din[s->bias];
	bool add_db = db && a->acc[s->bias];
	if (!ck_linear_forms_dz(s)) {
		if (db)
			ck__column_sums(device, s->t, s->m, s->n, a->dout, db, add_db);
		return a->dout;
	}
	const ck_drop drop = ck__drop(k->base.desc.attr.p, a);
	const ck_epilogue e = {.act = s->act,
			       .drop = s->drops ? &drop : NULL,
			       .rows = s->m,
			       .cols = s->n,
			       .ty = s->ty,
			       .tz = s->t,
			       .dy = a->dout,
			       .saved = ck_act_gelu(s->act) ? a->stash[0] : a->out[0],
			       .dz = a->workspace,
			       .sum = db,
			       .acc = add_db};
	ck__epilogue_backward(device, &e);
	return a->workspace;
}

/* The residual's gradient last: it may lie over dy. */
static void backward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_product_kernel *k = (const ck_product_kernel *)kernel;
	ck_linear_shape s = ck_linear_shape_of(&k->base.desc);
	if (a->din[X] || a->din[W] || (s.bias >= 0 && a->din[s.bias])) {
		const void *dz = epilogue_backward(k, &s, a);
		if (a->din[X])
			ck__product_gradient(k, DX, a->acc[X], (const void *[CK_PLACES]){dz, a->in[W], a->din[X]},
					     a->workspace);
		if (a->din[W])
			ck__product_gradient(k, DW, a->acc[W], (const void *[CK_PLACES]){dz, a->in[X], a->din[W]},
					     a->workspace);
	}
	if (s.residual >= 0 && a->din[s.residual])
		ck__pass(k->base.device, s.m * s.n, s.ty, a->dout, s.ty, a->din[s.residual], a->acc[s.residual]);
}

/* A matrix of these strides. */
static ck_view matrix(ck_dtype t, int64_t rows, int64_t cols, int64_t row, int64_t col)
{
	return (ck_view){.dtype = t, .nd = 2, .d = {rows, cols}, .stride = {row, col}};
}

static ck_status make(ck_product_kernel *k, ck_err *err)
{
	const ck_op_desc *d = &k->base.desc;
	ck_linear_shape s = ck_linear_shape_of(d);
	ck_dtype t = s.t;
	ck_view x = matrix(t, s.m, s.k, s.k, 1), w = matrix(t, s.n, s.k, s.k, 1), dz = matrix(t, s.m, s.n, s.n, 1), y = dz,
		gw = w;
	y.dtype = s.ty, gw.dtype = d->real;
	ck_matmul m = {.a = x, .b = matrix(t, s.k, s.n, 1, s.k), .c = y, .scale = 1};
	if (s.bias >= 0)
		m.bias = matrix(d->real, 1, s.n, s.n, 1);
	if (s.residual >= 0 && !s.drops)
		m.r = y;
	ck_matmul dx = {.a = dz, .b = w, .c = x, .scale = 1},
		  dw = {.a = matrix(t, s.n, s.m, 1, s.n), .b = x, .c = gw, .scale = 1};
	ck_status status = ck__prim_matmul(k->base.device->dnnl, &m, &k->forward, err);
	if (status == CK_OK)
		status = ck__product_matmul(k, DX, ck_op_wants(d, X), dx, err);
	if (status == CK_OK)
		status = ck__product_matmul(k, DW, ck_op_wants(d, W), dw, err);
	return status;
}

ck_status ck__cpu_linear(ck_device *device, const ck_op_desc *desc, ck_kernel **kernel, ck_err *err)
{
	ck_product_kernel *k;
	if (ck__product_new(device, desc, &k, err) != CK_OK)
		return CK_USAGE;
	ck_linear_shape s = ck_linear_shape_of(desc);
	k->base.base.forward = forward;
	k->base.base.backward = desc->needs ? backward : NULL;
	bool inner = desc->needs & ~(s.residual < 0 ? 0u : 1u << s.residual);
	if (inner && ck_linear_forms_dz(&s))
		k->ahead[DX] = k->ahead[DW] = ck__product_align((size_t)(s.m * s.n) * ck_dtype_size(s.t));
	return ck__product_finish(k, make(k, err), kernel);
}
