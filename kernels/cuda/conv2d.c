/* CONV2D: cuDNN's convolutions over NHWC activations and filters as they lie in memory.
 *
 * Each direction has one algorithm, the first of a fixed list that cuDNN takes for the shape and whose workspace is within bounds: so it
 * depends on shape and device alone. Those whose sums have no fixed order (cudnn_cnn.h marks them) stand at the end and are for `fast` devices
 * only. With groups or few channels, of which cuDNN does not say what it takes in NHWC, a direction that has none goes by kernels of our
 * own. Sums are in float32; float32 operands are rounded to TF32 only where the device was opened so.
 *
 * cuDNN writes the weight gradient in x's dtype. In 16 bits that goes to the workspace and is written, or added, to the real gradient from
 * there: it is rounded once more than ops.h says. So is a 16-bit output with a bias, which is added in a pass. */
#include <stdlib.h>

#include "kernels/cuda/columns.h"
#include "kernels/cuda/conv2d.h"
#include "kernels/cuda/dnn.h"
#include "kernels/cuda/epilogue.h"
#include "kernels/cuda/pass.h"
#include "kernels/cuda/workspace.h"

enum { X, W, B };
enum { LEAST_ROWS = 16 }; /* a thread's, in a sum of columns */

#define MOST_WORKSPACE ((size_t)256 << 20) /* bytes: beyond them, only where there is no other way */

typedef enum conv_pass { FORWARD, DATA, FILTER, PASSES } conv_pass;

typedef struct conv_kernel {
	ck_cuda_kernel base;
	cudnnTensorDescriptor_t x, y;
	cudnnFilterDescriptor_t w;
	cudnnConvolutionDescriptor_t conv;
	cudnnConvolutionFwdAlgo_t forward;
	cudnnConvolutionBwdDataAlgo_t data;
	cudnnConvolutionBwdFilterAlgo_t filter;
	size_t forward_bytes, data_bytes, filter_bytes; /* workspace that cuDNN asks for */
	size_t low, sums;                               /* workspace, backward: a 16-bit weight gradient; the bias's sums */
	bool own[PASSES];                               /* by a kernel of our own, as cuDNN has no algorithm */
	ck_columns columns;
} conv_kernel;

static const float one = 1, zero = 0;

static ck_direct direct_of(const ck_op_desc *d)
{
	int64_t groups = d->attr.groups;
	return (ck_direct){ck__window_of(d), groups, ck_shape_last(d->in[X].shape) / groups,
			   ck_shape_last(d->out[0].shape) / groups};
}

static void forward(const ck_kernel *kernel, const ck_args *a)
{
	const conv_kernel *k = (const conv_kernel *)kernel;
	const ck_op_desc *d = &k->base.desc;
	const ck_drop none = {0};
	if (k->own[FORWARD])
		ck__cuda_direct_forward(k->base.device->stream, d->in[X].dtype, direct_of(d), a->in[X], a->in[W], a->out[0]);
	else
		CK_CUDA(cudnnConvolutionForward(k->base.device->dnn, &one, k->x, a->in[X], k->w, a->in[W], k->conv, k->forward,
						ck__library_workspace(a->workspace, k->forward_bytes), k->forward_bytes, &zero,
						k->y, a->out[0]));
	if (d->attr.bias)
		ck__epilogue_forward(k->base.device->stream, d->out[0].dtype, ck_shape_count(d->out[0].shape),
				     ck_shape_last(d->out[0].shape), CK_ACT_NONE, false, none, a->out[0], a->in[B], NULL, NULL,
				     NULL, a->out[0]);
}

static void backward(const ck_kernel *kernel, const ck_args *a)
{
	const conv_kernel *k = (const conv_kernel *)kernel;
	const ck_op_desc *d = &k->base.desc;
	ck_device *device = k->base.device;
	char *behind = (char *)a->workspace + k->low + k->sums;
	if (a->din[X] && k->own[DATA])
		ck__cuda_direct_data(device->stream, d->in[X].dtype, direct_of(d), a->in[W], a->dout, a->din[X], a->acc[X]);
	else if (a->din[X])
		CK_CUDA(cudnnConvolutionBackwardData(device->dnn, &one, k->w, a->in[W], k->y, a->dout, k->conv, k->data,
						     ck__library_workspace(behind, k->data_bytes), k->data_bytes,
						     a->acc[X] ? &one : &zero, k->x, a->din[X]));
	if (a->din[W] && k->own[FILTER]) {
		ck__cuda_direct_filter(device->stream, d->in[X].dtype, direct_of(d), a->in[X], a->dout, a->din[W], a->acc[W]);
	} else if (a->din[W]) {
		bool add = a->acc[W] && !k->low;
		CK_CUDA(cudnnConvolutionBackwardFilter(device->dnn, &one, k->x, a->in[X], k->y, a->dout, k->conv, k->filter,
						       ck__library_workspace(behind, k->filter_bytes), k->filter_bytes,
						       add ? &one : &zero, k->w, k->low ? a->workspace : a->din[W]));
		if (k->low)
			ck__cuda_pass(device->stream, ck_shape_count(d->in[W].shape), d->in[W].dtype, a->workspace, d->real,
				      a->din[W], a->acc[W]);
	}
	if (a->din[B])
		ck__column_sums(device->stream, &k->columns, d->out[0].dtype, a->dout, (void *)((char *)a->workspace + k->low),
				a->din[B], a->acc[B]);
}

