/* Launchers of avgpool.cu: windows (kh, kw) over images (N,H,W,C), their outputs (N,OH,OW,C), both stored in t. */
#ifndef CK_CUDA_AVGPOOL_H
#define CK_CUDA_AVGPOOL_H

#include "kernels/cuda/cuda.h"

typedef struct ck_windows {
	int64_t n, h, w, c, oh, ow;
	int kh, kw, stride, pad;
} ck_windows;

void ck__avgpool_forward(cudaStream_t stream, const ck_windows *s, ck_dtype t, const void *x, void *y);
void ck__avgpool_backward(cudaStream_t stream, const ck_windows *s, ck_dtype t, const void *dy, void *dx, bool acc);

#endif
