/* CONV2D without a library, for what cuDNN lacks: a place of y or of dx a thread, which gathers its window in row-major order, and an element
 * of dw a block, whose threads take y's places in turn. Meant for groups of few channels, which are bound by memory; nothing is kept in
 * shared memory, so that wide ones are slow. */
#include "kernels/cuda/launch.cuh"

extern "C" {
#include "kernels/cuda/conv2d.h"
}

template <typename T> CK_KERNEL void direct_forward(ck_direct g, const T *x, const T *w, T *y)
{
	int64_t all = g.groups * g.outputs, count = g.at.n * g.at.oh * g.at.ow * all;
	for (int64_t e = ck_thread(); e < count; e += ck_threads()) {
		int64_t o = e % all, place = e / all, c = o / g.outputs * g.inputs;
		int64_t top = place / g.at.ow % g.at.oh * g.at.stride - g.at.pad,
			left = place % g.at.ow * g.at.stride - g.at.pad;
		int64_t image = place / g.at.ow / g.at.oh * g.at.h;
		float sum = 0.0f;
		for (int64_t i = top < 0 ? 0 : top; i < g.at.h && i < top + g.at.kh; i++)
			for (int64_t j = left < 0 ? 0 : left; j < g.at.w && j < left + g.at.kw; j++) {
				int64_t from = ((image + i) * g.at.w + j) * g.at.c + c;
				int64_t tap = ((o * g.at.kh + i - top) * g.at.kw + j - left) * g.inputs;
				for (int64_t k = 0; k < g.inputs; k++)
					sum += ck_get(x, from + k) * ck_get(w, tap + k);
			}
		ck_put(y, e, sum);
	}
}

template <typename T> CK_KERNEL void direct_data(ck_direct g, bool acc, const T *w, const T *dy, T *dx)
{
	int64_t all = g.groups * g.outputs, count = g.at.n * g.at.h * g.at.w * g.at.c;
	for (int64_t e = ck_thread(); e < count; e += ck_threads()) {
		int64_t c = e % g.at.c, place = e / g.at.c, k = c % g.inputs, first = c / g.inputs * g.outputs;
		int64_t i = place / g.at.w % g.at.h + g.at.pad, j = place % g.at.w + g.at.pad;
		int64_t image = place / g.at.w / g.at.h * g.at.oh;
		int64_t top = i < g.at.kh ? 0 : (i - g.at.kh) / g.at.stride + 1;
		int64_t left = j < g.at.kw ? 0 : (j - g.at.kw) / g.at.stride + 1;
		float sum = 0.0f;
		for (int64_t r = top; r < g.at.oh && r * g.at.stride <= i; r++)
			for (int64_t s = left; s < g.at.ow && s * g.at.stride <= j; s++) {
				int64_t from = ((image + r) * g.at.ow + s) * all + first;
				int64_t a = i - r * g.at.stride, b = j - s * g.at.stride;
				for (int64_t o = 0; o < g.outputs; o++) {
					int64_t tap = (((first + o) * g.at.kh + a) * g.at.kw + b) * g.inputs + k;
					sum += ck_get(dy, from + o) * ck_get(w, tap);
				}
			}
		ck_put(dx, e, acc ? ck_get(dx, e) + sum : sum);
	}
}

template <typename T> CK_KERNEL void direct_filter(ck_direct g, bool acc, const T *x, const T *dy, float *dw)
{
	CK_SHARED(float, part, CK_WARP);
	int64_t all = g.groups * g.outputs, places = g.at.n * g.at.oh * g.at.ow;
	for (int64_t e = blockIdx.x; e < all * g.at.kh * g.at.kw * g.inputs; e += gridDim.x) {
		int64_t k = e % g.inputs, b = e / g.inputs % g.at.kw, a = e / g.inputs / g.at.kw % g.at.kh;
		int64_t o = e / g.inputs / g.at.kw / g.at.kh, c = o / g.outputs * g.inputs + k;
		float sum = 0.0f;
		for (int64_t p = threadIdx.x; p < places; p += blockDim.x) {
			int64_t i = p / g.at.ow % g.at.oh * g.at.stride - g.at.pad + a;
			int64_t j = p % g.at.ow * g.at.stride - g.at.pad + b, image = p / g.at.ow / g.at.oh;
			if (i >= 0 && i < g.at.h && j >= 0 && j < g.at.w)
				sum += ck_get(x, ((image * g.at.h + i) * g.at.w + j) * g.at.c + c) * ck_get(dy, p * all + o);
		}
		sum = ck_block_sum(sum, part);
		if (threadIdx.x == 0)
			dw[e] = acc ? dw[e] + sum : sum;
	}
}

void ck__cuda_direct_forward(cudaStream_t stream, ck_dtype t, ck_direct g, const void *x, const void *w, void *y)
{
	CK_STORED(t, T,
		  CK_LAUNCH((direct_forward<T>), ck_blocks(g.at.n * g.at.oh * g.at.ow * g.groups * g.outputs), CK_BLOCK, 0,
			    stream, g, (const T *)x, (const T *)w, (T *)y));
}

void ck__cuda_direct_data(cudaStream_t stream, ck_dtype t, ck_direct g, const void *w, const void *dy, void *dx, bool acc)
{
	CK_STORED(t, T,
		  CK_LAUNCH((direct_data<T>), ck_blocks(g.at.n * g.at.h * g.at.w * g.at.c), CK_BLOCK, 0, stream, g, acc,
			    (const T *)w, (const T *)dy, (T *)dx));
}

void ck__cuda_direct_filter(cudaStream_t stream, ck_dtype t, ck_direct g, const void *x, const void *dy, float *dw, bool acc)
{
	int64_t elements = g.groups * g.outputs * g.at.kh * g.at.kw * g.inputs;
	CK_STORED(t, T,
		  CK_LAUNCH((direct_filter<T>), (unsigned)(elements < CK_MAX_BLOCKS ? elements : (int64_t)CK_MAX_BLOCKS),
			    CK_BLOCK, 0, stream, g, acc, (const T *)x, (const T *)dy, dw));
}
