/* BATCHNORM, with ReLU and a residual in the same passes: y = act(gamma (x - mean) rstd + beta + r).
 *
 * By cuDNN where it has the whole op: in training, without ReLU and residual, in float32 and float16 (batchnorm_dnn.c). By own kernels the
 * rest: what is fused, so that it takes no passes of its own; bfloat16, which cuDNN is not said to normalise; evaluation, which cuDNN has
 * no backward for; and shapes larger than cuDNN takes.
 *
 * The desc alone decides, so that every plan has the same bits. For the forward it makes no difference which gradients are wanted: a graph
 * without a backward has the bits of one with it. A backward that need not give x's gradient is by own kernels, which make only
 * what is wanted. Mean and rstd are stashed alike by both. */
#include <stdlib.h>

#include "kernels/cuda/batchnorm.h"
#include "kernels/cuda/batchnorm_dnn.h"

enum { X, GAMMA, BETA, RMEAN, RVAR, COUNT, RESIDUAL };
enum { LEAST_ROWS = 8 }; /* a thread's */

typedef struct batchnorm_kernel {
	ck_cuda_kernel base;
	ck_columns columns;
	ck_batchnorm_dnn dnn; /* empty where all is by own kernels */
} batchnorm_kernel;

static void forward(const ck_kernel *kernel, const ck_args *a)
{
	const batchnorm_kernel *k = (const batchnorm_kernel *)kernel;
	const ck_op_desc *d = &k->base.desc;
	cudaStream_t stream = k->base.device->stream;
	const float *mean = a->in[RMEAN], *rstd = NULL;
	if (d->attr.training) {
		ck__batchnorm_statistics(stream, &k->columns, d->in[X].dtype, d->attr.eps, d->attr.momentum, a->in[X],
					 a->workspace, a->stash[0], a->stash[1], a->state[RMEAN], a->state[RVAR],
					 a->state[COUNT]);
		mean = a->stash[0], rstd = a->stash[1];
	}
	ck__batchnorm_apply(stream, &k->columns, d->in[X].dtype, d->attr.act == CK_ACT_RELU, d->attr.eps, a->in[X], mean, rstd,
			    a->in[RVAR], a->in[GAMMA], a->in[BETA], d->attr.residual ? a->in[RESIDUAL] : NULL, a->out[0]);
}

static void backward(const ck_kernel *kernel, const ck_args *a)
{
	const batchnorm_kernel *k = (const batchnorm_kernel *)kernel;
	const ck_op_desc *d = &k->base.desc;
	cudaStream_t stream = k->base.device->stream;
	ck_dtype t = d->in[X].dtype;
	bool training = d->attr.training, want_x = a->din[X];
	const void *y = d->attr.act == CK_ACT_RELU ? a->out[0] : NULL;
	const void *x = a->din[GAMMA] || (training && want_x) ? a->in[X] : NULL;
	const float *mean = training ? a->stash[0] : a->in[RMEAN], *rstd = training ? a->stash[1] : NULL;
	const float *variance = training ? NULL : a->in[RVAR];
	if (a->din[GAMMA] || a->din[BETA] || (training && want_x))
		ck__batchnorm_sums(stream, &k->columns, t, d->attr.eps, a->dout, y, x, mean, rstd, variance, a->workspace,
				   a->din[GAMMA], a->acc[GAMMA], a->din[BETA], a->acc[BETA]);
	if (want_x || a->din[RESIDUAL])
		ck__batchnorm_gradient(stream, &k->columns, t, d->attr.eps, training && want_x, a->dout, y, x, mean, rstd,
				       variance, a->in[GAMMA], a->workspace, a->din[X], a->acc[X], a->din[RESIDUAL],
				       a->acc[RESIDUAL]);
}

/* ---- cuDNN's, and the choice ---------------------------------------------------------------------------------------------- */

static void dnn_forward(const ck_kernel *kernel, const ck_args *a)
{
	const batchnorm_kernel *k = (const batchnorm_kernel *)kernel;
	ck__batchnorm_dnn_forward(k->base.device, &k->base.desc, &k->dnn, a);
}

static void dnn_backward(const ck_kernel *kernel, const ck_args *a)
{
	const batchnorm_kernel *k = (const batchnorm_kernel *)kernel;
	ck__batchnorm_dnn_backward(k->base.device, &k->base.desc, &k->dnn, a);
}

static void destroy(ck_cuda_kernel *kernel)
{
	batchnorm_kernel *k = (batchnorm_kernel *)kernel;
	ck__batchnorm_dnn_close(&k->dnn);
	free(k);
}

/* The forward, and the backward where it has to give x's gradient. */
static void take_dnn(batchnorm_kernel *k)
{
	const ck_op_desc *d = &k->base.desc;
	k->dnn = ck__batchnorm_dnn_open(d);
	k->base.base.forward = dnn_forward;
	k->base.base.workspace_forward = ck__batchnorm_dnn_forward_bytes(d);
	if (ck_op_wants(d, X)) {
		k->base.base.backward = dnn_backward;
		k->base.base.workspace_backward = ck__batchnorm_dnn_backward_bytes(d);
	}
}

ck_status ck__cuda_batchnorm(ck_device *device, const ck_op_desc *desc, ck_kernel **kernel, ck_err *err)
{
	(void)err;
	batchnorm_kernel *k = ck__cuda_kernel_new(device, desc, sizeof *k);
	ck_shape x = desc->in[X].shape;
	k->columns = ck__columns(device, ck_shape_rows(x), ck_shape_last(x), LEAST_ROWS);
	k->base.destroy = destroy;
	k->base.base.forward = forward;
	k->base.base.workspace_forward = desc->attr.training ? ck__batchnorm_workspace(&k->columns) : 0;
	if (desc->needs) {
		k->base.base.backward = backward;
		k->base.base.workspace_backward = ck__batchnorm_workspace(&k->columns);
	}
	if (ck__batchnorm_dnn_has(desc))
		take_dnn(k);
	*kernel = &k->base.base;
	return CK_OK;
}
