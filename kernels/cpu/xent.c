/* XENT: mean over rows of lse - logit[target], where lse = log(sum(exp(logits))) is stashed, so that the backward needs one
 * pass: dlogits = (exp(logits - lse) - [target]) dloss / rows, in place if asked. Bound by memory: one reading forward, one
 * reading and one writing backward. */
#include <math.h>

#include "kernels/cpu/parallel.h"

enum { LOGITS, TARGET };

static void forward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_cpu_kernel *k = ck__cpu_kernel(kernel);
	ck_dtype t = k->desc.in[LOGITS].dtype;
	const ck_vec_rows *vec = ck__vec(k->device, t)->rows;
	int64_t rows = ck_shape_rows(k->desc.in[LOGITS].shape), cols = ck_shape_last(k->desc.in[LOGITS].shape);
	const int32_t *target = a->in[TARGET]; /* (rows) */
	float *lse = a->stash[0], *row_loss = a->workspace;
	int team = ck__team(k->device, rows * cols);
#pragma omp parallel for num_threads(team) schedule(static) if (team > 1)
	for (int64_t row = 0; row < rows; row++) {
		const ck_stored *logits = ck__at(t, a->in[LOGITS], row * cols); /* (cols) */
		lse[row] = vec->log_sum_exp(cols, logits);
		row_loss[row] = lse[row] - (float)ck_element_get(t, logits, target[row]);
	}
	double sum = 0;
	for (int64_t row = 0; row < rows; row++)
		sum += row_loss[row];
	*(float *)a->out[0] = (float)(sum / (double)rows);
}

/* The target's own gradient is worked out apart, so that it is rounded once. */
static void backward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_cpu_kernel *k = ck__cpu_kernel(kernel);
	ck_dtype t = k->desc.in[LOGITS].dtype;
	const ck_vec_rows *vec = ck__vec(k->device, t)->rows;
	int64_t rows = ck_shape_rows(k->desc.in[LOGITS].shape), cols = ck_shape_last(k->desc.in[LOGITS].shape);
	const int32_t *target = a->in[TARGET]; /* (rows) */
	const float *lse = a->stash[0];        /* (rows) */
	float scale = (a->dout ? *(const float *)a->dout : (float)a->dloss) / (float)rows;
	int team = ck__team(k->device, rows * cols);
#pragma omp parallel for num_threads(team) schedule(static) if (team > 1)
	for (int64_t row = 0; row < rows; row++) {
		const ck_stored *logits = ck__at(t, a->in[LOGITS], row * cols); /* (cols) */
		ck_stored *dlogits = ck__at(t, a->din[LOGITS], row * cols);
		float chosen = (expf((float)ck_element_get(t, logits, target[row]) - lse[row]) - 1.0f) * scale;
		double before = a->acc[LOGITS] ? ck_element_get(t, dlogits, target[row]) : 0;
		vec->exp_scaled(cols, lse[row], scale, logits, dlogits, a->acc[LOGITS]);
		ck_element_put(t, dlogits, target[row], before + (double)chosen);
	}
}

ck_status ck__cpu_xent(ck_device *device, const ck_op_desc *desc, ck_kernel **kernel, ck_err *err)
{
	if (ck__vec_kernel(device, desc, forward, backward, kernel, err) != CK_OK)
		return CK_USAGE;
	(*kernel)->workspace_forward = (size_t)ck_shape_rows(desc->in[LOGITS].shape) * sizeof(float);
	return CK_OK;
}
