/* The loss scaler: its schedule of scales against sequences worked out by hand, the check of gradients against every place
 * where an infinity may stand, steps that are skipped, and all of it under every plan. By hand: ckbench train MODEL --scaler
 * 3.4e38. */
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/run/program.h"
#include "harness/run/train.h"
#include "kernels/alloc.h"
#include "suite/support.h"

TestSuite(scaler, .init = device_or_skip);
TestSuite(skipped_steps, .init = device_or_skip);
TestSuite(scaled_training, .init = device_or_skip);
TestSuite(scaled_parity, .init = device_or_skip);

/* ---- the schedule of scales ---------------------------------------------------------------------------------------------- */

Test(scaler, presets_are_those_of_pytorch)
{
	ck_scaler_options o = ck_scaler_preset();
	cr_expect(o.scale == 65536 && o.growth == 2 && o.backoff == 0.5 && o.interval == 2000);
	ck_scaler s = ck_scaler_new(&o);
	cr_expect(s.on && s.now.scale == 65536 && s.now.tracker == 0 && s.now.taken == 0 && !s.now.overflow);
	s = ck_scaler_new(NULL);
	cr_expect(!s.on && s.now.scale == 1);
}

/* Of each step: '.' finite or 'x' overflow, and the scale and the tracker after it. */
static const struct {
	ck_scaler_options o;
	const char *steps;
	double scale[10];
	int tracker[10], taken;
} sequences[] = {
    {{65536, 2, 0.5, 3}, ".......", {65536, 65536, 131072, 131072, 131072, 262144, 262144}, {1, 2, 0, 1, 2, 0, 1}, 7},
    {{65536, 2, 0.5, 3}, "xx..x...", {32768, 16384, 16384, 16384, 8192, 8192, 8192, 16384}, {0, 0, 1, 2, 0, 1, 2, 0}, 5},
    {{8, 2, 0.5, 1}, "..x.x", {16, 32, 16, 32, 16}, {0, 0, 0, 0, 0}, 3},
    {{8, 2, 0.5, 2000}, "xxxxx.", {4, 2, 1, 0.5, 0.25, 0.25}, {0, 0, 0, 0, 0, 1}, 1},
    {{100, 1.5, 0.25, 2}, "..x..", {100, 150, 37.5, 37.5, 56.25}, {1, 0, 0, 1, 0}, 4},
    /* It does not grow beyond float32, but the tracker starts anew. */
    {{0x1p127, 2, 0.5, 2}, "...x..", {0x1p127, 0x1p127, 0x1p127, 0x1p126, 0x1p126, 0x1p127}, {1, 0, 1, 0, 1, 0}, 5},
};

Test(scaler, scales_as_worked_out_by_hand)
{
	for (size_t i = 0; i < sizeof sequences / sizeof *sequences; i++) {
		ck_scaler s = ck_scaler_new(&sequences[i].o);
		int taken = 0;
		for (int k = 0; sequences[i].steps[k]; k++) {
			s.now.overflow = sequences[i].steps[k] == 'x';
			taken += !s.now.overflow;
			ck_scaler_update(&s);
			cr_expect(s.now.scale == (float)sequences[i].scale[k] && s.now.tracker == sequences[i].tracker[k] &&
				      s.now.taken == taken,
				  "%zu, '%s', step %d: scale %g, tracker %d, taken %d", i, sequences[i].steps, k + 1,
				  (double)s.now.scale, s.now.tracker, s.now.taken);
		}
		cr_expect(taken == sequences[i].taken);
	}
}

/* With the presets: 2000 finite steps in a row, not 1999. */
Test(scaler, grows_after_the_interval)
{
	ck_scaler_options o = ck_scaler_preset();
	ck_scaler s = ck_scaler_new(&o);
	for (int k = 1; k <= 6001; k++) {
		ck_scaler_update(&s);
		float want = k < 2000 ? 0x1p16f : k < 4000 ? 0x1p17f : k < 6000 ? 0x1p18f : 0x1p19f;
		cr_assert(s.now.scale == want, "step %d: scale %g", k, (double)s.now.scale);
	}
}

/* ---- the check of gradients ---------------------------------------------------------------------------------------------- */

typedef struct rig {
	const ck_backend *backend;
	ck_device *device;
} rig;

static rig rig_open(const char *device, int threads)
{
	rig r;
	ck_err err = {""};
	int index;
	cr_assert(ck_backend_find(device, &r.backend, &index, &err) == CK_OK, "%s", err.text);
	cr_assert(r.backend->open(&(ck_open_options){.index = index, .threads = threads}, &r.device, &err) == CK_OK, "%s",
		  err.text);
	return r;
}

