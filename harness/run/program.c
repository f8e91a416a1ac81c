/* From a schedule to a program: check, lay out, resolve. */
#include "harness/run/program.h"

#include <stdlib.h>

#include "harness/plan/reads.h"
#include "kernels/alloc.h"

typedef struct builder {
	const ck_graph *g;
	ck_program *p;
	size_t *where;  /* by slot: offset of the lifetime that is or was last open */
	uint8_t *parts; /* by value: parts of its gradient that are written */
	bool *zeroed;   /* by value: its gradient starts from zeros, since its readers' parts overlap or leave gaps */
	bool *ran;      /* by op */
	int next_life;
} builder;

/* Whether the parts that the readers of v write are all of it, and each either new or written before. */
static bool parts_fit(const ck_graph *g, ck_value v)
{
	const ck_value_info *info = &g->values[v];
	uint8_t seen = 0;
	for (int r = info->nreaders - 1; r >= 0; r--) {
		const ck_op_info *op = &g->ops[info->readers[r]];
		for (int i = 0; i < op->desc.nin; i++) {
			if (op->in[i] != v || !(op->desc.needs >> i & 1))
				continue;
			uint8_t mask = op->contract.grad_parts[i];
			if ((seen & mask) != 0 && (seen & mask) != mask)
				return false;
			seen |= mask;
		}
	}
	return seen == 7;
}

static size_t value_at(const builder *b, ck_value v)
{
	return ck_value_managed(&b->g->values[v]) ? b->where[v] : b->p->layout.persistent[v];
}

/* Slots whose lifetimes begin at instruction i get their new offsets; returns the workspace's. */
static size_t begin_lives(builder *b, int i)
{
	size_t workspace = CK_NOWHERE;
	for (; b->next_life < b->p->trace.nlives && b->p->trace.lives[b->next_life].from == i; b->next_life++) {
		int slot = b->p->trace.lives[b->next_life].slot;
		size_t at = b->p->layout.offset[b->next_life];
		if (slot == 2 * b->g->nvalues)
			workspace = at;
		else
			b->where[slot] = at;
	}
	return workspace;
}

static void resolve_forward(builder *b, ck_call *c)
{
	const ck_op_info *op = &b->g->ops[c->id];
	for (int i = 0; i < op->desc.nin; i++)
		c->in[i] = value_at(b, op->in[i]);
	c->out[0] = value_at(b, op->out[0]);
	for (int i = 0; i < op->desc.nstash; i++)
		c->stash[i] = value_at(b, op->stash[i]);
	c->recompute = b->ran[c->id];
	b->ran[c->id] = true;
}

static void resolve_gradient(builder *b, ck_call *c, int i)
{
	const ck_op_info *op = &b->g->ops[c->id];
	ck_value v = op->in[i];
	uint8_t mask = op->contract.grad_parts[i];
	c->din[i] = b->where[b->g->nvalues + v];
	c->zero[i] = b->zeroed[v] && b->parts[v] == 0;
	c->acc[i] = b->zeroed[v] || (b->parts[v] & mask);
	b->parts[v] |= mask;
	const ck_layout *l = &b->p->layout;
	if (l->sum && ck_value_trained(&b->g->values[v]) && ck_gradient_completes(b->g, c->id, i))
		c->sum[i] = l->sum[v];
}

static void resolve_backward(builder *b, ck_call *c)
{
	const ck_op_info *op = &b->g->ops[c->id];
	for (int i = 0; i < op->desc.nin; i++) {
		if (op->contract.reads_in >> i & 1)
			c->in[i] = value_at(b, op->in[i]);
		if (op->desc.needs >> i & 1)
			resolve_gradient(b, c, i);
	}
	if (op->contract.reads_out & 1)
		c->out[0] = value_at(b, op->out[0]);
	for (int i = 0; i < op->desc.nstash; i++)
		if (op->contract.reads_stash >> i & 1)
			c->stash[i] = value_at(b, op->stash[i]);
	if (op->out[0] != b->g->loss)
		c->dout = b->where[b->g->nvalues + op->out[0]];
}

