/* Does every plan leave the same bits behind as the baseline? The baseline is run twice and held against itself, so that its
 * own verdict means something: that equal steps give equal bits at all. Beside them runs a forward alone, as validation does it.
 * On a device opened fast the baseline runs several times first, and plans may differ by what these differ (noise.h). */
#include <stdlib.h>
#include <string.h>

#include "harness/cli/interrupt.h"
#include "harness/cli/job.h"
#include "kernels/alloc.h"

/* What plans are held against. */
typedef struct reference {
	ck_outcome outcome;
	ck_noise *noise; /* NULL: bits are compared */
} reference;

static ck_status take(ck_job *j, const ck_program *p, ck_noise *noise, ck_outcome *o, ck_err *err)
{
	return ck__outcome_take(p, &j->memory, j->c.seed, NULL, noise, o, err);
}

/* One checked step of plan i, with what it left in the point. */
static ck_status run_checked(ck_job *j, int i, ck_noise *noise, ck_outcome *o, ck_err *why)
{
	ck_point *p = &j->result->points[i];
	ck_progress_show(&j->progress, true, "checking %d of %d: %s", i + 1, j->plans.n, p->plan);
	ck_status status = take(j, j->plans.at[i].program, noise, o, why);
	if (status != CK_OK) {
		ck_point_fail(p, status == CK_MISSING ? CK_POINT_OOM : CK_POINT_ERROR, ck_text("%s", why->text));
		return status;
	}
	p->loss = o->loss;
	p->live_peak = o->live_peak;
	p->scaled = o->has[CK_DIGEST_SCALER];
	p->scale = o->scale;
	p->skipped = o->skipped;
	memcpy(p->digest, o->kind, sizeof p->digest);
	memcpy(p->has_digest, o->has, sizeof p->has_digest);
	return CK_OK;
}

static ck_verdict compare(const ck_job *j, ck_point *p, const reference *r, const ck_outcome *o, ck_err *why)
{
	if (!r->noise)
		return ck_outcome_compare(j->c.graph, &r->outcome, o, why);
	ck_noise_found found;
	ck_verdict verdict = ck_noise_compare(r->noise, &r->outcome, o, &found, why);
	p->noise.runs = ck_noise_runs(r->noise);
	if (found.tensor != CK_NONE) {
		p->noise.tensor =
		    ck_text("%s%s", j->c.graph->values[found.tensor].name, found.forward ? " after the forward alone" : "");
		p->noise.norm = found.norm;
		p->noise.floor = found.floor;
		p->noise.worst = found.difference;
		p->noise.allowed = found.allowed;
	}
	return verdict;
}

static ck_status check_plan(ck_job *j, int i, const reference *r, ck_err *why)
{
	ck_point *p = &j->result->points[i];
	ck_outcome o = {0};
	ck_status status = run_checked(j, i, r->noise, &o, why);
	if (status == CK_OK) {
		p->checked = true;
		for (int v = 0; v < o.nvalues; v++)
			if (o.zero[v])
				ck_point_add_zero_gradient(p, j->c.graph->values[v].name);
		p->verdict = compare(j, p, r, &o, why);
		if (!ck_verdict_passed(p->verdict)) {
			status = CK_FAILED;
			ck_point_fail(p, CK_POINT_PARITY_FAILED, ck_text("%s", why->text));
		}
	}
	ck_outcome_free(&o);
	return status;
}

/* ---- a forward alone ------------------------------------------------------------------------------------------------------ */

/* No plan holds less while its forward runs, so that this one mostly fits where they do; but for how it is laid out. */
static ck_status make_room(ck_job *j, const ck_program *p, ck_err *err)
{
	if (p->layout.arena <= j->memory.bytes)
		return CK_OK;
	ck_memory larger;
	ck_status status = ck_memory_open(j->c.session, p->layout.arena, &larger, err);
	if (status != CK_OK)
		return status;
	ck_memory_close(&j->memory);
	j->memory = larger;
	ck_memory_init(&j->memory, &p->layout, j->c.seed, ck_case_batch(&j->c));
	return CK_OK;
}

static ck_status run_forward_only(ck_job *j, const ck_program *p, const reference *r, ck_err *err)
{
	ck_outcome o = {0};
	ck_status status = make_room(j, p, err);
	if (status == CK_OK)
		status = take(j, p, r->noise, &o, err);
	if (status == CK_OK) {
		j->result->forward_only.known = true;
		j->result->forward_only.verdict = r->noise ? ck_noise_compare_forward(r->noise, &r->outcome, &o, err)
							   : ck_outcome_compare_forward(j->c.graph, &r->outcome, &o, err);
		j->result->forward_only.predicted_peak = p->trace.peak;
		j->result->forward_only.live_peak = o.live_peak;
		j->result->forward_only.arena = p->layout.arena;
		j->result->forward_only.recomputed_ops = p->trace.recomputed_ops;
		j->result->forward_only.digest = o.kind[CK_DIGEST_FORWARD];
		status = ck_verdict_passed(j->result->forward_only.verdict) ? CK_OK : CK_FAILED;
	}
	ck_outcome_free(&o);
	return status;
}