/* ---- preparing ----------------------------------------------------------------------------------------------------------- */

/* In the order in which they are tried. `unordered`: of the sums. */
static const struct {
	conv_pass pass;
	int algorithm;
	bool unordered;
} algorithms[] = {
    {FORWARD, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, false},
    {FORWARD, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, false},
    {FORWARD, CUDNN_CONVOLUTION_FWD_ALGO_GEMM, false},
    {DATA, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, false},
    {DATA, CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED, false},
    {DATA, CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT_TILING, false},
    {DATA, CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, true},
    {FILTER, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, false},
    {FILTER, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED, false},
    {FILTER, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT_TILING, false},
    {FILTER, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, true},
    {FILTER, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3, true},
};

static cudnnStatus_t ask(const conv_kernel *k, conv_pass pass, int algorithm, size_t *bytes)
{
	cudnnHandle_t dnn = k->base.device->dnn;
	switch (pass) {
	case FORWARD:
		return cudnnGetConvolutionForwardWorkspaceSize(dnn, k->x, k->w, k->conv, k->y,
							       (cudnnConvolutionFwdAlgo_t)algorithm, bytes);
	case DATA:
		return cudnnGetConvolutionBackwardDataWorkspaceSize(dnn, k->w, k->y, k->conv, k->x,
								    (cudnnConvolutionBwdDataAlgo_t)algorithm, bytes);
	default:
		return cudnnGetConvolutionBackwardFilterWorkspaceSize(dnn, k->x, k->y, k->conv, k->w,
								      (cudnnConvolutionBwdFilterAlgo_t)algorithm, bytes);
	}
}

/* The first algorithm for this direction whose workspace is within bounds, and its workspace; where none is, the one that asks for least. */
static ck_status choose(const conv_kernel *k, conv_pass pass, int *algorithm, size_t *bytes, ck_err *err)
{
	static const char *const names[] = {"convolution", "gradient of a convolution's input",
					    "gradient of a convolution's weight"};
	const ck_op_desc *d = &k->base.desc;
	char x[CK_SHAPE_TEXT], w[CK_SHAPE_TEXT];
	cudnnStatus_t status = CUDNN_STATUS_NOT_SUPPORTED;
	*bytes = SIZE_MAX;
	for (size_t i = 0; i<sizeof algorithms / sizeof *algorithms && * bytes> MOST_WORKSPACE; i++) {
		if (algorithms[i].pass != pass || (algorithms[i].unordered && !k->base.device->fast))
			continue;
		size_t asked = 0;
		cudnnStatus_t answer = ask(k, pass, algorithms[i].algorithm, &asked);
		if (answer != CUDNN_STATUS_SUCCESS)
			status = answer;
		else if (asked <= MOST_WORKSPACE || asked < *bytes)
			*bytes = asked, *algorithm = algorithms[i].algorithm;
	}
	if (*bytes != SIZE_MAX)
		return CK_OK;
	*bytes = 0;
	return ck_fail(err, CK_USAGE,
		       "cuDNN has no %s for x %s, w %s in %s, groups %d, whose sums have an order: %s; choose another shape or "
		       "precision%s",
		       names[pass], ck_shape_text(d->in[X].shape, x), ck_shape_text(d->in[W].shape, w),
		       ck_dtype_name(d->in[X].dtype), d->attr.groups, cudnnGetErrorString(status),
		       k->base.device->fast ? "" : ", or --fast");
}

/* Groups, and channels that do not fill vectors: what libraries leave out. There is always a way for them; what is wide they should have, and
 * our kernels would take it slowly. */
