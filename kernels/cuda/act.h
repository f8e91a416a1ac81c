/* Launchers of act.cu, over n elements stored as t. */
#ifndef CK_CUDA_ACT_H
#define CK_CUDA_ACT_H

#include "kernels/cuda/cuda.h"

void ck__cuda_act_forward(cudaStream_t stream, ck_dtype t, ck_act act, int64_t n, const void *x, void *y);
/* dx (+)= dy act'(saved); saved: y for ReLU, x for GELU. */
void ck__cuda_act_backward(cudaStream_t stream, ck_dtype t, ck_act act, int64_t n, const void *dy, const void *saved, void *dx,
			   bool acc);

#endif
