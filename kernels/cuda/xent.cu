/* XENT, a block a row. Bound by memory: one reading forward, one reading and one writing backward. The loss is the mean over rows, summed
 * by a single block in an order fixed by their number. */
#include "kernels/cuda/rows.cuh"

extern "C" {
#include "kernels/cuda/xent.h"
}

template <typename T, int N>
CK_KERNEL void xent_rows(int64_t rows, int64_t cols, const T *logits, const int32_t *target, float *lse, float *row_loss)
{
	CK_SHARED(float, part, CK_WARP);
	for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
		int64_t at = row * cols;
		ck_exponentials e = ck_row_exponentials<N>(logits, at, cols, part);
		if (threadIdx.x == 0) {
			float log_sum = e.most + logf(e.sum);
			lse[row] = log_sum;
			row_loss[row] = log_sum - ck_get(logits, at + target[row]);
		}
	}
}

CK_KERNEL void xent_mean(int64_t rows, const float *row_loss, float *loss)
{
	CK_SHARED(float, part, CK_WARP);
	float sum = 0;
	for (CK_ALONG(1, row, rows))
		sum += row_loss[row];
	sum = ck_block_sum(sum, part);
	if (threadIdx.x == 0)
		*loss = sum / (float)rows;
}

template <typename T, int N>
CK_KERNEL void xent_backward(int64_t rows, int64_t cols, float dloss, bool acc, const T *logits, const int32_t *target,
			     const float *lse, const float *dout, T *dlogits)
{
	float scale = (dout ? *dout : dloss) / (float)rows;
	for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
		int64_t at = row * cols, chosen = target[row];
		float log_sum = lse[row];
		for (CK_ALONG(N, j, cols)) {
			ck_floats<N> v = ck_load<N>(logits, at + j);
#pragma unroll
			for (int k = 0; k < N; k++)
				v.v[k] = (expf(v.v[k] - log_sum) - (j + k == chosen ? 1.0f : 0.0f)) * scale;
			ck_store_gradient(dlogits, at + j, v, acc);
		}
	}
}

void ck__cuda_xent_forward(cudaStream_t stream, ck_dtype t, int64_t rows, int64_t cols, const void *logits,
			   const int32_t *target, float *lse, float *row_loss, float *loss)
{
	CK_STORED(t, T,
		  CK_ROW_PACK(T, cols, N,
			      CK_LAUNCH((xent_rows<T, N>), ck_row_blocks(rows), ck_row_block(cols, N), 0, stream, rows, cols,
					(const T *)logits, target, lse, row_loss)));
	CK_LAUNCH(xent_mean, 1, 1024, 0, stream, rows, (const float *)row_loss, loss);
}

void ck__cuda_xent_backward(cudaStream_t stream, ck_dtype t, int64_t rows, int64_t cols, const void *logits,
			    const int32_t *target, const float *lse, const float *dout, float dloss, void *dlogits, bool acc)
{
	CK_STORED(t, T,
		  CK_ROW_PACK(T, cols, N,
			      CK_LAUNCH((xent_backward<T, N>), ck_row_blocks(rows), ck_row_block(cols, N), 0, stream, rows,
					cols, dloss, acc, (const T *)logits, target, lse, dout, (T *)dlogits)));
}
