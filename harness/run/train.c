#include "harness/run/train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "harness/run/program.h"
#include "kernels/alloc.h"

/* A tensor that a step changes: a value, or the optimizer's state k for one. */
typedef struct tracked {
	ck_value v;
	int k; /* CK_NONE: the value itself */
} tracked;

typedef struct trainer {
	const ck_program *p;
	const ck_session *s;
	const ck_graph *g;
	ck_memory *m;
	const ck_train_options *o;
	ck_course *c;
	tracked *at; /* n */
	int n;
	int micros; /* micro-batches a step */
	ck_scaler scaler;
	const ck_op_info *loss_op; /* its inputs: logits, target */
	void *logits;              /* (rows, classes), on the host */
	int32_t *target;           /* (rows) */
	void *chunk;
} trainer;

enum { CHUNK = 1 << 20 };

/* ---- what a step left ---------------------------------------------------------------------------------------------------- */

static void track(trainer *t)
{
	int states = t->p->layout.states, capacity = 0;
	for (int k = CK_NONE; k < states; k++)
		for (int v = 0; v < t->g->nvalues; v++) {
			const ck_value_info *info = &t->g->values[v];
			bool changes = info->kind == CK_PARAM || info->kind == CK_BUFFER || info->kind == CK_LOSS;
			if (k == CK_NONE ? !changes : !ck_value_trained(info))
				continue;
			t->at = ck_grow(t->at, &capacity, t->n + 1, sizeof *t->at);
			t->at[t->n++] = (tracked){v, k};
		}
}

/* Hashes one tensor and adds it to the digest of all. */
static uint64_t hash_tensor(trainer *t, const tracked *what, XXH3_state_t *one, XXH3_state_t *all)
{
	const char *from =
	    what->k == CK_NONE ? ck_program_value(t->p, t->m, what->v) : ck_program_state(t->p, t->m, what->k, what->v);
	size_t bytes = t->g->values[what->v].bytes;
	XXH3_64bits_reset(one);
	for (size_t done = 0; done < bytes; done += CHUNK) {
		size_t n = bytes - done < CHUNK ? bytes - done : CHUNK;
		t->s->backend->read(t->s->device, t->chunk, from + done, n);
		XXH3_64bits_update(one, t->chunk, n);
		XXH3_128bits_update(all, t->chunk, n);
	}
	return XXH3_64bits_digest(one);
}

/* The hashes of all tensors, the random stream's position and the scaler's state, if there is one, last; fresh memory. */
static uint64_t *take_hashes(trainer *t, uint64_t random_draws, ck_digest *digest)
{
	const ck_scaler *scaler = &t->scaler;
	uint64_t *hashes = ck_alloc((size_t)t->c->tensors, sizeof *hashes);
	XXH3_state_t *one = XXH3_createState(), *all = XXH3_createState();
	if (!one || !all)
		abort();
	XXH3_128bits_reset(all);
	for (int i = 0; i < t->n; i++)
		hashes[i] = hash_tensor(t, &t->at[i], one, all);
	hashes[t->n] = random_draws;
	XXH3_128bits_update(all, &random_draws, sizeof random_draws);
	if (scaler->on) {
		hashes[t->n + 1] = XXH3_64bits(&scaler->now, sizeof scaler->now);
		XXH3_128bits_update(all, &scaler->now, sizeof scaler->now);
	}
	XXH128_hash_t h = XXH3_128bits_digest(all);
	*digest = (ck_digest){h.high64, h.low64};
	XXH3_freeState(one);
	XXH3_freeState(all);
	return hashes;
}

/* How many rows of a micro-batch have their greatest logit (of equals the first) at their target. */
static int64_t count_right(trainer *t)
{
	const ck_value_info *logits = &t->g->values[t->loss_op->in[0]], *target = &t->g->values[t->loss_op->in[1]];
	int64_t classes = ck_shape_last(logits->shape), right = 0;
	t->s->backend->read(t->s->device, t->target, ck_program_value(t->p, t->m, t->loss_op->in[1]), target->bytes);
	for (int64_t row = 0; row < t->c->rows / t->micros; row++) {
		int64_t best = 0;
		for (int64_t i = row * classes, j = 1; j < classes; j++)
			if (ck_element_get(logits->dtype, t->logits, i + j) >
			    ck_element_get(logits->dtype, t->logits, i + best))
				best = j;
		right += best == t->target[row];
	}
	return right;
}

/* ---- holding it against the baseline -------------------------------------------------------------------------------------- */

