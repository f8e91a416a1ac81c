/* Windows sliding over images: x (n, h, w, c), y (n, oh, ow, c). */
#ifndef CK_CUDA_WINDOW_H
#define CK_CUDA_WINDOW_H

#include "kernels/ops.h"

typedef struct ck_window {
	int64_t n, h, w, c, oh, ow, kh, kw, stride, pad;
} ck_window;

static inline ck_window ck__window_of(const ck_op_desc *d)
{
	const int64_t *x = d->in[0].shape.d, *y = d->out[0].shape.d;
	const ck_attr *t = &d->attr;
	ck_window g = {x[0], x[1], x[2], x[3], y[1], y[2], t->kh, t->kw, t->stride, t->pad};
	return g;
}

#endif
