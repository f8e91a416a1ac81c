/* DROPOUT: y = r + x keep / (1 - p). The backward draws the same mask again from the counter. */
#include "kernels/cpu/parallel.h"

static void forward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_cpu_kernel *k = ck__cpu_kernel(kernel);
	ck_drop drop = ck__drop(k->desc.attr.p, a);
	int64_t n = ck_shape_count(k->desc.in[0].shape);
	ck__dropout_forward(k->device, &drop, n, k->desc.in[0].dtype, a->in[0], k->desc.out[0].dtype,
			    k->desc.attr.residual ? a->in[1] : NULL, a->out[0]);
}

/* dx first: dr may take the place of dout, and stay as it is. */
static void backward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_cpu_kernel *k = ck__cpu_kernel(kernel);
	ck_drop drop = ck__drop(k->desc.attr.p, a);
	int64_t n = ck_shape_count(k->desc.in[0].shape);
	ck_dtype t = k->desc.out[0].dtype;
	if (a->din[0])
		ck__dropout_backward(k->device, &drop, n, t, a->dout, k->desc.in[0].dtype, a->din[0], a->acc[0]);
	if (a->din[1])
		ck__pass(k->device, n, t, a->dout, t, a->din[1], a->acc[1]);
}

ck_status ck__cpu_dropout(ck_device *device, const ck_op_desc *desc, ck_kernel **kernel, ck_err *err)
{
	return ck__vec_kernel(device, desc, forward, backward, kernel, err);
}
