/* The running generator (--rng stateful): masks drawn from any place of the stream, on every backend; under every plan the same
 * masks, the same position after the step and the same masks in the next; what saving and restoring costs; and why a schedule
 * that draws in another order cannot be equal. By hand: ckbench parity MODEL --rng stateful --plans LIST. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "harness/record/result.h"
#include "harness/run/program.h"
#include "harness/run/train.h"
#include "kernels/alloc.h"
#include "kernels/philox.h"
#include "suite/cli/program.h"
#include "suite/ops/op_run.h"
#include "suite/planner/random.h"
#include "suite/support.h"

TestSuite(rng, .init = device_or_skip);

/* ---- kernels ------------------------------------------------------------------------------------------------------------- */

/* Odd places, either side of 2^32, and where the counter comes round. */
static const uint64_t blocks[] = {0, 1, 3, 12345, UINT32_MAX, ((uint64_t)1 << 40) + 5, UINT64_MAX - 2};

/* Inputs for which every element before the mask is positive, and the gradient of x is that of each element by itself: ones, a
 * weight that is the identity, no bias, no residual. */
static op_values transparent(const ck_op_case *c)
{
	op_values v = op_values_draw(c);
	for (int slot = 0; slot < OP_SLOTS; slot++)
		for (int64_t e = 0; v.at[slot] && e < v.n[slot]; e++)
			v.at[slot][e] = slot == OP_IN || slot == OP_DOUT;
	int64_t width = ck_shape_last(c->desc.in[0].shape);
	for (int64_t i = 0; c->desc.kind == CK_LINEAR && i < width; i++)
		v.at[OP_IN + 1][i * width + i] = 1;
	return v;
}

/* Element e is kept when word e % 4 of block `block` + e / 4 is at least the threshold, forward and backward. */
static void check_mask(op_run *r, const ck_op_case *c, uint64_t block)
{
	op_values v = transparent(c), y = op_forward(r, &v, (op_how){.block = block});
	op_values d = op_backward(r, &y, (op_how){.block = block});
	int forward = 0, backward = 0;
	for (int64_t e = 0; e < y.n[OP_OUT]; e++) {
		uint32_t w[4];
		ck_philox_block(0x0123456789abcdef, 7, 3, block + (uint64_t)e / 4, w); /* as op_run calls */
		bool keep = w[e % 4] >= ck_drop_threshold(c->desc.attr.p);
		forward += keep != (y.at[OP_OUT][e] != 0);
		backward += keep != (d.at[OP_DIN][e] != 0);
	}
	cr_expect(forward == 0 && backward == 0,
		  "%s from block %" PRIu64 ": %d elements of the mask are other, %d of the backward's", r->name, block, forward,
		  backward);
	op_values_free(&v);
	op_values_free(&y);
	op_values_free(&d);
}

/* Large enough that threads begin in the middle; rows that begin within a block of the generator, and rows that do not. */
static const char *const draws[] = {
    "dropout 7x13 p=0.3",
    "dropout 64x517 p=0.1",
    "dropout 65x512 65x512 residual p=0.4",
    "linear 300x67 67x67 67 bias p=0.5",
    "linear 270x64 64x64 64 bias act=gelu-tanh p=0.25",
    "linear 270x64 64x64 64 bias act=relu p=0.25",
    "linear 270x63 63x63 63 270x63 bias residual p=0.25",
};

static void check_masks(const ck_backend *b, int threads)
{
	ck_device *device = op_device(b, threads);
	for (size_t i = 0; i < sizeof draws / sizeof *draws; i++) {
		ck_op_case c;
		ck_err err = {""};
		op_run r;
		cr_assert(ck_op_case_read(draws[i], b->real, &c, &err) == CK_OK, "%s: %s", draws[i], err.text);
		op_run_open(&r, b, device, &c, c.desc.needs);
		for (size_t k = 0; k < sizeof blocks / sizeof *blocks; k++)
			check_mask(&r, &c, blocks[k]);
		op_run_close(&r);
	}
	b->close(device);
}

