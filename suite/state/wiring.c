/* Gradients where some parameters are frozen or used twice: every trainable parameter has its gradient, once, with the bits of plan
 * none. By hand: ckbench parity mlp:freeze=1 and ckbench parity gpt-tiny. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "harness/run/program.h"
#include "kernels/alloc.h"
#include "suite/support.h"

TestSuite(wiring, .init = device_or_skip);

typedef struct wiring {
	bench b;
	const char *what;
	ck_outcome baseline;
	int plans;
} wiring;

static void *host_copy(const bench *b, const void *device, size_t bytes)
{
	void *host = ck_alloc(1, bytes);
	b->backend->read(b->device, host, device, bytes);
	return host;
}

/* ---- frozen -------------------------------------------------------------------------------------------------------------- */

static bool is_zero(const unsigned char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (bytes[i])
			return false;
	return true;
}

static void check_gradients(wiring *t, const ck_program *p, const char *plan)
{
	for (int v = 0; v < t->b.graph->nvalues; v++) {
		const ck_value_info *i = &t->b.graph->values[v];
		void *gradient = ck_program_gradient(p, &t->b.memory, v);
		if (i->kind != CK_PARAM)
			continue;
		cr_expect(i->trainable == (gradient != NULL), "%s, plan %s: '%s' has %s gradient", t->what, plan, i->name,
			  gradient ? "a" : "no");
		if (!gradient)
			continue;
		unsigned char *host = host_copy(&t->b, gradient, i->bytes);
		cr_expect(!is_zero(host, i->bytes), "%s, plan %s: the gradient of '%s' is zero", t->what, plan, i->name);
		free(host);
	}
}

static void check_frozen(void *user, const char *plan)
{
	wiring *t = user;
	ck_schedule s = bench_plan(&t->b, plan);
	ck_program *p = bench_program(&t->b, &s);
	ck_outcome o = bench_outcome(&t->b, p);
	ck_err why = {0};
	check_gradients(t, p, plan);
	if (t->plans++ == 0)
		t->baseline = bench_outcome(&t->b, p);
	cr_expect(ck_outcome_compare(t->b.graph, &t->baseline, &o, &why) == CK_BITWISE, "%s, plan %s: %s", t->what, plan,
		  why.text);
	ck_outcome_free(&o);
	ck_program_free(p);
	ck_schedule_free(&s);
}

enum { LAYERS = 6 };

/* Linear layers with GELUs between; layer `frozen` (from 1 on) is frozen, 0 for none. No input gradient, as in training. */
static ck_graph *chain(int frozen, int and_up_to)
{
	ck_graph *g = ck_graph_new(CK_F32);
	ck_value x = ck_input(g, "x", ck_dims(2, (int64_t)5, (int64_t)8), false);
	for (int i = 1; i <= LAYERS; i++) {
		char name[16], weight[24], bias[24];
		snprintf(name, sizeof name, "fc%d", i);
		snprintf(weight, sizeof weight, "fc%d.weight", i);
		snprintf(bias, sizeof bias, "fc%d.bias", i);
		ck_value w = ck_param(g, weight, ck_dims(2, (int64_t)8, (int64_t)8), (ck_init){CK_INIT_NORMAL, 0.4});
		ck_value b = ck_param(g, bias, ck_dims(1, (int64_t)8), (ck_init){CK_INIT_NORMAL, 0.4});
		if (i >= frozen && i <= and_up_to) {
			ck_freeze(g, w);
			ck_freeze(g, b);
		}
		x = ck_linear(g, name, x, w, b);
		snprintf(name, sizeof name, "act%d", i);
		x = i < LAYERS ? ck_activation(g, name, x, CK_ACT_GELU_TANH) : x;
	}
	ck_value loss = ck_cross_entropy(g, "loss", x, ck_input_int(g, "target", ck_dims(1, (int64_t)5), 8));
	ck_err err = {0};
	cr_assert(ck_graph_finish(g, loss, true, &err) == CK_OK, "%s", err.text);
	return g;
}

/* Gradients of the same names are the same in two graphs, as far as both have them. */
static void expect_same_gradients(const wiring *a, const wiring *b)
{
	int compared = 0;
	for (int v = 0; v < b->b.graph->nvalues; v++) {
		ck_value u = ck_graph_value(a->b.graph, b->b.graph->values[v].name);
		if (!ck_value_trained(&b->b.graph->values[v]))
			continue;
		cr_expect(memcmp(&a->baseline.value[u], &b->baseline.value[v], sizeof(ck_digest)) == 0,
			  "%s: the gradient of '%s' is another than with nothing frozen", b->what, b->b.graph->values[v].name);
		compared++;
	}
	cr_expect(compared > 0, "%s: nothing to compare", b->what);
}

