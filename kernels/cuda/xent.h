/* Launchers of xent.cu: logits (rows, cols) stored as t, target (rows). */
#ifndef CK_CUDA_XENT_H
#define CK_CUDA_XENT_H

#include "kernels/cuda/cuda.h"

/* lse (rows), loss (1): the mean of row_loss, which is room for (rows). */
void ck__cuda_xent_forward(cudaStream_t stream, ck_dtype t, int64_t rows, int64_t cols, const void *logits,
			   const int32_t *target, float *lse, float *row_loss, float *loss);
/* dlogits (+)= (exp(logits - lse) - [target]) g / rows, g the one at dout, or dloss where that is NULL; it may lie over the logits. */
void ck__cuda_xent_backward(cudaStream_t stream, ck_dtype t, int64_t rows, int64_t cols, const void *logits,
			    const int32_t *target, const float *lse, const float *dout, float dloss, void *dlogits, bool acc);

#endif