Test(rng, masks_from_any_place_of_the_stream, .timeout = 60)
{
	for (const ck_backend *const *b = backends_under_test(); *b; b++)
		for (int threads = 1; threads <= (device_is_named() ? 1 : 4); threads *= 2)
			check_masks(*b, threads);
}

/* ---- whole steps --------------------------------------------------------------------------------------------------------- */

enum { STEPS = 3 };

/* What each op's first forward drew in each step, and the stream's position after it. */
typedef struct tape {
	const ck_program *p;
	int step, strays; /* recomputes and backwards that drew something else */
	ck_draw *at;      /* (STEPS, ops) */
	uint64_t position[STEPS];
} tape;

static bool note(void *user, const ck_call *c, ck_args *a, ck_step *step)
{
	(void)step;
	tape *t = user;
	const ck_graph *g = t->p->session->graph;
	ck_draw now = {.seed = a->seed, .block = a->block, .step = a->step, .op = a->op};
	ck_draw *first = &t->at[t->step * g->nops + c->id];
	if (!g->ops[c->id].contract.random)
		return true;
	if (c->code == 'F' && !c->recompute)
		*first = now;
	t->strays += memcmp(first, &now, sizeof now) != 0;
	return true;
}

static tape run_steps(const bench *b, const ck_program *p)
{
	ck_err err = {""};
	ck_memory m;
	tape t = {.p = p, .at = ck_alloc((size_t)(STEPS * b->graph->nops), sizeof(ck_draw))};
	const ck_hook hook = {.user = &t, .before = note};
	cr_assert(ck_memory_open(b->session, p->layout.arena, &m, &err) == CK_OK, "%s", err.text);
	ck_memory_init(&m, &p->layout, b->seed, NULL);
	for (; t.step < STEPS; t.step++) {
		ck_step step = {.seed = b->seed, .step = (uint32_t)t.step, .check = t.step % 2 == 0, .hook = &hook};
		cr_assert(ck_program_run(p, &m, &step, &err) == CK_OK, "%s", err.text);
		t.position[t.step] = step.random_draws;
	}
	ck_memory_close(&m);
	return t;
}

/* Blocks of four numbers that one pass of the model draws. */
static uint64_t blocks_of(const ck_graph *g)
{
	uint64_t sum = 0;
	for (int o = 0; o < g->nops; o++)
		if (g->ops[o].contract.random)
			sum += ((uint64_t)ck_shape_count(g->ops[o].desc.out[0].shape) + 3) / 4;
	return sum;
}

static bench open_stateful(const char *model, const char *device, int threads)
{
	bench b = bench_open_model(model, device, threads, 1);
	ck_session_rng(b.session, CK_RNG_STATEFUL);
	return b;
}

typedef struct base {
	ck_outcome outcome;
	tape tape;
	bool taken;
} base;

/* One plan: the bits, the masks and the positions of the first that was checked, none. */
static void check_plan(bench *b, const char *model, const char *plan, base *none)
{
	ck_schedule s = bench_plan(b, plan);
	ck_program *p = bench_program(b, &s);
	ck_outcome o = bench_outcome(b, p);
	tape t = run_steps(b, p);
	ck_err why = {""};
	size_t draws_bytes = (size_t)(STEPS * b->graph->nops) * sizeof(ck_draw);
	cr_expect(t.strays == 0, "ckbench parity %s --rng stateful --plans %s: %d draws are not the first forward's", model,
		  plan, t.strays);
	for (int k = 0; k < STEPS; k++)
		cr_expect(t.position[k] == (uint64_t)(k + 1) * blocks_of(b->graph), "%s %s: position %" PRIu64 " after step %d",
			  model, plan, t.position[k], k + 1);
	if (!none->taken)
		*none = (base){bench_outcome(b, p), t, true};
	cr_expect(ck_outcome_compare(b->graph, &none->outcome, &o, &why) == CK_BITWISE,
		  "ckbench parity %s --rng stateful --plans %s: %s", model, plan, why.text);
	cr_expect(memcmp(t.at, none->tape.at, draws_bytes) == 0, "%s %s: other masks", model, plan);
	if (t.at != none->tape.at)
		free(t.at);
	ck_outcome_free(&o);
	ck_program_free(p);
	ck_schedule_free(&s);
}

