/* Dropout. The generator of philox.h runs over BLOCKS counters side by side; its words then decide over WORDS consecutive
 * elements. Bound by the generator's 20 multiplications of 32 by 32 bits for every 4 elements. */
#include "kernels/cpu/vec_impl.h"
#include "kernels/philox.h"

#ifdef __SSE2__
#include <immintrin.h>
#endif

enum { BLOCKS = LANES, WORDS = 4 * BLOCKS };

#ifdef __SSE2__
/* 64-bit lanes, whose lower halves count: then one instruction gives a product's both words, and nothing need be moved. */
enum { HALF = LANES / 2 };
typedef uint64_t wide __attribute__((vector_size(HALF * sizeof(uint64_t))));

INLINE wide multiply_low(wide a, wide b)
{
#if defined(__AVX512F__)
	return (wide)_mm512_mul_epu32((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
	return (wide)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#else
	return (wide)_mm_mul_epu32((__m128i)a, (__m128i)b);
#endif
}

/* HALF blocks from `block` on: ck_philox, with the words of each block as two pairs. */
INLINE void draw_half(const ck_drop *d, uint64_t block, uint64_t *pairs)
{
	const wide m0 = (wide){0} + 0xD2511F53u, m1 = (wide){0} + 0xCD9E8D57u, low = (wide){0} + 0xFFFFFFFFu;
	uint32_t k0 = (uint32_t)d->seed, k1 = (uint32_t)(d->seed >> 32);
	wide a;
	for (int i = 0; i < HALF; i++)
		a[i] = block + (uint64_t)i;
	wide b = a >> 32, c = (wide){0} + d->op, e = (wide){0} + d->step;
#pragma GCC unroll 10
	for (int round = 0; round < 10; round++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
		wide p = multiply_low(a, m0), q = multiply_low(c, m1);
		a = (q >> 32) ^ b ^ k0;
		c = (p >> 32) ^ e ^ k1;
		b = q;
		e = p;
	}
	wide first = (a & low) | b << 32, second = (c & low) | e << 32;
	for (int i = 0; i < HALF; i++) {
		pairs[2 * i] = first[i];
		pairs[2 * i + 1] = second[i];
	}
}

INLINE void draw(const ck_drop *d, uint64_t block, uint32_t word[WORDS])
{
	uint64_t pairs[WORDS / 2]; /* little-endian, as all that has SSE2 */
	draw_half(d, block, pairs);
	draw_half(d, block + HALF, pairs + WORDS / 4);
	memcpy(word, pairs, sizeof(pairs));
}
#else
INLINE void draw(const ck_drop *d, uint64_t block, uint32_t word[WORDS])
{
	for (int i = 0; i < BLOCKS; i++)
		ck_philox_block(d->seed, d->step, d->op, block + (uint64_t)i, word + 4 * i);
}
#endif

/* The words of n elements, WORDS at most, from element `first` on. `mask` is d->mask, a constant NULL where that is: drawing
 * then pays nothing for the question. */
INLINE void words_of(const ck_drop *d, const uint8_t *mask, int64_t first, int64_t n, uint32_t word[WORDS])
{
	if (!mask)
		draw(d, d->block + (uint64_t)first / 4, word);
	else
		for (int64_t j = 0; j < n; j++)
			word[j] = mask[first + j];
}

/* With `unrounded`, r and y are float32. */
INLINE void drop(const ck_drop *d, const uint8_t *mask, int64_t first, int64_t n, const stored *x, const void *r, void *y,
		 bool unrounded)
{
	uint32_t threshold = d->threshold;
	float scale = d->scale;
	for (int64_t i = 0; i < n; i += WORDS) {
		uint32_t word[WORDS];
		int64_t m = n - i < WORDS ? n - i : WORDS;
		words_of(d, mask, first + i, m, word);
		VEC_LOOP
		for (int64_t j = 0; j < m; j++) {
			float factor = word[j] >= threshold ? scale : 0.0f;
			float kept = get(x, i + j) * factor;
			if (unrounded)
				((float *)y)[i + j] = kept + (r ? ((const float *)r)[i + j] : 0.0f);
			else
				put(y, i + j, kept + (r ? get(r, i + j) : 0.0f));
		}
	}
}

static void forward(const ck_drop *d, int64_t first, int64_t n, const ck_stored *x, const ck_stored *r, ck_stored *y)
{
	if (d->mask)
		drop(d, d->mask, first, n, x, r, y, false);
	else if (r)
		drop(d, NULL, first, n, x, r, y, false);
	else
		drop(d, NULL, first, n, x, NULL, y, false);
}

static void forward_wide(const ck_drop *d, int64_t first, int64_t n, const ck_stored *x, const float *r, float *y)
{
	drop(d, d->mask, first, n, x, r, y, true);
}

static void backward(const ck_drop *d, int64_t first, int64_t n, const ck_stored *dy, ck_stored *dx, bool acc)
{
	forward(d, first, n, dy, acc ? dx : NULL, dx);
}

static void backward_wide(const ck_drop *d, int64_t first, int64_t n, const float *dy, ck_stored *to, bool acc)
{
	stored *dx = to;
	for (int64_t i = 0; i < n; i += WORDS) {
		uint32_t word[WORDS];
		int64_t m = n - i < WORDS ? n - i : WORDS;
		words_of(d, d->mask, first + i, m, word);
		VEC_LOOP
		for (int64_t j = 0; j < m; j++) {
			float kept = word[j] >= d->threshold ? dy[i + j] * d->scale : 0.0f;
			put(dx, i + j, kept + (acc ? get(dx, i + j) : 0.0f));
		}
	}
}

static void relu_backward(const ck_drop *d, int64_t n, const ck_stored *gradient, const ck_stored *result, ck_stored *to)
{
	const stored *dy = gradient, *y = result;
	stored *dx = to;
	float scale = d->scale;
	VEC_LOOP
	for (int64_t i = 0; i < n; i++)
		put(dx, i, get(dy, i) * (get(y, i) <= 0.0f ? 0.0f : scale));
}

const ck_vec_drop VEC(ck__vec_drop) = {
    .forward = forward,
    .forward_wide = forward_wide,
    .backward = backward,
    .backward_wide = backward_wide,
    .relu_backward = relu_backward,
};
