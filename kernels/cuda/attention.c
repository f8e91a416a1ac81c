/* SCORES and WSUM, the two products of attention, over q, k and v where they lie in qkv (B,T,3,H,D), by strides: a product batched over the
 * heads for each batch element, or, where there are more of those, over the batch for each head. Nothing is transposed or copied.
 *
 *     SCORES  s = scale q k^T      dq = scale ds k    dk = scale ds^T q
 *     WSUM    y = p v              dp = dy v^T        dv = p^T dy */
#include "kernels/cuda/matmul.h"

typedef struct attention_shape {
	ck_dtype dtype;
	int64_t b, t, h, d;      /* batch, places, heads, width of a head */
	bool each_head;          /* a call for each head, and not for each batch element */
	int64_t calls, matrices; /* how many, and in each of them */
} attention_shape;

enum part { Q, K, V };

static attention_shape shape_of(const ck_op_desc *desc, int qkv)
{
	ck_shape s = desc->in[qkv].shape;
	int64_t b = s.d[0], h = desc->attr.heads;
	bool each_head = b > h;
	return (attention_shape){desc->in[qkv].dtype, b, s.d[1], h, s.d[2] / 3 / h, each_head, each_head ? h : b,
				 each_head ? b : h};
}

/* A matrix for each head of each batch element: elements from one's begin to the next. */
typedef struct places {
	int64_t row, head, batch;
} places;

/* q, k or v (`parts` 3), or y (1): (T,D). */
static places rows_of(const attention_shape *s, int64_t parts)
{
	int64_t row = parts * s->h * s->d;
	return (places){row, s->d, s->t * row};
}

/* (T,T) */
static places squares_of(const attention_shape *s)
{
	return (places){s->t, s->t * s->t, s->h * s->t * s->t};
}

/* The matrices in memory, as calls take them. */
typedef struct matrices {
	const void *begin;  /* of the whole tensor; NULL: it is not there */
	int64_t skip, each; /* elements: to the first call's, and from one call's to the next */
} matrices;

static matrices matrices_at(const void *begin, int64_t skip, places p, const attention_shape *s)
{
	return (matrices){begin, skip, s->each_head ? p.head : p.batch};
}

static matrices part_of(const void *qkv, enum part part, const attention_shape *s)
{
	return matrices_at(qkv, part * s->h * s->d, rows_of(s, 3), s);
}

static matrices square_at(const void *scores, const attention_shape *s)
{
	return matrices_at(scores, 0, squares_of(s), s);
}

static matrices output_at(const void *y, const attention_shape *s)
{
	return matrices_at(y, 0, rows_of(s, 1), s);
}

/* d = a b, or added to it, for all of the batch. */
static void run(const ck_matmul *m, const attention_shape *s, matrices a, matrices b, matrices d, bool acc, void *workspace)
{
	size_t size = ck_dtype_size(s->dtype);
	for (int64_t i = 0; i < s->calls; i++)
		ck__matmul_run(m, &(ck_product_args){.a = (const char *)a.begin + (size_t)(a.skip + i * a.each) * size,
						     .b = (const char *)b.begin + (size_t)(b.skip + i * b.each) * size,
						     .d = (char *)(uintptr_t)d.begin + (size_t)(d.skip + i * d.each) * size,
						     .beta = acc ? 1 : 0,
						     .workspace = workspace});
}

/* One call's. skip: calls' pointers are multiples of it, besides. */
static ck_operand operand(const attention_shape *s, places p, int64_t skip)
{
	size_t size = ck_dtype_size(s->dtype);
	int64_t each = s->each_head ? p.head : p.batch;
	return (ck_operand){.dtype = s->dtype,
			    .row = p.row,
			    .batch = s->each_head ? p.batch : p.head,
			    .align = ck__alignment((size_t)skip * size | (size_t)each * size)};
}

static ck_operand rows(const attention_shape *s, int64_t parts)
{
	return operand(s, rows_of(s, parts), parts > 1 ? s->h * s->d : 0);
}

static ck_operand square(const attention_shape *s)
{
	return operand(s, squares_of(s), 0);
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
			      .batch = s->matrices,
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
	matrices q = part_of(a->in[0], Q, &s), key = part_of(a->in[0], K, &s), ds = square_at(a->dout, &s);
	run(k->gradient[0], &s, ds, key, part_of(a->din[0], Q, &s), a->acc[0], a->workspace);
	run(k->gradient[1], &s, ds, q, part_of(a->din[0], K, &s), a->acc[0], a->workspace);
}

ck_status ck__cuda_scores(ck_device *device, const ck_op_desc *desc, ck_kernel **kernel, ck_err *err)
{
	ck_matmul_kernel *k = ck__matmul_kernel_new(device, desc, sizeof *k, scores_forward, scores_backward);
	attention_shape s = shape_of(desc, 0);
	ck_operand head = rows(&s, 3), ds = square(&s);
	ck_status status = make(k, &s, head, transposed(head), ds, s.t, s.d, &k->forward, err);
	if (status == CK_OK && ck_op_wants(desc, 0))
		status = make(k, &s, ds, head, head, s.d, s.t, &k->gradient[0], err);
	if (status == CK_OK && ck_op_wants(desc, 0))
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
	matrices p = square_at(a->in[0], &s), v = part_of(a->in[1], V, &s), dy = output_at(a->dout, &s);
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
	if (status == CK_OK && ck_op_wants(desc, 0))
		status = make(k, &s, y, transposed(head), p, s.t, s.d, &k->gradient[0], err);
	if (status == CK_OK && ck_op_wants(desc, 1))
		status = make(k, &s, transposed(p), y, head, s.d, s.t, &k->gradient[1], err);
	return ck__matmul_kernel_finish(k, status, kernel);
}
