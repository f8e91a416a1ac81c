/* What is not compared, and why; and what a comparison warns of. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/alloc.h"
#include "suite/compare/records.h"

static ck_result *sound(void)
{
	ck_result *r = made_record();
	made_steady(r, "none", 1);
	made_steady(r, "uniform:2", 2);
	set_text(&r->machine.processors.governor, "performance");
	snprintf(r->device.facts.driver, CK_FACT_TEXT, "570.00");
	r->device.facts.power_limit = 700;
	r->ceilings.known = true;
	r->ceilings.precision = CK_PRECISION_F32;
	r->ceilings.at.matmul[CK_PRECISION_F32] = 1000e9;
	r->ceilings.at.copy = 20e9;
	return r;
}

static bool leaves_out(const ck_comparison *c, const char *plan, const char *why)
{
	for (int i = 0; i < c->nleft_out; i++) {
		const ck_left_out *x = &c->left_out[i];
		bool same_plan = plan ? x->plan && strcmp(x->plan, plan) == 0 : !x->plan;
		if (same_plan && strstr(x->why, why))
			return true;
	}
	return false;
}

static void tell_left_out(const ck_comparison *c)
{
	for (int i = 0; i < c->nleft_out; i++)
		fprintf(stderr, "%c %s %s: %s\n", 'A' + c->left_out[i].side, c->left_out[i].what,
			c->left_out[i].plan ? c->left_out[i].plan : "", c->left_out[i].why);
}

/* ---- cases --------------------------------------------------------------------------------------------------------------- */

static void other_seed(ck_result *r)
{
	r->c.seed = 2;
}

static void other_batch(ck_result *r)
{
	r->c.settings[1].number = 16;
}

static void other_word(ck_result *r)
{
	ck_result_add_setting(r, "activation")->word = ck_text("gelu");
}

static void other_amp(ck_result *r)
{
	set_text(&r->c.amp, "bf16");
}

static void other_data(ck_result *r)
{
	set_text(&r->c.data, "digits");
}

static void other_rng(ck_result *r)
{
	set_text(&r->c.rng, "stateful");
}

static void other_graph(ck_result *r)
{
	r->c.graph = 78;
}

static void other_model(ck_result *r)
{
	set_text(&r->c.model, "cnn");
}

static void on_tf32(ck_result *r)
{
	r->c.tf32 = true;
}

static void two_of_them(ck_result *r)
{
	r->c.seed = 7;
	set_text(&r->c.amp, "fp16");
}

