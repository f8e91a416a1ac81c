/* Dropout. The generator runs over 16 blocks at a time, word by word, so that its rounds are vector operations; the 64 words then
 * decide over 64 consecutive elements. */
#include "kernels/cpu/vec_impl.h"
#include "kernels/philox.h"

enum { BLOCKS = 16, WORDS = 4 * BLOCKS };

/* The factors (0 or scale) of elements 4 block .. 4 block + 63. */
INLINE void draw(const ck_drop *d, uint64_t block, float factor[WORDS])
{
	uint32_t word[4][BLOCKS];
	VEC_LOOP
	for (int i = 0; i < BLOCKS; i++) {
		uint32_t four[4];
		ck_philox_block(d->seed, d->step, d->op, block + (uint64_t)i, four);
		for (int w = 0; w < 4; w++)
			word[w][i] = four[w];
	}
	for (int i = 0; i < BLOCKS; i++)
		for (int w = 0; w < 4; w++)
			factor[4 * i + w] = word[w][i] >= d->threshold ? d->scale : 0.0f;
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
