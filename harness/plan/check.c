/* The check of a schedule, and the exact memory that it takes: one walk, instruction by instruction.
 *
 * An op may work in place: its result takes over the buffer of something that ends with that very instruction. Forward: an input
 * whose D follows at once. Backward: the gradient of the output (which always ends there), or a saved input whose D follows at once. The
 * rule is a function of graph and schedule alone, so prediction, layout and executor agree. An op that must work in place is refused
 * where it cannot. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "harness/plan/reads.h"
#include "harness/plan/schedule.h"
#include "kernels/alloc.h"

const char *const ck_category_names[CK_MEM_CATEGORIES] = {
    "parameters", "parameter_gradients", "optimizer", "inputs", "activations", "activation_gradients",
    "stashes",    "weight_copies",       "workspace",
};

enum { OPEN = -1 }; /* `to` of a lifetime that has not ended yet */

typedef struct walk {
	const ck_graph *g;
	const ck_schedule *s;
	ck_workspaces w;
	ck_trace t;
	int lives_capacity;
	int *current; /* by slot: its open lifetime, or CK_NONE */
	bool *live;   /* by slot: may be read. A buffer taken over in place is not open any more, but live until its D */
	int *ends_at; /* by value: the last instruction whose D's name it */
	int *runs;    /* by op: F's so far */
	int next_b;   /* the op whose B must come next, or -1 */
	int at;       /* the instruction */
	size_t held;
	size_t category[CK_MEM_CATEGORIES];
	ck_err *err;
} walk;

static int gradient_slot(const ck_graph *g, ck_value v)
{
	return g->nvalues + v;
}

/* "instruction 12 (F fc1): <rule>" */
static ck_status broken(const walk *k, const char *format, ...) __attribute__((format(printf, 2, 3)));
static ck_status broken(const walk *k, const char *format, ...)
{
	char rule[512], where[300] = "at its end";
	va_list args;
	va_start(args, format);
	vsnprintf(rule, sizeof rule, format, args);
	va_end(args);
	if (k->at < k->s->n) {
		const ck_instr *in = &k->s->at[k->at];
		snprintf(where, sizeof where, "instruction %d (%c %.200s)", k->at + 1, in->code,
			 in->code == 'D' ? k->g->values[in->id].name : k->g->ops[in->id].name);
	}
	return ck_fail(k->err, CK_USAGE, "invalid schedule, %s: %s", where, rule);
}

/* ---- lifetimes ------------------------------------------------------------------------------------------------------------ */

static enum ck_category value_category(const ck_value_info *v, bool gradient)
{
	switch (v->kind) {
	case CK_PARAM:
		return gradient ? CK_MEM_PARAMETER_GRADIENTS : CK_MEM_PARAMETERS;
	case CK_ACTIVATION:
	case CK_LOSS:
		return gradient ? CK_MEM_ACTIVATION_GRADIENTS : CK_MEM_ACTIVATIONS;
	case CK_STASH:
		return CK_MEM_STASHES;
	case CK_WEIGHT_COPY:
		return gradient ? CK_MEM_PARAMETER_GRADIENTS : CK_MEM_WEIGHT_COPIES;
	default:
		return CK_MEM_INPUTS;
	}
}

static void count(walk *k, enum ck_category c, size_t bytes, bool more)
{
	k->held += more ? bytes : -bytes;
	k->category[c] += more ? bytes : -bytes;
}

static void end_life(walk *k, int life, int to)
{
	ck_lifetime *l = &k->t.lives[life];
	l->to = to;
	k->current[l->slot] = CK_NONE;
	count(k, l->category, l->bytes, false);
}

static void begin_life(walk *k, int slot, size_t bytes, enum ck_category category, int shares)
{
	if (shares != CK_NONE)
		end_life(k, shares, k->at - 1);
	k->t.lives = ck_grow(k->t.lives, &k->lives_capacity, k->t.nlives + 1, sizeof *k->t.lives);
	k->t.lives[k->t.nlives] = (ck_lifetime){slot, bytes, k->at, OPEN, shares, category};
	k->current[slot] = k->t.nlives++;
	k->live[slot] = true;
	count(k, category, bytes, true);
}

static void begin_value(walk *k, ck_value v, int shares)
{
	const ck_value_info *i = &k->g->values[v];
	if (ck_value_managed(i))
		begin_life(k, v, i->bytes, value_category(i, false), shares);
}

/* Takes the figures of this instruction, then ends the workspace again. */
static void take_figures(walk *k, size_t workspace)
{
	if (workspace)
		begin_life(k, 2 * k->g->nvalues, workspace, CK_MEM_WORKSPACE, CK_NONE);
	k->t.live[k->at] = k->held;
	if (k->held > k->t.peak) {
		k->t.peak = k->held;
		k->t.peak_at = k->at;
		memcpy(k->t.peak_by_category, k->category, sizeof k->category);
	}
	if (workspace)
		end_life(k, k->t.nlives - 1, k->at);
}

/* Whether input i of op is read through no other input, so that its buffer can be written while the op runs. */
static bool sole_input(const ck_op_info *op, int i)
{
	for (int j = 0; j < op->desc.nin; j++)
		if (j != i && op->in[j] == op->in[i])
			return false;
	return true;
}

