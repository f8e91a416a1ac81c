/* BATCHNORM, each thread a column and a slice's rows of it (columns.h). Bound by memory: forward reads x twice and r once and writes y;
 * backward reads dy, y and x twice and writes dx and dr.
 *
 * Statistics: a thread's rows are summed less its first one, which takes a shift of the data out; threads' and slices' means and sums of squares
 * are then merged pairwise as Chan, Golub and LeVeque do ("Updating formulae and a pairwise algorithm for computing sample variances", 1979). */
#include "kernels/cuda/act.cuh"
#include "kernels/cuda/columns.cuh"

extern "C" {
#include "kernels/cuda/batchnorm.h"
}

/* ---- statistics ---------------------------------------------------------------------------------------------------------- */

typedef struct moments {
	float n, mean, m2; /* m2: sum of squared distances from the mean */
} moments;

CK_DEVICE moments merged(moments a, moments b)
{
	moments all = {a.n + b.n, a.mean, a.m2};
	if (b.n > 0.0f) {
		float part = b.n / all.n, distance = b.mean - a.mean;
		all.mean = a.mean + distance * part;
		all.m2 = a.m2 + b.m2 + distance * distance * (a.n * part);
	}
	return all;
}

/* The lanes' moments merged, by halves: in lane 0. The shared arrays have CK_BLOCK floats each. */
template <class S> CK_DEVICE moments merge_lanes(moments m, const ck_column_part &p, S &n, S &mean, S &m2)
{
	unsigned i = threadIdx.x, width = CK_BLOCK / p.lanes;
	n[i] = m.n, mean[i] = m.mean, m2[i] = m.m2;
	for (int half = p.lanes / 2; half; half /= 2) {
		__syncthreads();
		if (p.lane < half) {
			unsigned j = i + half * width;
			moments other = {n[j], mean[j], m2[j]};
			m = merged(m, other);
			n[i] = m.n, mean[i] = m.mean, m2[i] = m.m2;
		}
	}
	return m;
}

template <typename T> CK_KERNEL void batchnorm_slice_moments(ck_columns c, const T *x, float *parts)
{
	CK_SHARED(float, n, CK_BLOCK);
	CK_SHARED(float, mean, CK_BLOCK);
	CK_SHARED(float, m2, CK_BLOCK);
	ck_column_part p = ck_column_part_of(c);
	moments m = {0.0f, 0.0f, 0.0f};
	if (p.from < p.to) {
		float first = ck_get(x, p.from * c.cols + p.col), sum = 0.0f, squares = 0.0f;
#pragma unroll 8
		for (int64_t row = p.from; row < p.to; row += p.lanes) {
			float v = ck_get(x, row * c.cols + p.col) - first;
			sum += v;
			squares += v * v;
		}
		m.n = (float)((p.to - p.from + p.lanes - 1) / p.lanes);
		float less = sum / m.n;
		m.mean = first + less;
		m.m2 = fmaxf(squares - sum * less, 0.0f);
	}
	m = merge_lanes(m, p, n, mean, m2);
	if (p.lane == 0 && p.col < c.cols) {
		parts[p.slice * c.cols + p.col] = m.mean;
		parts[(c.slices + p.slice) * c.cols + p.col] = m.m2;
	}
}

CK_DEVICE float rstd_of(double variance, double eps)
{
	return (float)(1.0 / sqrt(variance + eps));
}

CK_KERNEL void batchnorm_all_moments(ck_columns c, double eps, float momentum, const float *parts, float *mean_to,
				     float *rstd_to, float *running_mean, float *running_var, int32_t *count)
{
	CK_SHARED(float, n, CK_BLOCK);
	CK_SHARED(float, mean, CK_BLOCK);
	CK_SHARED(float, m2, CK_BLOCK);
	ck_column_part p = ck_column_slices_of(c);
	moments m = {0.0f, 0.0f, 0.0f};
#pragma unroll 4
	for (int64_t slice = p.from; slice < p.to; slice += p.lanes) {
		int64_t left = c.rows - slice * c.slice;
		moments one = {(float)(left < c.slice ? left : c.slice), parts[slice * c.cols + p.col],
			       parts[(c.slices + slice) * c.cols + p.col]};
		m = merged(m, one);
	}
	m = merge_lanes(m, p, n, mean, m2);
	if (p.lane == 0 && p.col < c.cols) {
		mean_to[p.col] = m.mean;
		rstd_to[p.col] = rstd_of((double)m.m2 / (double)c.rows, eps);
		if (running_mean) {
			float unbiased = (float)((double)m.m2 / (double)(c.rows - 1));
			running_mean[p.col] += momentum * (m.mean - running_mean[p.col]);
			running_var[p.col] += momentum * (unbiased - running_var[p.col]);
		}
	}
	if (count && ck_thread() == 0)
		*count += 1;
}

CK_KERNEL void batchnorm_count(int32_t *count)
{
	if (ck_thread() == 0)
		*count += 1;
}

