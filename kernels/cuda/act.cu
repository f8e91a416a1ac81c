/* ACT, a pack of elements a thread. Bound by memory. */
#include "kernels/cuda/act.cuh"
#include "kernels/cuda/pack.cuh"

extern "C" {
#include "kernels/cuda/act.h"
}

template <typename T> CK_KERNEL void act_forward(ck_act act, int64_t n, const T *x, T *y)
{
	ck_each<CK_PACK(T)>(n, [&](auto pack, int64_t i) {
		constexpr int N = decltype(pack)::value;
		ck_floats<N> v = ck_load<N>(x, i);
#pragma unroll
		for (int k = 0; k < N; k++)
			v.v[k] = ck_act_at(act, v.v[k]);
		ck_store(y, i, v);
	});
}

template <typename T> CK_KERNEL void act_backward(ck_act act, int64_t n, bool acc, const T *dy, const T *saved, T *dx)
{
	ck_each<CK_PACK(T)>(n, [&](auto pack, int64_t i) {
		constexpr int N = decltype(pack)::value;
		ck_floats<N> g = ck_load<N>(dy, i), z = ck_load<N>(saved, i);
#pragma unroll
		for (int k = 0; k < N; k++)
			g.v[k] *= ck_act_slope(act, z.v[k]);
		ck_store_gradient(dx, i, g, acc);
	});
}

void ck__cuda_act_forward(cudaStream_t stream, ck_dtype t, ck_act act, int64_t n, const void *x, void *y)
{
	CK_STORED(
	    t, T,
	    CK_LAUNCH((act_forward<T>), ck_pack_blocks(n, CK_PACK(T)), CK_BLOCK, 0, stream, act, n, (const T *)x, (T *)y));
}

void ck__cuda_act_backward(cudaStream_t stream, ck_dtype t, ck_act act, int64_t n, const void *dy, const void *saved, void *dx,
			   bool acc)
{
	CK_STORED(t, T,
		  CK_LAUNCH((act_backward<T>), ck_pack_blocks(n, CK_PACK(T)), CK_BLOCK, 0, stream, act, n, acc, (const T *)dy,
			    (const T *)saved, (T *)dx));
}
