/* cuDNN's convolutions of images: cross-correlation, NHWC tensors and filters (KRSC).
 *
 *     forward   y[n,p,q,k]  = sum over r,s,c of x[n, p u + r d - pad, ..., c] w[k,r,s,c]
 *     data      dx          = its transpose in x
 *     filter    dw[k,r,s,c] = sum over n,p,q of dy[n,p,q,k] x[n, p u + r d - pad, ..., c]
 *
 * NHWC filters go with NHWC tensors whose images have no gaps, with the implicit algorithms alone (forward IMPLICIT_GEMM and
 * IMPLICIT_PRECOMP_GEMM, backward ALGO_0 and ALGO_1), and with float, or half or bfloat16 computed in float. Both backward ALGO_0 add
 * by atomics. float32 operands are rounded to TF32 unless the math type is FMA: the library may, on Ampere and later. Guesses: the
 * 16-bit types have no algorithm for FMA, nor has NHWC one for groups of one channel. */
#include "kernels/emu/cudnn_double.h"

#include <algorithm>
#include <string.h>

namespace
{
enum direction { FORWARD, DATA, FILTER };

struct convolution {
	direction way;
	int algo;
	cudnnTensorStruct x, y; /* or their gradients */
	cudnnFilterStruct w;
	cudnnConvolutionStruct c;
	operands round;
	size_t needs;      /* bytes of workspace */
	const void *a, *b; /* what is read: x, w; w, dy; x, dy */
	void *to, *workspace;
	size_t workspace_bytes;
	float alpha, beta;

	int64_t channels() const /* of a group */
	{
		return w.c;
	}
	int64_t outputs() const
	{
		return w.k / c.groups;
	}
	int64_t taps() const
	{
		return w.h * w.w;
	}
	bool any_order() const
	{
		return way != FORWARD && algo == 0;
	}
	/* The place in the input along axis 0 (H) or 1 (W) that tap t of output o reads; -1: padding. */
	int64_t input(int axis, int64_t o, int64_t t) const
	{
		int64_t i = o * c.stride[axis] + t * c.dilation[axis] - c.pad[axis];
		return i < 0 || i >= x.dim[H + axis] ? -1 : i;
	}
	/* The output that reads input i with tap t; -1: none. */
	int64_t output(int axis, int64_t i, int64_t t) const
	{
		int64_t o = i + c.pad[axis] - t * c.dilation[axis];
		return o < 0 || o % c.stride[axis] || o / c.stride[axis] >= y.dim[H + axis] ? -1 : o / c.stride[axis];
	}
};
} // namespace

/* ---- what the library supports -------------------------------------------------------------------------------------------- */

static int output_extent(const convolution &v, int axis)
{
	int window = ((axis ? v.w.w : v.w.h) - 1) * v.c.dilation[axis] + 1;
	return (v.x.dim[H + axis] + 2 * v.c.pad[axis] - window) / v.c.stride[axis] + 1;
}

static size_t workspace_of(const convolution &v)
{
	size_t bytes = 0;
	if (v.algo == 1) /* indices; the filter turned round; the gradient in float */
		bytes = v.way == FORWARD ? (size_t)(v.taps() * v.channels()) * sizeof(int)
			: v.way == DATA  ? v.w.bytes()
					 : v.w.bytes() / ck_emu_size(v.w.type) * sizeof(float);
	return (bytes + 255) / 256 * 256;
}

static cudnnStatus_t check_types(convolution &v)
{
	CK_REFUSE_IF(v.x.type != v.w.type || v.x.type != v.y.type, CUDNN_STATUS_BAD_PARAM,
		     "the types of x, w, y are %s, %s, %s", ck_emu_name(v.x.type), ck_emu_name(v.w.type),
		     ck_emu_name(v.y.type));
	bool true_half = v.x.type == stored::f16 && v.c.compute == CUDNN_DATA_HALF;
	CK_REFUSE_IF(v.c.compute != CUDNN_DATA_FLOAT && !(true_half && v.way != FILTER), CUDNN_STATUS_NOT_SUPPORTED,
		     "%s computed in data type %d", ck_emu_name(v.x.type), v.c.compute);
	if (true_half)
		ck_emu_fail("cuDNN: convolutions computed in half are not modelled");
	CK_REFUSE_IF(v.x.type != stored::f32 && v.c.math == CUDNN_FMA_MATH, CUDNN_STATUS_NOT_SUPPORTED,
		     "%s has no algorithm for FMA_MATH", ck_emu_name(v.x.type));
	v.round = v.x.type != stored::f32 || v.c.math == CUDNN_FMA_MATH ? operands::exact
		  : v.c.math == CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION   ? operands::f16
									: operands::tf32;
	return CUDNN_STATUS_SUCCESS;
}

