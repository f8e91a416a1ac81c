/* Ending a graph: who reads what, what needs a gradient, costs, names, digest. */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "harness/graph/internal.h"
#include "kernels/alloc.h"

void ck__graph_readers(ck_graph *g)
{
	int *capacity = ck_alloc((size_t)g->nvalues, sizeof *capacity);
	for (int v = 0; v < g->nvalues; v++) {
		free(g->values[v].readers);
		g->values[v].readers = NULL;
		g->values[v].nreaders = 0;
	}
	for (int o = 0; o < g->nops; o++)
		for (int i = 0; i < g->ops[o].desc.nin; i++) {
			ck_value in = g->ops[o].in[i];
			ck_value_info *v = &g->values[in];
			if (v->nreaders && v->readers[v->nreaders - 1] == o)
				continue;
			v->readers = ck_grow(v->readers, &capacity[in], v->nreaders + 1, sizeof *v->readers);
			v->readers[v->nreaders++] = o;
		}
	free(capacity);
}

/* A gradient is needed where a trainable parameter (or an input that asked) lies upstream; and nowhere else. */
static void find_needs(ck_graph *g)
{
	for (int v = 0; v < g->nvalues; v++)
		if (g->values[v].kind == CK_PARAM)
			g->values[v].needs_grad = g->values[v].trainable;
	for (int o = 0; o < g->nops; o++) {
		ck_op_info *op = &g->ops[o];
		unsigned differentiable = ck_op_contract(&op->desc).differentiable;
		op->desc.needs = 0;
		for (int i = 0; i < op->desc.nin; i++)
			if (differentiable >> i & 1 && g->values[op->in[i]].needs_grad)
				op->desc.needs |= 1u << i;
		op->contract = ck_op_contract(&op->desc);
		op->has_backward = op->desc.needs != 0;
		g->values[op->out[0]].needs_grad = op->has_backward;
		op->flops_forward = ck_op_flops_forward(&op->desc);
		op->flops_backward = op->has_backward ? ck_op_flops_backward(&op->desc) : 0;
		g->model_flops += op->flops_forward + op->flops_backward;
	}
}

static void check_values(ck_graph *g)
{
	for (int v = 0; v < g->nvalues; v++) {
		const ck_value_info *i = &g->values[v];
		if (i->nreaders == 0 && i->kind != CK_STASH && v != g->loss)
			ck_graph_error(g, "%s '%s' is never used; leave it out of the model", ck_kind_name(i->kind), i->name);
		if (i->kind == CK_BUFFER && i->nreaders > 1) /* else the order of first forwards would matter */
			ck_graph_error(g, "buffer '%s' belongs to %d ops; give each its own", i->name, i->nreaders);
		if (i->kind == CK_PARAM)
			g->parameters += ck_shape_count(i->shape);
	}
}

/* ---- names -------------------------------------------------------------------------------------------------------------- */

static const char *slot_name(const ck_graph *g, int slot)
{
	return slot >= 0 ? g->values[slot].name : g->ops[-2 - slot].name;
}

/* The slot that holds `name` for a value (or for an op), or the empty one where it would go. */
static size_t find_slot(const ck_graph *g, const char *name, bool op)
{
	const struct ck_graph_index *x = g->index;
	size_t at = XXH3_64bits(name, strlen(name)) & (x->nslots - 1);
	while (x->slots[at] != CK_NONE && (x->slots[at] < 0) == op ? strcmp(slot_name(g, x->slots[at]), name)
								   : x->slots[at] != CK_NONE)
		at = (at + 1) & (x->nslots - 1);
	return at;
}

static void insert_name(ck_graph *g, const char *name, int slot)
{
	size_t at = find_slot(g, name, slot < 0);
	if (g->index->slots[at] != CK_NONE)
		ck_graph_error(g, "two %s are named '%s'; every one needs its own name", slot < 0 ? "ops" : "values", name);
	g->index->slots[at] = slot;
}

void ck__graph_index(ck_graph *g)
{
	struct ck_graph_index *x = g->index;
	for (x->nslots = 64; x->nslots < 2 * ((size_t)g->nvalues + (size_t)g->nops);)
		x->nslots *= 2;
	x->slots = ck_alloc(x->nslots, sizeof *x->slots);
	memset(x->slots, 0xff, x->nslots * sizeof *x->slots); /* CK_NONE */
	for (int v = 0; v < g->nvalues; v++)
		insert_name(g, g->values[v].name, v);
	for (int o = 0; o < g->nops; o++)
		insert_name(g, g->ops[o].name, -2 - o);
}

ck_value ck_graph_value(const ck_graph *g, const char *name)
{
	int slot = g->index->slots[find_slot(g, name, false)];
	return slot;
}

int ck_graph_op(const ck_graph *g, const char *name)
{
	int slot = g->index->slots[find_slot(g, name, true)];
	return slot == CK_NONE ? CK_NONE : -2 - slot;
}

/* ---- digest ------------------------------------------------------------------------------------------------------------- */

static void digest_number(XXH3_state_t *x, double number)
{
	XXH3_64bits_update(x, &number, sizeof number);
}

static void digest_text(XXH3_state_t *x, const char *text)
{
	XXH3_64bits_update(x, text, strlen(text) + 1);
}

static void digest_op(XXH3_state_t *x, const ck_op_info *op)
{
	const uint64_t hash = ck_op_desc_hash(&op->desc, 0);
	XXH3_64bits_update(x, &hash, sizeof hash);
	XXH3_64bits_update(x, op->in, (size_t)op->desc.nin * sizeof *op->in);
	XXH3_64bits_update(x, op->out, sizeof op->out);
	digest_text(x, op->name);
}

static uint64_t digest(const ck_graph *g)
{
	XXH3_state_t *x = XXH3_createState();
	if (!x)
		abort();
	XXH3_64bits_reset(x);
	for (int v = 0; v < g->nvalues; v++) {
		const ck_value_info *i = &g->values[v];
		digest_text(x, i->name);
		digest_number(x, i->kind);
		digest_number(x, ck_dtype_number(i->dtype));
		for (int d = 0; d < i->shape.nd; d++)
			digest_number(x, (double)i->shape.d[d]);
	}
	for (int o = 0; o < g->nops; o++)
		digest_op(x, &g->ops[o]);
	uint64_t d = XXH3_64bits_digest(x);
	XXH3_freeState(x);
	return d;
}

ck_status ck_graph_finish(ck_graph *g, ck_value loss, bool fuse, ck_err *err)
{
	if (!g->err.text[0]) {
		g->loss = loss;
		if (loss == CK_NONE || g->values[loss].producer != g->nops - 1 || ck_shape_count(g->values[loss].shape) != 1)
			ck_graph_error(g, "the model's loss must be one element, made by its last op");
		else
			g->values[loss].kind = CK_LOSS;
	}
	if (g->low != CK_DTYPE_NONE && !g->err.text[0])
		ck__graph_autocast(g);
	if (fuse && !g->err.text[0])
		ck__graph_fuse(g);
	if (!g->err.text[0]) {
		ck__graph_readers(g);
		find_needs(g);
		check_values(g);
		ck__graph_index(g);
	}
	if (!g->err.text[0] && !g->values[g->loss].needs_grad)
		ck_graph_error(g, "nothing in this model is trainable: there is no gradient to check");
	if (g->err.text[0])
		return ck_fail(err, CK_USAGE, "%s", g->err.text);
	ck__graph_stages(g);
	g->digest = digest(g);
	return CK_OK;
}
