/* What parity, sweep and train share: a case with its plans as programs, one memory in which they take turns, and the record that
 * fills up as they run.
 *
 *     open (case, plans, programs, what fits) ──▶ check (parity) ──▶ [measure ──▶ peaks] ──▶ record, table, plots */
#ifndef CK_JOB_H
#define CK_JOB_H

#include "harness/cli/case.h"
#include "harness/cli/plans.h"
#include "harness/cli/progress.h"

typedef struct ck_job {
	const ck_cli *cli;
	ck_case c;
	ck_plans plans;
	ck_result *result; /* points in the order of the plans */
	ck_memory memory;
	FILE *out; /* what people read: the standard output, or stderr when the record goes there */
	ck_progress progress;
} ck_job;

/* Opens all, prints the case's line and facts, tells what cannot fit and marks it as skipped. CK_MISSING when nothing fits. On
 * failure nothing is left to close. */
ck_status ck_job_open(const ck_cli *cli, bool input_grad, ck_job *j, ck_err *err);
void ck_job_close(ck_job *j);

/* A line for people who want to know more; not printed with --quiet. */
void ck_job_remark(const ck_job *j, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Runs every plan once with all checks and compares it with the baseline, plan none where that fits. CK_FAILED when a check
 * did not hold, with the first one's message; the points tell all. */
ck_status ck_job_check(ck_job *j, ck_err *err);

#endif
