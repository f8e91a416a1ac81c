/* Launchers of batchnorm.cu. Vectors have c->cols floats; x, y, r and their gradients are (c->rows, c->cols) in t. What is not there is NULL. */
#ifndef CK_CUDA_BATCHNORM_H
#define CK_CUDA_BATCHNORM_H

#include "kernels/cuda/columns.h"

size_t ck__batchnorm_workspace(const ck_columns *c); /* bytes; either direction */

/* mean, rstd: of all rows. running_mean, running_var, count: NULL in a recompute. */
void ck__batchnorm_statistics(cudaStream_t stream, const ck_columns *c, ck_dtype t, double eps, double momentum, const void *x,
			      float *workspace, float *mean, float *rstd, float *running_mean, float *running_var,
			      int32_t *count);

/* count += 1, where cuDNN made the statistics. */
void ck__batchnorm_count(cudaStream_t stream, int32_t *count);

/* y = act(gamma (x - mean) rstd + beta + r). rstd NULL: it is made of `variance`. */
void ck__batchnorm_apply(cudaStream_t stream, const ck_columns *c, ck_dtype t, bool relu, double eps, const void *x,
			 const float *mean, const float *rstd, const float *variance, const float *gamma, const float *beta,
			 const void *r, void *y);

/* dgamma and dbeta, and into the workspace's end what dx is made of. y: the output, where there was a ReLU. x: NULL when nothing depends on
 * the normalised input. */
void ck__batchnorm_sums(cudaStream_t stream, const ck_columns *c, ck_dtype t, double eps, const void *dy, const void *y,
			const void *x, const float *mean, const float *rstd, const float *variance, float *workspace,
			float *dgamma, bool acc_gamma, float *dbeta, bool acc_beta);

/* dx and dr; training: after ck__batchnorm_sums, in the same workspace. Else x and mean are not read. */
void ck__batchnorm_gradient(cudaStream_t stream, const ck_columns *c, ck_dtype t, double eps, bool training, const void *dy,
			    const void *y, const void *x, const float *mean, const float *rstd, const float *variance,
			    const float *gamma, const float *workspace, void *dx, bool acc_x, void *dr, bool acc_r);

#endif
