/* The faults, in the order of tables. */
#include "harness/fault/internal.h"

static const ck_fault *const tables[] = {ck__state_faults,     ck__random_faults, ck__value_faults,    ck__gradient_faults,
					 ck__precision_faults, ck__memory_faults, ck__schedule_faults, ck__scaler_faults};
enum { TABLES = sizeof tables / sizeof *tables, MOST = 128 };

const ck_fault *const *ck_faults(void)
{
	static const ck_fault *all[MOST + 1];
	int n = 0;
	for (int t = 0; t < TABLES; t++)
		for (const ck_fault *f = tables[t]; f->name && n < MOST; f++)
			all[n++] = f;
	return all;
}

const char *ck_check_name(int check)
{
	static const char *const names[CK_CHECKS - CK_DIGEST_KINDS] = {
	    [CK_CHECK_PARAMETERS - CK_DIGEST_KINDS] = "parameters", [CK_CHECK_MEMORY - CK_DIGEST_KINDS] = "memory",
	    [CK_CHECK_VALIDATOR - CK_DIGEST_KINDS] = "validator",   [CK_CHECK_WATCH - CK_DIGEST_KINDS] = "watch",
	    [CK_CHECK_TRAINING - CK_DIGEST_KINDS] = "training",
	};
	return check < CK_DIGEST_KINDS ? ck_digest_names[check] : names[check - CK_DIGEST_KINDS];
}

const char *const ck_fault_status_names[] = {"caught", "missed", "not-applicable"};
