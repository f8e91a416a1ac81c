/* AVGPOOL: cuDNN's pooling by averages that count the padding, over NHWC images; kernels of its own in bfloat16, in which cuDNN is not said to pool.
 *
 * cuDNN's backward takes x and y too, as pools by maximum need them. Averages do not depend on them and the contract does not keep them: dx
 * and dy stand in, which have their shapes. */
#include <stdlib.h>

#include "kernels/cuda/avgpool.h"
#include "kernels/cuda/dnn.h"

typedef struct pool_kernel {
	ck_cuda_kernel base;
	cudnnTensorDescriptor_t x, y;
	cudnnPoolingDescriptor_t pool;
} pool_kernel;

static const float one = 1, zero = 0;

static void forward(const ck_kernel *kernel, const ck_args *a)
{
	const pool_kernel *k = (const pool_kernel *)kernel;
	CK_CUDA(cudnnPoolingForward(k->base.device->dnn, k->pool, &one, k->x, a->in[0], &zero, k->y, a->out[0]));
}

static void backward(const ck_kernel *kernel, const ck_args *a)
{
	const pool_kernel *k = (const pool_kernel *)kernel;
	CK_CUDA(cudnnPoolingBackward(k->base.device->dnn, k->pool, &one, k->y, a->dout, k->y, a->dout, k->x, a->din[0],
				     a->acc[0] ? &one : &zero, k->x, a->din[0]));
}

static void own_forward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_cuda_kernel *k = (const ck_cuda_kernel *)kernel;
	ck__cuda_avgpool_forward(k->device->stream, k->desc.in[0].dtype, ck__window_of(&k->desc), a->in[0], a->out[0]);
}

static void own_backward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_cuda_kernel *k = (const ck_cuda_kernel *)kernel;
	ck__cuda_avgpool_backward(k->device->stream, k->desc.in[0].dtype, ck__window_of(&k->desc), a->dout, a->din[0],
				  a->acc[0]);
}

static void destroy(ck_cuda_kernel *kernel)
{
	pool_kernel *k = (pool_kernel *)kernel;
	if (k->pool)
		cudnnDestroyPoolingDescriptor(k->pool);
	if (k->y)
		cudnnDestroyTensorDescriptor(k->y);
	if (k->x)
		cudnnDestroyTensorDescriptor(k->x);
	free(k);
}

ck_status ck__cuda_avgpool(ck_device *device, const ck_op_desc *desc, ck_kernel **kernel, ck_err *err)
{
	const ck_attr *a = &desc->attr;
	if (desc->in[0].dtype == CK_BF16) {
		*kernel = ck__cuda_plain_kernel(device, desc, own_forward, own_backward);
		return CK_OK;
	}
	pool_kernel *k = ck__cuda_kernel_new(device, desc, sizeof *k);
	k->base.destroy = destroy;
	k->base.base.forward = forward;
	k->base.base.backward = desc->needs ? backward : NULL;
	if (ck__dnn_tensor("x", &desc->in[0], &k->x, err) != CK_OK || ck__dnn_tensor("y", &desc->out[0], &k->y, err) != CK_OK) {
		destroy(&k->base);
		return CK_USAGE;
	}
	CK_CUDA(cudnnCreatePoolingDescriptor(&k->pool));
	CK_CUDA(cudnnSetPooling2dDescriptor(k->pool, CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING, CUDNN_PROPAGATE_NAN, a->kh,
					    a->kw, a->pad, a->pad, a->stride, a->stride));
	*kernel = &k->base.base;
	return CK_OK;
}
