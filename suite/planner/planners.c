/* What each planner decides, held against its definition; exact. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "harness/plan/layout.h"
#include "kernels/alloc.h"
#include "suite/support.h"

static ck_graph *build(const char *model)
{
	ck_err err = {0};
	ck_settings s = {0};
	ck_graph *g = NULL;
	cr_assert(ck_settings_read(&s, model, &err) == CK_OK && ck_model_build(&s, CK_F32, &g, &err) == CK_OK, "%s", err.text);
	return g;
}

static ck_schedule make(const ck_graph *g, const char *plan)
{
	ck_err err = {0};
	ck_plan p;
	ck_schedule s = {0};
	cr_assert(ck_plan_read(g, plan, &p, &err) == CK_OK && ck_plan_make(g, &p, &s, &err) == CK_OK, "%s", err.text);
	return s;
}

static ck_trace trace_of(const ck_graph *g, const char *plan)
{
	ck_err err = {0};
	ck_schedule s = make(g, plan);
	ck_trace t;
	cr_assert(ck_schedule_check(g, &s, (ck_workspaces){0}, &t, &err) == CK_OK, "%s: %s", plan, err.text);
	ck_schedule_free(&s);
	return t;
}

static bool same(const ck_graph *g, const char *a, const char *b)
{
	ck_schedule x = make(g, a), y = make(g, b);
	bool equal = x.n == y.n && ck_schedule_digest(&x) == ck_schedule_digest(&y);
	ck_schedule_free(&x);
	ck_schedule_free(&y);
	return equal;
}

/* Marks the stages that some op is run in again. */
static void recomputed_stages(const ck_graph *g, const char *plan, char *marks)
{
	ck_schedule s = make(g, plan);
	int *runs = ck_alloc((size_t)g->nops, sizeof *runs);
	memset(marks, '.', (size_t)g->nstages);
	marks[g->nstages] = 0;
	for (int i = 0; i < s.n; i++)
		if (s.at[i].code == 'F' && runs[s.at[i].id]++)
			marks[g->ops[s.at[i].id].stage] = 'R';
	free(runs);
	ck_schedule_free(&s);
}

/* 10 stages of linear + GELU: each but a segment's last has something to recompute (a GELU needs its stash, so the last has, too). */
static const char *const chain = "mlp:layers=10,width=8,inputs=8,classes=8,batch=4,activation=gelu";

Test(planners, segments_are_where_they_should_be)
{
	static const struct {
		const char *plan, *marks;
	} cases[] = {
	    {"none", ".........."},       {"uniform:1", ".........."}, {"torch:1", ".........."},  {"every:10", ".........."},
	    {"torch:3", "RRRRRR...."},    {"torch:2", "RRRRR....."},   {"torch:4", "RRRRRR...."},  {"torch:10", "RRRRRRRRR."},
	    {"torch:6", "RRRRR....."},    {"every:4", "RRRRRRRR.."},   {"every:3", "RRRRRRRRR."},  {"every:1", "RRRRRRRRR."},
	    {"blocks:3", "RRR......."},   {"blocks:1", "R........."},  {"blocks:9", "RRRRRRRRR."}, {"blocks:10", "RRRRRRRRRR"},
	    {"uniform:10", "RRRRRRRRR."},
	};
	ck_graph *g = build(chain);
	cr_assert(g->nstages == 10, "%d stages", g->nstages);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char marks[32];
		recomputed_stages(g, cases[i].plan, marks);
		cr_expect(strcmp(marks, cases[i].marks) == 0, "%s: %s, should be %s", cases[i].plan, marks, cases[i].marks);
	}
	cr_expect(same(g, "none", "uniform:1") && same(g, "none", "torch:1") && same(g, "every:1", "uniform:10"));
	cr_expect(!same(g, "none", "uniform:2"));
	ck_graph_free(g);
}

/* The least possible largest segment, by trying every partition of n stages into k. */
static size_t best_partition(const size_t *saved, int n, int k)
{
	if (k == 1) {
		size_t sum = 0;
		for (int s = 0; s < n; s++)
			sum += saved[s];
		return sum;
	}
	size_t best = SIZE_MAX, last = 0;
	for (int first = n - 1; first >= k - 1; first--) {
		last += saved[first];
		size_t rest = best_partition(saved, first, k - 1), largest = rest > last ? rest : last;
		best = largest < best ? largest : best;
	}
	return best;
}

Test(planners, uniform_is_balanced, .timeout = 60)
{
	static const char *const models[] = {"resnet20:image=8,batch=2", "gpt-tiny",
					     "vgg11:image=32,batch=2,width=8,classes=10"};
	for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
		ck_graph *g = build(models[m]);
		size_t *saved = ck_alloc((size_t)g->nstages, sizeof *saved);
		ck_stage_saved_bytes(g, saved);
		int n = g->nstages < 14 ? g->nstages : 14; /* trying all partitions of more takes too long */
		for (int k = 1; k <= n; k++) {
			int *first = ck_alloc((size_t)k + 1, sizeof *first);
			ck_balanced_partition(saved, n, k, first);
			size_t largest = 0;
			for (int i = 0; i < k; i++) {
				size_t sum = 0;
				cr_expect(first[i] < first[i + 1], "%s: segment %d of %d is empty", models[m], i, k);
				for (int s = first[i]; s < first[i + 1]; s++)
					sum += saved[s];
				largest = sum > largest ? sum : largest;
			}
			cr_expect(first[0] == 0 && first[k] == n && largest == best_partition(saved, n, k),
				  "%s: %d segments: largest %zu, best %zu", models[m], k, largest, best_partition(saved, n, k));
			free(first);
		}
		free(saved);
		ck_graph_free(g);
	}
}

