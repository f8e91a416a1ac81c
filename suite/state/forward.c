/* A forward alone: it saves nothing, recomputes nothing, holds the least that any order of the graph can hold, and leaves the loss and
 * the state that a step's forward leaves. By hand: the line "forward only" of ckbench parity MODEL. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "harness/plan/reads.h"
#include "kernels/alloc.h"
#include "suite/planner/random.h"
#include "suite/support.h"

TestSuite(forward, .init = device_or_skip);

static ck_schedule forward_schedule(const ck_graph *g, ck_workspaces w)
{
	ck_err err = {0};
	ck_schedule s;
	cr_assert(ck_forward_only(g, &w, &s, &err) == CK_OK, "%s", err.text);
	return s;
}

/* Each op once, and nothing outlives the last op that reads it. */
static void expect_nothing_saved(const ck_graph *g, const ck_schedule *s, const char *model)
{
	int *runs = ck_alloc((size_t)g->nops, sizeof *runs), *unread = ck_alloc((size_t)g->nvalues, sizeof *unread);
	bool *live = ck_alloc((size_t)g->nvalues, sizeof *live);
	for (int v = 0; v < g->nvalues; v++)
		unread[v] = g->values[v].nreaders;
	for (int i = 0; i < s->n; i++) {
		const ck_instr *in = &s->at[i];
		cr_assert(in->code != 'B', "%s: a forward-only pass runs B %s", model, g->ops[in->id].name);
		if (in->code == 'D') {
			live[in->id] = false;
			continue;
		}
		for (int v = 0; v < g->nvalues; v++)
			cr_expect(!live[v] || unread[v] > 0, "%s: '%s' is kept when F %s runs, though nobody reads it any more",
				  model, g->values[v].name, g->ops[in->id].name);
		cr_expect(runs[in->id]++ == 0, "%s: %s runs again", model, g->ops[in->id].name);
		ck_reads reads = ck_reads_of(g, *in), writes = ck_writes_of(g, *in);
		for (int k = 0; k < reads.n; k++)
			unread[reads.at[k]]--;
		for (int k = 0; k < writes.n; k++)
			live[writes.at[k]] = true;
	}
	for (int o = 0; o < g->nops; o++)
		cr_expect(runs[o] == 1, "%s: %s never runs", model, g->ops[o].name);
	free(runs);
	free(unread);
	free(live);
}

typedef struct subject {
	bench b;
	const char *model;
	const ck_program *forward;
	ck_outcome alone;
	size_t none_peak;
} subject;

static void check_plan(void *user, const char *plan)
{
	subject *t = user;
	ck_schedule s = bench_plan(&t->b, plan);
	ck_program *p = bench_program(&t->b, &s);
	ck_outcome o = bench_outcome(&t->b, p);
	ck_err why = {0};
	cr_expect(ck_outcome_compare_forward(t->b.graph, &o, &t->alone, &why) == CK_BITWISE,
		  "ckbench parity %s --plans %s: forward only: %s", t->model, plan, why.text);
	cr_expect(memcmp(&o.kind[CK_DIGEST_STATE], &t->alone.kind[CK_DIGEST_STATE], sizeof(ck_digest)) == 0 &&
		      memcmp(&o.kind[CK_DIGEST_LOSS], &t->alone.kind[CK_DIGEST_LOSS], sizeof(ck_digest)) == 0,
		  "%s: a step of plan %s leaves another loss or state than a forward alone", t->model, plan);
	cr_expect(t->forward->trace.peak <= p->trace.peak, "%s: forward only holds %zu bytes, plan %s %zu", t->model,
		  t->forward->trace.peak, plan, p->trace.peak);
	t->none_peak = strcmp(plan, "none") ? t->none_peak : p->trace.peak;
	ck_outcome_free(&o);
	ck_program_free(p);
	ck_schedule_free(&s);
}

