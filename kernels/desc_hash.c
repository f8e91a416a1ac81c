#include <xxhash.h>

#include "ops.h"

uint64_t ck_op_desc_hash(const ck_op_desc *d, uint64_t seed)
{
	const ck_attr *a = &d->attr;
	double key[64];
	int n = 0;
	const double fields[] = {d->kind,   a->kh,       a->kw,       a->stride,   a->pad,   a->groups, a->heads,
				 a->causal, a->bias,     a->residual, a->training, a->act,   a->p,      a->scale,
				 a->eps,    a->momentum, a->weight,   a->to,       d->needs, d->nin};
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
		key[n++] = fields[i];
	for (int i = 0; i < d->nin; i++) {
		key[n++] = d->in[i].dtype;
		for (int k = 0; k < CK_MAX_DIMS; k++)
			key[n++] = k < d->in[i].shape.nd ? (double)d->in[i].shape.d[k] : 0;
	}
	key[n++] = d->out[0].dtype;
	if (a->inplace) /* only then, so that the digests of graphs without it stay as they are in older schedules and records */
		key[n++] = a->inplace;
	return XXH3_64bits_withSeed(key, (size_t)n * sizeof *key, seed);
}
