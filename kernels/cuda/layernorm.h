/* Launchers of layernorm.cu: x, dx (rows, cols) are float32; y, xhat, dy (rows, cols) are stored as t. */
#ifndef CK_CUDA_LAYERNORM_H
#define CK_CUDA_LAYERNORM_H

#include "kernels/cuda/columns.h"

/* rstd (rows); xhat, or mean (rows): the other is NULL. */
void ck__cuda_layernorm_forward(cudaStream_t stream, ck_dtype t, int64_t rows, int64_t cols, float eps, const float *x,
				const float *gamma, const float *beta, void *y, void *xhat, float *mean, float *rstd);

/* What the forward saved: xhat and rstd, or x, mean and rstd; the others are NULL. */
typedef struct ck_layernorm_saved {
	const void *xhat;
	const float *x, *mean, *rstd;
} ck_layernorm_saved;

void ck__cuda_layernorm_dx(cudaStream_t stream, ck_dtype t, int64_t rows, int64_t cols, ck_layernorm_saved saved,
			   const float *gamma, const void *dy, float *dx, bool acc);

/* dgamma, dbeta (cols), either may be NULL; nothing may be saved where only dbeta is wanted. parts: room for (2, slices, cols). */
void ck__cuda_layernorm_sums(cudaStream_t stream, const ck_columns *c, ck_dtype t, ck_layernorm_saved saved, const void *dy,
			     float *parts, float *dgamma, bool acc_gamma, float *dbeta, bool acc_beta);

#endif
