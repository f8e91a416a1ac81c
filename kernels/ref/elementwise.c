/* ACT, DROPOUT, ADD, FLATTEN: one element at a time, so that outputs may lie over inputs. */
#include "kernels/philox.h"
#include "kernels/ref/ref.h"

#include <math.h>

static const double sqrt_2_over_pi = 0.79788456080286535588, cubic = 0.044715;

double ck__ref_act(ck_act act, double z)
{
	switch (act) {
	case CK_ACT_RELU:
		return z <= 0 ? 0 : z; /* a NaN stays one */
	case CK_ACT_GELU_TANH:
		return 0.5 * z * (1 + tanh(sqrt_2_over_pi * (z + cubic * z * z * z)));
	case CK_ACT_GELU_ERF:
		return 0.5 * z * (1 + erf(z / sqrt(2)));
	default:
		return z;
	}
}

double ck__ref_act_slope(ck_act act, double z)
{
	switch (act) {
	case CK_ACT_RELU:
		return !(z <= 0); /* a NaN lets through what comes */
	case CK_ACT_GELU_TANH: {
		double t = tanh(sqrt_2_over_pi * (z + cubic * z * z * z));
		return 0.5 * (1 + t) + 0.5 * z * (1 - t * t) * sqrt_2_over_pi * (1 + 3 * cubic * z * z);
	}
	case CK_ACT_GELU_ERF: /* the normal distribution's function, plus z times its density */
		return 0.5 * (1 + erf(z / sqrt(2))) + z * exp(-0.5 * z * z) * sqrt_2_over_pi / 2;
	default:
		return 1;
	}
}

double ck__ref_dropped(const ck_op_desc *d, const ck_args *a, int64_t e, double v)
{
	if (d->attr.p == 0)
		return v;
	if (a->mask)
		return a->mask[e] ? v / (1 - d->attr.p) : 0;
	uint32_t words[4];
	ck_philox_block(a->seed, a->step, a->op, a->block + (uint64_t)e / 4, words);
	return words[e % 4] >= ck_drop_threshold(d->attr.p) ? v / (1 - d->attr.p) : 0;
}

void ck__ref_act_forward(const ck_op_desc *d, const ck_args *a)
{
	const double *x = a->in[0];
	double *y = a->out[0];
	for (int64_t e = 0; e < ck_shape_count(d->out[0].shape); e++)
		y[e] = ck__ref_act(d->attr.act, x[e]);
}

void ck__ref_act_backward(const ck_op_desc *d, const ck_args *a)
{
	/* ReLU's output says as much about the slope as its input does */
	const double *z = d->attr.act == CK_ACT_RELU ? a->out[0] : a->in[0], *dout = a->dout;
	double *dx = a->din[0];
	for (int64_t e = 0; e < ck_shape_count(d->out[0].shape); e++)
		ck__ref_put(&dx[e], dout[e] * ck__ref_act_slope(d->attr.act, z[e]), a->acc[0]);
}

void ck__ref_dropout_forward(const ck_op_desc *d, const ck_args *a)
{
	int residual = ck_op_residual(d);
	const double *x = a->in[0], *r = residual < 0 ? NULL : a->in[residual];
	double *y = a->out[0];
	for (int64_t e = 0; e < ck_shape_count(d->out[0].shape); e++)
		y[e] = ck__ref_dropped(d, a, e, x[e]) + (r ? r[e] : 0);
}

void ck__ref_dropout_backward(const ck_op_desc *d, const ck_args *a)
{
	const double *dout = a->dout;
	double *dx = a->din[0];
	for (int64_t e = 0; dx && e < ck_shape_count(d->out[0].shape); e++)
		ck__ref_put(&dx[e], ck__ref_dropped(d, a, e, dout[e]), a->acc[0]);
	ck__ref_pass(d, a, ck_op_residual(d));
}

void ck__ref_add_forward(const ck_op_desc *d, const ck_args *a)
{
	const double *x = a->in[0], *y = a->in[1];
	double *sum = a->out[0];
	for (int64_t e = 0; e < ck_shape_count(d->out[0].shape); e++)
		sum[e] = x[e] + y[e];
}

void ck__ref_add_backward(const ck_op_desc *d, const ck_args *a)
{
	ck__ref_pass(d, a, 0);
	ck__ref_pass(d, a, 1);
}

void ck__ref_flatten_forward(const ck_op_desc *d, const ck_args *a)
{
	const double *x = a->in[0];
	double *y = a->out[0];
	for (int64_t e = 0; e < ck_shape_count(d->out[0].shape); e++)
		y[e] = x[e];
}

void ck__ref_flatten_backward(const ck_op_desc *d, const ck_args *a)
{
	ck__ref_pass(d, a, 0);
}
