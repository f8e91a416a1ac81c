/* LAYERNORM. Forward and dx: a block a row, which stays in the cache between its passes; mean first, then the centred squares.
 *
 * The parameters' gradients are sums down columns, in two stages of the same shape: a block has 32 columns, a lane each, and its 8 warps
 * take rows in turn; the warps' sums are added in order. First over chunks of rows, then over the chunks. All is bound by memory. */
#include "kernels/cuda/rows.cuh"

extern "C" {
#include "kernels/cuda/layernorm.h"
}

template <typename T, int N>
CK_KERNEL void layernorm_forward(int64_t rows, int64_t cols, float eps, const float *x, const float *gamma, const float *beta,
				 T *y, T *xhat, float *means, float *rstds)
{
	CK_SHARED(float, part, CK_WARP);
	for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
		int64_t at = row * cols;
		float sum = 0, squares = 0;
		for (CK_ALONG(N, j, cols)) {
			ck_floats<N> v = ck_load<N>(x, at + j);
#pragma unroll
			for (int k = 0; k < N; k++)
				sum += v.v[k];
		}
		float mean = ck_block_sum(sum, part) / (float)cols;
		for (CK_ALONG(N, j, cols)) {
			ck_floats<N> v = ck_load<N>(x, at + j);
#pragma unroll
			for (int k = 0; k < N; k++)
				squares += (v.v[k] - mean) * (v.v[k] - mean);
		}
		float rstd = 1.0f / sqrtf(ck_block_sum(squares, part) / (float)cols + eps);
		for (CK_ALONG(N, j, cols)) {
			ck_floats<N> v = ck_load<N>(x, at + j), g = ck_load<N>(gamma, j), b = ck_load<N>(beta, j);
#pragma unroll
			for (int k = 0; k < N; k++) {
				v.v[k] = (v.v[k] - mean) * rstd;
				b.v[k] += g.v[k] * v.v[k];
			}
			if (xhat)
				ck_store(xhat, at + j, v);
			ck_store(y, at + j, b);
		}
		if (threadIdx.x == 0) {
			if (means)
				means[row] = mean;
			rstds[row] = rstd;
		}
	}
}

/* What the normalised input is found from. */
enum { FROM_X, FROM_XHAT, FROM_NOTHING };

/* Its elements i .. i + N - 1, of one row. */
template <int FROM, int N, typename T>
CK_DEVICE ck_floats<N> normalised(const T *xhat, const float *x, float mean, float rstd, int64_t i)
{
	if constexpr (FROM == FROM_XHAT)
		return ck_load<N>(xhat, i);
	ck_floats<N> v = {};
	if constexpr (FROM == FROM_X) {
		v = ck_load<N>(x, i);
#pragma unroll
		for (int k = 0; k < N; k++)
			v.v[k] = (v.v[k] - mean) * rstd;
	}
	return v;
}

/* dx (+)= rstd (h - sum(h) / cols - xhat sum(h xhat) / cols), h = gamma dy */
template <typename T, int FROM, int N>
CK_KERNEL void layernorm_dx(int64_t rows, int64_t cols, bool acc, const T *xhat, const float *x, const float *means,
			    const float *rstds, const float *gamma, const T *dy, float *dx)
{
	CK_SHARED(float, part, CK_WARP);
	for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
		int64_t at = row * cols;
		float mean = FROM == FROM_X ? means[row] : 0.0f, rstd = rstds[row], sum = 0, sum_xhat = 0;
		for (CK_ALONG(N, j, cols)) {
			ck_floats<N> g = ck_load<N>(gamma, j), d = ck_load<N>(dy, at + j);
			ck_floats<N> v = normalised<FROM, N>(xhat, x, mean, rstd, at + j);
#pragma unroll
			for (int k = 0; k < N; k++) {
				float h = g.v[k] * d.v[k];
				sum += h;
				sum_xhat += h * v.v[k];
			}
		}
		float offset = ck_block_sum(sum, part) / (float)cols, slope = ck_block_sum(sum_xhat, part) / (float)cols;
		for (CK_ALONG(N, j, cols)) {
			ck_floats<N> g = ck_load<N>(gamma, j), d = ck_load<N>(dy, at + j);
			ck_floats<N> v = normalised<FROM, N>(xhat, x, mean, rstd, at + j);
#pragma unroll
			for (int k = 0; k < N; k++)
				v.v[k] = rstd * (g.v[k] * d.v[k] - offset - v.v[k] * slope);
			ck_store_gradient(dx, at + j, v, acc);
		}
	}
}

/* ---- sums down columns --------------------------------------------------------------------------------------------------- */

enum { TILE = CK_WARP, STRIPES = CK_BLOCK / CK_WARP };

/* Adds up the warps' sums of one value each for the block's 32 columns, in order; in the first warp. */
template <class S> CK_DEVICE float over_stripes(float v, S &shared)
{
	unsigned lane = threadIdx.x % CK_WARP, stripe = threadIdx.x / CK_WARP;
	__syncthreads();
	shared[threadIdx.x] = v;
	__syncthreads();
	if (stripe == 0)
		for (unsigned s = 1; s < STRIPES; s++)
			v += (float)shared[s * CK_WARP + lane];
	return v;
}

