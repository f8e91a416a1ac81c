/* Sums of columns: bound by memory. A warp reads whole stretches of rows, however narrow they are. */
#include "kernels/cuda/columns.cuh"

template <typename T> CK_KERNEL void column_sums_slice(ck_columns c, const T *x, float *parts)
{
	CK_SHARED(float, shared, CK_BLOCK);
	ck_column_part p = ck_column_part_of(c);
	float sum = 0.0f;
#pragma unroll 8
	for (int64_t row = p.from; row < p.to; row += p.lanes)
		sum += ck_get(x, row * c.cols + p.col);
	sum = ck_column_sum(sum, p, shared);
	if (p.lane == 0 && p.col < c.cols)
		parts[p.slice * c.cols + p.col] = sum;
}

CK_KERNEL void column_sums_all(ck_columns c, bool acc, const float *parts, float *to)
{
	CK_SHARED(float, shared, CK_BLOCK);
	ck_column_part p = ck_column_slices_of(c);
	float sum = 0.0f;
#pragma unroll 8
	for (int64_t slice = p.from; slice < p.to; slice += p.lanes)
		sum += parts[slice * c.cols + p.col];
	sum = ck_column_sum(sum, p, shared);
	if (p.lane == 0 && p.col < c.cols)
		to[p.col] = acc ? to[p.col] + sum : sum;
}

extern "C" ck_columns ck__columns(const ck_device *device, int64_t rows, int64_t cols, int64_t least)
{
	ck_columns c = {rows, cols, 1, 0, 0, 0};
	while (c.width < 32 && c.width < cols)
		c.width *= 2;
	int64_t lanes = CK_BLOCK / c.width, wanted = 8 * (int64_t)device->multiprocessors;
	c.bands = (cols + c.width - 1) / c.width;
	c.slices = (wanted + c.bands - 1) / c.bands;
	int64_t most = (rows + lanes * least - 1) / (lanes * least);
	c.slices = c.slices < most ? c.slices : most;
	c.slice = (rows + c.slices - 1) / c.slices;
	c.slices = (rows + c.slice - 1) / c.slice;
	return c;
}

extern "C" size_t ck__column_sums_workspace(const ck_columns *c)
{
	return (size_t)(c->slices * c->cols) * sizeof(float);
}

extern "C" void ck__column_sums(cudaStream_t stream, const ck_columns *c, ck_dtype t, const void *x, float *workspace,
				float *sum, bool acc)
{
	CK_STORED(t, T,
		  CK_LAUNCH((column_sums_slice<T>), (unsigned)(c->slices * c->bands), CK_BLOCK, 0, stream, *c, (const T *)x,
			    workspace));
	ck__column_sums_finish(stream, c, workspace, sum, acc);
}

extern "C" void ck__column_sums_finish(cudaStream_t stream, const ck_columns *c, const float *parts, float *sum, bool acc)
{
	CK_LAUNCH(column_sums_all, (unsigned)c->bands, CK_BLOCK, 0, stream, *c, acc, parts, sum);
}