static void *tensor(const rig *r, int64_t n)
{
	void *memory;
	ck_err err = {""};
	cr_assert(r->backend->alloc(r->device, (size_t)n * ck_dtype_size(r->backend->real), &memory, &err) == CK_OK, "%s",
		  err.text);
	return memory;
}

/* Element i in device memory. */
static void put(const rig *r, void *data, int64_t i, double x)
{
	double element;
	size_t size = ck_dtype_size(r->backend->real);
	ck_element_put(r->backend->real, &element, 0, x);
	r->backend->write(r->device, (char *)data + (size_t)i * size, &element, size);
}

static double get(const rig *r, const void *data, int64_t i)
{
	double element;
	size_t size = ck_dtype_size(r->backend->real);
	r->backend->read(r->device, &element, (const char *)data + (size_t)i * size, size);
	return ck_element_get(r->backend->real, &element, 0);
}

/* All n elements, on the host; fresh memory. */
static double *get_all(const rig *r, const void *data, int64_t n)
{
	size_t bytes = (size_t)n * ck_dtype_size(r->backend->real);
	void *host = ck_alloc(1, bytes);
	double *x = ck_alloc((size_t)n, sizeof *x);
	r->backend->read(r->device, host, data, bytes);
	for (int64_t i = 0; i < n; i++)
		x[i] = ck_element_get(r->backend->real, host, i);
	free(host);
	return x;
}

/* Elements that a float32 and a factor that is a power of two keep exact. */
static double number_at(int64_t i)
{
	return (double)((i * 37) % 255 - 127) * 0x1p-3;
}

static double three(int64_t i)
{
	(void)i;
	return 3;
}

static void fill(const rig *r, ck_gradient g, double (*with)(int64_t i))
{
	size_t bytes = (size_t)g.n * ck_dtype_size(r->backend->real);
	void *host = ck_alloc(1, bytes);
	for (int64_t i = 0; i < g.n; i++)
		ck_element_put(r->backend->real, host, i, with(i));
	r->backend->write(r->device, g.data, host, bytes);
	free(host);
}

static void check_unscale(const rig *r, const char *what, ck_gradient *all, int count)
{
	static const double bad[] = {INFINITY, -INFINITY, NAN};
	for (int i = 0; i < count; i++)
		fill(r, all[i], number_at);
	cr_expect(!r->backend->unscale(r->device, 0x1p-16, count, all), "%s: an overflow where there is none", what);
	for (int i = 0; i < count; i++) {
		double *got = get_all(r, all[i].data, all[i].n);
		for (int64_t e = 0; e < all[i].n; e++)
			cr_assert(got[e] == number_at(e) * 0x1p-16, "%s: tensor %d, element %lld", what, i, (long long)e);
		free(got);
	}
	for (int i = 0; i < count; i++)
		for (int64_t e = 0; e < all[i].n; e += all[i].n < 200 ? 1 : 997) {
			double held = get(r, all[i].data, e);
			for (size_t b = 0; b < sizeof bad / sizeof *bad; b++) {
				put(r, all[i].data, e, bad[b]);
				cr_expect(r->backend->unscale(r->device, 1, count, all), "%s: %g at %lld of tensor %d unseen",
					  what, bad[b], (long long)e, i);
				double left = get(r, all[i].data, e);
				cr_expect(isnan(bad[b]) ? isnan(left) : left == bad[b], "%s: %g became %g", what, bad[b], left);
			}
			put(r, all[i].data, e, held);
		}
	cr_expect(!r->backend->unscale(r->device, 1, count, all), "%s: an overflow that was taken away", what);
}

/* The largest and the smallest numbers are no overflow. */
static void check_limits(const rig *r, const char *what, ck_gradient g)
{
	const double limits[] = {FLT_MAX, -FLT_MAX, FLT_MIN, FLT_MIN / 8, -0.0};
	for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
		fill(r, g, number_at);
		put(r, g.data, g.n - 1, limits[i]);
		cr_expect(!r->backend->unscale(r->device, 0.5, 1, &g), "%s: %g is no overflow", what, limits[i]);
		cr_expect(get(r, g.data, g.n - 1) == limits[i] / 2, "%s: half of %g is not %g", what, limits[i],
			  get(r, g.data, g.n - 1));
	}
}

/* 0: ref. The device under test; cpu with one, two and three threads. */
static int devices(void)
{
	return device_is_named() ? 2 : 4;
}

