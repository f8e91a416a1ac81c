/* Watching the arena while a program runs: who owns each line of 64 bytes, found from the calls as they happen and not from the
 * trace. A result must come into free lines, or over something that the contract lets it overwrite; a read must find its own bytes;
 * what ends is filled with NaN patterns, so that a read after a drop cannot pass by luck. The most bytes owned at once is the live peak
 * that was seen. */
#include <stdlib.h>

#include "harness/run/program.h"
#include "kernels/alloc.h"

enum { POISON = 0xff }; /* every byte: a NaN in all our float formats */

struct ck_watch {
	const ck_program *p;
	const ck_graph *g;
	ck_memory *m;
	int *owner;    /* by line: slot, or CK_NONE */
	size_t *where; /* by value: where it was last written */
	size_t owned, peak;
};

static size_t lines(size_t bytes)
{
	return (bytes + CK_ALIGN - 1) / CK_ALIGN;
}

static const char *slot_text(const ck_watch *w, int slot, char text[160])
{
	int n = w->g->nvalues;
	if (slot == CK_NONE)
		return "nobody";
	if (slot == 2 * n)
		return "the workspace";
	if (slot > 2 * n)
		return "the optimizer";
	snprintf(text, 160, "%s'%.100s'", slot >= n ? "the gradient of " : "", w->g->values[slot % n].name);
	return text;
}

static size_t slot_bytes(const ck_watch *w, int slot)
{
	const ck_value_info *v = &w->g->values[slot % w->g->nvalues];
	return slot < w->g->nvalues ? v->bytes : v->gradient_bytes;
}

static void poison(ck_watch *w, size_t offset, size_t bytes)
{
	const ck_session *s = w->p->session;
	s->backend->fill(s->device, w->m->base + offset, POISON, bytes);
}

static void own(ck_watch *w, int slot, size_t offset, size_t bytes)
{
	for (size_t i = 0; i < lines(bytes); i++)
		w->owner[offset / CK_ALIGN + i] = slot;
}

static bool owns(const ck_watch *w, int slot, size_t offset, size_t bytes)
{
	for (size_t i = 0; i < lines(bytes); i++)
		if (w->owner[offset / CK_ALIGN + i] != slot)
			return false;
	return true;
}

static ck_status trespass(const ck_watch *w, const ck_call *c, int slot, size_t offset, size_t bytes, const char *what,
			  ck_err *err)
{
	char mine[160], other[160];
	int holder = slot;
	for (size_t i = 0; i < lines(bytes) && holder == slot; i++)
		holder = w->owner[offset / CK_ALIGN + i];
	return ck_fail(err, CK_FAILED, "%c %s %s %s, whose bytes belong to %s; this is a fault of ckbench", c->code,
		       w->g->ops[c->id].name, what, slot_text(w, slot, mine), slot_text(w, holder, other));
}

/* A result takes its lines: they are free, or its own (added to), or `victim`'s, as a whole (in place). */
static ck_status take(ck_watch *w, const ck_call *c, int slot, size_t offset, size_t bytes, int victim, ck_err *err)
{
	if (offset == CK_NOWHERE)
		return CK_OK;
	if (offset % CK_ALIGN || offset + bytes > w->m->bytes)
		return ck_fail(err, CK_FAILED, "%c %s: offset %zu is out of the arena; this is a fault of ckbench", c->code,
			       w->g->ops[c->id].name, offset);
	if (owns(w, slot, offset, bytes))
		return CK_OK;
	if (victim != CK_NONE && bytes == slot_bytes(w, victim) && owns(w, victim, offset, bytes)) {
		own(w, slot, offset, bytes);
		return CK_OK;
	}
	if (!owns(w, CK_NONE, offset, bytes))
		return trespass(w, c, slot, offset, bytes, "writes", err);
	own(w, slot, offset, bytes);
	poison(w, offset, bytes);
	w->owned += bytes;
	w->peak = w->owned > w->peak ? w->owned : w->peak;
	return CK_OK;
}

/* What ends gives back its lines; nothing when something else took them over in place. */
static void give_back(ck_watch *w, int slot, size_t offset, size_t bytes)
{
	if (offset == CK_NOWHERE || !owns(w, slot, offset, bytes))
		return;
	own(w, CK_NONE, offset, bytes);
	poison(w, offset, bytes);
	w->owned -= bytes;
}

static ck_status check_read(const ck_watch *w, const ck_call *c, int slot, size_t offset, ck_err *err)
{
	if (offset == CK_NOWHERE || owns(w, slot, offset, slot_bytes(w, slot)))
		return CK_OK;
	return trespass(w, c, slot, offset, slot_bytes(w, slot), "reads", err);
}

static size_t workspace_bytes(const ck_watch *w, const ck_call *c)
{
	const ck_session *s = w->p->session;
	return c->code == 'F' ? s->workspace_forward[c->id] : s->workspace_backward[c->id];
}

