/* Between 16-bit tensors and float32 ones of the same strides: for products that oneDNN does not make in 16 bits on this processor. */
#ifndef CK_STAGE_H
#define CK_STAGE_H

#include "kernels/cpu/dnnl.h"
#include "kernels/cpu/vec.h"

/* The view's elements, at `tensor` as it stores them, to where the same strides put them from `wide` on; and back, rounded. */
void ck__stage_widen(const ck_vec_set *vec, int threads, const ck_view *v, const void *tensor, float *wide);
void ck__stage_narrow(const ck_vec_set *vec, int threads, const ck_view *v, const float *wide, void *tensor);

#endif