/* Fills and checks all but pointers. */
static cudnnStatus_t convolution_of(direction way, cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
				    cudnnConvolutionDescriptor_t c, cudnnTensorDescriptor_t y, int algo, convolution &v)
{
	const cudnnTensorStruct *xt = ck_emu_tensor(x), *yt = ck_emu_tensor(y);
	const cudnnFilterStruct *wt = ck_emu_filter(w);
	const cudnnConvolutionStruct *ct = ck_emu_convolution(c);
	CK_REFUSE_IF(!ck_emu_dnn(handle) || !xt || !yt || !wt || !ct, CUDNN_STATUS_BAD_PARAM,
		     "the handle or a descriptor is NULL or not set");
	v.way = way, v.algo = algo, v.x = *xt, v.y = *yt, v.w = *wt, v.c = *ct;
	CK_REFUSE_IF(v.x.dim[CHANNELS] != v.c.groups * v.w.c, CUDNN_STATUS_BAD_PARAM,
		     "x has %d channels, the filter %d in each of %d groups", v.x.dim[CHANNELS], v.w.c, v.c.groups);
	CK_REFUSE_IF(v.w.k % v.c.groups || v.y.dim[CHANNELS] != v.w.k, CUDNN_STATUS_BAD_PARAM,
		     "the filter has %d outputs, y %d channels, in %d groups", v.w.k, v.y.dim[CHANNELS], v.c.groups);
	cudnnStatus_t status = check_types(v);
	if (status != CUDNN_STATUS_SUCCESS)
		return status;
	for (int axis = 0; axis < 2; axis++) {
		int window = axis ? v.w.w : v.w.h;
		CK_REFUSE_IF(window > v.x.dim[H + axis] + 2 * v.c.pad[axis], CUDNN_STATUS_BAD_PARAM,
			     "the filter is larger than x with its padding");
		CK_REFUSE_IF(v.y.dim[H + axis] != output_extent(v, axis), CUDNN_STATUS_NOT_SUPPORTED,
			     "y is %d along axis %d, not %d", v.y.dim[H + axis], axis, output_extent(v, axis));
	}
	CK_REFUSE_IF(v.x.dim[N] != v.y.dim[N], CUDNN_STATUS_NOT_SUPPORTED, "x has %d images, y %d", v.x.dim[N], v.y.dim[N]);
	CK_REFUSE_IF(!v.x.positive_strides() || !v.y.positive_strides(), CUDNN_STATUS_NOT_SUPPORTED,
		     "a stride is not positive");
	if (v.w.format != CUDNN_TENSOR_NHWC)
		ck_emu_fail("cuDNN: NCHW filters are not modelled");
	CK_REFUSE_IF(!v.x.hwc_packed() || !v.y.hwc_packed(), CUDNN_STATUS_NOT_SUPPORTED,
		     "an NHWC filter, but x or y is not NHWC without gaps");
	CK_REFUSE_IF(algo != 0 && algo != 1, CUDNN_STATUS_NOT_SUPPORTED, "algorithm %d has no NHWC filters", algo);
	CK_REFUSE_IF(v.c.groups > 1 && v.w.c == 1, CUDNN_STATUS_NOT_SUPPORTED, "a channel a group in NHWC");
	v.needs = workspace_of(v);
	return CUDNN_STATUS_SUCCESS;
}

/* ---- the work ------------------------------------------------------------------------------------------------------------- */

/* An image as float, (H,W,C). */
static std::vector<float> image_of(const convolution &v, const cudnnTensorStruct &t, const void *at, int64_t n)
{
	std::vector<float> image((size_t)t.dim[H] * (size_t)t.dim[W] * (size_t)t.dim[CHANNELS]);
	ck_emu_widen(t.type, at, t.at(n, 0, 0, 0), (int64_t)image.size(), image.data());
	ck_emu_round(v.round, (int64_t)image.size(), image.data());
	return image;
}