/* ---- forward ------------------------------------------------------------------------------------------------------------- */

enum { AHEAD = 4 }; /* rows that are read before any of them is written, to wait for memory once */

/* A column's 1 / sqrt(variance + eps), which in training is stashed. */
CK_DEVICE float column_rstd(const float *rstd, const float *variance, double eps, int64_t col)
{
	return rstd ? rstd[col] : rstd_of((double)variance[col], eps);
}

template <typename T>
CK_KERNEL void batchnorm_apply(ck_columns c, ck_act act, double eps, const T *x, const float *mean, const float *rstd,
			       const float *variance, const float *gamma, const float *beta, const T *r, T *y)
{
	ck_column_part p = ck_column_part_of(c);
	if (p.from >= p.to)
		return;
	float middle = mean[p.col], scale = gamma[p.col] * column_rstd(rstd, variance, eps, p.col), shift = beta[p.col];
	for (int64_t row = p.from; row < p.to; row += AHEAD * p.lanes) {
		float v[AHEAD] = {};
#pragma unroll
		for (int k = 0; k < AHEAD; k++) {
			int64_t i = (row + k * p.lanes) * c.cols + p.col;
			if (row + k * p.lanes < p.to)
				v[k] = (ck_get(x, i) - middle) * scale + shift + (r ? ck_get(r, i) : 0.0f);
		}
#pragma unroll
		for (int k = 0; k < AHEAD; k++)
			if (row + k * p.lanes < p.to)
				ck_put(y, (row + k * p.lanes) * c.cols + p.col, ck_act_at(act, v[k]));
	}
}

/* ---- backward ------------------------------------------------------------------------------------------------------------ */

/* The gradient that enters the activation. */
template <typename T> CK_DEVICE float masked(const T *dy, const T *y, int64_t i)
{
	float g = ck_get(dy, i);
	return y && ck_get(y, i) <= 0.0f ? 0.0f : g;
}

/* Sums of g and of g (x - mean). */
template <typename T>
CK_KERNEL void batchnorm_slice_sums(ck_columns c, const T *dy, const T *y, const T *x, const float *mean, float *parts)
{
	CK_SHARED(float, shared, CK_BLOCK);
	ck_column_part p = ck_column_part_of(c);
	float sum = 0.0f, sum_x = 0.0f, middle = x && p.col < c.cols ? mean[p.col] : 0.0f;
#pragma unroll 4
	for (int64_t row = p.from; row < p.to; row += p.lanes) {
		int64_t i = row * c.cols + p.col;
		float g = masked(dy, y, i);
		sum += g;
		if (x)
			sum_x += g * (ck_get(x, i) - middle);
	}
	sum = ck_column_sum(sum, p, shared);
	sum_x = ck_column_sum(sum_x, p, shared);
	if (p.lane == 0 && p.col < c.cols) {
		parts[p.slice * c.cols + p.col] = sum;
		parts[(c.slices + p.slice) * c.cols + p.col] = sum_x;
	}
}

/* terms: what is taken from g for dx, and from g for each unit of x - mean; (2, cols). */
CK_KERNEL void batchnorm_all_sums(ck_columns c, double eps, const float *parts, bool normalised, const float *rstd,
				  const float *variance, float *terms, float *dgamma, bool acc_gamma, float *dbeta,
				  bool acc_beta)
{
	CK_SHARED(float, shared, CK_BLOCK);
	ck_column_part p = ck_column_slices_of(c);
	float sum = 0.0f, sum_x = 0.0f;
#pragma unroll 4
	for (int64_t slice = p.from; slice < p.to; slice += p.lanes) {
		sum += parts[slice * c.cols + p.col];
		sum_x += parts[(c.slices + slice) * c.cols + p.col];
	}
	sum = ck_column_sum(sum, p, shared);
	sum_x = ck_column_sum(sum_x, p, shared);
	if (p.lane || p.col >= c.cols)
		return;
	float scale = normalised ? column_rstd(rstd, variance, eps, p.col) : 0.0f, rows = (float)c.rows;
	if (dgamma)
		dgamma[p.col] = (acc_gamma ? dgamma[p.col] : 0.0f) + sum_x * scale;
	if (dbeta)
		dbeta[p.col] = (acc_beta ? dbeta[p.col] : 0.0f) + sum;
	terms[p.col] = sum / rows;
	terms[c.cols + p.col] = sum_x / rows * scale * scale;
}

