/* Building a graph: every ck_… call adds one value or one op, and checks its shapes at once. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "harness/graph/internal.h"
#include "kernels/alloc.h"

ck_graph *ck_graph_new(ck_dtype real)
{
	ck_graph *g = ck_alloc(1, sizeof *g);
	g->real = real;
	g->loss = CK_NONE;
	g->index = ck_alloc(1, sizeof *g->index);
	return g;
}

void ck_graph_mix(ck_graph *g, ck_dtype low)
{
	g->low = low;
}

void ck_graph_free(ck_graph *g)
{
	if (!g)
		return;
	for (int v = 0; v < g->nvalues; v++) {
		free(g->values[v].name);
		free(g->values[v].readers);
	}
	for (int o = 0; o < g->nops; o++)
		free(g->ops[o].name);
	free(g->values);
	free(g->ops);
	free(g->stage_first);
	free(g->cut);
	free(g->index->slots);
	free(g->index);
	free(g);
}

void ck_graph_error(ck_graph *g, const char *format, ...)
{
	if (g->err.text[0])
		return;
	va_list args;
	va_start(args, format);
	vsnprintf(g->err.text, sizeof g->err.text, format, args);
	va_end(args);
}

const char *ck_kind_name(ck_kind kind)
{
	static const char *const names[] = {"input", "parameter", "buffer", "activation", "stash", "loss", "weight copy"};
	return names[kind];
}

/* What follows from a value's kind and tensor. */
static void set_tensor(const ck_graph *g, ck_value_info *v, ck_tensor_desc t)
{
	size_t count = (size_t)ck_shape_count(t.shape);
	v->dtype = t.dtype;
	v->shape = t.shape;
	v->bytes = count * ck_dtype_size(t.dtype);
	v->gradient_bytes = count * ck_dtype_size(v->kind == CK_WEIGHT_COPY ? g->real : t.dtype);
}

ck_value ck__graph_add_value(ck_graph *g, char *name, ck_kind kind, ck_tensor_desc t)
{
	int64_t count = ck_shape_count(t.shape);
	if (count < 0) {
		char text[CK_SHAPE_TEXT];
		ck_graph_error(g, "%s '%s' would have shape %s: empty, or more than 2^48 elements; change the model's sizes",
			       ck_kind_name(kind), name, ck_shape_text(t.shape, text));
	}
	if (g->err.text[0]) {
		free(name);
		return CK_NONE;
	}
	g->values = ck_grow(g->values, &g->index->values_capacity, g->nvalues + 1, sizeof *g->values);
	g->values[g->nvalues] = (ck_value_info){.name = name, .kind = kind, .producer = CK_NONE};
	set_tensor(g, &g->values[g->nvalues], t);
	return g->nvalues++;
}

static ck_value add_named(ck_graph *g, const char *name, ck_kind kind, ck_dtype dtype, ck_shape shape)
{
	if (g->err.text[0])
		return CK_NONE;
	return ck__graph_add_value(g, ck_text("%s", name), kind, (ck_tensor_desc){dtype, shape});
}

ck_value ck_input(ck_graph *g, const char *name, ck_shape shape, bool needs_grad)
{
	ck_value v = add_named(g, name, CK_INPUT, g->real, shape);
	if (v != CK_NONE)
		g->values[v].needs_grad = needs_grad;
	return v;
}

ck_value ck_input_int(ck_graph *g, const char *name, ck_shape shape, int64_t range)
{
	ck_value v = add_named(g, name, CK_INPUT, CK_I32, shape);
	if (v != CK_NONE)
		g->values[v].range = range;
	return v;
}

ck_value ck_param(ck_graph *g, const char *name, ck_shape shape, ck_init init)
{
	ck_value v = add_named(g, name, CK_PARAM, g->real, shape);
	if (v != CK_NONE) {
		g->values[v].init = init;
		g->values[v].trainable = true;
	}
	return v;
}

void ck_freeze(ck_graph *g, ck_value param)
{
	if (param != CK_NONE)
		g->values[param].trainable = false;
}

ck_value ck_buffer(ck_graph *g, const char *name, ck_dtype t, ck_shape shape, ck_init init)
{
	ck_value v = add_named(g, name, CK_BUFFER, t, shape);
	if (v != CK_NONE)
		g->values[v].init = init;
	return v;
}

ck_shape ck_shape_of(const ck_graph *g, ck_value v)
{
	if (v == CK_NONE)
		return (ck_shape){0};
	return g->values[v].shape;
}