/* The open lifetime of managed input i that ends with this instruction and is as large as `bytes`; else CK_NONE. */
static int dying_input(const walk *k, const ck_op_info *op, int i, size_t bytes)
{
	if (i < 0 || !sole_input(op, i))
		return CK_NONE;
	ck_value v = op->in[i];
	bool dies = ck_value_managed(&k->g->values[v]) && k->ends_at[v] == k->at && k->g->values[v].bytes == bytes;
	return dies ? k->current[v] : CK_NONE;
}

/* Notes which values the D's right after this instruction name. */
static void note_ends(walk *k)
{
	for (int i = k->at + 1; i < k->s->n && k->s->at[i].code == 'D'; i++)
		k->ends_at[k->s->at[i].id] = k->at;
}

/* ---- in place on demand ---------------------------------------------------------------------------------------------------- */

/* The next instruction that reads v as it is now, or CK_NONE. */
static int next_reader(const walk *k, ck_value v)
{
	for (int i = k->at + 1; i < k->s->n; i++) {
		const ck_instr *in = &k->s->at[i];
		if (in->code == 'D' && in->id == v)
			return CK_NONE;
		if (in->code != 'F' && in->code != 'B')
			continue;
		ck_reads reads = ck_reads_of(k->g, *in);
		for (int r = 0; r < reads.n; r++)
			if (reads.at[r] == v)
				return i;
	}
	return CK_NONE;
}

static ck_status not_in_place(const walk *k, const ck_op_info *op)
{
	ck_value x = op->in[op->contract.inplace_forward];
	const char *name = k->g->values[x].name;
	int reader = next_reader(k, x);
	if (reader == CK_NONE)
		return broken(k, "it works in place over '%.150s'; drop that right after it", name);
	const ck_instr *in = &k->s->at[reader];
	return broken(
	    k,
	    "it works in place over '%.100s', which instruction %d (%c %.100s) reads later; run F %.100s again before "
	    "that, or build the model without working in place",
	    name, reader + 1, in->code, k->g->ops[in->id].name, k->g->ops[k->g->values[x].producer].name);
}

/* ---- the instructions ----------------------------------------------------------------------------------------------------- */

static ck_status walk_forward(walk *k, int o)
{
	const ck_graph *g = k->g;
	const ck_op_info *op = &g->ops[o];
	ck_instr in = {'F', o};
	ck_reads reads = ck_reads_of(g, in), writes = ck_writes_of(g, in);
	for (int i = 0; i < reads.n; i++)
		if (!k->live[reads.at[i]])
			return broken(k, "it reads '%.200s', which is not live; run the op that makes it first",
				      g->values[reads.at[i]].name);
	for (int i = 0; i < writes.n; i++)
		if (k->live[writes.at[i]])
			return broken(k, "it writes '%.200s', which is live; drop that first", g->values[writes.at[i]].name);
	note_ends(k);
	int shares = dying_input(k, op, op->contract.inplace_forward, g->values[op->out[0]].bytes);
	if (op->contract.inplace_required && shares == CK_NONE)
		return not_in_place(k, op);
	begin_value(k, op->out[0], g->values[op->out[0]].kind == CK_ACTIVATION ? shares : CK_NONE);
	for (int i = 0; i < op->desc.nstash; i++)
		begin_value(k, op->stash[i], CK_NONE);
	k->t.executed_flops += op->flops_forward;
	if (k->runs[o]++) {
		k->t.recomputed_ops++;
		k->t.recompute_flops += op->flops_forward;
	}
	take_figures(k, k->w.forward ? k->w.forward[o] : 0);
	return CK_OK;
}

/* Whose buffer the new gradient of input i may take over: that of the output's gradient, or of the saved input itself. */
static int gradient_shares(const walk *k, const ck_op_info *op, int i)
{
	const ck_value_info *in = &k->g->values[op->in[i]];
	if ((in->kind != CK_ACTIVATION && in->kind != CK_PARAM) || !sole_input(op, i))
		return CK_NONE;
	if (op->contract.inplace_backward == i && k->g->values[op->out[0]].gradient_bytes == in->gradient_bytes)
		return k->current[gradient_slot(k->g, op->out[0])];
	if (op->contract.inplace_backward_own == i)
		return dying_input(k, op, i, in->bytes);
	return CK_NONE;
}

static void next_backward(walk *k)
{
	do
		k->next_b--;
	while (k->next_b >= 0 && !k->g->ops[k->next_b].has_backward);
}

