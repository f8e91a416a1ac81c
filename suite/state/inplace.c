/* ReLU in place on demand: it lies over its input under every plan and gives the bits of one that does not; where its input is read
 * later, by whatever it is, the schedule is refused, and says by what. By hand: ckbench parity mlp:inplace=1. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "harness/run/program.h"
#include "suite/support.h"

TestSuite(inplace, .init = device_or_skip);

/* ---- under every plan ---------------------------------------------------------------------------------------------------- */

typedef struct subject {
	bench b;
	const char *model;
	ck_outcome baseline;
	int plans, ends; /* ends: plans one of whose recomputed segments ends with an op in place */
} subject;

/* How many ops in place there are; every call of them must lie over its input. */
static int check_places(const ck_program *p, const char *model, const char *plan)
{
	int n = 0;
	for (int i = 0; i < p->ncalls; i++) {
		const ck_call *c = &p->calls[i];
		const ck_op_info *op = &p->session->graph->ops[c->id];
		if (c->code != 'F' || !op->contract.inplace_required)
			continue;
		cr_expect(c->out[0] == c->in[0], "%s, plan %s: %s lies at %zu, its input at %zu", model, plan, op->name,
			  c->out[0], c->in[0]);
		n++;
	}
	return n;
}

/* Whether some op in place is not run again though its own input is: it makes the segment's output, which was kept. */
static bool segment_ends_in_place(const ck_program *p)
{
	const ck_graph *g = p->session->graph;
	for (int i = 0; i < p->ncalls; i++) {
		const ck_call *c = &p->calls[i];
		bool again = c->code == 'F' && c->recompute && g->ops[c->id].out[0] != g->loss;
		int reader = again ? g->values[g->ops[c->id].out[0]].readers[0] : 0;
		if (!again || !g->ops[reader].contract.inplace_required)
			continue;
		bool reader_again = false;
		for (int k = i; k < p->ncalls; k++)
			reader_again = reader_again || (p->calls[k].code == 'F' && p->calls[k].id == reader);
		if (!reader_again)
			return true;
	}
	return false;
}

static void check_plan(void *user, const char *plan)
{
	subject *t = user;
	ck_schedule s = bench_plan(&t->b, plan);
	ck_program *p = bench_program(&t->b, &s);
	ck_outcome o = bench_outcome(&t->b, p);
	ck_err why = {0};
	if (t->plans++ == 0)
		t->baseline = bench_outcome(&t->b, p);
	cr_expect(check_places(p, t->model, plan) > 0, "%s, plan %s: nothing works in place", t->model, plan);
	cr_expect(ck_outcome_compare(t->b.graph, &t->baseline, &o, &why) == CK_BITWISE, "ckbench parity %s --plans %s: %s",
		  t->model, plan, why.text);
	t->ends += segment_ends_in_place(p);
	ck_outcome_free(&o);
	ck_program_free(p);
	ck_schedule_free(&s);
}

/* The same model with plain ReLUs, none fused: other stages, the same numbers. */
static void check_against_plain(const subject *t, const char *plain)
{
	ck_err err = {0};
	ck_settings settings = {0};
	ck_graph *g = NULL;
	cr_assert(ck_settings_read(&settings, plain, &err) == CK_OK, "%s", err.text);
	settings.options = (ck_build_options){.input_grad = true, .no_fusion = true};
	cr_assert(ck_model_build(&settings, CK_F32, &g, &err) == CK_OK, "%s", err.text);
	bench b = bench_open(g, device_under_test(), 2, 1);
	ck_schedule s = bench_plan(&b, "none");
	ck_program *p = bench_program(&b, &s);
	ck_outcome o = bench_outcome(&b, p);
	for (int k = 0; k < CK_DIGEST_KINDS; k++)
		cr_expect(memcmp(&o.kind[k], &t->baseline.kind[k], sizeof o.kind[k]) == 0, "%s: %s is not that of %s", t->model,
			  ck_digest_names[k], plain);
	ck_outcome_free(&o);
	ck_program_free(p);
	ck_schedule_free(&s);
	bench_close(&b);
}