typedef struct turn {
	bench *b;
	const char *model;
	base *none;
} turn;

static void check_turn(void *user, const char *plan)
{
	const turn *t = user;
	check_plan(t->b, t->model, plan, t->none);
}

static void check_model(const char *model, const char *device, int threads)
{
	printf("# ckbench parity %s --rng stateful --device %s --threads %d\n", model, device, threads);
	bench b = open_stateful(model, device, threads);
	base none = {.taken = false};
	turn t = {&b, model, &none};
	check_turn(&t, "none");
	bench_each_plan(b.graph, check_turn, &t);
	free(none.tape.at);
	ck_outcome_free(&none.outcome);
	bench_close(&b);
}

Test(rng, every_plan_draws_alike, .timeout = 240)
{
	static const char *const models[] = {
	    "mlp:layers=6,width=24,inputs=20,classes=7,batch=9,dropout=0.3",
	    "cnn:depth=11,width=4,image=32,batch=2,classes=10,dropout=0.2",
	    "transformer:layers=3,width=20,heads=4,seq=11,vocab=40,batch=3,dropout=0.2",
	};
	for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
		check_model(models[i], device_under_test(), 1);
		if (!device_is_named())
			check_model(models[i], device_under_test(), 2);
	}
	check_model("transformer:layers=1,width=12,heads=2,seq=5,vocab=20,batch=2,dropout=0.2", "ref", 1);
}

/* By the counter nothing depends on what was drawn before; by the stream each step draws what comes next. */
Test(rng, disciplines_differ)
{
	const char *model = "mlp:layers=4,width=16,batch=8,dropout=0.3";
	for (int stateful = 0; stateful < 2; stateful++) {
		bench b = stateful ? open_stateful(model, device_under_test(), 1)
				   : bench_open_model(model, device_under_test(), 1, 1);
		ck_schedule s = bench_plan(&b, "none");
		ck_program *p = bench_program(&b, &s);
		tape t = run_steps(&b, p);
		for (int k = 0; k < STEPS; k++)
			for (int o = 0; o < b.graph->nops; o++) {
				const ck_draw *d = &t.at[k * b.graph->nops + o];
				if (!b.graph->ops[o].contract.random)
					continue;
				if (stateful)
					cr_expect(d->seed == 1 && d->op == CK_STREAM_OP && d->step == CK_STREAM_STEP &&
						      (d->block > 0 || (o == 0 && k == 0)),
						  "step %d, op %d: block %" PRIu64, k, o, d->block);
				else
					cr_expect(d->seed == 1 && d->op == (uint32_t)o && d->step == (uint32_t)k &&
						      d->block == 0,
						  "step %d, op %d: not by its counter", k, o);
			}
		free(t.at);
		ck_program_free(p);
		ck_schedule_free(&s);
		bench_close(&b);
	}
}

/* ---- training ------------------------------------------------------------------------------------------------------------ */

static ck_status train(const bench *b, const ck_program *p, const ck_course *baseline, ck_course *c, ck_err *err)
{
	ck_memory m;
	cr_assert(ck_memory_open(b->session, p->layout.arena, &m, err) == CK_OK, "%s", err->text);
	ck_status status = ck_train(p, &m, &(ck_train_options){.seed = b->seed, .steps = 5}, baseline, c, err);
	ck_memory_close(&m);
	return status;
}

