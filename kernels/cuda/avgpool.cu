/* AVGPOOL, both directions gather: an output place adds up its window, an input place the gradients of the windows that hold it, in
 * row-major order. A thread has a pack of channels. Bound by memory; windows that overlap read from the cache. */
#include "kernels/cuda/rows.cuh"

extern "C" {
#include "kernels/cuda/avgpool.h"
}

template <int N, typename T> CK_DEVICE void add_to(ck_floats<N> &sum, const T *x, int64_t i)
{
	ck_floats<N> v = ck_load<N>(x, i);
#pragma unroll
	for (int k = 0; k < N; k++)
		sum.v[k] += v.v[k];
}

template <int N> CK_DEVICE void divide(ck_floats<N> &sum, int64_t places)
{
#pragma unroll
	for (int k = 0; k < N; k++)
		sum.v[k] /= (float)places;
}

template <typename T, int N> CK_KERNEL void avgpool_forward(ck_window g, const T *x, T *y)
{
	int64_t packs = g.c / N, count = g.n * g.oh * g.ow * packs;
	for (int64_t e = ck_thread(); e < count; e += ck_threads()) {
		int64_t place = e / packs, c = e % packs * N;
		int64_t top = place / g.ow % g.oh * g.stride - g.pad, left = place % g.ow * g.stride - g.pad;
		int64_t image = place / g.ow / g.oh * g.h;
		ck_floats<N> sum = {};
		for (int64_t i = top < 0 ? 0 : top; i < g.h && i < top + g.kh; i++)
			for (int64_t j = left < 0 ? 0 : left; j < g.w && j < left + g.kw; j++)
				add_to(sum, x, ((image + i) * g.w + j) * g.c + c);
		divide(sum, g.kh * g.kw);
		ck_store(y, place * g.c + c, sum);
	}
}

template <typename T, int N> CK_KERNEL void avgpool_backward(ck_window g, bool acc, const T *dy, T *dx)
{
	int64_t packs = g.c / N, count = g.n * g.h * g.w * packs;
	for (int64_t e = ck_thread(); e < count; e += ck_threads()) {
		int64_t place = e / packs, c = e % packs * N;
		int64_t i = place / g.w % g.h + g.pad, j = place % g.w + g.pad, image = place / g.w / g.h * g.oh;
		int64_t top = i < g.kh ? 0 : (i - g.kh) / g.stride + 1, left = j < g.kw ? 0 : (j - g.kw) / g.stride + 1;
		ck_floats<N> sum = {};
		for (int64_t r = top; r < g.oh && r * g.stride <= i; r++)
			for (int64_t s = left; s < g.ow && s * g.stride <= j; s++)
				add_to(sum, dy, ((image + r) * g.ow + s) * g.c + c);
		divide(sum, g.kh * g.kw);
		ck_store_gradient(dx, place * g.c + c, sum, acc);
	}
}

void ck__cuda_avgpool_forward(cudaStream_t stream, ck_dtype t, ck_window g, const void *x, void *y)
{
	CK_STORED(t, T,
		  CK_ROW_PACK(T, g.c, N,
			      CK_LAUNCH((avgpool_forward<T, N>), ck_blocks(g.n * g.oh * g.ow * g.c / N), CK_BLOCK, 0, stream, g,
					(const T *)x, (T *)y)));
}

void ck__cuda_avgpool_backward(cudaStream_t stream, ck_dtype t, ck_window g, const void *dy, void *dx, bool acc)
{
	CK_STORED(t, T,
		  CK_ROW_PACK(T, g.c, N,
			      CK_LAUNCH((avgpool_backward<T, N>), ck_blocks(g.n * g.h * g.w * g.c / N), CK_BLOCK, 0, stream, g,
					acc, (const T *)dy, (T *)dx)));
}
