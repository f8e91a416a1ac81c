/* ACT: y = act(x). ReLU's backward reads y (so x may have been overwritten), GELU's reads x. */
#include "kernels/cuda/act.h"

static void forward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_cuda_kernel *k = (const ck_cuda_kernel *)kernel;
	const ck_tensor_desc *x = &k->desc.in[0];
	ck__cuda_act_forward(k->device->stream, x->dtype, k->desc.attr.act, ck_shape_count(x->shape), a->in[0], a->out[0]);
}

static void backward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_cuda_kernel *k = (const ck_cuda_kernel *)kernel;
	const ck_tensor_desc *x = &k->desc.in[0];
	ck_act act = k->desc.attr.act;
	ck__cuda_act_backward(k->device->stream, x->dtype, act, ck_shape_count(x->shape), a->dout,
			      act == CK_ACT_RELU ? a->out[0] : a->in[0], a->din[0], a->acc[0]);
}

ck_status ck__cuda_act(ck_device *device, const ck_op_desc *desc, ck_kernel **kernel, ck_err *err)
{
	(void)err;
	*kernel = ck__cuda_plain_kernel(device, desc, forward, backward);
	return CK_OK;
}