static void run_all_plans(wiring *t)
{
	bench_each_plan(t->b.graph, check_frozen, t);
}

static void close_wiring(wiring *t)
{
	ck_outcome_free(&t->baseline);
	bench_close(&t->b);
}

/* Each layer in turn, so that under some plan it is the first of a segment; then the first few together, whose outputs need no
 * gradient, so that a whole segment may have no backward. */
Test(wiring, a_frozen_layer_costs_no_other_its_gradient, .timeout = 60)
{
	wiring whole = {.b = bench_open(chain(0, 0), device_under_test(), 2, 1), .what = "nothing frozen"};
	run_all_plans(&whole);
	for (int from = 1; from <= LAYERS; from++)
		for (int to = from; to <= (from == 1 ? LAYERS - 1 : from); to++) {
			char what[48];
			snprintf(what, sizeof what, "layers %d to %d frozen", from, to);
			wiring t = {.b = bench_open(chain(from, to), device_under_test(), 2, 1), .what = what};
			run_all_plans(&t);
			expect_same_gradients(&whole, &t);
			close_wiring(&t);
		}
	close_wiring(&whole);
}

Test(wiring, frozen_first_layers_of_models, .timeout = 120)
{
	static const char *const models[] = {
	    "mlp:layers=5,width=16,inputs=8,classes=4,batch=6,freeze=1",
	    "mlp:layers=5,width=16,inputs=8,classes=4,batch=6,inplace=1,freeze=3",
	    "resnet20:image=8,batch=4,freeze=1",
	    "resnet18:image=32,batch=2,classes=10,width=4,freeze=4",
	    "gpt-tiny:freeze=1",
	    "gpt-tiny:freeze=5",
	};
	for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
		printf("# ckbench parity %s\n", models[i]);
		wiring t = {.b = bench_open_model(models[i], device_under_test(), 2, 1), .what = models[i]};
		int frozen = 0;
		for (int v = 0; v < t.b.graph->nvalues; v++)
			frozen += t.b.graph->values[v].kind == CK_PARAM && !t.b.graph->values[v].trainable;
		cr_expect(frozen > 0, "%s: nothing is frozen", models[i]);
		run_all_plans(&t);
		close_wiring(&t);
	}
}

/* ---- tied ---------------------------------------------------------------------------------------------------------------- */

enum { VOCAB = 9, FEATURES = 6, BATCH = 2, SEQ = 5 };

static ck_value square(ck_graph *g, const char *name, ck_value x)
{
	char weight[24];
	snprintf(weight, sizeof weight, "%s.weight", name);
	ck_shape shape = ck_dims(2, (int64_t)FEATURES, (int64_t)FEATURES);
	return ck_linear(g, name, x, ck_param(g, weight, shape, (ck_init){CK_INIT_NORMAL, 0.4}), CK_NONE);
}

/* A token embedding, layers, and a head whose weight is the embedding's or its own. */
static ck_graph *language_model(bool tied)
{
	ck_graph *g = ck_graph_new(CK_F64);
	const ck_init normal = {CK_INIT_NORMAL, 0.4};
	ck_shape table = ck_dims(2, (int64_t)VOCAB, (int64_t)FEATURES), tokens = ck_dims(2, (int64_t)BATCH, (int64_t)SEQ);
	ck_value ids = ck_input_int(g, "ids", tokens, VOCAB), target = ck_input_int(g, "target", tokens, VOCAB);
	ck_value wte = ck_param(g, "wte", table, normal);
	ck_value x = ck_embedding(g, "embedding", ids, wte, CK_NONE);
	for (int i = 0; i < 4; i++) {
		char name[16];
		snprintf(name, sizeof name, "fc%d", i);
		x = square(g, name, x);
		snprintf(name, sizeof name, "act%d", i);
		x = ck_activation(g, name, x, CK_ACT_GELU_ERF);
	}
	x = ck_linear(g, "head", x, tied ? wte : ck_param(g, "head.weight", table, normal), CK_NONE);
	ck_value loss = ck_cross_entropy(g, "loss", x, target);
	ck_err err = {0};
	cr_assert(ck_graph_finish(g, loss, true, &err) == CK_OK, "%s", err.text);
	return g;
}

static double *gradient_of(const bench *b, const ck_program *p, const char *name)
{
	ck_value v = ck_graph_value(b->graph, name);
	return host_copy(b, ck_program_gradient(p, &b->memory, v), b->graph->values[v].bytes);
}

