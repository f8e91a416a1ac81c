/* XENT: mean over rows of lse - logit[target], where lse = log(sum(exp(logits))) is stashed, so that the backward needs one
 * pass: dlogits = (exp(logits - lse) - [target]) dloss / rows, in place if asked. Bound by memory: one reading forward, one
 * reading and one writing backward. */
#include "kernels/cpu/parallel.h"

enum { LOGITS, TARGET };

static void forward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_cpu_kernel *k = ck__cpu_kernel(kernel);
	const ck_vec_rows *vec = k->device->vec->rows;
	int64_t rows = ck_shape_rows(k->desc.in[LOGITS].shape), cols = ck_shape_last(k->desc.in[LOGITS].shape);
	const ck_stored *logits = a->in[LOGITS]; /* (rows, cols) */
	const int32_t *target = a->in[TARGET];   /* (rows) */
	float *lse = a->stash[0], *row_loss = a->workspace;
	int team = ck__team(k->device, rows * cols);
#pragma omp parallel for num_threads(team) schedule(static) if (team > 1)
	for (int64_t row = 0; row < rows; row++) {
		lse[row] = vec->log_sum_exp(cols, logits + row * cols);
		row_loss[row] = lse[row] - logits[row * cols + target[row]];
	}
	double sum = 0;
	for (int64_t row = 0; row < rows; row++)
		sum += row_loss[row];
	*(float *)a->out[0] = (float)(sum / (double)rows);
}

static void backward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_cpu_kernel *k = ck__cpu_kernel(kernel);
	const ck_vec_rows *vec = k->device->vec->rows;
	int64_t rows = ck_shape_rows(k->desc.in[LOGITS].shape), cols = ck_shape_last(k->desc.in[LOGITS].shape);
	const ck_stored *logits = a->in[LOGITS]; /* (rows, cols) */
	const int32_t *target = a->in[TARGET];   /* (rows) */
	const float *lse = a->stash[0];          /* (rows) */
	ck_stored *dlogits = a->din[LOGITS];
	float scale = (a->dout ? *(const float *)a->dout : (float)a->dloss) / (float)rows;
	int team = ck__team(k->device, rows * cols);
#pragma omp parallel for num_threads(team) schedule(static) if (team > 1)
	for (int64_t row = 0; row < rows; row++) {
		vec->exp_scaled(cols, lse[row], scale, logits + row * cols, dlogits + row * cols, a->acc[LOGITS]);
		dlogits[row * cols + target[row]] -= scale;
	}
}

ck_status ck__cpu_xent(ck_device *device, const ck_op_desc *desc, ck_kernel **kernel, ck_err *err)
{
	if (ck__vec_kernel(device, desc, forward, backward, kernel, err) != CK_OK)
		return CK_USAGE;
	(*kernel)->workspace_forward = (size_t)ck_shape_rows(desc->in[LOGITS].shape) * sizeof(float);
	return CK_OK;
}
