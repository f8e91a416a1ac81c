/* Tensors passed on, into another dtype or onto what is there, and sums of two; a pack of elements a thread. Bound by memory. */
#include "kernels/cuda/pack.cuh"

extern "C" {
#include "kernels/cuda/pass.h"
}

template <typename X, typename Y> CK_KERNEL void pass_on(int64_t n, bool acc, const X *x, Y *y)
{
	constexpr int most = sizeof(X) < sizeof(Y) ? CK_PACK(X) : CK_PACK(Y);
	ck_each<most>(n, [&](auto pack, int64_t i) {
		constexpr int N = decltype(pack)::value;
		ck_store_gradient(y, i, ck_load<N>(x, i), acc);
	});
}

template <typename T, typename B> CK_KERNEL void pass_sum(int64_t n, const T *a, const B *b, T *y)
{
	ck_each<CK_PACK(B)>(n, [&](auto pack, int64_t i) {
		constexpr int N = decltype(pack)::value;
		ck_floats<N> v = ck_load<N>(a, i), w = ck_load<N>(b, i);
#pragma unroll
		for (int k = 0; k < N; k++)
			v.v[k] += w.v[k];
		ck_store(y, i, v);
	});
}

void ck__cuda_pass(cudaStream_t stream, int64_t n, ck_dtype tx, const void *x, ck_dtype ty, void *y, bool acc)
{
	bool wide = tx == CK_F32 && ty == CK_F32;
	unsigned blocks = ck_pack_blocks(n, wide ? 4 : 8);
	if (tx == ty && !acc) {
		if (x != y)
			CK_CUDA(cudaMemcpyAsync(y, x, (size_t)n * ck_dtype_size(tx), cudaMemcpyDeviceToDevice, stream));
	} else if (tx == ty) {
		CK_STORED(tx, T, CK_LAUNCH((pass_on<T, T>), blocks, CK_BLOCK, 0, stream, n, acc, (const T *)x, (T *)y));
	} else if (tx == CK_F32) {
		CK_STORED(ty, T, CK_LAUNCH((pass_on<float, T>), blocks, CK_BLOCK, 0, stream, n, acc, (const float *)x, (T *)y));
	} else {
		CK_STORED(tx, T, CK_LAUNCH((pass_on<T, float>), blocks, CK_BLOCK, 0, stream, n, acc, (const T *)x, (float *)y));
	}
}

void ck__cuda_sum(cudaStream_t stream, int64_t n, ck_dtype t, const void *a, ck_dtype tb, const void *b, void *y)
{
	unsigned blocks = ck_pack_blocks(n, tb == CK_F32 ? 4 : 8);
	if (t == tb)
		CK_STORED(t, T,
			  CK_LAUNCH((pass_sum<T, T>), blocks, CK_BLOCK, 0, stream, n, (const T *)a, (const T *)b, (T *)y));
	else
		CK_STORED(tb, B,
			  CK_LAUNCH((pass_sum<float, B>), blocks, CK_BLOCK, 0, stream, n, (const float *)a, (const B *)b,
				    (float *)y));
}
