/* Dropout's decisions, by counter (kernels/philox.h) or by a given mask: bit for bit those of the other backends. */
#ifndef CK_DROP_CUH
#define CK_DROP_CUH

#include "kernels/cuda/pack.cuh"

extern "C" {
#include "kernels/cuda/drop.h"
}

/* x scaled where kept, 0 where not; elements i .. i + N - 1 of the op's output. N is 1, or i and N are multiples of 4. mask: NULL, or of
 * the whole output. */
template <int N> CK_DEVICE ck_floats<N> ck_dropped(ck_drop d, const uint8_t *mask, int64_t i, ck_floats<N> x)
{
	if (mask) {
#pragma unroll
		for (int k = 0; k < N; k++)
			x.v[k] = mask[i + k] >= d.threshold ? x.v[k] * d.scale : 0.0f;
	} else if constexpr (N == 1) {
		uint32_t w[4];
		ck_philox_block(d.seed, d.step, d.op, d.block + (uint64_t)i / 4, w);
		int place = (int)(i % 4);
		uint32_t word = place == 0 ? w[0] : place == 1 ? w[1] : place == 2 ? w[2] : w[3];
		x.v[0] = word >= d.threshold ? x.v[0] * d.scale : 0.0f;
	} else {
#pragma unroll
		for (int k = 0; k < N; k += 4) {
			uint32_t w[4];
			ck_philox_block(d.seed, d.step, d.op, d.block + (uint64_t)(i + k) / 4, w);
#pragma unroll
			for (int l = 0; l < 4; l++)
				x.v[k + l] = w[l] >= d.threshold ? x.v[k + l] * d.scale : 0.0f;
		}
	}
	return x;
}

#endif
