/* BATCHNORM (over all rows, per channel) and LAYERNORM (over the channels, per row). With xhat = (x - mean) rstd over n elements,
 * both have the gradient  dx = rstd (h - sum(h) / n - xhat sum(h xhat) / n),  h = gamma g,  g the gradient of gamma xhat + beta. */
#include "kernels/ref/ref.h"

#include <math.h>

enum { X, GAMMA, BETA, RMEAN, RVAR, COUNT };

/* Mean and variance (biased) of n elements that lie `step` apart. */
static void moments(const double *x, int64_t n, int64_t step, double *mean, double *variance)
{
	double sum = 0, squares = 0;
	for (int64_t i = 0; i < n; i++)
		sum += x[i * step];
	*mean = sum / (double)n;
	for (int64_t i = 0; i < n; i++)
		squares += (x[i * step] - *mean) * (x[i * step] - *mean);
	*variance = squares / (double)n;
}

/* Running statistics after one more batch, whose variance is biased. The first forward of a step has state, a recompute none. */
static void update_running(const ck_op_desc *d, const ck_args *a, int64_t rows, int64_t c, double mean, double variance)
{
	double *rmean = a->state[RMEAN], *rvar = a->state[RVAR];
	double unbiased = variance * (double)rows / (double)(rows - 1);
	if (rmean)
		rmean[c] += d->attr.momentum * (mean - rmean[c]);
	if (rvar)
		rvar[c] += d->attr.momentum * (unbiased - rvar[c]);
}

void ck__ref_batchnorm_forward(const ck_op_desc *d, const ck_args *a)
{
	int64_t rows = ck_shape_rows(d->in[X].shape), channels = ck_shape_last(d->in[X].shape);
	int residual = ck_op_residual(d);
	const double *x = a->in[X], *gamma = a->in[GAMMA], *beta = a->in[BETA];
	const double *r = residual < 0 ? NULL : a->in[residual];
	double *y = a->out[0], *mean_stash = a->stash[0], *rstd_stash = a->stash[1];
	for (int64_t c = 0; c < channels; c++) {
		double mean, variance;
		if (d->attr.training) {
			moments(x + c, rows, channels, &mean, &variance);
			update_running(d, a, rows, c, mean, variance);
		} else {
			mean = ((const double *)a->in[RMEAN])[c];
			variance = ((const double *)a->in[RVAR])[c];
		}
		double rstd = 1 / sqrt(variance + d->attr.eps);
		if (d->attr.training)
			mean_stash[c] = mean, rstd_stash[c] = rstd;
		for (int64_t e = c; e < rows * channels; e += channels)
			y[e] = ck__ref_act(d->attr.act, gamma[c] * (x[e] - mean) * rstd + beta[c] + (r ? r[e] : 0));
	}
	int32_t *count = a->state[COUNT];
	if (d->attr.training && count)
		*count += 1;
}

/* The gradient that enters act: masked where the ReLU's output is zero. */
static double masked(const ck_op_desc *d, const ck_args *a, int64_t e)
{
	const double *dout = a->dout, *y = a->out[0];
	return d->attr.act == CK_ACT_RELU && y[e] <= 0 ? 0 : dout[e];
}

/* One channel's sums over the rows. */
typedef struct channel_sums {
	double g, g_xhat;
} channel_sums;

static channel_sums sum_channel(const ck_op_desc *d, const ck_args *a, int64_t c, double mean, double rstd, bool xhat)
{
	int64_t elements = ck_shape_count(d->in[X].shape), channels = ck_shape_last(d->in[X].shape);
	const double *x = a->in[X];
	channel_sums s = {0, 0};
	for (int64_t e = c; e < elements; e += channels) {
		double g = masked(d, a, e);
		s.g += g;
		if (xhat)
			s.g_xhat += g * (x[e] - mean) * rstd;
	}
	return s;
}

