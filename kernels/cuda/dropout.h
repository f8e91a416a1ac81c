/* Launchers of dropout.cu, over n elements. x is stored as tx, r and y as ty: the same, or float32 where x is 16-bit. mask: NULL, or (n).
 * y may lie over x of the same dtype. */
#ifndef CK_CUDA_DROPOUT_H
#define CK_CUDA_DROPOUT_H

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/drop.h"

/* y = r + dropout(x); r may be NULL. */
void ck__cuda_dropout_forward(cudaStream_t stream, ck_drop drop, const uint8_t *mask, int64_t n, ck_dtype tx, const void *x,
			      ck_dtype ty, const void *r, void *y);
/* dx (+)= dropout'(dy). */
void ck__cuda_dropout_backward(cudaStream_t stream, ck_drop drop, const uint8_t *mask, int64_t n, ck_dtype ty, const void *dy,
			       ck_dtype tx, void *dx, bool acc);

#endif
