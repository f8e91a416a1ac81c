/* What "within noise" lets pass, and what it does not: a device whose sums come in any order is made of one whose do not by a hook, which
 * adds noise of a known size to what products make, another one in each run; and on top of that something is spoiled. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/run/noise.h"
#include "harness/run/program.h"
#include "kernels/alloc.h"
#include "suite/support.h"

TestSuite(noise, .init = device_or_skip);

/* ---- the hook ------------------------------------------------------------------------------------------------------------- */

typedef struct meddler meddler;

struct meddler {
	const bench *b;
	double noise;                                           /* relative size; 0: none */
	uint64_t random;                                        /* the noise's own stream, which goes on from run to run */
	void (*spoil)(meddler *m, ck_tensor_desc t, double *x); /* of the gradient named; NULL: nothing */
	const char *name;                                       /* that parameter */
	double by;
	bool other_draws, counts; /* dropout draws other numbers; a counter counts one more */
};

/* Even in -1 to 1. splitmix64: Steele, Lea and Flood, OOPSLA 2014. */
static double draw(meddler *m)
{
	uint64_t z = m->random += UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (double)((z ^ z >> 31) >> 11) * 0x1p-52 - 1;
}

typedef void change(meddler *m, ck_tensor_desc t, double *x);

static void add_noise(meddler *m, ck_tensor_desc t, double *x)
{
	for (int64_t i = 0; i < ck_shape_count(t.shape); i++)
		x[i] *= 1 + m->noise * draw(m);
}

/* A tensor in device memory, changed. */
static void change_tensor(meddler *m, change *how, ck_tensor_desc t, void *at)
{
	const bench *b = m->b;
	int64_t n = ck_shape_count(t.shape);
	size_t bytes = (size_t)n * ck_dtype_size(t.dtype);
	void *host = ck_alloc(1, bytes);
	double *x = ck_alloc((size_t)n, sizeof *x);
	b->backend->read(b->device, host, at, bytes);
	for (int64_t i = 0; i < n; i++)
		x[i] = ck_element_get(t.dtype, host, i);
	how(m, t, x);
	for (int64_t i = 0; i < n; i++)
		ck_element_put(t.dtype, host, i, x[i]);
	b->backend->write(b->device, at, host, bytes);
	free(host);
	free(x);
}

static bool before(void *user, const ck_call *c, ck_args *a, ck_step *step)
{
	meddler *m = user;
	(void)c, (void)step;
	a->step += m->other_draws;
	return true;
}

static void count_once_more(meddler *m, ck_tensor_desc t, double *x)
{
	(void)m, (void)t;
	x[0]++;
}

static void after(void *user, const ck_call *c, const ck_args *a, ck_step *step)
{
	meddler *m = user;
	const ck_op_info *op = &m->b->graph->ops[c->id];
	bool product = op->desc.kind == CK_LINEAR || op->desc.kind == CK_CONV2D;
	(void)step;
	if (m->noise > 0 && product && c->code == 'F')
		change_tensor(m, add_noise, op->desc.out[0], a->out[0]);
	for (int i = 0; i < op->desc.nin; i++) {
		if (c->code == 'F' && m->counts && a->state[i] && op->desc.in[i].dtype == CK_I32)
			change_tensor(m, count_once_more, op->desc.in[i], a->state[i]);
		if (c->code == 'F' || !a->din[i])
			continue;
		if (m->noise > 0 && product)
			change_tensor(m, add_noise, ck_op_din(&op->desc, i), a->din[i]);
		if (m->spoil && !strcmp(m->b->graph->values[op->in[i]].name, m->name))
			change_tensor(m, m->spoil, ck_op_din(&op->desc, i), a->din[i]);
	}
}

/* ---- what is spoiled ------------------------------------------------------------------------------------------------------ */

static change scale, one_element, one_not_a_number, zero_all;

static void scale(meddler *m, ck_tensor_desc t, double *x)
{
	for (int64_t i = 0; i < ck_shape_count(t.shape); i++)
		x[i] *= m->by;
}

/* By a part of the tensor's L2 norm. */
static void one_element(meddler *m, ck_tensor_desc t, double *x)
{
	double sum = 0;
	for (int64_t i = 0; i < ck_shape_count(t.shape); i++)
		sum += x[i] * x[i];
	x[ck_shape_count(t.shape) / 2] += m->by * sqrt(sum);
}

static void one_not_a_number(meddler *m, ck_tensor_desc t, double *x)
{
	(void)m;
	x[ck_shape_count(t.shape) - 1] = NAN;
}

