/* The order of a forward-only pass.
 *
 * Between two stages there is one value only (and copies of weights, each cast in the stage of the first op that uses it), so that each
 * stage's order can be found by itself. Within a stage what is live depends
 * on which ops have run and not on their order: so the search goes from set to set of finished ops,
 *
 *     {} ──▶ {conv1} ──▶ {conv1, bn1} ──▶ …            bytes held while the op runs
 *       └──▶ {shortcut} ──▶ {shortcut, conv1} ──▶ …
 *
 * always on from the set that is reached with the least peak (Dijkstra's algorithm, with the largest step in place of the sum). When
 * the full set's turn comes, its peak is the least. The graph's own order stays where it is as good. Bytes are those that check.c
 * counts. */
#include <stdlib.h>

#include "harness/plan/schedule.h"
#include "kernels/alloc.h"

enum { MOST_OPS = 64, MOST_SETS = 4096 };

typedef struct reached { /* a set of finished ops of the stage: bit i for its op i */
	uint64_t done;
	size_t peak; /* the least with which it is known to be reached */
	int from;    /* by the set that stands there, */
	int op;      /* with this op of the stage */
	bool closed; /* its peak is final */
} reached;

typedef struct search {
	const ck_graph *g;
	const ck_workspaces *w;
	int first, n;     /* the stage's ops */
	ck_value *values; /* nvalues activations and weight copies that they read or write */
	int nvalues;
	reached *sets; /* MOST_SETS */
	int nsets;
	int *order; /* of the stage: the best known */
} search;

/* ---- bytes --------------------------------------------------------------------------------------------------------------- */

static bool is_done(const search *s, uint64_t done, int o)
{
	return o < s->first || (o < s->first + s->n && done >> (o - s->first) & 1);
}

/* Whether activation v is there and an op is still to read it. */
static bool is_live(const search *s, uint64_t done, ck_value v)
{
	const ck_value_info *i = &s->g->values[v];
	bool wanted = false;
	for (int r = 0; r < i->nreaders; r++)
		wanted = wanted || !is_done(s, done, i->readers[r]);
	return wanted && is_done(s, done, i->producer);
}

/* Bytes of the input that op's output takes over, when op is the last to read it. */
static size_t taken_over(const search *s, uint64_t after, const ck_op_info *op)
{
	int i = op->contract.inplace_forward;
	if (i < 0)
		return 0;
	const ck_value_info *in = &s->g->values[op->in[i]], *out = &s->g->values[op->out[0]];
	for (int k = 0; k < op->desc.nin; k++)
		if (k != i && op->in[k] == op->in[i])
			return 0;
	bool fits = ck_value_made(in) && ck_value_made(out) && in->bytes == out->bytes;
	return fits && !is_live(s, after, op->in[i]) ? in->bytes : 0;
}

/* Held while op i of the stage runs, once those of `done` have. */
static size_t held(const search *s, uint64_t done, int i)
{
	const ck_graph *g = s->g;
	int o = s->first + i;
	const ck_op_info *op = &g->ops[o];
	size_t bytes = s->w->forward ? s->w->forward[o] : 0;
	for (int k = 0; k < s->nvalues; k++)
		bytes += is_live(s, done, s->values[k]) ? g->values[s->values[k]].bytes : 0;
	for (int k = 0; k < op->desc.nstash; k++)
		bytes += g->values[op->stash[k]].bytes;
	bytes += ck_value_made(&g->values[op->out[0]]) ? g->values[op->out[0]].bytes : 0;
	return bytes - taken_over(s, done | UINT64_C(1) << i, op);
}

/* ---- what may run next --------------------------------------------------------------------------------------------------- */

/* An op that must lie over its input is the last to read it. */
static bool overwrites_too_early(const search *s, uint64_t done, int o)
{
	const ck_op_info *op = &s->g->ops[o];
	if (!op->contract.inplace_required)
		return false;
	const ck_value_info *x = &s->g->values[op->in[op->contract.inplace_forward]];
	for (int r = 0; r < x->nreaders; r++)
		if (x->readers[r] != o && !is_done(s, done, x->readers[r]))
			return true;
	return false;
}

static bool can_run(const search *s, uint64_t done, int i)
{
	const ck_graph *g = s->g;
	const ck_op_info *op = &g->ops[s->first + i];
	if (done >> i & 1 || overwrites_too_early(s, done, s->first + i))
		return false;
	for (int k = 0; k < op->desc.nin; k++)
		if (ck_value_made(&g->values[op->in[k]]) && !is_done(s, done, g->values[op->in[k]].producer))
			return false;
	for (int k = 0; op->contract.random && k < i; k++)
		if (g->ops[s->first + k].contract.random && !(done >> k & 1))
			return false;
	return true;
}

