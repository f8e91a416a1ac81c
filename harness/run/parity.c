/* What a step left behind, digested; and how two outcomes compare. */
#include "harness/run/parity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "harness/run/program.h"
#include "kernels/alloc.h"

const char *const ck_digest_names[CK_DIGEST_KINDS] = {"loss", "gradients", "input", "state", "random", "scaler"};
const char *const ck_verdict_names[] = {"bitwise", "failed"};

static ck_digest finish(XXH3_state_t *x)
{
	XXH128_hash_t h = XXH3_128bits_digest(x);
	return (ck_digest){h.high64, h.low64};
}

static bool same(ck_digest a, ck_digest b)
{
	return a.hi == b.hi && a.lo == b.lo;
}

/* ---- taking --------------------------------------------------------------------------------------------------------------- */

typedef struct taker {
	const ck_session *s;
	ck_outcome *o;
	XXH3_state_t *kind[CK_DIGEST_KINDS], *value;
	void *chunk;
} taker;

enum { CHUNK = 1 << 20 };

static void look_at_reals(ck_outcome *o, ck_dtype t, const void *data, size_t bytes)
{
	for (size_t i = 0; i < bytes / ck_dtype_size(t); i++) {
		double x = t == CK_F64 ? ((const double *)data)[i] : (double)((const float *)data)[i];
		o->finite = o->finite && isfinite(x);
		o->some_nonzero = o->some_nonzero || x != 0;
	}
}

/* Digests the tensor of v at `from` into v's digest and its kind's. v's goes on from that of the step before. */
static void take_tensor(taker *t, ck_digest_kind kind, ck_value v, const char *from)
{
	const ck_value_info *info = &t->s->graph->values[v];
	XXH3_128bits_reset(t->value);
	if (t->o->skipped)
		XXH3_128bits_update(t->value, &t->o->value[v], sizeof t->o->value[v]);
	for (size_t done = 0; done < info->bytes; done += CHUNK) {
		size_t n = info->bytes - done < CHUNK ? info->bytes - done : CHUNK;
		t->s->backend->read(t->s->device, t->chunk, from + done, n);
		XXH3_128bits_update(t->value, t->chunk, n);
		XXH3_128bits_update(t->kind[kind], t->chunk, n);
		if (kind == CK_DIGEST_GRADIENTS || kind == CK_DIGEST_INPUT)
			look_at_reals(t->o, info->dtype, t->chunk, n);
	}
	t->o->value[v] = finish(t->value);
	t->o->has[kind] = true;
}

static void take_random(taker *t, const ck_step *step)
{
	const ck_graph *g = t->s->graph;
	for (int o = 0; o < g->nops; o++)
		t->o->has[CK_DIGEST_RANDOM] = t->o->has[CK_DIGEST_RANDOM] || g->ops[o].contract.random;
	XXH3_128bits_update(t->kind[CK_DIGEST_RANDOM], &step->random_draws, sizeof step->random_draws);
}

static void take_scaler(taker *t, const ck_scaler *scaler)
{
	t->o->has[CK_DIGEST_SCALER] = scaler->on;
	XXH3_128bits_update(t->kind[CK_DIGEST_SCALER], &scaler->now, sizeof scaler->now);
}

/* What one step left. */
static void take_all(taker *t, const ck_program *p, const ck_memory *m, const ck_step *step)
{
	const ck_graph *g = t->s->graph;
	t->o->finite = true;
	t->o->some_nonzero = false;
	for (int v = 0; v < g->nvalues; v++) {
		const char *gradient = ck_program_gradient(p, m, v);
		if (g->values[v].kind == CK_BUFFER)
			take_tensor(t, CK_DIGEST_STATE, v, ck_program_value(p, m, v));
		else if (gradient)
			take_tensor(t, g->values[v].kind == CK_INPUT ? CK_DIGEST_INPUT : CK_DIGEST_GRADIENTS, v, gradient);
	}
	take_tensor(t, CK_DIGEST_LOSS, g->loss, ck_program_value(p, m, g->loss));
	take_random(t, step);
	t->o->loss = ck_program_loss(p, m);
	t->o->finite = t->o->finite && isfinite(t->o->loss);
	t->o->live_peak = step->live_peak;
}

static XXH3_state_t *new_state(void)
{
	XXH3_state_t *x = XXH3_createState();
	if (!x)
		abort();
	XXH3_128bits_reset(x);
	return x;
}

/* What no step may change: parameters and the batch. */
static uint64_t digest_start(const ck_program *p, const ck_memory *m)
{
	const ck_session *s = p->session;
	void *chunk = ck_alloc(1, CHUNK);
	XXH64_hash_t hash = 0;
	for (int v = 0; v < s->graph->nvalues; v++) {
		const ck_value_info *info = &s->graph->values[v];
		size_t bytes = info->kind == CK_PARAM || info->kind == CK_INPUT ? info->bytes : 0;
		for (size_t done = 0; done < bytes; done += CHUNK) {
			size_t n = bytes - done < CHUNK ? bytes - done : CHUNK;
			s->backend->read(s->device, chunk, (char *)ck_program_value(p, m, v) + done, n);
			hash = XXH3_64bits_withSeed(chunk, n, hash);
		}
	}
	free(chunk);
	return hash;
}