/* The position is among what every step is held against, and goes on from step to step. */
Test(rng, training)
{
	static const char *const models[] = {"mlp:layers=6,width=24,batch=9,dropout=0.3",
					     "transformer:layers=2,width=32,heads=4,seq=12,vocab=40,batch=3,dropout=0.1"};
	static const char *const plans[] = {"none", "stages", "uniform:2", "uniform:3", "torch:2"};
	for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
		bench b = open_stateful(models[i], device_under_test(), 2);
		ck_optimizer o = ck_optimizer_preset(CK_ADAMW);
		ck_session_train(b.session, &o);
		ck_course courses[sizeof plans / sizeof *plans];
		for (size_t k = 0; k < sizeof plans / sizeof *plans; k++) {
			ck_err err = {""};
			ck_schedule s = bench_plan(&b, plans[k]);
			ck_program *p = bench_program(&b, &s);
			ck_course *c = &courses[k];
			cr_expect(train(&b, p, k ? courses : NULL, c, &err) == CK_OK && c->steps == 5,
				  "ckbench train %s --rng stateful --plans %s: %s", models[i], plans[k], err.text);
			for (int step = 0; step < c->steps; step++)
				cr_expect(c->tensor[step][c->tensors - 1] == (uint64_t)(step + 1) * blocks_of(b.graph),
					  "%s %s, step %d", models[i], plans[k], step + 1);
			ck_program_free(p);
			ck_schedule_free(&s);
		}
		for (size_t k = 0; k < sizeof plans / sizeof *plans; k++)
			ck_course_free(&courses[k]);
		bench_close(&b);
	}
}

/* ---- what it costs --------------------------------------------------------------------------------------------------------- */

/* F and B by op, "F0 F1 B1 B0"; the drops follow. */
static ck_schedule schedule_of(const ck_graph *g, const char *work)
{
	ck_schedule w = {0}, s;
	ck_err err = {""};
	char code;
	int op, used;
	for (; sscanf(work, " %c%d%n", &code, &op, &used) == 2; work += used)
		ck_schedule_add(&w, code, op);
	cr_assert(ck_lower_drops(g, &w, &s, &err) == CK_OK, "%s", err.text);
	ck_schedule_free(&w);
	return s;
}

/* Five ops, fc1 to fc4 and the loss; the first three draw. */
Test(rng, costs_are_exact)
{
	static const struct {
		const char *work, *what;
		int saved_states, saves, restores;
	} cases[] = {
	    {"F0 F1 F2 F3 F4 B4 B3 B2 B1 B0", "nothing is recomputed", 0, 0, 0},
	    {"F0 F1 F2 F3 F4 B4 B3 B2 F0 B1 B0", "one: its state, the outer one; both set once", 1, 2, 2},
	    {"F0 F1 F2 F3 F4 B4 B3 F0 F1 B2 B1 B0", "two that follow each other need one state", 1, 2, 2},
	    {"F0 F1 F2 F3 F4 B4 F0 F1 F2 B3 B2 B1 B0", "so do three", 1, 2, 2},
	    {"F0 F1 F2 F3 F4 B4 F0 F2 B3 B2 B1 B0", "two that do not follow each other need two", 2, 3, 3},
	    {"F0 F1 F2 F3 F4 B4 F2 B3 F1 B2 F0 B1 B0", "apart: each its own, and the outer one each time", 3, 6, 6},
	    {"F0 F1 F2 F3 F4 B4 F0 F1 F2 B3 F0 F1 B2 F0 B1 B0", "a state that is set three times is saved once", 1, 4, 6},
	    {"F0 F1 F0 F2 F3 F4 B4 B3 B2 B1 B0", "within the forward, too", 1, 2, 2},
	    {"F0 F1 F2 F3 F4 B4 F3 B3 B2 B1 B0", "one that does not draw", 0, 0, 0},
	};
	bench b = open_stateful("mlp:layers=4,width=16,inputs=16,classes=5,batch=8,dropout=0.3", device_under_test(), 1);
	ck_outcome none = {0};
	cr_assert(b.graph->nops == 5 && b.graph->ops[2].contract.random && !b.graph->ops[3].contract.random);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		ck_schedule s = schedule_of(b.graph, cases[i].work);
		ck_program *p = bench_program(&b, &s);
		ck_outcome o = bench_outcome(&b, p);
		ck_err why = {""};
		if (i == 0)
			none = bench_outcome(&b, p);
		cr_expect(p->rng.saved_states == cases[i].saved_states && p->rng.saves == cases[i].saves &&
			      p->rng.restores == cases[i].restores && p->rng.state_bytes == 16 * (size_t)cases[i].saved_states,
			  "%s, %s: %d states in %zu bytes, %d saves, %d restores", cases[i].work, cases[i].what,
			  p->rng.saved_states, p->rng.state_bytes, p->rng.saves, p->rng.restores);
		cr_expect(ck_outcome_compare(b.graph, &none, &o, &why) == CK_BITWISE, "%s: %s", cases[i].work, why.text);
		ck_outcome_free(&o);
		ck_program_free(p);
		ck_schedule_free(&s);
	}
	ck_outcome_free(&none);
	bench_close(&b);
}