static ck_status check_reads(const ck_watch *w, const ck_call *c, ck_err *err)
{
	const ck_op_info *op = &w->g->ops[c->id];
	ck_status status = CK_OK;
	for (int i = 0; i < op->desc.nin && status == CK_OK; i++)
		status = check_read(w, c, op->in[i], c->in[i], err);
	if (c->code == 'F')
		return status;
	if (status == CK_OK)
		status = check_read(w, c, op->out[0], c->out[0], err);
	for (int i = 0; i < op->desc.nstash && status == CK_OK; i++)
		status = check_read(w, c, op->stash[i], c->stash[i], err);
	if (status == CK_OK)
		status = check_read(w, c, w->g->nvalues + op->out[0], c->dout, err);
	return status;
}

static ck_status take_forward(ck_watch *w, const ck_call *c, ck_err *err)
{
	const ck_op_info *op = &w->g->ops[c->id];
	int in = op->contract.inplace_forward;
	if (op->contract.inplace_required && c->out[0] != c->in[in])
		return ck_fail(err, CK_FAILED,
			       "F %s should work in place over '%.100s', but does not; this is a fault of ckbench", op->name,
			       w->g->values[op->in[in]].name);
	ck_status status = take(w, c, op->out[0], c->out[0], slot_bytes(w, op->out[0]), in < 0 ? CK_NONE : op->in[in], err);
	for (int i = 0; i < op->desc.nstash && status == CK_OK; i++)
		status = take(w, c, op->stash[i], c->stash[i], slot_bytes(w, op->stash[i]), CK_NONE, err);
	return status;
}

static ck_status take_backward(ck_watch *w, const ck_call *c, ck_err *err)
{
	const ck_op_info *op = &w->g->ops[c->id];
	ck_status status = CK_OK;
	for (int i = 0; i < op->desc.nin && status == CK_OK; i++) {
		int victim = op->contract.inplace_backward == i       ? w->g->nvalues + op->out[0]
			     : op->contract.inplace_backward_own == i ? op->in[i]
								      : CK_NONE;
		int slot = w->g->nvalues + op->in[i];
		status = take(w, c, slot, c->din[i], slot_bytes(w, slot), victim, err);
	}
	return status;
}

ck_status ck__watch_before(ck_watch *w, const ck_call *c, ck_err *err)
{
	ck_status status = check_reads(w, c, err);
	if (status == CK_OK)
		status = c->code == 'F' ? take_forward(w, c, err) : take_backward(w, c, err);
	if (status == CK_OK)
		status = take(w, c, 2 * w->g->nvalues, c->workspace, workspace_bytes(w, c), CK_NONE, err);
	return status;
}

void ck__watch_after(ck_watch *w, const ck_call *c)
{
	if (c->code == 'D') {
		give_back(w, c->id, w->where[c->id], slot_bytes(w, c->id));
		return;
	}
	const ck_op_info *op = &w->g->ops[c->id];
	give_back(w, 2 * w->g->nvalues, c->workspace, workspace_bytes(w, c));
	if (c->code == 'B') {
		int slot = w->g->nvalues + op->out[0];
		give_back(w, slot, c->dout, slot_bytes(w, slot));
		return;
	}
	w->where[op->out[0]] = c->out[0];
	for (int i = 0; i < op->desc.nstash; i++)
		w->where[op->stash[i]] = c->stash[i];
}

/* The optimizer's state is nobody's to touch during a step. */
static void own_states(ck_watch *w)
{
	const ck_layout *l = &w->p->layout;
	int n = w->g->nvalues;
	for (int k = 0; k < l->states; k++)
		for (int v = 0; v < n; v++)
			if (ck_value_trained(&w->g->values[v])) {
				own(w, 2 * n + 1, l->state[k * n + v], slot_bytes(w, v));
				w->owned += slot_bytes(w, v);
			}
}

size_t ck__watch_owned(const ck_watch *w)
{
	return w->owned;
}

ck_watch *ck__watch_open(const ck_program *p, ck_memory *m)
{
	ck_watch *w = ck_alloc(1, sizeof *w);
	*w = (ck_watch){.p = p, .g = p->session->graph, .m = m};
	size_t n = lines(m->bytes);
	w->owner = ck_alloc(n, sizeof *w->owner);
	w->where = ck_alloc((size_t)w->g->nvalues, sizeof *w->where);
	own(w, CK_NONE, 0, m->bytes);
	for (int v = 0; v < w->g->nvalues; v++)
		if (!ck_value_managed(&w->g->values[v])) {
			own(w, v, p->layout.persistent[v], slot_bytes(w, v));
			w->owned += slot_bytes(w, v);
		}
	own_states(w);
	w->peak = w->owned;
	poison(w, p->layout.persistent[w->g->loss], slot_bytes(w, w->g->loss));
	return w;
}

size_t ck__watch_close(ck_watch *w)
{
	size_t peak = w->peak;
	free(w->owner);
	free(w->where);
	free(w);
	return peak;
}
