/* Training under every kind of plan leaves the bits of plan none after each step, in predicted memory; a difference is found and
 * named; and training learns. By hand: ckbench train MODEL --plans LIST. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/run/train.h"
#include "suite/support.h"

TestSuite(plans, .init = device_or_skip);
TestSuite(learning, .init = device_or_skip);

enum { STEPS = 12, FEW = 3 };

/* How many are compared. */
static int steps(void)
{
	return device_is_slow() ? FEW : STEPS;
}

static const ck_optimizer optimizers[] = {
    {CK_SGD, .lr = 0.02},
    {CK_SGD, .lr = 0.02, .momentum = 0.9, .weight_decay = 0.01},
    {CK_ADAMW, .lr = 2e-3, .weight_decay = 1e-2, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8},
};
enum { OPTIMIZERS = sizeof optimizers / sizeof *optimizers };

static bench open_training(const char *model, const char *device, int threads, const ck_optimizer *o)
{
	bench b = bench_open_model(model, device, threads, 1);
	ck_session_train(b.session, o);
	return b;
}

/* As --amp has it; without with CK_DTYPE_NONE. */
static bench open_mixed(const char *model, int threads, ck_dtype low, const ck_optimizer *o)
{
	ck_settings s = {0};
	ck_graph *g;
	ck_err err = {""};
	cr_assert(ck_settings_read(&s, model, &err) == CK_OK, "%s", err.text);
	s.options.low = low;
	cr_assert(ck_model_build(&s, CK_F32, &g, &err) == CK_OK, "%s: %s", model, err.text);
	bench b = bench_open(g, device_under_test(), threads, 1);
	ck_session_train(b.session, o);
	return b;
}

static ck_program *program_of(const bench *b, const char *plan)
{
	ck_schedule s = bench_plan(b, plan);
	ck_program *p = bench_program(b, &s);
	ck_schedule_free(&s);
	return p;
}

/* Trains a plan in memory of its own. */
static ck_status train(const bench *b, const ck_program *p, ck_batch *batch, int steps, const ck_course *baseline, ck_course *c,
		       ck_err *err)
{
	ck_memory m;
	cr_assert(ck_memory_open(b->session, p->layout.arena, &m, err) == CK_OK, "%s", err->text);
	ck_status status =
	    ck_train(p, &m, &(ck_train_options){.seed = b->seed, .steps = steps, .batch = batch}, baseline, c, err);
	ck_memory_close(&m);
	return status;
}

static size_t trained_bytes(const ck_graph *g)
{
	size_t bytes = 0;
	for (int v = 0; v < g->nvalues; v++)
		if (ck_value_trained(&g->values[v]))
			bytes += g->values[v].bytes;
	return bytes;
}

/* ---- plan against plan ---------------------------------------------------------------------------------------------------- */

static void check_plan(const bench *b, const char *model, const char *plan, const ck_course *baseline, ck_course *c)
{
	ck_err err = {""};
	ck_program *p = program_of(b, plan);
	ck_status status = train(b, p, NULL, steps(), baseline, c, &err);
	cr_expect(status == CK_OK && c->steps == steps(), "ckbench train %s --plans %s: %s", model, plan, err.text);
	cr_expect(c->live_peak == p->trace.peak, "%s %s: live peak %zu, predicted %zu", model, plan, c->live_peak,
		  p->trace.peak);
	size_t states = (size_t)ck_optimizer_states(&b->session->optimizer) * trained_bytes(b->graph);
	cr_expect(p->trace.peak_by_category[CK_MEM_OPTIMIZER] == states, "%s %s: %zu bytes of optimizer state, not %zu", model,
		  plan, p->trace.peak_by_category[CK_MEM_OPTIMIZER], states);
	ck_program_free(p);
}

static const struct {
	const char *model;
	const char *plans[5];
} cases[] = {
    {"mlp:layers=6,width=24,inputs=20,classes=7,batch=9,dropout=0.3", {"stages", "uniform:3", "every:2", "blocks:2", NULL}},
    {"cnn:depth=11,width=4,image=32,batch=2,classes=10,dropout=0.2", {"stages", "uniform:3", "torch:2", NULL}},
    {"resnet20:image=8,batch=4", {"stages", "uniform:4", "every:3", NULL}},
    {"transformer:layers=3,width=32,heads=4,seq=12,vocab=40,batch=3,dropout=0.1", {"stages", "uniform:2", "blocks:1", NULL}},
};

