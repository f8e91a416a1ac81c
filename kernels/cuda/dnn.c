#include "kernels/cuda/dnn.h"

#include <limits.h>

cudnnDataType_t ck__dnn_type(ck_dtype t)
{
	return t == CK_BF16 ? CUDNN_DATA_BFLOAT16 : t == CK_F16 ? CUDNN_DATA_HALF : CUDNN_DATA_FLOAT;
}

static ck_status check_size(const char *what, const ck_tensor_desc *t, ck_err *err)
{
	char text[CK_SHAPE_TEXT];
	if (ck_shape_count(t->shape) <= INT_MAX)
		return CK_OK;
	return ck_fail(err, CK_USAGE, "%s %s has more than 2^31 elements, the most that cuDNN takes: use a smaller batch", what,
		       ck_shape_text(t->shape, text));
}

ck_status ck__dnn_tensor(const char *what, const ck_tensor_desc *t, cudnnTensorDescriptor_t *descriptor, ck_err *err)
{
	const int64_t *d = t->shape.d;
	if (check_size(what, t, err) != CK_OK)
		return CK_USAGE;
	CK_CUDA(cudnnCreateTensorDescriptor(descriptor));
	CK_CUDA(cudnnSetTensor4dDescriptor(*descriptor, CUDNN_TENSOR_NHWC, ck__dnn_type(t->dtype), (int)d[0], (int)d[3],
					   (int)d[1], (int)d[2]));
	return CK_OK;
}

ck_status ck__dnn_filter(const char *what, const ck_tensor_desc *t, cudnnFilterDescriptor_t *descriptor, ck_err *err)
{
	const int64_t *d = t->shape.d;
	if (check_size(what, t, err) != CK_OK)
		return CK_USAGE;
	CK_CUDA(cudnnCreateFilterDescriptor(descriptor));
	CK_CUDA(cudnnSetFilter4dDescriptor(*descriptor, ck__dnn_type(t->dtype), CUDNN_TENSOR_NHWC, (int)d[0], (int)d[3],
					   (int)d[1], (int)d[2]));
	return CK_OK;
}
