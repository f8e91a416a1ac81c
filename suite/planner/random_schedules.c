/* Random valid schedules over random graphs give the bits of plan `none`; random invalid ones are refused with the right reason.
 *
 * The seed of a failing case is in its message. CKBENCH_SEED=N runs from case N on, CKBENCH_CASES=M as many. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "suite/planner/random.h"
#include "suite/support.h"

static uint64_t from_environment(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);
	return text ? strtoull(text, NULL, 10) : otherwise;
}

static void check_layout(const ck_program *p, uint64_t seed)
{
	const ck_trace *t = &p->trace;
	for (int i = 0; i < t->nlives; i++) {
		size_t at = p->layout.offset[i], end = at + t->lives[i].bytes;
		cr_expect(at % CK_ALIGN == 0 && at >= p->layout.persistent_bytes && end <= p->layout.arena,
			  "CKBENCH_SEED=%" PRIu64 ": lifetime %d lies outside or unaligned", seed, i);
		for (int j = 0; j < i; j++) {
			bool same_time = t->lives[i].from <= t->lives[j].to && t->lives[j].from <= t->lives[i].to;
			bool same_place = at < p->layout.offset[j] + t->lives[j].bytes && p->layout.offset[j] < end;
			cr_expect(!(same_time && same_place), "CKBENCH_SEED=%" PRIu64 ": lifetimes %d and %d overlap", seed, i,
				  j);
		}
	}
	cr_expect(p->layout.arena >= t->peak, "CKBENCH_SEED=%" PRIu64 ": arena %zu below the live peak %zu", seed,
		  p->layout.arena, t->peak);
}

/* One graph, `schedules` schedules over it. */
static void run_case(uint64_t seed, int schedules)
{
	rng r = {seed};
	const char *device = rng_chance(&r, 50) ? "cpu" : "ref";
	bench b = bench_open(random_graph(&r, strcmp(device, "cpu") ? CK_F64 : CK_F32), device, 1 + rng_below(&r, 2), seed);
	if (rng_chance(&r, 30))
		ck_session_accumulate(b.session);
	ck_schedule plain = bench_plan(&b, "none");
	ck_program *none = bench_program(&b, &plain);
	ck_outcome baseline = bench_outcome(&b, none);
	cr_expect(baseline.live_peak == none->trace.peak);
	for (int i = 0; i < schedules; i++) {
		ck_schedule s = random_schedule(&r, b.graph);
		ck_program *p = bench_program(&b, &s);
		check_layout(p, seed);
		ck_outcome o = bench_outcome(&b, p);
		ck_err why = {0};
		cr_expect(ck_outcome_compare(b.graph, &baseline, &o, &why) == CK_BITWISE,
			  "CKBENCH_SEED=%" PRIu64 " on %s: schedule %d: %s", seed, device, i, why.text);
		ck_outcome_free(&o);
		ck_program_free(p);
		ck_schedule_free(&s);
	}
	ck_outcome_free(&baseline);
	ck_program_free(none);
	ck_schedule_free(&plain);
	bench_close(&b);
}

Test(random_schedules, give_the_bits_of_none, .timeout = 240)
{
	uint64_t first = from_environment("CKBENCH_SEED", 1), cases = from_environment("CKBENCH_CASES", 200);
	printf("# seeds %" PRIu64 " to %" PRIu64 ", 4 schedules each\n", first, first + cases - 1);
	for (uint64_t seed = first; seed < first + cases; seed++)
		run_case(seed, 4);
}

/* ---- invalid ones --------------------------------------------------------------------------------------------------------- */

static void insert(ck_schedule *s, int at, char code, int id)
{
	ck_schedule_add(s, code, id);
	for (int i = s->n - 1; i > at; i--)
		s->at[i] = s->at[i - 1];
	s->at[at] = (ck_instr){code, id};
}

static void delete (ck_schedule *s, int at)
{
	for (int i = at; i + 1 < s->n; i++)
		s->at[i] = s->at[i + 1];
	s->n--;
}

/* The place of the n-th instruction (n drawn) with this code, or -1. */
static int some(rng *r, const ck_schedule *s, char code)
{
	int n = 0, at = -1;
	for (int i = 0; i < s->n; i++)
		if (s->at[i].code == code && rng_below(r, ++n) == 0)
			at = i;
	return at;
}

