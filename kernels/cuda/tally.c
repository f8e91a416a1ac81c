/* TALLY: y = x, and a count of which channel was the largest of its row. */
#include "kernels/cuda/pass.h"
#include "kernels/cuda/tally.h"

enum { X, LOAD, CALLS };

static void forward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_cuda_kernel *k = (const ck_cuda_kernel *)kernel;
	const ck_tensor_desc *x = &k->desc.in[X];
	if (a->state[LOAD])
		ck__cuda_tally_count(k->device->stream, x->dtype, ck_shape_rows(x->shape), ck_shape_last(x->shape), a->in[X],
				     a->state[LOAD], a->state[CALLS]);
	ck__cuda_pass(k->device->stream, ck_shape_count(x->shape), x->dtype, a->in[X], x->dtype, a->out[0], false);
}

ck_status ck__cuda_tally(ck_device *device, const ck_op_desc *desc, ck_kernel **kernel, ck_err *err)
{
	(void)err;
	*kernel = ck__cuda_plain_kernel(device, desc, forward, ck__cuda_pass_backward);
	return CK_OK;
}
