/* Launchers of pass.cu: whole tensors passed on and added, over n elements. Where dtypes differ one is float32. */
#ifndef CK_CUDA_PASS_H
#define CK_CUDA_PASS_H

#include "kernels/cuda/cuda.h"

/* y = x, or y += x with acc. Nothing is done when x == y and not acc: the gradient of an input that is passed on unchanged. */
void ck__cuda_pass(cudaStream_t stream, int64_t n, ck_dtype tx, const void *x, ck_dtype ty, void *y, bool acc);
/* y = a + b. a and y are stored as t, b as tb: the same, or 16-bit where t is float32. y may lie over a, or b of the same dtype. */
void ck__cuda_sum(cudaStream_t stream, int64_t n, ck_dtype t, const void *a, ck_dtype tb, const void *b, void *y);
/* The backward of an op that passes dout on to each input that needs a gradient. What is of another dtype than dout goes first: the
 * other gradient may take dout's place. */
void ck__cuda_pass_backward(const ck_kernel *kernel, const ck_args *a);

#endif