/* Nothing to draw, or nothing to keep. */
Test(rng, costs_nothing)
{
	static const struct {
		const char *model;
		ck_rng_kind rng;
	} cases[] = {{"mlp:layers=6,width=16,batch=8", CK_RNG_STATEFUL},
		     {"resnet20:image=8,batch=2", CK_RNG_STATEFUL},
		     {"gpt-tiny", CK_RNG_STATEFUL},
		     {"gpt-tiny:dropout=0.1", CK_RNG_COUNTER}};
	static const char *const plans[] = {"none", "stages", "uniform:2", "uniform:4", "every:2"};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		bench b = bench_open_model(cases[i].model, device_under_test(), 1, 1);
		ck_session_rng(b.session, cases[i].rng);
		for (size_t k = 0; k < sizeof plans / sizeof *plans; k++) {
			ck_schedule s = bench_plan(&b, plans[k]);
			ck_program *p = bench_program(&b, &s);
			cr_expect(p->rng.saved_states == 0 && p->rng.state_bytes == 0 && p->rng.saves == 0 &&
				      p->rng.restores == 0,
				  "%s %s: %d saves, %d restores", cases[i].model, plans[k], p->rng.saves, p->rng.restores);
			ck_program_free(p);
			ck_schedule_free(&s);
		}
		bench_close(&b);
	}
}

/* ---- another order of draws ------------------------------------------------------------------------------------------------ */

/* Two branches of one input, each with a dropout that the other does not need. */
static ck_graph *branches(void)
{
	ck_err err = {""};
	ck_graph *g = ck_graph_new(CK_F32);
	ck_init init = {CK_INIT_NORMAL, 0.3};
	ck_value x = ck_input(g, "x", ck_dims(2, (int64_t)8, (int64_t)16), true);
	ck_value y[2];
	static const char *const names[2][2] = {{"left", "left.drop"}, {"right", "right.drop"}};
	for (int i = 0; i < 2; i++) {
		ck_value w = ck_param(g, i ? "right.w" : "left.w", ck_dims(2, (int64_t)16, (int64_t)16), init);
		y[i] = ck_dropout(g, names[i][1], ck_linear(g, names[i][0], x, w, CK_NONE), 0.5);
	}
	ck_value w = ck_param(g, "head.w", ck_dims(2, (int64_t)5, (int64_t)16), init);
	ck_value logits = ck_linear(g, "head", ck_add(g, "sum", y[0], y[1]), w, CK_NONE);
	ck_value loss = ck_cross_entropy(g, "loss", logits, ck_input_int(g, "target", ck_dims(1, (int64_t)8), 5));
	cr_assert(ck_graph_finish(g, loss, false, &err) == CK_OK, "%s", err.text);
	return g;
}

/* left, left.drop, right, right.drop, sum, head, loss; and the right branch first. */
static const char *const orders[2] = {"F0 F1 F2 F3 F4 F5 F6 B6 B5 B4 B3 B2 B1 B0", "F2 F3 F0 F1 F4 F5 F6 B6 B5 B4 B3 B2 B1 B0"};

