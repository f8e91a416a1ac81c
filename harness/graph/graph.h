/* The graph: a model's values and ops, in the order in which a plain forward runs them.
 *
 *     inputs, parameters, buffers ──▶ op 0 ──▶ op 1 ──▶ … ──▶ loss
 *
 * A model builds one with the functions below; each checks the shapes and returns the op's output value. The first error
 * sticks: later calls do nothing and return CK_NONE, and ck_graph_finish() reports it with the op's name and the shapes. So a
 * model file reads straight through, without a check per line.
 *
 * After ck_graph_finish() the graph never changes: everything downstream takes a const ck_graph *. */
#ifndef CK_GRAPH_H
#define CK_GRAPH_H

#include "kernels/ops.h"

typedef int ck_value; /* index into graph->values */
enum { CK_NONE = -1 };

typedef enum ck_kind {
	CK_INPUT, /* the batch: x, ids, targets */
	CK_PARAM,
	CK_BUFFER, /* state that is not trained: running statistics */
	CK_ACTIVATION,
	CK_STASH,
	CK_LOSS,        /* the loss, one element: stays, so that it can be read after the step */
	CK_WEIGHT_COPY, /* a parameter's 16-bit copy for products: made once a step, kept until its last use */
} ck_kind;

const char *ck_kind_name(ck_kind kind);

/* How a parameter or buffer starts. Always drawn from the case's seed and the value's index. */
typedef enum ck_init_kind { CK_INIT_ZERO, CK_INIT_ONE, CK_INIT_NORMAL, CK_INIT_UNIFORM } ck_init_kind;
typedef struct ck_init {
	ck_init_kind kind;
	double scale; /* standard deviation, or half the width of the uniform interval around 0 */
} ck_init;

typedef struct ck_value_info {
	char *name; /* unique; an activation's is its op's, a stash's is "op:stat" */
	ck_kind kind;
	ck_dtype dtype;
	ck_shape shape;
	size_t bytes;
	size_t
	    gradient_bytes; /* of its gradient, were there one: a weight copy's is in the graph's real dtype, others as the value */
	ck_init init;       /* CK_PARAM, CK_BUFFER */
	int64_t range;      /* integer inputs: values are 0 .. range - 1 */
	bool trainable;     /* CK_PARAM */
	bool needs_grad; /* set by finish: a gradient of this value is computed */
	int producer;    /* the op that writes it, or CK_NONE */
	int *readers;    /* the ops that take it as an input, ascending; an op stands once */
	int nreaders;
} ck_value_info;

typedef struct ck_op_info {
	char *name; /* unique */
	ck_op_desc desc;
	ck_contract contract;
	ck_value in[CK_MAX_IN], out[CK_MAX_OUT], stash[CK_MAX_STASH];
	bool has_backward; /* desc.needs is not 0 */
	double flops_forward, flops_backward;
	int stage; /* set by finish */
} ck_op_info;

typedef struct ck_graph {
	ck_dtype real; /* f32, or f64 for the reference backend */
	ck_dtype low;  /* mixed precision: the 16-bit type; CK_DTYPE_NONE: off */
	ck_value_info *values;
	int nvalues;
	ck_op_info *ops;
	int nops;
	ck_value loss;
	/* The chain: stage s holds ops stage_first[s] .. stage_first[s + 1] - 1, and cut[s] is the single activation that
	 * enters it (cut[0] is the model's input). The op of the loss belongs to the last stage. */
	int nstages;
	int *stage_first;   /* nstages + 1 */
	ck_value *cut;      /* nstages */
	int64_t parameters; /* elements of all trainable and frozen parameters; a tied one counts once */
	double model_flops; /* forward + backward, no recompute */
	uint64_t digest;    /* of structure, shapes, attributes and names: a schedule names the graph that it is for by this */
	struct ck_graph_index *index; /* private: name to value and op */
	ck_err err;
} ck_graph;

/* ---- building ---------------------------------------------------------------------------------------------------------- */

ck_graph *ck_graph_new(ck_dtype real);
/* Mixed precision with CK_BF16 or CK_F16, applied by finish (autocast.c): the model is built as without. */
void ck_graph_mix(ck_graph *g, ck_dtype low);
void ck_graph_free(ck_graph *g); /* NULL is fine */

