/* The double of cuDNN: its handle and descriptors (cudnn_desc.cpp) for the families of calls: cudnn_conv.cpp, cudnn_batchnorm.cpp,
 * cudnn_pool.cpp. Tensors have four dimensions, N, C, H, W, and any strides. */
#ifndef CK_EMU_CUDNN_DOUBLE_H
#define CK_EMU_CUDNN_DOUBLE_H

#include <cudnn.h>

#include "kernels/emu/library.h"

enum { N, CHANNELS, H, W };

struct cudnnContext {
	cudaStream_t stream;
};

struct cudnnTensorStruct {
	stored type; /* none: not set yet */
	int dim[4];
	int stride[4]; /* elements */

	int64_t at(int64_t n, int64_t c, int64_t h, int64_t w) const
	{
		return n * stride[N] + c * stride[CHANNELS] + h * stride[H] + w * stride[W];
	}
	size_t bytes() const; /* from the first element to the last */
	bool same_dims(const cudnnTensorStruct &other) const;
	bool same_strides(const cudnnTensorStruct &other) const;
	bool positive_strides() const;
	bool hwc_packed() const; /* NHWC, images without gaps */
};

struct cudnnFilterStruct {
	stored type; /* none: not set yet */
	cudnnTensorFormat_t format;
	int k, c, h, w;
	size_t bytes() const;
};

struct cudnnConvolutionStruct {
	bool set;
	int pad[2], stride[2], dilation[2], groups;
	cudnnDataType_t compute;
	cudnnMathType_t math;
};

struct cudnnPoolingStruct {
	bool set;
	cudnnPoolingMode_t mode;
	int window[2], pad[2], stride[2];
};

/* End the program for one that was destroyed or never created; NULL for NULL, and for one that is not set. */
const cudnnContext *ck_emu_dnn(cudnnHandle_t handle);
const cudnnTensorStruct *ck_emu_tensor(cudnnTensorDescriptor_t desc);
const cudnnFilterStruct *ck_emu_filter(cudnnFilterDescriptor_t desc);
const cudnnConvolutionStruct *ck_emu_convolution(cudnnConvolutionDescriptor_t desc);
const cudnnPoolingStruct *ck_emu_pooling(cudnnPoolingDescriptor_t desc);

/* alpha and beta of a call: floats on the host, for tensors that are not double. */
float ck_emu_factor(const void *at, const char *call);

/* to = alpha value + beta to, rounded once. beta of 0: what was there is not read. */
void ck_emu_blend(stored t, void *to, int64_t i, float alpha, float value, float beta);

#endif
