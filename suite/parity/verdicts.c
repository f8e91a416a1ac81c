/* Each verdict that two outcomes can bring about, and what a gradient that is zero in every element does to it: bits that differ fail,
 * bits that cannot differ prove nothing and are not passed. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/alloc.h"
#include "suite/support.h"

TestSuite(verdicts, .init = device_or_skip);

#define MLP "mlp:layers=3,width=8,inputs=5,classes=4,batch=6"

static const float drawn = -12345; /* stands for: as it was drawn */

/* Two steps of plan none. Before each, every element of the parameter `set` becomes a value of its own. */
static const struct {
	const char *model;
	const char *set; /* NULL: none */
	float baseline, other;
	ck_verdict verdict;
	const char *zeros; /* the other's gradients that are zero in every element */
	const char *says;
} cases[] = {
    {MLP, NULL, drawn, drawn, CK_BITWISE, "", ""},
    /* dead ReLUs: fc3 sees zeros, and nothing goes further back */
    {MLP, "fc2.bias", -1e6F, -1e6F, CK_BITWISE, "x fc1.weight fc1.bias fc2.weight fc2.bias fc3.weight ", ""},
    {"mlp:layers=3,width=1,inputs=5,classes=4,batch=1,dropout=0.99", NULL, drawn, drawn, CK_BITWISE,
     "x fc1.weight fc1.bias fc2.weight fc2.bias fc3.weight ", ""},
    /* a constant loss */
    {"mlp:layers=3,width=8,inputs=5,classes=1,batch=6", NULL, drawn, drawn, CK_PROVES_NOTHING,
     "x fc1.weight fc1.bias fc2.weight fc2.bias fc3.weight fc3.bias ", "every gradient is zero"},
    {"mlp:layers=1,inputs=3,classes=1,batch=2", NULL, drawn, drawn, CK_PROVES_NOTHING, "x fc1.weight fc1.bias ",
     "every gradient is zero"},
    {MLP, "fc3.bias", INFINITY, INFINITY, CK_PROVES_NOTHING, "", "the loss is not finite"},
    /* its sums are infinity less infinity, and a NaN goes through ReLU (a gradient that alone is not finite: state/scaler.c) */
    {MLP, "fc1.bias", INFINITY, INFINITY, CK_PROVES_NOTHING, "", "the loss is not finite"},
    /* only what is compared with has to be fit for it */
    {MLP, "fc3.bias", 0, INFINITY, CK_PARITY_FAILED, "", "differs from plan none's"},
    {MLP, "fc2.bias", 0, -1e6F, CK_PARITY_FAILED, "x fc1.weight fc1.bias fc2.weight fc2.bias fc3.weight ",
     "the gradient of 'x' differs from plan none's; 8 tensors do in all"},
    {MLP, "fc3.bias", 0, 1, CK_PARITY_FAILED, "", "differs from plan none's"},
};

static void set_all(const bench *b, const ck_program *p, const char *name, float to)
{
	ck_value v = ck_graph_value(b->graph, name);
	cr_assert(v != CK_NONE, "there is no %s", name);
	int64_t n = ck_shape_count(b->graph->values[v].shape);
	float *host = ck_alloc((size_t)n, sizeof *host);
	for (int64_t i = 0; i < n; i++)
		host[i] = to;
	b->backend->write(b->device, ck_program_value(p, &b->memory, v), host, b->graph->values[v].bytes);
	free(host);
}

static ck_outcome outcome_with(bench *b, const ck_program *p, const char *set, float to)
{
	ck_outcome first = bench_outcome(b, p); /* opens the memory and draws the start values */
	if (!set || to == drawn)
		return first;
	ck_outcome_free(&first);
	set_all(b, p, set, to);
	return bench_outcome(b, p);
}

static char *names_of_zeros(const ck_graph *g, const ck_outcome *o)
{
	char *names = ck_text("%s", "");
	for (int v = 0; v < o->nvalues; v++)
		if (o->zero[v]) {
			char *longer = ck_text("%s%s ", names, g->values[v].name);
			free(names);
			names = longer;
		}
	return names;
}

Test(verdicts, each_one)
{
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		bench b = bench_open_model(cases[i].model, device_under_test(), 1, 1);
		ck_schedule s = bench_plan(&b, "none");
		ck_program *p = bench_program(&b, &s);
		ck_outcome baseline = outcome_with(&b, p, cases[i].set, cases[i].baseline);
		ck_outcome other = outcome_with(&b, p, cases[i].set, cases[i].other);
		ck_err why = {""};
		ck_verdict verdict = ck_outcome_compare(b.graph, &baseline, &other, &why);
		char *zeros = names_of_zeros(b.graph, &other);
		const char *set = cases[i].set ? cases[i].set : "nothing";
		cr_expect(verdict == cases[i].verdict, "case %zu, ckbench parity %s, %s set: %s, not %s: %s", i, cases[i].model,
			  set, ck_verdict_names[verdict], ck_verdict_names[cases[i].verdict], why.text);
		cr_expect(strstr(why.text, cases[i].says) && !!*why.text == !!*cases[i].says,
			  "case %zu, ckbench parity %s, %s set: \"%s\" instead of \"%s\"", i, cases[i].model, set, why.text,
			  cases[i].says);
		cr_expect_str_eq(zeros, cases[i].zeros, "case %zu, ckbench parity %s, %s set: zero are: %s", i, cases[i].model,
				 set, zeros);
		free(zeros);
		ck_outcome_free(&baseline);
		ck_outcome_free(&other);
		ck_program_free(p);
		ck_schedule_free(&s);
		bench_close(&b);
	}
}

/* Whatever the models do by their nature, no gradient of theirs is zero in every element: where one is, parity warns with reason. */
Test(verdicts, no_model_has_zero_gradients)
{
	char **list = parity_cases();
	for (int i = 0; list[i]; i++) {
		bench b = bench_open_model(list[i], device_under_test(), 1, 1);
		ck_schedule s = bench_plan(&b, "none");
		ck_program *p = bench_program(&b, &s);
		ck_outcome o = bench_outcome(&b, p);
		char *zeros = names_of_zeros(b.graph, &o);
		cr_expect(o.zeros == 0 && o.gradients > 0, "ckbench parity %s: zero are: %s", list[i], zeros);
		free(zeros);
		ck_outcome_free(&o);
		ck_program_free(p);
		ck_schedule_free(&s);
		bench_close(&b);
	}
	free_list(list);
}
