/* LAYERNORM: y = gamma (x - mean) rstd + beta, mean and rstd of each row. */
#include "kernels/cuda/layernorm.h"

enum { X, GAMMA, BETA };

/* For the sums over rows. */
static ck_columns columns_of(const ck_device *device, const ck_op_desc *d)
{
	enum { LEAST_ROWS = 8 };
	return ck__columns(device, ck_shape_rows(d->in[X].shape), ck_shape_last(d->in[X].shape), LEAST_ROWS);
}

static void forward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_cuda_kernel *k = (const ck_cuda_kernel *)kernel;
	ck_shape x = k->desc.in[X].shape;
	bool stashes = ck_layernorm_stashes_xhat(&k->desc);
	ck__cuda_layernorm_forward(k->device->stream, k->desc.out[0].dtype, ck_shape_rows(x), ck_shape_last(x),
				   (float)k->desc.attr.eps, a->in[X], a->in[GAMMA], a->in[BETA], a->out[0],
				   stashes ? a->stash[0] : NULL, stashes ? NULL : a->stash[0], a->stash[1]);
}

static void backward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_cuda_kernel *k = (const ck_cuda_kernel *)kernel;
	cudaStream_t stream = k->device->stream;
	ck_dtype t = k->desc.out[0].dtype;
	int64_t rows = ck_shape_rows(k->desc.in[X].shape), cols = ck_shape_last(k->desc.in[X].shape);
	ck_layernorm_saved saved = {.rstd = a->stash[1]};
	if (ck_layernorm_stashes_xhat(&k->desc))
		saved.xhat = a->stash[0];
	else
		saved.x = a->in[X], saved.mean = a->stash[0];
	if (a->din[X])
		ck__cuda_layernorm_dx(stream, t, rows, cols, saved, a->in[GAMMA], a->dout, a->din[X], a->acc[X]);
	if (a->din[GAMMA] || a->din[BETA]) {
		ck_columns c = columns_of(k->device, &k->desc);
		ck__cuda_layernorm_sums(stream, &c, t, saved, a->dout, a->workspace, a->din[GAMMA], a->acc[GAMMA], a->din[BETA],
					a->acc[BETA]);
	}
}

ck_status ck__cuda_layernorm(ck_device *device, const ck_op_desc *desc, ck_kernel **kernel, ck_err *err)
{
	(void)err;
	*kernel = ck__cuda_plain_kernel(device, desc, forward, backward);
	ck_columns c = columns_of(device, desc);
	if (desc->needs & (1u << GAMMA | 1u << BETA))
		(*kernel)->workspace_backward = 2 * ck__column_sums_workspace(&c);
	return CK_OK;
}
