#include "harness/cli/optimizer.h"

#include <stdio.h>
#include <string.h>

static ck_status unknown(const char *name, ck_err *err)
{
	char known[64] = "";
	for (int k = 0; k < CK_OPTIMIZER_KIND_COUNT; k++) {
		size_t used = strlen(known);
		snprintf(known + used, sizeof known - used, "%s%s", k ? ", " : "", ck_optimizer_name(k));
	}
	return ck_fail(err, CK_USAGE, "--optimizer '%.60s': there is no such one; it takes %s", name, known);
}

ck_status ck_optimizer_read(const ck_options *o, ck_optimizer *optimizer, ck_err *err)
{
	const char *name = o->text[CK_OPTION_optimizer];
	int kind = 0;
	while (kind < CK_OPTIMIZER_KIND_COUNT && strcmp(ck_optimizer_name(kind), name) != 0)
		kind++;
	if (kind == CK_OPTIMIZER_KIND_COUNT)
		return unknown(name, err);
	if (kind != CK_SGD && o->given[CK_OPTION_momentum])
		return ck_fail(err, CK_USAGE,
			       "--momentum is of sgd, but the optimizer is %s; add --optimizer sgd, or leave it out", name);
	*optimizer = ck_optimizer_preset(kind);
	if (o->given[CK_OPTION_lr])
		optimizer->lr = o->real[CK_OPTION_lr];
	if (o->given[CK_OPTION_momentum])
		optimizer->momentum = o->real[CK_OPTION_momentum];
	if (o->given[CK_OPTION_weight_decay])
		optimizer->weight_decay = o->real[CK_OPTION_weight_decay];
	return CK_OK;
}
