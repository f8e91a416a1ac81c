/* Dropout. The generator of philox.h runs over 16 blocks at a time, with its rounds written out, so that they are vector
 * operations; the 64 words then decide over 64 consecutive elements. */
#include "kernels/cpu/vec_impl.h"

enum { BLOCKS = 16, WORDS = 4 * BLOCKS };

typedef struct philox_state {
	uint32_t a, b, c, d;
} philox_state;

INLINE philox_state philox_round(philox_state s, uint32_t k0, uint32_t k1)
{
	uint64_t p = (uint64_t)0xD2511F53u * s.a, q = (uint64_t)0xCD9E8D57u * s.c;
	return (philox_state){(uint32_t)(q >> 32) ^ s.b ^ k0, (uint32_t)q, (uint32_t)(p >> 32) ^ s.d ^ k1, (uint32_t)p};
}

/* The factors (0 or scale) of elements 4 block .. 4 block + 63. */
INLINE void draw(const ck_drop *d, uint64_t block, float factor[WORDS])
{
	uint32_t word[4][BLOCKS], k0 = (uint32_t)d->seed, k1 = (uint32_t)(d->seed >> 32), op = d->op, step = d->step;
	VEC_LOOP
	for (int i = 0; i < BLOCKS; i++) {
		uint64_t at = block + (uint64_t)i;
		philox_state s = {(uint32_t)at, (uint32_t)(at >> 32), op, step};
#define ROUND(n) s = philox_round(s, k0 + (n)*0x9E3779B9u, k1 + (n)*0xBB67AE85u)
		ROUND(0u), ROUND(1u), ROUND(2u), ROUND(3u), ROUND(4u);
		ROUND(5u), ROUND(6u), ROUND(7u), ROUND(8u), ROUND(9u);
#undef ROUND
		word[0][i] = s.a, word[1][i] = s.b, word[2][i] = s.c, word[3][i] = s.d;
	}
	uint32_t threshold = d->threshold;
	float scale = d->scale;
	VEC_LOOP
	for (int i = 0; i < BLOCKS; i++) {
		factor[4 * i] = word[0][i] >= threshold ? scale : 0.0f;
		factor[4 * i + 1] = word[1][i] >= threshold ? scale : 0.0f;
		factor[4 * i + 2] = word[2][i] >= threshold ? scale : 0.0f;
		factor[4 * i + 3] = word[3][i] >= threshold ? scale : 0.0f;
	}
}

INLINE void drop(const ck_drop *d, int64_t first, int64_t n, const ck_stored *x, const ck_stored *r, ck_stored *y)
{
	for (int64_t i = 0; i < n; i += WORDS) {
		float factor[WORDS];
		draw(d, (uint64_t)(first + i) / 4, factor);
		int64_t m = n - i < WORDS ? n - i : WORDS;
		VEC_LOOP
		for (int64_t j = 0; j < m; j++)
			put(y, i + j, get(x, i + j) * factor[j] + (r ? get(r, i + j) : 0.0f));
	}
}

static void forward(const ck_drop *d, int64_t first, int64_t n, const ck_stored *x, const ck_stored *r, ck_stored *y)
{
	if (r)
		drop(d, first, n, x, r, y);
	else
		drop(d, first, n, x, NULL, y);
}

static void backward(const ck_drop *d, int64_t first, int64_t n, const ck_stored *dy, ck_stored *dx, bool acc)
{
	forward(d, first, n, dy, acc ? dx : NULL, dx);
}

static void relu_backward(const ck_drop *d, int64_t n, const ck_stored *dy, const ck_stored *y, ck_stored *dx)
{
	float scale = d->scale;
	VEC_LOOP
	for (int64_t i = 0; i < n; i++)
		put(dx, i, get(dy, i) * (get(y, i) > 0.0f ? scale : 0.0f));
}

const ck_vec_drop VEC(ck__vec_drop) = {.forward = forward, .backward = backward, .relu_backward = relu_backward};