static const char *tensor_text(const trainer *t, int i, char text[240])
{
	if (i == t->n)
		return "the random stream's position";
	if (i > t->n)
		return "the scaler's state";
	const ck_value_info *v = &t->g->values[t->at[i].v];
	if (t->at[i].k != CK_NONE)
		snprintf(text, 240, "%s's state %d for '%.200s'", ck_optimizer_name(t->s->optimizer.kind), t->at[i].k + 1,
			 v->name);
	else
		snprintf(text, 240, "%s '%.200s'", ck_kind_name(v->kind), v->name);
	return text;
}

static ck_status compare(const trainer *t, const uint64_t *baseline, const uint64_t *hashes, ck_err *err)
{
	int first = t->c->tensors, differ = 0;
	for (int i = t->c->tensors - 1; i >= 0; i--)
		if (hashes[i] != baseline[i]) {
			first = i;
			differ++;
		}
	char text[240], cause[CK_RNG_ORDER_TEXT];
	return differ == 0 ? CK_OK
			   : ck_fail(err, CK_FAILED, "after step %d, %s differs from plan none's; %d of %d tensors do%s",
				     t->c->steps + 1, tensor_text(t, first, text), differ, t->c->tensors,
				     ck__rng_order_text(t->g, t->p->rng_order, cause));
}

/* ---- steps ---------------------------------------------------------------------------------------------------------------- */

static void update(trainer *t)
{
	for (int v = 0; v < t->g->nvalues; v++) {
		void *gradient = ck_program_gradient(t->p, t->m, v);
		if (!gradient || !ck_value_trained(&t->g->values[v]))
			continue;
		ck_update u = {
		    .optimizer = &t->s->optimizer,
		    .t = t->scaler.now.taken + 1,
		    .n = ck_shape_count(t->g->values[v].shape),
		    .gradient = gradient,
		    .parameter = ck_program_value(t->p, t->m, v),
		};
		for (int k = 0; k < t->p->layout.states; k++)
			u.state[k] = ck_program_state(t->p, t->m, k, v);
		t->s->backend->update(t->s->device, &u);
	}
	if (t->s->backend->sync)
		t->s->backend->sync(t->s->device);
}

/* What a step gave, over its micro-batches. */
typedef struct step_sums {
	double loss, scale;
	int64_t right;
	uint64_t random_draws;
} step_sums;

/* The step's results join the course; takes over the hashes. */
static void keep(const trainer *t, const step_sums *sums, ck_digest digest, uint64_t *hashes)
{
	ck_course *c = t->c;
	bool skipped = t->scaler.now.overflow;
	c->loss[c->steps] = sums->loss;
	c->digest[c->steps] = digest;
	c->right[c->steps] = sums->right;
	c->scale[c->steps] = sums->scale;
	c->skipped[c->steps] = skipped;
	c->skips += skipped;
	c->tensor[c->steps++] = hashes;
}

/* Forward and backward of micro-batch k, counted through all steps. */
static ck_status run_micro_batch(trainer *t, int64_t k, step_sums *sums, ck_err *err)
{
	ck_step step = {
	    .seed = t->o->seed,
	    .step = (uint32_t)k,
	    .dloss = sums->scale / t->micros,
	    .check = true,
	    .captured = t->loss_op->in[0],
	    .capture = t->logits,
	    .hook = t->o->hook,
	};
	if (t->o->batch) {
		ck_batch_take(t->o->batch, k);
		ck_memory_batch(t->m, &t->p->layout, t->o->batch->at);
	}
	ck_err why = {""};
	ck_status status = ck_program_run(t->p, t->m, &step, &why);
	if (status != CK_OK)
		return ck_fail(err, status, "step %d: %s", t->c->steps + 1, why.text);
	t->c->live_peak = step.live_peak;
	sums->loss += ck_program_loss(t->p, t->m) / t->micros;
	sums->right += count_right(t);
	sums->random_draws += step.random_draws;
	return CK_OK;
}

static void tell(trainer *t, ck_scaler_moment at)
{
	const ck_hook *hook = t->o->hook;
	if (hook && hook->scaler && t->scaler.on)
		hook->scaler(hook->user, at, &t->scaler);
}

/* Gradients of the whole step, and what follows from them. */
static ck_status run_step(trainer *t, step_sums *sums, ck_err *err)
{
	ck_status status = CK_OK;
	tell(t, CK_BEFORE_FORWARD);
	sums->scale = t->scaler.now.scale;
	ck_memory_clear_sums(t->m, &t->p->layout);
	for (int k = 0; k < t->micros && status == CK_OK; k++)
		status = run_micro_batch(t, (int64_t)t->c->steps * t->micros + k, sums, err);
	if (status == CK_OK && !isfinite(sums->loss))
		return ck_fail(
		    err, CK_FAILED,
		    "at step %d the loss is not finite any more, so that equality proves nothing; take a smaller --lr",
		    t->c->steps + 1);
	if (status != CK_OK)
		return status;
	ck_scaler_unscale(&t->scaler, t->p, t->m, t->o->hook);
	if (!t->scaler.now.overflow)
		update(t);
	ck_scaler_update(&t->scaler);
	tell(t, CK_AFTER_UPDATE);
	return CK_OK;
}

