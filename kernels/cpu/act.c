/* ACT: y = act(x). ReLU's backward reads y (so x may have been overwritten), GELU's reads x. */
#include "kernels/cpu/parallel.h"

static void forward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_cpu_kernel *k = ck__cpu_kernel(kernel);
	ck__act_forward(k->device, k->desc.in[0].dtype, k->desc.attr.act, ck_shape_count(k->desc.in[0].shape), a->in[0],
			a->out[0]);
}

static void backward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_cpu_kernel *k = ck__cpu_kernel(kernel);
	ck_act act = k->desc.attr.act;
	const void *saved = act == CK_ACT_RELU ? a->out[0] : a->in[0];
	ck__act_backward(k->device, k->desc.in[0].dtype, act, ck_shape_count(k->desc.in[0].shape), a->dout, saved, a->din[0],
			 a->acc[0]);
}

ck_status ck__cpu_act(ck_device *device, const ck_op_desc *desc, ck_kernel **kernel, ck_err *err)
{
	return ck__vec_kernel(device, desc, forward, backward, kernel, err);
}