static std::vector<float> filter_of(const convolution &v, const void *at)
{
	std::vector<float> filter((size_t)(v.w.k * v.taps() * v.channels()));
	ck_emu_widen(v.w.type, at, 0, (int64_t)filter.size(), filter.data());
	ck_emu_round(v.round, (int64_t)filter.size(), filter.data());
	return filter;
}

/* What output row o of group g reads: patch(q, tap, c) for each output q; 0 in the padding. */
static std::vector<float> patches_of(const convolution &v, const std::vector<float> &image, int64_t o, int64_t g)
{
	int64_t row = v.taps() * v.channels();
	std::vector<float> patches((size_t)(v.y.dim[W] * row), 0.0f);
	for (int64_t q = 0; q < v.y.dim[W]; q++)
		for (int64_t t = 0; t < v.taps(); t++) {
			int64_t h = v.input(0, o, t / v.w.w), w = v.input(1, q, t % v.w.w);
			if (h < 0 || w < 0)
				continue;
			const float *from = image.data() + (h * v.x.dim[W] + w) * v.x.dim[CHANNELS] + g * v.channels();
			std::copy(from, from + v.channels(), patches.begin() + q * row + t * v.channels());
		}
	return patches;
}

static std::vector<float> transposed(const std::vector<float> &x, int64_t rows, int64_t cols)
{
	std::vector<float> y(x.size());
	for (int64_t i = 0; i < rows; i++)
		for (int64_t j = 0; j < cols; j++)
			y[(size_t)(j * rows + i)] = x[(size_t)(i * cols + j)];
	return y;
}

static void forward(const convolution &v)
{
	int64_t row = v.taps() * v.channels(), outputs = v.outputs(), width = v.y.dim[W];
	std::vector<float> filter = filter_of(v, v.b);
	for (int64_t g = 0; g < v.c.groups; g++) {
		auto begin = filter.begin() + g * outputs * row;
		std::vector<float> weights = transposed({begin, begin + outputs * row}, outputs, row);
		for (int64_t n = 0; n < v.x.dim[N]; n++) {
			std::vector<float> image = image_of(v, v.x, v.a, n);
			for (int64_t p = 0; p < v.y.dim[H]; p++) {
				std::vector<float> patches = transposed(patches_of(v, image, p, g), width, row);
				std::vector<double> sums((size_t)(width * outputs), 0.0);
				ck_emu_product(outputs, width, row, weights.data(), patches.data(), sums.data());
				for (int64_t q = 0; q < width; q++)
					for (int64_t k = 0; k < outputs; k++)
						ck_emu_blend(v.y.type, v.to, v.y.at(n, g * outputs + k, p, q), v.alpha,
							     (float)sums[(size_t)(q * outputs + k)], v.beta);
			}
		}
	}
}

/* Gradients of the outputs that read row h of the input, by tap and output channel, for each input of the row: (taps,K/g,W). */
static std::vector<float> readers_of(const convolution &v, const std::vector<float> &dy, int64_t h, int64_t g)
{
	int64_t width = v.x.dim[W], outputs = v.outputs();
	std::vector<float> readers((size_t)(v.taps() * outputs * width), 0.0f);
	for (int64_t t = 0; t < v.taps(); t++)
		for (int64_t w = 0; w < width; w++) {
			int64_t p = v.output(0, h, t / v.w.w), q = v.output(1, w, t % v.w.w);
			if (p < 0 || q < 0)
				continue;
			const float *from = dy.data() + (p * v.y.dim[W] + q) * v.y.dim[CHANNELS] + g * outputs;
			for (int64_t k = 0; k < outputs; k++)
				readers[(size_t)((t * outputs + k) * width + w)] = from[k];
		}
	return readers;
}

