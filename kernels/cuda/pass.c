/* FLATTEN: the same bytes under another shape; CAST: the same values in another dtype. Gradients are passed on unchanged, here and by
 * ADD and TALLY; an executor that lets the gradient take over the output gradient's buffer pays nothing for it. */
#include "kernels/cuda/pass.h"

static void forward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_cuda_kernel *k = (const ck_cuda_kernel *)kernel;
	const ck_op_desc *d = &k->desc;
	ck__cuda_pass(k->device->stream, ck_shape_count(d->in[0].shape), d->in[0].dtype, a->in[0], d->out[0].dtype, a->out[0],
		      false);
}

void ck__cuda_pass_backward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_cuda_kernel *k = (const ck_cuda_kernel *)kernel;
	const ck_op_desc *d = &k->desc;
	ck_dtype t = ck_op_dout(d).dtype;
	for (int same = 0; same < 2; same++)
		for (int i = 0; i < d->nin; i++)
			if (a->din[i] && (d->in[i].dtype == t) == same)
				ck__cuda_pass(k->device->stream, ck_shape_count(d->out[0].shape), t, a->dout, d->in[i].dtype,
					      a->din[i], a->acc[i]);
}

ck_status ck__cuda_flatten(ck_device *device, const ck_op_desc *desc, ck_kernel **kernel, ck_err *err)
{
	(void)err;
	*kernel = ck__cuda_plain_kernel(device, desc, forward, ck__cuda_pass_backward);
	return CK_OK;
}

ck_status ck__cuda_cast(ck_device *device, const ck_op_desc *desc, ck_kernel **kernel, ck_err *err)
{
	return ck__cuda_flatten(device, desc, kernel, err);
}
