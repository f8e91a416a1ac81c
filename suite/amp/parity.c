/* Whole models under mixed precision: every plan gives the bits of plan none, twice the same; and the gradients are the right ones: near the
 * reference's with the same roundings, and near those of float64 without any.
 *
 * How near: each 16-bit result is off by at most u = 2^-8 (bf16) or 2^-11 (fp16) of itself, half of the distance between neighbours, and
 * each gradient has come through such results one after the other, forward and backward: to first order n u, where n is how many
 * lie on the longest way there and back. That is the bound, per tensor, on the norm of the difference against the gradient's norm.
 *
 * Where BatchNorm puts all values around ReLU's corner, and max-pools have others, roundings take about n u of the elements across one:
 * these lose their gradient, or gain it, or pass it on to another, which changes the norm by the square root of their share, at
 * most sqrt(2 n u). That says much less, but a gradient that is not cast, cast twice or taken for another is off by its own size. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/alloc.h"
#include "suite/support.h"

TestSuite(parity, .init = device_or_skip);

static const ck_dtype lows[] = {CK_BF16, CK_F16};
static const char *const amps[] = {"bf16", "fp16"};

/* ---- plans --------------------------------------------------------------------------------------------------------------- */

static const char *const models[] = {
    "mlp:layers=4,width=24,inputs=20,classes=7,batch=9,dropout=0.3",
    "mlp:layers=4,width=17,inputs=5,classes=3,batch=5,activation=gelu,dropout=0.1",
    "mlp:layers=4,width=16,inputs=8,classes=4,batch=8,inplace=1,tally=1",
    "resnet20:image=8,batch=4,width=8,dropout=0.2",
    "cnn:depth=18,image=32,batch=2,classes=10,width=4",
    "vgg11:image=32,batch=2,classes=10,width=4,dropout=0.1",
    "transformer:layers=2,width=32,heads=4,seq=12,vocab=40,batch=3",
    "transformer:layers=3,width=20,heads=4,seq=11,vocab=40,batch=3,dropout=0.1",
};
enum { MODELS = sizeof models / sizeof *models };

typedef struct tally {
	bench b;
	const char *model, *device, *amp;
	int threads, plans;
	ck_outcome baseline;
} tally;

static void check_plan(void *user, const char *plan)
{
	tally *t = user;
	ck_schedule s = bench_plan(&t->b, plan);
	ck_program *p = bench_program(&t->b, &s);
	if (t->plans++ == 0)
		t->baseline = bench_outcome(&t->b, p);
	ck_outcome o = bench_outcome(&t->b, p);
	ck_err why = {0};
	cr_expect(ck_outcome_compare(t->b.graph, &t->baseline, &o, &why) == CK_BITWISE,
		  "ckbench parity %s --plans %s --device %s --amp %s --threads %d: %s", t->model, plan, t->device, t->amp,
		  t->threads, why.text);
	cr_expect(o.live_peak == p->trace.peak, "%s %s: live peak %zu, predicted %zu", t->model, plan, o.live_peak,
		  p->trace.peak);
	ck_outcome_free(&o);
	ck_program_free(p);
	ck_schedule_free(&s);
}

/* Plan none comes first, and is run twice. */
static void check_model(const char *model, const char *device, int threads, bool no_fusion)
{
	for (int k = 0; k < 2; k++) {
		printf("# ckbench parity %s --device %s --amp %s --threads %d%s\n", model, device, amps[k], threads,
		       no_fusion ? " --no-fusion" : "");
		tally t = {.model = model, .device = device, .amp = amps[k], .threads = threads};
		t.b = bench_open_as(model, (ck_build_options){.low = lows[k], .no_fusion = no_fusion}, device, threads, 1);
		bench_each_plan(t.b.graph, check_plan, &t);
		ck_outcome_free(&t.baseline);
		bench_close(&t.b);
	}
}

Test(parity, every_plan_on_one_thread, .timeout = 300)
{
	for (int m = 0; m < MODELS; m++)
		check_model(models[m], device_under_test(), 1, false);
}

Test(parity, every_plan_on_two_threads, .timeout = 300)
{
	device_is_cpu_or_skip();
	for (int m = 0; m < MODELS; m += 2)
		check_model(models[m], device_under_test(), 2, m / 2 % 2);
}

Test(parity, every_plan_on_the_reference, .timeout = 300)
{
	check_model("mlp:layers=3,width=9,inputs=5,classes=3,batch=5,activation=gelu,dropout=0.1", "ref", 1, false);
	check_model("transformer:layers=2,width=12,heads=3,seq=5,vocab=11,batch=2,dropout=0.2", "ref", 1, false);
	check_model("transformer:layers=1,width=12,heads=3,seq=5,vocab=11,batch=2,dropout=0.2", "ref", 1, true);
}

/* ---- gradients ----------------------------------------------------------------------------------------------------------- */

typedef struct gradients {
	bench b;
	ck_program *p;
	double loss;
} gradients;

static gradients gradients_of(const char *model, const char *device, ck_dtype low)
{
	gradients g = {.b = bench_open_as(model, (ck_build_options){.low = low}, device, 1, 1)};
	ck_schedule s = bench_plan(&g.b, "none");
	g.p = bench_program(&g.b, &s);
	ck_outcome o = bench_outcome(&g.b, g.p);
	g.loss = o.loss;
	ck_outcome_free(&o);
	ck_schedule_free(&s);
	return g;
}

