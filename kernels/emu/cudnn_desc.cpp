/* cuDNN's handle and descriptors. What is refused here was tried on the library itself, which needs no device for it. */
#include "kernels/emu/cudnn_double.h"

#include <string.h>

static ck_emu_live<cudnnContext> handles = {"cudnnHandle_t", {}};
static ck_emu_live<cudnnTensorStruct> tensors = {"cudnnTensorDescriptor_t", {}};
static ck_emu_live<cudnnFilterStruct> filters = {"cudnnFilterDescriptor_t", {}};
static ck_emu_live<cudnnConvolutionStruct> convolutions = {"cudnnConvolutionDescriptor_t", {}};
static ck_emu_live<cudnnPoolingStruct> poolings = {"cudnnPoolingDescriptor_t", {}};

const cudnnContext *ck_emu_dnn(cudnnHandle_t handle)
{
	return handles.find(handle);
}

const cudnnTensorStruct *ck_emu_tensor(cudnnTensorDescriptor_t desc)
{
	cudnnTensorStruct *t = tensors.find(desc);
	return t && t->type != stored::none ? t : nullptr;
}

const cudnnFilterStruct *ck_emu_filter(cudnnFilterDescriptor_t desc)
{
	cudnnFilterStruct *f = filters.find(desc);
	return f && f->type != stored::none ? f : nullptr;
}

const cudnnConvolutionStruct *ck_emu_convolution(cudnnConvolutionDescriptor_t desc)
{
	cudnnConvolutionStruct *c = convolutions.find(desc);
	return c && c->set ? c : nullptr;
}

const cudnnPoolingStruct *ck_emu_pooling(cudnnPoolingDescriptor_t desc)
{
	cudnnPoolingStruct *p = poolings.find(desc);
	return p && p->set ? p : nullptr;
}

template <class T> static cudnnStatus_t create(ck_emu_live<T> &all, T **desc)
{
	CK_REFUSE_IF(!desc, CUDNN_STATUS_BAD_PARAM, "%s: nowhere to put it", all.what);
	*desc = all.make();
	**desc = {};
	return CUDNN_STATUS_SUCCESS;
}

template <class T> static cudnnStatus_t destroy(ck_emu_live<T> &all, T *desc)
{
	all.erase(desc);
	return CUDNN_STATUS_SUCCESS;
}

/* False for what is no type of cuDNN's. */
static bool type_of(cudnnDataType_t type, stored *t)
{
	*t = type == CUDNN_DATA_FLOAT      ? stored::f32
	     : type == CUDNN_DATA_HALF     ? stored::f16
	     : type == CUDNN_DATA_BFLOAT16 ? stored::bf16
					   : stored::none;
	if (*t == stored::none && type >= 0 && type <= CUDNN_DATA_COMPLEX_FP64)
		ck_emu_fail("cuDNN: data type %d is not modelled", type);
	return *t != stored::none;
}

/* ---- the handle ----------------------------------------------------------------------------------------------------------- */

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
	return create(handles, handle);
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
	return destroy(handles, handle);
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
	CK_REFUSE_IF(!handles.find(handle), CUDNN_STATUS_BAD_PARAM, "cudnnSetStream: no handle");
	handle->stream = stream;
	return CUDNN_STATUS_SUCCESS;
}

size_t cudnnGetVersion(void)
{
	return CUDNN_VERSION;
}

const char *cudnnGetErrorString(cudnnStatus_t status)
{
	switch (status) {
	case CUDNN_STATUS_SUCCESS:
		return "CUDNN_STATUS_SUCCESS";
	case CUDNN_STATUS_NOT_INITIALIZED:
		return "CUDNN_STATUS_NOT_INITIALIZED";
	case CUDNN_STATUS_BAD_PARAM:
		return "CUDNN_STATUS_BAD_PARAM";
	case CUDNN_STATUS_NOT_SUPPORTED:
		return "CUDNN_STATUS_NOT_SUPPORTED";
	default:
		return "CUDNN_UNKNOWN_STATUS";
	}
}

void cudnnGetLastErrorString(char *message, size_t most)
{
	if (!message || !most)
		return;
	strncpy(message, ck_emu_refusal(), most - 1);
	message[most - 1] = '\0';
}

/* ---- tensors -------------------------------------------------------------------------------------------------------------- */

size_t cudnnTensorStruct::bytes() const
{
	return (size_t)(at(dim[N] - 1, dim[CHANNELS] - 1, dim[H] - 1, dim[W] - 1) + 1) * ck_emu_size(type);
}

bool cudnnTensorStruct::same_dims(const cudnnTensorStruct &other) const
{
	return !memcmp(dim, other.dim, sizeof dim);
}

bool cudnnTensorStruct::same_strides(const cudnnTensorStruct &other) const
{
	return !memcmp(stride, other.stride, sizeof stride);
}

