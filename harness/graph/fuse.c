/* Fusion: an op takes over the op that alone reads its output, where one pass over memory then does the work of two.
 *
 *     linear ─▶ activation ─▶ dropout          linear with act and p
 *     linear ─▶ (dropout ─▶) add               linear with a residual
 *     batchnorm ─▶ (add ─▶) ReLU               batchnorm with a residual and ReLU
 *     dropout ─▶ add                           dropout with a residual
 *     layer norm ─▶ cast                       layer norm that stores 16 bits
 *     cast ─▶ cross-entropy                    cross-entropy that reads 16 bits
 *     cast ─▶ softmax (─▶ dropout) ─▶ cast     softmax (and dropout) in 16-bit storage: a kept weight is rounded before dropout
 *                                              scales it, too
 *
 * An activation that must work in place stays an op of its own.
 *
 * A fused op is an op with its own contract, so nothing downstream knows of fusion. It keeps the first op's name and place; so
 * a residual must have been computed before that place. */
#include <stdlib.h>
#include <string.h>

#include "harness/graph/internal.h"
#include "kernels/alloc.h"

/* The operand of the add that is not `mine`, when it exists before op o; else CK_NONE. */
static ck_value other_operand(const ck_graph *g, const ck_op_info *add, ck_value mine, int o)
{
	ck_value r = add->in[0] == mine ? add->in[1] : add->in[0];
	return r != mine && g->values[r].producer < o ? r : CK_NONE;
}

static bool take_activation(ck_op_info *op, ck_act act)
{
	ck_attr *a = &op->desc.attr;
	bool fits = op->desc.kind == CK_LINEAR      ? a->act == CK_ACT_NONE && !a->residual && a->p == 0
		    : op->desc.kind == CK_BATCHNORM ? a->act == CK_ACT_NONE && act == CK_ACT_RELU
						    : false;
	if (fits)
		a->act = act;
	return fits;
}

static bool take_dropout(ck_op_info *op, double p)
{
	ck_attr *a = &op->desc.attr;
	if (op->desc.kind != CK_LINEAR || a->residual || a->p != 0)
		return false;
	a->p = p;
	return true;
}

static bool take_residual(const ck_graph *g, ck_op_info *op, int o, const ck_op_info *add)
{
	ck_attr *a = &op->desc.attr;
	bool kind_fits = op->desc.kind == CK_LINEAR || op->desc.kind == CK_BATCHNORM || op->desc.kind == CK_DROPOUT;
	if (!kind_fits || a->residual || a->act != CK_ACT_NONE)
		return false;
	ck_value r = other_operand(g, add, op->out[0], o);
	if (r == CK_NONE)
		return false;
	ck_dtype own = op->desc.in[0].dtype, other = g->values[r].dtype;
	if (other != own && (op->desc.kind == CK_BATCHNORM || other != g->real))
		return false;
	a->residual = true;
	op->in[op->desc.nin] = r;
	op->desc.in[op->desc.nin++] = (ck_tensor_desc){g->values[r].dtype, g->values[r].shape};
	return true;
}

static bool take_cast(ck_op_info *op, ck_dtype to)
{
	if (op->desc.kind != CK_LAYERNORM || !ck_dtype_half(to))
		return false;
	op->desc.attr.to = to;
	return true;
}

/* The op that alone reads the output of op o, or CK_NONE. */
static int sole_reader(const ck_graph *g, int o)
{
	const ck_value_info *out = &g->values[g->ops[o].out[0]];
	return out->nreaders == 1 ? out->readers[0] : CK_NONE;
}

/* Op o's output is what its only reader r, which is no more, made; it keeps o's name. */
static void take_output(ck_graph *g, int o, int r, bool *gone)
{
	ck_value out = g->ops[o].out[0], merged = g->ops[r].out[0];
	gone[r] = true;
	g->ops[o].out[0] = merged;
	g->values[merged].producer = o;
	free(g->values[merged].name);
	g->values[merged].name = g->values[out].name;
	g->values[out].name = NULL;
}

