/* What the optimizers are called, keep and start from. */
#include <math.h>

#include "kernels/ops.h"

const char *ck_optimizer_name(ck_optimizer_kind kind)
{
	static const char *const names[] = {
#define X(name, text) text,
	    CK_OPTIMIZER_KINDS(X)
#undef X
	};
	return names[kind];
}

ck_optimizer ck_optimizer_preset(ck_optimizer_kind kind)
{
	if (kind == CK_SGD)
		return (ck_optimizer){.kind = kind, .lr = 1e-3};
	return (ck_optimizer){.kind = kind, .lr = 1e-3, .weight_decay = 1e-2, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};
}

int ck_optimizer_states(const ck_optimizer *o)
{
	return o->kind == CK_ADAMW ? 2 : o->momentum != 0;
}

void ck_optimizer_corrections(const ck_optimizer *o, int64_t t, double *first, double *second)
{
	*first = 1 - pow(o->beta1, (double)t);
	*second = 1 - pow(o->beta2, (double)t);
}
