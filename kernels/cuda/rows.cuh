/* What works along rows: a block takes a row at a time, its threads a pack each, side by side, then the next. How many threads and
 * how wide a pack follow from the row's length, and with them the order of sums. */
#ifndef CK_ROWS_CUH
#define CK_ROWS_CUH

#include <math.h>

#include "kernels/cuda/pack.cuh"

/* Runs the statement with N the pack for rows of so many elements stored as T: a whole one where every row begins on its border. */
#define CK_ROW_PACK(T, cols, N, ...)                                                                                           \
	do {                                                                                                                   \
		if ((cols) % CK_PACK(T) == 0) {                                                                                \
			constexpr int N = CK_PACK(T);                                                                          \
			__VA_ARGS__;                                                                                           \
		} else {                                                                                                       \
			constexpr int N = 1;                                                                                   \
			__VA_ARGS__;                                                                                           \
		}                                                                                                              \
	} while (0)

/* Threads of a block for such rows. */
static inline unsigned ck_row_block(int64_t cols, int pack)
{
	enum { MOST = 512 };
	int64_t packs = (cols + pack - 1) / pack, warps = (packs + CK_WARP - 1) / CK_WARP;
	return (unsigned)(warps * CK_WARP > MOST ? (int64_t)MOST : warps * CK_WARP);
}

/* Blocks, each of which then takes every gridDim.x-th row. */
static inline unsigned ck_row_blocks(int64_t rows)
{
	return (unsigned)(rows > CK_MAX_BLOCKS ? (int64_t)CK_MAX_BLOCKS : rows);
}

/* A thread's packs in a row of n elements: for (CK_ALONG(N, j, n)) … j … */
#define CK_ALONG(N, j, n)                                                                                                      \
	int64_t j = (int64_t)threadIdx.x * (N);                                                                                \
	j < (n);                                                                                                               \
	j += (int64_t)blockDim.x * (N)

/* The largest over a block, as ck_block_sum gives the sum. */
template <class S> CK_DEVICE float ck_block_max(float v, S &part)
{
	unsigned lane = threadIdx.x % CK_WARP, warp = threadIdx.x / CK_WARP;
	v = ck_warp_max(v);
	__syncthreads();
	if (lane == 0)
		part[warp] = v;
	__syncthreads();
	return ck_warp_max(lane < blockDim.x / CK_WARP ? (float)part[lane] : -INFINITY);
}

/* A row's largest element, and the sum of exp(x - most). */
typedef struct ck_exponentials {
	float most, sum;
} ck_exponentials;

/* Of the first n elements of the row that begins at element `row`, in every thread; what follows them up to a pack's end is not looked
 * at. One reading: each thread's sum is rescaled when a larger element comes. A NaN makes the sum NaN. */
template <int N, typename T, class S> CK_DEVICE ck_exponentials ck_row_exponentials(const T *x, int64_t row, int64_t n, S &part)
{
	float most = -INFINITY, sum = 0;
#pragma unroll 4
	for (CK_ALONG(N, j, n)) {
		ck_floats<N> v = ck_load<N>(x, row + j);
		float here = -INFINITY;
#pragma unroll
		for (int k = 0; k < N; k++) {
			v.v[k] = j + k < n ? v.v[k] : -INFINITY;
			here = fmaxf(here, v.v[k]);
		}
		if (here > most) {
			sum *= expf(most - here);
			most = here;
		}
		float base = most == -INFINITY ? 0.0f : most;
#pragma unroll
		for (int k = 0; k < N; k++)
			sum += expf(v.v[k] - base);
	}
	ck_exponentials all;
	all.most = ck_block_max(most, part);
	all.sum = ck_block_sum(most == -INFINITY ? sum : sum * expf(most - all.most), part);
	return all;
}

#endif
