/* LINEAR: z = x w^T + b, y = r + dropout(act(z)), as one product with what fits in its epilogue: a bias, or a bias and GELU, or an addend where
 * nothing comes between. The rest is one pass over the product (epilogue.cu), which takes the bias along. ReLU is always in the pass:
 * cuBLASLt's takes NaN for 0.
 *
 *     act          dropout   epilogue               then
 *     none         no        bias, r as its C       -
 *     GELU, tanh   any       bias, GELU, z stored   dropout                     16 bits
 *     the rest               -                      bias, act, dropout, r
 *
 * GELU is left to cuBLASLt in 16 bits only: nothing says how exactly it takes the hyperbolic tangent, which the processor has an
 * instruction for that keeps 11 bits.
 *
 * cuBLASLt's bias has the product's dtype (cublasLtMatmul's table of types): with a 16-bit product b is rounded, in the workspace. What
 * cuBLASLt does not have for a shape goes the way of the last line. There a 16-bit product is rounded before the bias is added.
 *
 * Backward: dz = act'(z) dropout'(dy), in a pass; then db as its columns' sums, dx = dz w and dw = dz^T x. Without activation and dropout dz
 * is dy itself, unless that is float32 and the products are in 16 bits. */
#include "kernels/cuda/act.h"
#include "kernels/cuda/columns.h"
#include "kernels/cuda/dropout.h"
#include "kernels/cuda/epilogue.h"
#include "kernels/cuda/matmul.h"
#include "kernels/cuda/pass.h"
#include "kernels/linear_shape.h"

enum { X, W, DX = 0, DW = 1 };

typedef struct linear_kernel {
	ck_matmul_kernel products;
	ck_fused fused;     /* what the product's epilogue does */
	bool pass;          /* whether the pass follows */
	size_t dz;          /* bytes of the workspace that dz takes, backward; the sums' parts are behind it */
	ck_columns columns; /* of dz */
} linear_kernel;

/* ---- forward ------------------------------------------------------------------------------------------------------------- */

/* The bias in the product's dtype. */
static const void *product_bias(const linear_kernel *k, const ck_linear_shape *s, const ck_args *a)
{
	if (s->bias < 0 || s->ty == CK_F32)
		return s->bias < 0 ? NULL : a->in[s->bias];
	ck__cuda_pass(k->products.base.device->stream, s->n, CK_F32, a->in[s->bias], s->ty, a->workspace, false);
	return a->workspace;
}

static void forward(const ck_kernel *kernel, const ck_args *a)
{
	const linear_kernel *k = (const linear_kernel *)kernel;
	cudaStream_t stream = k->products.base.device->stream;
	ck_linear_shape s = ck_linear_shape_of(&k->products.base.desc);
	ck_drop drop = ck_drop_of(k->products.base.desc.attr.p, a);
	const void *r = s.residual < 0 ? NULL : a->in[s.residual];
	ck_product_args p = {
	    .a = a->in[X], .b = a->in[W], .d = a->out[0], .workspace = (char *)a->workspace + k->products.ahead_forward};
	if (k->pass) {
		if (ck_act_gelu(s.act))
			p.d = a->stash[0];
		ck__matmul_run(k->products.forward, &p);
		const float *bias = s.bias < 0 ? NULL : a->in[s.bias];
		ck__epilogue_forward(stream, s.ty, s.m * s.n, s.n, s.act, s.drops, drop, p.d, bias, r, a->mask,
				     bias ? a->stash[0] : NULL, a->out[0]);
		return;
	}
	p.bias = product_bias(k, &s, a);
	p.before = a->stash[0];
	p.c = r;
	p.beta = r ? 1 : 0;
	ck__matmul_run(k->products.forward, &p);
	if (s.drops)
		ck__cuda_dropout_forward(stream, drop, a->mask, s.m * s.n, s.ty, a->out[0], s.ty, NULL, a->out[0]);
}

/* ---- backward ------------------------------------------------------------------------------------------------------------ */

static const void *form_dz(const linear_kernel *k, const ck_linear_shape *s, const ck_args *a)
{
	if (!ck_linear_forms_dz(s))
		return a->dout;
	const void *saved = ck_act_gelu(s->act) ? a->stash[0] : s->act == CK_ACT_RELU ? a->out[0] : NULL;
	ck__epilogue_backward(k->products.base.device->stream, s->ty, s->t, s->m * s->n, s->act, s->drops,
			      ck_drop_of(k->products.base.desc.attr.p, a), a->dout, saved, a->mask, a->workspace);
	return a->workspace;
}

