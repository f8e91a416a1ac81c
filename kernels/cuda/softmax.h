/* Launchers of softmax.cu, over (rows, cols) stored as t. Causal: row i has its first i % cols + 1 elements, and zeros in the rest. */
#ifndef CK_CUDA_SOFTMAX_H
#define CK_CUDA_SOFTMAX_H

#include "kernels/cuda/cuda.h"

/* p may lie over s. */
void ck__cuda_softmax_forward(cudaStream_t stream, ck_dtype t, bool causal, int64_t rows, int64_t cols, const void *s, void *p);
/* ds (+)= p (dp - <p, dp>); it may lie over dp. */
void ck__cuda_softmax_backward(cudaStream_t stream, ck_dtype t, bool causal, int64_t rows, int64_t cols, const void *p,
			       const void *dp, void *ds, bool acc);

#endif