/* partial[chunk] = over the chunk's rows, sum dy xhat and sum dy. Block: a chunk and a tile of columns. */
template <typename T, int FROM>
CK_KERNEL void layernorm_partial(int64_t rows, int64_t cols, int64_t tiles, int64_t chunk_rows, const T *xhat, const float *x,
				 const float *means, const float *rstds, const T *dy, float *partial)
{
	CK_SHARED(float, shared, CK_BLOCK);
	int64_t chunk = blockIdx.x / tiles, col = blockIdx.x % tiles * TILE + threadIdx.x % CK_WARP;
	int64_t end = (chunk + 1) * chunk_rows < rows ? (chunk + 1) * chunk_rows : rows;
	float sum_xhat = 0, sum = 0;
	if (col < cols)
#pragma unroll 4
		for (int64_t row = chunk * chunk_rows + threadIdx.x / CK_WARP; row < end; row += STRIPES) {
			float d = ck_get(dy, row * cols + col);
			float mean = FROM == FROM_X ? means[row] : 0.0f, rstd = FROM == FROM_X ? rstds[row] : 0.0f;
			sum_xhat += d * normalised<FROM, 1>(xhat, x, mean, rstd, row * cols + col).v[0];
			sum += d;
		}
	sum_xhat = over_stripes(sum_xhat, shared);
	sum = over_stripes(sum, shared);
	if (threadIdx.x < TILE && col < cols) {
		partial[2 * chunk * cols + col] = sum_xhat;
		partial[(2 * chunk + 1) * cols + col] = sum;
	}
}

/* to (+)= the chunks' sums: those of dy xhat are first in each chunk's two rows (second 0), those of dy second (1). */
CK_KERNEL void layernorm_total(int64_t chunks, int64_t cols, int second, bool acc, const float *partial, float *to)
{
	CK_SHARED(float, shared, CK_BLOCK);
	int64_t col = (int64_t)blockIdx.x * TILE + threadIdx.x % CK_WARP;
	float sum = 0;
	if (col < cols)
#pragma unroll 4
		for (int64_t chunk = threadIdx.x / CK_WARP; chunk < chunks; chunk += STRIPES)
			sum += partial[(2 * chunk + second) * cols + col];
	sum = over_stripes(sum, shared);
	if (threadIdx.x < TILE && col < cols)
		to[col] = acc ? to[col] + sum : sum;
}

/* ---- launchers ----------------------------------------------------------------------------------------------------------- */

void ck__cuda_layernorm_forward(cudaStream_t stream, ck_dtype t, int64_t rows, int64_t cols, float eps, const float *x,
				const float *gamma, const float *beta, void *y, void *xhat, float *mean, float *rstd)
{
	CK_STORED(t, T,
		  CK_ROW_PACK(T, cols, N,
			      CK_LAUNCH((layernorm_forward<T, N>), ck_row_blocks(rows), ck_row_block(cols, N), 0, stream, rows,
					cols, eps, x, gamma, beta, (T *)y, (T *)xhat, mean, rstd)));
}

template <typename T, int FROM>
static void launch_dx(cudaStream_t stream, int64_t rows, int64_t cols, ck_layernorm_saved s, const float *gamma, const T *dy,
		      float *dx, bool acc)
{
	CK_ROW_PACK(T, cols, N,
		    CK_LAUNCH((layernorm_dx<T, FROM, N>), ck_row_blocks(rows), ck_row_block(cols, N), 0, stream, rows, cols,
			      acc, (const T *)s.xhat, s.x, s.mean, s.rstd, gamma, dy, dx));
}

void ck__cuda_layernorm_dx(cudaStream_t stream, ck_dtype t, int64_t rows, int64_t cols, ck_layernorm_saved saved,
			   const float *gamma, const void *dy, float *dx, bool acc)
{
	if (saved.xhat)
		CK_STORED(t, T, (launch_dx<T, FROM_XHAT>(stream, rows, cols, saved, gamma, (const T *)dy, dx, acc)));
	else
		CK_STORED(t, T, (launch_dx<T, FROM_X>(stream, rows, cols, saved, gamma, (const T *)dy, dx, acc)));
}

template <typename T, int FROM>
static void launch_partial(cudaStream_t stream, int64_t rows, int64_t cols, ck_layernorm_saved s, const T *dy, float *partial)
{
	int64_t tiles = (cols + TILE - 1) / TILE, chunks = ck__cuda_layernorm_chunks(rows, cols);
	int64_t chunk_rows = (rows + chunks - 1) / chunks;
	CK_LAUNCH((layernorm_partial<T, FROM>), (unsigned)(tiles * chunks), CK_BLOCK, 0, stream, rows, cols, tiles, chunk_rows,
		  (const T *)s.xhat, s.x, s.mean, s.rstd, dy, partial);
}

void ck__cuda_layernorm_sums(cudaStream_t stream, ck_dtype t, int64_t rows, int64_t cols, ck_layernorm_saved saved,
			     const void *dy, float *partial, float *dgamma, bool acc_gamma, float *dbeta, bool acc_beta)
{
	int64_t tiles = (cols + TILE - 1) / TILE, chunks = ck__cuda_layernorm_chunks(rows, cols);
	if (saved.xhat)
		CK_STORED(t, T, (launch_partial<T, FROM_XHAT>(stream, rows, cols, saved, (const T *)dy, partial)));
	else if (saved.x)
		CK_STORED(t, T, (launch_partial<T, FROM_X>(stream, rows, cols, saved, (const T *)dy, partial)));
	else
		CK_STORED(t, T, (launch_partial<T, FROM_NOTHING>(stream, rows, cols, saved, (const T *)dy, partial)));
	if (dgamma)
		CK_LAUNCH(layernorm_total, (unsigned)tiles, CK_BLOCK, 0, stream, chunks, cols, 0, acc_gamma,
			  (const float *)partial, dgamma);
	if (dbeta)
		CK_LAUNCH(layernorm_total, (unsigned)tiles, CK_BLOCK, 0, stream, chunks, cols, 1, acc_beta,
			  (const float *)partial, dbeta);
}
