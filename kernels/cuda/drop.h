/* How an op drops in one call, as kernels take it. The mask stays a pointer of its own. */
#ifndef CK_CUDA_DROP_H
#define CK_CUDA_DROP_H

#include "kernels/ops.h"
#include "kernels/philox.h"

typedef struct ck_drop {
	uint64_t seed;
	uint64_t block; /* of element 0 */
	uint32_t step, op;
	uint32_t threshold; /* an element is kept when its word is at least this */
	float scale;        /* of what is kept: 1 / (1 - p) */
} ck_drop;

static inline ck_drop ck_drop_of(double p, const ck_args *a)
{
	ck_drop d;
	d.seed = a->seed;
	d.block = a->block;
	d.step = a->step;
	d.op = a->op;
	d.threshold = a->mask ? 1 : ck_drop_threshold(p); /* a mask's bytes stand in for the words */
	d.scale = (float)(1.0 / (1.0 - p));
	return d;
}

#endif
