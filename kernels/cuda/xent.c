/* XENT: mean over rows of lse - logit[target]; lse is stashed, so that the backward needs one pass. */
#include "kernels/cuda/xent.h"

enum { LOGITS, TARGET };

static void forward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_cuda_kernel *k = (const ck_cuda_kernel *)kernel;
	const ck_tensor_desc *logits = &k->desc.in[LOGITS];
	ck__cuda_xent_forward(k->device->stream, logits->dtype, ck_shape_rows(logits->shape), ck_shape_last(logits->shape),
			      a->in[LOGITS], a->in[TARGET], a->stash[0], a->workspace, a->out[0]);
}

static void backward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_cuda_kernel *k = (const ck_cuda_kernel *)kernel;
	const ck_tensor_desc *logits = &k->desc.in[LOGITS];
	ck__cuda_xent_backward(k->device->stream, logits->dtype, ck_shape_rows(logits->shape), ck_shape_last(logits->shape),
			       a->in[LOGITS], a->in[TARGET], a->stash[0], a->dout, (float)a->dloss, a->din[LOGITS],
			       a->acc[LOGITS]);
}

ck_status ck__cuda_xent(ck_device *device, const ck_op_desc *desc, ck_kernel **kernel, ck_err *err)
{
	(void)err;
	*kernel = ck__cuda_plain_kernel(device, desc, forward, backward);
	(*kernel)->workspace_forward = (size_t)ck_shape_rows(desc->in[LOGITS].shape) * sizeof(float);
	return CK_OK;
}