Test(rng, another_order_is_named)
{
	static const char cause[] = "'right.drop' draws before 'left.drop'";
	for (int stateful = 0; stateful < 2; stateful++) {
		bench b = bench_open(branches(), device_under_test(), 1, 1);
		ck_session_rng(b.session, stateful ? CK_RNG_STATEFUL : CK_RNG_COUNTER);
		ck_outcome o[2];
		ck_course c[2];
		ck_program *p[2];
		ck_err why = {""}, err = {""};
		ck_optimizer sgd = {CK_SGD, .lr = 0.1};
		ck_session_train(b.session, &sgd);
		for (int i = 0; i < 2; i++) {
			ck_schedule s = schedule_of(b.graph, orders[i]);
			p[i] = bench_program(&b, &s);
			o[i] = bench_outcome(&b, p[i]);
			ck_schedule_free(&s);
		}
		ck_verdict verdict = ck_outcome_compare(b.graph, &o[0], &o[1], &why);
		cr_expect(memcmp(&o[0].kind[CK_DIGEST_RANDOM], &o[1].kind[CK_DIGEST_RANDOM], sizeof(ck_digest)) == 0,
			  "the positions differ");
		cr_assert(train(&b, p[0], NULL, &c[0], &err) == CK_OK, "%s", err.text);
		ck_status status = train(&b, p[1], &c[0], &c[1], &err);
		if (stateful) {
			cr_expect(verdict == CK_PARITY_FAILED && strstr(why.text, cause) && strstr(why.text, "--rng counter"),
				  "%s", why.text);
			cr_expect(status == CK_FAILED && c[1].steps == 0 && strstr(err.text, cause), "%s", err.text);
		} else {
			cr_expect(verdict == CK_BITWISE, "%s", why.text);
			cr_expect(status == CK_OK, "%s", err.text);
		}
		for (int i = 0; i < 2; i++) {
			ck_outcome_free(&o[i]);
			ck_course_free(&c[i]);
			ck_program_free(p[i]);
		}
		bench_close(&b);
	}
}

/* Random schedules recompute and drop wherever they may: those that draw in the graph's order have the bits of plan none; of the
 * others, all that fail say why, and by the counter none does. */
static void check_random(uint64_t seed, int *in_order, int *out_of_order, int *failed, int *jumps)
{
	rng r = {seed};
	bench b = bench_open(random_graph(&r, CK_F32), device_under_test(), 1, seed);
	ck_session_rng(b.session, CK_RNG_STATEFUL);
	ck_schedule plain = bench_plan(&b, "none");
	ck_program *none = bench_program(&b, &plain);
	ck_outcome baseline = bench_outcome(&b, none);
	tape first = run_steps(&b, none);
	size_t bytes = (size_t)(STEPS * b.graph->nops) * sizeof(ck_draw);
	for (int i = 0; i < 4; i++) {
		ck_schedule s = random_schedule(&r, b.graph);
		ck_program *p = bench_program(&b, &s);
		ck_outcome o = bench_outcome(&b, p);
		tape t = run_steps(&b, p);
		ck_err why = {""};
		bool ordered = p->rng_order.early == CK_NONE;
		bool same = ck_outcome_compare(b.graph, &baseline, &o, &why) == CK_BITWISE;
		cr_expect(t.strays == 0 && memcmp(t.position, first.position, sizeof t.position) == 0,
			  "seed %" PRIu64 ", schedule %d: %d strays, position %" PRIu64, seed, i, t.strays,
			  t.position[STEPS - 1]);
		cr_expect((memcmp(t.at, first.at, bytes) == 0) == ordered, "seed %" PRIu64 ", schedule %d: ordered %d", seed, i,
			  ordered);
		cr_expect(same || (!ordered && strstr(why.text, "the cause: '")), "seed %" PRIu64 ", schedule %d: %s", seed, i,
			  why.text);
		*in_order += ordered && blocks_of(b.graph) > 0;
		*out_of_order += !ordered;
		*failed += !same;
		*jumps += p->rng.restores > 2 * (p->rng.saves - p->rng.saved_states); /* within a run, too */
		free(t.at);
		ck_outcome_free(&o);
		ck_program_free(p);
		ck_schedule_free(&s);
	}
	free(first.at);
	ck_outcome_free(&baseline);
	ck_program_free(none);
	ck_schedule_free(&plain);
	bench_close(&b);
}