static const char *const amps[] = {[CK_DTYPE_NONE] = "off", [CK_BF16] = "bf16", [CK_F16] = "fp16"};

static void check_cases(int threads, ck_dtype low)
{
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		for (int k = 0; k < OPTIMIZERS; k++) {
			if (device_is_slow() && (size_t)k != i % OPTIMIZERS)
				continue;
			printf("# ckbench train %s --optimizer %s --threads %d --amp %s\n", cases[i].model,
			       ck_optimizer_name(optimizers[k].kind), threads, amps[low]);
			bench b = open_mixed(cases[i].model, threads, low, &optimizers[k]);
			ck_course baseline, c;
			check_plan(&b, cases[i].model, "none", NULL, &baseline);
			for (const char *const *plan = cases[i].plans; *plan; plan++) {
				check_plan(&b, cases[i].model, *plan, &baseline, &c);
				cr_expect(memcmp(c.digest, baseline.digest, (size_t)steps() * sizeof *c.digest) == 0 &&
					      memcmp(c.loss, baseline.loss, (size_t)steps() * sizeof *c.loss) == 0 &&
					      c.accuracy == baseline.accuracy,
					  "%s %s: another course", cases[i].model, *plan);
				ck_course_free(&c);
			}
			ck_course_free(&baseline);
			bench_close(&b);
		}
}

Test(plans, one_thread, .timeout = 120)
{
	check_cases(1, CK_DTYPE_NONE);
}

Test(plans, two_threads, .timeout = 120)
{
	device_is_cpu_or_skip();
	check_cases(2, CK_DTYPE_NONE);
}

Test(plans, four_threads, .timeout = 120)
{
	device_is_cpu_or_skip();
	check_cases(4, CK_DTYPE_NONE);
}

Test(plans, bf16, .timeout = 120)
{
	check_cases(2, CK_BF16);
}

Test(plans, fp16, .timeout = 120)
{
	check_cases(2, CK_F16);
}

/* Float32 on cpu stays near float64 on ref for a few steps: both do the same sums. */
Test(plans, backends_agree, .timeout = 120)
{
	for (int k = 0; k < OPTIMIZERS; k++) {
		ck_course course[2];
		for (int device = 0; device < 2; device++) {
			ck_err err = {""};
			bench b = open_training(cases[0].model, device ? "ref" : device_under_test(), 1, &optimizers[k]);
			ck_program *p = program_of(&b, "none");
			cr_assert(train(&b, p, NULL, STEPS, NULL, &course[device], &err) == CK_OK, "%s", err.text);
			ck_program_free(p);
			bench_close(&b);
		}
		for (int step = 0; step < STEPS; step++)
			cr_expect(fabs(course[0].loss[step] - course[1].loss[step]) <= 1e-4 * course[1].loss[step],
				  "%s, step %d: loss %.9g and %.9g", ck_optimizer_name(optimizers[k].kind), step + 1,
				  course[0].loss[step], course[1].loss[step]);
		ck_course_free(&course[0]);
		ck_course_free(&course[1]);
	}
}

/* ---- differences ---------------------------------------------------------------------------------------------------------- */

/* Something else at one step in one tensor: a parameter, the optimizer's state, the loss, a buffer, the random stream. The training
 * ends there, and says where. */