Test(inplace, is_right_under_every_plan, .timeout = 120)
{
	static const struct {
		const char *model, *plain;
	} cases[] = {
	    {"mlp:layers=6,width=24,inputs=20,classes=7,batch=9,inplace=1",
	     "mlp:layers=6,width=24,inputs=20,classes=7,batch=9"},
	    {"mlp:layers=4,width=24,inputs=20,classes=7,batch=9,dropout=0.2,inplace=1,tally=1", NULL},
	    {"resnet20:image=8,batch=4,inplace=1", NULL},
	    {"resnet50:image=32,batch=2,classes=10,width=4,inplace=1", NULL},
	    {"vgg11:image=32,batch=2,classes=10,width=4,inplace=1", "vgg11:image=32,batch=2,classes=10,width=4"},
	};
	int ends = 0;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		printf("# ckbench parity %s\n", cases[i].model);
		subject t = {.b = bench_open_model(cases[i].model, device_under_test(), 2, 1), .model = cases[i].model};
		bench_each_plan(t.b.graph, check_plan, &t);
		if (cases[i].plain)
			check_against_plain(&t, cases[i].plain);
		ends += t.ends;
		ck_outcome_free(&t.baseline);
		bench_close(&t.b);
	}
	cr_expect(ends > 0, "no segment that is recomputed ends with an op in place");
}

/* A value that is gone after its reader cannot be where a segment starts. */
Test(inplace, what_is_overwritten_is_no_cut)
{
	subject t = {
	    .b = bench_open_model("mlp:layers=4,width=8,inputs=8,classes=4,batch=4,inplace=1", device_under_test(), 1, 1)};
	const ck_graph *g = t.b.graph;
	cr_expect(g->nstages == 4, "%d stages", g->nstages);
	for (int s = 1; s < g->nstages; s++)
		cr_expect(g->ops[g->stage_first[s]].desc.kind == CK_LINEAR, "stage %d begins with %s", s,
			  g->ops[g->stage_first[s]].name);
	bench_close(&t.b);
}

/* ---- refusals ------------------------------------------------------------------------------------------------------------ */

enum { ROWS = 4, WIDTH = 3 };

static ck_value layer(ck_graph *g, const char *name, ck_value x)
{
	char weight[24];
	snprintf(weight, sizeof weight, "%s.weight", name);
	ck_shape shape = ck_dims(2, (int64_t)WIDTH, (int64_t)WIDTH);
	return ck_linear(g, name, x, ck_param(g, weight, shape, (ck_init){CK_INIT_NORMAL, 0.5}), CK_NONE);
}

/* fc1 ─▶ fc2 ─▶ relu in place ─▶ fc3 */
static ck_value chain(ck_graph *g, ck_value x)
{
	x = layer(g, "fc2", layer(g, "fc1", x));
	return layer(g, "fc3", ck_activation_inplace(g, "relu", x, CK_ACT_RELU));
}

/* fc1 ─┬─▶ relu in place ─▶ + ; the add reads fc1 after it is gone.
 *      └───────────────────┘ */
static ck_value add_after(ck_graph *g, ck_value x)
{
	x = layer(g, "fc1", x);
	return ck_add(g, "add", ck_activation_inplace(g, "relu", x, CK_ACT_RELU), x);
}

/* fc1 ─┬─▶ branch ──────────▶ + ; the branch has run by then, and its backward reads nothing of fc1 or does.
 *      └─▶ relu in place ─────┘ */
static ck_value dropout_before(ck_graph *g, ck_value x)
{
	x = layer(g, "fc1", x);
	ck_value branch = ck_dropout(g, "drop", x, 0.25);
	return ck_add(g, "add", branch, ck_activation_inplace(g, "relu", x, CK_ACT_RELU));
}

static ck_value gelu_before(ck_graph *g, ck_value x)
{
	x = layer(g, "fc1", x);
	ck_value branch = ck_activation(g, "gelu", x, CK_ACT_GELU_TANH);
	return ck_add(g, "add", branch, ck_activation_inplace(g, "relu", x, CK_ACT_RELU));
}

typedef ck_value body(ck_graph *g, ck_value x);

static ck_status build(body *make, ck_graph **graph, ck_err *err)
{
	ck_graph *g = ck_graph_new(CK_F32);
	ck_value x = ck_input(g, "x", ck_dims(2, (int64_t)ROWS, (int64_t)WIDTH), false);
	x = layer(g, "last", make(g, x));
	ck_value loss = ck_cross_entropy(g, "loss", x, ck_input_int(g, "target", ck_dims(1, (int64_t)ROWS), WIDTH));
	ck_status status = ck_graph_finish(g, loss, false, err);
	if (status != CK_OK)
		ck_graph_free(g);
	*graph = status == CK_OK ? g : NULL;
	return status;
}

static ck_graph *must_build(body *make)
{
	ck_err err = {0};
	ck_graph *g;
	cr_assert(build(make, &g, &err) == CK_OK, "%s", err.text);
	return g;
}

/* Reads "F fc1, F fc2, D fc1" and so on. */
static ck_schedule listed(const ck_graph *g, const char *list)
{
	ck_schedule s = {0};
	char text[512], *rest = text;
	snprintf(text, sizeof text, "%s", list);
	for (char *word; (word = strsep(&rest, ",")) != NULL;) {
		word += strspn(word, " ");
		int id = word[0] == 'D' ? ck_graph_value(g, word + 2) : ck_graph_op(g, word + 2);
		cr_assert(id != CK_NONE, "there is no '%s'", word);
		ck_schedule_add(&s, word[0], id);
	}
	return s;
}

