/* Along rows: softmax, log-sum-exp and their backwards; down columns: sums. */
#include "kernels/cpu/vec_impl.h"
#include "kernels/cpu/vec_math.h"

static float largest(int64_t n, const ck_stored *x)
{
	float most[LANES], v[LANES];
	set_block(most, -INFINITY);
	VEC_BLOCKS(n, i, count, {
		load_block(x + i, count, -INFINITY, v);
		VEC_LANES most[l] = larger(v[l], most[l]);
	});
	return max_block(most);
}

static void softmax(int64_t n, const ck_stored *s, ck_stored *p)
{
	float most = largest(n, s), sum[LANES], v[LANES];
	set_block(sum, 0);
	VEC_BLOCKS(n, i, count, {
		load_block(s + i, count, -INFINITY, v);
		VEC_LANES v[l] = vec_exp(v[l] - most);
		VEC_LANES sum[l] += v[l];
		store_block(p + i, count, v, false);
	});
	float scale = 1.0f / sum_block(sum);
	VEC_BLOCKS(n, i, count, {
		load_block(p + i, count, 0, v);
		VEC_LANES v[l] *= scale;
		store_block(p + i, count, v, false);
	});
}

INLINE void softmax_gradient(int64_t n, const ck_stored *p, const ck_stored *dp, ck_stored *ds, bool acc)
{
	float sum[LANES], a[LANES], b[LANES];
	set_block(sum, 0);
	VEC_BLOCKS(n, i, count, {
		load_block(p + i, count, 0, a);
		load_block(dp + i, count, 0, b);
		VEC_LANES sum[l] += a[l] * b[l];
	});
	float dot = sum_block(sum);
	VEC_BLOCKS(n, i, count, {
		load_block(p + i, count, 0, a);
		load_block(dp + i, count, 0, b);
		VEC_LANES a[l] *= b[l] - dot;
		store_block(ds + i, count, a, acc);
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
static float log_sum_exp(int64_t n, const ck_stored *x)
{
	enum { STRETCH = 2048 };
	float most = -INFINITY, sum = 0, part[LANES], v[LANES];
	for (int64_t from = 0; from < n; from += STRETCH, x += STRETCH) {
		int64_t m = n - from < STRETCH ? n - from : STRETCH;
		float here = largest(m, x);
		if (here > most) {
			sum *= expf(most - here);
			most = here;
		}
		set_block(part, 0);
		VEC_BLOCKS(m, i, count, {
			load_block(x + i, count, -INFINITY, v);
			VEC_LANES part[l] += vec_exp(v[l] - most);
		});
		sum += sum_block(part);
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