static const char *device_at(int d)
{
	return d == 0 ? "ref" : device_under_test();
}

static int threads_at(int d)
{
	return d == 0 ? 1 : d;
}

Test(scaler, sees_every_overflow_and_no_other)
{
	static const int64_t sizes[] = {1, 7, 64, 65, 131, 40001};
	enum { SIZES = sizeof sizes / sizeof *sizes };
	for (int d = 0; d < devices(); d++) {
		rig r = rig_open(device_at(d), threads_at(d));
		char *what = ck_text("%s, %d threads", device_at(d), threads_at(d));
		ck_gradient all[SIZES];
		for (int i = 0; i < SIZES; i++) {
			all[i] = (ck_gradient){sizes[i], tensor(&r, sizes[i])};
			check_unscale(&r, what, &all[i], 1);
			check_limits(&r, what, all[i]);
		}
		check_unscale(&r, what, all, SIZES);
		for (int i = 0; i < SIZES; i++)
			r.backend->free(r.device, all[i].data);
		free(what);
		r.backend->close(r.device);
	}
}

Test(scaler, sums_are_element_by_element)
{
	enum { N = 40003 };
	for (int d = 0; d < devices(); d++) {
		rig r = rig_open(device_at(d), threads_at(d));
		void *from = tensor(&r, N), *to = tensor(&r, N);
		fill(&r, (ck_gradient){N, from}, number_at);
		fill(&r, (ck_gradient){N, to}, three);
		r.backend->add(r.device, N, from, to);
		double *sums = get_all(&r, to, N), *added = get_all(&r, from, N);
		for (int i = 0; i < N; i++)
			cr_assert(sums[i] == 3 + number_at(i) && added[i] == number_at(i), "%s: element %d", device_at(d), i);
		free(sums);
		free(added);
		r.backend->free(r.device, from);
		r.backend->free(r.device, to);
		r.backend->close(r.device);
	}
}

/* ---- training ------------------------------------------------------------------------------------------------------------ */

enum { STEPS = 6 };

/* Steps whose loss gradient is made infinite, as a scale too high does: bit k is step k. */
typedef struct spoiler {
	const ck_graph *graph;
	unsigned steps;
	int micros;
} spoiler;

static bool spoil(void *user, const ck_call *c, ck_args *a, ck_step *step)
{
	const spoiler *s = user;
	if (c->code == 'B' && s->graph->ops[c->id].out[0] == s->graph->loss && s->steps >> step->step / s->micros & 1 &&
	    (int)step->step % s->micros == s->micros / 2) /* one of a step's micro-batches is enough */
		a->dloss = INFINITY;
	return true;
}

typedef struct training {
	bench b;
	const char *model;
	ck_optimizer optimizer;
	int steps, accumulate;
	unsigned overflows;
	const char *data; /* NULL: drawn */
	ck_course baseline;
} training;

static training open_training(const char *model, const char *device, ck_optimizer_kind kind, const ck_scaler_options *scaler)
{
	training t = {.b = bench_open_model(model, device, 1, 1), .model = model, .steps = STEPS, .accumulate = 1};
	t.optimizer = ck_optimizer_preset(kind);
	t.optimizer.momentum = kind == CK_SGD ? 0.9 : 0;
	ck_session_train(t.b.session, &t.optimizer);
	if (scaler)
		ck_session_scale(t.b.session, scaler);
	return t;
}

static void close_training(training *t)
{
	ck_course_free(&t->baseline);
	bench_close(&t->b);
}

/* The first plan is the baseline. */
static void train_plan(void *user, const char *plan)
{
	training *t = user;
	ck_err err = {""};
	ck_course c;
	ck_memory m;
	ck_batch *batch = NULL;
	spoiler s = {t->b.graph, t->overflows, t->accumulate};
	const ck_hook hook = {.user = &s, .before = spoil};
	ck_schedule schedule = bench_plan(&t->b, plan);
	ck_program *p = bench_program(&t->b, &schedule);
	cr_assert(!t->data || ck_batch_open(t->b.graph, t->data, 1, &batch, &err) == CK_OK, "%s", err.text);
	cr_assert(ck_memory_open(t->b.session, p->layout.arena, &m, &err) == CK_OK, "%s", err.text);
	ck_train_options o = {.seed = 1, .steps = t->steps, .accumulate = t->accumulate, .batch = batch, .hook = &hook};
	bool first = t->baseline.steps == 0;
	ck_status status = ck_train(p, &m, &o, first ? NULL : &t->baseline, &c, &err);
	cr_expect(status == CK_OK && c.steps == t->steps, "ckbench train %s --plans %s: %s", t->model, plan, err.text);
	cr_expect(c.live_peak == p->trace.peak);
	if (first)
		t->baseline = c;
	else
		ck_course_free(&c);
	ck_batch_close(batch);
	ck_memory_close(&m);
	ck_program_free(p);
	ck_schedule_free(&schedule);
}