static void resolve(builder *b, const ck_schedule *s)
{
	for (int i = 0; i < s->n; i++) {
		ck_call *c = &b->p->calls[i];
		*c = (ck_call){.code = s->at[i].code, .id = s->at[i].id, .dout = CK_NOWHERE};
		for (int k = 0; k < CK_MAX_IN; k++)
			c->in[k] = c->din[k] = c->sum[k] = CK_NOWHERE;
		c->out[0] = c->stash[0] = c->stash[1] = CK_NOWHERE;
		c->workspace = begin_lives(b, i);
		if (c->code == 'F')
			resolve_forward(b, c);
		if (c->code == 'B')
			resolve_backward(b, c);
	}
}

void ck__program_resolve(ck_program *p, const ck_schedule *schedule)
{
	const ck_graph *g = p->session->graph;
	size_t nvalues = (size_t)g->nvalues;
	builder b = {.g = g, .p = p};
	b.where = ck_alloc(2 * nvalues, sizeof *b.where);
	b.parts = ck_alloc(nvalues, sizeof *b.parts);
	b.zeroed = ck_alloc(nvalues, sizeof *b.zeroed);
	b.ran = ck_alloc((size_t)g->nops, sizeof *b.ran);
	for (size_t i = 0; i < 2 * nvalues; i++)
		b.where[i] = CK_NOWHERE;
	for (int v = 0; v < g->nvalues; v++)
		b.zeroed[v] = g->values[v].needs_grad && !parts_fit(g, v);
	resolve(&b, schedule);
	ck__rng_plan(p);
	for (size_t v = 0; v < nvalues; v++) {
		bool stays = g->values[v].kind == CK_PARAM || g->values[v].kind == CK_INPUT;
		bool summed = p->layout.sum && ck_value_trained(&g->values[v]);
		p->gradient[v] = summed ? p->layout.sum[v] : stays ? b.where[nvalues + v] : CK_NOWHERE;
	}
	free(b.where);
	free(b.parts);
	free(b.zeroed);
	free(b.ran);
}

ck_status ck_program_make(const ck_session *s, const ck_schedule *schedule, ck_program **program, ck_err *err)
{
	const ck_graph *g = s->graph;
	ck_program *p = ck_alloc(1, sizeof *p);
	p->session = s;
	ck_status status = ck_schedule_check(g, schedule, ck_session_workspaces(s), &p->trace, err);
	if (status == CK_OK)
		status = ck_layout_make(g, &p->trace, &p->layout, err);
	if (status != CK_OK) {
		ck_program_free(p);
		return status;
	}
	p->ncalls = schedule->n;
	p->calls = ck_alloc((size_t)schedule->n, sizeof *p->calls);
	p->gradient = ck_alloc((size_t)g->nvalues, sizeof *p->gradient);
	ck__program_resolve(p, schedule);
	*program = p;
	return CK_OK;
}

void ck_program_free(ck_program *p)
{
	if (!p)
		return;
	ck_trace_free(&p->trace);
	ck_layout_free(&p->layout);
	free(p->calls);
	free(p->gradient);
	free(p);
}

void *ck_program_value(const ck_program *p, const ck_memory *m, ck_value v)
{
	return ck_value_managed(&p->session->graph->values[v]) ? NULL : m->base + p->layout.persistent[v];
}

void *ck_program_gradient(const ck_program *p, const ck_memory *m, ck_value v)
{
	return p->gradient[v] == CK_NOWHERE ? NULL : m->base + p->gradient[v];
}

void *ck_program_state(const ck_program *p, const ck_memory *m, int k, ck_value v)
{
	return m->base + p->layout.state[k * p->session->graph->nvalues + v];
}

double ck_program_loss(const ck_program *p, const ck_memory *m)
{
	const ck_session *s = p->session;
	union {
		double f64;
		float f32;
	} loss;
	const ck_value_info *v = &s->graph->values[s->graph->loss];
	s->backend->read(s->device, &loss, m->base + p->layout.persistent[s->graph->loss], v->bytes);
	return v->dtype == CK_F64 ? loss.f64 : (double)loss.f32;
}
