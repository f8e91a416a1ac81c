/* The running generator: which calls of a program save and restore its state, found once, and what a call draws. */
#include "harness/run/rng.h"

#include <stdio.h>
#include <stdlib.h>

#include "harness/run/program.h"
#include "kernels/alloc.h"
#include "kernels/philox.h"

const char *const ck_rng_names[CK_RNG_KINDS] = {"counter", "stateful"};

uint64_t ck__rng_blocks(const ck_op_info *op)
{
	return ((uint64_t)ck_shape_count(op->desc.out[0].shape) + 3) / 4;
}

/* ---- planning ------------------------------------------------------------------------------------------------------------ */

typedef struct planner {
	ck_program *p;
	const ck_graph *g;
	uint64_t *start; /* by op: where its first forward draws, counted from the step's beginning */
	int *slot;       /* by op: where the state before it is saved, or CK_NONE */
	ck_call *last;   /* of the run of recomputes under way that drew; NULL: there is none */
	uint64_t end;    /* where that has left the stream */
} planner;

static bool draws(const planner *r, const ck_call *c)
{
	return c->code == 'F' && r->g->ops[c->id].contract.random;
}

static void find_starts(planner *r)
{
	uint64_t position = 0;
	for (int i = 0; i < r->p->ncalls; i++) {
		const ck_call *c = &r->p->calls[i];
		if (!draws(r, c) || c->recompute)
			continue;
		r->start[c->id] = position;
		position += ck__rng_blocks(&r->g->ops[c->id]);
	}
}

/* The first op that draws out of turn; the turns are in the graph's order. */
static ck_rng_order find_order(const planner *r)
{
	int turn = 0;
	for (int i = 0; i < r->p->ncalls; i++) {
		const ck_call *c = &r->p->calls[i];
		if (!draws(r, c) || c->recompute)
			continue;
		while (!r->g->ops[turn].contract.random)
			turn++;
		if (turn != c->id)
			return (ck_rng_order){c->id, turn};
		turn++;
	}
	return (ck_rng_order){CK_NONE, CK_NONE};
}

const char *ck__rng_order_text(const ck_graph *g, ck_rng_order order, char text[CK_RNG_ORDER_TEXT])
{
	text[0] = 0;
	if (order.early != CK_NONE)
		snprintf(
		    text, CK_RNG_ORDER_TEXT,
		    "; the cause: '%.80s' draws before '%.80s', whose turn it is in the graph's order, and a running generator "
		    "gives masks in order of draws; run first forwards that draw in the graph's order, or take --rng counter",
		    g->ops[order.early].name, g->ops[order.turn].name);
	return text;
}

/* The outer state is put back once the run ends. */
static void end_run(planner *r)
{
	if (!r->last)
		return;
	r->last->rng.leave = true;
	r->p->rng.restores++;
	r->last = NULL;
}

/* One that does not go on where the recompute before it has stopped needs a state that was saved. */
static void plan_recompute(planner *r, ck_call *c)
{
	ck_rng_cost *cost = &r->p->rng;
	if (!r->last) {
		c->rng.enter = true;
		cost->saves++;
	}
	if (!r->last || r->end != r->start[c->id]) {
		if (r->slot[c->id] == CK_NONE)
			r->slot[c->id] = cost->saved_states++;
		c->rng.restore = r->slot[c->id];
		cost->restores++;
	}
	r->last = c;
	r->end = r->start[c->id] + ck__rng_blocks(&r->g->ops[c->id]);
}

/* A run of recomputes is what one segment's recompute is to a framework: forwards one after the other, up to a backward or to a
 * forward that is none. */
static void plan_recomputes(planner *r)
{
	for (int i = 0; i < r->p->ncalls; i++) {
		ck_call *c = &r->p->calls[i];
		if (c->code == 'B' || (c->code == 'F' && !c->recompute))
			end_run(r);
		else if (draws(r, c))
			plan_recompute(r, c);
	}
	end_run(r);
}

static void plan_saves(planner *r)
{
	for (int i = 0; i < r->p->ncalls; i++) {
		ck_call *c = &r->p->calls[i];
		if (draws(r, c) && !c->recompute)
			c->rng.save = r->slot[c->id];
	}
	r->p->rng.saves += r->p->rng.saved_states;
	r->p->rng.state_bytes = (size_t)r->p->rng.saved_states * sizeof(ck_rng_state);
}

void ck__rng_plan(ck_program *p)
{
	const ck_graph *g = p->session->graph;
	p->rng = (ck_rng_cost){0};
	p->rng_order = (ck_rng_order){CK_NONE, CK_NONE};
	for (int i = 0; i < p->ncalls; i++)
		p->calls[i].rng = (ck_rng_moves){.save = CK_NONE, .restore = CK_NONE};
	if (p->session->rng == CK_RNG_COUNTER)
		return;
	planner r = {.p = p, .g = g};
	r.start = ck_alloc((size_t)g->nops, sizeof *r.start);
	r.slot = ck_alloc((size_t)g->nops, sizeof *r.slot);
	for (int o = 0; o < g->nops; o++)
		r.slot[o] = CK_NONE;
	find_starts(&r);
	p->rng_order = find_order(&r);
	plan_recomputes(&r);
	plan_saves(&r);
	free(r.start);
	free(r.slot);
}

/* ---- drawing ------------------------------------------------------------------------------------------------------------- */

void ck__rng_start(ck_rng *rng, uint64_t seed)
{
	rng->now = (ck_rng_state){.seed = seed};
}

/* What the stream gives to a forward, once the state is what it has to be. */
static ck_draw draw_from_stream(ck_rng *rng, const ck_call *c, const ck_op_info *op)
{
	if (c->rng.enter)
		rng->outer = rng->now;
	if (c->rng.restore != CK_NONE)
		rng->now = rng->saved[c->rng.restore];
	if (c->rng.save != CK_NONE)
		rng->saved[c->rng.save] = rng->now;
	ck_draw d = {.seed = rng->now.seed, .block = rng->now.block, .step = CK_STREAM_STEP, .op = CK_STREAM_OP};
	rng->now.block += ck__rng_blocks(op);
	return d;
}

ck_draw ck__rng_before(ck_memory *m, const ck_call *c, const ck_step *step)
{
	const ck_op_info *op = &m->session->graph->ops[c->id];
	ck_draw d = {.seed = step->seed, .step = step->step, .op = (uint32_t)c->id};
	if (!op->contract.random)
		return d;
	if (c->code == 'B')
		return m->rng.drawn[c->id];
	if (m->session->rng == CK_RNG_STATEFUL)
		d = draw_from_stream(&m->rng, c, op);
	if (!c->recompute)
		m->rng.drawn[c->id] = d;
	return d;
}

void ck__rng_after(ck_memory *m, const ck_call *c)
{
	if (c->rng.leave)
		m->rng.now = m->rng.outer;
}
