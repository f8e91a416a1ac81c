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

static void try_plan(bench *b, const char *model, const ck_outcome *baseline, const char *plan)
{
	ck_err err = {0};
	ck_fault_verdict v;
	ck_schedule s = bench_plan(b, plan);
	ck_fault_subject subject = {b->session, &s, baseline, b->seed, NULL};
	cr_assert(ck_fault_try(&subject, NULL, &v, &err) == CK_OK, "%s", err.text);
	cr_expect(v.status == CK_FAULT_MISSED && v.by == 0 && !v.shapes_only, "ckbench faults %s --plans %s: false alarm: %s",
		  model, plan, v.why.text);
	for (int i = 0; ck_faults()[i]; i++) {
		const ck_fault *f = ck_faults()[i];
		cr_assert(ck_fault_try(&subject, f, &v, &err) == CK_OK, "%s", err.text);
		cr_expect(v.status != CK_FAULT_MISSED, "ckbench faults %s --plans %s: %s is missed", model, plan, f->name);
		cr_expect(v.acted == (v.status == CK_FAULT_CAUGHT), "ckbench faults %s --plans %s: %s: %s", model, plan,
			  f->name, v.why.text);
		cr_expect((v.by != 0) == v.acted && v.why.text[0], "ckbench faults %s --plans %s: %s says nothing", model, plan,
			  f->name);
		caught[i] += v.status == CK_FAULT_CAUGHT;
	}
	ck_schedule_free(&s);
}

static void try_model(const char *model)
{
	bench b = bench_open_model(model, "cpu", 1, 1);
	ck_schedule none = bench_plan(&b, "none");
	ck_program *p = bench_program(&b, &none);
	ck_outcome baseline = bench_outcome(&b, p);
	try_plan(&b, model, &baseline, "stages");
	if (b.graph->nstages >= 4)
		try_plan(&b, model, &baseline, "uniform:4");
	ck_outcome_free(&baseline);
	ck_program_free(p);
	ck_schedule_free(&none);
	bench_close(&b);
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
		cr_expect(f->schedule || f->program || f->before || f->after || f->meter || f->scaler, "%s does nothing",
			  f->name);
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
	    {"gpt-tiny:dropout=0.2", "mask-of-other-step", CK_DIGEST_GRADIENTS, false},
	    {"gpt-tiny:dropout=0.2", "stream-moved-on", CK_DIGEST_RANDOM, false},
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
		bench b = bench_open_model(cases[i].model, "cpu", 1, 1);
		ck_schedule none = bench_plan(&b, "none"), s = bench_plan(&b, "uniform:2");
		ck_program *p = bench_program(&b, &none);
		ck_outcome baseline = bench_outcome(&b, p);
		int f = 0;
		while (ck_faults()[f] && strcmp(ck_faults()[f]->name, cases[i].fault) != 0)
			f++;
		cr_assert(ck_faults()[f], "no fault is named %s", cases[i].fault);
		ck_fault_subject subject = {b.session, &s, &baseline, b.seed, NULL};
		cr_assert(ck_fault_try(&subject, ck_faults()[f], &v, &err) == CK_OK, "%s", err.text);
		cr_expect(v.status == CK_FAULT_CAUGHT && v.by >> cases[i].by & 1 && v.shapes_only == cases[i].shapes_only,
			  "ckbench faults %s --plans uniform:2: %s: by %x, shapes %d: %s", cases[i].model, cases[i].fault, v.by,
			  v.shapes_only, v.why.text);
		ck_outcome_free(&baseline);
		ck_program_free(p);
		ck_schedule_free(&none);
		ck_schedule_free(&s);
		bench_close(&b);
	}
}
