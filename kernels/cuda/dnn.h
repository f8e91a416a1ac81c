/* cuDNN's descriptors of our tensors: NHWC, as they lie in memory. Freed by cuDNN's own functions. */
#ifndef CK_CUDA_DNN_H
#define CK_CUDA_DNN_H

#include <cudnn.h>

#include "kernels/cuda/cuda.h"

cudnnDataType_t ck__dnn_type(ck_dtype t);
/* (N,H,W,C). CK_USAGE when it is larger than cuDNN can index, 2^31 elements: `what` names it. */
ck_status ck__dnn_tensor(const char *what, const ck_tensor_desc *t, cudnnTensorDescriptor_t *descriptor, ck_err *err);
/* A window's filter: (O,kh,kw,C/groups). */
ck_status ck__dnn_filter(const char *what, const ck_tensor_desc *t, cudnnFilterDescriptor_t *descriptor, ck_err *err);

#endif
