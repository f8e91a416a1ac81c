/* SOFTMAX over the last extent. */
#include "kernels/cuda/softmax.h"

static void forward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_cuda_kernel *k = (const ck_cuda_kernel *)kernel;
	const ck_tensor_desc *s = &k->desc.in[0];
	ck__cuda_softmax_forward(k->device->stream, s->dtype, k->desc.attr.causal, ck_shape_rows(s->shape),
				 ck_shape_last(s->shape), a->in[0], a->out[0]);
}

static void backward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_cuda_kernel *k = (const ck_cuda_kernel *)kernel;
	const ck_tensor_desc *s = &k->desc.in[0];
	ck__cuda_softmax_backward(k->device->stream, s->dtype, k->desc.attr.causal, ck_shape_rows(s->shape),
				  ck_shape_last(s->shape), a->out[0], a->dout, a->din[0], a->acc[0]);
}

ck_status ck__cuda_softmax(ck_device *device, const ck_op_desc *desc, ck_kernel **kernel, ck_err *err)
{
	(void)err;
	*kernel = ck__cuda_plain_kernel(device, desc, forward, backward);
	return CK_OK;
}
