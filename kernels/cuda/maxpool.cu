/* MAXPOOL, both directions gather: an output place collects the inputs in its window, and in the backward an input place collects the
 * outputs whose windows hold it, in row-major order. So each place is written once, by one thread. A thread has a pack of channels.
 * Bound by memory; windows that overlap read from the cache. */
#include "kernels/cuda/rows.cuh"

extern "C" {
#include "kernels/cuda/maxpool.h"
}

/* N bytes from byte i on, a multiple of N. */
template <int N> static CK_DEVICE void store_places(uint8_t *to, int64_t i, const unsigned (&place)[N])
{
	if constexpr (N % 4 == 0) {
#pragma unroll
		for (int k = 0; k < N; k += 4)
			*reinterpret_cast<unsigned *>(to + i + k) =
			    place[k] | place[k + 1] << 8 | place[k + 2] << 16 | place[k + 3] << 24;
	} else {
#pragma unroll
		for (int k = 0; k < N; k++)
			to[i + k] = (uint8_t)place[k];
	}
}

template <int N> static CK_DEVICE void load_places(const uint8_t *from, int64_t i, unsigned (&place)[N])
{
	if constexpr (N % 4 == 0) {
#pragma unroll
		for (int k = 0; k < N; k += 4) {
			unsigned word = *reinterpret_cast<const unsigned *>(from + i + k);
			place[k] = word & 255, place[k + 1] = word >> 8 & 255, place[k + 2] = word >> 16 & 255;
			place[k + 3] = word >> 24;
		}
	} else {
#pragma unroll
		for (int k = 0; k < N; k++)
			place[k] = from[i + k];
	}
}

/* NaN wins, as in PyTorch. */
template <typename T, int N> CK_KERNEL void maxpool_forward(ck_window g, const T *x, T *y, uint8_t *at)
{
	int64_t packs = g.c / N, count = g.n * g.oh * g.ow * packs;
	for (int64_t e = ck_thread(); e < count; e += ck_threads()) {
		int64_t place = e / packs, c = e % packs * N;
		int64_t top = place / g.ow % g.oh * g.stride - g.pad, left = place % g.ow * g.stride - g.pad;
		int64_t image = place / g.ow / g.oh * g.h;
		ck_floats<N> best = {};
		unsigned where[N];
		bool first = true;
#pragma unroll
		for (int k = 0; k < N; k++)
			where[k] = 0;
		for (int64_t i = top < 0 ? 0 : top; i < g.h && i < top + g.kh; i++)
			for (int64_t j = left < 0 ? 0 : left; j < g.w && j < left + g.kw; j++) {
				ck_floats<N> v = ck_load<N>(x, ((image + i) * g.w + j) * g.c + c);
				unsigned here = (unsigned)((i - top) * g.kw + j - left);
#pragma unroll
				for (int k = 0; k < N; k++)
					if (first || v.v[k] > best.v[k] || v.v[k] != v.v[k])
						best.v[k] = v.v[k], where[k] = here;
				first = false;
			}
		ck_store(y, place * g.c + c, best);
		store_places(at, place * g.c + c, where);
	}
}

template <typename T, int N> CK_KERNEL void maxpool_backward(ck_window g, bool acc, const T *dy, const uint8_t *at, T *dx)
{
	int64_t packs = g.c / N, count = g.n * g.h * g.w * packs;
	for (int64_t e = ck_thread(); e < count; e += ck_threads()) {
		int64_t place = e / packs, c = e % packs * N;
		int64_t i = place / g.w % g.h + g.pad, j = place % g.w + g.pad, image = place / g.w / g.h * g.oh;
		int64_t top = i < g.kh ? 0 : (i - g.kh) / g.stride + 1, left = j < g.kw ? 0 : (j - g.kw) / g.stride + 1;
		ck_floats<N> sum = {};
		for (int64_t r = top; r < g.oh && r * g.stride <= i; r++)
			for (int64_t s = left; s < g.ow && s * g.stride <= j; s++) {
				int64_t from = ((image + r) * g.ow + s) * g.c + c;
				unsigned here = (unsigned)((i - r * g.stride) * g.kw + j - s * g.stride);
				ck_floats<N> v = ck_load<N>(dy, from);
				unsigned chosen[N];
				load_places(at, from, chosen);
#pragma unroll
				for (int k = 0; k < N; k++)
					sum.v[k] += chosen[k] == here ? v.v[k] : 0.0f;
			}
		ck_store_gradient(dx, place * g.c + c, sum, acc);
	}
}

void ck__cuda_maxpool_forward(cudaStream_t stream, ck_dtype t, ck_window g, const void *x, void *y, uint8_t *at)
{
	CK_STORED(t, T,
		  CK_ROW_PACK(T, g.c, N,
			      CK_LAUNCH((maxpool_forward<T, N>), ck_blocks(g.n * g.oh * g.ow * g.c / N), CK_BLOCK, 0, stream, g,
					(const T *)x, (T *)y, at)));
}

void ck__cuda_maxpool_backward(cudaStream_t stream, ck_dtype t, ck_window g, const void *dy, const uint8_t *at, void *dx,
			       bool acc)
{
	CK_STORED(t, T,
		  CK_ROW_PACK(T, g.c, N,
			      CK_LAUNCH((maxpool_backward<T, N>), ck_blocks(g.n * g.h * g.w * g.c / N), CK_BLOCK, 0, stream, g,
					acc, (const T *)dy, at, (T *)dx)));
}