/* The residual's gradient last: it may lie over dy. */
static void backward(const ck_kernel *kernel, const ck_args *a)
{
	const linear_kernel *k = (const linear_kernel *)kernel;
	cudaStream_t stream = k->products.base.device->stream;
	ck_linear_shape s = ck_linear_shape_of(&k->products.base.desc);
	float *db = s.bias < 0 ? NULL : a->din[s.bias];
	void *workspace = (char *)a->workspace + k->products.ahead;
	if (a->din[X] || a->din[W] || db) {
		const void *dz = form_dz(k, &s, a);
		if (db)
			ck__column_sums(stream, &k->columns, s.t, dz, (void *)((char *)a->workspace + k->dz), db,
					a->acc[s.bias]);
		if (a->din[X])
			ck__matmul_run(
			    k->products.gradient[DX],
			    &(ck_product_args){
				.a = dz, .b = a->in[W], .d = a->din[X], .beta = a->acc[X] ? 1 : 0, .workspace = workspace});
		if (a->din[W])
			ck__matmul_run(
			    k->products.gradient[DW],
			    &(ck_product_args){
				.a = dz, .b = a->in[X], .d = a->din[W], .beta = a->acc[W] ? 1 : 0, .workspace = workspace});
	}
	if (s.residual >= 0 && a->din[s.residual])
		ck__cuda_pass(stream, s.m * s.n, s.ty, a->dout, s.ty, a->din[s.residual], a->acc[s.residual]);
}

/* ---- preparing ----------------------------------------------------------------------------------------------------------- */

static ck_operand matrix(ck_dtype t, int64_t cols, bool transposed)
{
	return (ck_operand){.dtype = t, .row = cols, .transposed = transposed, .align = ck__alignment(0)};
}

/* Chooses what the epilogue does, and asks for the product. */
static ck_status make_forward(linear_kernel *k, const ck_linear_shape *s, ck_err *err)
{
	bool bias = s->bias >= 0, gelu = s->act == CK_ACT_GELU_TANH && ck_dtype_half(s->t) && s->n % 8 == 0;
	ck_product p = {.m = s->m,
			.n = s->n,
			.k = s->k,
			.batch = 1,
			.a = matrix(s->t, s->k, false),
			.b = matrix(s->t, s->k, true),
			.c = matrix(s->ty, s->n, false),
			.alpha = 1};
	if (gelu || (s->act == CK_ACT_NONE && !s->drops)) {
		p.fused = gelu ? bias ? CK_FUSED_GELU_BIAS : CK_FUSED_GELU : bias ? CK_FUSED_BIAS : CK_FUSED_NONE;
		if (ck__matmul_new(k->products.base.device, &p, &k->products.forward, NULL) == CK_OK) {
			if (bias && s->ty != CK_F32)
				k->products.ahead_forward = ck__aligned((size_t)s->n * ck_dtype_size(s->ty));
			return CK_OK;
		}
	}
	p.fused = CK_FUSED_NONE;
	k->pass = true;
	return ck__matmul_new(k->products.base.device, &p, &k->products.forward, err);
}

static ck_status make_gradients(linear_kernel *k, const ck_linear_shape *s, ck_err *err)
{
	const ck_op_desc *d = &k->products.base.desc;
	ck_product dx = {.m = s->m,
			 .n = s->k,
			 .k = s->n,
			 .batch = 1,
			 .a = matrix(s->t, s->n, false),
			 .b = matrix(s->t, s->k, false),
			 .c = matrix(s->t, s->k, false),
			 .alpha = 1},
		   dw = {.m = s->n,
			 .n = s->k,
			 .k = s->m,
			 .batch = 1,
			 .a = matrix(s->t, s->n, true),
			 .b = matrix(s->t, s->k, false),
			 .c = matrix(d->real, s->k, false),
			 .alpha = 1};
	ck_status status = CK_OK;
	if (ck_op_wants(d, X))
		status = ck__matmul_new(k->products.base.device, &dx, &k->products.gradient[DX], err);
	if (status == CK_OK && ck_op_wants(d, W))
		status = ck__matmul_new(k->products.base.device, &dw, &k->products.gradient[DW], err);
	return status;
}

enum { LEAST_ROWS = 16 }; /* a thread's, in a sum of columns */

ck_status ck__cuda_linear(ck_device *device, const ck_op_desc *desc, ck_kernel **kernel, ck_err *err)
{
	ck_linear_shape s = ck_linear_shape_of(desc);
	linear_kernel *k = ck__matmul_kernel_new(device, desc, sizeof *k, forward, backward);
	ck_status status = make_forward(k, &s, err);
	if (status == CK_OK)
		status = make_gradients(k, &s, err);
	if (ck_linear_forms_dz(&s) && (ck_op_wants(desc, X) || ck_op_wants(desc, W) || ck_op_wants(desc, s.bias)))
		k->dz = ck__aligned((size_t)(s.m * s.n) * ck_dtype_size(s.t));
	k->columns = ck__columns(device, s.m, s.n, LEAST_ROWS);
	size_t sums = ck_op_wants(desc, s.bias) ? ck__aligned(ck__column_sums_workspace(&k->columns)) : 0;
	k->products.ahead = k->dz + sums;
	return ck__matmul_kernel_finish(&k->products, status, kernel);
}