static int next_b(const ck_schedule *s, int from)
{
	for (int i = from; i < s->n; i++)
		if (s->at[i].code == 'B')
			return i;
	return -1;
}

/* Each spoils a valid schedule in one way, and says what reason must be given; NULL when it cannot be done to this one. */
static const char *drop_twice(rng *r, const ck_graph *g, ck_schedule *s)
{
	(void)g;
	int at = some(r, s, 'D');
	insert(s, at, 'D', s->at[at].id);
	return "it is not live";
}

static const char *forget_last_drop(rng *r, const ck_graph *g, ck_schedule *s)
{
	(void)r, (void)g;
	if (s->at[s->n - 1].code != 'D')
		return NULL;
	delete (s, s->n - 1);
	return "is still live";
}

static const char *forget_backward(rng *r, const ck_graph *g, ck_schedule *s)
{
	(void)g;
	int at = some(r, s, 'B'), next = next_b(s, at + 1);
	delete (s, at);
	return next < 0 ? "never runs" : "out of order";
}

static const char *swap_backwards(rng *r, const ck_graph *g, ck_schedule *s)
{
	(void)g;
	int at = some(r, s, 'B'), next = next_b(s, at + 1);
	if (next < 0)
		return NULL;
	int id = s->at[at].id;
	s->at[at].id = s->at[next].id;
	s->at[next].id = id;
	return "out of order";
}

static const char *repeat_backward(rng *r, const ck_graph *g, ck_schedule *s)
{
	(void)g;
	int at = some(r, s, 'B');
	insert(s, at, 'B', s->at[at].id);
	return "has run already";
}

static const char *repeat_forward(rng *r, const ck_graph *g, ck_schedule *s)
{
	int at = some(r, s, 'F');
	if (g->values[g->ops[s->at[at].id].out[0]].kind == CK_LOSS)
		return NULL; /* it has no output that could be live */
	insert(s, at + 1, 'F', s->at[at].id);
	return "which is live";
}

static const char *read_after_drop(rng *r, const ck_graph *g, ck_schedule *s)
{
	int at = some(r, s, 'F');
	for (int i = 0; i < g->ops[s->at[at].id].desc.nin; i++) {
		ck_value v = g->ops[s->at[at].id].in[i];
		if (!ck_value_managed(&g->values[v]))
			continue;
		insert(s, at, 'D', v);
		return "which is not live";
	}
	return NULL;
}

static const char *drop_before_backward(rng *r, const ck_graph *g, ck_schedule *s)
{
	int at = some(r, s, 'B');
	const ck_op_info *op = &g->ops[s->at[at].id];
	if (!(op->contract.reads_out & 1) || !ck_value_managed(&g->values[op->out[0]]))
		return NULL;
	insert(s, at, 'D', op->out[0]);
	return "which is not live";
}

static const char *backward_of_frozen(rng *r, const ck_graph *g, ck_schedule *s)
{
	for (int o = 0; o < g->nops; o++)
		if (!g->ops[o].has_backward) {
			insert(s, some(r, s, 'B'), 'B', o);
			return "has no backward";
		}
	return NULL;
}

static const char *drop_parameter(rng *r, const ck_graph *g, ck_schedule *s)
{
	for (int v = 0; v < g->nvalues; v++)
		if (g->values[v].kind == CK_PARAM) {
			insert(s, some(r, s, 'F'), 'D', v);
			return "only activations, stashes and weight copies drop";
		}
	return NULL;
}