Test(plans, a_difference_is_named)
{
	bench b = open_training("resnet20:image=8,batch=2,dropout=0.2", device_under_test(), 1, &optimizers[2]);
	ck_err err = {""};
	ck_program *p = program_of(&b, "stages");
	ck_course baseline, c;
	cr_assert(train(&b, p, NULL, 4, NULL, &baseline, &err) == CK_OK, "%s", err.text);
	const int last = baseline.tensors - 1;
	const struct {
		int tensor;
		const char *kind;
	} spoils[] = {{0, "parameter '"}, {last, "the random stream"}, {last - 1, "adamw's state 2"}};
	for (size_t i = 0; i < sizeof spoils / sizeof *spoils; i++)
		for (int step = 0; step < 4; step++) {
			char where[32];
			snprintf(where, sizeof where, "after step %d, ", step + 1);
			err.text[0] = 0;
			baseline.tensor[step][spoils[i].tensor] ^= 1;
			ck_status status = train(&b, p, NULL, 4, &baseline, &c, &err);
			cr_expect(status == CK_FAILED && c.steps == step && strstr(err.text, where) &&
				      strstr(err.text, spoils[i].kind) && strstr(err.text, "1 of "),
				  "%s at step %d: %d steps, %s", spoils[i].kind, step + 1, c.steps, err.text);
			baseline.tensor[step][spoils[i].tensor] ^= 1;
			ck_course_free(&c);
		}
	ck_course_free(&baseline);
	ck_program_free(p);
	bench_close(&b);
}

/* Every step changes every tensor that is trained, and draws other masks. */
Test(plans, every_step_is_another)
{
	for (int k = 0; k < OPTIMIZERS; k++) {
		bench b = open_training(cases[0].model, device_under_test(), 1, &optimizers[k]);
		ck_err err = {""};
		ck_program *p = program_of(&b, "uniform:2");
		ck_course c;
		cr_assert(train(&b, p, NULL, STEPS, NULL, &c, &err) == CK_OK, "%s", err.text);
		for (int step = 1; step < STEPS; step++)
			for (int i = 0; i < c.tensors; i++)
				cr_expect(c.tensor[step][i] != c.tensor[step - 1][i], "%s: step %d left tensor %d as it was",
					  ck_optimizer_name(optimizers[k].kind), step + 1, i);
		ck_course_free(&c);
		ck_program_free(p);
		bench_close(&b);
	}
}

/* Parameters are float32 under mixed precision: steps that 16 bits would round away add up in every one of them. */
Test(plans, master_weights_take_small_steps)
{
	static const ck_optimizer small = {CK_ADAMW, .lr = 1e-6, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};
	for (ck_dtype low = CK_BF16; low <= CK_F16; low++)
		for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
			bench b = open_mixed(cases[i].model, 1, low, &small);
			ck_err err = {""};
			ck_program *p = program_of(&b, "uniform:2");
			ck_course c;
			for (int v = 0; v < b.graph->nvalues; v++)
				cr_expect(b.graph->values[v].kind != CK_PARAM || b.graph->values[v].dtype == CK_F32,
					  "%s --amp %s: %s", cases[i].model, amps[low], b.graph->values[v].name);
			cr_assert(train(&b, p, NULL, steps(), NULL, &c, &err) == CK_OK, "%s", err.text);
			for (int step = 1; step < steps(); step++)
				for (int k = 0; k < c.tensors - 1; k++) /* not the random stream: a case may have no dropout */
					cr_expect(c.tensor[step][k] != c.tensor[step - 1][k],
						  "%s --amp %s: step %d left tensor %d as it was", cases[i].model, amps[low],
						  step + 1, k);
			ck_course_free(&c);
			ck_program_free(p);
			bench_close(&b);
		}
}

Test(plans, divergence_is_told)
{
	ck_optimizer wild = {CK_SGD, .lr = 1000};
	bench b = open_training("mlp:layers=4,width=16,batch=8", device_under_test(), 1, &wild);
	ck_err err = {""};
	ck_program *p = program_of(&b, "none");
	ck_course c;
	cr_expect(train(&b, p, NULL, 200, NULL, &c, &err) == CK_FAILED && strstr(err.text, "not finite") &&
		      strstr(err.text, "--lr"),
		  "%s", err.text);
	cr_expect(c.steps < 200);
	ck_course_free(&c);
	ck_program_free(p);
	bench_close(&b);
}

/* ---- learning ------------------------------------------------------------------------------------------------------------- */

/* With a learning rate of 0 nothing changes but the batch: every one's loss is another, an epoch's are as different from the next
 * epoch's. Without data the batch stays. */
