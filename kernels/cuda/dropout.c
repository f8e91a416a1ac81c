/* DROPOUT: y = r + x keep / (1 - p). The backward draws the same mask again from the counter. */
#include "kernels/cuda/dropout.h"
#include "kernels/cuda/pass.h"

static void forward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_cuda_kernel *k = (const ck_cuda_kernel *)kernel;
	const ck_op_desc *d = &k->desc;
	ck__cuda_dropout_forward(k->device->stream, ck_drop_of(d->attr.p, a), a->mask, ck_shape_count(d->in[0].shape),
				 d->in[0].dtype, a->in[0], d->out[0].dtype, d->attr.residual ? a->in[1] : NULL, a->out[0]);
}

/* dx first: dr may take the place of dout, and stay as it is. */
static void backward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_cuda_kernel *k = (const ck_cuda_kernel *)kernel;
	const ck_op_desc *d = &k->desc;
	int64_t n = ck_shape_count(d->in[0].shape);
	ck_dtype t = d->out[0].dtype;
	if (a->din[0])
		ck__cuda_dropout_backward(k->device->stream, ck_drop_of(d->attr.p, a), a->mask, n, t, a->dout, d->in[0].dtype,
					  a->din[0], a->acc[0]);
	if (a->din[1])
		ck__cuda_pass(k->device->stream, n, t, a->dout, t, a->din[1], a->acc[1]);
}

ck_status ck__cuda_dropout(ck_device *device, const ck_op_desc *desc, ck_kernel **kernel, ck_err *err)
{
	(void)err;
	*kernel = ck__cuda_plain_kernel(device, desc, forward, backward);
	return CK_OK;
}