/* The two uses apart: the head has a weight of its own, which starts as the embedding's. Sums the two gradients. */
static double *sum_of_uses(void)
{
	bench b = bench_open(language_model(false), "ref", 1, 7);
	ck_schedule s = bench_plan(&b, "none");
	ck_program *p = bench_program(&b, &s);
	ck_outcome o = bench_outcome(&b, p);
	ck_value wte = ck_graph_value(b.graph, "wte"), head = ck_graph_value(b.graph, "head.weight");
	const void **given = ck_alloc((size_t)b.graph->nvalues, sizeof *given);
	void *start = host_copy(&b, ck_program_value(p, &b.memory, wte), b.graph->values[wte].bytes);
	given[head] = start;
	ck_memory_init(&b.memory, &p->layout, b.seed, given);
	ck_outcome_free(&o);
	o = bench_outcome(&b, p);
	double *sum = gradient_of(&b, p, "head.weight"), *other = gradient_of(&b, p, "wte");
	for (int i = 0; i < VOCAB * FEATURES; i++)
		sum[i] += other[i];
	free(start);
	free(other);
	free(given);
	ck_outcome_free(&o);
	ck_program_free(p);
	ck_schedule_free(&s);
	bench_close(&b);
	return sum;
}

/* The contributions to one parameter's gradient, as they come. */
typedef struct contributions {
	const ck_graph *g;
	ck_value v;
	int n, op[8];
	bool added[8];
} contributions;

static bool note(void *user, const ck_call *c, ck_args *a, ck_step *step)
{
	contributions *k = user;
	(void)step;
	for (int i = 0; i < k->g->ops[c->id].desc.nin; i++)
		if (c->code == 'B' && k->g->ops[c->id].in[i] == k->v && a->din[i] && k->n < 8) {
			k->op[k->n] = c->id;
			k->added[k->n++] = a->acc[i];
		}
	return true;
}

static void check_contributions(wiring *t, const ck_program *p, const char *plan, const char *weight, const char *last_use,
				const char *first_use)
{
	const ck_graph *g = t->b.graph;
	contributions k = {.g = g, .v = ck_graph_value(g, weight)};
	const ck_hook hook = {.user = &k, .before = note};
	ck_err err = {0};
	ck_outcome o;
	cr_assert(ck__outcome_take(p, &t->b.memory, t->b.seed, &hook, NULL, &o, &err) == CK_OK, "%s", err.text);
	cr_expect(k.n == 2 && k.op[0] == ck_graph_op(g, last_use) && !k.added[0] && k.op[1] == ck_graph_op(g, first_use) &&
		      k.added[1],
		  "%s, plan %s: '%s' should be written by %s, then added to by %s, once each; %d contributions", t->what, plan,
		  weight, last_use, first_use, k.n);
	ck_outcome_free(&o);
}

typedef struct tied {
	wiring w;
	const double *sum;
} tied;

static void check_tied(void *user, const char *plan)
{
	tied *t = user;
	ck_schedule s = bench_plan(&t->w.b, plan);
	ck_program *p = bench_program(&t->w.b, &s);
	ck_outcome o = bench_outcome(&t->w.b, p);
	double *gradient = gradient_of(&t->w.b, p, "wte");
	for (int i = 0; i < VOCAB * FEATURES; i++)
		cr_expect(gradient[i] == t->sum[i], "plan %s: element %d of wte's gradient is %.17g, the sum of the uses %.17g",
			  plan, i, gradient[i], t->sum[i]);
	check_contributions(&t->w, p, plan, "wte", "head", "embedding");
	t->w.plans++;
	free(gradient);
	ck_outcome_free(&o);
	ck_program_free(p);
	ck_schedule_free(&s);
}

/* In float64, where a sum that is added to is the previous value plus the whole of the other (kernels/ref/ref.h): exactly. */
Test(wiring, a_tied_weight_has_the_sum_of_its_uses)
{
	double *sum = sum_of_uses();
	tied t = {.w = {.b = bench_open(language_model(true), "ref", 1, 7), .what = "tied"}, .sum = sum};
	bench_each_plan(t.w.b.graph, check_tied, &t);
	cr_expect(t.w.plans > 4);
	bench_close(&t.w.b);
	free(sum);
}

static void check_transformer(void *user, const char *plan)
{
	wiring *t = user;
	check_frozen(t, plan);
	ck_schedule s = bench_plan(&t->b, plan);
	ck_program *p = bench_program(&t->b, &s);
	bench_room(&t->b, p);
	check_contributions(t, p, plan, "wte.weight", "lm_head", "embedding");
	ck_program_free(p);
	ck_schedule_free(&s);
}

/* The transformer's, whose uses lie at both ends, in different segments. */
Test(wiring, a_tied_weight_is_formed_once_in_order, .timeout = 60)
{
	wiring t = {.b = bench_open_model("gpt-tiny:dropout=0.1", device_under_test(), 2, 1), .what = "gpt-tiny:dropout=0.1"};
	bench_each_plan(t.b.graph, check_transformer, &t);
	close_wiring(&t);
}