/* "op:stat", fresh. */
static char *stash_name(const ck_op_info *op, int i)
{
	static const char *const names[CK_OP_KIND_COUNT][CK_MAX_STASH] = {
	    [CK_LINEAR] = {"z"}, [CK_BATCHNORM] = {"mean", "rstd"}, [CK_LAYERNORM] = {"mean", "rstd"}, [CK_MAXPOOL] = {"at"},
	    [CK_XENT] = {"lse"},
	};
	bool xhat = op->desc.kind == CK_LAYERNORM && i == 0 && ck_layernorm_stashes_xhat(&op->desc);
	return ck_text("%s:%s", op->name, xhat ? "xhat" : names[op->desc.kind][i]);
}

/* Works out outputs and stashes of the op in `info` and adds the values for those it does not have yet. */
ck_status ck__graph_infer(ck_graph *g, int o)
{
	ck_op_info *op = &g->ops[o];
	ck_err why = {0};
	int had_stash = op->desc.nstash;
	if (ck_op_infer(&op->desc, g->real, &why) != CK_OK) {
		ck_graph_error(g, "op '%s' (%s): %s", op->name, ck_op_kind_name(op->desc.kind), why.text);
		return CK_USAGE;
	}
	for (int i = 0; i < had_stash; i++) {
		ck_value_info *v = &g->values[op->stash[i]];
		set_tensor(g, v, op->desc.stash[i]);
		free(v->name); /* a layer norm that is to store 16 bits stashes something else */
		v->name = stash_name(op, i);
		g->values[op->stash[i]].producer = o;
	}
	for (int i = had_stash; i < op->desc.nstash; i++) {
		op->stash[i] = ck__graph_add_value(g, stash_name(op, i), CK_STASH, op->desc.stash[i]);
		if (op->stash[i] == CK_NONE)
			return CK_USAGE;
		g->values[op->stash[i]].producer = o;
	}
	return CK_OK;
}

void ck__graph_retype(ck_graph *g, int o)
{
	ck_op_info *op = &g->ops[o];
	for (int i = 0; i < op->desc.nin; i++)
		op->desc.in[i] = (ck_tensor_desc){g->values[op->in[i]].dtype, g->values[op->in[i]].shape};
	if (g->err.text[0] || ck__graph_infer(g, o) != CK_OK)
		return;
	set_tensor(g, &g->values[op->out[0]], op->desc.out[0]);
	g->values[op->out[0]].producer = o;
}

/* Adds an op with the inputs that are not CK_NONE, in order; optional ones are told by attributes. */
static ck_value add_op(ck_graph *g, const char *name, ck_op_kind kind, ck_attr attr, int nin, const ck_value *in)
{
	if (g->err.text[0])
		return CK_NONE;
	g->ops = ck_grow(g->ops, &g->index->ops_capacity, g->nops + 1, sizeof *g->ops);
	int o = g->nops++;
	ck_op_info *op = &g->ops[o];
	*op = (ck_op_info){.name = ck_text("%s", name), .desc = {.kind = kind, .attr = attr}};
	for (int i = 0; i < nin; i++) {
		if (in[i] == CK_NONE)
			continue;
		const ck_value_info *v = &g->values[in[i]];
		op->in[op->desc.nin] = in[i];
		op->desc.in[op->desc.nin++] = (ck_tensor_desc){v->dtype, v->shape};
	}
	if (ck__graph_infer(g, o) != CK_OK)
		return CK_NONE;
	ck_value out = ck__graph_add_value(g, ck_text("%s", name), CK_ACTIVATION, g->ops[o].desc.out[0]);
	if (out != CK_NONE) {
		g->ops[o].out[0] = out;
		g->values[out].producer = o;
	}
	return out;
}

#define IN(...)                                                                                                                \
	(int)(sizeof((ck_value[]){__VA_ARGS__}) / sizeof(ck_value)), (ck_value[])                                              \
	{                                                                                                                      \
		__VA_ARGS__                                                                                                    \
	}

ck_value ck_linear(ck_graph *g, const char *name, ck_value x, ck_value w, ck_value b)
{
	return add_op(g, name, CK_LINEAR, (ck_attr){.bias = b != CK_NONE}, IN(x, w, b));
}