/* dx is written before dr is: they may be one buffer, or one of them dy's. */
template <typename T>
CK_KERNEL void batchnorm_gradient(ck_columns c, double eps, const T *dy, const T *y, const T *x, const float *mean,
				  const float *rstd, const float *variance, const float *gamma, const float *terms, T *dx,
				  bool acc_x, T *dr, bool acc_r)
{
	ck_column_part p = ck_column_part_of(c);
	if (p.from >= p.to)
		return;
	float scale = 0.0f, middle = 0.0f, offset = 0.0f, slope = 0.0f;
	if (dx)
		scale = gamma[p.col] * column_rstd(rstd, variance, eps, p.col);
	if (dx && terms)
		middle = mean[p.col], offset = terms[p.col], slope = terms[c.cols + p.col];
	for (int64_t row = p.from; row < p.to; row += AHEAD * p.lanes) {
		float g[AHEAD] = {}, less[AHEAD] = {};
#pragma unroll
		for (int k = 0; k < AHEAD; k++) {
			int64_t i = (row + k * p.lanes) * c.cols + p.col;
			if (row + k * p.lanes < p.to) {
				g[k] = masked(dy, y, i);
				if (dx && terms)
					less[k] = offset + (ck_get(x, i) - middle) * slope;
			}
		}
#pragma unroll
		for (int k = 0; k < AHEAD; k++) {
			int64_t i = (row + k * p.lanes) * c.cols + p.col;
			if (dx && row + k * p.lanes < p.to)
				ck_put(dx, i, scale * (g[k] - less[k]) + (acc_x ? ck_get(dx, i) : 0.0f));
			if (dr && row + k * p.lanes < p.to)
				ck_put(dr, i, g[k] + (acc_r ? ck_get(dr, i) : 0.0f));
		}
	}
}

/* ---- launchers ----------------------------------------------------------------------------------------------------------- */

/* Slices' two values a column, then the two terms. */
static float *terms_of(const ck_columns *c, const float *workspace)
{
	return (float *)workspace + 2 * c->slices * c->cols;
}

static unsigned blocks_of(const ck_columns *c)
{
	return (unsigned)(c->slices * c->bands);
}

size_t ck__batchnorm_workspace(const ck_columns *c)
{
	return (size_t)(2 * (c->slices + 1) * c->cols) * sizeof(float);
}

void ck__batchnorm_statistics(cudaStream_t stream, const ck_columns *c, ck_dtype t, double eps, double momentum, const void *x,
			      float *workspace, float *mean, float *rstd, float *running_mean, float *running_var,
			      int32_t *count)
{
	CK_STORED(t, T,
		  CK_LAUNCH((batchnorm_slice_moments<T>), blocks_of(c), CK_BLOCK, 0, stream, *c, (const T *)x, workspace));
	CK_LAUNCH(batchnorm_all_moments, (unsigned)c->bands, CK_BLOCK, 0, stream, *c, eps, (float)momentum, workspace, mean,
		  rstd, running_mean, running_var, count);
}

void ck__batchnorm_count(cudaStream_t stream, int32_t *count)
{
	CK_LAUNCH(batchnorm_count, 1, CK_WARP, 0, stream, count);
}

void ck__batchnorm_apply(cudaStream_t stream, const ck_columns *c, ck_dtype t, bool relu, double eps, const void *x,
			 const float *mean, const float *rstd, const float *variance, const float *gamma, const float *beta,
			 const void *r, void *y)
{
	ck_act act = relu ? CK_ACT_RELU : CK_ACT_NONE;
	CK_STORED(t, T,
		  CK_LAUNCH((batchnorm_apply<T>), blocks_of(c), CK_BLOCK, 0, stream, *c, act, eps, (const T *)x, mean, rstd,
			    variance, gamma, beta, (const T *)r, (T *)y));
}

void ck__batchnorm_sums(cudaStream_t stream, const ck_columns *c, ck_dtype t, double eps, const void *dy, const void *y,
			const void *x, const float *mean, const float *rstd, const float *variance, float *workspace,
			float *dgamma, bool acc_gamma, float *dbeta, bool acc_beta)
{
	CK_STORED(t, T,
		  CK_LAUNCH((batchnorm_slice_sums<T>), blocks_of(c), CK_BLOCK, 0, stream, *c, (const T *)dy, (const T *)y,
			    (const T *)x, mean, workspace));
	CK_LAUNCH(batchnorm_all_sums, (unsigned)c->bands, CK_BLOCK, 0, stream, *c, eps, workspace, x != NULL, rstd, variance,
		  terms_of(c, workspace), dgamma, acc_gamma, dbeta, acc_beta);
}

void ck__batchnorm_gradient(cudaStream_t stream, const ck_columns *c, ck_dtype t, double eps, bool training, const void *dy,
			    const void *y, const void *x, const float *mean, const float *rstd, const float *variance,
			    const float *gamma, const float *workspace, void *dx, bool acc_x, void *dr, bool acc_r)
{
	const float *terms = training ? terms_of(c, workspace) : NULL;
	CK_STORED(t, T,
		  CK_LAUNCH((batchnorm_gradient<T>), blocks_of(c), CK_BLOCK, 0, stream, *c, eps, (const T *)dy, (const T *)y,
			    (const T *)x, mean, rstd, variance, gamma, terms, (T *)dx, acc_x, (T *)dr, acc_r));
}
