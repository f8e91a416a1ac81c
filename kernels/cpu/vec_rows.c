/* Along rows: softmax, log-sum-exp and their backwards; down columns: sums. */
#include "kernels/cpu/vec_impl.h"
#include "kernels/cpu/vec_math.h"

INLINE float larger_one(float a, float b)
{
	return a > b ? a : b;
}

INLINE lanes larger(lanes a, lanes b)
{
	float each[LANES];
	VEC_LANES each[l] = larger_one(a[l], b[l]);
	return lanes_of(each);
}

INLINE lanes exp_lanes(lanes x)
{
	float each[LANES];
	VEC_LANES each[l] = vec_exp(x[l]);
	return lanes_of(each);
}

static float largest(int64_t n, const stored *x)
{
	lanes most = (lanes){0} - INFINITY;
	VEC_BLOCKS(n, i, count, { most = larger(load_block(x + i, count, -INFINITY), most); });
	float each[LANES];
	VEC_LANES each[l] = most[l];
#pragma GCC unroll 4
	for (int half = LANES / 2; half > 0; half /= 2)
#pragma GCC unroll 8
		for (int l = 0; l < half; l++)
			each[l] = larger_one(each[l + half], each[l]);
	return each[0];
}

/* The exponentials wait for their sum where they go to; but in 16 bits, where they would be rounded for it, they are formed
 * again. */
static void softmax(int64_t n, const ck_stored *from, ck_stored *to)
{
	enum { KEPT = sizeof(stored) == sizeof(float) };
	const stored *s = from;
	stored *p = to;
	float most = largest(n, s);
	lanes sum = {0};
	VEC_BLOCKS(n, i, count, {
		lanes e = exp_lanes(load_block(s + i, count, -INFINITY) - most);
		if (KEPT)
			store_block(p + i, count, e, false);
		sum += e;
	});
	float scale = 1.0f / sum_lanes(sum);
	VEC_BLOCKS(n, i, count, {
		lanes e = KEPT ? load_block(p + i, count, 0) : exp_lanes(load_block(s + i, count, -INFINITY) - most);
		store_block(p + i, count, e * scale, false);
	});
}

INLINE void softmax_gradient(int64_t n, const stored *p, const stored *dp, stored *ds, bool acc)
{
	lanes sum = {0};
	VEC_BLOCKS(n, i, count, { sum += load_block(p + i, count, 0) * load_block(dp + i, count, 0); });
	float dot = sum_lanes(sum);
	VEC_BLOCKS(n, i, count, {
		lanes centred = load_block(dp + i, count, 0) - dot;
		store_block(ds + i, count, load_block(p + i, count, 0) * centred, acc);
	});
}

static void softmax_backward(int64_t n, const ck_stored *p, const ck_stored *dp, ck_stored *ds, bool acc)
{
	if (acc)
		softmax_gradient(n, p, dp, ds, true);
	else
		softmax_gradient(n, p, dp, ds, false);
}

/* By stretches that stay in the first-level cache: each one's maximum, then its sum on top of the rescaled sum so far. */
static float log_sum_exp(int64_t n, const ck_stored *logits)
{
	const stored *x = logits;
	enum { STRETCH = 2048 };
	float most = -INFINITY, sum = 0;
	for (int64_t from = 0; from < n; from += STRETCH, x += STRETCH) {
		int64_t m = n - from < STRETCH ? n - from : STRETCH;
		float here = largest(m, x);
		if (here > most) {
			sum *= expf(most - here);
			most = here;
		}
		lanes part = {0};
		VEC_BLOCKS(m, i, count, { part += exp_lanes(load_block(x + i, count, -INFINITY) - most); });
		sum += sum_lanes(part);
	}
	return most + logf(sum);
}

INLINE void exponentials(int64_t n, float lse, float scale, const stored *x, stored *dx, bool acc)
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

static void column_sums(int64_t rows, int64_t cols, int64_t stride, const ck_stored *matrix, float *sum)
{
	const stored *x = matrix;
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