static void zero_all(meddler *m, ck_tensor_desc t, double *x)
{
	(void)m;
	memset(x, 0, (size_t)ck_shape_count(t.shape) * sizeof *x);
}

/* ---- one comparison ------------------------------------------------------------------------------------------------------- */

static ck_outcome run_with(meddler *m, const ck_program *p, bench *b, ck_noise *noise)
{
	const ck_hook hook = {.user = m, .before = before, .after = after};
	ck_err err = {""};
	ck_outcome o;
	m->b = b;
	bench_room(b, p);
	cr_assert(ck__outcome_take(p, &b->memory, b->seed, &hook, noise, &o, &err) == CK_OK, "%s", err.text);
	return o;
}

/* The baseline's runs of plan none with noise of that size; `last`, if not NULL, is the last of them instead. */
static ck_outcome run_baseline(bench *b, ck_noise *noise, double size, meddler *last)
{
	meddler m = {.noise = size};
	ck_schedule s = bench_plan(b, "none");
	ck_program *p = bench_program(b, &s);
	ck_outcome first = {0};
	for (int k = 0; k < CK_NOISE_RUNS; k++) {
		ck_outcome o = run_with(last && k == CK_NOISE_RUNS - 1 ? last : &m, p, b, noise);
		ck_noise_add(noise, &o);
		if (k == 0)
			first = o;
		else
			ck_outcome_free(&o);
	}
	cr_expect(ck_noise_runs(noise) == CK_NOISE_RUNS);
	ck_program_free(p);
	ck_schedule_free(&s);
	return first;
}

static ck_verdict run_plan(bench *b, ck_noise *noise, const ck_outcome *baseline, const char *plan, meddler *m,
			   ck_noise_found *found, ck_err *why)
{
	ck_schedule s = bench_plan(b, plan);
	ck_program *p = bench_program(b, &s);
	ck_outcome o = run_with(m, p, b, noise);
	ck_verdict verdict = ck_noise_compare(noise, baseline, &o, found, why);
	ck_outcome_free(&o);
	ck_program_free(p);
	ck_schedule_free(&s);
	return verdict;
}

/* ---- verdicts ------------------------------------------------------------------------------------------------------------- */

#define MLP "mlp:layers=3,width=96,inputs=20,classes=5,batch=12,dropout=0.1,tally=1"
static const double NOISE = 1e-6, ULP = 0x1p-23;
static const uint64_t OTHER = 0x1234567890; /* elsewhere in the noise's stream than the baseline */

static const struct {
	double baseline;
	meddler last, plan;
	ck_verdict verdict;
	const char *says;
} cases[] = {
    {0, {0}, {0}, CK_BITWISE, ""},
    {NOISE, {0}, {.noise = NOISE, .random = OTHER}, CK_WITHIN_NOISE, ""},
    /* noise in none but the first, which is not to be had: the first is what they all differ from */
    {NOISE, {0}, {0}, CK_WITHIN_NOISE, ""},
    {NOISE, {0}, {.noise = 100 * NOISE, .random = OTHER}, CK_PARITY_FAILED, "its 5 runs differ by at most"},
    {NOISE,
     {0},
     {.noise = NOISE, .random = OTHER, .spoil = scale, .name = "fc2.weight", .by = 1.001},
     CK_PARITY_FAILED,
     "the gradient of 'fc2.weight' differs from plan none's by 0.001 of its L2 norm; its 5 runs"},
    {NOISE,
     {0},
     {.noise = NOISE, .random = OTHER, .spoil = zero_all, .name = "fc1.bias"},
     CK_PARITY_FAILED,
     "the gradient of 'fc1.bias' differs from plan none's by 1 of its"},
    /* lost in the L2 norm of 9216 elements, but not among the elements themselves */
    {NOISE,
     {0},
     {.noise = NOISE, .random = OTHER, .spoil = one_element, .name = "fc2.weight", .by = 1.5e-6},
     CK_PARITY_FAILED,
     "of its largest element, in one element; its 5 runs"},
    {NOISE,
     {0},
     {.noise = NOISE, .random = OTHER, .spoil = one_not_a_number, .name = "fc3.weight"},
     CK_PARITY_FAILED,
     "the gradient of 'fc3.weight' differs from plan none's by nan"},
    {NOISE, {0}, {.noise = NOISE, .random = OTHER, .other_draws = true}, CK_PARITY_FAILED, "random stream differs"},
    {NOISE, {0}, {.noise = NOISE, .random = OTHER, .counts = true}, CK_PARITY_FAILED, "which is of whole numbers, differs"},
    /* a floor that is 0 */
    {0, {0}, {.spoil = scale, .name = "fc3.bias", .by = 1 + ULP}, CK_WITHIN_NOISE, ""},
    {0, {0}, {.spoil = scale, .name = "fc3.bias", .by = 1 + 8 * ULP}, CK_PARITY_FAILED, "'fc3.bias'"},
    /* a baseline that is no measure */
    {NOISE,
     {.noise = NOISE, .random = OTHER, .spoil = one_not_a_number, .name = "fc3.weight"},
     {.noise = NOISE, .random = 2 * OTHER},
     CK_PROVES_NOTHING,
     "in one of 5 runs of the baseline 'fc3.weight' has what is not finite"},
    {100, {0}, {.noise = 100, .random = OTHER}, CK_PROVES_NOTHING, "by as much as its gradients are large"},
};