/* The cast o is no more: its only reader r reads what it read. */
static void skip_cast(ck_graph *g, int o, int r, bool *gone)
{
	ck_op_info *reader = &g->ops[r];
	ck_value from = g->ops[o].in[0], out = g->ops[o].out[0];
	gone[o] = true;
	for (int i = 0; i < reader->desc.nin; i++)
		if (reader->in[i] == out)
			reader->in[i] = from;
	ck_value_info *v = &g->values[from];
	for (int i = 0; i < v->nreaders; i++)
		if (v->readers[i] == o)
			v->readers[i] = r;
	free(g->values[out].name);
	g->values[out].name = NULL;
	ck__graph_retype(g, r);
}

/* The cast o, from 16 bits, goes into its reader, if that computes in real from what is stored. */
static void absorb_cast(ck_graph *g, int o, bool *gone)
{
	int r = sole_reader(g, o);
	if (r == CK_NONE || !ck_dtype_half(g->ops[o].desc.in[0].dtype))
		return;
	if (g->ops[r].desc.kind == CK_XENT)
		skip_cast(g, o, r, gone);
	if (g->ops[r].desc.kind != CK_SOFTMAX)
		return;
	int last = r, next = sole_reader(g, r);
	if (next != CK_NONE && g->ops[next].desc.kind == CK_DROPOUT && !g->ops[next].desc.attr.residual)
		last = next, next = sole_reader(g, last);
	if (next == CK_NONE || g->ops[next].desc.kind != CK_CAST || g->ops[next].desc.attr.to != g->ops[o].desc.in[0].dtype)
		return;
	take_output(g, last, next, gone);
	skip_cast(g, o, r, gone);
	if (last != r)
		ck__graph_retype(g, last);
}

/* Op o takes over its only reader, if the two fit. The reader's output becomes o's. */
static bool absorb_reader(ck_graph *g, int o, bool *gone)
{
	ck_op_info *op = &g->ops[o];
	int r = sole_reader(g, o);
	if (r == CK_NONE)
		return false;
	const ck_op_info *reader = &g->ops[r];
	bool taken = reader->desc.kind == CK_ACT ? !reader->desc.attr.inplace && take_activation(op, reader->desc.attr.act)
		     : reader->desc.kind == CK_DROPOUT ? !reader->desc.attr.residual && take_dropout(op, reader->desc.attr.p)
		     : reader->desc.kind == CK_ADD     ? take_residual(g, op, o, reader)
		     : reader->desc.kind == CK_CAST    ? take_cast(op, reader->desc.attr.to)
						       : false;
	if (!taken)
		return false;
	take_output(g, o, r, gone);
	ck__graph_retype(g, o);
	return !g->err.text[0];
}

/* Removes ops that are gone and values without a name, and renumbers. */
static void compact(ck_graph *g, const bool *gone)
{
	int *value_at = ck_alloc((size_t)g->nvalues, sizeof *value_at);
	int *op_at = ck_alloc((size_t)g->nops, sizeof *op_at);
	int nvalues = 0, nops = 0;
	for (int v = 0; v < g->nvalues; v++) {
		if (!g->values[v].name) {
			free(g->values[v].readers);
			continue;
		}
		value_at[v] = nvalues;
		g->values[nvalues++] = g->values[v];
	}
	for (int o = 0; o < g->nops; o++) {
		if (gone[o]) {
			free(g->ops[o].name);
			continue;
		}
		op_at[o] = nops;
		g->ops[nops++] = g->ops[o];
	}
	g->nvalues = nvalues;
	g->nops = nops;
	for (int v = 0; v < nvalues; v++)
		if (g->values[v].producer != CK_NONE)
			g->values[v].producer = op_at[g->values[v].producer];
	for (int o = 0; o < nops; o++) {
		ck_op_info *op = &g->ops[o];
		for (int i = 0; i < op->desc.nin; i++)
			op->in[i] = value_at[op->in[i]];
		op->out[0] = value_at[op->out[0]];
		for (int i = 0; i < op->desc.nstash; i++)
			op->stash[i] = value_at[op->stash[i]];
	}
	g->loss = value_at[g->loss];
	free(value_at);
	free(op_at);
}

void ck__graph_fuse(ck_graph *g)
{
	bool *gone = ck_alloc((size_t)g->nops, sizeof *gone);
	ck__graph_readers(g);
	for (int o = 0; o < g->nops; o++)
		if (!gone[o] && g->ops[o].desc.kind == CK_CAST)
			absorb_cast(g, o, gone);
	for (int o = 0; o < g->nops; o++)
		while (!gone[o] && absorb_reader(g, o, gone))
			;
	compact(g, gone);
	free(gone);
}
