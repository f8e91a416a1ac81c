/* ADD: y = a + b, and FLATTEN: the same bytes under another shape. Their gradients are passed on unchanged; an executor that
 * lets the gradient take over the output gradient's buffer pays nothing for it. */
#include "kernels/cpu/parallel.h"

static void add_forward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_cpu_kernel *k = ck__cpu_kernel(kernel);
	ck__add(k->device, ck_shape_count(k->desc.out[0].shape), a->in[0], a->in[1], a->out[0]);
}

static void flatten_forward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_cpu_kernel *k = ck__cpu_kernel(kernel);
	ck__copy(k->device, ck_shape_count(k->desc.out[0].shape), a->in[0], a->out[0]);
}

static void pass_backward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_cpu_kernel *k = ck__cpu_kernel(kernel);
	for (int i = 0; i < k->desc.nin; i++)
		if (a->din[i])
			ck__pass(k->device, ck_shape_count(k->desc.out[0].shape), a->dout, a->din[i], a->acc[i]);
}

ck_status ck__cpu_add(ck_device *device, const ck_op_desc *desc, ck_kernel **kernel, ck_err *err)
{
	return ck__vec_kernel(device, desc, add_forward, pass_backward, kernel, err);
}

ck_status ck__cpu_flatten(ck_device *device, const ck_op_desc *desc, ck_kernel **kernel, ck_err *err)
{
	return ck__vec_kernel(device, desc, flatten_forward, pass_backward, kernel, err);
}
