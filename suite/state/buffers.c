/* State that a forward changes, BatchNorm's running mean, variance and count, and counters: under every plan it has moved once when the
 * forward alone is over, and not again when the step is. The tensors themselves are compared, not their digests. By hand:
 * ckbench parity MODEL. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/alloc.h"
#include "suite/support.h"

TestSuite(buffers, .init = device_or_skip);

/* What the buffers hold at one moment: by value, NULL for all else. */
typedef struct moment {
	void **at;
	int n;
} moment;

typedef struct buffers {
	bench b;
	const char *model;
	const ck_program *program;
	moment forward, after;  /* of the run under way */
	moment baseline;        /* after plan none's step */
	int plans, recomputing; /* recomputing: those that run an op with state again */
} buffers;

static void take(const buffers *t, moment *m)
{
	const ck_graph *g = t->b.graph;
	*m = (moment){ck_alloc((size_t)g->nvalues, sizeof *m->at), g->nvalues};
	for (int v = 0; v < g->nvalues; v++) {
		if (g->values[v].kind != CK_BUFFER)
			continue;
		m->at[v] = ck_alloc(1, g->values[v].bytes);
		t->b.backend->read(t->b.device, m->at[v], ck_program_value(t->program, &t->b.memory, v), g->values[v].bytes);
	}
}

static void drop(moment *m)
{
	for (int v = 0; v < m->n; v++)
		free(m->at[v]);
	free(m->at);
	*m = (moment){0};
}

static void forward_done(void *user)
{
	buffers *t = user;
	cr_expect(!t->forward.at, "%s: the forward ends twice", t->model);
	if (!t->forward.at)
		take(t, &t->forward);
}

static void run_steps(buffers *t, const char *plan, int steps)
{
	ck_err err = {0};
	bench_room(&t->b, t->program);
	ck_memory_reset(&t->b.memory, &t->program->layout, t->b.seed);
	for (int k = 0; k < steps; k++) {
		ck_step step = {.seed = t->b.seed, .step = (uint32_t)k, .check = true, .forward_done = forward_done, .user = t};
		drop(&t->forward);
		cr_assert(ck_program_run(t->program, &t->b.memory, &step, &err) == CK_OK, "%s %s: %s", t->model, plan,
			  err.text);
		cr_assert(t->forward.at, "%s %s: the forward does not end", t->model, plan);
	}
	take(t, &t->after);
}

static void expect_same(const buffers *t, const char *plan, const moment *a, const moment *b, const char *what)
{
	for (int v = 0; v < a->n; v++)
		cr_expect(!a->at[v] || memcmp(a->at[v], b->at[v], t->b.graph->values[v].bytes) == 0,
			  "ckbench parity %s --plans %s: '%s' %s", t->model, plan, t->b.graph->values[v].name, what);
}

/* Integers of one element count calls; all counters of channels add up to the rows. */
static void expect_counts(const buffers *t, const char *plan, const moment *m, int steps)
{
	for (int o = 0; o < t->b.graph->nops; o++) {
		const ck_op_info *op = &t->b.graph->ops[o];
		if (op->desc.kind != CK_TALLY && op->desc.kind != CK_BATCHNORM)
			continue;
		int last = op->desc.kind == CK_TALLY ? 2 : 5;
		cr_expect(*(int32_t *)m->at[op->in[last]] == steps, "%s %s: %s has counted %d of %d calls", t->model, plan,
			  op->name, *(int32_t *)m->at[op->in[last]], steps);
		int64_t rows = 0;
		for (int64_t c = 0; op->desc.kind == CK_TALLY && c < ck_shape_count(op->desc.in[1].shape); c++)
			rows += ((int32_t *)m->at[op->in[1]])[c];
		cr_expect(op->desc.kind != CK_TALLY || rows == steps * ck_shape_rows(op->desc.in[0].shape),
			  "%s %s: %s has counted %lld rows", t->model, plan, op->name, (long long)rows);
	}
}

static bool runs_state_again(const ck_graph *g, const ck_schedule *s)
{
	int *runs = ck_alloc((size_t)g->nops, sizeof *runs);
	bool again = false;
	for (int i = 0; i < s->n; i++)
		again = again || (s->at[i].code == 'F' && runs[s->at[i].id]++ && g->ops[s->at[i].id].contract.state);
	free(runs);
	return again;
}

static void check_plan(void *user, const char *plan)
{
	buffers *t = user;
	ck_schedule s = bench_plan(&t->b, plan);
	ck_program *p = bench_program(&t->b, &s);
	t->program = p;
	t->recomputing += runs_state_again(t->b.graph, &s);
	run_steps(t, plan, 1);
	if (t->plans++ == 0) {
		t->baseline = t->after;
		take(t, &t->after);
	}
	expect_same(t, plan, &t->forward, &t->after, "moved after the forward");
	expect_same(t, plan, &t->after, &t->baseline, "is not plan none's");
	expect_counts(t, plan, &t->forward, 1);
	drop(&t->after);
	run_steps(t, plan, 3);
	expect_counts(t, plan, &t->after, 3);
	drop(&t->after);
	drop(&t->forward);
	ck_program_free(p);
	ck_schedule_free(&s);
}

