/* Gradients that are summed over several runs: two backward passes are exactly twice one, micro-batches are the sum of their
 * gradients, under every plan, in the memory that was predicted. By hand: ckbench train MODEL --accumulate N. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/run/train.h"
#include "kernels/alloc.h"
#include "suite/support.h"

TestSuite(two_backward_passes, .init = device_or_skip);
TestSuite(micro_batches, .init = device_or_skip);

/* All gradients of trained parameters, one after the other. */
typedef struct gradients {
	double *at;
	int64_t n;
} gradients;

static gradients read_gradients(const bench *b, const ck_program *p, const ck_memory *m)
{
	const ck_graph *g = b->graph;
	gradients all = {ck_alloc((size_t)g->parameters, sizeof *all.at), 0};
	for (int v = 0; v < g->nvalues; v++) {
		const ck_value_info *info = &g->values[v];
		if (!ck_value_trained(info))
			continue;
		void *host = ck_alloc(1, info->bytes);
		b->backend->read(b->device, host, ck_program_gradient(p, m, v), info->bytes);
		for (int64_t i = 0; i < ck_shape_count(info->shape); i++)
			all.at[all.n++] = ck_element_get(info->dtype, host, i);
		free(host);
	}
	return all;
}

static ck_memory memory_for(const bench *b, const ck_program *p)
{
	ck_err err = {""};
	ck_memory m;
	cr_assert(ck_memory_open(b->session, p->layout.arena, &m, &err) == CK_OK, "%s", err.text);
	ck_memory_init(&m, &p->layout, b->seed, NULL);
	return m;
}

/* A checked run; step: which masks dropout draws. */
static void run_once(const ck_program *p, ck_memory *m, uint64_t seed, int step, double dloss)
{
	ck_err err = {""};
	ck_step s = {.seed = seed, .step = (uint32_t)step, .dloss = dloss, .check = true};
	cr_assert(ck_program_run(p, m, &s, &err) == CK_OK, "%s", err.text);
	cr_expect(s.live_peak == p->trace.peak, "live peak %zu, predicted %zu", s.live_peak, p->trace.peak);
}

static bench open_accumulating(const char *model, const char *device, int threads)
{
	bench b = bench_open_model(model, device, threads, 1);
	ck_session_accumulate(b.session);
	return b;
}

static ck_program *program_of(const bench *b, const char *plan)
{
	ck_schedule s = bench_plan(b, plan);
	ck_program *p = bench_program(b, &s);
	ck_schedule_free(&s);
	return p;
}

/* What a program without sums leaves. */
static gradients plain_gradients(const char *model, const char *device, int threads, int step)
{
	bench b = bench_open_model(model, device, threads, 1);
	ck_program *p = program_of(&b, "none");
	ck_memory m = memory_for(&b, p);
	run_once(p, &m, b.seed, step, 1);
	gradients g = read_gradients(&b, p, &m);
	ck_memory_close(&m);
	ck_program_free(p);
	bench_close(&b);
	return g;
}

/* ---- two backward passes ------------------------------------------------------------------------------------------------- */

typedef struct twice {
	bench b;
	const char *model;
	int threads;
	gradients once;
	size_t trained; /* bytes of trained parameters */
	int plans;
} twice;

/* The step's own figures, without sums: they differ by what is held throughout, and by gradients that die early. */
static void check_memory(const twice *t, const char *plan, const ck_program *p)
{
	ck_err err = {""};
	ck_trace without;
	ck_schedule s = bench_plan(&t->b, plan);
	ck_workspaces w = ck_session_workspaces(t->b.session);
	w.accumulates = false;
	cr_assert(ck_schedule_check(t->b.graph, &s, w, &without, &err) == CK_OK, "%s", err.text);
	cr_expect(p->trace.persistent == without.persistent + t->trained, "%s %s: %zu bytes persist, not %zu more than %zu",
		  t->model, plan, p->trace.persistent, t->trained, without.persistent);
	for (int i = 0; i < s.n; i++)
		cr_expect(p->trace.live[i] <= without.live[i] + t->trained && p->trace.live[i] >= p->trace.persistent,
			  "%s %s: %zu bytes at instruction %d, %zu without sums of %zu", t->model, plan, p->trace.live[i],
			  i + 1, without.live[i], t->trained);
	ck_trace_free(&without);
	ck_schedule_free(&s);
}