ck_status ck_outcome_take(const ck_program *p, ck_memory *m, uint64_t seed, ck_outcome *o, ck_err *err)
{
	return ck__outcome_take(p, m, seed, NULL, o, err);
}

/* One checked step, which may change neither a parameter nor the batch. */
static ck_status run_step(const ck_program *p, ck_memory *m, ck_step *step, ck_err *err)
{
	uint64_t start = digest_start(p, m);
	ck_status status = ck_program_run(p, m, step, err);
	if (status == CK_OK && digest_start(p, m) != start) {
		step->broken = CK_RUN_PARAMETERS;
		status = ck_fail(err, CK_FAILED, "the step changed a parameter or the batch; this is a fault of ckbench");
	}
	return status;
}

/* Steps until one does not overflow. */
static ck_status take_steps(taker *t, const ck_program *p, ck_memory *m, uint64_t seed, const ck_hook *hook, ck_err *err)
{
	ck_outcome *o = t->o;
	ck_scaler scaler = ck_scaler_new(p->session->scaler);
	for (;; o->skipped++) {
		o->scale = scaler.now.scale;
		ck_step step = {.seed = seed, .step = (uint32_t)o->skipped, .dloss = o->scale, .check = true, .hook = hook};
		ck_memory_clear_sums(m, &p->layout);
		ck_status status = run_step(p, m, &step, err);
		o->broken = step.broken;
		if (status != CK_OK)
			return status;
		ck_scaler_unscale(&scaler, p, m, hook);
		ck_scaler_update(&scaler);
		take_all(t, p, m, &step);
		take_scaler(t, &scaler);
		if (!scaler.now.overflow || scaler.now.scale < 1)
			return CK_OK;
	}
}

ck_status ck__outcome_take(const ck_program *p, ck_memory *m, uint64_t seed, const struct ck_hook *hook, ck_outcome *o,
			   ck_err *err)
{
	const ck_session *s = p->session;
	*o = (ck_outcome){.nvalues = s->graph->nvalues, .value = ck_alloc((size_t)s->graph->nvalues, sizeof *o->value)};
	taker t = {.s = s, .o = o, .value = new_state(), .chunk = ck_alloc(1, CHUNK)};
	for (int k = 0; k < CK_DIGEST_KINDS; k++)
		t.kind[k] = new_state();
	ck_memory_reset(m, &p->layout, seed);
	ck_status status = take_steps(&t, p, m, seed, hook, err);
	for (int k = 0; k < CK_DIGEST_KINDS; k++) {
		o->kind[k] = finish(t.kind[k]);
		XXH3_freeState(t.kind[k]);
	}
	XXH3_freeState(t.value);
	free(t.chunk);
	return status;
}

void ck_outcome_free(ck_outcome *o)
{
	free(o->value);
	*o = (ck_outcome){0};
}

/* ---- comparing ------------------------------------------------------------------------------------------------------------ */

/* Names the first value that differs, and how many there are. */
static void name_difference(const ck_graph *g, const ck_outcome *a, const ck_outcome *b, ck_err *why)
{
	int first = CK_NONE, n = 0;
	for (int v = 0; v < g->nvalues; v++)
		if (!same(a->value[v], b->value[v])) {
			first = first == CK_NONE ? v : first;
			n++;
		}
	if (first == CK_NONE) {
		bool random = !same(a->kind[CK_DIGEST_RANDOM], b->kind[CK_DIGEST_RANDOM]);
		ck_fail(why, CK_FAILED, "%s differs from plan none's",
			random ? "what was drawn from the random stream" : "the scaler's state");
		return;
	}
	const char *what = g->values[first].kind == CK_BUFFER ? "buffer" : first == g->loss ? "the loss," : "the gradient of";
	ck_fail(why, CK_FAILED, "%s '%.200s' differs from plan none's; %d tensor%s in all", what, g->values[first].name, n,
		n == 1 ? " does" : "s do");
}

ck_verdict ck_outcome_compare(const ck_graph *g, const ck_outcome *baseline, const ck_outcome *o, ck_err *why)
{
	if (!o->finite || !baseline->finite) {
		ck_fail(why, CK_FAILED,
			"the loss or a gradient is not finite%s, so that equality proves nothing; try another seed or smaller "
			"inputs",
			baseline->has[CK_DIGEST_SCALER] ? " down to a scale of 1" : "");
		return CK_PARITY_FAILED;
	}
	if (!baseline->some_nonzero) {
		ck_fail(why, CK_FAILED, "every gradient is zero, so that equality proves nothing; try another model or batch");
		return CK_PARITY_FAILED;
	}
	for (int k = 0; k < CK_DIGEST_KINDS; k++)
		if (o->has[k] != baseline->has[k] || !same(o->kind[k], baseline->kind[k])) {
			name_difference(g, baseline, o, why);
			return CK_PARITY_FAILED;
		}
	return CK_BITWISE;
}
