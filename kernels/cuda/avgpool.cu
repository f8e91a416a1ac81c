/* AVGPOOL: each output gathers its window; each input's gradient gathers from the windows that hold it. A thread an element, neighbours along
 * the channels. Bound by memory: the windows' overlap comes from cache. */
#include "kernels/cuda/launch.cuh"

extern "C" {
#include "kernels/cuda/avgpool.h"
}

template <typename T> CK_KERNEL void avgpool_forward(ck_windows s, const T *x, T *y)
{
	for (int64_t e = ck_thread(); e < s.n * s.oh * s.ow * s.c; e += ck_threads()) {
		int64_t c = e % s.c, at = e / s.c, left = at % s.ow * s.stride - s.pad;
		int64_t top = at / s.ow % s.oh * s.stride - s.pad, n = at / s.ow / s.oh;
		float sum = 0.0f;
		for (int64_t i = top < 0 ? 0 : top; i < top + s.kh && i < s.h; i++)
			for (int64_t j = left < 0 ? 0 : left; j < left + s.kw && j < s.w; j++)
				sum += ck_get(x, ((n * s.h + i) * s.w + j) * s.c + c);
		ck_put(y, e, sum / (float)(s.kh * s.kw));
	}
}

/* The first window along one axis that holds place i. */
CK_DEVICE int64_t first_window(int64_t i, int window, int stride, int pad)
{
	int64_t beyond = i + pad - window; /* windows that begin here or before have ended */
	return beyond < 0 ? 0 : beyond / stride + 1;
}

template <typename T> CK_KERNEL void avgpool_backward(ck_windows s, bool acc, const T *dy, T *dx)
{
	for (int64_t e = ck_thread(); e < s.n * s.h * s.w * s.c; e += ck_threads()) {
		int64_t c = e % s.c, at = e / s.c, j = at % s.w, i = at / s.w % s.h, n = at / s.w / s.h;
		float sum = 0.0f;
		for (int64_t oi = first_window(i, s.kh, s.stride, s.pad); oi < s.oh && oi * s.stride <= i + s.pad; oi++)
			for (int64_t oj = first_window(j, s.kw, s.stride, s.pad); oj < s.ow && oj * s.stride <= j + s.pad; oj++)
				sum += ck_get(dy, ((n * s.oh + oi) * s.ow + oj) * s.c + c);
		sum /= (float)(s.kh * s.kw);
		ck_put(dx, e, acc ? ck_get(dx, e) + sum : sum);
	}
}

void ck__avgpool_forward(cudaStream_t stream, const ck_windows *s, ck_dtype t, const void *x, void *y)
{
	CK_STORED(t, T,
		  CK_LAUNCH((avgpool_forward<T>), ck_blocks(s->n * s->oh * s->ow * s->c), CK_BLOCK, 0, stream, *s, (const T *)x,
			    (T *)y));
}

void ck__avgpool_backward(cudaStream_t stream, const ck_windows *s, ck_dtype t, const void *dy, void *dx, bool acc)
{
	CK_STORED(t, T,
		  CK_LAUNCH((avgpool_backward<T>), ck_blocks(s->n * s->h * s->w * s->c), CK_BLOCK, 0, stream, *s, acc,
			    (const T *)dy, (T *)dx));
}
