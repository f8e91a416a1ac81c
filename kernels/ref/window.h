/* Windows sliding over NHWC images, for CONV2D and the pools. A pixel is (n, h, w) counted row-major; a place is (ky, kx) within
 * the window, likewise. */
#ifndef CK_REF_WINDOW_H
#define CK_REF_WINDOW_H

#include "kernels/ops.h"

typedef struct ck_ref_window {
	int64_t n, h, w, oh, ow;
	int64_t kh, kw, stride, pad;
	int64_t places; /* kh * kw */
} ck_ref_window;

static inline ck_ref_window ck__ref_window(const ck_op_desc *d)
{
	const int64_t *x = d->in[0].shape.d, *y = d->out[0].shape.d;
	const ck_attr *t = &d->attr;
	return (ck_ref_window){x[0], x[1], x[2], y[1], y[2], t->kh, t->kw, t->stride, t->pad, (int64_t)t->kh * t->kw};
}

/* The input pixel under a place of an output pixel's window; -1: that is padding. */
static inline int64_t ck__ref_under(const ck_ref_window *g, int64_t output, int64_t place)
{
	int64_t ow = output % g->ow, oh = output / g->ow % g->oh, n = output / g->ow / g->oh;
	int64_t h = oh * g->stride - g->pad + place / g->kw, w = ow * g->stride - g->pad + place % g->kw;
	return h < 0 || h >= g->h || w < 0 || w >= g->w ? -1 : (n * g->h + h) * g->w + w;
}

/* The output pixel whose window has an input pixel at a place; -1: there is none. */
static inline int64_t ck__ref_over(const ck_ref_window *g, int64_t input, int64_t place)
{
	int64_t w = input % g->w, h = input / g->w % g->h, n = input / g->w / g->h;
	int64_t y = h + g->pad - place / g->kw, x = w + g->pad - place % g->kw;
	if (y < 0 || x < 0 || y % g->stride || x % g->stride || y / g->stride >= g->oh || x / g->stride >= g->ow)
		return -1;
	return (n * g->oh + y / g->stride) * g->ow + x / g->stride;
}

#endif
