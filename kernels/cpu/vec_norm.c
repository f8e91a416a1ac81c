/* Batch norm and layer norm.
 *
 * Sums down columns go in blocks of rows that stay in the first-level cache: within a block four rows are added at a time,
 * and block sums are added to the total, so that rounding grows with the number of blocks and not of rows. The variance is
 * taken around each block's own mean while the block is in cache, and blocks are merged by the formula of Chan, Golub and
 * LeVeque ("Updating formulae and a pairwise algorithm for computing sample variances", 1979): one pass over memory, no
 * cancellation. */
#include <math.h>
#include <string.h>

#include "kernels/cpu/vec_impl.h"

enum { BLOCK_ELEMENTS = 8192, LEAST_ROWS = 8 };

static int64_t block_rows(int64_t cols)
{
	int64_t rows = BLOCK_ELEMENTS / cols / 4 * 4;
	return rows < LEAST_ROWS ? LEAST_ROWS : rows;
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static void zero(int64_t n, float *x)
{
	memset(x, 0, (size_t)n * sizeof(*x));
}

/* ---- batch norm, forward ------------------------------------------------------------------------------------------------- */

INLINE float square(float x)
{
	return x * x;
}

/* sum[c] += sum over rows of f(x - mean) */
INLINE void add_rows(int64_t rows, int64_t cols, const stored *x, const float *mean, float *sum, bool squared)
{
	int64_t row = 0;
#define TERM(k) (squared ? square(get(x + (k)*cols, c) - mean[c]) : get(x + (k)*cols, c))
	for (; row + 4 <= rows; row += 4, x += 4 * cols)
		VEC_LOOP
	for (int64_t c = 0; c < cols; c++)
		sum[c] += (TERM(0) + TERM(1)) + (TERM(2) + TERM(3));
	for (; row < rows; row++, x += cols)
		VEC_LOOP
	for (int64_t c = 0; c < cols; c++)
		sum[c] += TERM(0);
#undef TERM
}

static void block_moments(int64_t rows, int64_t cols, const stored *x, float *mean, float *m2)
{
	float inverse = 1.0f / (float)rows;
	zero(cols, mean);
	zero(cols, m2);
	add_rows(rows, cols, x, NULL, mean, false);
	VEC_LOOP
	for (int64_t c = 0; c < cols; c++)
		mean[c] *= inverse;
	add_rows(rows, cols, x, mean, m2, true);
}

static void merge(int64_t cols, int64_t na, float *mean_a, float *m2_a, int64_t nb, const float *mean_b, const float *m2_b)
{
	if (nb == 0)
		return;
	float share = (float)nb / (float)(na + nb), product = (float)na * share;
	VEC_LOOP
	for (int64_t c = 0; c < cols; c++) {
		float delta = mean_b[c] - mean_a[c];
		mean_a[c] += delta * share;
		m2_a[c] += m2_b[c] + delta * delta * product;
	}
}

static void moments(int64_t rows, int64_t cols, const ck_stored *matrix, float *mean, float *m2, float *scratch)
{
	const stored *x = matrix;
	int64_t block = block_rows(cols);
	zero(cols, mean);
	zero(cols, m2);
	for (int64_t row = 0; row < rows; row += block) {
		int64_t n = least(block, rows - row);
		block_moments(n, cols, x + row * cols, scratch, scratch + cols);
		merge(cols, row, mean, m2, n, scratch, scratch + cols);
	}
}

INLINE void apply_rows(int64_t rows, int64_t cols, const stored *x, const float *mean, const float *scale, const float *beta,
		       const stored *r, stored *y, bool residual, bool relu)
{
	for (int64_t row = 0; row < rows; row++) {
		int64_t at = row * cols;
		VEC_LOOP
		for (int64_t c = 0; c < cols; c++) {
			float z = (get(x, at + c) - mean[c]) * scale[c] + beta[c];
			if (residual)
				z += get(r, at + c);
			put(y, at + c, relu && z < 0.0f ? 0.0f : z);
		}
	}
}

static void apply(int64_t rows, int64_t cols, const ck_stored *x, const float *mean, const float *scale, const float *beta,
		  const ck_stored *r, bool relu, ck_stored *y)
{
	if (r && relu)
		apply_rows(rows, cols, x, mean, scale, beta, r, y, true, true);
	else if (r)
		apply_rows(rows, cols, x, mean, scale, beta, r, y, true, false);
	else if (relu)
		apply_rows(rows, cols, x, mean, scale, beta, NULL, y, false, true);
	else
		apply_rows(rows, cols, x, mean, scale, beta, NULL, y, false, false);
}

/* ---- batch norm, backward ------------------------------------------------------------------------------------------------ */

INLINE float masked(const stored *dy, const stored *y, int64_t i, bool relu)
{
	float dz = get(dy, i);
	return relu && get(y, i) <= 0.0f ? 0.0f : dz;
}

INLINE void add_gradient_rows(int64_t rows, int64_t cols, const stored *dy, const stored *y, const stored *x, const float *mean,
			      float *sum, float *sum_x, bool relu, bool both)
{
	int64_t row = 0;
	for (; row + 2 <= rows; row += 2) {
		int64_t a = row * cols, b = a + cols;
		VEC_LOOP
		for (int64_t c = 0; c < cols; c++) {
			float za = masked(dy, y, a + c, relu), zb = masked(dy, y, b + c, relu);
			sum[c] += za + zb;
			if (both)
				sum_x[c] += za * (get(x, a + c) - mean[c]) + zb * (get(x, b + c) - mean[c]);
		}
	}
	if (row < rows) {
		int64_t a = row * cols;
		VEC_LOOP
		for (int64_t c = 0; c < cols; c++) {
			float z = masked(dy, y, a + c, relu);
			sum[c] += z;
			if (both)
				sum_x[c] += z * (get(x, a + c) - mean[c]);
		}
	}
}

static void block_gradient_sums(int64_t rows, int64_t cols, const stored *dy, const stored *y, const stored *x,
				const float *mean, float *sum, float *sum_x)
{
	if (x && y)
		add_gradient_rows(rows, cols, dy, y, x, mean, sum, sum_x, true, true);
	else if (x)
		add_gradient_rows(rows, cols, dy, NULL, x, mean, sum, sum_x, false, true);
	else if (y)
		add_gradient_rows(rows, cols, dy, y, NULL, NULL, sum, NULL, true, false);
	else
		add_gradient_rows(rows, cols, dy, NULL, NULL, NULL, sum, NULL, false, false);
}

static void gradient_sums(int64_t rows, int64_t cols, const ck_stored *gradient_of_y, const ck_stored *result,
			  const ck_stored *input, const float *mean, float *sum, float *sum_x, float *scratch)
{
	const stored *dy = gradient_of_y, *y = result, *x = input;
	int64_t block = block_rows(cols);
	zero(cols, sum);
	zero(cols, sum_x);
	for (int64_t row = 0; row < rows; row += block) {
		int64_t n = least(block, rows - row), at = row * cols;
		float *part = scratch, *part_x = scratch + cols;
		zero(2 * cols, scratch);
		block_gradient_sums(n, cols, dy + at, y ? y + at : NULL, x ? x + at : NULL, mean, part, part_x);
		VEC_LOOP
		for (int64_t c = 0; c < cols; c++) {
			sum[c] += part[c];
			sum_x[c] += part_x[c];
		}
	}
}

enum residual_gradient { DR_NONE, DR_WRITE, DR_ADD, DR_MODES };

INLINE void gradient_rows(int64_t rows, int64_t cols, const ck_bn_gradient *g, bool relu, bool acc, int dr_mode)
{
	const stored *dy = g->dy, *y = g->y, *x = g->x;
	const float *mean = g->mean, *scale = g->scale, *offset = g->offset, *slope = g->slope;
	stored *dx = g->dx, *dr = g->dr;
	for (int64_t row = 0; row < rows; row++) {
		int64_t at = row * cols;
		VEC_LOOP
		for (int64_t c = 0; c < cols; c++) {
			float dz = masked(dy, y, at + c, relu);
			float centred = get(x, at + c) - mean[c];
			put_gradient(dx, at + c, scale[c] * (dz - offset[c] - centred * slope[c]), acc);
			if (dr_mode != DR_NONE)
				put_gradient(dr, at + c, dz, dr_mode == DR_ADD);
		}
	}
}

static void gradient(int64_t rows, int64_t cols, const ck_bn_gradient *g)
{
	int dr_mode = !g->dr ? DR_NONE : g->acc_r ? DR_ADD : DR_WRITE;
	switch ((g->y ? 2 * DR_MODES : 0) + (g->acc_x ? DR_MODES : 0) + dr_mode) {
#define CASE(relu, acc, mode)                                                                                                  \
	case (relu)*2 * DR_MODES + (acc)*DR_MODES + (mode):                                                                    \
		gradient_rows(rows, cols, g, relu, acc, mode);                                                                 \
		break;
#define CASES(relu, acc) CASE(relu, acc, DR_NONE) CASE(relu, acc, DR_WRITE) CASE(relu, acc, DR_ADD)
		CASES(0, 0)
		CASES(0, 1)
		CASES(1, 0)
		CASES(1, 1)
#undef CASES
#undef CASE
	}
}

/* ---- layer norm ---------------------------------------------------------------------------------------------------------- */

INLINE lanes load_floats(const float *x, int64_t count, float pad)
{
	float each[LANES];
	VEC_LANES each[l] = l < count ? x[l] : pad;
	return lanes_of(each);
}

INLINE void store_floats(float *y, int64_t count, lanes v)
{
	memcpy(y, &v, (size_t)count * sizeof(*y));
}

static void layer(int64_t rows, int64_t cols, float eps, const float *x, const float *gamma, const float *beta, ck_stored *out,
		  ck_stored *stash, float *mean, float *rstd)
{
	float inverse = 1.0f / (float)cols;
	stored *y = out, *xhat = stash;
	for (int64_t row = 0; row < rows; row++, x += cols, y += cols) {
		lanes sum = {0}, squares = {0};
		VEC_BLOCKS(cols, i, count, { sum += load_floats(x + i, count, 0); });
		float m = sum_lanes(sum) * inverse;
		VEC_BLOCKS(cols, i, count, {
			lanes centred = load_floats(x + i, count, m) - m;
			squares += centred * centred;
		});
		float s = 1.0f / sqrtf(sum_lanes(squares) * inverse + eps);
		VEC_BLOCKS(cols, i, count, {
			lanes normal = (load_floats(x + i, count, 0) - m) * s;
			store_block(y + i, count, normal * load_floats(gamma + i, count, 0) + load_floats(beta + i, count, 0),
				    false);
			if (xhat)
				store_block(xhat + row * cols + i, count, normal, false);
		});
		if (!xhat)
			mean[row] = m;
		rstd[row] = s;
	}
}

/* The normalised input: as stashed, or worked out from x. */
INLINE float normalised(const ck_ln_saved *saved, int64_t row, int64_t i, bool stashed)
{
	return stashed ? get(saved->xhat, i) : (saved->x[i] - saved->mean[row]) * saved->rstd[row];
}

INLINE void layer_sums_rows(int64_t rows, int64_t cols, const stored *dy, const ck_ln_saved *saved, float *dgamma, bool stashed)
{
	for (int64_t row = 0; row < rows; row++) {
		int64_t at = row * cols;
		VEC_LOOP
		for (int64_t c = 0; c < cols; c++)
			dgamma[c] += get(dy, at + c) * normalised(saved, row, at + c, stashed);
	}
}

static void layer_sums(int64_t rows, int64_t cols, const ck_stored *gradient, const ck_ln_saved *saved, float *dgamma,
		       float *dbeta)
{
	const stored *dy = gradient;
	const ck_ln_saved own = *saved; /* so that the compiler knows that no store changes it */
	if (own.xhat)
		layer_sums_rows(rows, cols, dy, &own, dgamma, true);
	else if (own.x)
		layer_sums_rows(rows, cols, dy, &own, dgamma, false);
	for (int64_t row = 0; row < rows; row++, dy += cols) {
		VEC_LOOP
		for (int64_t c = 0; c < cols; c++)
			dbeta[c] += get(dy, c);
	}
}

INLINE lanes load_normalised(const ck_ln_saved *saved, int64_t row, int64_t i, int64_t count, bool stashed)
{
	if (stashed)
		return load_block((const stored *)saved->xhat + i, count, 0);
	return (load_floats(saved->x + i, count, saved->mean[row]) - saved->mean[row]) * saved->rstd[row];
}

INLINE void layer_gradient_row(int64_t cols, const stored *dy, const ck_ln_saved *saved, int64_t row, const float *gamma,
			       float *dx, bool acc, bool stashed)
{
	lanes sum = {0}, sum_x = {0};
	int64_t at = row * cols;
	VEC_BLOCKS(cols, i, count, {
		lanes g = load_block(dy + at + i, count, 0) * load_floats(gamma + i, count, 0);
		sum += g;
		sum_x += g * load_normalised(saved, row, at + i, count, stashed);
	});
	float offset = sum_lanes(sum) / (float)cols, slope = sum_lanes(sum_x) / (float)cols, s = saved->rstd[row];
	VEC_BLOCKS(cols, i, count, {
		lanes g = load_block(dy + at + i, count, 0) * load_floats(gamma + i, count, 0);
		lanes gradient = (g - offset - load_normalised(saved, row, at + i, count, stashed) * slope) * s;
		store_floats(dx + at + i, count, acc ? load_floats(dx + at + i, count, 0) + gradient : gradient);
	});
}

static void layer_gradient(int64_t rows, int64_t cols, const ck_stored *dy, const ck_ln_saved *saved, const float *gamma,
			   float *dx, bool acc)
{
	const ck_ln_saved own = *saved;
	for (int64_t row = 0; row < rows; row++)
		if (own.xhat && acc)
			layer_gradient_row(cols, dy, &own, row, gamma, dx, true, true);
		else if (own.xhat)
			layer_gradient_row(cols, dy, &own, row, gamma, dx, false, true);
		else if (acc)
			layer_gradient_row(cols, dy, &own, row, gamma, dx, true, false);
		else
			layer_gradient_row(cols, dy, &own, row, gamma, dx, false, false);
}

const ck_vec_norm VEC(ck__vec_norm) = {
    .moments = moments,
    .merge = merge,
    .apply = apply,
    .gradient_sums = gradient_sums,
    .gradient = gradient,
    .layer = layer,
    .layer_sums = layer_sums,
    .layer_gradient = layer_gradient,
};
