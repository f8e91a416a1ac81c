/* One training step: the program's calls, in order. Nothing here allocates unless the step is a checked one. */
#include <xxhash.h>

#include "harness/run/measure.h"
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

static ck_args arguments(const ck_memory *m, const ck_call *c, const ck_op_info *op, const ck_step *step)
{
	ck_args a = {.seed = step->seed, .step = step->step, .op = (uint32_t)c->id};
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

static void run_call(const ck_program *p, ck_memory *m, const ck_call *c, ck_step *step)
{
	const ck_session *s = p->session;
	const ck_op_info *op = &s->graph->ops[c->id];
	const ck_kernel *k = s->kernels[c->id];
	ck_args a = arguments(m, c, op, step);
	double start = step->op_seconds ? ck_seconds_now() : 0;
	if (c->code == 'F') {
		k->forward(k, &a);
		capture(s, c, &a, step);
		if (op->contract.random && !c->recompute)
			step->random_draws += hash_draw(&a, ck_shape_count(op->desc.out[0].shape));
	} else {
		for (int i = 0; i < op->desc.nin; i++)
			if (c->zero[i])
				s->backend->fill(s->device, a.din[i], 0, s->graph->values[op->in[i]].bytes);
		k->backward(k, &a);
	}
	if (step->op_seconds) {
		if (s->backend->sync)
			s->backend->sync(s->device);
		step->op_seconds[c->code == 'F' ? c->id : s->graph->nops + c->id] += ck_seconds_now() - start;
	}
}

static ck_status run_watched(const ck_program *p, ck_memory *m, ck_step *step, ck_err *err)
{
	ck_watch *watch = ck__watch_open(p, m);
	ck_status status = CK_OK;
	for (int i = 0; i < p->ncalls && status == CK_OK; i++) {
		const ck_call *c = &p->calls[i];
		if (c->code != 'D') {
			status = ck__watch_before(watch, c, err);
			if (status == CK_OK)
				run_call(p, m, c, step);
		}
		if (status == CK_OK)
			ck__watch_after(watch, c);
	}
	step->live_peak = ck__watch_close(watch);
	if (status == CK_OK && step->live_peak != p->trace.peak)
		status = ck_fail(err, CK_FAILED, "live peak seen is %zu bytes, predicted were %zu; this is a fault of ckbench",
				 step->live_peak, p->trace.peak);
	return status;
}

ck_status ck_program_run(const ck_program *p, ck_memory *m, ck_step *step, ck_err *err)
{
	const ck_session *s = p->session;
	step->random_draws = 0;
	if (step->check)
		return run_watched(p, m, step, err);
	for (int i = 0; i < p->ncalls; i++)
		if (p->calls[i].code != 'D')
			run_call(p, m, &p->calls[i], step);
	if (s->backend->sync)
		s->backend->sync(s->device);
	return CK_OK;
}
