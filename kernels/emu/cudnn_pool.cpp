/* cuDNN's pooling of images by averages. x and y, which the backward of an average does not read, may be NULL with their
 * descriptors. */
#include "kernels/emu/cudnn_double.h"

#include <algorithm>

namespace
{
struct pool {
	cudnnPoolingStruct p;
	cudnnTensorStruct x, y; /* or their gradients */
	const void *from;
	void *to;
	float alpha, beta;

	/* The inputs of output o along axis 0 (H) or 1 (W): from `first` on, before `last`. */
	void window(int axis, int o, int *first, int *last) const
	{
		int begin = o * p.stride[axis] - p.pad[axis];
		*first = std::max(begin, 0);
		*last = std::min(begin + p.window[axis], x.dim[H + axis]);
	}
	/* What the sum over the window of output (o,q) is divided by. */
	float count(int h, int w) const
	{
		int top, bottom, left, right;
		window(0, h, &top, &bottom);
		window(1, w, &left, &right);
		return p.mode == CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING ? (float)(p.window[0] * p.window[1])
									     : (float)((bottom - top) * (right - left));
	}
};
} // namespace

static int output_extent(const pool &v, int axis)
{
	return (v.x.dim[H + axis] + 2 * v.p.pad[axis] - v.p.window[axis]) / v.p.stride[axis] + 1;
}

template <class F> static void each(const cudnnTensorStruct &t, F f)
{
	for (int n = 0; n < t.dim[N]; n++)
		for (int h = 0; h < t.dim[H]; h++)
			for (int w = 0; w < t.dim[W]; w++)
				for (int c = 0; c < t.dim[CHANNELS]; c++)
					f(n, c, h, w);
}

static void forward(const pool &v)
{
	each(v.y, [&](int n, int c, int h, int w) {
		int top, bottom, left, right;
		v.window(0, h, &top, &bottom);
		v.window(1, w, &left, &right);
		double sum = 0;
		for (int i = top; i < bottom; i++)
			for (int j = left; j < right; j++)
				sum += (double)ck_emu_get(v.x.type, v.from, v.x.at(n, c, i, j));
		ck_emu_blend(v.y.type, v.to, v.y.at(n, c, h, w), v.alpha, (float)sum / v.count(h, w), v.beta);
	});
}

static void backward(const pool &v)
{
	std::vector<double> sums((size_t)v.x.dim[H] * (size_t)v.x.dim[W]);
	for (int n = 0; n < v.x.dim[N]; n++)
		for (int c = 0; c < v.x.dim[CHANNELS]; c++) {
			std::fill(sums.begin(), sums.end(), 0.0);
			for (int h = 0; h < v.y.dim[H]; h++)
				for (int w = 0; w < v.y.dim[W]; w++) {
					int top, bottom, left, right;
					v.window(0, h, &top, &bottom);
					v.window(1, w, &left, &right);
					float part = ck_emu_get(v.y.type, v.from, v.y.at(n, c, h, w)) / v.count(h, w);
					for (int i = top; i < bottom; i++)
						for (int j = left; j < right; j++)
							sums[(size_t)(i * v.x.dim[W] + j)] += (double)part;
				}
			for (int i = 0; i < v.x.dim[H]; i++)
				for (int j = 0; j < v.x.dim[W]; j++)
					ck_emu_blend(v.x.type, v.to, v.x.at(n, c, i, j), v.alpha,
						     (float)sums[(size_t)(i * v.x.dim[W] + j)], v.beta);
		}
}

/* x, y: or their gradients. The library looks at images, channels and types; what extents that do not fit would do there, nobody
 * says. */
static cudnnStatus_t check(pool &v, cudnnHandle_t handle, cudnnPoolingDescriptor_t pd, cudnnTensorDescriptor_t xd,
			   cudnnTensorDescriptor_t yd, const char *call)
{
	const cudnnPoolingStruct *p = ck_emu_pooling(pd);
	const cudnnTensorStruct *x = ck_emu_tensor(xd), *y = ck_emu_tensor(yd);
	CK_REFUSE_IF(!ck_emu_dnn(handle) || !p || !x || !y, CUDNN_STATUS_BAD_PARAM,
		     "%s: the handle or a descriptor is NULL or not set", call);
	v.p = *p, v.x = *x, v.y = *y;
	CK_REFUSE_IF(x->dim[N] != y->dim[N] || x->dim[CHANNELS] != y->dim[CHANNELS] || x->type != y->type,
		     CUDNN_STATUS_BAD_PARAM, "%s: x and y differ in images, channels or type", call);
	CK_REFUSE_IF(!x->positive_strides() || !y->positive_strides(), CUDNN_STATUS_NOT_SUPPORTED,
		     "%s: a stride is not positive", call);
	for (int axis = 0; axis < 2; axis++)
		if (y->dim[H + axis] != output_extent(v, axis))
			ck_emu_fail("%s: y is %d along axis %d, the pool gives %d", call, y->dim[H + axis], axis,
				    output_extent(v, axis));
	return CUDNN_STATUS_SUCCESS;
}

