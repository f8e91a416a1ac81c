/* Every fault is caught wherever it can exist, every one exists somewhere in every precision, or in those that are listed here; and
 * no check fires where nothing is wrong. By hand: ckbench faults MODEL --amp TYPE --plans PLAN. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "harness/fault/fault.h"
#include "kernels/alloc.h"
#include "suite/support.h"

TestSuite(faults, .init = device_or_skip);

enum { FAULTS_MOST = 128 };

enum { OFF, BF16, FP16, PRECISIONS };
static const char *const amp_words[PRECISIONS] = {"off", "bf16", "fp16"};
static const ck_dtype lows[PRECISIONS] = {CK_DTYPE_NONE, CK_BF16, CK_F16};

/* Faults that cannot be made in every precision, and those in which they can. All others can in each. */
static const struct {
	const char *fault;
	bool in[PRECISIONS];
} limited[] = {
    {"recompute-outside-autocast", {false, true, true}},
    {"recompute-in-other-16-bit", {false, true, true}},
    {"16-bit-type-mistaken", {false, true, true}},
    {"overflow-zeroed", {false, false, true}}, /* bfloat16 reaches as far as float32 */
    {"rounded-twice", {false, true, true}},
    {"float32-op-in-16-bits", {false, true, true}},
    {"weight-copy-stale", {false, true, true}},
    {"cast-cache-missed", {false, true, true}},
    {"copy-gradient-rounded", {false, true, true}},
    {"cast-without-backward", {false, true, true}},
    {"weight-copy-overwritten", {false, true, true}},
    {"schedule-drops-weight-copy", {false, true, true}},
    {"schedule-casts-again", {false, true, true}},
    {"maxpool-tie-flips", {true, false, true}}, /* what ties in bfloat16 tied in the forward */
};

static bool can_exist(const char *fault, int precision)
{
	for (size_t i = 0; i < sizeof limited / sizeof *limited; i++)
		if (strcmp(limited[i].fault, fault) == 0)
			return limited[i].in[precision];
	return true;
}

static int caught[PRECISIONS][FAULTS_MOST]; /* by fault: in how many cells */

/* A model in one precision, by the counter or with a running generator. */
typedef struct ground {
	bench b;
	int precision;
	ck_outcome baseline;
} ground;

static ground open_ground(const char *model, int precision, ck_rng_kind rng)
{
	ground g = {.b = bench_open_as(model, (ck_build_options){.low = lows[precision]}, device_under_test(), 1, 1),
		    .precision = precision};
	ck_session_rng(g.b.session, rng);
	ck_schedule none = bench_plan(&g.b, "none");
	ck_program *p = bench_program(&g.b, &none);
	g.baseline = bench_outcome(&g.b, p);
	ck_program_free(p);
	ck_schedule_free(&none);
	return g;
}

static void close_ground(ground *g)
{
	ck_outcome_free(&g->baseline);
	bench_close(&g->b);
}

/* Whether the fault is to be tried here: with mixed precision and a running generator, those of the generator will do. */
static bool is_tried(const ck_fault *f, const ground *g)
{
	bool stateful = g->b.session->rng == CK_RNG_STATEFUL;
	return f->stateful ? stateful : !stateful || g->precision == OFF;
}

static void try_plan(ground *g, const char *model, const char *plan)
{
	ck_err err = {0};
	ck_fault_verdict v;
	ck_rng_kind rng = g->b.session->rng;
	ck_schedule s = bench_plan(&g->b, plan);
	ck_fault_subject subject = {g->b.session, &s, &g->baseline, g->b.seed, NULL};
	char *line =
	    ck_text("ckbench faults %s --amp %s --plans %s --rng %s", model, amp_words[g->precision], plan, ck_rng_names[rng]);
	cr_assert(ck_fault_try(&subject, NULL, &v, &err) == CK_OK, "%s", err.text);
	cr_expect(v.status == CK_FAULT_MISSED && v.by == 0 && !v.shapes_only && v.rng == rng, "%s: false alarm: %s", line,
		  v.why.text);
	for (int i = 0; ck_faults()[i]; i++) {
		const ck_fault *f = ck_faults()[i];
		if (!is_tried(f, g))
			continue;
		cr_assert(ck_fault_try(&subject, f, &v, &err) == CK_OK, "%s", err.text);
		cr_expect(v.status != CK_FAULT_MISSED, "%s: %s is missed", line, f->name);
		cr_expect(v.acted == (v.status == CK_FAULT_CAUGHT), "%s: %s: %s", line, f->name, v.why.text);
		cr_expect((v.by != 0) == v.acted && v.why.text[0], "%s: %s says nothing", line, f->name);
		caught[g->precision][i] += v.status == CK_FAULT_CAUGHT;
	}
	free(line);
	ck_schedule_free(&s);
}

