/* The plain BATCHNORM by cuDNN: training, no activation, no residual, float32 or float16. */
#ifndef CK_CUDA_BATCHNORM_DNN_H
#define CK_CUDA_BATCHNORM_DNN_H

#include <cudnn.h>

#include "kernels/cuda/cuda.h"

/* Descriptors for one op; made by open, freed by close. */
typedef struct ck_batchnorm_dnn {
	cudnnTensorDescriptor_t x, vector; /* x, y and their gradients; what there is one of per channel */
} ck_batchnorm_dnn;

/* Whether the forward is cuDNN's; and then the backward too, if x's gradient is wanted. */
bool ck__batchnorm_dnn_has(const ck_op_desc *desc);

ck_batchnorm_dnn ck__batchnorm_dnn_open(const ck_op_desc *desc);
void ck__batchnorm_dnn_close(ck_batchnorm_dnn *dnn);

/* Bytes of workspace. */
size_t ck__batchnorm_dnn_forward_bytes(const ck_op_desc *desc);
size_t ck__batchnorm_dnn_backward_bytes(const ck_op_desc *desc);

void ck__batchnorm_dnn_forward(ck_device *device, const ck_op_desc *desc, const ck_batchnorm_dnn *dnn, const ck_args *a);
/* x's gradient must be among the wanted: without it the contract keeps less than cuDNN reads. */
void ck__batchnorm_dnn_backward(ck_device *device, const ck_op_desc *desc, const ck_batchnorm_dnn *dnn, const ck_args *a);

#endif
