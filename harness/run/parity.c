/* What a step left behind, digested; and how two outcomes compare. */
#include "harness/run/parity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "harness/run/noise.h"
#include "harness/run/program.h"
#include "kernels/alloc.h"

const char *const ck_digest_names[CK_DIGEST_KINDS] = {"loss", "gradients", "input", "state", "forward", "random", "scaler"};
const char *const ck_verdict_names[CK_VERDICTS] = {"bitwise", "within-noise", "failed", "proves-nothing"};

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
	const ck_program *p;
	const ck_memory *m;
	ck_outcome *o;
	ck_noise *noise; /* NULL, or who sees the values too */
	XXH3_state_t *kind[CK_DIGEST_KINDS], *value;
	void *chunk;
} taker;

enum { CHUNK = 1 << 20 };

/* A piece of the gradient of v. */
static void look_at_reals(ck_outcome *o, ck_value v, ck_dtype t, const void *data, size_t bytes)
{
	for (size_t i = 0; i < bytes / ck_dtype_size(t); i++) {
		double x = ck_element_get(t, data, (int64_t)i);
		if (!isfinite(x) && o->not_finite == CK_NONE)
			o->not_finite = v;
		o->zero[v] = o->zero[v] && x == 0;
	}
}

/* Digests the tensor of v at `from` into v's digest and its kind's. v's goes on from that of the step before. */
static void take_tensor(taker *t, ck_digest_kind kind, ck_value v, const char *from)
{
	const ck_value_info *info = &t->s->graph->values[v];
	bool gradient = kind == CK_DIGEST_GRADIENTS || kind == CK_DIGEST_INPUT;
	XXH3_128bits_reset(t->value);
	ck_digest *digest = &(kind == CK_DIGEST_FORWARD ? t->o->forward : t->o->value)[v];
	t->o->zero[v] = gradient;
	if (t->o->skipped) /* on top of what the steps before left */
		XXH3_128bits_update(t->value, digest, sizeof *digest);
	for (size_t done = 0; done < info->bytes; done += CHUNK) {
		size_t n = info->bytes - done < CHUNK ? info->bytes - done : CHUNK;
		t->s->backend->read(t->s->device, t->chunk, from + done, n);
		XXH3_128bits_update(t->value, t->chunk, n);
		XXH3_128bits_update(t->kind[kind], t->chunk, n);
		if (gradient)
			look_at_reals(t->o, v, info->dtype, t->chunk, n);
		if (t->noise)
			ck__noise_see(t->noise, v, kind == CK_DIGEST_FORWARD, done, t->chunk, n);
	}
	t->o->gradients += gradient;
	t->o->zeros += t->o->zero[v];
	*digest = finish(t->value);
	t->o->has[kind] = true;
}

/* Of the first step. */
static void take_forward(void *user)
{
	taker *t = user;
	const ck_graph *g = t->s->graph;
	for (int v = 0; v < g->nvalues && !t->o->skipped; v++)
		if (g->values[v].kind == CK_BUFFER || v == g->loss)
			take_tensor(t, CK_DIGEST_FORWARD, v, ck_program_value(t->p, t->m, v));
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
static void take_all(taker *t, const ck_step *step)
{
	const ck_graph *g = t->s->graph;
	const ck_program *p = t->p;
	const ck_memory *m = t->m;
	t->o->not_finite = CK_NONE;
	t->o->gradients = t->o->zeros = 0;
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
	if (!isfinite(t->o->loss))
		t->o->not_finite = g->loss;
	t->o->live_peak = step->live_peak;
	t->o->order = p->rng_order;
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
	return ck__outcome_take(p, m, seed, NULL, NULL, o, err);
}

static taker new_taker(const ck_program *p, const ck_memory *m, ck_noise *noise, ck_outcome *o)
{
	taker t = {.s = p->session, .p = p, .m = m, .o = o, .noise = noise, .value = new_state(), .chunk = ck_alloc(1, CHUNK)};
	for (int k = 0; k < CK_DIGEST_KINDS; k++)
		t.kind[k] = new_state();
	return t;
}

static void free_taker(taker *t)
{
	for (int k = 0; k < CK_DIGEST_KINDS; k++)
		XXH3_freeState(t->kind[k]);
	XXH3_freeState(t->value);
	free(t->chunk);
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
		ck_step step = {.seed = seed,
				.step = (uint32_t)o->skipped,
				.dloss = o->scale,
				.check = true,
				.hook = hook,
				.forward_done = take_forward,
				.user = t};
		ck_memory_clear_sums(m, &p->layout);
		ck_status status = run_step(p, m, &step, err);
		o->broken = step.broken;
		if (status != CK_OK)
			return status;
		ck_scaler_unscale(&scaler, p, m, hook);
		ck_scaler_update(&scaler);
		take_all(t, &step);
		take_scaler(t, &scaler);
		if (!scaler.now.overflow || scaler.now.scale < 1)
			return CK_OK;
	}
}

