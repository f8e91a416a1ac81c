/* SCORES and WSUM, the two products of attention, over q, k and v where they lie in qkv (B,T,3,H,D): a product per batch
 * element and head, by strides. In float32 nothing is transposed or copied; in 16 bits oneDNN's fast kernels want heads laid side
 * by side, and what they gain is more than copying there and back costs.
 *
 *     SCORES  s = scale q k^T      dq = scale ds k    dk = scale ds^T q
 *     WSUM    y = p v              dp = dy v^T        dv = p^T dy */
#include "kernels/cpu/product.h"

#include <math.h>

typedef struct attention_shape {
	ck_dtype dtype;
	int64_t b, t, h, d; /* batch, places, heads, width of a head */
} attention_shape;

enum part { Q, K, V };

static attention_shape shape_of(const ck_op_desc *desc, int qkv)
{
	ck_shape s = desc->in[qkv].shape;
	int64_t heads = desc->attr.heads;
	return (attention_shape){desc->in[qkv].dtype, s.d[0], s.d[1], heads, s.d[2] / 3 / heads};
}

/* Where part q, k or v begins in qkv. */
static void *part_of(const void *qkv, enum part part, const attention_shape *s)
{
	return qkv ? (char *)qkv + (size_t)(part * s->h * s->d) * ck_dtype_size(s->dtype) : NULL;
}

/* (B,H,T,D): a head's rows of q, k or v (`parts` 3) or of y (1). */
static ck_view rows(const attention_shape *s, int64_t parts)
{
	int64_t row = parts * s->h * s->d;
	return (ck_view){.dtype = s->dtype,
			 .nd = 4,
			 .d = {s->b, s->h, s->t, s->d},
			 .stride = {s->t * row, s->d, row, 1},
			 .pack = ck_dtype_half(s->dtype)};
}

/* (B,H,T,T): the scores or their weights. */
static ck_view square(const attention_shape *s)
{
	return (ck_view){
	    .dtype = s->dtype, .nd = 4, .d = {s->b, s->h, s->t, s->t}, .stride = {s->h * s->t * s->t, s->t * s->t, s->t, 1}};
}

static ck_view transposed(ck_view v)
{
	int64_t d = v.d[2], stride = v.stride[2];
	v.d[2] = v.d[3], v.stride[2] = v.stride[3];
	v.d[3] = d, v.stride[3] = stride;
	return v;
}

static ck_status make(ck_product_kernel *k, ck_matmul m, bool want[2], ck_matmul first, ck_matmul second, ck_err *err)
{
	m.c.pack = false;
	ck_status status = ck__prim_matmul(k->base.device->dnnl, &m, &k->forward, err);
	if (status == CK_OK)
		status = ck__product_matmul(k, 0, want[0], first, err);
	if (status == CK_OK)
		status = ck__product_matmul(k, 1, want[1], second, err);
	return status;
}

/* ---- SCORES -------------------------------------------------------------------------------------------------------------- */

static void scores_forward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_product_kernel *k = (const ck_product_kernel *)kernel;
	attention_shape s = shape_of(&k->base.desc, 0);
	ck__prim_run(k->forward, (const void *[CK_PLACES]){part_of(a->in[0], Q, &s), part_of(a->in[0], K, &s), a->out[0]},
		     a->workspace);
}

static void scores_backward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_product_kernel *k = (const ck_product_kernel *)kernel;
	attention_shape s = shape_of(&k->base.desc, 0);
	const void *q = part_of(a->in[0], Q, &s), *key = part_of(a->in[0], K, &s);
	void *dq = part_of(a->din[0], Q, &s), *dk = part_of(a->din[0], K, &s);
	ck__product_gradient(k, 0, a->acc[0], (const void *[CK_PLACES]){a->dout, key, dq}, a->workspace);
	ck__product_gradient(k, 1, a->acc[0], (const void *[CK_PLACES]){a->dout, q, dk}, a->workspace);
}

ck_status ck__cpu_scores(ck_device *device, const ck_op_desc *desc, ck_kernel **kernel, ck_err *err)
{
	if (!(fabs(desc->attr.scale) > 0))
		return ck_fail(err, CK_USAGE, "device cpu has no scores with scale %g: it must not be 0", desc->attr.scale);
	ck_product_kernel *k;
	if (ck__product_new(device, desc, &k, err) != CK_OK)
		return CK_USAGE;
	attention_shape s = shape_of(desc, 0);
	ck_view head = rows(&s, 3), ds = square(&s);
	float scale = (float)desc->attr.scale;
	k->base.base.forward = scores_forward;
	k->base.base.backward = desc->needs ? scores_backward : NULL;
	bool want[2] = {ck_op_wants(desc, 0), ck_op_wants(desc, 0)};
	ck_status status = make(k, (ck_matmul){.a = head, .b = transposed(head), .c = ds, .scale = scale}, want,
				(ck_matmul){.a = ds, .b = head, .c = head, .scale = scale},
				(ck_matmul){.a = transposed(ds), .b = head, .c = head, .scale = scale}, err);
	return ck__product_finish(k, status, kernel);
}

/* ---- WSUM ---------------------------------------------------------------------------------------------------------------- */

static void wsum_forward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_product_kernel *k = (const ck_product_kernel *)kernel;
	attention_shape s = shape_of(&k->base.desc, 1);
	ck__prim_run(k->forward, (const void *[CK_PLACES]){a->in[0], part_of(a->in[1], V, &s), a->out[0]}, a->workspace);
}

static void wsum_backward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_product_kernel *k = (const ck_product_kernel *)kernel;
	attention_shape s = shape_of(&k->base.desc, 1);
	const void *v = part_of(a->in[1], V, &s);
	if (a->din[0])
		ck__product_gradient(k, 0, a->acc[0], (const void *[CK_PLACES]){a->dout, v, a->din[0]}, a->workspace);
	if (a->din[1])
		ck__product_gradient(k, 1, a->acc[1], (const void *[CK_PLACES]){a->in[0], a->dout, part_of(a->din[1], V, &s)},
				     a->workspace);
}

ck_status ck__cpu_wsum(ck_device *device, const ck_op_desc *desc, ck_kernel **kernel, ck_err *err)
{
	ck_product_kernel *k;
	if (ck__product_new(device, desc, &k, err) != CK_OK)
		return CK_USAGE;
	attention_shape s = shape_of(desc, 1);
	ck_view head = rows(&s, 3), p = square(&s), y = rows(&s, 1);
	k->base.base.forward = wsum_forward;
	k->base.base.backward = desc->needs ? wsum_backward : NULL;
	bool want[2] = {ck_op_wants(desc, 0), ck_op_wants(desc, 1)};
	ck_status status = make(k, (ck_matmul){.a = p, .b = head, .c = y, .scale = 1}, want,
				(ck_matmul){.a = y, .b = transposed(head), .c = p, .scale = 1},
				(ck_matmul){.a = transposed(p), .b = y, .c = head, .scale = 1}, err);
	return ck__product_finish(k, status, kernel);
}
