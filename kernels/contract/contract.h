/* What is known of each kind of op without computing it: how its shapes fit together, what its backward reads, what it costs.
 *
 * An op is one ck_op_entry, in the file of its family, and its line in the table of ops.c. Where an in-place choice was to be made
 * (which gradient may lie over the output's):
 *   - with a residual, the residual's: it is the output's gradient itself (masked, for BATCHNORM with ReLU), so that nothing is
 *     copied. A kernel then forms the other gradients first, or from what it writes there: a mask applied twice changes nothing;
 *   - else that of the elementwise (ADD: a, or b alone) or row-wise (SOFTMAX, BATCHNORM) input. */
#ifndef CK_CONTRACT_H
#define CK_CONTRACT_H

#include "kernels/ops.h"

typedef struct ck_op_entry {
	int required;      /* inputs that are always there */
	const char *in[6]; /* their names */
	const char *bias;  /* then comes this one, if attr.bias says so; NULL: the op has none */
	bool residual;     /* and then "r", if attr.residual says so */
	unsigned integer;  /* inputs that are i32 */
	unsigned real;  /* inputs that are real; a bias always is. All others are stored in one dtype, real or 16-bit, but: */
	unsigned mixed; /* these may be real where the first is 16-bit, and the other way round (ADD) */
	bool mixed_residual;                                  /* r may be real where the first is 16-bit */
	unsigned fixed;                                       /* inputs that have no gradient */
	ck_status (*check)(const ck_attr *attr, ck_err *err); /* NULL: any attributes will do */
	ck_status (*infer)(ck_op_desc *d, ck_err *err);       /* out[], stash[]; number and dtypes of inputs are checked */
	void (*contract)(const ck_op_desc *d,
			 ck_contract *c); /* what differs from: reads nothing, shares nothing. NULL: nothing */
	void (*flops)(const ck_op_desc *d, double *forward, double *backward);
} ck_op_entry;

extern const ck_op_entry ck__op_linear, ck__op_conv2d, ck__op_batchnorm, ck__op_layernorm, ck__op_act, ck__op_scores,
    ck__op_softmax, ck__op_wsum, ck__op_dropout, ck__op_add, ck__op_embedding, ck__op_maxpool, ck__op_avgpool, ck__op_flatten,
    ck__op_cast, ck__op_tally, ck__op_xent;

const ck_op_entry *ck__op_entry(ck_op_kind kind);

bool ck__has_bias(const ck_op_desc *d);
bool ck__has_residual(const ck_op_desc *d);
const char *ck__input_name(const ck_op_desc *d, int i);
double ck__count(const ck_tensor_desc *t); /* elements */
double ck__act_flops(ck_act act);          /* an element, forward and backward alike */

void ck__set_out(ck_op_desc *d, ck_shape shape); /* of the first input's dtype; or, where that is 16-bit, of a real r's */
void ck__add_stash(ck_op_desc *d, ck_dtype dtype, ck_shape shape);

/* Refusals: "x 4x30: <why>", and "x 4x30 and w 10x20: <why>" for inputs i and j. */
ck_status ck__bad_shape(const ck_op_desc *d, int i, ck_err *err, const char *why);
ck_status ck__bad_pair(const ck_op_desc *d, int i, int j, ck_err *err, const char *why);
/* Input i must be a vector of n elements, where n comes from input `from`. */
ck_status ck__want_vector(const ck_op_desc *d, int i, int64_t n, int from, ck_err *err);
/* r, where it is there, must be as the output. */
ck_status ck__want_residual(const ck_op_desc *d, ck_err *err);
ck_status ck__check_p(const ck_attr *attr, ck_err *err);

#endif
