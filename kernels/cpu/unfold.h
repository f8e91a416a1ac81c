/* The windows of a convolution as the rows of a matrix ("im2col"). */
#ifndef CK_UNFOLD_H
#define CK_UNFOLD_H

#include "kernels/cpu/parallel.h"

/* x (N,H,W,C) to windows (N OH OW, kh kw C), zero where a window reaches into the padding. desc: of a CONV2D with one group. */
void ck__unfold(const ck_device *d, const ck_op_desc *desc, const ck_stored *x, ck_stored *windows);

#endif