static void gradients_free(gradients *g)
{
	ck_program_free(g->p);
	bench_close(&g->b);
}

/* A parameter's or input's gradient by name, as doubles; NULL when there is none. */
static double *read_gradient(const gradients *g, const char *name)
{
	ck_value v = ck_graph_value(g->b.graph, name);
	void *gradient = v == CK_NONE ? NULL : ck_program_gradient(g->p, &g->b.memory, v);
	if (!gradient)
		return NULL;
	const ck_value_info *info = &g->b.graph->values[v];
	int64_t n = ck_shape_count(info->shape);
	double *values = ck_alloc((size_t)n, sizeof *values);
	void *host = ck_alloc(1, info->bytes);
	g->b.backend->read(g->b.device, host, gradient, info->bytes);
	for (int64_t e = 0; e < n; e++)
		values[e] = ck_element_get(info->dtype, host, e);
	free(host);
	return values;
}

static double norm(const double *a, const double *b, int64_t n)
{
	double sum = 0;
	for (int64_t e = 0; e < n; e++)
		sum += (a[e] - (b ? b[e] : 0)) * (a[e] - (b ? b[e] : 0));
	return sqrt(sum);
}

/* 16-bit results on the longest way through the graph, there and back. */
static int roundings(const ck_graph *g)
{
	int *deep = ck_alloc((size_t)g->nvalues, sizeof *deep), most = 0;
	for (int o = 0; o < g->nops; o++) {
		const ck_op_info *op = &g->ops[o];
		int d = 0;
		for (int i = 0; i < op->desc.nin; i++)
			d = deep[op->in[i]] > d ? deep[op->in[i]] : d;
		deep[op->out[0]] = d + ck_dtype_half(op->desc.out[0].dtype);
		most = deep[op->out[0]] > most ? deep[op->out[0]] : most;
	}
	free(deep);
	return 2 * most;
}

/* Not those that cancel: a bias before a BatchNorm in training, and what the parts of c_attn's bias add to the keys. */
static bool cancels(const char *name, double size, double largest)
{
	bool bias = strstr(name, "conv") && strstr(name, ".bias");
	return bias || size < 1e-9 * largest;
}

static void compare(const char *model, const char *amp, const char *what, const gradients *want, const gradients *got,
		    double bound)
{
	const ck_graph *g = want->b.graph;
	double largest = 0, worst = 0;
	int compared = 0;
	for (int pass = 0; pass < 2; pass++)
		for (int v = 0; v < g->nvalues; v++) {
			const char *name = g->values[v].name;
			int64_t n = ck_shape_count(g->values[v].shape);
			double *a =
			    g->values[v].kind == CK_PARAM || g->values[v].kind == CK_INPUT ? read_gradient(want, name) : NULL;
			double *b = a ? read_gradient(got, name) : NULL, size = a ? norm(a, NULL, n) : 0;
			cr_assert(!a || b, "%s: '%s' has no gradient", model, name);
			if (pass == 0)
				largest = size > largest ? size : largest;
			else if (a && !cancels(name, size, largest)) {
				double off = norm(a, b, n) / size;
				compared++;
				worst = off > worst ? off : worst;
				cr_expect(off <= bound,
					  "%s --amp %s: '%s': gradient %.3g off from %s, of its norm %.3g; bound %.3g", model,
					  amp, name, off, what, size, bound);
			}
			free(a);
			free(b);
		}
	double loss = fabs(got->loss - want->loss) / want->loss;
	cr_expect(loss <= bound && compared > 2, "%s --amp %s: loss %.9g, %s %.9g", model, amp, got->loss, what, want->loss);
	if (getenv("CK_VERBOSE"))
		fprintf(stderr, "%s --amp %s: from %s: gradients at most %.3g of their norm, loss %.3g; bound %.3g\n", model,
			amp, what, worst, loss, bound);
}

static const char *const judged[] = {
    "mlp:layers=4,width=24,inputs=20,classes=7,batch=9",
    "mlp:layers=4,width=17,inputs=5,classes=3,batch=5,activation=gelu,dropout=0.1",
    "resnet20:image=8,batch=16,width=8",
    "vgg11:image=32,batch=8,classes=10,width=4",
    "transformer:layers=2,width=32,heads=4,seq=12,vocab=40,batch=3",
    "transformer:layers=2,width=32,heads=4,seq=12,vocab=40,batch=3,dropout=0.1",
};

Test(parity, gradients_are_right, .timeout = 300)
{
	for (size_t m = 0; m < sizeof judged / sizeof *judged; m++) {
		gradients exact = gradients_of(judged[m], "ref", CK_DTYPE_NONE);
		for (int k = 0; k < 2; k++) {
			gradients ref = gradients_of(judged[m], "ref", lows[k]),
				  cpu = gradients_of(judged[m], device_under_test(), lows[k]);
			double bound = roundings(ref.b.graph) * ldexp(1, lows[k] == CK_BF16 ? -8 : -11);
			if (strstr(judged[m], "image"))
				bound = sqrt(2 * bound);
			compare(judged[m], amps[k], "the reference's", &ref, &cpu, bound);
			if (!strstr(judged[m], "dropout")) /* masks go by an op's number, and casts are ops */
				compare(judged[m], amps[k], "float64's", &exact, &cpu, bound);
			gradients_free(&ref);
			gradients_free(&cpu);
		}
		gradients_free(&exact);
	}
}