/* ---- the search ---------------------------------------------------------------------------------------------------------- */

/* The set's place, added where it is new; CK_NONE when there are too many. */
static int find_set(search *s, uint64_t done)
{
	for (int i = 0; i < s->nsets; i++)
		if (s->sets[i].done == done)
			return i;
	if (s->nsets == MOST_SETS)
		return CK_NONE;
	s->sets[s->nsets] = (reached){.done = done, .peak = SIZE_MAX};
	return s->nsets++;
}

static int next_open(const search *s)
{
	int best = CK_NONE;
	for (int i = 0; i < s->nsets; i++)
		if (!s->sets[i].closed && (best == CK_NONE || s->sets[i].peak < s->sets[best].peak))
			best = i;
	return best;
}

/* Goes on from set `at` by every op that can run. false: there are too many sets. */
static bool expand(search *s, int at)
{
	s->sets[at].closed = true;
	for (int i = 0; i < s->n; i++) {
		uint64_t done = s->sets[at].done;
		if (!can_run(s, done, i))
			continue;
		size_t bytes = held(s, done, i), peak = bytes > s->sets[at].peak ? bytes : s->sets[at].peak;
		int to = find_set(s, done | UINT64_C(1) << i);
		if (to == CK_NONE)
			return false;
		if (peak < s->sets[to].peak)
			s->sets[to] = (reached){.done = s->sets[to].done, .peak = peak, .from = at, .op = i};
	}
	return true;
}

/* The full set's place, reached with the least peak; CK_NONE when it was not found. */
static int find_best(search *s)
{
	uint64_t full = s->n == MOST_OPS ? UINT64_MAX : (UINT64_C(1) << s->n) - 1;
	s->nsets = 0;
	s->sets[find_set(s, 0)].peak = 0;
	for (int at = next_open(s); at != CK_NONE; at = next_open(s)) {
		if (s->sets[at].done == full)
			return at;
		if (!expand(s, at))
			return CK_NONE;
	}
	return CK_NONE;
}

static size_t peak_in_graph_order(const search *s)
{
	size_t most = 0;
	for (int i = 0; i < s->n; i++) {
		size_t bytes = held(s, (UINT64_C(1) << i) - 1, i);
		most = bytes > most ? bytes : most;
	}
	return most;
}

static void add_value(search *s, ck_value v)
{
	for (int k = 0; k < s->nvalues; k++)
		if (s->values[k] == v)
			return;
	if (ck_value_made(&s->g->values[v]))
		s->values[s->nvalues++] = v;
}

static void add_stage(search *s, int stage, ck_schedule *work)
{
	s->first = s->g->stage_first[stage];
	s->n = s->g->stage_first[stage + 1] - s->first;
	int best = CK_NONE;
	if (s->n <= MOST_OPS) {
		s->nvalues = 0;
		for (int i = 0; i < s->n; i++) {
			const ck_op_info *op = &s->g->ops[s->first + i];
			for (int k = 0; k < op->desc.nin; k++)
				add_value(s, op->in[k]);
			add_value(s, op->out[0]);
		}
		best = find_best(s);
	}
	bool better = best != CK_NONE && s->sets[best].peak < peak_in_graph_order(s);
	for (int i = s->n - 1, at = best; better && i >= 0; i--, at = s->sets[at].from)
		s->order[i] = s->sets[at].op;
	for (int i = 0; i < s->n; i++)
		ck_schedule_add(work, 'F', s->first + (better ? s->order[i] : i));
}

ck_status ck_forward_only(const ck_graph *g, const ck_workspaces *w, ck_schedule *schedule, ck_err *err)
{
	ck_schedule work = {0};
	search s = {.g = g, .w = w};
	s.values = ck_alloc(MOST_OPS * (CK_MAX_IN + CK_MAX_OUT), sizeof *s.values);
	s.sets = ck_alloc(MOST_SETS, sizeof *s.sets);
	s.order = ck_alloc(MOST_OPS, sizeof *s.order);
	for (int stage = 0; stage < g->nstages; stage++)
		add_stage(&s, stage, &work);
	ck_status status = ck_lower_drops(g, &work, schedule, err);
	schedule->forward_only = true;
	ck_schedule_free(&work);
	free(s.values);
	free(s.sets);
	free(s.order);
	return status;
}
