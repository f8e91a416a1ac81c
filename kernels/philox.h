/* Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3"
 * (SC 2011): 128 bits of counter and 64 of key give 128 random bits, with no state in between. So a recompute draws the same
 * mask from the same numbers (seed, step, op, element) and nothing is saved. */
#ifndef CK_PHILOX_H
#define CK_PHILOX_H

#include <stdint.h>

#include "kernels/both.h"

static inline CK_BOTH void ck_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
	uint32_t a = counter[0], b = counter[1], c = counter[2], d = counter[3];
	uint32_t k0 = key[0], k1 = key[1];
	for (int round = 0; round < 10; round++) {
		uint64_t p = (uint64_t)0xD2511F53u * a, q = (uint64_t)0xCD9E8D57u * c;
		a = (uint32_t)(q >> 32) ^ b ^ k0;
		c = (uint32_t)(p >> 32) ^ d ^ k1;
		b = (uint32_t)q;
		d = (uint32_t)p;
		k0 += 0x9E3779B9u;
		k1 += 0xBB67AE85u;
	}
	out[0] = a, out[1] = b, out[2] = c, out[3] = d;
}

/* A running stream is one counter that goes on from block to block over all ops and steps; these are its other two words. No op
 * has this number. */
#define CK_STREAM_OP 0xFFFFFFFEu
#define CK_STREAM_STEP 0u

/* The four words for elements 4 i .. 4 i + 3 of op `op` in step `step`. */
static inline CK_BOTH void ck_philox_block(uint64_t seed, uint32_t step, uint32_t op, uint64_t i, uint32_t out[4])
{
	uint32_t counter[4] = {(uint32_t)i, (uint32_t)(i >> 32), op, step};
	uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
	ck_philox(counter, key, out);
}

/* Dropout keeps an element when its 32-bit word is at least this: P(drop) = threshold / 2^32. */
static inline CK_BOTH uint32_t ck_drop_threshold(double p)
{
	return (uint32_t)(p * 4294967296.0);
}

#endif