ck_status ck__outcome_take(const ck_program *p, ck_memory *m, uint64_t seed, const struct ck_hook *hook, ck_noise *noise,
			   ck_outcome *o, ck_err *err)
{
	size_t nvalues = (size_t)p->session->graph->nvalues;
	*o = (ck_outcome){.not_finite = CK_NONE, .nvalues = (int)nvalues};
	o->value = ck_alloc(nvalues, sizeof *o->value);
	o->forward = ck_alloc(nvalues, sizeof *o->forward);
	o->zero = ck_alloc(nvalues, sizeof *o->zero);
	taker t = new_taker(p, m, noise, o);
	ck_memory_reset(m, &p->layout, seed);
	ck_status status = take_steps(&t, p, m, seed, hook, err);
	for (int k = 0; k < CK_DIGEST_KINDS; k++)
		o->kind[k] = finish(t.kind[k]);
	free_taker(&t);
	if (status != CK_OK) {
		ck_run_check broken = o->broken;
		ck_outcome_free(o);
		o->broken = broken;
	}
	return status;
}

void ck_outcome_free(ck_outcome *o)
{
	free(o->value);
	free(o->zero);
	free(o->forward);
	*o = (ck_outcome){0};
}

/* ---- comparing ------------------------------------------------------------------------------------------------------------ */

/* Names the first of the values that differs, and how many there are. false: none does. `when`: "" or "after the forward alone, ".
 * `cause`: "", or what brought it about. */
static bool name_value(const ck_graph *g, const ck_digest *a, const ck_digest *b, const char *when, const char *cause,
		       ck_err *why)
{
	int first = CK_NONE, n = 0;
	for (int v = 0; v < g->nvalues; v++)
		if (!same(a[v], b[v])) {
			first = first == CK_NONE ? v : first;
			n++;
		}
	if (first == CK_NONE)
		return false;
	const char *what = g->values[first].kind == CK_BUFFER ? "buffer" : first == g->loss ? "the loss," : "the gradient of";
	ck_fail(why, CK_FAILED, "%s%s '%.200s' differs from plan none's; %d tensor%s in all%s", when, what,
		g->values[first].name, n, n == 1 ? " does" : "s do", cause);
	return true;
}

static bool same_kind(const ck_outcome *a, const ck_outcome *b, int kind)
{
	return a->has[kind] == b->has[kind] && same(a->kind[kind], b->kind[kind]);
}

const char *ck__outcome_cause(const ck_graph *g, const ck_outcome *a, const ck_outcome *b, char *text)
{
	bool other_order = b->order.early != a->order.early || b->order.turn != a->order.turn;
	return ck__rng_order_text(g, other_order ? b->order : (ck_rng_order){CK_NONE, CK_NONE}, text);
}

/* Names what differs first; and the cause, where draws in another order are one. */
static void name_difference(const ck_graph *g, const ck_outcome *a, const ck_outcome *b, ck_err *why)
{
	char cause[CK_RNG_ORDER_TEXT];
	ck__outcome_cause(g, a, b, cause);
	if (!name_value(g, a->value, b->value, "", cause, why) &&
	    !name_value(g, a->forward, b->forward, "after the forward alone, ", cause, why))
		ck_fail(why, CK_FAILED, "%s differs from plan none's%s",
			same_kind(a, b, CK_DIGEST_RANDOM) ? "the scaler's state" : "what was drawn from the random stream",
			cause);
}

bool ck_outcome_proves(const ck_graph *g, const ck_outcome *o, ck_err *why)
{
	if (o->not_finite == g->loss)
		ck_fail(why, CK_FAILED,
			"the loss is not finite, so that equality proves nothing; try another seed, or fewer layers");
	else if (o->not_finite != CK_NONE)
		ck_fail(why, CK_FAILED,
			"the gradient of '%.200s' is not finite%s, so that equality proves nothing; try another seed, or fewer "
			"layers",
			g->values[o->not_finite].name, o->has[CK_DIGEST_SCALER] ? " down to a scale of 1" : "");
	else if (o->zeros == o->gradients)
		ck_fail(why, CK_FAILED,
			"every gradient is zero, since the loss depends on nothing that is trained: equality proves nothing; "
			"try another seed, a larger width, two classes or more, or less dropout");
	else
		return true;
	return false;
}

ck_verdict ck_outcome_compare(const ck_graph *g, const ck_outcome *baseline, const ck_outcome *o, ck_err *why)
{
	if (!ck_outcome_proves(g, baseline, why))
		return CK_PROVES_NOTHING;
	for (int k = 0; k < CK_DIGEST_KINDS; k++)
		if (!same_kind(baseline, o, k)) {
			name_difference(g, baseline, o, why);
			return CK_PARITY_FAILED;
		}
	return CK_BITWISE;
}

ck_verdict ck_outcome_compare_forward(const ck_graph *g, const ck_outcome *baseline, const ck_outcome *o, ck_err *why)
{
	if (!same_kind(baseline, o, CK_DIGEST_FORWARD))
		name_value(g, baseline->forward, o->forward, "", "", why);
	else if (!baseline->skipped && !same_kind(baseline, o, CK_DIGEST_RANDOM)) /* else that is of several steps */
		ck_fail(why, CK_FAILED, "what was drawn from the random stream differs from plan none's");
	else
		return CK_BITWISE;
	return CK_PARITY_FAILED;
}
