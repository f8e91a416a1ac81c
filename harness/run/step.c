/* One training step: the program's calls, in order. Nothing here allocates unless the step is a checked one. */
#include <xxhash.h>

#include "harness/run/program.h"

static void *at(const ck_memory *m, size_t offset)
{
	return offset == CK_NOWHERE ? NULL : m->base + offset;
}

/* First forwards may come in any order, so that their hashes are summed. */
static uint64_t hash_draw(const ck_args *a, int64_t elements)
{
	const uint64_t draw[] = {a->seed, a->step, a->op, (uint64_t)elements};
	return XXH3_64bits(draw, sizeof draw);
}

static ck_args arguments(const ck_memory *m, const ck_call *c, const ck_op_info *op, const ck_step *step, ck_draw d)
{
	ck_args a = {.seed = d.seed, .step = d.step, .op = d.op, .block = d.block, .dloss = step->dloss != 0 ? step->dloss : 1};
	for (int i = 0; i < op->desc.nin; i++) {
		a.in[i] = at(m, c->in[i]);
		a.din[i] = at(m, c->din[i]);
		a.acc[i] = c->acc[i];
		if (c->code == 'F' && !c->recompute && op->contract.state >> i & 1)
			a.state[i] = at(m, c->in[i]);
	}
	a.out[0] = at(m, c->out[0]);
	for (int i = 0; i < op->desc.nstash; i++)
		a.stash[i] = at(m, c->stash[i]);
	a.dout = at(m, c->dout);
	a.workspace = at(m, c->workspace);
	a.mask = step->masks ? step->masks[c->id] : NULL;
	return a;
}

/* Ordered after the op: a backend's read waits for what was started before it. */
static void capture(const ck_session *s, const ck_call *c, const ck_args *a, const ck_step *step)
{
	ck_value v = s->graph->ops[c->id].out[0];
	if (step->capture && v == step->captured && !c->recompute)
		s->backend->read(s->device, step->capture, a->out[0], s->graph->values[v].bytes);
}

static void run_forward(const ck_program *p, const ck_call *c, const ck_args *a, ck_step *step)
{
	const ck_op_info *op = &p->session->graph->ops[c->id];
	const ck_kernel *k = p->session->kernels[c->id];
	k->forward(k, a);
	capture(p->session, c, a, step);
	if (op->contract.random && !c->recompute && p->session->rng == CK_RNG_COUNTER)
		step->random_draws += hash_draw(a, ck_shape_count(op->desc.out[0].shape));
}

static void run_backward(const ck_program *p, const ck_call *c, const ck_args *a)
{
	const ck_session *s = p->session;
	const ck_op_info *op = &s->graph->ops[c->id];
	const ck_kernel *k = s->kernels[c->id];
	for (int i = 0; i < op->desc.nin; i++)
		if (c->zero[i])
			s->backend->fill(s->device, a->din[i], 0, s->graph->values[op->in[i]].gradient_bytes);
	k->backward(k, a);
}

/* Gradients that are complete join their sums. */
static void add_to_sums(const ck_program *p, const ck_memory *m, const ck_call *c)
{
	const ck_session *s = p->session;
	const ck_op_info *op = &s->graph->ops[c->id];
	for (int i = 0; i < op->desc.nin; i++)
		if (c->sum[i] != CK_NOWHERE)
			s->backend->add(s->device, ck_shape_count(op->desc.in[i].shape), at(m, c->din[i]), at(m, c->sum[i]));
}

static void run_call(const ck_program *p, ck_memory *m, const ck_call *c, ck_step *step)
{
	const ck_session *s = p->session;
	const ck_hook *hook = step->hook;
	ck_args a = arguments(m, c, &s->graph->ops[c->id], step, ck__rng_before(m, c, step));
	ck_clock clock = {0};
	if (step->op_seconds)
		clock = ck__clock_start(s->backend, s->device, CK_CLOCK_OP);
	bool runs = !hook || !hook->before || hook->before(hook->user, c, &a, step);
	if (runs && c->code == 'F')
		run_forward(p, c, &a, step);
	else if (runs)
		run_backward(p, c, &a);
	if (runs && hook && hook->after)
		hook->after(hook->user, c, &a, step);
	ck__rng_after(m, c);
	if (step->forward_done && c->code == 'F' && !c->recompute && s->graph->ops[c->id].out[0] == s->graph->loss)
		step->forward_done(step->user);
	if (p->layout.sum && c->code == 'B')
		add_to_sums(p, m, c);
	if (step->op_seconds)
		step->op_seconds[c->code == 'F' ? c->id : s->graph->nops + c->id] +=
		    ck__clock_stop(s->backend, s->device, clock);
}

/* What is held while instruction i runs, or once a D has run, against the prediction. */
static ck_status check_held(const ck_program *p, const ck_watch *watch, int i, ck_err *err)
{
	size_t seen = ck__watch_owned(watch);
	if (seen == p->trace.live[i])
		return CK_OK;
	return ck_fail(err, CK_FAILED, "at instruction %d %zu bytes are held, predicted were %zu; this is a fault of ckbench",
		       i + 1, seen, p->trace.live[i]);
}

static ck_status run_watched_call(const ck_program *p, ck_memory *m, ck_watch *watch, int i, ck_step *step, ck_err *err)
{
	const ck_call *c = &p->calls[i];
	ck_status status = CK_OK;
	if (c->code == 'D') {
		ck__watch_after(watch, c);
		status = check_held(p, watch, i, err);
		step->broken = status == CK_OK ? CK_RUN_HELD : CK_RUN_MEMORY;
		return status;
	}
	status = ck__watch_before(watch, c, err);
	step->broken = status == CK_OK ? CK_RUN_HELD : CK_RUN_WATCH;
	if (status == CK_OK && check_held(p, watch, i, err) != CK_OK)
		status = CK_FAILED, step->broken = CK_RUN_MEMORY;
	if (status != CK_OK)
		return status;
	run_call(p, m, c, step);
	ck__watch_after(watch, c);
	return CK_OK;
}

static ck_status run_watched(const ck_program *p, ck_memory *m, ck_step *step, ck_err *err)
{
	ck_watch *watch = ck__watch_open(p, m);
	ck_status status = CK_OK;
	for (int i = 0; i < p->ncalls && status == CK_OK; i++)
		status = run_watched_call(p, m, watch, i, step, err);
	step->live_peak = ck__watch_close(watch);
	if (step->hook && step->hook->meter)
		step->live_peak = step->hook->meter(step->hook->user, step->live_peak);
	if (status != CK_OK || step->live_peak == p->trace.peak)
		return status;
	step->broken = CK_RUN_MEMORY;
	return ck_fail(err, CK_FAILED, "live peak seen is %zu bytes, predicted were %zu; this is a fault of ckbench",
		       step->live_peak, p->trace.peak);
}

static void run_unwatched(const ck_program *p, ck_memory *m, ck_step *step)
{
	for (int i = 0; i < p->ncalls; i++)
		if (p->calls[i].code != 'D')
			run_call(p, m, &p->calls[i], step);
}

ck_status ck_program_run(const ck_program *p, ck_memory *m, ck_step *step, ck_err *err)
{
	step->random_draws = 0;
	step->broken = CK_RUN_HELD;
	ck_status status = CK_OK;
	if (step->check)
		status = run_watched(p, m, step, err);
	else
		run_unwatched(p, m, step);
	if (p->session->rng == CK_RNG_STATEFUL)
		step->random_draws += m->rng.now.block; /* added: a hook may have left something there */
	return status;
}
