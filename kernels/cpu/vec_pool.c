/* Pools, over the channels of one place at a time: which inputs meet there is the op's business (pool.c). */
#include "kernels/cpu/vec_impl.h"

enum { CHUNK = 64 }; /* channels that are worked on together, in registers and the first-level cache */

INLINE void max_chunk(int64_t m, int64_t c, int n, const ck_stored *const *x, const uint8_t *place, ck_stored *y, uint8_t *at)
{
	float best[CHUNK];
	int32_t where[CHUNK];
	VEC_LOOP
	for (int64_t j = 0; j < m; j++) {
		best[j] = get(x[0], c + j);
		where[j] = place[0];
	}
	for (int k = 1; k < n; k++) {
		const ck_stored *xk = x[k];
		int32_t here = place[k];
		VEC_LOOP
		for (int64_t j = 0; j < m; j++) {
			float v = get(xk, c + j);
			bool take = v > best[j] || v != v; /* NaN wins, as in PyTorch */
			best[j] = take ? v : best[j];
			where[j] = take ? here : where[j];
		}
	}
	VEC_LOOP
	for (int64_t j = 0; j < m; j++) {
		put(y, c + j, best[j]);
		at[c + j] = (uint8_t)where[j];
	}
}

static void max(int64_t channels, int n, const ck_stored *const *x, const uint8_t *place, ck_stored *y, uint8_t *at)
{
	int64_t c = 0;
	for (; c + CHUNK <= channels; c += CHUNK)
		max_chunk(CHUNK, c, n, x, place, y, at);
	if (c < channels)
		max_chunk(channels - c, c, n, x, place, y, at);
}

INLINE void max_gradient_chunk(int64_t m, int64_t c, int n, const ck_stored *const *dy, const uint8_t *const *at,
			       const uint8_t *place, ck_stored *dx, bool acc)
{
	float sum[CHUNK];
	VEC_LOOP
	for (int64_t j = 0; j < m; j++)
		sum[j] = 0;
	for (int k = 0; k < n; k++) {
		const ck_stored *dyk = dy[k];
		const uint8_t *atk = at[k] + c;
		uint8_t here = place[k];
		VEC_LOOP
		for (int64_t j = 0; j < m; j++)
			sum[j] += atk[j] == here ? get(dyk, c + j) : 0.0f;
	}
	VEC_LOOP
	for (int64_t j = 0; j < m; j++)
		put_gradient(dx, c + j, sum[j], acc);
}

INLINE void max_gradient(int64_t channels, int n, const ck_stored *const *dy, const uint8_t *const *at, const uint8_t *place,
			 ck_stored *dx, bool acc)
{
	int64_t c = 0;
	for (; c + CHUNK <= channels; c += CHUNK)
		max_gradient_chunk(CHUNK, c, n, dy, at, place, dx, acc);
	if (c < channels)
		max_gradient_chunk(channels - c, c, n, dy, at, place, dx, acc);
}

static void max_backward(int64_t channels, int n, const ck_stored *const *dy, const uint8_t *const *at, const uint8_t *place,
			 ck_stored *dx, bool acc)
{
	if (acc)
		max_gradient(channels, n, dy, at, place, dx, true);
	else
		max_gradient(channels, n, dy, at, place, dx, false);
}

INLINE void sum_chunk(int64_t m, int64_t c, int n, const ck_stored *const *x, float scale, ck_stored *y, bool acc)
{
	float sum[CHUNK];
	VEC_LOOP
	for (int64_t j = 0; j < m; j++)
		sum[j] = 0;
	for (int k = 0; k < n; k++) {
		const ck_stored *xk = x[k];
		VEC_LOOP
		for (int64_t j = 0; j < m; j++)
			sum[j] += get(xk, c + j);
	}
	VEC_LOOP
	for (int64_t j = 0; j < m; j++)
		put_gradient(y, c + j, sum[j] * scale, acc);
}

INLINE void sum_all(int64_t channels, int n, const ck_stored *const *x, float scale, ck_stored *y, bool acc)
{
	int64_t c = 0;
	for (; c + CHUNK <= channels; c += CHUNK)
		sum_chunk(CHUNK, c, n, x, scale, y, acc);
	if (c < channels)
		sum_chunk(channels - c, c, n, x, scale, y, acc);
}

static void sum(int64_t channels, int n, const ck_stored *const *x, float scale, ck_stored *y, bool acc)
{
	if (acc)
		sum_all(channels, n, x, scale, y, true);
	else
		sum_all(channels, n, x, scale, y, false);
}

const ck_vec_pool VEC(ck__vec_pool) = {.max = max, .max_backward = max_backward, .sum = sum};