static ck_status train_step(trainer *t, const ck_course *baseline, ck_err *err)
{
	step_sums sums = {0};
	ck_status status = run_step(t, &sums, err);
	if (status != CK_OK)
		return status;
	ck_digest digest;
	uint64_t *hashes = take_hashes(t, sums.random_draws, &digest);
	if (baseline)
		status = compare(t, baseline->tensor[t->c->steps], hashes, err);
	if (status != CK_OK)
		free(hashes);
	else
		keep(t, &sums, digest, hashes);
	return status;
}

static void find_accuracy(trainer *t)
{
	ck_course *c = t->c;
	int64_t right = 0, epoch = t->o->batch ? t->o->batch->batches / t->micros : 1;
	epoch = epoch ? epoch : 1;
	c->accuracy_steps = epoch < c->steps ? (int)epoch : c->steps;
	for (int k = c->steps - c->accuracy_steps; k < c->steps; k++)
		right += c->right[k];
	c->accuracy = c->steps ? (double)right / (double)(c->accuracy_steps * c->rows) : 0;
}

static void open_trainer(trainer *t)
{
	t->loss_op = &t->g->ops[t->g->values[t->g->loss].producer];
	t->logits = ck_alloc(1, t->g->values[t->loss_op->in[0]].bytes);
	t->target = ck_alloc(1, t->g->values[t->loss_op->in[1]].bytes);
	t->chunk = ck_alloc(1, CHUNK);
	track(t);
	t->c->scaled = t->scaler.on;
	t->c->tensors = t->n + 1 + t->scaler.on;
	t->c->scale = ck_alloc((size_t)t->o->steps, sizeof *t->c->scale);
	t->c->skipped = ck_alloc((size_t)t->o->steps, sizeof *t->c->skipped);
	t->c->loss = ck_alloc((size_t)t->o->steps, sizeof *t->c->loss);
	t->c->digest = ck_alloc((size_t)t->o->steps, sizeof *t->c->digest);
	t->c->tensor = ck_alloc((size_t)t->o->steps, sizeof *t->c->tensor);
	t->c->right = ck_alloc((size_t)t->o->steps, sizeof *t->c->right);
	t->c->rows = t->micros * ck_shape_rows(t->g->values[t->loss_op->in[0]].shape);
	ck_memory_init(t->m, &t->p->layout, t->o->seed, t->o->batch ? t->o->batch->at : t->o->start);
}

ck_status ck_train(const ck_program *p, ck_memory *m, const ck_train_options *o, const ck_course *baseline, ck_course *c,
		   ck_err *err)
{
	trainer t = {.p = p, .s = p->session, .g = p->session->graph, .m = m, .o = o, .c = c};
	int steps = baseline && baseline->steps < o->steps ? baseline->steps : o->steps;
	ck_status status = CK_OK;
	*c = (ck_course){0};
	if (o->accumulate > 1 && !p->layout.sum)
		return ck_fail(err, CK_USAGE, "%d micro-batches a step: their session does not accumulate", o->accumulate);
	t.micros = o->accumulate > 1 ? o->accumulate : 1;
	t.scaler = ck_scaler_new(t.s->scaler);
	open_trainer(&t);
	while (c->steps < steps && status == CK_OK && !(o->stop && *o->stop)) {
		status = train_step(&t, baseline, err);
		if (status == CK_OK && o->progress)
			o->progress(o->user, c->steps, c->loss[c->steps - 1]);
	}
	if (status == CK_OK && !baseline && c->steps == steps && c->skips == steps)
		status = ck_fail(err, CK_FAILED,
				 "each of the %d step(s) overflowed and was skipped, so that nothing was trained and equality "
				 "proves nothing; take a smaller --scaler or more --steps",
				 steps);
	find_accuracy(&t);
	free(t.at);
	free(t.logits);
	free(t.target);
	free(t.chunk);
	return status;
}

void ck_course_free(ck_course *c)
{
	for (int k = 0; k < c->steps; k++)
		free(c->tensor[k]);
	free(c->loss);
	free(c->digest);
	free(c->tensor);
	free(c->right);
	free(c->scale);
	free(c->skipped);
	*c = (ck_course){0};
}