/* Batch tensors. needs_grad: compute the gradient of this input as well (checks want it, training does not). */
ck_value ck_input(ck_graph *g, const char *name, ck_shape shape, bool needs_grad);   /* dtype is the graph's real */
ck_value ck_input_int(ck_graph *g, const char *name, ck_shape shape, int64_t range); /* i32: token ids, class labels */
ck_value ck_param(ck_graph *g, const char *name, ck_shape shape, ck_init init);      /* trainable */
void ck_freeze(ck_graph *g, ck_value param);                                         /* its gradient is not computed */
ck_value ck_buffer(ck_graph *g, const char *name, ck_dtype t, ck_shape shape, ck_init init);

/* Ops. `name` is the op's and its output's name. Parameters are made by the caller, so that they can be shared; CK_NONE leaves
 * an optional one out. The shapes are those of kernels/ops.h. */
ck_value ck_linear(ck_graph *g, const char *name, ck_value x, ck_value w, ck_value b);
ck_value ck_conv2d(ck_graph *g, const char *name, ck_value x, ck_value w, ck_value b, int stride, int pad, int groups);
typedef struct ck_batchnorm_values {
	ck_value gamma, beta, mean, var, count;
} ck_batchnorm_values;
ck_value ck_batchnorm(ck_graph *g, const char *name, ck_value x, ck_batchnorm_values v, double eps, double momentum,
		      bool training);
ck_value ck_layernorm(ck_graph *g, const char *name, ck_value x, ck_value gamma, ck_value beta, double eps);
ck_value ck_activation(ck_graph *g, const char *name, ck_value x, ck_act act);
/* The same over x itself, as torch.nn.ReLU(inplace=True): x is gone after it. Not fused; a schedule that reads x later is refused. */
ck_value ck_activation_inplace(ck_graph *g, const char *name, ck_value x, ck_act act);
ck_value ck_scores(ck_graph *g, const char *name, ck_value qkv, int heads); /* scale 1 / sqrt(C / heads) */
ck_value ck_softmax(ck_graph *g, const char *name, ck_value s, bool causal);
ck_value ck_weighted_sum(ck_graph *g, const char *name, ck_value p, ck_value qkv, int heads);
ck_value ck_dropout(ck_graph *g, const char *name, ck_value x, double p); /* p = 0: returns x, no op */
ck_value ck_add(ck_graph *g, const char *name, ck_value a, ck_value b);
ck_value ck_embedding(ck_graph *g, const char *name, ck_value ids, ck_value wte, ck_value wpe);
ck_value ck_maxpool(ck_graph *g, const char *name, ck_value x, int window, int stride, int pad);
ck_value ck_avgpool(ck_graph *g, const char *name, ck_value x, int kh, int kw, int stride, int pad);
ck_value ck_flatten(ck_graph *g, const char *name, ck_value x);
ck_value ck_tally(ck_graph *g, const char *name, ck_value x, ck_value load, ck_value calls);
ck_value ck_cross_entropy(ck_graph *g, const char *name, ck_value logits, ck_value target);

/* Extents of a value while building: last extent of x, and so on. 0 once an error stands. */
ck_shape ck_shape_of(const ck_graph *g, ck_value v);

/* Records an error of the model's own ("transformer: width 100 is not a multiple of heads 12"). */
void ck_graph_error(ck_graph *g, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Ends building: autocast, fuse (optional, see fuse.c), find what needs a gradient, readers, cuts, stages, digest. */
ck_status ck_graph_finish(ck_graph *g, ck_value loss, bool fuse, ck_err *err);

/* ---- reading ----------------------------------------------------------------------------------------------------------- */

/* By name; CK_NONE when there is none. */
ck_value ck_graph_value(const ck_graph *g, const char *name);
int ck_graph_op(const ck_graph *g, const char *name);

/* Activations, stashes and weight copies: what a schedule has to manage. All others persist. */
static inline bool ck_value_managed(const ck_value_info *v)
{
	return v->kind == CK_ACTIVATION || v->kind == CK_STASH || v->kind == CK_WEIGHT_COPY;
}

/* What an op's forward makes for others to read. */
static inline bool ck_value_made(const ck_value_info *v)
{
	return v->kind == CK_ACTIVATION || v->kind == CK_WEIGHT_COPY;
}

/* What an optimizer changes. A frozen parameter has no gradient. */
static inline bool ck_value_trained(const ck_value_info *v)
{
	return v->kind == CK_PARAM && v->needs_grad;
}

#endif
