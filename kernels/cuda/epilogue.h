/* Launchers of epilogue.cu, over n elements: what LINEAR does to its product, and to the gradient before its products; CONV2D adds its
 * bias by it, too. */
#ifndef CK_CUDA_EPILOGUE_H
#define CK_CUDA_EPILOGUE_H

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/drop.h"

/* y = r + dropout(act(z)), z = product + bias, over rows of `cols` elements; all but the bias stored in t. bias, r: NULL, there is none.
 * drops: whether there is dropout. stash: where z is kept, NULL or the product's own place. y may lie over the product, too. */
void ck__epilogue_forward(cudaStream_t stream, ck_dtype t, int64_t n, int64_t cols, ck_act act, bool drops, ck_drop drop,
			  const void *product, const float *bias, const void *r, const uint8_t *mask, void *stash, void *y);

/* dz = act'(saved) dropout'(dy), stored in t. dy is stored in ty, float32 or the same; saved, in t, is NULL without an activation. */
void ck__epilogue_backward(cudaStream_t stream, ck_dtype ty, ck_dtype t, int64_t n, ck_act act, bool drops, ck_drop drop,
			   const void *dy, const void *saved, const uint8_t *mask, void *dz);

#endif