Test(noise, verdicts, .timeout = 60)
{
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		bench b = bench_open_model(MLP, device_under_test(), 1, 1);
		ck_noise *noise = ck_noise_open(b.graph, false);
		meddler last = cases[i].last, plan = cases[i].plan;
		ck_outcome baseline = run_baseline(&b, noise, cases[i].baseline, last.noise > 0 ? &last : NULL);
		ck_err why = {""};
		ck_noise_found found;
		ck_verdict verdict = run_plan(&b, noise, &baseline, "none", &plan, &found, &why);
		cr_expect(verdict == cases[i].verdict, "case %zu, ckbench parity %s: %s, not %s: %s", i, MLP,
			  ck_verdict_names[verdict], ck_verdict_names[cases[i].verdict], why.text);
		cr_expect(strstr(why.text, cases[i].says) && !!*why.text == !!*cases[i].says,
			  "case %zu: \"%s\" instead of \"%s\"", i, why.text, cases[i].says);
		bool judged = verdict == CK_WITHIN_NOISE || strstr(why.text, "is allowed");
		cr_expect((found.tensor != CK_NONE) == judged, "case %zu: tensor %d", i, found.tensor);
		cr_expect(verdict != CK_WITHIN_NOISE ||
			      (found.difference > 0 && found.difference <= found.allowed && found.floor < found.allowed),
			  "case %zu: %g of %g", i, found.difference, found.allowed);
		ck_outcome_free(&baseline);
		ck_noise_close(noise);
		bench_close(&b);
	}
}

/* A floor of 0 leaves 4 roundings of the narrowest type in which the graph stores or multiplies. */
Test(noise, roundings)
{
	static const struct {
		ck_dtype low;
		bool tf32;
		double u;
	} tried[] = {
	    {CK_DTYPE_NONE, false, 0x1p-24}, {CK_DTYPE_NONE, true, 0x1p-11}, {CK_F16, false, 0x1p-11}, {CK_BF16, true, 0x1p-8}};
	for (size_t i = 0; i < sizeof tried / sizeof *tried; i++)
		for (int beyond = 0; beyond < 2; beyond++) {
			bench b = bench_open_as(MLP, (ck_build_options){.low = tried[i].low}, device_under_test(), 1, 1);
			ck_noise *noise = ck_noise_open(b.graph, tried[i].tf32);
			meddler m = {.spoil = scale, .name = "fc3.weight", .by = 1 + (beyond ? 6 : 2) * tried[i].u};
			ck_outcome baseline = run_baseline(&b, noise, 0, NULL);
			ck_err why = {""};
			ck_noise_found found;
			ck_verdict verdict = run_plan(&b, noise, &baseline, "none", &m, &found, &why);
			cr_expect(verdict == (beyond ? CK_PARITY_FAILED : CK_WITHIN_NOISE), "case %zu, %d roundings: %s: %s", i,
				  beyond ? 6 : 2, ck_verdict_names[verdict], why.text);
			ck_outcome_free(&baseline);
			ck_noise_close(noise);
			bench_close(&b);
		}
}

/* ---- plans ---------------------------------------------------------------------------------------------------------------- */