Test(buffers, move_once_and_in_the_forward, .timeout = 120)
{
	const char *tested = device_under_test();
	const struct {
		const char *model, *device;
	} cases[] = {
	    {"resnet20:image=8,batch=4", tested},
	    {"resnet18:image=32,batch=2,classes=10,width=4,inplace=1", tested},
	    {"vgg11:image=32,batch=2,classes=10,width=4,dropout=0.2", tested},
	    {"mlp:layers=6,width=24,inputs=20,classes=7,batch=9,dropout=0.2,tally=1", tested},
	    {"mlp:layers=4,width=8,inputs=5,classes=3,batch=5,activation=gelu,tally=1", "ref"},
	    {"transformer:layers=3,width=32,heads=4,seq=12,vocab=40,batch=3,tally=1", tested},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		buffers t = {.model = cases[i].model};
		printf("# ckbench parity %s --device %s\n", cases[i].model, cases[i].device);
		t.b = bench_open_model(cases[i].model, cases[i].device, 2, 1);
		bench_each_plan(t.b.graph, check_plan, &t);
		cr_expect(t.recomputing > 0, "%s: no plan runs an op with state again, so that nothing is proved", t.model);
		drop(&t.baseline);
		bench_close(&t.b);
	}
}

/* ---- a tie --------------------------------------------------------------------------------------------------------------- */

enum { ROWS = 6, WIDTH = 4 };

/* x ─▶ fc1, all of whose outputs are 1 ─▶ tally ─▶ fc2 ─▶ act ─▶ fc3 ─▶ loss: in every row all channels tie. */
static ck_graph *tied_rows(ck_dtype real)
{
	const ck_init zero = {CK_INIT_ZERO, 0}, one = {CK_INIT_ONE, 0}, normal = {CK_INIT_NORMAL, 0.5};
	ck_graph *g = ck_graph_new(real);
	ck_value x = ck_input(g, "x", ck_dims(2, (int64_t)ROWS, (int64_t)WIDTH), false);
	ck_shape square = ck_dims(2, (int64_t)WIDTH, (int64_t)WIDTH), row = ck_dims(1, (int64_t)WIDTH);
	x = ck_linear(g, "fc1", x, ck_param(g, "w1", square, zero), ck_param(g, "b1", row, one));
	x = ck_tally(g, "tally", x, ck_buffer(g, "load", CK_I32, row, zero),
		     ck_buffer(g, "calls", CK_I32, ck_dims(1, (int64_t)1), zero));
	x = ck_linear(g, "fc2", x, ck_param(g, "w2", square, normal), CK_NONE);
	x = ck_activation(g, "act", x, CK_ACT_GELU_TANH);
	x = ck_linear(g, "fc3", x, ck_param(g, "w3", square, normal), CK_NONE);
	ck_value loss = ck_cross_entropy(g, "loss", x, ck_input_int(g, "target", ck_dims(1, (int64_t)ROWS), WIDTH));
	ck_err err = {0};
	cr_assert(ck_graph_finish(g, loss, true, &err) == CK_OK, "%s", err.text);
	return g;
}

static void check_tie(void *user, const char *plan)
{
	static const int32_t want[WIDTH] = {ROWS, 0, 0, 0};
	buffers *t = user;
	ck_schedule s = bench_plan(&t->b, plan);
	ck_program *p = bench_program(&t->b, &s);
	t->program = p;
	t->recomputing += runs_state_again(t->b.graph, &s);
	run_steps(t, plan, 1);
	ck_value load = ck_graph_value(t->b.graph, "load"), calls = ck_graph_value(t->b.graph, "calls");
	const moment *both[] = {&t->forward, &t->after};
	for (int k = 0; k < 2; k++)
		cr_expect(memcmp(both[k]->at[load], want, sizeof want) == 0 && *(int32_t *)both[k]->at[calls] == 1,
			  "plan %s on %s: load %d %d %d %d", plan, t->b.backend->name, ((int32_t *)both[k]->at[load])[0],
			  ((int32_t *)both[k]->at[load])[1], ((int32_t *)both[k]->at[load])[2],
			  ((int32_t *)both[k]->at[load])[3]);
	drop(&t->after);
	drop(&t->forward);
	ck_program_free(p);
	ck_schedule_free(&s);
}

Test(buffers, a_tie_goes_to_the_first_under_every_plan)
{
	const char *const devices[] = {device_under_test(), "ref"};
	for (int k = 0; k < 2; k++) {
		buffers t = {.model = "tied rows"};
		t.b = bench_open(tied_rows(k ? CK_F64 : CK_F32), devices[k], 2, 1);
		bench_each_plan(t.b.graph, check_tie, &t);
		cr_expect(t.recomputing > 0, "no plan runs the counter again, so that nothing is proved");
		bench_close(&t.b);
	}
}
