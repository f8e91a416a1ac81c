/* Launchers of maxpool.cu: x, dx (n, h, w, c), y, dy, at (n, oh, ow, c), stored as t; at: bytes. */
#ifndef CK_CUDA_MAXPOOL_H
#define CK_CUDA_MAXPOOL_H

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/window.h"

void ck__cuda_maxpool_forward(cudaStream_t stream, ck_dtype t, ck_window g, const void *x, void *y, uint8_t *at);
void ck__cuda_maxpool_backward(cudaStream_t stream, ck_dtype t, ck_window g, const void *dy, const uint8_t *at, void *dx,
			       bool acc);

#endif