static ck_status settle(conv_kernel *k, conv_pass pass, int *algorithm, size_t *bytes, ck_err *err)
{
	const ck_direct g = direct_of(&k->base.desc);
	bool odd = g.groups > 1 || g.inputs % 8 || g.outputs % 8;
	ck_status status = choose(k, pass, algorithm, bytes, odd ? NULL : err);
	k->own[pass] = odd && status != CK_OK;
	return k->own[pass] ? CK_OK : status;
}

static ck_status choose_all(conv_kernel *k, ck_err *err)
{
	const ck_op_desc *d = &k->base.desc;
	int forward_algorithm = 0, data = 0, filter = 0;
	ck_status status = settle(k, FORWARD, &forward_algorithm, &k->forward_bytes, err);
	if (status == CK_OK && ck_op_wants(d, X))
		status = settle(k, DATA, &data, &k->data_bytes, err);
	if (status == CK_OK && ck_op_wants(d, W))
		status = settle(k, FILTER, &filter, &k->filter_bytes, err);
	k->forward = (cudnnConvolutionFwdAlgo_t)forward_algorithm;
	k->data = (cudnnConvolutionBwdDataAlgo_t)data;
	k->filter = (cudnnConvolutionBwdFilterAlgo_t)filter;
	return status;
}

/* FMA keeps float32 as it is; the default rounds it to TF32 where the device has that. TENSOR_OP is for what is in 16 bits: it is said to
 * convert nothing. */
static void describe_convolution(conv_kernel *k)
{
	const ck_attr *a = &k->base.desc.attr;
	cudnnMathType_t whole = k->base.device->tf32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH;
	CK_CUDA(cudnnCreateConvolutionDescriptor(&k->conv));
	CK_CUDA(cudnnSetConvolution2dDescriptor(k->conv, a->pad, a->pad, a->stride, a->stride, 1, 1, CUDNN_CROSS_CORRELATION,
						CUDNN_DATA_FLOAT));
	CK_CUDA(cudnnSetConvolutionGroupCount(k->conv, a->groups));
	CK_CUDA(cudnnSetConvolutionMathType(k->conv, k->base.desc.in[X].dtype == CK_F32 ? whole : CUDNN_TENSOR_OP_MATH));
}

static ck_status make(conv_kernel *k, ck_err *err)
{
	const ck_op_desc *d = &k->base.desc;
	ck_status status = ck__dnn_tensor("x", &d->in[X], &k->x, err);
	if (status == CK_OK)
		status = ck__dnn_tensor("y", &d->out[0], &k->y, err);
	if (status == CK_OK)
		status = ck__dnn_filter("w", &d->in[W], &k->w, err);
	if (status != CK_OK)
		return status;
	describe_convolution(k);
	return choose_all(k, err);
}

static void destroy(ck_cuda_kernel *kernel)
{
	conv_kernel *k = (conv_kernel *)kernel;
	if (k->conv)
		cudnnDestroyConvolutionDescriptor(k->conv);
	if (k->w)
		cudnnDestroyFilterDescriptor(k->w);
	if (k->y)
		cudnnDestroyTensorDescriptor(k->y);
	if (k->x)
		cudnnDestroyTensorDescriptor(k->x);
	free(k);
}

ck_status ck__cuda_conv2d(ck_device *device, const ck_op_desc *desc, ck_kernel **kernel, ck_err *err)
{
	conv_kernel *k = ck__cuda_kernel_new(device, desc, sizeof *k);
	k->base.destroy = destroy;
	k->base.base.forward = forward;
	k->base.base.backward = desc->needs ? backward : NULL;
	if (make(k, err) != CK_OK) {
		destroy(&k->base);
		return CK_USAGE;
	}
	ck_tensor_desc w = desc->in[W];
	k->columns = ck__columns(device, ck_shape_rows(desc->out[0].shape), ck_shape_last(desc->out[0].shape), LEAST_ROWS);
	if (ck_op_wants(desc, W) && w.dtype != desc->real && !k->own[FILTER])
		k->low = ck__aligned((size_t)ck_shape_count(w.shape) * ck_dtype_size(w.dtype));
	if (desc->attr.bias && ck_op_wants(desc, B))
		k->sums = ck__aligned(ck__column_sums_workspace(&k->columns));
	size_t data = ck__library_bytes(k->data_bytes), filter = ck__library_bytes(k->filter_bytes);
	k->base.base.workspace_forward = ck__library_bytes(k->forward_bytes);
	if (desc->needs)
		k->base.base.workspace_backward = k->low + k->sums + (data > filter ? data : filter);
	*kernel = &k->base.base;
	return CK_OK;
}
