/* MAXPOOL over NHWC images. cuDNN's does not tell which place of the window was chosen, and its backward reads x and y again. */
#include "kernels/cuda/maxpool.h"

static void forward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_cuda_kernel *k = (const ck_cuda_kernel *)kernel;
	ck__cuda_maxpool_forward(k->device->stream, k->desc.in[0].dtype, ck__window_of(&k->desc), a->in[0], a->out[0],
				 a->stash[0]);
}

static void backward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_cuda_kernel *k = (const ck_cuda_kernel *)kernel;
	ck__cuda_maxpool_backward(k->device->stream, k->desc.in[0].dtype, ck__window_of(&k->desc), a->dout, a->stash[0],
				  a->din[0], a->acc[0]);
}

ck_status ck__cuda_maxpool(ck_device *device, const ck_op_desc *desc, ck_kernel **kernel, ck_err *err)
{
	(void)err;
	*kernel = ck__cuda_plain_kernel(device, desc, forward, backward);
	return CK_OK;
}
