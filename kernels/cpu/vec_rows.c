/* Along rows: softmax, log-sum-exp and their backwards; down columns: sums.
 *
 * A causal softmax has rows of every length, so a row's last elements are put into a full block padded with what changes nothing:
 * done one by one they would cost as much as all the others. */
#include "kernels/cpu/vec_impl.h"
#include "kernels/cpu/vec_math.h"

enum { LANES = 16, LSE_BLOCK = 2048 };

/* The n < LANES elements at x, padded. */
INLINE void load_tail(int64_t n, const ck_stored *x, float pad, float tail[LANES])
{
	VEC_LOOP
	for (int l = 0; l < LANES; l++)
		tail[l] = l < n ? get(x, l) : pad;
}

INLINE void store_tail(int64_t n, const float tail[LANES], ck_stored *y, bool acc)
{
	VEC_LOOP
	for (int l = 0; l < LANES; l++)
		if (l < n)
			put_gradient(y, l, tail[l], acc);
}

static float largest(int64_t n, const ck_stored *x)
{
	float most = -INFINITY;
	VEC_MAX(most)
	for (int64_t i = 0; i < n; i++)
		most = get(x, i) > most ? get(x, i) : most;
	return most;
}

static void softmax(int64_t n, const ck_stored *s, ck_stored *p)
{
	int64_t whole = n / LANES * LANES;
	float tail[LANES], most = -INFINITY, sum = 0;
	load_tail(n - whole, s + whole, -INFINITY, tail);
	VEC_MAX(most)
	for (int64_t i = 0; i < whole; i++)
		most = get(s, i) > most ? get(s, i) : most;
	VEC_MAX(most)
	for (int l = 0; l < LANES; l++)
		most = tail[l] > most ? tail[l] : most;

	VEC_SUM(sum)
	for (int64_t i = 0; i < whole; i++) {
		float e = vec_exp(get(s, i) - most);
		put(p, i, e);
		sum += e;
	}
	VEC_SUM(sum)
	for (int l = 0; l < LANES; l++) {
		tail[l] = vec_exp(tail[l] - most);
		sum += tail[l];
	}

	float scale = 1.0f / sum;
	VEC_LOOP
	for (int64_t i = 0; i < whole; i++)
		put(p, i, get(p, i) * scale);
	VEC_LOOP
	for (int l = 0; l < LANES; l++)
		tail[l] *= scale;
	store_tail(n - whole, tail, p + whole, false);
}

INLINE void softmax_gradient(int64_t n, const ck_stored *p, const ck_stored *dp, ck_stored *ds, bool acc)
{
	int64_t whole = n / LANES * LANES;
	float tail[LANES], tail_p[LANES], dot = 0;
	load_tail(n - whole, dp + whole, 0, tail);
	load_tail(n - whole, p + whole, 0, tail_p);
	VEC_SUM(dot)
	for (int64_t i = 0; i < whole; i++)
		dot += get(p, i) * get(dp, i);
	VEC_SUM(dot)
	for (int l = 0; l < LANES; l++)
		dot += tail_p[l] * tail[l];
	VEC_LOOP
	for (int64_t i = 0; i < whole; i++)
		put_gradient(ds, i, get(p, i) * (get(dp, i) - dot), acc);
	VEC_LOOP
	for (int l = 0; l < LANES; l++)
		tail[l] = tail_p[l] * (tail[l] - dot);
	store_tail(n - whole, tail, ds + whole, acc);
}

static void softmax_backward(int64_t n, const ck_stored *p, const ck_stored *dp, ck_stored *ds, bool acc)
{
	if (acc)
		softmax_gradient(n, p, dp, ds, true);
	else
		softmax_gradient(n, p, dp, ds, false);
}

/* In blocks that stay in the first-level cache: a block's maximum, then its sum on top of the rescaled sum so far. */
static float log_sum_exp(int64_t n, const ck_stored *x)
{
	float most = -INFINITY, sum = 0;
	for (int64_t from = 0; from < n; from += LSE_BLOCK) {
		int64_t m = n - from < LSE_BLOCK ? n - from : LSE_BLOCK;
		float block_most = largest(m, x + from), part = 0;
		if (block_most > most) {
			sum *= expf(most - block_most);
			most = block_most;
		}
		VEC_SUM(part)
		for (int64_t i = 0; i < m; i++)
			part += vec_exp(get(x, from + i) - most);
		sum += part;
	}
	return most + logf(sum);
}

INLINE void exponentials(int64_t n, float lse, float scale, const ck_stored *x, ck_stored *dx, bool acc)
{
	VEC_LOOP
	for (int64_t i = 0; i < n; i++)
		put_gradient(dx, i, vec_exp(get(x, i) - lse) * scale, acc);
}

static void exp_scaled(int64_t n, float lse, float scale, const ck_stored *x, ck_stored *dx, bool acc)
{
	if (acc)
		exponentials(n, lse, scale, x, dx, true);
	else
		exponentials(n, lse, scale, x, dx, false);
}

static void column_sums(int64_t rows, int64_t cols, int64_t stride, const ck_stored *x, float *sum)
{
	int64_t row = 0;
	for (; row + 4 <= rows; row += 4, x += 4 * stride)
		VEC_LOOP
		for (int64_t c = 0; c < cols; c++)
			sum[c] += (get(x, c) + get(x + stride, c)) + (get(x + 2 * stride, c) + get(x + 3 * stride, c));
	for (; row < rows; row++, x += stride)
		VEC_LOOP
		for (int64_t c = 0; c < cols; c++)
			sum[c] += get(x, c);
}

const ck_vec_rows VEC(ck__vec_rows) = {
    .column_sums = column_sums,
    .softmax = softmax,
    .softmax_backward = softmax_backward,
    .log_sum_exp = log_sum_exp,
    .exp_scaled = exp_scaled,
};