Test(planners, knobs_out_of_range_are_refused)
{
	static const struct {
		const char *plan, *fragment;
	} cases[] = {
	    {"uniform:0", "from 1 to 10"},   {"uniform:11", "has 10 stages"}, {"uniform:-1", "whole number"},
	    {"uniform:two", "whole number"}, {"uniform:", "whole number"},    {"uniform", "whole number"},
	    {"uniform:2x", "whole number"},  {"uniform: 2", "whole number"},  {"uniform:99999999999999999999", "whole number"},
	    {"every:0", "from 1 to 10"},     {"torch:11", "from 1 to 10"},    {"none:3", "takes nothing"},
	    {"", "no planner is named"},     {"best", "the planners are"},    {"blocks:nan", "whole number"},
	};
	ck_graph *g = build(chain);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		ck_err err = {0};
		ck_plan p;
		cr_expect(ck_plan_read(g, cases[i].plan, &p, &err) == CK_USAGE && strstr(err.text, cases[i].fragment),
			  "'%s': %s", cases[i].plan, err.text);
	}
	ck_graph_free(g);
}

/* A recompute makes what its backwards read and no more. ReLU's backward reads its output, so that in a chain of linear + ReLU a segment's
 * output serves for its last op, and only those before it run again. */
Test(planners, nothing_is_recomputed_needlessly)
{
	static const struct {
		const char *plan;
		int ops;
	} cases[] = {
	    {"every:1", 0}, {"every:2", 4},  {"every:5", 4}, {"uniform:2", 4},
	    {"torch:3", 4}, {"blocks:9", 0}, {"stages", 2}, /* loss, logits */
	};
	ck_graph *g = build("mlp:layers=10,width=8,inputs=8,classes=8,batch=4");
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		ck_trace t = trace_of(g, cases[i].plan);
		cr_expect(t.recomputed_ops == cases[i].ops, "%s: %d ops run again, should be %d", cases[i].plan,
			  t.recomputed_ops, cases[i].ops);
		ck_trace_free(&t);
	}
	ck_graph_free(g);
}

/* More segments hold less at the peak, on models whose activations matter; and FLOPs add up. */
Test(planners, recomputing_saves)
{
	static const char *const models[] = {"resnet20:batch=8", "gpt-char:batch=2,layers=4", "mlp-wide:batch=4096"};
	for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
		ck_graph *g = build(models[m]);
		ck_trace none = trace_of(g, "none"), two = trace_of(g, "uniform:2"), four = trace_of(g, "uniform:4");
		cr_expect(none.recomputed_ops == 0 && none.executed_flops == g->model_flops, "%s", models[m]);
		cr_expect(two.peak < none.peak && four.peak < two.peak, "%s: %zu, %zu, %zu", models[m], none.peak, two.peak,
			  four.peak);
		cr_expect(four.executed_flops == g->model_flops + four.recompute_flops, "%s", models[m]);
		ck_trace_free(&none);
		ck_trace_free(&two);
		ck_trace_free(&four);
		ck_graph_free(g);
	}
}

/* Arenas stay within 3 % of the live peak, what persists left aside, at full size (without workspaces, which parity's runs include). */
Test(planners, arenas_are_tight, .timeout = 120)
{
	static const char *const models[] = {
	    "mlp-wide", "resnet18", "resnet20", "resnet50", "vgg11", "gpt-char", "gpt-char:dropout=0.1", "gpt2"};
	for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
		ck_graph *g = build(models[m]);
		for (int k = 1; k <= g->nstages; k++) {
			char plan[32];
			snprintf(plan, sizeof plan, "uniform:%d", k);
			ck_trace t = trace_of(g, plan);
			ck_layout l;
			ck_err err = {0};
			cr_assert(ck_layout_make(g, &t, &l, &err) == CK_OK);
			double step = (double)(t.peak - t.persistent), arena = (double)(l.arena - l.persistent_bytes);
			cr_expect(arena <= 1.03 * step, "%s %s: %.2f %% above the live peak", models[m], plan,
				  100 * (arena / step - 1));
			ck_layout_free(&l);
			ck_trace_free(&t);
		}
		ck_graph_free(g);
	}
}

Test(planners, ten_thousand_layers, .timeout = 240)
{
	bench b = bench_open_model("mlp:layers=10000,width=4,inputs=4,classes=3,batch=2", "cpu", 1, 1);
	cr_expect(b.graph->nstages == 10000);
	ck_schedule none = bench_plan(&b, "none"), hundred = bench_plan(&b, "uniform:100");
	ck_program *p = bench_program(&b, &none), *q = bench_program(&b, &hundred);
	ck_outcome x = bench_outcome(&b, p), y = bench_outcome(&b, q);
	ck_err why = {0};
	cr_expect(ck_outcome_compare(b.graph, &x, &y, &why) == CK_BITWISE, "%s", why.text);
	ck_outcome_free(&x);
	ck_outcome_free(&y);
	ck_program_free(p);
	ck_program_free(q);
	ck_schedule_free(&none);
	ck_schedule_free(&hundred);
	bench_close(&b);
}