ck_value ck_conv2d(ck_graph *g, const char *name, ck_value x, ck_value w, ck_value b, int stride, int pad, int groups)
{
	ck_shape kernel = ck_shape_of(g, w);
	ck_attr a = {.kh = (int)kernel.d[1],
		     .kw = (int)kernel.d[2],
		     .stride = stride,
		     .pad = pad,
		     .groups = groups,
		     .bias = b != CK_NONE};
	return add_op(g, name, CK_CONV2D, a, IN(x, w, b));
}

ck_value ck_batchnorm(ck_graph *g, const char *name, ck_value x, ck_batchnorm_values v, double eps, double momentum,
		      bool training)
{
	ck_attr a = {.eps = eps, .momentum = momentum, .training = training};
	return add_op(g, name, CK_BATCHNORM, a, IN(x, v.gamma, v.beta, v.mean, v.var, v.count));
}

ck_value ck_layernorm(ck_graph *g, const char *name, ck_value x, ck_value gamma, ck_value beta, double eps)
{
	return add_op(g, name, CK_LAYERNORM, (ck_attr){.eps = eps}, IN(x, gamma, beta));
}

ck_value ck_activation(ck_graph *g, const char *name, ck_value x, ck_act act)
{
	return act == CK_ACT_NONE ? x : add_op(g, name, CK_ACT, (ck_attr){.act = act}, IN(x));
}

ck_value ck_activation_inplace(ck_graph *g, const char *name, ck_value x, ck_act act)
{
	if (x != CK_NONE && g->values[x].kind != CK_ACTIVATION)
		ck_graph_error(g, "%s: it cannot work in place over the %s '%s', which has to stay; let it work on a copy",
			       name, ck_kind_name(g->values[x].kind), g->values[x].name);
	return add_op(g, name, CK_ACT, (ck_attr){.act = act, .inplace = true}, IN(x));
}

ck_value ck_scores(ck_graph *g, const char *name, ck_value qkv, int heads)
{
	double width = (double)ck_shape_last(ck_shape_of(g, qkv)) / 3;
	double scale = heads > 0 && width > 0 ? 1 / sqrt(width / heads) : 0;
	return add_op(g, name, CK_SCORES, (ck_attr){.heads = heads, .scale = scale}, IN(qkv));
}

ck_value ck_softmax(ck_graph *g, const char *name, ck_value s, bool causal)
{
	return add_op(g, name, CK_SOFTMAX, (ck_attr){.causal = causal}, IN(s));
}

ck_value ck_weighted_sum(ck_graph *g, const char *name, ck_value p, ck_value qkv, int heads)
{
	return add_op(g, name, CK_WSUM, (ck_attr){.heads = heads}, IN(p, qkv));
}

ck_value ck_dropout(ck_graph *g, const char *name, ck_value x, double p)
{
	return p == 0 ? x : add_op(g, name, CK_DROPOUT, (ck_attr){.p = p}, IN(x));
}

ck_value ck_add(ck_graph *g, const char *name, ck_value a, ck_value b)
{
	return add_op(g, name, CK_ADD, (ck_attr){0}, IN(a, b));
}

ck_value ck_embedding(ck_graph *g, const char *name, ck_value ids, ck_value wte, ck_value wpe)
{
	return add_op(g, name, CK_EMBEDDING, (ck_attr){.bias = wpe != CK_NONE}, IN(ids, wte, wpe));
}

ck_value ck_maxpool(ck_graph *g, const char *name, ck_value x, int window, int stride, int pad)
{
	return add_op(g, name, CK_MAXPOOL, (ck_attr){.kh = window, .kw = window, .stride = stride, .pad = pad}, IN(x));
}

ck_value ck_avgpool(ck_graph *g, const char *name, ck_value x, int kh, int kw, int stride, int pad)
{
	return add_op(g, name, CK_AVGPOOL, (ck_attr){.kh = kh, .kw = kw, .stride = stride, .pad = pad}, IN(x));
}

ck_value ck_flatten(ck_graph *g, const char *name, ck_value x)
{
	return add_op(g, name, CK_FLATTEN, (ck_attr){0}, IN(x));
}

ck_value ck_tally(ck_graph *g, const char *name, ck_value x, ck_value load, ck_value calls)
{
	return add_op(g, name, CK_TALLY, (ck_attr){0}, IN(x, load, calls));
}

ck_value ck_cross_entropy(ck_graph *g, const char *name, ck_value logits, ck_value target)
{
	return add_op(g, name, CK_XENT, (ck_attr){0}, IN(logits, target));
}