static void backward_data(const convolution &v)
{
	int64_t width = v.x.dim[W], outputs = v.outputs(), channels = v.channels(), steps = v.taps() * outputs;
	std::vector<float> filter = filter_of(v, v.a), weights((size_t)(steps * channels));
	auto product = v.any_order() ? ck_emu_product_any_order : ck_emu_product;
	for (int64_t g = 0; g < v.c.groups; g++) {
		for (int64_t t = 0; t < v.taps(); t++)
			for (int64_t k = 0; k < outputs; k++) {
				auto from = filter.begin() + ((g * outputs + k) * v.taps() + t) * channels;
				std::copy(from, from + channels, weights.begin() + (t * outputs + k) * channels);
			}
		for (int64_t n = 0; n < v.x.dim[N]; n++) {
			std::vector<float> dy = image_of(v, v.y, v.b, n);
			for (int64_t h = 0; h < v.x.dim[H]; h++) {
				std::vector<float> readers = readers_of(v, dy, h, g);
				std::vector<double> sums((size_t)(width * channels), 0.0);
				product(channels, width, steps, weights.data(), readers.data(), sums.data());
				for (int64_t w = 0; w < width; w++)
					for (int64_t c = 0; c < channels; c++)
						ck_emu_blend(v.x.type, v.to, v.x.at(n, g * channels + c, h, w), v.alpha,
							     (float)sums[(size_t)(w * channels + c)], v.beta);
			}
		}
	}
}

static void backward_filter(const convolution &v)
{
	int64_t row = v.taps() * v.channels(), outputs = v.outputs(), width = v.y.dim[W];
	auto product = v.any_order() ? ck_emu_product_any_order : ck_emu_product;
	std::vector<int64_t> images((size_t)v.x.dim[N]);
	for (size_t i = 0; i < images.size(); i++)
		images[i] = (int64_t)i;
	for (size_t i = images.size(); v.any_order() && i > 1; i--)
		std::swap(images[i - 1], images[ck_emu_random() % i]);
	for (int64_t g = 0; g < v.c.groups; g++) {
		std::vector<double> sums((size_t)(row * outputs), 0.0);
		for (int64_t n : images) {
			std::vector<float> x = image_of(v, v.x, v.a, n), dy = image_of(v, v.y, v.b, n);
			for (int64_t p = 0; p < v.y.dim[H]; p++) {
				std::vector<float> patches = patches_of(v, x, p, g), out((size_t)(width * outputs));
				for (int64_t q = 0; q < width; q++) {
					auto from = dy.begin() + (p * width + q) * v.y.dim[CHANNELS] + g * outputs;
					std::copy(from, from + outputs, out.begin() + q * outputs);
				}
				product(outputs, row, width, out.data(), patches.data(), sums.data());
			}
		}
		for (int64_t k = 0; k < outputs; k++)
			for (int64_t l = 0; l < row; l++)
				ck_emu_blend(v.w.type, v.to, (g * outputs + k) * row + l, v.alpha,
					     (float)sums[(size_t)(l * outputs + k)], v.beta);
	}
}

/* ---- the calls ------------------------------------------------------------------------------------------------------------ */

/* Checks the pointers and queues the work. a, b, to: what is read and written, with their extents. */
static cudnnStatus_t queue(convolution &v, cudnnHandle_t handle, const void *alpha, const void *beta, extent a, extent b,
			   extent to, void *workspace, size_t bytes, void (*work)(const convolution &), const char *call)
{
	CK_REFUSE_IF(!alpha || !beta || !a.at || !b.at || !to.at, CUDNN_STATUS_BAD_PARAM, "%s: a pointer is NULL", call);
	CK_REFUSE_IF(bytes < v.needs, CUDNN_STATUS_BAD_PARAM, "%s: the workspace has %zu bytes, the algorithm needs %zu", call,
		     bytes, v.needs);
	CK_REFUSE_IF(v.needs && !workspace, CUDNN_STATUS_BAD_PARAM, "%s: no workspace", call);
	std::vector<extent> written = {to};
	if (v.needs)
		written.push_back({workspace, bytes, "the workspace", 16});
	ck_emu_check_extents(call, {a, b}, written);
	v.a = a.at, v.b = b.at, v.to = const_cast<void *>(to.at), v.workspace = workspace, v.workspace_bytes = bytes;
	v.alpha = ck_emu_factor(alpha, call);
	v.beta = ck_emu_factor(beta, call);
	ck_emu_enqueue(
	    ck_emu_dnn(handle)->stream,
	    [v, work] {
		    if (v.needs)
			    memset(v.workspace, 0xFF, v.workspace_bytes);
		    work(v);
	    },
	    call);
	return CUDNN_STATUS_SUCCESS;
}

static extent of(const cudnnTensorStruct &t, const void *at, const char *what)
{
	return {at, t.bytes(), what, ck_emu_size(t.type)};
}

