/* Mixed precision: casts where PyTorch's autocast has them (the op lists of its manual, "Automatic Mixed Precision package").
 *
 *     16 bit     linear, convolution, the two products of attention: their tensors are cast to the 16-bit type
 *     real       layer norm, softmax, cross-entropy: theirs are cast to the graph's own dtype
 *     follows    all else takes what it is given; a sum of both is real
 *
 * Parameters stay real (master weights). A weight's 16-bit copy is a value of its own (CK_WEIGHT_COPY), made by a CAST before the
 * first op that uses it and shared by all that do. Biases, BatchNorm's parameters and statistics stay real: their ops add them in
 * real arithmetic.
 *
 * Here every cast is an op. Fusion (fuse.c) then takes those into their neighbours that need no pass over memory of their own. */
#include <stdlib.h>
#include <string.h>

#include "harness/graph/internal.h"
#include "kernels/alloc.h"

typedef enum policy { FOLLOWS, HALF, REAL } policy;

static const policy policies[CK_OP_KIND_COUNT] = {
    [CK_LINEAR] = HALF,    [CK_CONV2D] = HALF,  [CK_SCORES] = HALF, [CK_WSUM] = HALF,
    [CK_LAYERNORM] = REAL, [CK_SOFTMAX] = REAL, [CK_XENT] = REAL,
};

typedef struct casting {
	ck_graph *g;
	ck_value *copy[2]; /* [is real] by value that was there before: its copy, or CK_NONE */
} casting;

static int append(ck_graph *g, ck_op_info op)
{
	g->ops = ck_grow(g->ops, &g->index->ops_capacity, g->nops + 1, sizeof *g->ops);
	g->ops[g->nops] = op;
	return g->nops++;
}

/* v as dtype `to`; casts it unless an op before did. */
static ck_value cast(casting *c, ck_value v, ck_dtype to)
{
	ck_graph *g = c->g;
	ck_value *copy = &c->copy[to == g->real][v];
	if (*copy != CK_NONE)
		return *copy;
	const ck_value_info from = g->values[v];
	bool weight = from.kind == CK_PARAM;
	char *name = ck_text("%s:%s", from.name, ck_dtype_name(to));
	*copy = ck__graph_add_value(g, ck_text("%s", name), weight ? CK_WEIGHT_COPY : CK_ACTIVATION,
				    (ck_tensor_desc){to, from.shape});
	ck_op_info op = {
	    .name = name, .desc = {.kind = CK_CAST, .attr = {.to = to, .weight = weight}, .nin = 1}, .in = {v}, .out = {*copy}};
	int o = append(g, op);
	ck__graph_retype(g, o);
	return *copy;
}

static ck_dtype wanted(const ck_graph *g, const ck_op_info *op, int i)
{
	ck_dtype has = g->values[op->in[i]].dtype;
	bool bias = op->desc.attr.bias && i == 2;
	policy p = policies[op->desc.kind];
	return !ck_dtype_real(has) || bias || p == FOLLOWS ? has : p == HALF ? g->low : g->real;
}

void ck__graph_autocast(ck_graph *g)
{
	casting c = {.g = g};
	ck_op_info *plain = g->ops;
	int nplain = g->nops;
	for (int k = 0; k < 2; k++) {
		c.copy[k] = ck_alloc((size_t)g->nvalues, sizeof **c.copy);
		memset(c.copy[k], 0xff, (size_t)g->nvalues * sizeof **c.copy); /* CK_NONE */
	}
	g->ops = NULL;
	g->nops = g->index->ops_capacity = 0;
	for (int o = 0; o < nplain; o++) {
		ck_op_info op = plain[o];
		for (int i = 0; i < op.desc.nin && !g->err.text[0]; i++) {
			ck_dtype to = wanted(g, &op, i);
			if (to != g->values[op.in[i]].dtype)
				op.in[i] = cast(&c, op.in[i], to);
		}
		ck__graph_retype(g, append(g, op));
	}
	free(plain);
	free(c.copy[0]);
	free(c.copy[1]);
}