bool cudnnTensorStruct::positive_strides() const
{
	return stride[N] > 0 && stride[CHANNELS] > 0 && stride[H] > 0 && stride[W] > 0;
}

bool cudnnTensorStruct::hwc_packed() const
{
	return stride[CHANNELS] == 1 && stride[W] == dim[CHANNELS] && stride[H] == dim[W] * dim[CHANNELS];
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *desc)
{
	return create(tensors, desc);
}

cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t desc)
{
	return destroy(tensors, desc);
}

cudnnStatus_t cudnnSetTensor4dDescriptorEx(cudnnTensorDescriptor_t desc, cudnnDataType_t type, int n, int c, int h, int w,
					   int ns, int cs, int hs, int ws)
{
	stored t;
	CK_REFUSE_IF(!tensors.find(desc), CUDNN_STATUS_BAD_PARAM, "no tensor descriptor");
	CK_REFUSE_IF(!type_of(type, &t), CUDNN_STATUS_BAD_PARAM, "%d is no data type", type);
	CK_REFUSE_IF(n <= 0 || c <= 0 || h <= 0 || w <= 0, CUDNN_STATUS_BAD_PARAM, "a tensor of %dx%dx%dx%d", n, c, h, w);
	cudnnTensorStruct set = {t, {n, c, h, w}, {ns, cs, hs, ws}};
	int64_t elements = 1;
	for (int i = 0; i < 4; i++) {
		CK_REFUSE_IF(set.stride[i] == 0 && set.dim[i] != 1, CUDNN_STATUS_BAD_PARAM, "a stride of 0");
		CK_REFUSE_IF(elements * set.dim[i] > INT32_MAX, CUDNN_STATUS_NOT_SUPPORTED, "more elements than an int counts");
		elements *= set.dim[i];
	}
	*desc = set;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t desc, cudnnTensorFormat_t format, cudnnDataType_t type, int n,
					 int c, int h, int w)
{
	if (format == CUDNN_TENSOR_NCHW_VECT_C)
		ck_emu_fail("cuDNN: NCHW_VECT_C is not modelled");
	CK_REFUSE_IF(format != CUDNN_TENSOR_NCHW && format != CUDNN_TENSOR_NHWC, CUDNN_STATUS_BAD_PARAM, "%d is no format",
		     format);
	CK_REFUSE_IF(n <= 0 || c <= 0 || h <= 0 || w <= 0, CUDNN_STATUS_BAD_PARAM, "a tensor of %dx%dx%dx%d", n, c, h, w);
	CK_REFUSE_IF((int64_t)c * h > INT32_MAX || (int64_t)c * h * w > INT32_MAX, CUDNN_STATUS_NOT_SUPPORTED,
		     "more elements than an int counts");
	if (format == CUDNN_TENSOR_NHWC)
		return cudnnSetTensor4dDescriptorEx(desc, type, n, c, h, w, c * h * w, 1, w * c, c);
	return cudnnSetTensor4dDescriptorEx(desc, type, n, c, h, w, c * h * w, h * w, w, 1);
}

cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t desc, cudnnDataType_t type, int dims, const int dim[],
					 const int stride[])
{
	CK_REFUSE_IF(dims > CUDNN_DIM_MAX, CUDNN_STATUS_NOT_SUPPORTED, "%d dimensions", dims);
	CK_REFUSE_IF(!dim || !stride, CUDNN_STATUS_BAD_PARAM, "no dimensions or strides");
	if (dims != 4)
		ck_emu_fail("cuDNN: tensors of %d dimensions are not modelled", dims);
	return cudnnSetTensor4dDescriptorEx(desc, type, dim[0], dim[1], dim[2], dim[3], stride[0], stride[1], stride[2],
					    stride[3]);
}

/* ---- filters, convolutions, pools ----------------------------------------------------------------------------------------- */

size_t cudnnFilterStruct::bytes() const
{
	return (size_t)k * (size_t)c * (size_t)h * (size_t)w * ck_emu_size(type);
}

cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t *desc)
{
	return create(filters, desc);
}

cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t desc)
{
	return destroy(filters, desc);
}

cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t desc, cudnnDataType_t type, cudnnTensorFormat_t format, int k,
					 int c, int h, int w)
{
	stored t;
	CK_REFUSE_IF(!filters.find(desc), CUDNN_STATUS_BAD_PARAM, "no filter descriptor");
	CK_REFUSE_IF(!type_of(type, &t), CUDNN_STATUS_BAD_PARAM, "%d is no data type", type);
	CK_REFUSE_IF(k <= 0 || c <= 0 || h <= 0 || w <= 0, CUDNN_STATUS_BAD_PARAM, "a filter of %dx%dx%dx%d", k, c, h, w);
	CK_REFUSE_IF(format < CUDNN_TENSOR_NCHW || format > CUDNN_TENSOR_NCHW_VECT_C, CUDNN_STATUS_BAD_PARAM, "%d is no format",
		     format);
	if (format == CUDNN_TENSOR_NCHW_VECT_C)
		ck_emu_fail("cuDNN: NCHW_VECT_C is not modelled");
	*desc = {t, format, k, c, h, w};
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t *desc)
{
	cudnnStatus_t status = create(convolutions, desc);
	if (status == CUDNN_STATUS_SUCCESS)
		(*desc)->groups = 1;
	return status;
}

cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t desc)
{
	return destroy(convolutions, desc);
}

/* Groups and math type stay as they were. */
cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t desc, int pad_h, int pad_w, int u, int v,
					      int dilation_h, int dilation_w, cudnnConvolutionMode_t mode,
					      cudnnDataType_t compute)
{
	CK_REFUSE_IF(!convolutions.find(desc), CUDNN_STATUS_BAD_PARAM, "no convolution descriptor");
	CK_REFUSE_IF(pad_h < 0 || pad_w < 0, CUDNN_STATUS_BAD_PARAM, "padding %d,%d", pad_h, pad_w);
	CK_REFUSE_IF(u <= 0 || v <= 0, CUDNN_STATUS_BAD_PARAM, "stride %d,%d", u, v);
	CK_REFUSE_IF(dilation_h <= 0 || dilation_w <= 0, CUDNN_STATUS_BAD_PARAM, "dilation %d,%d", dilation_h, dilation_w);
	CK_REFUSE_IF(compute != CUDNN_DATA_FLOAT && compute != CUDNN_DATA_HALF && compute != CUDNN_DATA_DOUBLE &&
			 compute != CUDNN_DATA_INT32,
		     CUDNN_STATUS_BAD_PARAM, "%d is no type to compute in", compute);
	if (mode == CUDNN_CONVOLUTION || compute == CUDNN_DATA_INT32 || compute == CUDNN_DATA_DOUBLE)
		ck_emu_fail("cuDNN: convolution mode %d, compute type %d are not modelled", mode, compute);
	*desc = {true, {pad_h, pad_w}, {u, v}, {dilation_h, dilation_w}, desc->groups, compute, desc->math};
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t desc, int groups)
{
	CK_REFUSE_IF(!convolutions.find(desc), CUDNN_STATUS_BAD_PARAM, "no convolution descriptor");
	CK_REFUSE_IF(groups <= 0, CUDNN_STATUS_BAD_PARAM, "%d groups", groups);
	desc->groups = groups;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t desc, cudnnMathType_t math)
{
	CK_REFUSE_IF(!convolutions.find(desc), CUDNN_STATUS_BAD_PARAM, "no convolution descriptor");
	desc->math = math;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreatePoolingDescriptor(cudnnPoolingDescriptor_t *desc)
{
	return create(poolings, desc);
}

cudnnStatus_t cudnnDestroyPoolingDescriptor(cudnnPoolingDescriptor_t desc)
{
	return destroy(poolings, desc);
}

cudnnStatus_t cudnnSetPooling2dDescriptor(cudnnPoolingDescriptor_t desc, cudnnPoolingMode_t mode, cudnnNanPropagation_t,
					  int window_h, int window_w, int pad_h, int pad_w, int stride_h, int stride_w)
{
	CK_REFUSE_IF(!poolings.find(desc), CUDNN_STATUS_BAD_PARAM, "no pooling descriptor");
	CK_REFUSE_IF(window_h <= 0 || window_w <= 0, CUDNN_STATUS_BAD_PARAM, "window %dx%d", window_h, window_w);
	CK_REFUSE_IF(stride_h <= 0 || stride_w <= 0, CUDNN_STATUS_BAD_PARAM, "stride %d,%d", stride_h, stride_w);
	if (mode != CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING && mode != CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING)
		ck_emu_fail("cuDNN: pooling by maxima is not modelled");
	bool counts = mode == CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING;
	if (pad_h < 0 || pad_w < 0 || (!counts && (pad_h >= window_h || pad_w >= window_w)))
		ck_emu_fail("cudnnSetPooling2dDescriptor: padding %d,%d of a window of %dx%d", pad_h, pad_w, window_h,
			    window_w);
	*desc = {true, mode, {window_h, window_w}, {pad_h, pad_w}, {stride_h, stride_w}};
	return CUDNN_STATUS_SUCCESS;
}

/* ---- for the calls -------------------------------------------------------------------------------------------------------- */

float ck_emu_factor(const void *at, const char *call)
{
	ck_emu_check_host(at, sizeof(float), call);
	return *static_cast<const float *>(at);
}

void ck_emu_blend(stored t, void *to, int64_t i, float alpha, float value, float beta)
{
	float v = alpha * value;
	if (beta != 0)
		v += beta * ck_emu_get(t, to, i);
	ck_emu_put(t, to, i, v);
}