/* Sums after 1, 2 and 3 runs of the same batch: g, 2 g, and 2 g + g rounded once, in the arithmetic of the device. */
static void check_plan(void *user, const char *plan)
{
	twice *t = user;
	ck_program *p = program_of(&t->b, plan);
	ck_memory m = memory_for(&t->b, p);
	check_memory(t, plan, p);
	for (int runs = 1; runs <= 3; runs++) {
		run_once(p, &m, t->b.seed, 0, 1);
		gradients sum = read_gradients(&t->b, p, &m);
		int64_t wrong = 0;
		cr_assert(sum.n == t->once.n);
		for (int64_t i = 0; i < sum.n; i++) {
			double want = runs * t->once.at[i];
			wrong += sum.at[i] != (t->b.graph->real == CK_F64 ? want : (double)(float)want);
		}
		cr_expect(wrong == 0,
			  "%s --plans %s --threads %d: after %d backward passes %lld of %lld elements are not %d times one's",
			  t->model, plan, t->threads, runs, (long long)wrong, (long long)sum.n, runs);
		free(sum.at);
	}
	ck_memory_clear_sums(&m, &p->layout);
	run_once(p, &m, t->b.seed, 0, 1);
	gradients again = read_gradients(&t->b, p, &m);
	for (int64_t i = 0; i < again.n; i++)
		cr_assert(again.at[i] == t->once.at[i], "%s %s: not cleared", t->model, plan);
	free(again.at);
	ck_memory_close(&m);
	ck_program_free(p);
	t->plans++;
}

static void check_twice(const char *model, const char *device, int threads)
{
	printf("# two backward passes: %s --device %s --threads %d\n", model, device, threads);
	twice t = {.b = open_accumulating(model, device, threads), .model = model, .threads = threads};
	t.once = plain_gradients(model, device, threads, 0);
	for (int v = 0; v < t.b.graph->nvalues; v++)
		t.trained += ck_value_trained(&t.b.graph->values[v]) ? t.b.graph->values[v].bytes : 0;
	if (strcmp(device, device_under_test()) == 0)
		bench_each_plan(t.b.graph, check_plan, &t);
	else
		check_plan(&t, "stages");
	cr_expect(t.plans > 0);
	free(t.once.at);
	bench_close(&t.b);
}

static void check_list(const char *device, int threads, int every)
{
	char **cases = parity_cases();
	for (int i = 0; cases[i]; i++)
		if (i % every == 0)
			check_twice(cases[i], device, threads);
	free_list(cases);
}

Test(two_backward_passes, are_exactly_twice_one, .timeout = 300)
{
	check_list(device_under_test(), 1, 1);
}

Test(two_backward_passes, with_threads, .timeout = 300)
{
	device_is_cpu_or_skip();
	check_list(device_under_test(), 2, 3);
}

Test(two_backward_passes, float64_reference, .timeout = 300)
{
	check_list("ref", 1, 4);
}

/* A second pass is a second run; in one schedule it is refused, and the remedy named. */
Test(two_backward_passes, in_one_schedule_are_refused)
{
	bench b = bench_open_model("mlp:layers=3,width=8,batch=4", device_under_test(), 1, 1);
	ck_err err = {""};
	ck_schedule none = bench_plan(&b, "none"), s = {0};
	for (int i = 0; i < none.n; i++) {
		ck_schedule_add(&s, none.at[i].code, none.at[i].id);
		if (none.at[i].code == 'B')
			ck_schedule_add(&s, 'B', none.at[i].id);
	}
	char *text = NULL;
	size_t bytes;
	FILE *to = open_memstream(&text, &bytes);
	cr_assert(ck_schedule_write(b.graph, &s, to, &err) == CK_OK);
	fclose(to);
	ck_schedule parsed = {0};
	cr_assert(ck_schedule_parse(b.graph, text, bytes, &parsed, &err) == CK_OK, "%s", err.text);
	for (int accumulates = 0; accumulates < 2; accumulates++) {
		ck_workspaces w = {.accumulates = accumulates};
		cr_expect(ck_schedule_check(b.graph, &parsed, w, NULL, &err) == CK_USAGE && strstr(err.text, "(B loss)") &&
			      strstr(err.text, "its B has run already") && strstr(err.text, "--accumulate"),
			  "%s", err.text);
	}
	free(text);
	ck_schedule_free(&none);
	ck_schedule_free(&s);
	ck_schedule_free(&parsed);
	bench_close(&b);
}

