/* How blocks of CK_BLOCK threads share a matrix (rows, cols) whose columns are summed up, or have constants of their own: `width` columns to
 * a block, CK_BLOCK / width of its threads to a column, and a slice of the rows. Fixed by the shape and the kind of device. */
#ifndef CK_CUDA_COLUMNS_H
#define CK_CUDA_COLUMNS_H

#include "kernels/cuda/cuda.h"

typedef struct ck_columns {
	int64_t rows, cols;
	int width;             /* a power of two up to 32 */
	int64_t slice;         /* rows */
	int64_t slices, bands; /* of rows; of `width` columns. Their product is the number of blocks */
} ck_columns;

/* least: rows that a thread should have, so that work and not starting it takes the time. */
ck_columns ck__columns(const ck_device *device, int64_t rows, int64_t cols, int64_t least);

/* sum = the columns' sums, or sum += them, in two stages: a slice each, then over the slices in order. */
size_t ck__column_sums_workspace(const ck_columns *c); /* bytes */
void ck__column_sums(cudaStream_t stream, const ck_columns *c, ck_dtype t, const void *x, float *workspace, float *sum,
		     bool acc);
/* The second stage alone, of parts (slices, cols). */
void ck__column_sums_finish(cudaStream_t stream, const ck_columns *c, const float *parts, float *sum, bool acc);

#endif
