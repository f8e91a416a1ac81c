/* ADD: y = a + b; FLATTEN: the same bytes under another shape; CAST: the same values in another dtype. Their gradients are passed
 * on unchanged; an executor that lets the gradient take over the output gradient's buffer pays nothing for it. */
#include "kernels/cpu/parallel.h"

/* Onto the operand that is of the sum's dtype. */
static void add_forward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_cpu_kernel *k = ck__cpu_kernel(kernel);
	const ck_op_desc *d = &k->desc;
	int own = d->in[0].dtype == d->out[0].dtype ? 0 : 1;
	ck__add(k->device, ck_shape_count(d->out[0].shape), d->out[0].dtype, a->in[own], d->in[1 - own].dtype, a->in[1 - own],
		a->out[0]);
}

static void pass_forward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_cpu_kernel *k = ck__cpu_kernel(kernel);
	const ck_op_desc *d = &k->desc;
	ck__pass(k->device, ck_shape_count(d->in[0].shape), d->in[0].dtype, a->in[0], d->out[0].dtype, a->out[0], false);
}

/* What is of another dtype than dout first: the other gradient may take dout's place. */
static void pass_backward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_cpu_kernel *k = ck__cpu_kernel(kernel);
	const ck_op_desc *d = &k->desc;
	ck_dtype t = ck_op_dout(d).dtype;
	for (int same = 0; same < 2; same++)
		for (int i = 0; i < d->nin; i++)
			if (a->din[i] && (d->in[i].dtype == t) == same)
				ck__pass(k->device, ck_shape_count(d->out[0].shape), t, a->dout, d->in[i].dtype, a->din[i],
					 a->acc[i]);
}

ck_status ck__cpu_add(ck_device *device, const ck_op_desc *desc, ck_kernel **kernel, ck_err *err)
{
	return ck__vec_kernel(device, desc, add_forward, pass_backward, kernel, err);
}

ck_status ck__cpu_flatten(ck_device *device, const ck_op_desc *desc, ck_kernel **kernel, ck_err *err)
{
	return ck__vec_kernel(device, desc, pass_forward, pass_backward, kernel, err);
}

ck_status ck__cpu_cast(ck_device *device, const ck_op_desc *desc, ck_kernel **kernel, ck_err *err)
{
	return ck__vec_kernel(device, desc, pass_forward, pass_backward, kernel, err);
}
