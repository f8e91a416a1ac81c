/* DROPOUT, a pack of elements a thread: the generator gives four words at a time, for four elements side by side. */
#include "kernels/cuda/drop.cuh"

extern "C" {
#include "kernels/cuda/dropout.h"
}

template <typename X, typename Y>
CK_KERNEL void dropout_forward(ck_drop drop, int64_t n, const uint8_t *mask, const X *x, const Y *r, Y *y)
{
	ck_each<CK_PACK(X)>(n, [&](auto pack, int64_t i) {
		constexpr int N = decltype(pack)::value;
		ck_floats<N> v = ck_dropped(drop, mask, i, ck_load<N>(x, i));
		if (r) {
			ck_floats<N> w = ck_load<N>(r, i);
#pragma unroll
			for (int k = 0; k < N; k++)
				v.v[k] += w.v[k];
		}
		ck_store(y, i, v);
	});
}

template <typename X, typename Y>
CK_KERNEL void dropout_backward(ck_drop drop, int64_t n, bool acc, const uint8_t *mask, const Y *dy, X *dx)
{
	ck_each<CK_PACK(X)>(n, [&](auto pack, int64_t i) {
		constexpr int N = decltype(pack)::value;
		ck_store_gradient(dx, i, ck_dropped(drop, mask, i, ck_load<N>(dy, i)), acc);
	});
}

template <typename X, typename Y>
static void launch_forward(cudaStream_t stream, ck_drop drop, const uint8_t *mask, int64_t n, const X *x, const Y *r, Y *y)
{
	CK_LAUNCH((dropout_forward<X, Y>), ck_pack_blocks(n, CK_PACK(X)), CK_BLOCK, 0, stream, drop, n, mask, x, r, y);
}

template <typename X, typename Y>
static void launch_backward(cudaStream_t stream, ck_drop drop, const uint8_t *mask, int64_t n, const Y *dy, X *dx, bool acc)
{
	CK_LAUNCH((dropout_backward<X, Y>), ck_pack_blocks(n, CK_PACK(X)), CK_BLOCK, 0, stream, drop, n, acc, mask, dy, dx);
}

void ck__cuda_dropout_forward(cudaStream_t stream, ck_drop drop, const uint8_t *mask, int64_t n, ck_dtype tx, const void *x,
			      ck_dtype ty, const void *r, void *y)
{
	if (tx == ty)
		CK_STORED(tx, T, launch_forward(stream, drop, mask, n, (const T *)x, (const T *)r, (T *)y));
	else
		CK_STORED(tx, T, launch_forward(stream, drop, mask, n, (const T *)x, (const float *)r, (float *)y));
}

void ck__cuda_dropout_backward(cudaStream_t stream, ck_drop drop, const uint8_t *mask, int64_t n, ck_dtype ty, const void *dy,
			       ck_dtype tx, void *dx, bool acc)
{
	if (tx == ty)
		CK_STORED(tx, T, launch_backward(stream, drop, mask, n, (const T *)dy, (T *)dx, acc));
	else
		CK_STORED(tx, T, launch_backward(stream, drop, mask, n, (const float *)dy, (T *)dx, acc));
}
