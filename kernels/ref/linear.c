/* LINEAR: z = x w^T + b;  y = r + dropout(act(z)). */
#include "kernels/ref/ref.h"

void ck__ref_linear_forward(const ck_op_desc *d, const ck_args *a)
{
	int64_t rows = ck_shape_rows(d->out[0].shape), outs = d->in[1].shape.d[0], ins = d->in[1].shape.d[1];
	int residual = ck_op_residual(d);
	const double *x = a->in[0];                              // (M, K)
	const double *w = a->in[1];                              // (N, K)
	const double *b = d->attr.bias ? a->in[2] : NULL;        // (N)
	const double *r = residual < 0 ? NULL : a->in[residual]; // (M, N)
	double *y = a->out[0];                                   // (M, N)
	double *stash = a->stash[0];                             // (M, N) or NULL
	for (int64_t m = 0; m < rows; m++)
		for (int64_t n = 0; n < outs; n++) {
			int64_t e = m * outs + n;
			double z = b ? b[n] : 0;
			for (int64_t k = 0; k < ins; k++)
				z += x[m * ins + k] * w[n * ins + k];
			if (stash)
				stash[e] = z;
			y[e] = ck__ref_dropped(d, a, e, ck__ref_act(d->attr.act, z)) + (r ? r[e] : 0);
		}
}

/* dz: through dropout and the activation. With ReLU the output tells all: it is positive where z is and the element was kept. */
static double through_act(const ck_op_desc *d, const ck_args *a, int64_t e)
{
	const double *dout = a->dout, *y = a->out[0], *z = a->stash[0];
	switch (d->attr.act) {
	case CK_ACT_NONE:
		return ck__ref_dropped(d, a, e, dout[e]);
	case CK_ACT_RELU:
		return y[e] <= 0 ? 0 : dout[e] / (1 - d->attr.p);
	default:
		return ck__ref_dropped(d, a, e, dout[e]) * ck__ref_act_slope(d->attr.act, z[e]);
	}
}

void ck__ref_linear_backward(const ck_op_desc *d, const ck_args *a)
{
	int64_t rows = ck_shape_rows(d->out[0].shape), outs = d->in[1].shape.d[0], ins = d->in[1].shape.d[1];
	const double *x = a->in[0], *w = a->in[1];
	double *dx = a->din[0], *dw = a->din[1], *db = d->attr.bias ? a->din[2] : NULL;
	double *dz = a->workspace; // (M, N)
	if (dx || dw || db)
		for (int64_t e = 0; e < rows * outs; e++)
			dz[e] = through_act(d, a, e);
	for (int64_t e = 0; dx && e < rows * ins; e++) {
		double sum = 0;
		for (int64_t n = 0; n < outs; n++)
			sum += dz[e / ins * outs + n] * w[n * ins + e % ins];
		ck__ref_put(&dx[e], sum, a->acc[0]);
	}
	for (int64_t e = 0; dw && e < outs * ins; e++) {
		double sum = 0;
		for (int64_t m = 0; m < rows; m++)
			sum += dz[m * outs + e / ins] * x[m * ins + e % ins];
		ck__ref_put(&dw[e], sum, a->acc[1]);
	}
	for (int64_t n = 0; db && n < outs; n++) {
		double sum = 0;
		for (int64_t m = 0; m < rows; m++)
			sum += dz[m * outs + n];
		ck__ref_put(&db[n], sum, a->acc[2]);
	}
	ck__ref_pass(d, a, ck_op_residual(d));
}
