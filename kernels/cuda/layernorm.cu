/* LAYERNORM. Forward and dx: a block a row, which stays in the cache between its passes; mean first, then the centred squares. The
 * parameters' gradients are sums down columns (columns.h). All is bound by memory. */
#include "kernels/cuda/columns.cuh"
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
static CK_DEVICE ck_floats<N> normalised(const T *xhat, const float *x, float mean, float rstd, int64_t i)
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

/* A slice's sums of dy xhat, and of dy. */
template <typename T, int FROM>
CK_KERNEL void layernorm_slice_sums(ck_columns c, const T *xhat, const float *x, const float *means, const float *rstds,
				    const T *dy, float *parts)
{
	CK_SHARED(float, shared, CK_BLOCK);
	ck_column_part p = ck_column_part_of(c);
	float sum_xhat = 0, sum = 0;
#pragma unroll 4
	for (int64_t row = p.from; row < p.to; row += p.lanes) {
		int64_t i = row * c.cols + p.col;
		float g = ck_get(dy, i), mean = FROM == FROM_X ? means[row] : 0.0f, rstd = FROM == FROM_X ? rstds[row] : 0.0f;
		sum_xhat += g * normalised<FROM, 1>(xhat, x, mean, rstd, i).v[0];
		sum += g;
	}
	sum_xhat = ck_column_sum(sum_xhat, p, shared);
	sum = ck_column_sum(sum, p, shared);
	if (p.lane == 0 && p.col < c.cols) {
		parts[p.slice * c.cols + p.col] = sum_xhat;
		parts[(c.slices + p.slice) * c.cols + p.col] = sum;
	}
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
static void launch_sums(cudaStream_t stream, const ck_columns *c, ck_layernorm_saved s, const T *dy, float *parts)
{
	CK_LAUNCH((layernorm_slice_sums<T, FROM>), (unsigned)(c->slices * c->bands), CK_BLOCK, 0, stream, *c, (const T *)s.xhat,
		  s.x, s.mean, s.rstd, dy, parts);
}

void ck__cuda_layernorm_sums(cudaStream_t stream, const ck_columns *c, ck_dtype t, ck_layernorm_saved saved, const void *dy,
			     float *parts, float *dgamma, bool acc_gamma, float *dbeta, bool acc_beta)
{
	if (saved.xhat)
		CK_STORED(t, T, (launch_sums<T, FROM_XHAT>(stream, c, saved, (const T *)dy, parts)));
	else if (saved.x)
		CK_STORED(t, T, (launch_sums<T, FROM_X>(stream, c, saved, (const T *)dy, parts)));
	else
		CK_STORED(t, T, (launch_sums<T, FROM_NOTHING>(stream, c, saved, (const T *)dy, parts)));
	if (dgamma)
		ck__column_sums_finish(stream, c, parts, dgamma, acc_gamma);
	if (dbeta)
		ck__column_sums_finish(stream, c, parts + c->slices * c->cols, dbeta, acc_beta);
}
