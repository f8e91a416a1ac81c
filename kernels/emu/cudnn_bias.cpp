/* cuDNN's bias of a convolution: added to its output, and its gradient. The gradient knows no bfloat16. */
#include "kernels/emu/cudnn_double.h"

namespace
{
struct bias {
	cudnnTensorStruct each, all; /* the bias, or its gradient; what it is added to, or comes from */
	const void *from;
	void *to;
	float alpha, beta;
};
} // namespace

template <class F> static void over(const cudnnTensorStruct &t, F f)
{
	for (int c = 0; c < t.dim[CHANNELS]; c++)
		for (int n = 0; n < t.dim[N]; n++)
			for (int h = 0; h < t.dim[H]; h++)
				for (int w = 0; w < t.dim[W]; w++)
					f(n, c, h, w);
}

static void add(const bias &b)
{
	const int *dim = b.each.dim;
	over(b.all, [&](int n, int c, int h, int w) {
		float v = ck_emu_get(
		    b.each.type, b.from,
		    b.each.at(dim[N] > 1 ? n : 0, dim[CHANNELS] > 1 ? c : 0, dim[H] > 1 ? h : 0, dim[W] > 1 ? w : 0));
		ck_emu_blend(b.all.type, b.to, b.all.at(n, c, h, w), b.alpha, v, b.beta);
	});
}

static void gradient(const bias &b)
{
	std::vector<double> sums((size_t)b.all.dim[CHANNELS], 0.0);
	over(b.all, [&](int n, int c, int h, int w) {
		sums[(size_t)c] += (double)ck_emu_get(b.all.type, b.from, b.all.at(n, c, h, w));
	});
	for (int c = 0; c < b.all.dim[CHANNELS]; c++)
		ck_emu_blend(b.each.type, b.to, b.each.at(0, c, 0, 0), b.alpha, (float)sums[(size_t)c], b.beta);
}

/* Checks what both have, and fills it. */
static cudnnStatus_t prepare(bias &b, cudnnHandle_t handle, const void *alpha, const void *beta, cudnnTensorDescriptor_t each,
			     const void *each_at, cudnnTensorDescriptor_t all, const void *all_at, const char *call)
{
	const cudnnTensorStruct *e = ck_emu_tensor(each), *a = ck_emu_tensor(all);
	CK_REFUSE_IF(!ck_emu_dnn(handle) || !e || !a, CUDNN_STATUS_BAD_PARAM,
		     "%s: the handle or a descriptor is NULL or not set", call);
	CK_REFUSE_IF(!alpha || !beta || !each_at || !all_at, CUDNN_STATUS_BAD_PARAM, "%s: a pointer is NULL", call);
	CK_REFUSE_IF(e->type != a->type, CUDNN_STATUS_BAD_PARAM, "%s: the types differ", call);
	b.each = *e, b.all = *a;
	b.alpha = ck_emu_factor(alpha, call);
	b.beta = ck_emu_factor(beta, call);
	return CUDNN_STATUS_SUCCESS;
}

static extent of(const cudnnTensorStruct &t, const void *at, const char *what)
{
	return {at, t.bytes(), what, ck_emu_size(t.type)};
}

cudnnStatus_t cudnnAddTensor(cudnnHandle_t handle, const void *alpha, const cudnnTensorDescriptor_t ad, const void *a,
			     const void *beta, const cudnnTensorDescriptor_t cd, void *c)
{
	static const char call[] = "cudnnAddTensor";
	bias b = {};
	cudnnStatus_t status = prepare(b, handle, alpha, beta, ad, a, cd, c, call);
	if (status != CUDNN_STATUS_SUCCESS)
		return status;
	for (int i = 0; i < 4; i++)
		CK_REFUSE_IF(b.each.dim[i] != b.all.dim[i] && b.each.dim[i] != 1, CUDNN_STATUS_BAD_PARAM,
			     "%s: A is %d along dimension %d, C %d", call, b.each.dim[i], i, b.all.dim[i]);
	ck_emu_check_extents(call, {of(b.each, a, "A")}, {of(b.all, c, "C")});
	b.from = a, b.to = c;
	ck_emu_enqueue(
	    handle->stream, [b] { add(b); }, call);
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnConvolutionBackwardBias(cudnnHandle_t handle, const void *alpha, const cudnnTensorDescriptor_t dyd,
					   const void *dy, const void *beta, const cudnnTensorDescriptor_t dbd, void *db)
{
	static const char call[] = "cudnnConvolutionBackwardBias";
	bias b = {};
	cudnnStatus_t status = prepare(b, handle, alpha, beta, dbd, db, dyd, dy, call);
	if (status != CUDNN_STATUS_SUCCESS)
		return status;
	CK_REFUSE_IF(b.all.type == stored::bf16, CUDNN_STATUS_NOT_SUPPORTED, "%s: bfloat16", call);
	CK_REFUSE_IF(b.each.dim[N] != 1 || b.each.dim[CHANNELS] != b.all.dim[CHANNELS] || b.each.dim[H] != 1 ||
			 b.each.dim[W] != 1,
		     CUDNN_STATUS_BAD_PARAM, "%s: db is not 1xCx1x1", call);
	CK_REFUSE_IF(!b.all.positive_strides() || !b.each.positive_strides(), CUDNN_STATUS_NOT_SUPPORTED,
		     "%s: a stride is not positive", call);
	ck_emu_check_extents(call, {of(b.all, dy, "dy")}, {of(b.each, db, "db")});
	b.from = dy, b.to = db;
	ck_emu_enqueue(
	    handle->stream, [b] { gradient(b); }, call);
	return CUDNN_STATUS_SUCCESS;
}
