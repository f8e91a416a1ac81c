/* TALLY's counts, a warp a row. They are whole numbers, so that their sums are the same in whatever order blocks add to them. */
#include <math.h>

#include "kernels/cuda/launch.cuh"

extern "C" {
#include "kernels/cuda/tally.h"
}

/* Whether v at channel c comes before the best so far: the first NaN does, or else the first of the largest. */
static CK_DEVICE bool beats(float v, int c, float best, int at)
{
	if (v != v || best != best)
		return v != v && (best == best || c < at);
	return v > best || (v == best && c < at);
}

template <typename T> CK_KERNEL void tally_count(int64_t rows, int64_t cols, const T *x, int *load, int *calls)
{
	int lane = (int)(threadIdx.x % CK_WARP);
	if (ck_thread() == 0)
		calls[0]++;
	for (int64_t row = ck_thread() / CK_WARP; row < rows; row += ck_threads() / CK_WARP) {
		float best = -INFINITY;
		int at = INT32_MAX;
		for (int64_t c = lane; c < cols; c += CK_WARP) {
			float v = ck_get(x, row * cols + c);
			if (beats(v, (int)c, best, at))
				best = v, at = (int)c;
		}
		for (int other = CK_WARP / 2; other; other /= 2) {
			float v = __shfl_xor_sync(CK_WARP_ALL, best, other);
			int c = __shfl_xor_sync(CK_WARP_ALL, at, other);
			if (beats(v, c, best, at))
				best = v, at = c;
		}
		if (lane == 0)
			atomicAdd(&load[at], 1);
	}
}

void ck__cuda_tally_count(cudaStream_t stream, ck_dtype t, int64_t rows, int64_t cols, const void *x, int32_t *load,
			  int32_t *calls)
{
	CK_STORED(
	    t, T,
	    CK_LAUNCH((tally_count<T>), ck_blocks(rows * CK_WARP), CK_BLOCK, 0, stream, rows, cols, (const T *)x, load, calls));
}
