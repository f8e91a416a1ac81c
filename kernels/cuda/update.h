/* Launchers of update.cu: one step of one parameter, over n elements of float32, and what comes before it. */
#ifndef CK_CUDA_UPDATE_H
#define CK_CUDA_UPDATE_H

#include "kernels/cuda/cuda.h"

typedef struct ck_sgd_step {
	float lr, decay, momentum;
} ck_sgd_step;

typedef struct ck_adamw_step {
	float lr;    /* lr / (1 - beta1^t) */
	float decay; /* 1 - lr weight_decay */
	float beta1, rest1, beta2, rest2;
	float scale2; /* 1 / sqrt(1 - beta2^t) */
	float eps;
} ck_adamw_step;

/* m: NULL without momentum. */
void ck__cuda_sgd(cudaStream_t stream, ck_sgd_step step, int64_t n, const float *g, float *w, float *m);
void ck__cuda_adamw(cudaStream_t stream, ck_adamw_step step, int64_t n, const float *g, float *w, float *m, float *v);
/* g *= factor; *overflow becomes 1 when an element was infinite or NaN. */
void ck__cuda_scale(cudaStream_t stream, float factor, int64_t n, float *g, int *overflow);

#endif