static ck_status walk_backward(walk *k, int o)
{
	const ck_graph *g = k->g;
	const ck_op_info *op = &g->ops[o];
	if (k->s->forward_only)
		return broken(k, "a forward-only schedule has no B; leave it out");
	if (!op->has_backward)
		return broken(k, "this op has no backward: nothing before it is trained; leave the B out");
	if (o != k->next_b)
		return k->next_b < 0 || o > k->next_b
			   ? broken(k, "its B has run already; every op has exactly one")
			   : broken(k, "out of order: the next B must be that of '%.200s'", g->ops[k->next_b].name);
	ck_reads reads = ck_reads_of(g, (ck_instr){'B', o});
	for (int i = 0; i < reads.n; i++)
		if (!k->live[reads.at[i]])
			return broken(k, "it reads '%.200s', which is not live; keep it, or recompute it before",
				      g->values[reads.at[i]].name);
	int dout = gradient_slot(g, op->out[0]);
	if (op->out[0] != g->loss && !k->live[dout])
		return broken(k, "the gradient of '%.200s' is not there", g->values[op->out[0]].name);
	note_ends(k);
	for (int i = 0; i < op->desc.nin; i++) {
		int slot = gradient_slot(g, op->in[i]);
		const ck_value_info *v = &g->values[op->in[i]];
		if (op->desc.needs >> i & 1 && !k->live[slot])
			begin_life(k, slot, v->gradient_bytes, value_category(v, true), gradient_shares(k, op, i));
	}
	k->t.executed_flops += op->flops_backward;
	take_figures(k, k->w.backward ? k->w.backward[o] : 0);
	if (k->current[dout] != CK_NONE)
		end_life(k, k->current[dout], k->at);
	k->live[dout] = false;
	next_backward(k);
	return CK_OK;
}

static ck_status walk_drop(walk *k, ck_value v)
{
	if (!ck_value_managed(&k->g->values[v]))
		return broken(k, "only activations, stashes and weight copies drop; a %s persists",
			      ck_kind_name(k->g->values[v].kind));
	if (!k->live[v])
		return broken(k, "it is not live: dropped already, or never made");
	k->live[v] = false;
	if (k->current[v] != CK_NONE)
		end_life(k, k->current[v], k->at - 1);
	k->t.live[k->at] = k->held;
	return CK_OK;
}

static ck_status walk_end(walk *k)
{
	k->at = k->s->n;
	for (int o = 0; o < k->g->nops && k->s->forward_only; o++)
		if (!k->runs[o])
			return broken(k, "the F of '%.200s' never runs", k->g->ops[o].name);
	if (k->next_b >= 0)
		return broken(k, "the B of '%.200s' never runs, and so its gradients are missing", k->g->ops[k->next_b].name);
	for (int v = 0; v < k->g->nvalues; v++)
		if (k->live[v] && ck_value_managed(&k->g->values[v]))
			return broken(k, "'%.200s' is still live; drop it after its last use", k->g->values[v].name);
	for (int i = 0; i < k->t.nlives; i++)
		if (k->t.lives[i].to == OPEN)
			k->t.lives[i].to = k->s->n - 1;
	return CK_OK;
}

static ck_status walk_all(walk *k)
{
	for (k->at = 0; k->at < k->s->n; k->at++) {
		const ck_instr *in = &k->s->at[k->at];
		ck_status status = in->code == 'F'   ? walk_forward(k, in->id)
				   : in->code == 'B' ? walk_backward(k, in->id)
				   : in->code == 'D'
				       ? walk_drop(k, in->id)
				       : ck_fail(k->err, CK_USAGE, "instruction %d is none of F, B and D", k->at + 1);
		if (status != CK_OK)
			return status;
	}
	return walk_end(k);
}

ck_status ck_schedule_check(const ck_graph *g, const ck_schedule *s, ck_workspaces w, ck_trace *trace, ck_err *err)
{
	size_t slots = 2 * (size_t)g->nvalues + 1;
	walk k = {.g = g, .s = s, .w = w, .next_b = g->nops, .err = err};
	k.current = ck_alloc(slots, sizeof *k.current);
	k.live = ck_alloc(slots, sizeof *k.live);
	k.ends_at = ck_alloc((size_t)g->nvalues, sizeof *k.ends_at);
	k.runs = ck_alloc((size_t)g->nops, sizeof *k.runs);
	k.t.live = ck_alloc((size_t)s->n, sizeof *k.t.live);
	k.t.n = s->n;
	for (size_t i = 0; i < slots; i++)
		k.current[i] = CK_NONE;
	for (int v = 0; v < g->nvalues; v++) {
		k.ends_at[v] = CK_NONE;
		if (!ck_value_managed(&g->values[v]))
			count(&k, value_category(&g->values[v], false), g->values[v].bytes, true);
		if (ck_value_trained(&g->values[v]))
			count(&k, CK_MEM_OPTIMIZER, (size_t)w.states * g->values[v].bytes, true);
	}
	k.t.persistent = k.held;
	k.t.states = w.states;
	if (s->forward_only)
		k.next_b = CK_NONE; /* none has to come */
	else
		next_backward(&k);
	ck_status status = walk_all(&k);
	free(k.current);
	free(k.live);
	free(k.ends_at);
	free(k.runs);
	if (status == CK_OK && trace)
		*trace = k.t;
	else
		ck_trace_free(&k.t);
	if (status != CK_OK && trace)
		*trace = (ck_trace){0};
	return status;
}

void ck_trace_free(ck_trace *t)
{
	free(t->lives);
	free(t->live);
	*t = (ck_trace){0};
}