static const char *const models[] = {
    "mlp:layers=6,width=24,inputs=20,classes=7,batch=9",
    "transformer:layers=2,width=32,heads=4,seq=12,vocab=40,batch=3,dropout=0.1",
    "resnet20:image=8,batch=4",
};
enum { MODELS = sizeof models / sizeof *models };

/* A step that overflows leaves every parameter and all of the optimizer's state as they were, and one that does not changes
 * them all. BatchNorm's statistics go on: they are the forward's. */
static void expect_untouched(const training *t)
{
	const ck_course *c = &t->baseline;
	const ck_graph *g = t->b.graph;
	int states = ck_optimizer_states(&t->optimizer), at = 0;
	for (int k = -1; k < states; k++)
		for (int v = 0; v < g->nvalues; v++) {
			ck_kind kind = g->values[v].kind;
			bool tracked = kind == CK_PARAM || kind == CK_BUFFER || kind == CK_LOSS;
			if (k < 0 ? !tracked : !ck_value_trained(&g->values[v]))
				continue;
			for (int step = 1; step < c->steps && kind == CK_PARAM; step++)
				cr_expect((c->tensor[step][at] == c->tensor[step - 1][at]) == c->skipped[step],
					  "%s, %s: step %d %s '%s' (state %d)", t->model, ck_optimizer_name(t->optimizer.kind),
					  step + 1, c->skipped[step] ? "is skipped and changes" : "leaves", g->values[v].name,
					  k);
			at++;
		}
	cr_expect(at == c->tensors - 2);
}

Test(skipped_steps, leave_everything_untouched, .timeout = 120)
{
	ck_scaler_options o = ck_scaler_preset();
	o.interval = 2;
	for (int i = 0; i < MODELS; i++)
		for (int kind = 0; kind < CK_OPTIMIZER_KIND_COUNT; kind++)
			for (int accumulate = 1; accumulate <= 3; accumulate += 2) {
				static const double scales[STEPS] = {65536, 65536, 32768, 16384, 16384, 32768};
				training t = open_training(models[i], device_under_test(), (ck_optimizer_kind)kind, &o);
				t.overflows = 1u << 1 | 1u << 2;
				t.accumulate = accumulate;
				if (accumulate > 1)
					ck_session_accumulate(t.b.session);
				train_plan(&t, "none");
				cr_expect(t.baseline.skips == 2 && t.baseline.skipped[1] && t.baseline.skipped[2]);
				cr_expect(memcmp(t.baseline.scale, scales, sizeof scales) == 0, "%s: other scales", models[i]);
				expect_untouched(&t);
				close_training(&t);
			}
}

/* The step count: what a training with a skipped first step leaves, AdamW's corrections included, is what the one without it
 * leaves a step earlier. (One batch, no dropout, no statistics, and scales that are powers of two.) */
Test(skipped_steps, do_not_count)
{
	ck_scaler_options o = ck_scaler_preset();
	for (int kind = 0; kind < CK_OPTIMIZER_KIND_COUNT; kind++) {
		training all = open_training(models[0], device_under_test(), (ck_optimizer_kind)kind, &o);
		training skipping = open_training(models[0], device_under_test(), (ck_optimizer_kind)kind, &o);
		skipping.overflows = 1;
		train_plan(&all, "none");
		train_plan(&skipping, "none");
		for (int k = 1; k < STEPS; k++)
			for (int i = 0; i < all.baseline.tensors - 2; i++)
				cr_expect(skipping.baseline.tensor[k][i] == all.baseline.tensor[k - 1][i],
					  "%s, step %d: tensor %d", ck_optimizer_name((ck_optimizer_kind)kind), k + 1, i);
		close_training(&all);
		close_training(&skipping);
	}
}