static const struct {
	const char *model;
	ck_dtype low;
} models[] = {
    {"mlp:layers=4,width=24,inputs=20,classes=5,batch=9,dropout=0.2", CK_DTYPE_NONE},
    {"resnet18:image=32,batch=2,classes=10,width=4", CK_DTYPE_NONE},
    {"transformer:layers=2,width=24,heads=3,seq=8,vocab=20,batch=2,dropout=0.1", CK_DTYPE_NONE},
    {"resnet18:image=32,batch=2,classes=10,width=4", CK_BF16},
    {"transformer:layers=2,width=24,heads=3,seq=8,vocab=20,batch=2,dropout=0.1", CK_BF16},
    {"transformer:layers=2,width=24,heads=3,seq=8,vocab=20,batch=2,dropout=0.1", CK_F16},
};

/* Noise in first forwards, recomputes and backwards alike, each time another: right plans are within it, and one with a gradient that is
 * a tenth too large is not, in any precision. */
Test(noise, plans, .timeout = 120)
{
	static const char *const plans[] = {"none", "uniform:2", "stages"};
	for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
		bench b = bench_open_as(models[i].model, (ck_build_options){.low = models[i].low}, device_under_test(), 1, 1);
		ck_noise *noise = ck_noise_open(b.graph, false);
		ck_outcome baseline = run_baseline(&b, noise, NOISE, NULL);
		ck_value last = b.graph->ops[b.graph->values[b.graph->loss].producer].in[0];
		const ck_op_info *head = &b.graph->ops[b.graph->values[last].producer];
		const char *weight = b.graph->values[head->in[1]].kind == CK_PARAM ? b.graph->values[head->in[1]].name : NULL;
		for (size_t k = 0; k < sizeof plans / sizeof *plans; k++) {
			meddler right = {.noise = NOISE, .random = OTHER + k};
			meddler wrong = {
			    .noise = NOISE, .random = OTHER + k, .spoil = weight ? scale : NULL, .name = weight, .by = 1.1};
			ck_err why = {""};
			ck_noise_found found;
			cr_expect(run_plan(&b, noise, &baseline, plans[k], &right, &found, &why) == CK_WITHIN_NOISE,
				  "ckbench parity %s --plans %s --amp %s: %s", models[i].model, plans[k],
				  ck_dtype_name(models[i].low), why.text);
			cr_expect(!weight || run_plan(&b, noise, &baseline, plans[k], &wrong, &found, &why) == CK_PARITY_FAILED,
				  "ckbench parity %s --plans %s --amp %s: passed with '%s' a tenth too large", models[i].model,
				  plans[k], ck_dtype_name(models[i].low), weight);
		}
		ck_outcome_free(&baseline);
		ck_noise_close(noise);
		bench_close(&b);
	}
}

/* A forward alone: within the noise of the baseline's forward, and what it counts in every bit. */
Test(noise, forward_alone, .timeout = 60)
{
	static const struct {
		meddler m;
		ck_verdict verdict;
		const char *says;
	} tried[] = {
	    {{.noise = NOISE, .random = OTHER}, CK_WITHIN_NOISE, ""},
	    {{.noise = 1000 * NOISE, .random = OTHER}, CK_PARITY_FAILED, "after the forward alone, the loss, 'loss' differs"},
	    {{.noise = NOISE, .random = OTHER, .counts = true}, CK_PARITY_FAILED, "after the forward alone, buffer"},
	    {{.noise = NOISE, .random = OTHER, .other_draws = true}, CK_PARITY_FAILED, "random stream"},
	};
	bench b = bench_open_model(MLP, device_under_test(), 1, 1);
	ck_noise *noise = ck_noise_open(b.graph, false);
	ck_outcome baseline = run_baseline(&b, noise, NOISE, NULL);
	const ck_workspaces w = ck_session_workspaces(b.session);
	ck_schedule s = {0};
	ck_err err = {""};
	cr_assert(ck_forward_only(b.graph, &w, &s, &err) == CK_OK, "%s", err.text);
	ck_program *p = bench_program(&b, &s);
	for (size_t i = 0; i < sizeof tried / sizeof *tried; i++) {
		meddler m = tried[i].m;
		ck_err why = {""};
		ck_outcome o = run_with(&m, p, &b, noise);
		ck_verdict verdict = ck_noise_compare_forward(noise, &baseline, &o, &why);
		cr_expect(verdict == tried[i].verdict && strstr(why.text, tried[i].says), "case %zu: %s, \"%s\"", i,
			  ck_verdict_names[verdict], why.text);
		ck_outcome_free(&o);
	}
	ck_program_free(p);
	ck_schedule_free(&s);
	ck_outcome_free(&baseline);
	ck_noise_close(noise);
	bench_close(&b);
}
