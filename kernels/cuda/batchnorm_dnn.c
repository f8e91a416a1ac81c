/* The plain BATCHNORM by cuDNN, mode SPATIAL, over NHWC: images as they are, anything else as images of one place each. The stash is what cuDNN
 * saves: the mean and 1 / sqrt(variance + eps). Its algorithm is cuDNN's affair; it is not among the calls of which cuDNN says that their
 * bits differ from run to run (its documentation, "Reproducibility").
 *
 * Every plan makes the same calls, whatever is a recompute and whatever buffers coincide:
 *   - cuDNN's forward moves running statistics too. In a recompute those are two vectors of the workspace, which hold anything and
 *     are not read again
 *   - cuDNN's backward writes to the workspace, from where gradients are passed on: dx may lie over dy here, of which cuDNN says nothing,
 *     and dgamma be added to where dbeta is written, for which cuDNN has one factor */
#include "kernels/cuda/batchnorm_dnn.h"

#include <limits.h>

#include "kernels/cuda/batchnorm.h"
#include "kernels/cuda/dnn.h"
#include "kernels/cuda/pass.h"
#include "kernels/cuda/workspace.h"

enum { X, GAMMA, BETA, RMEAN, RVAR, COUNT };

#define MODE CUDNN_BATCHNORM_SPATIAL

/* cuDNN takes no more in evaluation; in training it takes more, but how many is written nowhere. */
enum { MOST_IMAGES = 65535 };

static const float one = 1, zero = 0;

/* x as (N,H,W,C). */
static ck_shape images_of(const ck_op_desc *desc)
{
	ck_shape x = desc->in[X].shape;
	return x.nd == 4 ? x : (ck_shape){4, {ck_shape_rows(x), 1, 1, ck_shape_last(x)}};
}

bool ck__batchnorm_dnn_has(const ck_op_desc *desc)
{
	const ck_attr *a = &desc->attr;
	bool plain = a->training && a->act == CK_ACT_NONE && !a->residual && desc->in[X].dtype != CK_BF16;
	return plain && images_of(desc).d[0] <= MOST_IMAGES && ck_shape_count(desc->in[X].shape) <= INT_MAX;
}

ck_batchnorm_dnn ck__batchnorm_dnn_open(const ck_op_desc *desc)
{
	ck_batchnorm_dnn dnn;
	ck_shape x = images_of(desc);
	CK_CUDA(cudnnCreateTensorDescriptor(&dnn.x));
	CK_CUDA(cudnnSetTensor4dDescriptor(dnn.x, CUDNN_TENSOR_NHWC, ck__dnn_type(desc->in[X].dtype), (int)x.d[0], (int)x.d[3],
					   (int)x.d[1], (int)x.d[2]));
	CK_CUDA(cudnnCreateTensorDescriptor(&dnn.vector));
	CK_CUDA(cudnnDeriveBNTensorDescriptor(dnn.vector, dnn.x, MODE));
	return dnn;
}

void ck__batchnorm_dnn_close(ck_batchnorm_dnn *dnn)
{
	if (dnn->vector)
		cudnnDestroyTensorDescriptor(dnn->vector);
	if (dnn->x)
		cudnnDestroyTensorDescriptor(dnn->x);
}

/* Where the next tensor begins in a workspace. */
static size_t tensor_bytes(const ck_tensor_desc *t)
{
	return ck__aligned((size_t)ck_shape_count(t->shape) * ck_dtype_size(t->dtype));
}

size_t ck__batchnorm_dnn_forward_bytes(const ck_op_desc *desc)
{
	return tensor_bytes(&desc->in[RMEAN]) + tensor_bytes(&desc->in[RVAR]);
}

void ck__batchnorm_dnn_forward(ck_device *device, const ck_op_desc *desc, const ck_batchnorm_dnn *dnn, const ck_args *a)
{
	char *aside = a->workspace;
	void *mean = a->state[RMEAN] ? a->state[RMEAN] : aside;
	void *variance = a->state[RVAR] ? a->state[RVAR] : aside + tensor_bytes(&desc->in[RMEAN]);
	CK_CUDA(cudnnBatchNormalizationForwardTraining(device->dnn, MODE, &one, &zero, dnn->x, a->in[X], dnn->x, a->out[0],
						       dnn->vector, a->in[GAMMA], a->in[BETA], desc->attr.momentum, mean,
						       variance, desc->attr.eps, a->stash[0], a->stash[1]));
	if (a->state[COUNT])
		ck__batchnorm_count(device->stream, a->state[COUNT]);
}

size_t ck__batchnorm_dnn_backward_bytes(const ck_op_desc *desc)
{
	return tensor_bytes(&desc->in[X]) + tensor_bytes(&desc->in[GAMMA]) + tensor_bytes(&desc->in[BETA]);
}

void ck__batchnorm_dnn_backward(ck_device *device, const ck_op_desc *desc, const ck_batchnorm_dnn *dnn, const ck_args *a)
{
	char *dx = a->workspace, *dgamma = dx + tensor_bytes(&desc->in[X]), *dbeta = dgamma + tensor_bytes(&desc->in[GAMMA]);
	const void *const made[] = {[X] = dx, [GAMMA] = dgamma, [BETA] = dbeta};
	CK_CUDA(cudnnBatchNormalizationBackward(device->dnn, MODE, &one, &zero, &one, &zero, dnn->x, a->in[X], dnn->x, a->dout,
						dnn->x, dx, dnn->vector, a->in[GAMMA], dgamma, dbeta, desc->attr.eps,
						a->stash[0], a->stash[1]));
	for (int i = X; i <= BETA; i++)
		if (a->din[i])
			ck__cuda_pass(device->stream, ck_shape_count(desc->in[i].shape), desc->in[i].dtype, made[i],
				      desc->in[i].dtype, a->din[i], a->acc[i]);
}
