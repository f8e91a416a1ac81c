/* Launchers of avgpool.cu: x, dx (n, h, w, c), y, dy (n, oh, ow, c), stored as t. */
#ifndef CK_CUDA_AVGPOOL_H
#define CK_CUDA_AVGPOOL_H

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/window.h"

void ck__cuda_avgpool_forward(cudaStream_t stream, ck_dtype t, ck_window g, const void *x, void *y);
void ck__cuda_avgpool_backward(cudaStream_t stream, ck_dtype t, ck_window g, const void *dy, void *dx, bool acc);

#endif