static ck_status check_forward_only(ck_job *j, const reference *r, ck_err *err)
{
	const ck_workspaces w = ck_session_workspaces(j->c.session);
	ck_schedule s = {0};
	ck_program *p = NULL;
	ck_err why = {""};
	ck_progress_show(&j->progress, true, "checking a forward alone");
	ck_status status = ck_forward_only(j->c.graph, &w, &s, &why);
	if (status == CK_OK)
		status = ck_program_make(j->c.session, &s, &p, &why);
	if (status == CK_OK)
		status = run_forward_only(j, p, r, &why);
	ck_schedule_free(&s);
	ck_program_free(p);
	return status == CK_OK ? CK_OK : ck_fail(err, status, "forward only: %s", why.text);
}

/* ---- all ------------------------------------------------------------------------------------------------------------------ */

/* The checks of all plans, from the baseline's place on; those before it do not fit. */
static ck_status check_all(ck_job *j, int base, const reference *r, ck_err *err)
{
	ck_status status = CK_OK;
	for (int i = base; i < j->plans.n; i++) {
		ck_point *p = &j->result->points[i];
		if (p->status != CK_POINT_OK)
			continue;
		if (*ck_interrupted) {
			ck_point_fail(p, CK_POINT_SKIPPED, ck_text("interrupted before its turn"));
			continue;
		}
		ck_err why = {""};
		ck_status one = check_plan(j, i, r, &why);
		if (one != CK_FAILED) /* one that found no memory is no failed check: its point says so */
			continue;
		status = ck_fail(err, one, "plan %.200s: %s", p->plan, why.text);
		ck_memory_init(&j->memory, &j->plans.at[base].program->layout, j->c.seed,
			       ck_case_batch(&j->c)); /* it may be spoiled */
	}
	return status;
}

/* Without a baseline nothing has a verdict, so nothing else is run. */
static ck_status no_baseline(ck_job *j, ck_status status, const ck_err *why, ck_err *err)
{
	for (int i = 0; i < j->plans.n; i++)
		if (j->result->points[i].status == CK_POINT_OK)
			ck_point_fail(&j->result->points[i], CK_POINT_SKIPPED, ck_text("there is no baseline to compare with"));
	return ck_fail(err, status, "plan %.200s: %s", j->result->baseline, why->text);
}

/* The baseline's step; on a fast device several, of which the first is what the others are held against. */
static ck_status run_baseline(ck_job *j, int base, reference *r, ck_err *why)
{
	if (j->cli->options.given[CK_OPTION_fast])
		r->noise = ck_noise_open(j->c.graph, j->cli->options.given[CK_OPTION_tf32]);
	ck_status status = run_checked(j, base, r->noise, &r->outcome, why);
	if (status == CK_OK && r->noise)
		ck_noise_add(r->noise, &r->outcome);
	for (int k = 1; k < CK_NOISE_RUNS && status == CK_OK && r->noise && !*ck_interrupted; k++) {
		ck_outcome again = {0};
		status = run_checked(j, base, r->noise, &again, why);
		if (status == CK_OK)
			ck_noise_add(r->noise, &again);
		ck_outcome_free(&again);
	}
	return status;
}

ck_status ck_job_check(ck_job *j, ck_err *err)
{
	int base = (int)(ck_result_find(j->result, j->result->baseline) - j->result->points);
	reference r = {0};
	ck_err why = {""};
	ck_memory_init(&j->memory, &j->plans.at[base].program->layout, j->c.seed, ck_case_batch(&j->c));
	ck_interrupt_keep();
	ck_status status = run_baseline(j, base, &r, &why);
	if (status == CK_OK) {
		ck_status forward = *ck_interrupted ? CK_OK : check_forward_only(j, &r, err);
		if (forward != CK_OK) /* it may be spoiled */
			ck_memory_init(&j->memory, &j->plans.at[base].program->layout, j->c.seed, ck_case_batch(&j->c));
		status = check_all(j, base, &r, forward == CK_OK ? err : &why);
		status = forward == CK_OK ? status : forward;
	} else {
		status = no_baseline(j, status, &why, err);
	}
	ck_outcome_free(&r.outcome);
	ck_noise_close(r.noise);
	ck_progress_clear(&j->progress);
	return status;
}
