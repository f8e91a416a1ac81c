/* Launchers of conv2d.cu: x (n, h, w, c), y (n, oh, ow, outputs), w (outputs, kh, kw, c / groups), stored as t. */
#ifndef CK_CUDA_CONV2D_H
#define CK_CUDA_CONV2D_H

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/window.h"

typedef struct ck_direct {
	ck_window at;
	int64_t groups, inputs, outputs; /* the latter two: of a group */
} ck_direct;

void ck__cuda_direct_forward(cudaStream_t stream, ck_dtype t, ck_direct g, const void *x, const void *w, void *y);
void ck__cuda_direct_data(cudaStream_t stream, ck_dtype t, ck_direct g, const void *w, const void *dy, void *dx, bool acc);
void ck__cuda_direct_filter(cudaStream_t stream, ck_dtype t, ck_direct g, const void *x, const void *dy, float *dw, bool acc);

#endif