Test(random_schedules, invalid_ones_are_refused, .timeout = 120)
{
	static const struct {
		const char *name;
		const char *(*spoil)(rng *, const ck_graph *, ck_schedule *);
	} ways[] = {
	    {"drop twice", drop_twice},
	    {"forget the last drop", forget_last_drop},
	    {"forget a backward", forget_backward},
	    {"swap two backwards", swap_backwards},
	    {"repeat a backward", repeat_backward},
	    {"repeat a forward", repeat_forward},
	    {"read after a drop", read_after_drop},
	    {"drop before a backward", drop_before_backward},
	    {"backward of a frozen op", backward_of_frozen},
	    {"drop a parameter", drop_parameter},
	};
	enum { WAYS = sizeof ways / sizeof *ways };
	int tried[WAYS] = {0};
	for (uint64_t seed = 1; seed <= 300; seed++) {
		rng r = {seed};
		ck_graph *g = random_graph(&r, CK_F32);
		for (int k = 0; k < WAYS; k++) {
			ck_schedule s = random_schedule(&r, g);
			ck_err err = {0};
			const char *reason = ways[k].spoil(&r, g, &s);
			if (reason) {
				tried[k]++;
				cr_expect(ck_schedule_check(g, &s, (ck_workspaces){0}, NULL, &err) == CK_USAGE &&
					      strstr(err.text, reason),
					  "seed %" PRIu64 ", %s: '%s' should say '%s'", seed, ways[k].name, err.text, reason);
			}
			ck_schedule_free(&s);
		}
		ck_graph_free(g);
	}
	for (int k = 0; k < WAYS; k++)
		cr_expect(tried[k] >= 10, "%s: could be tried only %d times", ways[k].name, tried[k]);
}

/* ---- text form ------------------------------------------------------------------------------------------------------------ */

static char *text_of(const ck_graph *g, const ck_schedule *s, size_t *length)
{
	ck_err err = {0};
	char *text = NULL;
	FILE *f = open_memstream(&text, length);
	cr_assert(ck_schedule_write(g, s, f, &err) == CK_OK, "%s", err.text);
	fclose(f);
	return text;
}

Test(random_schedules, text_form_goes_both_ways, .timeout = 60)
{
	for (uint64_t seed = 1; seed <= 100; seed++) {
		rng r = {seed};
		ck_graph *g = random_graph(&r, CK_F32);
		ck_schedule s = random_schedule(&r, g), back = {0};
		ck_err err = {0};
		size_t length = 0;
		char *text = text_of(g, &s, &length);
		cr_assert(ck_schedule_parse(g, text, length, &back, &err) == CK_OK, "seed %" PRIu64 ": %s", seed, err.text);
		cr_expect(back.n == s.n && ck_schedule_digest(&back) == ck_schedule_digest(&s), "seed %" PRIu64, seed);
		free(text);
		ck_schedule_free(&s);
		ck_schedule_free(&back);
		ck_graph_free(g);
	}
}

/* Text with some bytes changed is refused, or read as a schedule that the check then accepts or refuses; nothing crashes. */
Test(random_schedules, spoiled_text_is_refused_or_checked, .timeout = 60)
{
	int accepted = 0, refused = 0;
	for (uint64_t seed = 1; seed <= 400; seed++) {
		rng r = {seed};
		ck_graph *g = random_graph(&r, CK_F32);
		ck_schedule s = random_schedule(&r, g), back = {0};
		ck_err err = {0};
		size_t length = 0;
		char *text = text_of(g, &s, &length);
		for (int n = 1 + rng_below(&r, 3); n > 0; n--)
			text[rng_below(&r, (int)length)] = (char)(rng_chance(&r, 20) ? 0 : rng_below(&r, 256));
		ck_status status = ck_schedule_parse(g, text, length, &back, &err);
		if (status == CK_OK)
			status = ck_schedule_check(g, &back, (ck_workspaces){0}, NULL, &err);
		accepted += status == CK_OK;
		refused += status == CK_USAGE;
		cr_expect((status == CK_OK) == (err.text[0] == 0), "seed %" PRIu64, seed);
		cr_expect(status != CK_OK || ck_schedule_digest(&back) == ck_schedule_digest(&s),
			  "seed %" PRIu64 ": read as another schedule", seed);
		free(text);
		ck_schedule_free(&s);
		ck_schedule_free(&back);
		ck_graph_free(g);
	}
	cr_expect(accepted + refused == 400 && refused > 300, "%d accepted, %d refused", accepted, refused);
}

Test(random_schedules, a_null_byte_is_no_drop)
{
	rng r = {1};
	ck_graph *g = random_graph(&r, CK_F32);
	ck_schedule s = random_schedule(&r, g);
	ck_err err = {0};
	s.at[s.n - 1].code = 0;
	cr_expect(ck_schedule_check(g, &s, (ck_workspaces){0}, NULL, &err) == CK_USAGE &&
		      strstr(err.text, "none of F, B and D"),
		  "%s", err.text);
	ck_schedule_free(&s);
	ck_graph_free(g);
}