static void check_case(const char *model)
{
	printf("# ckbench parity %s\n", model);
	subject t = {.b = bench_open_model(model, device_under_test(), 2, 1), .model = model};
	ck_schedule s = forward_schedule(t.b.graph, ck_session_workspaces(t.b.session));
	ck_program *p = bench_program(&t.b, &s);
	double forward_flops = 0;
	for (int o = 0; o < t.b.graph->nops; o++)
		forward_flops += t.b.graph->ops[o].flops_forward;
	expect_nothing_saved(t.b.graph, &s, model);
	cr_expect(p->trace.recomputed_ops == 0 && p->trace.recompute_flops == 0, "%s: %d ops are run again", model,
		  p->trace.recomputed_ops);
	double off = p->trace.executed_flops - forward_flops;
	cr_expect(off < 1e-9 * forward_flops && off > -1e-9 * forward_flops, "%s: %g FLOPs instead of %g", model,
		  p->trace.executed_flops, forward_flops);
	t.forward = p;
	t.alone = bench_outcome(&t.b, p);
	cr_expect(t.alone.live_peak == p->trace.peak && p->layout.arena >= p->trace.peak);
	for (int v = 0; v < t.b.graph->nvalues; v++)
		cr_expect(!ck_program_gradient(p, &t.b.memory, v), "%s: '%s' has a gradient", model, t.b.graph->values[v].name);
	bench_each_plan(t.b.graph, check_plan, &t);
	cr_expect(t.b.graph->nstages == 1 || p->trace.peak < t.none_peak,
		  "%s: forward only holds as much as plan none, %zu bytes", model, t.none_peak);
	ck_outcome_free(&t.alone);
	ck_program_free(p);
	ck_schedule_free(&s);
	bench_close(&t.b);
}

Test(forward, saves_nothing_and_leaves_the_same, .timeout = 300)
{
	char **cases = parity_cases();
	for (int i = 0; cases[i]; i++)
		check_case(cases[i]);
	free_list(cases);
}

/* ---- the least peak ------------------------------------------------------------------------------------------------------ */

/* Tries every order of a graph's ops. */
typedef struct orders {
	const ck_graph *g;
	ck_workspaces w;
	int *order, n; /* ops chosen so far */
	bool *chosen;
	size_t least;
	long tried;
} orders;

enum { MOST_TRIED = 3000 };

static size_t peak_of(const orders *t)
{
	ck_err err = {0};
	ck_schedule work = {0}, s;
	ck_trace trace;
	for (int i = 0; i < t->n; i++)
		ck_schedule_add(&work, 'F', t->order[i]);
	cr_assert(ck_lower_drops(t->g, &work, &s, &err) == CK_OK, "%s", err.text);
	s.forward_only = true;
	cr_assert(ck_schedule_check(t->g, &s, t->w, &trace, &err) == CK_OK, "%s", err.text);
	size_t peak = trace.peak;
	ck_trace_free(&trace);
	ck_schedule_free(&s);
	ck_schedule_free(&work);
	return peak;
}

/* All it reads is there, and the ops that draw before it have drawn. */
static bool may_come(const orders *t, int o)
{
	if (t->chosen[o])
		return false;
	for (int i = 0; i < t->g->ops[o].desc.nin; i++) {
		int producer = t->g->values[t->g->ops[o].in[i]].producer;
		if (producer != CK_NONE && !t->chosen[producer])
			return false;
	}
	for (int k = 0; k < o; k++)
		if (t->g->ops[o].contract.random && t->g->ops[k].contract.random && !t->chosen[k])
			return false;
	return true;
}

static void try_orders(orders *t)
{
	if (t->tried >= MOST_TRIED)
		return;
	if (t->n == t->g->nops) {
		size_t peak = peak_of(t);
		t->tried++;
		t->least = peak < t->least ? peak : t->least;
		return;
	}
	for (int o = 0; o < t->g->nops; o++) {
		if (!may_come(t, o))
			continue;
		t->order[t->n++] = o;
		t->chosen[o] = true;
		try_orders(t);
		t->chosen[o] = false;
		t->n--;
	}
}

static size_t forward_peak(const ck_graph *g, ck_workspaces w)
{
	ck_err err = {0};
	ck_schedule s = forward_schedule(g, w);
	ck_trace trace;
	cr_assert(ck_schedule_check(g, &s, w, &trace, &err) == CK_OK, "%s", err.text);
	size_t peak = trace.peak;
	ck_trace_free(&trace);
	ck_schedule_free(&s);
	return peak;
}