Test(learning, every_step_takes_its_batch)
{
	ck_optimizer still = {CK_SGD, .lr = 0};
	bench b = open_training("mlp:layers=2,width=8,batch=500", device_under_test(), 1, &still);
	ck_program *p = program_of(&b, "none");
	ck_batch *batch = NULL;
	ck_err err = {""};
	ck_course data, one;
	cr_assert(ck_batch_open(b.graph, "digits", b.seed, &batch, &err) == CK_OK, "%s", err.text);
	cr_assert(train(&b, p, batch, 6, NULL, &data, &err) == CK_OK, "%s", err.text);
	cr_assert(train(&b, p, NULL, 6, NULL, &one, &err) == CK_OK, "%s", err.text);
	for (int i = 0; i < 6; i++) {
		cr_expect(one.loss[i] == one.loss[0], "step %d: the batch changed", i + 1);
		for (int k = 0; k < i; k++)
			cr_expect(data.loss[i] != data.loss[k], "steps %d and %d have the same batch", k + 1, i + 1);
	}
	ck_course_free(&data);
	ck_course_free(&one);
	ck_batch_close(batch);
	ck_program_free(p);
	bench_close(&b);
}

/* Above 95 % of the digits, over the last epoch as they were trained on. */
Test(learning, digits, .timeout = 300)
{
	if (device_is_slow())
		cr_skip_test("some hundred steps are many for %s", device_under_test());
	static const struct {
		const char *model;
		int steps;
		ck_optimizer optimizer;
		ck_dtype low; /* CK_DTYPE_NONE: no mixed precision */
	} learners[] = {
	    {"mlp:layers=3,width=64,batch=64",
	     300,
	     {CK_ADAMW, .lr = 2e-3, .weight_decay = 1e-2, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8},
	     CK_DTYPE_NONE},
	    {"mlp:layers=3,width=64,batch=64", 500, {CK_SGD, .lr = 0.1, .momentum = 0.9}, CK_DTYPE_NONE},
	    {"cnn:depth=20,image=8,channels=1,width=8,classes=10,batch=64",
	     200,
	     {CK_ADAMW, .lr = 3e-3, .weight_decay = 1e-2, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8},
	     CK_DTYPE_NONE},
	    {"mlp:layers=3,width=64,batch=64",
	     300,
	     {CK_ADAMW, .lr = 2e-3, .weight_decay = 1e-2, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8},
	     CK_BF16},
	    {"mlp:layers=3,width=64,batch=64", 500, {CK_SGD, .lr = 0.1, .momentum = 0.9}, CK_F16},
	    {"cnn:depth=20,image=8,channels=1,width=8,classes=10,batch=64",
	     200,
	     {CK_ADAMW, .lr = 3e-3, .weight_decay = 1e-2, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8},
	     CK_BF16},
	};
	for (size_t i = 0; i < sizeof learners / sizeof *learners; i++) {
		ck_err err = {""};
		bench b = open_mixed(learners[i].model, 2, learners[i].low, &learners[i].optimizer);
		ck_program *p = program_of(&b, "stages");
		ck_batch *batch = NULL;
		ck_course c;
		cr_assert(ck_batch_open(b.graph, "digits", b.seed, &batch, &err) == CK_OK, "%s", err.text);
		cr_assert(train(&b, p, batch, learners[i].steps, NULL, &c, &err) == CK_OK, "%s", err.text);
		cr_expect(c.accuracy > 0.95 && c.accuracy <= 1, "%s with %s, amp %s: accuracy %.4f after %d steps",
			  learners[i].model, ck_optimizer_name(learners[i].optimizer.kind), amps[learners[i].low], c.accuracy,
			  c.steps);
		cr_expect(c.accuracy_steps == batch->batches && c.rows == 64);
		cr_expect(c.loss[c.steps - 1] < 0.3 * c.loss[0], "%s: loss from %g to %g", learners[i].model, c.loss[0],
			  c.loss[c.steps - 1]);
		ck_course_free(&c);
		ck_batch_close(batch);
		ck_program_free(p);
		bench_close(&b);
	}
}
