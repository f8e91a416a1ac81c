/* SCORES and WSUM, the two products of attention, over q, k and v where they lie in qkv (B,T,3,H,D): for each batch element one product
 * batched over the heads, by strides. Nothing is transposed or copied.
 *
 *     SCORES  s = scale q k^T      dq = scale ds k    dk = scale ds^T q
 *     WSUM    y = p v              dp = dy v^T        dv = p^T dy */
#include "kernels/cuda/matmul.h"

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

/* One batch element's heads, in memory. */
typedef struct heads {
	const void *begin;  /* of the whole tensor; NULL: it is not there */
	int64_t skip, each; /* elements: to the first batch element's, and from one batch element's to the next */
} heads;

static heads part_of(const void *qkv, enum part part, const attention_shape *s)
{
	return (heads){qkv, part * s->h * s->d, s->t * 3 * s->h * s->d};
}

static heads square_at(const void *scores, const attention_shape *s)
{
	return (heads){scores, 0, s->h * s->t * s->t};
}

static heads output_at(const void *y, const attention_shape *s)
{
	return (heads){y, 0, s->t * s->h * s->d};
}

/* d = a b, or added to it, for all of the batch. */
static void run(const ck_matmul *m, const attention_shape *s, heads a, heads b, heads d, bool acc, void *workspace)
{
	size_t size = ck_dtype_size(s->dtype);
	for (int64_t i = 0; i < s->b; i++)
		ck__matmul_run(m, &(ck_product_args){.a = (const char *)a.begin + (size_t)(a.skip + i * a.each) * size,
						     .b = (const char *)b.begin + (size_t)(b.skip + i * b.each) * size,
						     .d = (char *)(uintptr_t)d.begin + (size_t)(d.skip + i * d.each) * size,
						     .beta = acc ? 1 : 0,
						     .workspace = workspace});
}

/* (T,D) for each head: rows of q, k or v (`parts` 3), or of y (1). */
static ck_operand rows(const attention_shape *s, int64_t parts)
{
	int64_t row = parts * s->h * s->d;
	size_t size = ck_dtype_size(s->dtype);
	return (ck_operand){.dtype = s->dtype,
			    .row = row,
			    .batch = s->d,
			    .align = ck__alignment((size_t)(s->h * s->d) * size | (size_t)(s->t * row) * size)};
}

/* (T,T) for each head. */
static ck_operand square(const attention_shape *s)
{
	return (ck_operand){.dtype = s->dtype,
			    .row = s->t,
			    .batch = s->t * s->t,
			    .align = ck__alignment((size_t)(s->h * s->t * s->t) * ck_dtype_size(s->dtype))};
}

static ck_operand transposed(ck_operand o)
{
	o.transposed = true;
	return o;
}

/* (T,n) of (T,k) and (k,n), k and n being T or the width of a head. */
static ck_status make(const ck_matmul_kernel *k, const attention_shape *s, ck_operand a, ck_operand b, ck_operand c, int64_t n,
		      int64_t inner, ck_matmul **m, ck_err *err)
{
	const ck_op_desc *d = &k->base.desc;
	ck_product product = {.m = s->t,
			      .n = n,
			      .k = inner,
			      .batch = s->h,
			      .a = a,
			      .b = b,
			      .c = c,
			      .alpha = d->kind == CK_SCORES ? (float)d->attr.scale : 1};
	return ck__matmul_new(k->base.device, &product, m, err);
}

/* ---- SCORES -------------------------------------------------------------------------------------------------------------- */

static void scores_forward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_matmul_kernel *k = (const ck_matmul_kernel *)kernel;
	attention_shape s = shape_of(&k->base.desc, 0);
	run(k->forward, &s, part_of(a->in[0], Q, &s), part_of(a->in[0], K, &s), square_at(a->out[0], &s), false, a->workspace);
}

static void scores_backward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_matmul_kernel *k = (const ck_matmul_kernel *)kernel;
	attention_shape s = shape_of(&k->base.desc, 0);
	heads q = part_of(a->in[0], Q, &s), key = part_of(a->in[0], K, &s), ds = square_at(a->dout, &s);
	run(k->gradient[0], &s, ds, key, part_of(a->din[0], Q, &s), a->acc[0], a->workspace);
	run(k->gradient[1], &s, ds, q, part_of(a->din[0], K, &s), a->acc[0], a->workspace);
}

ck_status ck__cuda_scores(ck_device *device, const ck_op_desc *desc, ck_kernel **kernel, ck_err *err)
{
	ck_matmul_kernel *k = ck__matmul_kernel_new(device, desc, sizeof *k, scores_forward, scores_backward);
	attention_shape s = shape_of(desc, 0);
	ck_operand head = rows(&s, 3), ds = square(&s);
	ck_status status = make(k, &s, head, transposed(head), ds, s.t, s.d, &k->forward, err);
	if (status == CK_OK && ck__wants(desc, 0))
		status = make(k, &s, ds, head, head, s.d, s.t, &k->gradient[0], err);
	if (status == CK_OK && ck__wants(desc, 0))
		status = make(k, &s, transposed(ds), head, head, s.d, s.t, &k->gradient[1], err);
	return ck__matmul_kernel_finish(k, status, kernel);
}

/* ---- WSUM ---------------------------------------------------------------------------------------------------------------- */

static void wsum_forward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_matmul_kernel *k = (const ck_matmul_kernel *)kernel;
	attention_shape s = shape_of(&k->base.desc, 1);
	run(k->forward, &s, square_at(a->in[0], &s), part_of(a->in[1], V, &s), output_at(a->out[0], &s), false, a->workspace);
}

static void wsum_backward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_matmul_kernel *k = (const ck_matmul_kernel *)kernel;
	attention_shape s = shape_of(&k->base.desc, 1);
	heads p = square_at(a->in[0], &s), v = part_of(a->in[1], V, &s), dy = output_at(a->dout, &s);
	if (a->din[0])
		run(k->gradient[0], &s, dy, v, square_at(a->din[0], &s), a->acc[0], a->workspace);
	if (a->din[1])
		run(k->gradient[1], &s, p, dy, part_of(a->din[1], V, &s), a->acc[1], a->workspace);
}

ck_status ck__cuda_wsum(ck_device *device, const ck_op_desc *desc, ck_kernel **kernel, ck_err *err)
{
	ck_matmul_kernel *k = ck__matmul_kernel_new(device, desc, sizeof *k, wsum_forward, wsum_backward);
	attention_shape s = shape_of(desc, 1);
	ck_operand head = rows(&s, 3), p = square(&s), y = rows(&s, 1);
	ck_status status = make(k, &s, p, head, y, s.d, s.t, &k->forward, err);
	if (status == CK_OK && ck__wants(desc, 0))
		status = make(k, &s, y, transposed(head), p, s.t, s.d, &k->gradient[0], err);
	if (status == CK_OK && ck__wants(desc, 1))
		status = make(k, &s, transposed(p), y, head, s.d, s.t, &k->gradient[1], err);
	return ck__matmul_kernel_finish(k, status, kernel);
}