/* What draws nothing is the same under both disciplines. */
static void try_model(const char *model, int precision)
{
	for (int rng = 0; rng < CK_RNG_KINDS; rng++) {
		ground g = open_ground(model, precision, (ck_rng_kind)rng);
		bool tell_apart = rng == CK_RNG_COUNTER || g.baseline.has[CK_DIGEST_RANDOM];
		if (tell_apart)
			try_plan(&g, model, "stages");
		if (tell_apart && g.b.graph->nstages >= 4)
			try_plan(&g, model, "uniform:4");
		close_ground(&g);
	}
}

static void all_are_caught(int precision)
{
	char **cases = parity_cases();
	for (int i = 0; cases[i]; i++)
		try_model(cases[i], precision);
	free_list(cases);
	int n = 0;
	for (; ck_faults()[n]; n++)
		cr_expect((caught[precision][n] > 0) == can_exist(ck_faults()[n]->name, precision),
			  "%s is caught in %d cells of parity.txt with --amp %s", ck_faults()[n]->name, caught[precision][n],
			  amp_words[precision]);
	cr_expect(n >= 20, "only %d faults", n);
}

Test(faults, all_are_caught, .timeout = 300)
{
	all_are_caught(OFF);
}

Test(faults, all_are_caught_in_bfloat16, .timeout = 300)
{
	all_are_caught(BF16);
}

Test(faults, all_are_caught_in_float16, .timeout = 300)
{
	all_are_caught(FP16);
}

/* Names are what records and people go by. */
Test(faults, are_named_once)
{
	for (int i = 0; ck_faults()[i]; i++) {
		const ck_fault *f = ck_faults()[i];
		cr_expect(f->field && f->field[0] && f->needs && f->needs[0], "%s tells too little", f->name);
		cr_expect(f->schedule || f->program || f->before || f->after || f->meter || f->scaler, "%s does nothing",
			  f->name);
		for (int k = 0; k < i; k++)
			cr_expect(strcmp(ck_faults()[k]->name, f->name) != 0, "%s is there twice", f->name);
	}
}

static const ck_fault *find_fault(const char *name)
{
	for (int i = 0; ck_faults()[i]; i++)
		if (strcmp(ck_faults()[i]->name, name) == 0)
			return ck_faults()[i];
	cr_assert(false, "no fault is named %s", name);
	return NULL;
}

static ck_fault_verdict try_one(const char *model, int precision, const char *plan, const char *name)
{
	ck_err err = {0};
	ck_fault_verdict v;
	const ck_fault *f = find_fault(name);
	ground g = open_ground(model, precision, f->stateful ? CK_RNG_STATEFUL : CK_RNG_COUNTER);
	ck_schedule s = bench_plan(&g.b, plan);
	ck_fault_subject subject = {g.b.session, &s, &g.baseline, g.b.seed, NULL};
	cr_assert(ck_fault_try(&subject, f, &v, &err) == CK_OK, "%s", err.text);
	ck_schedule_free(&s);
	close_ground(&g);
	return v;
}

/* "loss gradients" */
static const char *by_text(unsigned by, char text[200])
{
	text[0] = 0;
	for (int k = 0; k < CK_CHECKS; k++)
		if (by >> k & 1)
			sprintf(text + strlen(text), "%s%s", text[0] ? " " : "", ck_check_name(k));
	return text;
}

/* Which check has to notice, and what comparing shapes would have seen. */
Test(faults, are_caught_by_the_right_check)
{
	static const struct {
		const char *model, *fault;
		int by;
		bool shapes_only;
	} cases[] = {
	    {"resnet20:image=8,batch=4", "statistics-twice", CK_DIGEST_STATE, false},
	    {"resnet20:image=8,batch=4", "statistics-count-twice", CK_DIGEST_STATE, false},
	    {"resnet20:image=8,batch=4", "state-in-backward", CK_DIGEST_FORWARD, false},
	    {"mlp:layers=6,batch=8,tally=1", "state-in-backward", CK_DIGEST_FORWARD, false},
	    {"mlp:layers=6,batch=8,tally=1", "counter-twice", CK_DIGEST_STATE, false},
	    {"gpt-tiny:tally=1", "counter-calls-twice", CK_DIGEST_STATE, false},
	    {"gpt-tiny:dropout=0.2", "mask-of-other-step", CK_DIGEST_GRADIENTS, false},
	    {"gpt-tiny:dropout=0.2", "stream-moved-on", CK_DIGEST_RANDOM, false},
	    {"gpt-tiny:dropout=0.2", "rng-not-restored", CK_DIGEST_GRADIENTS, false},
	    {"gpt-tiny:dropout=0.2", "rng-not-put-back", CK_DIGEST_RANDOM, false},
	    {"gpt-tiny:dropout=0.2", "rng-not-preserved", CK_DIGEST_GRADIENTS, false},
	    {"gpt-tiny:dropout=0.2", "rng-not-preserved", CK_DIGEST_RANDOM, false},
	    {"gpt-tiny:dropout=0.2", "rng-saved-late", CK_DIGEST_GRADIENTS, false},
	    {"gpt-tiny", "recompute-one-ulp", CK_DIGEST_GRADIENTS, false},
	    {"gpt-tiny", "recompute-skipped", CK_DIGEST_GRADIENTS, true},
	    {"gpt-tiny", "weight-stepped-in-backward", CK_CHECK_PARAMETERS, false},
	    {"gpt-tiny", "peak-not-reset", CK_CHECK_MEMORY, false},
	    {"gpt-tiny", "offsets-overlap", CK_CHECK_WATCH, false},
	    {"gpt-tiny", "schedule-drops-too-early", CK_CHECK_VALIDATOR, false},
	    {"gpt-tiny", "schedule-forgets-a-recompute", CK_CHECK_VALIDATOR, true},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		ck_fault_verdict v = try_one(cases[i].model, OFF, "uniform:2", cases[i].fault);
		cr_expect(v.status == CK_FAULT_CAUGHT && v.by >> cases[i].by & 1 && v.shapes_only == cases[i].shapes_only,
			  "ckbench faults %s --amp off --plans uniform:2: %s: by %x, shapes %d: %s", cases[i].model,
			  cases[i].fault, v.by, v.shapes_only, v.why.text);
	}
}