static extent of(const cudnnTensorStruct &t, const void *at, const char *what)
{
	return {at, t.bytes(), what, ck_emu_size(t.type)};
}

cudnnStatus_t cudnnGetPooling2dForwardOutputDim(const cudnnPoolingDescriptor_t pd, const cudnnTensorDescriptor_t xd, int *n,
						int *c, int *h, int *w)
{
	pool v = {};
	const cudnnPoolingStruct *p = ck_emu_pooling(pd);
	const cudnnTensorStruct *x = ck_emu_tensor(xd);
	CK_REFUSE_IF(!p || !x || !n || !c || !h || !w, CUDNN_STATUS_BAD_PARAM, "a descriptor or a pointer is NULL, or not set");
	v.p = *p, v.x = *x;
	*n = x->dim[N];
	*c = x->dim[CHANNELS];
	*h = output_extent(v, 0);
	*w = output_extent(v, 1);
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnPoolingForward(cudnnHandle_t handle, const cudnnPoolingDescriptor_t pd, const void *alpha,
				  const cudnnTensorDescriptor_t xd, const void *x, const void *beta,
				  const cudnnTensorDescriptor_t yd, void *y)
{
	static const char call[] = "cudnnPoolingForward";
	pool v = {};
	CK_REFUSE_IF(!alpha || !beta || !x || !y, CUDNN_STATUS_BAD_PARAM, "%s: a pointer is NULL", call);
	cudnnStatus_t status = check(v, handle, pd, xd, yd, call);
	if (status != CUDNN_STATUS_SUCCESS)
		return status;
	ck_emu_check_extents(call, {of(v.x, x, "x")}, {of(v.y, y, "y")});
	v.from = x, v.to = y;
	v.alpha = ck_emu_factor(alpha, call);
	v.beta = ck_emu_factor(beta, call);
	ck_emu_enqueue(
	    handle->stream, [v] { forward(v); }, call);
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnPoolingBackward(cudnnHandle_t handle, const cudnnPoolingDescriptor_t pd, const void *alpha,
				   const cudnnTensorDescriptor_t yd, const void *, const cudnnTensorDescriptor_t dyd,
				   const void *dy, const cudnnTensorDescriptor_t xd, const void *, const void *beta,
				   const cudnnTensorDescriptor_t dxd, void *dx)
{
	static const char call[] = "cudnnPoolingBackward";
	pool v = {};
	CK_REFUSE_IF(!alpha || !beta || !dy || !dx, CUDNN_STATUS_BAD_PARAM, "%s: a pointer is NULL", call);
	cudnnStatus_t status = check(v, handle, pd, dxd, dyd, call);
	if (status != CUDNN_STATUS_SUCCESS)
		return status;
	const cudnnTensorStruct *x = ck_emu_tensor(xd), *y = ck_emu_tensor(yd);
	CK_REFUSE_IF(y && (!y->same_dims(v.y) || !y->same_strides(v.y) || y->type != v.y.type), CUDNN_STATUS_BAD_PARAM,
		     "%s: y and dy differ", call);
	CK_REFUSE_IF(x && (!x->same_dims(v.x) || !x->same_strides(v.x) || x->type != v.x.type), CUDNN_STATUS_BAD_PARAM,
		     "%s: x and dx differ", call);
	ck_emu_check_extents(call, {of(v.y, dy, "dy")}, {of(v.x, dx, "dx")});
	v.from = dy, v.to = dx;
	v.alpha = ck_emu_factor(alpha, call);
	v.beta = ck_emu_factor(beta, call);
	ck_emu_enqueue(
	    handle->stream, [v] { backward(v); }, call);
	return CUDNN_STATUS_SUCCESS;
}
