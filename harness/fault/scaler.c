/* Mistakes with the loss scaler. One step would not show them all, so each is tried in a short training, held against that of
 * plan none:
 *
 *     step 1: the loss's gradient is infinite ──▶ overflow: nothing is updated, the scale halves
 *     steps 2, 3: finite ──▶ updates; the scale doubles after the second (the interval is 2)
 *
 * The scaler is on there, and the optimizer AdamW, whatever the case says. */
#include <math.h>
#include <stdlib.h>

#include "harness/fault/internal.h"
#include "harness/plan/planner.h"
#include "harness/run/train.h"

enum { STEPS = 3, INTERVAL = 2, SCALE = 256 }; /* so small that fp16 overflows in no other step */

/* ---- the faults ---------------------------------------------------------------------------------------------------------- */

static void not_unscaled(ck_faulty *f, ck_scaler_moment at, ck_scaler *s)
{
	if (at != CK_BEFORE_UNSCALE)
		return;
	f->hits += s->inverse != 1;
	s->inverse = 1;
}

static void unscaled_twice(ck_faulty *f, ck_scaler_moment at, ck_scaler *s)
{
	if (at != CK_AFTER_UNSCALE)
		return;
	ck__scaler_multiply(s, f->program, &f->memory);
	f->hits++;
}

static void not_noticed(ck_faulty *f, ck_scaler_moment at, ck_scaler *s)
{
	if (at != CK_AFTER_UNSCALE)
		return;
	f->hits += s->now.overflow;
	s->now.overflow = false;
}

static void skipped_step_counted(ck_faulty *f, ck_scaler_moment at, ck_scaler *s)
{
	if (at != CK_AFTER_UPDATE || !s->now.overflow)
		return;
	s->now.taken++;
	f->hits++;
}

/* Before the first step: the scale is where plan none's last step had it. */
static void not_restored(ck_faulty *f, ck_scaler_moment at, ck_scaler *s)
{
	if (at != CK_BEFORE_FORWARD || f->hits || s->now.scale == f->scale_left)
		return;
	s->now.scale = f->scale_left;
	f->hits++;
}

const ck_fault ck__scaler_faults[] = {
    {.name = "unscale-forgotten",
     .field = "the optimizer steps, or gradients are clipped, before they are unscaled",
     .needs = "the scale is 1",
     .scaler = not_unscaled},
    {.name = "unscale-twice",
     .field = "gradients are unscaled by hand for clipping, and again by the scaler's step",
     .needs = "no step is unscaled",
     .scaler = unscaled_twice},
    {.name = "overflow-not-noticed",
     .field = "the overflow flag is read before the device has set it, or not reduced over ranks: the step is taken",
     .needs = "no step overflows",
     .scaler = not_noticed},
    {.name = "skipped-step-counted",
     .field = "a skipped step still counts as one of the optimizer's, so that its bias corrections are off",
     .needs = "no step overflows",
     .scaler = skipped_step_counted},
    {.name = "scale-not-restored",
     .field = "the scaler's state is not saved with the weights, so that a run goes on from another one's scale",
     .needs = "the scale is the same after the training",
     .scaler = not_restored},
    {.name = NULL},
};

/* ---- the trial ----------------------------------------------------------------------------------------------------------- */

static bool before(void *user, const ck_call *c, ck_args *a, ck_step *step)
{
	const ck_faulty *f = user;
	if (c->code == 'B' && ck__op(f, c)->out[0] == f->graph->loss && step->step == 0)
		a->dloss = INFINITY;
	return true;
}

static void scaler(void *user, ck_scaler_moment at, ck_scaler *s)
{
	ck_faulty *f = user;
	if (f->fault)
		f->fault->scaler(f, at, s);
}

/* A training of the schedule from the start values; *course is to be freed in any case. CK_FAILED: it was ended by a check. */
static ck_status train(const ck_fault_subject *s, ck_session *session, const ck_schedule *schedule, ck_faulty *f,
		       ck_course *course, ck_err *why)
{
	const ck_hook hook = {.user = f, .before = before, .scaler = scaler};
	const ck_train_options o = {.seed = s->seed, .steps = STEPS, .start = s->batch, .hook = &hook};
	ck_program *p = NULL;
	*course = (ck_course){0};
	ck_status status = ck_program_make(session, schedule, &p, why);
	if (status == CK_OK)
		status = ck_memory_open(session, p->layout.arena, &f->memory, why);
	if (status == CK_OK) {
		f->program = p;
		status = ck_train(p, &f->memory, &o, NULL, course, why);
		ck_memory_close(&f->memory);
	}
	ck_program_free(p);
	return status;
}

/* Which checks see a difference, and where the first is. The scaler's state is the last of a course's tensors. */
static void judge(const ck_course *baseline, const ck_course *c, ck_fault_verdict *v)
{
	for (int k = 0; k < STEPS; k++)
		for (int i = 0; i < c->tensors; i++) {
			if (c->tensor[k][i] == baseline->tensor[k][i])
				continue;
			bool state = i == c->tensors - 1;
			if (v->status != CK_FAULT_CAUGHT)
				ck_fail(&v->why, CK_FAILED, "after step %d, %s from plan none's", k + 1,
					state ? "the scaler's state differs" : "parameters or the optimizer's state differ");
			v->status = CK_FAULT_CAUGHT;
			v->by |= 1u << (state ? (int)CK_DIGEST_SCALER : (int)CK_CHECK_TRAINING);
		}
}

static ck_status try_in(const ck_fault_subject *s, ck_session *session, const ck_schedule *none, ck_faulty *f,
			ck_fault_verdict *v, ck_err *err)
{
	ck_faulty plain = {.graph = f->graph};
	ck_course baseline, c = {0};
	ck_status status = train(s, session, none, &plain, &baseline, err);
	if (status == CK_OK) {
		f->scale_left = (float)baseline.scale[STEPS - 1];
		status = train(s, session, s->schedule, f, &c, &v->why);
		if (status == CK_OK) {
			judge(&baseline, &c, v);
		} else if (status == CK_FAILED) {
			v->status = CK_FAULT_CAUGHT;
			v->by = 1u << CK_CHECK_TRAINING;
			status = CK_OK;
		} else {
			*err = v->why;
		}
	}
	ck_course_free(&baseline);
	ck_course_free(&c);
	return status;
}

ck_status ck__scaler_try(const ck_fault_subject *s, ck_faulty *f, ck_fault_verdict *v, ck_err *err)
{
	ck_optimizer adamw = ck_optimizer_preset(CK_ADAMW);
	ck_scaler_options options = ck_scaler_preset();
	options.scale = SCALE;
	ck_session *session = NULL;
	ck_schedule none = {0};
	ck_plan plan;
	options.interval = INTERVAL;
	ck_status status = ck_session_open(s->session->graph, s->session->backend, s->session->device, &session, err);
	if (status == CK_OK) {
		ck_session_rng(session, s->session->rng);
		ck_session_train(session, &adamw);
		ck_session_scale(session, &options);
		status = ck_plan_read(f->graph, "none", &plan, err);
	}
	if (status == CK_OK)
		status = ck_plan_make(f->graph, &plan, &none, err);
	if (status == CK_OK)
		status = try_in(s, session, &none, f, v, err);
	ck_schedule_free(&none);
	ck_session_close(session);
	return status;
}
