/* Every planner with every knob it takes, on every case of suite/inputs/parity.txt: the bits of plan `none`, the predicted live peak,
 * and an arena close to it. By hand: ckbench parity MODEL --threads N. */
#include <criterion/criterion.h>

#include "suite/support.h"

TestSuite(plans, .init = device_or_skip);

typedef struct tally {
	bench b;
	const char *model;
	int threads;
	ck_outcome baseline;
	int plans, recomputing;
} tally;

static void check_plan(void *user, const char *plan)
{
	tally *t = user;
	ck_schedule s = bench_plan(&t->b, plan);
	ck_program *p = bench_program(&t->b, &s);
	ck_outcome o = bench_outcome(&t->b, p);
	ck_err why = {0};
	if (t->plans++ == 0)
		t->baseline = bench_outcome(&t->b, p);
	cr_expect(ck_outcome_compare(t->b.graph, &t->baseline, &o, &why) == CK_BITWISE,
		  "ckbench parity %s --plans %s --threads %d: %s", t->model, plan, t->threads, why.text);
	cr_expect(o.live_peak == p->trace.peak, "%s %s: live peak %zu, predicted %zu", t->model, plan, o.live_peak,
		  p->trace.peak);
	t->recomputing += p->trace.recomputed_ops > 0;
	ck_outcome_free(&o);
	ck_program_free(p);
	ck_schedule_free(&s);
}

static void check_case(const char *model, int threads)
{
	tally t = {.b = bench_open_model(model, device_under_test(), threads, 1), .model = model, .threads = threads};
	bench_each_plan(t.b.graph, check_plan, &t);
	cr_expect(t.b.graph->nstages < 3 || t.recomputing > t.plans / (device_is_slow() ? 6 : 3),
		  "%s: only %d of %d plans recompute anything", model, t.recomputing, t.plans);
	ck_outcome_free(&t.baseline);
	bench_close(&t.b);
}

static void check_list(int threads)
{
	char **cases = parity_cases();
	for (int i = 0; cases[i]; i++) {
		printf("# ckbench parity %s --threads %d\n", cases[i], threads);
		check_case(cases[i], threads);
	}
	free_list(cases);
}

Test(plans, one_thread, .timeout = 300)
{
	check_list(1);
}

Test(plans, two_threads, .timeout = 300)
{
	device_is_cpu_or_skip();
	check_list(2);
}

Test(plans, four_threads, .timeout = 300)
{
	device_is_cpu_or_skip();
	check_list(4);
}

Test(plans, float64_reference, .timeout = 300)
{
	char **cases = parity_cases();
	for (int i = 0; cases[i]; i++) {
		if (i % 4) /* every fourth, since ref is slow */
			continue;
		tally t = {.b = bench_open_model(cases[i], "ref", 1, 1), .model = cases[i], .threads = 1};
		check_plan(&t, "none");
		check_plan(&t, "stages");
		ck_outcome_free(&t.baseline);
		bench_close(&t.b);
	}
	free_list(cases);
}

/* The model's loss on cpu in float32 and on ref in float64 are the same number but for rounding; so are they with and without fusion. */
Test(plans, backends_agree, .timeout = 300)
{
	char **cases = parity_cases();
	for (int i = 0; cases[i]; i++) {
		double loss[2];
		for (int k = 0; k < 2; k++) {
			bench b = bench_open_model(cases[i], k ? "ref" : device_under_test(), 1, 3);
			ck_schedule s = bench_plan(&b, "none");
			ck_program *p = bench_program(&b, &s);
			ck_outcome o = bench_outcome(&b, p);
			loss[k] = o.loss;
			ck_outcome_free(&o);
			ck_program_free(p);
			ck_schedule_free(&s);
			bench_close(&b);
		}
		cr_expect(loss[1] > 0 && (loss[0] - loss[1]) / loss[1] < 1e-4 && (loss[1] - loss[0]) / loss[1] < 1e-4,
			  "%s: loss %.9g and %.9g", cases[i], loss[0], loss[1]);
	}
	free_list(cases);
}
