/* XENT: the mean over rows of lse - logit[target], with lse = log sum exp of the row's logits. */
#include "kernels/ref/ref.h"

#include <math.h>

static double log_sum_exp(const double *logits, int64_t n)
{
	double max = logits[0], sum = 0;
	for (int64_t v = 1; v < n; v++)
		max = logits[v] > max ? logits[v] : max;
	for (int64_t v = 0; v < n; v++)
		sum += exp(logits[v] - max);
	return max + log(sum);
}

void ck__ref_xent_forward(const ck_op_desc *d, const ck_args *a)
{
	int64_t rows = ck_shape_rows(d->in[0].shape), classes = ck_shape_last(d->in[0].shape);
	const double *logits = a->in[0];              // (M, V)
	const int32_t *target = a->in[1];             // (M)
	double *loss = a->out[0], *lse = a->stash[0]; // (1), (M)
	double sum = 0;
	for (int64_t m = 0; m < rows; m++) {
		lse[m] = log_sum_exp(logits + m * classes, classes);
		sum += lse[m] - logits[m * classes + target[m]];
	}
	*loss = sum / (double)rows;
}

/* dlogits = (softmax - one at the target) / M * dout; it may lie over the logits. */
void ck__ref_xent_backward(const ck_op_desc *d, const ck_args *a)
{
	int64_t rows = ck_shape_rows(d->in[0].shape), classes = ck_shape_last(d->in[0].shape);
	const double *logits = a->in[0], *lse = a->stash[0];
	const int32_t *target = a->in[1];
	double *dlogits = a->din[0], scale = (a->dout ? *(const double *)a->dout : a->dloss) / (double)rows;
	for (int64_t e = 0; e < rows * classes; e++) {
		double p = exp(logits[e] - lse[e / classes]);
		ck__ref_put(&dlogits[e], scale * (p - (target[e / classes] == e % classes)), a->acc[0]);
	}
}
