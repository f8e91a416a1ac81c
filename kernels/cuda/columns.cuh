/* Inside kernels over ck_columns: which part is this thread's, and what its block's threads bring together. */
#ifndef CK_CUDA_COLUMNS_CUH
#define CK_CUDA_COLUMNS_CUH

#include "kernels/cuda/launch.cuh"

extern "C" {
#include "kernels/cuda/columns.h"
}

/* This thread's rows: from, from + step, … below to, none when its column does not exist. */
typedef struct ck_column_part {
	int64_t col, slice, from, to;
	int lane, lanes; /* which of those that share the column in this block, and how many */
} ck_column_part;

CK_DEVICE ck_column_part ck_column_part_of(const ck_columns &c)
{
	ck_column_part p;
	int lanes = CK_BLOCK / c.width;
	p.lane = (int)threadIdx.x / c.width, p.lanes = lanes;
	p.col = (int64_t)blockIdx.x % c.bands * c.width + (int)threadIdx.x % c.width;
	p.slice = (int64_t)blockIdx.x / c.bands;
	int64_t end = (p.slice + 1) * c.slice;
	p.from = p.slice * c.slice + p.lane;
	p.to = p.col < c.cols ? end < c.rows ? end : c.rows : 0;
	return p;
}

/* The same for a second stage: a block's threads share the slices instead of rows, all of them. */
CK_DEVICE ck_column_part ck_column_slices_of(const ck_columns &c)
{
	ck_column_part p;
	p.lane = (int)threadIdx.x / c.width, p.lanes = CK_BLOCK / c.width;
	p.col = (int64_t)blockIdx.x * c.width + (int)threadIdx.x % c.width;
	p.slice = 0, p.from = p.lane;
	p.to = p.col < c.cols ? c.slices : 0;
	return p;
}

/* The lanes' values added up, by halves: in lane 0, for each of the block's columns. shared: CK_BLOCK floats, used by nothing else. */
template <class S> CK_DEVICE float ck_column_sum(float v, const ck_column_part &p, S &shared)
{
	int width = CK_BLOCK / p.lanes;
	shared[threadIdx.x] = v;
	for (int half = p.lanes / 2; half; half /= 2) {
		__syncthreads();
		if (p.lane < half)
			shared[threadIdx.x] = shared[threadIdx.x] + shared[threadIdx.x + half * width];
	}
	__syncthreads();
	return shared[threadIdx.x];
}

#endif