Test(inplace, a_schedule_that_reads_the_input_later_is_refused)
{
	static const struct {
		body *make;
		const char *schedule, *message; /* schedule NULL: plan none. message NULL: it is right */
	} cases[] = {
	    {chain, NULL, NULL},
	    /* the segment starts with the op in place, from the value that was kept for it */
	    {chain,
	     "F fc1, F fc2, F relu, F fc3, D relu, F last, F loss, B loss, D loss:lse, D last, B last, D fc3, F relu, D fc2, B "
	     "fc3, "
	     "B relu, D relu, B fc2, D fc1, B fc1",
	     "invalid schedule, instruction 3 (F relu): it works in place over 'fc2', which instruction 13 (F relu) reads "
	     "later; "
	     "run F fc2 again before that, or build the model without working in place"},
	    /* the remedy, taken */
	    {chain,
	     "F fc1, F fc2, F relu, D fc2, F fc3, D relu, F last, F loss, B loss, D loss:lse, D last, B last, D fc3, F fc2, F "
	     "relu, "
	     "D fc2, B fc3, B relu, D relu, B fc2, D fc1, B fc1",
	     NULL},
	    /* the end of a segment: its output is kept, its inside is not, and is made again for what lies before it */
	    {chain,
	     "F fc1, F fc2, D fc1, F relu, D fc2, F fc3, F last, F loss, B loss, D loss:lse, D last, B last, D fc3, B fc3, "
	     "B relu, D relu, F fc1, B fc2, D fc1, B fc1",
	     NULL},
	    /* nobody reads it, but it is dropped too late */
	    {chain,
	     "F fc1, F fc2, F relu, F fc3, D fc2, F last, F loss, B loss, D loss:lse, D last, B last, D fc3, B fc3, B relu, "
	     "D relu, B fc2, D fc1, B fc1",
	     "invalid schedule, instruction 3 (F relu): it works in place over 'fc2'; drop that right after it"},
	    {add_after, NULL,
	     "invalid schedule, instruction 2 (F relu): it works in place over 'fc1', which instruction 3 (F add) reads later; "
	     "run F fc1 again before that, or build the model without working in place"},
	    {dropout_before, NULL, NULL},
	    {gelu_before, NULL,
	     "invalid schedule, instruction 3 (F relu): it works in place over 'fc1', which instruction 16 (B gelu) reads "
	     "later; "
	     "run F fc1 again before that, or build the model without working in place"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		ck_err err = {0};
		bench b = bench_open(must_build(cases[i].make), device_under_test(), 1, 1);
		ck_schedule s = cases[i].schedule ? listed(b.graph, cases[i].schedule) : bench_plan(&b, "none");
		ck_program *p = NULL;
		ck_status status = ck_program_make(b.session, &s, &p, &err);
		if (cases[i].message) {
			cr_expect(status == CK_USAGE && strcmp(err.text, cases[i].message) == 0, "case %zu: %s", i, err.text);
		} else {
			cr_assert(status == CK_OK, "case %zu: %s", i, err.text);
			cr_expect(check_places(p, "case", cases[i].schedule ? "listed" : "none") > 0, "case %zu", i);
			ck_outcome o = bench_outcome(&b, p); /* checked: every line has its owner */
			cr_expect(ck_outcome_proves(b.graph, &o, &err), "case %zu: %s", i, err.text);
			ck_outcome_free(&o);
		}
		ck_program_free(p);
		ck_schedule_free(&s);
		bench_close(&b);
	}
}

static ck_value over_the_batch(ck_graph *g, ck_value x)
{
	return ck_activation_inplace(g, "relu", x, CK_ACT_RELU);
}

static ck_value gelu_in_place(ck_graph *g, ck_value x)
{
	return ck_activation_inplace(g, "gelu", layer(g, "fc1", x), CK_ACT_GELU_TANH);
}

Test(inplace, what_cannot_work_in_place_is_refused)
{
	static const struct {
		body *make;
		const char *message;
	} cases[] = {
	    {over_the_batch, "relu: it cannot work in place over the input 'x', which has to stay; let it work on a copy"},
	    {gelu_in_place, "op 'gelu' (act): only ReLU works in place: GELU's backward reads its input"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		ck_err err = {0};
		ck_graph *g;
		cr_expect(build(cases[i].make, &g, &err) == CK_USAGE && strcmp(err.text, cases[i].message) == 0, "%s",
			  err.text);
	}
}