static extent of(const cudnnFilterStruct &w, const void *at, const char *what)
{
	return {at, w.bytes(), what, ck_emu_size(w.type)};
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void *alpha, const cudnnTensorDescriptor_t xd, const void *x,
				      const cudnnFilterDescriptor_t wd, const void *w, const cudnnConvolutionDescriptor_t cd,
				      cudnnConvolutionFwdAlgo_t algo, void *workspace, size_t bytes, const void *beta,
				      const cudnnTensorDescriptor_t yd, void *y)
{
	convolution v = {};
	cudnnStatus_t status = convolution_of(FORWARD, handle, xd, wd, cd, yd, algo, v);
	if (status != CUDNN_STATUS_SUCCESS)
		return status;
	return queue(v, handle, alpha, beta, of(v.x, x, "x"), of(v.w, w, "w"), of(v.y, y, "y"), workspace, bytes, forward,
		     "cudnnConvolutionForward");
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void *alpha, const cudnnFilterDescriptor_t wd,
					   const void *w, const cudnnTensorDescriptor_t dyd, const void *dy,
					   const cudnnConvolutionDescriptor_t cd, cudnnConvolutionBwdDataAlgo_t algo,
					   void *workspace, size_t bytes, const void *beta, const cudnnTensorDescriptor_t dxd,
					   void *dx)
{
	convolution v = {};
	cudnnStatus_t status = convolution_of(DATA, handle, dxd, wd, cd, dyd, algo, v);
	if (status != CUDNN_STATUS_SUCCESS)
		return status;
	return queue(v, handle, alpha, beta, of(v.w, w, "w"), of(v.y, dy, "dy"), of(v.x, dx, "dx"), workspace, bytes,
		     backward_data, "cudnnConvolutionBackwardData");
}

cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void *alpha, const cudnnTensorDescriptor_t xd,
					     const void *x, const cudnnTensorDescriptor_t dyd, const void *dy,
					     const cudnnConvolutionDescriptor_t cd, cudnnConvolutionBwdFilterAlgo_t algo,
					     void *workspace, size_t bytes, const void *beta, const cudnnFilterDescriptor_t dwd,
					     void *dw)
{
	convolution v = {};
	cudnnStatus_t status = convolution_of(FILTER, handle, xd, dwd, cd, dyd, algo, v);
	if (status != CUDNN_STATUS_SUCCESS)
		return status;
	return queue(v, handle, alpha, beta, of(v.x, x, "x"), of(v.y, dy, "dy"), of(v.w, dw, "dw"), workspace, bytes,
		     backward_filter, "cudnnConvolutionBackwardFilter");
}

static cudnnStatus_t workspace_size(direction way, cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
				    cudnnConvolutionDescriptor_t c, cudnnTensorDescriptor_t y, int algo, size_t *bytes)
{
	convolution v = {};
	CK_REFUSE_IF(!bytes, CUDNN_STATUS_BAD_PARAM, "nowhere to put the size");
	cudnnStatus_t status = convolution_of(way, handle, x, w, c, y, algo, v);
	if (status == CUDNN_STATUS_SUCCESS)
		*bytes = v.needs;
	return status;
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
						      const cudnnFilterDescriptor_t w, const cudnnConvolutionDescriptor_t c,
						      const cudnnTensorDescriptor_t y, cudnnConvolutionFwdAlgo_t algo,
						      size_t *bytes)
{
	return workspace_size(FORWARD, handle, x, w, c, y, algo, bytes);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(cudnnHandle_t handle, const cudnnFilterDescriptor_t w,
							   const cudnnTensorDescriptor_t dy,
							   const cudnnConvolutionDescriptor_t c,
							   const cudnnTensorDescriptor_t dx, cudnnConvolutionBwdDataAlgo_t algo,
							   size_t *bytes)
{
	return workspace_size(DATA, handle, dx, w, c, dy, algo, bytes);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
							     const cudnnTensorDescriptor_t dy,
							     const cudnnConvolutionDescriptor_t c,
							     const cudnnFilterDescriptor_t dw,
							     cudnnConvolutionBwdFilterAlgo_t algo, size_t *bytes)
{
	return workspace_size(FILTER, handle, x, dw, c, dy, algo, bytes);
}
