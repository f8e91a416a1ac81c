/* One step with a fault switched on, and which check noticed. */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "harness/fault/internal.h"
#include "kernels/alloc.h"

/* ---- the hook ------------------------------------------------------------------------------------------------------------ */

static uint64_t hash_tensors(const ck_tensor_desc *t, int n, uint64_t seed)
{
	for (int i = 0; i < n; i++) {
		const int64_t *d = t[i].shape.d;
		const int64_t facts[] = {t[i].dtype, t[i].shape.nd, d[0], d[1], d[2], d[3]};
		seed = XXH3_64bits_withSeed(facts, sizeof facts, seed);
	}
	return seed;
}

uint64_t ck__shapes(const ck_op_desc *d, int o)
{
	return hash_tensors(d->stash, d->nstash, hash_tensors(d->out, d->nout, (uint64_t)o + 1));
}

static uint64_t shapes_of(const ck_graph *g, int o)
{
	return ck__shapes(&g->ops[o].desc, o);
}

static bool before(void *user, const ck_call *c, ck_args *a, ck_step *step)
{
	ck_faulty *f = user;
	bool runs = !f->fault || !f->fault->before || f->fault->before(f, c, a, step);
	if (!runs && c->code == 'F' && c->recompute)
		f->shapes -= shapes_of(f->graph, c->id);
	return runs;
}

static void after(void *user, const ck_call *c, const ck_args *a, ck_step *step)
{
	ck_faulty *f = user;
	if (f->fault && f->fault->after)
		f->fault->after(f, c, a, step);
}

static size_t meter(void *user, size_t seen)
{
	ck_faulty *f = user;
	return f->fault && f->fault->meter ? f->fault->meter(f, seen) : seen;
}

/* Of all recomputes in a schedule: a sum, since their order is the schedule's own affair. */
static uint64_t shapes_of_schedule(const ck_graph *g, const ck_schedule *s)
{
	bool *ran = ck_alloc((size_t)g->nops, sizeof *ran);
	uint64_t sum = 0;
	for (int i = 0; i < s->n; i++) {
		if (s->at[i].code != 'F')
			continue;
		sum += ran[s->at[i].id] ? shapes_of(g, s->at[i].id) : 0;
		ran[s->at[i].id] = true;
	}
	free(ran);
	return sum;
}

/* ---- the verdict --------------------------------------------------------------------------------------------------------- */

/* The run came to its end: what it left behind against the baseline. The verdict is parity's; the digests tell the kinds. */
static void judge_outcome(const ck_fault_subject *s, const ck_outcome *o, ck_fault_verdict *v)
{
	if (ck_outcome_compare(s->session->graph, s->baseline, o, &v->why) == CK_BITWISE)
		return;
	v->status = CK_FAULT_CAUGHT;
	for (int k = 0; k < CK_DIGEST_KINDS; k++)
		if (memcmp(&o->kind[k], &s->baseline->kind[k], sizeof o->kind[k]) != 0)
			v->by |= 1u << k;
}

static void judge_refusal(ck_run_check broken, ck_fault_verdict *v)
{
	static const int checks[] = {
	    [CK_RUN_WATCH] = CK_CHECK_WATCH, [CK_RUN_MEMORY] = CK_CHECK_MEMORY, [CK_RUN_PARAMETERS] = CK_CHECK_PARAMETERS};
	v->status = CK_FAULT_CAUGHT;
	v->by = 1u << checks[broken];
}

static ck_status run_step(const ck_fault_subject *s, ck_faulty *f, ck_fault_verdict *v, ck_err *err)
{
	const ck_hook hook = {.user = f, .before = before, .after = after, .meter = meter};
	ck_outcome o = {0};
	ck_status status = ck_memory_open(s->session, f->program->layout.arena, &f->memory, err);
	if (status != CK_OK)
		return status;
	ck_memory_init(&f->memory, &f->program->layout, s->seed, s->batch);
	status = ck__outcome_take(f->program, &f->memory, s->seed, &hook, NULL, &o, &v->why);
	if (status == CK_OK)
		judge_outcome(s, &o, v);
	else
		judge_refusal(o.broken, v);
	ck_outcome_free(&o);
	ck_memory_close(&f->memory);
	return CK_OK;
}

/* ---- the trial ----------------------------------------------------------------------------------------------------------- */

static void faulty_free(ck_faulty *f)
{
	const ck_session *s = f->program->session;
	for (int v = 0; v < f->graph->nvalues; v++)
		free(f->kept[v]);
	free(f->kept);
	if (f->scratch)
		s->backend->free(s->device, f->scratch);
}

/* With the schedule as it is, or as the fault has made it. */
static ck_status run_schedule(const ck_fault_subject *s, const ck_schedule *schedule, ck_faulty *f, ck_fault_verdict *v,
			      ck_err *err)
{
	ck_program *p = NULL;
	f->shapes = shapes_of_schedule(f->graph, schedule);
	if (ck_program_make(s->session, schedule, &p, &v->why) != CK_OK) {
		v->status = CK_FAULT_CAUGHT;
		v->by = 1u << CK_CHECK_VALIDATOR;
		return CK_OK;
	}
	if (f->fault && f->fault->program)
		f->hits += f->fault->program(p, schedule);
	f->program = p;
	f->kept = ck_alloc((size_t)f->graph->nvalues, sizeof *f->kept);
	ck_status status = run_step(s, f, v, err);
	faulty_free(f);
	ck_program_free(p);
	return status;
}

static void copy_schedule(const ck_schedule *from, ck_schedule *to)
{
	*to = (ck_schedule){.forward_only = from->forward_only};
	for (int i = 0; i < from->n; i++)
		ck_schedule_add(to, from->at[i].code, from->at[i].id);
}

static ck_status try_step(const ck_fault_subject *s, ck_faulty *f, ck_fault_verdict *v, ck_err *err)
{
	ck_schedule schedule;
	copy_schedule(s->schedule, &schedule);
	if (f->fault && f->fault->schedule)
		f->hits += f->fault->schedule(f->graph, &schedule);
	ck_status status = run_schedule(s, &schedule, f, v, err);
	ck_schedule_free(&schedule);
	v->shapes_only = f->shapes != shapes_of_schedule(f->graph, s->schedule);
	return status;
}

ck_status ck_fault_try(const ck_fault_subject *s, const ck_fault *fault, ck_fault_verdict *v, ck_err *err)
{
	ck_faulty f = {.fault = fault, .graph = s->session->graph, .none_peak = s->baseline->live_peak};
	*v = (ck_fault_verdict){.status = CK_FAULT_MISSED, .rng = s->session->rng};
	if (fault && fault->stateful && s->session->rng != CK_RNG_STATEFUL) {
		v->status = CK_FAULT_NOT_APPLICABLE;
		ck_fail(&v->why, CK_OK, "by the counter there is no state that could be lost");
		return CK_OK;
	}
	ck_status status = CK_OK;
	if (!fault || !fault->scaler)
		status = try_step(s, &f, v, err);
	if (status == CK_OK && v->status == CK_FAULT_MISSED && (!fault || fault->scaler))
		status = ck__scaler_try(s, &f, v, err);
	/* A check that fires though the fault changed nothing stays "caught": the caller counts it as a false alarm. */
	if (status == CK_OK && fault && f.hits == 0 && v->status == CK_FAULT_MISSED) {
		v->status = CK_FAULT_NOT_APPLICABLE;
		ck_fail(&v->why, CK_OK, "%s", fault->needs);
	}
	v->acted = f.hits > 0;
	return status;
}