static size_t graph_order_peak(const ck_graph *g, ck_workspaces w)
{
	orders t = {.g = g, .w = w, .n = g->nops, .order = ck_alloc((size_t)g->nops, sizeof *t.order)};
	for (int o = 0; o < g->nops; o++)
		t.order[o] = o;
	size_t peak = peak_of(&t);
	free(t.order);
	return peak;
}

/* Random graphs with branches, random workspaces: no order that can be tried holds less, and where all were tried one holds as
 * little. */
Test(forward, holds_the_least_that_any_order_can, .timeout = 120)
{
	int all = 0, better = 0;
	for (uint64_t seed = 1; seed <= 300; seed++) {
		rng r = {seed};
		ck_graph *g = random_graph(&r, CK_F32);
		size_t n = (size_t)g->nops, *workspace = ck_alloc(n, sizeof *workspace);
		for (size_t o = 0; o < n;
		     o++) { /* a weight's cast needs none: else it could pay to have it in an earlier stage */
			bool copies = g->values[g->ops[o].out[0]].kind == CK_WEIGHT_COPY;
			workspace[o] = !copies && rng_chance(&r, 30) ? (size_t)rng_below(&r, 2000) : 0;
		}
		orders t = {.g = g, .w = {.forward = workspace}, .least = SIZE_MAX};
		t.order = ck_alloc(n, sizeof *t.order);
		t.chosen = ck_alloc(n, sizeof *t.chosen);
		try_orders(&t);
		size_t peak = forward_peak(g, t.w);
		bool complete = t.tried < MOST_TRIED;
		cr_expect(complete ? peak == t.least : peak <= t.least,
			  "seed %" PRIu64 ": forward only holds %zu bytes, the best of %ld orders %zu", seed, peak, t.tried,
			  t.least);
		all += complete && t.tried > 1;
		better += peak < graph_order_peak(g, t.w);
		free(t.order);
		free(t.chosen);
		free(workspace);
		ck_graph_free(g);
	}
	cr_expect(all >= 50 && better >= 5, "of all graphs, %d had more than one order, %d a better one than the graph's", all,
		  better);
}

/* ---- refusals ------------------------------------------------------------------------------------------------------------ */

static void expect_refused(const ck_graph *g, const ck_schedule *s, const char *message)
{
	ck_err err = {0};
	cr_expect(ck_schedule_check(g, s, (ck_workspaces){0}, NULL, &err) == CK_USAGE && strcmp(err.text, message) == 0,
		  "'%s' should be '%s'", err.text, message);
}

Test(forward, a_schedule_that_is_none_is_refused)
{
	bench b = bench_open_model("mlp:layers=3,width=8,inputs=8,classes=4,batch=4", device_under_test(), 1, 1);
	ck_schedule s = forward_schedule(b.graph, (ck_workspaces){0}), none = bench_plan(&b, "none");
	s.forward_only = false;
	expect_refused(b.graph, &s,
		       "invalid schedule, at its end: the B of 'loss' never runs, and so its gradients are missing");
	ck_schedule part = {.forward_only = true};
	for (int i = 0; i < s.n; i++)
		if (s.at[i].id != (s.at[i].code == 'F' ? ck_graph_op(b.graph, "loss") : ck_graph_value(b.graph, "loss:lse")))
			ck_schedule_add(&part, s.at[i].code, s.at[i].id);
	expect_refused(b.graph, &part, "invalid schedule, at its end: the F of 'loss' never runs");
	none.forward_only = true;
	int first_b = 0;
	while (none.at[first_b].code != 'B')
		first_b++;
	char message[128];
	snprintf(message, sizeof message,
		 "invalid schedule, instruction %d (B loss): a forward-only schedule has no B; leave it out", first_b + 1);
	expect_refused(b.graph, &none, message);
	ck_schedule_free(&s);
	ck_schedule_free(&part);
	ck_schedule_free(&none);
	bench_close(&b);
}
