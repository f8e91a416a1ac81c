/* SOFTMAX, a block a row: one reading for the sum, and another, from the cache, for what is written. Bound by memory. */
#include "kernels/cuda/rows.cuh"

extern "C" {
#include "kernels/cuda/softmax.h"
}

template <typename T, int N> CK_KERNEL void softmax_forward(int64_t rows, int64_t cols, bool causal, const T *s, T *p)
{
	CK_SHARED(float, part, CK_WARP);
	for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
		int64_t at = row * cols, n = causal ? row % cols + 1 : cols;
		ck_exponentials e = ck_row_exponentials<N>(s, at, n, part);
		float scale = 1.0f / e.sum;
		for (CK_ALONG(N, j, cols)) {
			ck_floats<N> v = {};
			if (j < n)
				v = ck_load<N>(s, at + j);
#pragma unroll
			for (int k = 0; k < N; k++)
				v.v[k] = j + k < n ? expf(v.v[k] - e.most) * scale : 0.0f;
			ck_store(p, at + j, v);
		}
	}
}

template <typename T, int N>
CK_KERNEL void softmax_backward(int64_t rows, int64_t cols, bool causal, bool acc, const T *p, const T *dp, T *ds)
{
	CK_SHARED(float, part, CK_WARP);
	for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
		int64_t at = row * cols, n = causal ? row % cols + 1 : cols;
		float dot = 0;
		for (CK_ALONG(N, j, n)) {
			ck_floats<N> v = ck_load<N>(p, at + j), g = ck_load<N>(dp, at + j);
#pragma unroll
			for (int k = 0; k < N; k++)
				dot += j + k < n ? v.v[k] * g.v[k] : 0.0f;
		}
		dot = ck_block_sum(dot, part);
		for (CK_ALONG(N, j, cols)) {
			ck_floats<N> v = {};
			if (j < n) {
				ck_floats<N> g = ck_load<N>(dp, at + j);
				v = ck_load<N>(p, at + j);
#pragma unroll
				for (int k = 0; k < N; k++)
					v.v[k] = j + k < n ? v.v[k] * (g.v[k] - dot) : 0.0f;
			}
			ck_store_gradient(ds, at + j, v, acc);
		}
	}
}

void ck__cuda_softmax_forward(cudaStream_t stream, ck_dtype t, bool causal, int64_t rows, int64_t cols, const void *s, void *p)
{
	CK_STORED(t, T,
		  CK_ROW_PACK(T, cols, N,
			      CK_LAUNCH((softmax_forward<T, N>), ck_row_blocks(rows), ck_row_block(cols, N), 0, stream, rows,
					cols, causal, (const T *)s, (T *)p)));
}

void ck__cuda_softmax_backward(cudaStream_t stream, ck_dtype t, bool causal, int64_t rows, int64_t cols, const void *p,
			       const void *dp, void *ds, bool acc)
{
	CK_STORED(t, T,
		  CK_ROW_PACK(T, cols, N,
			      CK_LAUNCH((softmax_backward<T, N>), ck_row_blocks(rows), ck_row_block(cols, N), 0, stream, rows,
					cols, causal, acc, (const T *)p, (const T *)dp, (T *)ds)));
}