/* ---- micro-batches ------------------------------------------------------------------------------------------------------- */

enum { MICROS = 5 };

/* Different masks make each micro-batch another one. */
static const char *const models[] = {
    "mlp:layers=6,width=24,inputs=20,classes=7,batch=9,dropout=0.3",
    "resnet20:image=8,batch=4,dropout=0.2",
    "transformer:layers=3,width=32,heads=4,seq=12,vocab=40,batch=3,dropout=0.1",
};
enum { MODELS = sizeof models / sizeof *models };

/* Whether |a - b| is at most `tolerance` of |b|, as vectors. */
static double distance(const gradients *a, const gradients *b)
{
	double apart = 0, size = 0;
	for (int64_t i = 0; i < b->n; i++) {
		apart += (a->at[i] - b->at[i]) * (a->at[i] - b->at[i]);
		size += b->at[i] * b->at[i];
	}
	return sqrt(apart / size);
}

static gradients accumulated(const char *model, const char *device, const char *plan)
{
	bench b = open_accumulating(model, device, 1);
	ck_program *p = program_of(&b, plan);
	ck_memory m = memory_for(&b, p);
	for (int k = 0; k < MICROS; k++)
		run_once(p, &m, b.seed, k, 1.0 / MICROS);
	gradients g = read_gradients(&b, p, &m);
	ck_memory_close(&m);
	ck_program_free(p);
	bench_close(&b);
	return g;
}

/* Against the mean of the micro-batches' gradients, each found alone, in float64. */
Test(micro_batches, are_the_mean_of_their_gradients, .timeout = 120)
{
	const struct {
		const char *device;
		double tolerance; /* some hundred roundings */
	} devices[] = {{"ref", 1e-13}, {device_under_test(), 1e-5}};
	for (int i = 0; i < MODELS; i++) {
		gradients mean = plain_gradients(models[i], "ref", 1, 0);
		for (int k = 1; k < MICROS; k++) {
			gradients one = plain_gradients(models[i], "ref", 1, k);
			for (int64_t e = 0; e < mean.n; e++)
				mean.at[e] += one.at[e];
			free(one.at);
		}
		for (int64_t e = 0; e < mean.n; e++)
			mean.at[e] /= MICROS;
		for (int d = 0; d < 2; d++) {
			gradients sum = accumulated(models[i], devices[d].device, "stages");
			cr_assert(sum.n == mean.n);
			cr_expect(distance(&sum, &mean) < devices[d].tolerance, "%s on %s: %g away from the mean", models[i],
				  devices[d].device, distance(&sum, &mean));
			free(sum.at);
		}
		free(mean.at);
	}
}

typedef struct courses {
	bench b;
	const char *model;
	ck_course baseline;
} courses;

static void train_plan(void *user, const char *plan)
{
	courses *t = user;
	ck_err err = {""};
	ck_course c;
	ck_program *p = program_of(&t->b, plan);
	ck_memory m = memory_for(&t->b, p);
	bool first = t->baseline.steps == 0;
	ck_train_options o = {.seed = t->b.seed, .steps = 3, .accumulate = MICROS};
	ck_status status = ck_train(p, &m, &o, first ? NULL : &t->baseline, &c, &err);
	cr_expect(status == CK_OK && c.steps == 3, "ckbench train %s --accumulate %d --plans %s: %s", t->model, MICROS, plan,
		  err.text);
	cr_expect(c.live_peak == p->trace.peak, "%s %s: live peak %zu, predicted %zu", t->model, plan, c.live_peak,
		  p->trace.peak);
	if (first)
		t->baseline = c;
	else
		ck_course_free(&c);
	ck_memory_close(&m);
	ck_program_free(p);
}

