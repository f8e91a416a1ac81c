/* The ops' contracts, as callers see them. What differs from op to op stands in contract/, one entry per op. */
#include "kernels/contract/contract.h"

static const ck_op_entry *const entries[CK_OP_KIND_COUNT] = {
    [CK_LINEAR] = &ck__op_linear,
    [CK_CONV2D] = &ck__op_conv2d,
    [CK_BATCHNORM] = &ck__op_batchnorm,
    [CK_LAYERNORM] = &ck__op_layernorm,
    [CK_ACT] = &ck__op_act,
    [CK_SCORES] = &ck__op_scores,
    [CK_SOFTMAX] = &ck__op_softmax,
    [CK_WSUM] = &ck__op_wsum,
    [CK_DROPOUT] = &ck__op_dropout,
    [CK_ADD] = &ck__op_add,
    [CK_EMBEDDING] = &ck__op_embedding,
    [CK_MAXPOOL] = &ck__op_maxpool,
    [CK_AVGPOOL] = &ck__op_avgpool,
    [CK_FLATTEN] = &ck__op_flatten,
    [CK_CAST] = &ck__op_cast,
    [CK_TALLY] = &ck__op_tally,
    [CK_XENT] = &ck__op_xent,
};

const ck_op_entry *ck__op_entry(ck_op_kind kind)
{
	return entries[kind];
}

int ck_op_residual(const ck_op_desc *d)
{
	return ck__has_residual(d) ? ck__op_entry(d->kind)->required + ck__has_bias(d) : -1;
}

const char *ck_op_kind_name(ck_op_kind kind)
{
	static const char *const names[] = {
#define X(name, text) [CK_##name] = text,
	    CK_OP_KINDS(X)
#undef X
	};
	return names[kind];
}

/* The dtype that input i must have: NULL, or text. */
static const char *wrong_dtype(const ck_op_desc *d, int i)
{
	const ck_op_entry *e = ck__op_entry(d->kind);
	ck_dtype t = d->in[i].dtype, first = d->in[0].dtype;
	if (e->integer >> i & 1)
		return t == CK_I32 ? NULL : "i32";
	if (e->real >> i & 1 || (i >= e->required && i != ck_op_residual(d)))
		return t == d->real ? NULL : ck_dtype_name(d->real);
	if (i == 0 || e->integer & 1)
		return t == d->real || ck_dtype_half(t) ? NULL : ck_dtype_name(d->real);
	bool mixed = e->mixed >> i & 1, real_too = mixed || (i == ck_op_residual(d) && e->mixed_residual);
	if (t == first || (real_too && t == d->real) || (mixed && first == d->real && ck_dtype_half(t)))
		return NULL;
	return ck_dtype_name(first);
}

/* Every input is there, of the right dtype, and not empty. */
static ck_status check_inputs(const ck_op_desc *d, ck_err *err)
{
	const ck_op_entry *e = ck__op_entry(d->kind);
	int n = e->required + ck__has_bias(d) + ck__has_residual(d);
	if (d->nin != n)
		return ck_fail(err, CK_USAGE, "%s takes %d inputs here, not %d", ck_op_kind_name(d->kind), n, d->nin);
	for (int i = 0; i < n; i++) {
		const char *want = wrong_dtype(d, i);
		if (want)
			return ck_fail(err, CK_USAGE, "%s is %s: must be %s", ck__input_name(d, i),
				       ck_dtype_name(d->in[i].dtype), want);
		if (ck_shape_count(d->in[i].shape) < 0)
			return ck__bad_shape(d, i, err, "every extent must be positive, with fewer than 2^48 elements in all");
	}
	return CK_OK;
}

ck_status ck_op_infer(ck_op_desc *d, ck_dtype real, ck_err *err)
{
	const ck_op_entry *e = ck__op_entry(d->kind);
	d->nout = d->nstash = 0;
	d->real = real;
	if (check_inputs(d, err) != CK_OK || (e->check && e->check(&d->attr, err) != CK_OK) || e->infer(d, err) != CK_OK)
		return CK_USAGE;
	if (ck_shape_count(d->out[0].shape) >= 0)
		return CK_OK;
	char text[CK_SHAPE_TEXT];
	return ck_fail(err, CK_USAGE, "the output %s would have 2^48 elements or more", ck_shape_text(d->out[0].shape, text));
}

ck_contract ck_op_contract(const ck_op_desc *d)
{
	const ck_op_entry *e = ck__op_entry(d->kind);
	ck_contract c = {.differentiable = ((1u << d->nin) - 1) & ~e->fixed,
			 .inplace_forward = -1,
			 .inplace_backward = -1,
			 .inplace_backward_own = -1};
	for (int i = 0; i < CK_MAX_IN; i++)
		c.grad_parts[i] = 7;
	if (e->contract)
		e->contract(d, &c);
	if (!d->needs) /* no backward, so nothing is read */
		c.reads_in = c.reads_out = c.reads_stash = 0;
	return c;
}

ck_tensor_desc ck_op_din(const ck_op_desc *d, int i)
{
	bool weight = i == 1 && (d->kind == CK_LINEAR || d->kind == CK_CONV2D);
	return weight ? (ck_tensor_desc){d->real, d->in[i].shape} : d->in[i];
}

ck_tensor_desc ck_op_dout(const ck_op_desc *d)
{
	bool weight = d->kind == CK_CAST && d->attr.weight;
	return weight ? (ck_tensor_desc){d->real, d->out[0].shape} : d->out[0];
}

double ck_op_flops_forward(const ck_op_desc *d)
{
	double forward, backward;
	ck__op_entry(d->kind)->flops(d, &forward, &backward);
	return forward;
}

double ck_op_flops_backward(const ck_op_desc *d)
{
	double forward, backward;
	ck__op_entry(d->kind)->flops(d, &forward, &backward);
	return d->needs ? backward : 0;
}