/* Not one word of a case may differ, save for its threads. */
Test(reasons, other_cases)
{
	static const struct {
		void (*change)(ck_result *);
		const char *why;
	} cases[] = {
	    {other_seed, "seed 1 in A, 2 in B"},
	    {other_batch, "batch 8 in A, 16 in B"},
	    {other_word, "activation - in A, gelu in B"},
	    {other_amp, "amp off in A, bf16 in B"},
	    {other_data, "data random in A, digits in B"},
	    {other_rng, "rng counter in A, stateful in B"},
	    {other_graph,
	     "graph 000000000000004d in A, 000000000000004e in B; the versions of ckbench build this model otherwise"},
	    {other_model, "A has no record of cnn"},
	    {on_tf32, "tf32 - in A, on in B"},
	    {two_of_them, "amp off in A, fp16 in B; seed 1 in A, 7 in B"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		ck_comparison c;
		ck_err err = {""};
		ck_comparison_open(&c, 0, NULL);
		add_side(&c, sound());
		ck_result *other = sound();
		cases[i].change(other);
		add_side(&c, other);
		cr_expect(ck_comparison_make(&c, &err) == CK_USAGE && strstr(err.text, "share no plan"), "case %zu: %s", i,
			  err.text);
		cr_expect(leaves_out(&c, NULL, cases[i].why), "case %zu: no '%s'", i, cases[i].why);
		tell_left_out(&c);
		ck_comparison_free(&c);
	}
}

static void add_to(ck_comparison *c, int side, const char *file, double seconds, int64_t seed)
{
	ck_err err = {""};
	ck_result *r = made_record();
	r->c.seed = seed;
	made_steady(r, "none", seconds);
	cr_assert(ck_comparison_add(c, side, file, made_sealed(r), &err) == CK_OK, "%s", err.text);
}

/* Of several records, those that fit are compared, those without a counterpart listed once, the second of a case passed over. */
Test(reasons, folders)
{
	ck_comparison c;
	ck_err err = {""};
	ck_comparison_open(&c, 0, NULL);
	int a = ck_comparison_add_side(&c, "a"), b = ck_comparison_add_side(&c, "b");
	add_to(&c, a, "a/1", 1, 1);
	add_to(&c, a, "a/2", 1, 2);
	add_to(&c, a, "a/3", 3, 1); /* the case of a/1 again */
	add_to(&c, b, "b/1", 4, 2);
	add_to(&c, b, "b/2", 5, 9);
	cr_assert(ck_comparison_make(&c, &err) == CK_OK, "%s", err.text);
	cr_expect(c.npairs == 1 && c.pairs[0].base->c.seed == 2 && c.pairs[0].at[0].time.at == 4);
	cr_expect(leaves_out(&c, NULL, "a/1 has the same case, and is taken"));
	cr_expect(leaves_out(&c, NULL, "seed 1 in A, 9 in B"));
	cr_expect(c.nleft_out == 2, "%d left out", c.nleft_out);
	tell_left_out(&c);
	ck_comparison_free(&c);
	/* A case that the other side has nothing like. */
	ck_comparison_open(&c, 0, NULL);
	a = ck_comparison_add_side(&c, "a"), b = ck_comparison_add_side(&c, "b");
	add_to(&c, a, "a/1", 1, 1);
	add_to(&c, a, "a/2", 1, 2);
	add_to(&c, b, "b/1", 4, 2);
	cr_assert(ck_comparison_make(&c, &err) == CK_OK, "%s", err.text);
	cr_expect(c.nleft_out == 1 && leaves_out(&c, NULL, "B has no record of it"));
	ck_comparison_free(&c);
}

/* ---- plans --------------------------------------------------------------------------------------------------------------- */

static void failed_parity(ck_point *p)
{
	p->verdict = CK_PARITY_FAILED;
	ck_point_fail(p, CK_POINT_PARITY_FAILED, ck_text("fc1.weight differs"));
}

static void proves_nothing(ck_point *p)
{
	p->verdict = CK_PROVES_NOTHING;
}

static void skipped(ck_point *p)
{
	ck_point_fail(p, CK_POINT_SKIPPED, ck_text("no room"));
}

static void not_timed(ck_point *p)
{
	ck_samples_free(&p->time);
}

static void renamed(ck_point *p)
{
	set_text(&p->plan, "uniform:3");
}

static void tell_pair(const ck_comparison *c, size_t i, const char *plan, const char *why)
{
	cr_expect(c->npairs == 1 && c->pairs[0].n == 1 && strcmp(c->pairs[0].at[0].base->plan, "none") == 0,
		  "case %zu: other plans were compared", i);
	cr_expect(leaves_out(c, plan, why), "case %zu: no '%s' of %s", i, why, plan);
	tell_left_out(c);
}

Test(reasons, plans)
{
	static const struct {
		void (*change)(ck_point *);
		const char *why[2]; /* when it is A's, B's */
	} cases[] = {
	    {failed_parity, {"failed parity in A: fc1.weight differs", "failed parity in B: fc1.weight differs"}},
	    {proves_nothing, {"parity in A: proves-nothing", "parity in B: proves-nothing"}},
	    {skipped, {"skipped in A: no room", "skipped in B: no room"}},
	    {not_timed, {"not timed in A", "not timed in B"}},
	    {renamed, {"A has no such plan", "B has no such plan"}},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		for (int side = 0; side < 2; side++) {
			ck_comparison c;
			ck_result *r[2] = {sound(), sound()};
			cases[i].change(&r[side]->points[1]);
			compare_made(&c, r[0], r[1]);
			tell_pair(&c, i, "uniform:2", cases[i].why[side]);
			if (cases[i].change == renamed)
				cr_expect(leaves_out(&c, "uniform:3", side == 0 ? "B has no such plan" : "A has no such plan"));
			ck_comparison_free(&c);
		}
	}
}

/* A schedule is called by its file, which may hold another on another machine. */
Test(reasons, schedules)
{
	for (int same = 0; same < 2; same++) {
		ck_comparison c;
		ck_result *r[2] = {sound(), sound()};
		for (int side = 0; side < 2; side++)
			made_steady(r[side], "schedule:s", 3);
		r[1]->points[2].executed_flops = same ? 100 : 101;
		compare_made(&c, r[0], r[1]);
		cr_expect(c.pairs[0].n == 2 + same);
		cr_expect(leaves_out(&c, "schedule:s", "another schedule in B") == !same);
		ck_comparison_free(&c);
	}
}

/* ---- warnings ------------------------------------------------------------------------------------------------------------ */

static bool warns(const ck_comparison *c, const char *of)
{
	for (int i = 0; i < c->nwarnings; i++)
		if (strstr(c->warnings[i], of))
			return true;
	return false;
}

static void other_threads(ck_result *r)
{
	r->device.threads = 1;
	set_text(&r->device.description, "oneDNN 2.6.3, 1 thread");
}

static void too_many_threads(ck_result *r)
{
	r->machine.cores = 1;
}

static void other_library(ck_result *r)
{
	set_text(&r->device.description, "oneDNN 3.2.0, 2 threads");
}

static void other_compiler(ck_result *r)
{
	set_text(&r->tool.compiler, "clang 14");
}

static void dirty(ck_result *r)
{
	set_text(&r->tool.git, "0123456789ab-dirty");
}

static void unknown(ck_result *r)
{
	set_text(&r->tool.git, "unknown");
}

static void sanitized(ck_result *r)
{
	set_text(&r->tool.flags, "-O3 -fsanitize=address");
}

static void interrupted(ck_result *r)
{
	set_text(&r->measuring.end, "interrupted");
}

static void other_peak(ck_result *r)
{
	r->points[1].live_peak = 600;
}

static void other_work(ck_result *r)
{
	r->points[1].recomputed_ops = 5;
}

static void few_samples(ck_result *r)
{
	r->points[1].time.n = 6;
}

static void other_baseline(ck_result *r)
{
	set_text(&r->baseline, "uniform:2");
}

static void other_governor(ck_result *r)
{
	set_text(&r->machine.processors.governor, "powersave");
}

static void other_driver(ck_result *r)
{
	snprintf(r->device.facts.driver, CK_FACT_TEXT, "580.65.06");
}

static void other_power(ck_result *r)
{
	r->device.facts.power_limit = 350;
}

static void lower_ceiling(ck_result *r)
{
	r->ceilings.at.matmul[CK_PRECISION_F32] = 900e9; /* of 1000e9: 11 % */
}

static void close_ceiling(ck_result *r)
{
	r->ceilings.at.matmul[CK_PRECISION_F32] = 910e9;
}

static void slower_copy(ck_result *r)
{
	r->ceilings.at.copy = 5e9;
}

static void throttled(ck_result *r)
{
	r->points[1].time.throttled = ck_alloc(FEW, sizeof(bool));
	r->points[1].time.throttled[2] = r->points[1].time.throttled[5] = true;
}

static void within_noise(ck_result *r)
{
	r->points[1].verdict = CK_WITHIN_NOISE;
	r->points[1].noise.runs = 5;
	r->points[1].noise.tensor = ck_text("fc1.weight");
	r->points[1].noise.floor = 1e-6;
	r->points[1].noise.worst = 2e-6;
	r->points[1].noise.allowed = 4e-6;
}

static void same_as_ever(ck_result *r)
{
	(void)r;
}

Test(reasons, warnings)
{
	static const struct {
		void (*change)(ck_result *);
		const char *says; /* NULL: nothing */
	} cases[] = {
	    {same_as_ever, NULL},
	    {other_threads, "B ran with 1 thread, A with 2"},
	    {too_many_threads, "B had 2 threads take turns on 1 core(s)"},
	    {other_library, "B's device is \"oneDNN 3.2.0\", A's is \"oneDNN 2.6.3\""},
	    {other_compiler, "B was compiled with clang 14 -O3, A with gcc 12.2.0 -O3"},
	    {dirty, "B was built from changed files (0123456789ab-dirty)"},
	    {unknown, "B does not know its revision"},
	    {sanitized, "B is no build to measure with (-O3 -fsanitize=address)"},
	    {interrupted, "B was interrupted after 9 rounds"},
	    {other_peak, "mlp: the live peak of 1 of 2 plans is another in B"},
	    {other_work, "mlp: 1 of 2 plans do other work in B"},
	    {few_samples, "mlp: too few samples in A or B for an interval of 1 of 2 plans"},
	    {other_governor, "B's frequency governor is powersave, A's is performance"},
	    {other_driver, "B's driver is 580.65.06, A's is 570.00"},
	    {other_power, "B's power limit is 350 W, A's is 700 W"},
	    {lower_ceiling, "B's ceiling of products in f32 is 900.0 GFLOP/s, A's 1.0 TFLOP/s"},
	    {close_ceiling, NULL},
	    {slower_copy, "B's ceiling of a copy is 5.0 GB/s, A's 20.0 GB/s"},
	    {throttled, "B's device slowed itself down in 2 of 18 samples of mlp"},
	    {within_noise,
	     "B was held against noise, not bits, in 1 of 2 plans of mlp (--fast); the most: fc1.weight, by 2e-06 of its norm"},
	    {other_baseline, "overhead is over plan uniform:2 in B, over none in A"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		ck_comparison c;
		ck_result *other = sound();
		cases[i].change(other);
		compare_made(&c, sound(), other);
		cr_expect(c.pairs[0].n == 2, "case %zu: still compared", i);
		bool expected = cases[i].says ? warns(&c, cases[i].says) : c.nwarnings == 0;
		cr_expect(expected, "case %zu: no '%s'", i, cases[i].says ? cases[i].says : "silence");
		/* What differs in threads alone is not told as another device. */
		cr_expect(cases[i].change != other_threads || c.nwarnings == 1, "case %zu: %d warnings", i, c.nwarnings);
		for (int k = 0; k < c.nwarnings; k++)
			fprintf(stderr, "%s\n", c.warnings[k]);
		ck_comparison_free(&c);
	}
}

/* ---- names --------------------------------------------------------------------------------------------------------------- */

static void expect_names(ck_result *a, ck_result *b, const char *first, const char *second)
{
	ck_comparison c;
	compare_made(&c, a, b);
	cr_expect_str_eq(c.sides[0].name, first);
	cr_expect_str_eq(c.sides[1].name, second);
	ck_comparison_free(&c);
}

/* As short as tells them apart. */
Test(reasons, names)
{
	ck_result *b = sound();
	set_text(&b->tool.git, "ba9876543210");
	expect_names(sound(), b, "Intel Xeon, 0123456789ab", "Intel Xeon, ba9876543210");
	b = sound();
	other_threads(b);
	expect_names(sound(), b, "Intel Xeon, 0123456789ab, 2 threads", "Intel Xeon, 0123456789ab, 1 thread");
	b = sound();
	other_compiler(b);
	expect_names(sound(), b, "Intel Xeon, 0123456789ab, gcc 12.2.0 -O3", "Intel Xeon, 0123456789ab, clang 14 -O3");
	expect_names(sound(), sound(), "Intel Xeon, 0123456789ab, a.json", "Intel Xeon, 0123456789ab, b.json");
	b = sound();
	set_text(&b->device.name, "cuda:0");
	set_text(&b->device.description, "NVIDIA H200 (9.0), CUDA 13.0");
	expect_names(sound(), b, "Intel Xeon, 0123456789ab", "NVIDIA H200 (9.0), 0123456789ab");
	b = sound();
	set_text(&b->device.name, "ref");
	expect_names(sound(), b, "Intel Xeon, 0123456789ab", "Intel Xeon (ref), 0123456789ab");
}