Test(micro_batches, every_plan_trains_alike, .timeout = 300)
{
	ck_optimizer adamw = ck_optimizer_preset(CK_ADAMW);
	for (int i = 0; i < MODELS; i++) {
		courses t = {.b = open_accumulating(models[i], device_under_test(), 2), .model = models[i]};
		ck_session_train(t.b.session, &adamw);
		train_plan(&t, "none");
		bench_each_plan(t.b.graph, train_plan, &t);
		ck_course_free(&t.baseline);
		bench_close(&t.b);
	}
}

static ck_course train_alone(const char *model, const ck_optimizer *o, int accumulate, int steps, const char *data)
{
	ck_err err = {""};
	ck_course c;
	bench b = bench_open_model(model, device_under_test(), 1, 1);
	ck_session_train(b.session, o);
	if (accumulate > 1)
		ck_session_accumulate(b.session);
	ck_program *p = program_of(&b, "none");
	ck_memory m = memory_for(&b, p);
	ck_batch *batch = NULL;
	cr_assert(!data || ck_batch_open(b.graph, data, b.seed, &batch, &err) == CK_OK, "%s", err.text);
	ck_train_options options = {.seed = b.seed, .steps = steps, .accumulate = accumulate, .batch = batch};
	cr_assert(ck_train(p, &m, &options, NULL, &c, &err) == CK_OK, "%s", err.text);
	ck_batch_close(batch);
	ck_memory_close(&m);
	ck_program_free(p);
	bench_close(&b);
	return c;
}

/* Without dropout and statistics, half the gradient of a batch twice is its gradient, to the bit: so training goes the same
 * way, step by step. With dropout each draws its own masks. */
Test(micro_batches, two_of_one_batch_are_that_batch)
{
	static const struct {
		const char *model;
		bool alike;
	} cases[] = {{"mlp:layers=6,width=24,inputs=20,classes=7,batch=9", true},
		     {"transformer:layers=3,width=32,heads=4,seq=12,vocab=40,batch=3", true},
		     {"mlp:layers=6,width=24,inputs=20,classes=7,batch=9,dropout=0.3", false}};
	enum { STEPS = 4 };
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		for (int kind = 0; kind < CK_OPTIMIZER_KIND_COUNT; kind++) {
			ck_optimizer o = ck_optimizer_preset((ck_optimizer_kind)kind);
			ck_course one = train_alone(cases[i].model, &o, 1, STEPS, NULL);
			ck_course two = train_alone(cases[i].model, &o, 2, STEPS, NULL);
			for (int k = 0; k < STEPS; k++)
				cr_expect((one.loss[k] == two.loss[k]) == cases[i].alike &&
					      (memcmp(&one.digest[k], &two.digest[k], sizeof one.digest[k]) == 0) ==
						  cases[i].alike,
					  "ckbench train %s --optimizer %s: with --accumulate 2 step %d is %s", cases[i].model,
					  ck_optimizer_name(o.kind), k + 1, cases[i].alike ? "another" : "the same");
			ck_course_free(&one);
			ck_course_free(&two);
		}
}

/* N micro-batches of data are N batches in a row: the loss is their mean, the accuracy over all their rows. */
Test(micro_batches, take_batches_in_a_row)
{
	ck_optimizer still = {CK_SGD, .lr = 0};
	ck_course one = train_alone("mlp:layers=2,width=8,batch=100", &still, 1, 12, "digits");
	ck_course four = train_alone("mlp:layers=2,width=8,batch=100", &still, 4, 3, "digits");
	cr_expect(one.rows == 100 && four.rows == 400 && four.accuracy_steps == 3);
	for (int k = 0; k < 3; k++) {
		const double *l = one.loss + 4 * k;
		const int64_t *r = one.right + 4 * k;
		cr_expect(fabs(four.loss[k] - (l[0] + l[1] + l[2] + l[3]) / 4) < 1e-12, "step %d: loss %.17g", k + 1,
			  four.loss[k]);
		cr_expect(four.right[k] == r[0] + r[1] + r[2] + r[3], "step %d: %lld right", k + 1, (long long)four.right[k]);
	}
	ck_course_free(&one);
	ck_course_free(&four);
}
