/* Pools, over the channels of one place: which places of the other side meet there is the op's business (pool.c). */
#include "kernels/cpu/vec_impl.h"

#ifdef __AVX2__
#include <immintrin.h>
#endif

typedef int32_t int_lanes __attribute__((vector_size(LANES * sizeof(int32_t))));

INLINE int_lanes choose(int_lanes mask, int_lanes yes, int_lanes no)
{
	return (mask & yes) | (~mask & no);
}

/* Channels c and on of place k's vector. */
INLINE const stored *channels_at(const ck_stored *const *x, int k, int64_t c)
{
	return (const stored *)x[k] + c;
}

INLINE void max_block(int64_t c, int64_t count, int n, const ck_stored *const *x, const uint8_t *place, ck_stored *y,
		      uint8_t *at)
{
	lanes best = load_block(channels_at(x, 0, c), count, 0);
	int_lanes where = (int_lanes){0} + place[0];
	for (int k = 1; k < n; k++) {
		lanes v = load_block(channels_at(x, k, c), count, 0);
		int_lanes take = (v > best) | (v != v); /* NaN wins, as in PyTorch */
		best = (lanes)choose(take, (int_lanes)v, (int_lanes)best);
		where = choose(take, (int_lanes){0} + place[k], where);
	}
	store_block((stored *)y + c, count, best, false);
	VEC_LANES
	{
		if (l < count)
			at[c + l] = (uint8_t)where[l];
	}
}

static void max(int64_t channels, int n, const ck_stored *const *x, const uint8_t *place, ck_stored *y, uint8_t *at)
{
	VEC_BLOCKS(channels, c, count, { max_block(c, count, n, x, place, y, at); });
}

/* LANES bytes as integers; by hand, since the compiler takes them one by one. */
INLINE int_lanes widened(const uint8_t *bytes)
{
#if defined(__AVX512F__)
	return (int_lanes)_mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)bytes));
#elif defined(__AVX2__)
	return (int_lanes)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)bytes));
#else
	return (int_lanes){bytes[0], bytes[1], bytes[2], bytes[3]};
#endif
}

/* The gradients of one place of the other side, where it was chosen. */
INLINE lanes chosen(const stored *dy, const uint8_t *at, uint8_t place, int64_t count)
{
	uint8_t padded[16];
	if (count < LANES)
		at = memcpy(padded, at, (size_t)count);
	return (lanes)((widened(at) == place) & (int_lanes)load_block(dy, count, 0));
}

INLINE void max_gradient(int64_t channels, int n, const ck_stored *const *dy, const uint8_t *const *at, const uint8_t *place,
			 ck_stored *dx, bool acc)
{
	VEC_BLOCKS(channels, c, count, {
		lanes sum = {0};
		for (int k = 0; k < n; k++)
			sum += chosen(channels_at(dy, k, c), at[k] + c, place[k], count);
		store_block((stored *)dx + c, count, sum, acc);
	});
}

static void max_backward(int64_t channels, int n, const ck_stored *const *dy, const uint8_t *const *at, const uint8_t *place,
			 ck_stored *dx, bool acc)
{
	if (acc)
		max_gradient(channels, n, dy, at, place, dx, true);
	else
		max_gradient(channels, n, dy, at, place, dx, false);
}

INLINE void sum_places(int64_t channels, int n, const ck_stored *const *x, float scale, ck_stored *y, bool acc)
{
	VEC_BLOCKS(channels, c, count, {
		lanes sum = {0};
		for (int k = 0; k < n; k++)
			sum += load_block(channels_at(x, k, c), count, 0);
		store_block((stored *)y + c, count, sum * scale, acc);
	});
}

static void sum(int64_t channels, int n, const ck_stored *const *x, float scale, ck_stored *y, bool acc)
{
	if (acc)
		sum_places(channels, n, x, scale, y, true);
	else
		sum_places(channels, n, x, scale, y, false);
}

const ck_vec_pool VEC(ck__vec_pool) = {.max = max, .max_backward = max_backward, .sum = sum};
