/* EMBEDDING: y[b,t] = wte[ids[b,t]] + wpe[t]. */
#include "kernels/cuda/embedding.h"

enum { IDS, WTE, WPE };

static void forward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_cuda_kernel *k = (const ck_cuda_kernel *)kernel;
	ck_shape ids = k->desc.in[IDS].shape;
	ck__cuda_embedding_forward(k->device->stream, ck_shape_count(ids), ck_shape_last(ids),
				   ck_shape_last(k->desc.in[WTE].shape), a->in[IDS], a->in[WTE],
				   k->desc.attr.bias ? a->in[WPE] : NULL, a->out[0]);
}

static void backward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_cuda_kernel *k = (const ck_cuda_kernel *)kernel;
	cudaStream_t stream = k->device->stream;
	ck_shape ids = k->desc.in[IDS].shape, wte = k->desc.in[WTE].shape;
	int64_t tokens = ck_shape_count(ids), vocabulary = wte.d[0], cols = wte.d[1];
	if (a->din[WTE] && k->device->fast)
		ck__cuda_embedding_dwte_fast(stream, tokens, vocabulary, cols, a->in[IDS], a->dout, a->din[WTE], a->acc[WTE]);
	else if (a->din[WTE])
		ck__cuda_embedding_dwte(stream, tokens, vocabulary, cols, a->in[IDS], a->dout, a->din[WTE], a->acc[WTE],
					a->workspace);
	if (a->din[WPE])
		ck__cuda_embedding_dwpe(stream, tokens, ck_shape_last(ids), k->desc.in[WPE].shape.d[0], cols, a->dout,
					a->din[WPE], a->acc[WPE]);
}

/* Tokens are counted in 32 bits, and each launches a few blocks. */
ck_status ck__cuda_embedding(ck_device *device, const ck_op_desc *desc, ck_kernel **kernel, ck_err *err)
{
	int64_t tokens = ck_shape_count(desc->in[IDS].shape), cols = ck_shape_last(desc->in[WTE].shape);
	if (tokens >= INT32_MAX || tokens * ((cols + 31) / 32) >= INT32_MAX)
		return ck_fail(err, CK_USAGE,
			       "device cuda: an embedding of %lld tokens in %lld channels is too large; take a "
			       "smaller batch",
			       (long long)tokens, (long long)cols);
	*kernel = ck__cuda_plain_kernel(device, desc, forward, backward);
	if (ck_op_wants(desc, WTE) && !device->fast)
		(*kernel)->workspace_backward = ck__cuda_embedding_workspace(tokens, desc->in[WTE].shape.d[0]);
	return CK_OK;
}