Test(rng, random_schedules, .timeout = 120)
{
	int in_order = 0, out_of_order = 0, failed = 0, jumps = 0;
	for (uint64_t seed = 1; seed <= 300; seed++)
		check_random(seed, &in_order, &out_of_order, &failed, &jumps);
	cr_expect(in_order >= 300 && out_of_order >= 5 && failed >= 3 && failed <= out_of_order && jumps >= 5,
		  "%d in order, %d not, of which %d fail; %d restore within a run", in_order, out_of_order, failed, jumps);
}

/* ---- the program ----------------------------------------------------------------------------------------------------------- */

#define MLP "mlp:layers=4,width=16,inputs=16,classes=5,batch=8,dropout=0.3"

static ck_result *read_record(const outcome *o, const char *name)
{
	ck_result *r = NULL;
	ck_err err = {""};
	char *text = read_output(o, name);
	cr_assert(ck_result_read(text, strlen(text), name, &r, &err) == CK_OK, "%s", err.text);
	free(text);
	return r;
}

/* The record tells the discipline and what it costs; its line does the same again. */
Test(rng, record, .timeout = 60)
{
	outcome o = run("ck parity " MLP " --rng stateful --plans none,uniform:2 --json r");
	cr_assert(o.status == 0, "%s", o.err);
	ck_result *r = read_record(&o, "r");
	cr_expect_str_eq(r->c.rng, "stateful");
	cr_expect(strstr(r->c.line, " --rng stateful"), "%s", r->c.line);
	cr_expect(r->points[0].rng.saves == 0 && r->points[1].rng.saved_states == 1 && r->points[1].rng.state_bytes == 16 &&
		      r->points[1].rng.saves == 2 && r->points[1].rng.restores == 2,
		  "%d states, %d saves, %d restores", r->points[1].rng.saved_states, r->points[1].rng.saves,
		  r->points[1].rng.restores);
	cr_expect(strstr(o.out, "rng states  restores") && strstr(o.out, "1, 16 B         2"), "%s", o.out);
	char *again = ck_text("ck %s --json again", r->c.line + strlen("ckbench "));
	run_again(&o, again);
	ck_result *second = read_record(&o, "again");
	cr_expect(memcmp(second->points[1].digest, r->points[1].digest, sizeof r->points[1].digest) == 0, "%s: other bits",
		  again);
	ck_result_free(second);
	free(again);
	run_again(&o, "ck parity " MLP " --json counter");
	second = read_record(&o, "counter");
	cr_expect_str_eq(second->c.rng, "counter");
	cr_expect(!strstr(o.out, "rng states") && !strstr(second->c.line, "--rng"), "%s", o.out);
	cr_expect(memcmp(second->points[0].digest, r->points[0].digest, sizeof r->points[0].digest) != 0,
		  "both disciplines draw alike");
	ck_result_free(second);
	ck_result_free(r);
	outcome_free(&o);
}

/* A sweep measures it, in this process and in that of its peaks; a plan's table tells before it runs. */
Test(rng, commands, .timeout = 120)
{
	static const char *const commands[] = {
	    "ck sweep " MLP " --rng stateful --plans none,uniform:2 --seconds 0.1 --rounds 1",
	    "ck plan " MLP " --rng stateful --plans none,uniform:2",
	    "ck parity gpt-tiny:dropout=0.1 --rng stateful --device ref --plans none,stages",
	};
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
		outcome o = run(commands[i]);
		cr_expect(o.status == 0 && strstr(o.out, "rng states  restores"), "%s: exit status %d\n%s%s", commands[i],
			  o.status, o.out, o.err);
		outcome_free(&o);
	}
	outcome o = run("ck parity " MLP " --rng running");
	cr_expect(o.status == 2 && strstr(o.err, "--rng 'running'") && strstr(o.err, "counter, stateful"), "%s", o.err);
	outcome_free(&o);
}