/* Scaling by powers of two and unscaling changes no bit while nothing over- or underflows: all tensors but the scaler's own. */
Test(scaled_training, has_the_bits_of_plain_training, .timeout = 120)
{
	ck_scaler_options o = ck_scaler_preset();
	o.interval = 2;
	for (int i = 0; i < MODELS; i++) {
		training plain = open_training(models[i], device_under_test(), CK_ADAMW, NULL);
		training scaled = open_training(models[i], device_under_test(), CK_ADAMW, &o);
		train_plan(&plain, "none");
		train_plan(&scaled, "none");
		cr_expect(!plain.baseline.scaled && scaled.baseline.scaled &&
			  plain.baseline.tensors + 1 == scaled.baseline.tensors);
		for (int k = 0; k < STEPS; k++)
			for (int e = 0; e < plain.baseline.tensors; e++)
				cr_expect(plain.baseline.tensor[k][e] == scaled.baseline.tensor[k][e], "%s, step %d: tensor %d",
					  models[i], k + 1, e);
		close_training(&plain);
		close_training(&scaled);
	}
}

Test(scaled_training, every_plan_trains_alike, .timeout = 300)
{
	ck_scaler_options o = ck_scaler_preset();
	o.interval = 2;
	for (int i = 0; i < MODELS; i++) {
		training t = open_training(models[i], device_under_test(), CK_ADAMW, &o);
		t.overflows = 1u << 0 | 1u << 3;
		train_plan(&t, "none");
		bench_each_plan(t.b.graph, train_plan, &t);
		cr_expect(t.baseline.skips == 2);
		close_training(&t);
	}
}

/* A first scale that float32 gradients cannot bear is halved until they can, and then the model learns. */
Test(scaled_training, learns_after_real_overflows, .timeout = 120)
{
	ck_scaler_options o = ck_scaler_preset();
	o.scale = 3.4e38;
	training t =
	    open_training("cnn:depth=20,image=8,channels=1,width=16,classes=10,batch=16", device_under_test(), CK_ADAMW, &o);
	t.steps = 40;
	t.data = "digits";
	train_plan(&t, "none");
	train_plan(&t, "stages");
	const ck_course *c = &t.baseline;
	cr_expect(c->skips > 0 && c->skips < 10, "%d of %d steps are skipped", c->skips, c->steps);
	for (int k = 0; k + 1 < c->steps; k++)
		cr_expect(c->scale[k + 1] == (double)(float)(c->scale[k] * (c->skipped[k] ? 0.5 : 1)),
			  "step %d: scale %g, then %g", k + 1, c->scale[k], c->scale[k + 1]);
	cr_expect(c->loss[c->steps - 1] < 0.5 * c->loss[0], "loss from %g to %g", c->loss[0], c->loss[c->steps - 1]);
	close_training(&t);
}

/* Something else in the scaler's state is a difference, and named. */
static void spoil_state(void *user, ck_scaler_moment at, ck_scaler *s)
{
	int32_t *calls = user;
	if (at == CK_AFTER_UPDATE && ++*calls == 2)
		s->now.tracker++;
}

Test(scaled_training, a_difference_in_the_scaler_is_named)
{
	ck_scaler_options o = ck_scaler_preset();
	training t = open_training(models[0], device_under_test(), CK_ADAMW, &o);
	train_plan(&t, "none");
	ck_schedule none = bench_plan(&t.b, "none");
	ck_program *p = bench_program(&t.b, &none);
	ck_err err = {""};
	ck_memory m;
	ck_course c;
	int32_t calls = 0;
	const ck_hook hook = {.user = &calls, .scaler = spoil_state};
	cr_assert(ck_memory_open(t.b.session, p->layout.arena, &m, &err) == CK_OK, "%s", err.text);
	ck_train_options with = {.seed = 1, .steps = STEPS, .hook = &hook};
	cr_expect(ck_train(p, &m, &with, &t.baseline, &c, &err) == CK_FAILED && c.steps == 1 &&
		      strstr(err.text, "after step 2, the scaler's state differs"),
		  "%d steps: %s", c.steps, err.text);
	ck_course_free(&c);
	ck_memory_close(&m);
	ck_program_free(p);
	ck_schedule_free(&none);
	close_training(&t);
}

/* ---- one step's parity --------------------------------------------------------------------------------------------------- */

typedef struct parity {
	bench b;
	ck_outcome baseline;
	int plans;
} parity;

