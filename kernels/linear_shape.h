/* What a backend that computes LINEAR as a matrix product needs to know of it. */
#ifndef CK_LINEAR_SHAPE_H
#define CK_LINEAR_SHAPE_H

#include "kernels/ops.h"

typedef struct ck_linear_shape {
	int64_t m, k, n;    /* x (M,K), w (N,K), y (M,N) */
	int bias, residual; /* their places among the inputs, or -1 */
	ck_act act;
	bool drops;
	ck_dtype t, ty; /* of x, w and z; of y and r, float32 or the same */
} ck_linear_shape;

static inline ck_linear_shape ck_linear_shape_of(const ck_op_desc *d)
{
	return (ck_linear_shape){.m = ck_shape_rows(d->in[0].shape),
				 .k = ck_shape_last(d->in[0].shape),
				 .n = ck_shape_last(d->out[0].shape),
				 .bias = d->attr.bias ? 2 : -1,
				 .residual = ck_op_residual(d),
				 .act = d->attr.act,
				 .drops = d->attr.p > 0,
				 .t = d->in[0].dtype,
				 .ty = d->out[0].dtype};
}

/* Whether dz, the gradient before activation and dropout, is not dy itself: it is formed by a pass, or only rounded. */
static inline bool ck_linear_forms_dz(const ck_linear_shape *s)
{
	return s->act != CK_ACT_NONE || s->drops || s->t != s->ty;
}

#endif
