/* Every fault is caught wherever it can exist, every one exists somewhere, and no check fires where nothing is wrong. By hand:
 * ckbench faults MODEL --plans PLAN. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "harness/fault/fault.h"
#include "kernels/alloc.h"
#include "suite/support.h"

enum { FAULTS_MOST = 128 };

static int caught[FAULTS_MOST]; /* by fault: in how many cells */

/* A model by the counter, or with a running generator. */
typedef struct ground {
	bench b;
	ck_outcome baseline;
} ground;

static ground open_ground(const char *model, ck_rng_kind rng)
{
	ground g = {.b = bench_open_model(model, "cpu", 1, 1)};
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

static void try_plan(ground *g, const char *model, const char *plan)
{
	ck_err err = {0};
	ck_fault_verdict v;
	ck_rng_kind rng = g->b.session->rng;
	ck_schedule s = bench_plan(&g->b, plan);
	ck_fault_subject subject = {g->b.session, &s, &g->baseline, g->b.seed, NULL};
	cr_assert(ck_fault_try(&subject, NULL, &v, &err) == CK_OK, "%s", err.text);
	cr_expect(v.status == CK_FAULT_MISSED && v.by == 0 && !v.shapes_only && v.rng == rng,
		  "ckbench faults %s --plans %s --rng %s: false alarm: %s", model, plan, ck_rng_names[rng], v.why.text);
	for (int i = 0; ck_faults()[i]; i++) {
		const ck_fault *f = ck_faults()[i];
		if (f->stateful && rng != CK_RNG_STATEFUL)
			continue;
		cr_assert(ck_fault_try(&subject, f, &v, &err) == CK_OK, "%s", err.text);
		cr_expect(v.status != CK_FAULT_MISSED, "ckbench faults %s --plans %s --rng %s: %s is missed", model, plan,
			  ck_rng_names[rng], f->name);
		cr_expect(v.acted == (v.status == CK_FAULT_CAUGHT), "ckbench faults %s --plans %s: %s: %s", model, plan,
			  f->name, v.why.text);
		cr_expect((v.by != 0) == v.acted && v.why.text[0], "ckbench faults %s --plans %s: %s says nothing", model, plan,
			  f->name);
		caught[i] += v.status == CK_FAULT_CAUGHT;
	}
	ck_schedule_free(&s);
}

/* What draws nothing is the same under both disciplines. */
static void try_model(const char *model)
{
	for (int rng = 0; rng < CK_RNG_KINDS; rng++) {
		ground g = open_ground(model, (ck_rng_kind)rng);
		bool tell_apart = rng == CK_RNG_COUNTER || g.baseline.has[CK_DIGEST_RANDOM];
		if (tell_apart)
			try_plan(&g, model, "stages");
		if (tell_apart && g.b.graph->nstages >= 4)
			try_plan(&g, model, "uniform:4");
		close_ground(&g);
	}
}

Test(faults, all_are_caught, .timeout = 300)
{
	char **cases = read_list("parity.txt");
	for (int i = 0; cases[i]; i++)
		try_model(cases[i]);
	free_list(cases);
	int n = 0;
	for (; ck_faults()[n]; n++)
		cr_expect(caught[n] > 0, "%s applies to no case of parity.txt", ck_faults()[n]->name);
	cr_expect(n >= 20, "only %d faults", n);
}

/* Names are what records and people go by. */
Test(faults, are_named_once)
{
	for (int i = 0; ck_faults()[i]; i++) {
		const ck_fault *f = ck_faults()[i];
		cr_expect(f->field && f->field[0] && f->needs && f->needs[0], "%s tells too little", f->name);
		cr_expect(f->schedule || f->program || f->before || f->after || f->meter, "%s does nothing", f->name);
		for (int k = 0; k < i; k++)
			cr_expect(strcmp(ck_faults()[k]->name, f->name) != 0, "%s is there twice", f->name);
	}
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
		ck_err err = {0};
		ck_fault_verdict v;
		int f = 0;
		while (ck_faults()[f] && strcmp(ck_faults()[f]->name, cases[i].fault) != 0)
			f++;
		cr_assert(ck_faults()[f], "no fault is named %s", cases[i].fault);
		ground g = open_ground(cases[i].model, ck_faults()[f]->stateful ? CK_RNG_STATEFUL : CK_RNG_COUNTER);
		ck_schedule s = bench_plan(&g.b, "uniform:2");
		ck_fault_subject subject = {g.b.session, &s, &g.baseline, g.b.seed, NULL};
		cr_assert(ck_fault_try(&subject, ck_faults()[f], &v, &err) == CK_OK, "%s", err.text);
		cr_expect(v.status == CK_FAULT_CAUGHT && v.by >> cases[i].by & 1 && v.shapes_only == cases[i].shapes_only,
			  "ckbench faults %s --plans uniform:2: %s: by %x, shapes %d: %s", cases[i].model, cases[i].fault, v.by,
			  v.shapes_only, v.why.text);
		ck_schedule_free(&s);
		close_ground(&g);
	}
}

/* By the counter there is no state to lose. */
Test(faults, of_a_running_generator_need_one)
{
	ground g = open_ground("gpt-tiny:dropout=0.2", CK_RNG_COUNTER);
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