static void check_plan(void *user, const char *plan)
{
	parity *t = user;
	ck_err why = {""};
	ck_schedule s = bench_plan(&t->b, plan);
	ck_program *p = bench_program(&t->b, &s);
	ck_outcome o = bench_outcome(&t->b, p);
	if (t->plans++ == 0)
		t->baseline = bench_outcome(&t->b, p);
	cr_expect(ck_outcome_compare(t->b.graph, &t->baseline, &o, &why) == CK_BITWISE, "%s: %s", plan, why.text);
	cr_expect(o.has[CK_DIGEST_SCALER] && o.scale == t->baseline.scale && o.skipped == t->baseline.skipped);
	ck_outcome_free(&o);
	ck_program_free(p);
	ck_schedule_free(&s);
}

Test(scaled_parity, every_plan_at_a_scale_that_overflows_first, .timeout = 300)
{
	static const struct {
		const char *model;
		double scale;
		bool overflows;
	} cases[] = {{"resnet18:image=32,batch=2,classes=10,width=8", 3e38, true},
		     {"resnet18:image=32,batch=2,classes=10,width=8", 65536, false},
		     {"gpt-tiny:dropout=0.2", 65536, false},
		     {"mlp:layers=4,width=17,inputs=5,classes=3,batch=5,activation=gelu,dropout=0.1", 1, false}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		parity t = {.b = bench_open_model(cases[i].model, device_under_test(), 1, 1)};
		ck_scaler_options o = ck_scaler_preset();
		o.scale = cases[i].scale;
		ck_session_scale(t.b.session, &o);
		check_plan(&t, "none");
		bench_each_plan(t.b.graph, check_plan, &t);
		cr_expect((t.baseline.skipped > 0) == cases[i].overflows && t.baseline.not_finite == CK_NONE,
			  "%s at %g: %d steps overflowed", cases[i].model, cases[i].scale, t.baseline.skipped);
		ck_outcome_free(&t.baseline);
		bench_close(&t.b);
	}
}

/* A meddler: in which step it doubles the loss's gradient, and up to which it makes it infinite. */
typedef struct meddler {
	const ck_graph *graph;
	int doubles, infinite;
} meddler;

static bool meddle(void *user, const ck_call *c, ck_args *a, ck_step *step)
{
	const meddler *w = user;
	if (c->code != 'B' || w->graph->ops[c->id].out[0] != w->graph->loss)
		return true;
	if ((int)step->step < w->infinite)
		a->dloss = INFINITY;
	if ((int)step->step == w->doubles)
		a->dloss *= 2;
	return true;
}

/* The bits of the steps that overflow count as well: at 3e38 some elements are still finite. And infinities alone prove
 * nothing. */
Test(scaled_parity, every_step_counts)
{
	static const struct {
		meddler with;
		double scale;
		const char *says; /* "": as the baseline */
		int skipped;      /* -1: as the baseline, more than one */
		bool itself;      /* compared with itself */
	} cases[] = {{{NULL, -1, 0}, 3e38, "", -1, false},
		     {{NULL, 1, 0}, 3e38, "the gradient of", -1, false},
		     {{NULL, 2, 0}, 3e38, "the gradient of", -1, false},
		     {{NULL, -1, 3}, 65536, "the gradient of", 3, false},
		     {{NULL, -1, 99}, 65536, "not finite down to a scale of 1, so that equality proves nothing", 16, true}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		ck_err err = {""}, why = {""};
		bench b = bench_open_model("resnet18:image=32,batch=2,classes=10,width=8", device_under_test(), 1, 1);
		ck_scaler_options o = ck_scaler_preset();
		o.scale = cases[i].scale;
		ck_session_scale(b.session, &o);
		ck_schedule none = bench_plan(&b, "none");
		ck_program *p = bench_program(&b, &none);
		ck_outcome baseline = bench_outcome(&b, p), other;
		meddler with = cases[i].with;
		with.graph = b.graph;
		const ck_hook hook = {.user = &with, .before = meddle};
		cr_assert(ck__outcome_take(p, &b.memory, b.seed, &hook, NULL, &other, &err) == CK_OK, "%s", err.text);
		ck_verdict verdict = ck_outcome_compare(b.graph, cases[i].itself ? &other : &baseline, &other, &why);
		cr_expect((verdict == CK_BITWISE) == !*cases[i].says && strstr(why.text, cases[i].says), "case %zu: %s", i,
			  why.text);
		cr_expect(cases[i].skipped < 0 ? other.skipped == baseline.skipped && other.skipped > 1
					       : other.skipped == cases[i].skipped,
			  "case %zu: %d steps overflowed, the baseline's %d", i, other.skipped, baseline.skipped);
		ck_outcome_free(&other);
		ck_outcome_free(&baseline);
		ck_program_free(p);
		ck_schedule_free(&none);
		bench_close(&b);
	}
}