void ck__ref_batchnorm_backward(const ck_op_desc *d, const ck_args *a)
{
	int64_t rows = ck_shape_rows(d->in[X].shape), channels = ck_shape_last(d->in[X].shape);
	bool training = d->attr.training;
	int residual = ck_op_residual(d);
	double *dx = a->din[X], *dgamma = a->din[GAMMA], *dbeta = a->din[BETA], *dr = residual < 0 ? NULL : a->din[residual];
	const double *x = a->in[X], *gamma = a->in[GAMMA];
	const double *means = training ? a->stash[0] : a->in[RMEAN], *rvar = a->in[RVAR], *rstds = a->stash[1];
	bool xhat = dgamma || (training && dx); /* is anything asked for that depends on the normalised input? */
	for (int64_t c = 0; c < channels; c++) {
		double mean = xhat ? means[c] : 0;
		double rstd = !xhat && !dx ? 0 : training ? rstds[c] : 1 / sqrt(rvar[c] + d->attr.eps);
		channel_sums s = sum_channel(d, a, c, mean, rstd, xhat);
		if (dgamma)
			ck__ref_put(&dgamma[c], s.g_xhat, a->acc[GAMMA]);
		if (dbeta)
			ck__ref_put(&dbeta[c], s.g, a->acc[BETA]);
		for (int64_t e = c; e < rows * channels; e += channels) {
			double g = masked(d, a, e); /* read before dr or dx is written over it */
			double h = training && dx ? g - (s.g + (x[e] - mean) * rstd * s.g_xhat) / (double)rows : g;
			if (dx)
				ck__ref_put(&dx[e], gamma[c] * rstd * h, a->acc[X]);
			if (dr)
				ck__ref_put(&dr[e], g, a->acc[residual]);
		}
	}
}

void ck__ref_layernorm_forward(const ck_op_desc *d, const ck_args *a)
{
	int64_t rows = ck_shape_rows(d->in[X].shape), channels = ck_shape_last(d->in[X].shape);
	const double *gamma = a->in[GAMMA], *beta = a->in[BETA];
	double *xhats = ck_layernorm_stashes_xhat(d) ? a->stash[0] : NULL; // (M, C)
	double *means = xhats ? NULL : a->stash[0], *rstds = a->stash[1];  // (M)
	for (int64_t m = 0; m < rows; m++) {
		const double *x = (const double *)a->in[X] + m * channels;
		double *y = (double *)a->out[0] + m * channels, mean, variance;
		moments(x, channels, 1, &mean, &variance);
		rstds[m] = 1 / sqrt(variance + d->attr.eps);
		if (means)
			means[m] = mean;
		for (int64_t c = 0; c < channels; c++) {
			double xhat = (x[c] - mean) * rstds[m];
			y[c] = gamma[c] * xhat + beta[c];
			if (xhats)
				xhats[m * channels + c] = xhat;
		}
	}
}

/* The normalised input at row m, channel c, from what was stashed. */
static double normalised(const ck_op_desc *d, const ck_args *a, int64_t m, int64_t c)
{
	int64_t e = m * ck_shape_last(d->in[X].shape) + c;
	if (ck_layernorm_stashes_xhat(d))
		return ((const double *)a->stash[0])[e];
	return (((const double *)a->in[X])[e] - ((const double *)a->stash[0])[m]) * ((const double *)a->stash[1])[m];
}

static void layernorm_row_gradient(const ck_op_desc *d, const ck_args *a, int64_t m)
{
	int64_t channels = ck_shape_last(d->in[X].shape);
	const double *dout = (const double *)a->dout + m * channels, *gamma = a->in[GAMMA];
	double rstd = ((const double *)a->stash[1])[m];
	double *dx = (double *)a->din[X] + m * channels;
	double sum = 0, sum_xhat = 0, n = (double)channels;
	for (int64_t c = 0; c < channels; c++) {
		sum += gamma[c] * dout[c];
		sum_xhat += gamma[c] * dout[c] * normalised(d, a, m, c);
	}
	for (int64_t c = 0; c < channels; c++)
		ck__ref_put(&dx[c], rstd * (gamma[c] * dout[c] - sum / n - normalised(d, a, m, c) * sum_xhat / n), a->acc[X]);
}

void ck__ref_layernorm_backward(const ck_op_desc *d, const ck_args *a)
{
	int64_t rows = ck_shape_rows(d->in[X].shape), channels = ck_shape_last(d->in[X].shape);
	const double *dout = a->dout;
	double *dgamma = a->din[GAMMA], *dbeta = a->din[BETA];
	for (int64_t m = 0; a->din[X] && m < rows; m++)
		layernorm_row_gradient(d, a, m);
	for (int64_t c = 0; c < channels; c++) {
		double sum = 0, sum_xhat = 0;
		for (int64_t m = 0; m < rows; m++) {
			sum += dout[m * channels + c];
			if (dgamma)
				sum_xhat += dout[m * channels + c] * normalised(d, a, m, c);
		}
		if (dgamma)
			ck__ref_put(&dgamma[c], sum_xhat, a->acc[GAMMA]);
		if (dbeta)
			ck__ref_put(&dbeta[c], sum, a->acc[BETA]);
	}
}