/* Each mistake with mixed precision: exactly these checks notice, and this is what comparing shapes and dtypes would have seen. */
Test(faults, of_mixed_precision_are_caught_by_exactly)
{
	static const struct {
		const char *model, *plan, *fault, *by;
		bool shapes_only;
	} cases[] = {
	    {"gpt-tiny", "uniform:2", "recompute-outside-autocast", "gradients", true},
	    {"mlp:layers=8,width=32,batch=16", "uniform:2", "recompute-in-other-16-bit", "gradients input", true},
	    {"gpt-tiny", "uniform:2", "16-bit-type-mistaken", "gradients", false},
	    {"gpt-tiny", "uniform:2", "overflow-zeroed", "gradients", false},
	    {"resnet20:image=8,batch=4", "uniform:2", "rounded-twice", "gradients input", false},
	    {"gpt-tiny", "uniform:2", "float32-op-in-16-bits", "gradients", false},
	    {"gpt-tiny", "uniform:2", "weight-copy-stale", "loss gradients forward", false},
	    {"mlp:layers=8,width=32,batch=16", "uniform:2", "cast-cache-missed", "memory", false},
	    {"gpt-tiny", "uniform:2", "copy-gradient-rounded", "gradients", false},
	    {"resnet20:image=8,batch=4", "uniform:2", "cast-without-backward", "gradients input", false},
	    {"gpt-tiny", "uniform:2", "weight-copy-overwritten", "watch", false},
	    {"gpt-tiny", "uniform:2", "schedule-drops-weight-copy", "validator", false},
	    {"mlp:layers=8,width=32,batch=16", "uniform:2", "schedule-casts-again", "validator", true},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		for (int p = BF16; p <= FP16; p++) {
			ck_fault_verdict v = try_one(cases[i].model, p, cases[i].plan, cases[i].fault);
			char by[200];
			bool exists = can_exist(cases[i].fault, p);
			cr_expect_str_eq(by_text(v.by, by), exists ? cases[i].by : "",
					 "ckbench faults %s --amp %s --plans %s: %s: %s, by %s: %s", cases[i].model,
					 amp_words[p], cases[i].plan, cases[i].fault, ck_fault_status_names[v.status], by,
					 v.why.text);
			cr_expect(v.shapes_only == (exists && cases[i].shapes_only),
				  "ckbench faults %s --amp %s --plans %s: %s: shapes %d", cases[i].model, amp_words[p],
				  cases[i].plan, cases[i].fault, v.shapes_only);
		}
}

/* By the counter there is no state to lose. */
Test(faults, of_a_running_generator_need_one)
{
	ground g = open_ground("gpt-tiny:dropout=0.2", OFF, CK_RNG_COUNTER);
	ck_schedule s = bench_plan(&g.b, "uniform:2");
	ck_fault_subject subject = {g.b.session, &s, &g.baseline, g.b.seed, NULL};
	int n = 0;
	for (int i = 0; ck_faults()[i]; i++) {
		ck_err err = {0};
		ck_fault_verdict v;
		if (!ck_faults()[i]->stateful)
			continue;
		cr_assert(ck_fault_try(&subject, ck_faults()[i], &v, &err) == CK_OK, "%s", err.text);
		cr_expect(v.status == CK_FAULT_NOT_APPLICABLE && !v.acted && strstr(v.why.text, "counter"), "%s: %s",
			  ck_faults()[i]->name, v.why.text);
		n++;
	}
	cr_expect(n >= 2, "only %d faults need one", n);
	ck_schedule_free(&s);
	close_ground(&g);
}
