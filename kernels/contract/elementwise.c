/* ACT, DROPOUT, ADD, FLATTEN, CAST. */
#include "kernels/contract/contract.h"

static ck_status act_check(const ck_attr *a, ck_err *err)
{
	if (a->act == CK_ACT_NONE)
		return ck_fail(err, CK_USAGE, "no activation given");
	if (a->inplace && a->act != CK_ACT_RELU)
		return ck_fail(err, CK_USAGE, "only ReLU works in place: GELU's backward reads its input");
	return CK_OK;
}

static ck_status same_infer(ck_op_desc *d, ck_err *err)
{
	ck__set_out(d, d->in[0].shape);
	return ck__want_residual(d, err);
}

static void act_contract(const ck_op_desc *d, ck_contract *c)
{
	bool relu = d->attr.act == CK_ACT_RELU;
	c->reads_out = ck_op_wants(d, 0) && relu;
	c->reads_in = ck_op_wants(d, 0) && !relu;
	c->inplace_forward = relu ? 0 : -1;
	c->inplace_required = d->attr.inplace;
	c->inplace_backward = ck_op_wants(d, 0) ? 0 : -1;
}

static void act_op_flops(const ck_op_desc *d, double *forward, double *backward)
{
	*forward = *backward = ck__count(&d->in[0]) * ck__act_flops(d->attr.act);
}

static void dropout_contract(const ck_op_desc *d, ck_contract *c)
{
	int r = ck_op_residual(d);
	bool same = d->in[0].dtype == d->out[0].dtype;
	c->random = d->attr.p > 0;
	c->inplace_forward = same ? 0 : -1;
	c->inplace_backward = ck_op_wants(d, r) ? r : ck_op_wants(d, 0) && same ? 0 : -1;
}

static void dropout_flops(const ck_op_desc *d, double *forward, double *backward)
{
	*forward = ck__count(&d->in[0]) * (2 + ck__has_residual(d));
	*backward = ck__count(&d->in[0]) * 2 * ck_op_wants(d, 0);
}

static ck_status add_infer(ck_op_desc *d, ck_err *err)
{
	if (!ck_shape_equal(d->in[0].shape, d->in[1].shape))
		return ck__bad_pair(d, 0, 1, err, "both must have the same shape");
	ck__set_out(d, d->in[0].shape);
	if (d->in[1].dtype == d->real)
		d->out[0].dtype = d->real;
	return CK_OK;
}

/* Over the operand that is of the sum's dtype. */
static void add_contract(const ck_op_desc *d, ck_contract *c)
{
	int own = d->in[0].dtype == d->out[0].dtype ? 0 : 1;
	c->inplace_forward = own;
	c->inplace_backward = ck_op_wants(d, own) ? own : ck_op_wants(d, 1) && d->in[1].dtype == d->out[0].dtype ? 1 : -1;
}

static void add_flops(const ck_op_desc *d, double *forward, double *backward)
{
	*forward = ck__count(&d->in[0]);
	*backward = 0;
}

static ck_status flatten_infer(ck_op_desc *d, ck_err *err)
{
	ck_shape x = d->in[0].shape;
	if (x.nd < 2)
		return ck__bad_shape(d, 0, err, "must have 2 extents or more");
	ck__set_out(d, ck_dims(2, x.d[0], ck_shape_count(x) / x.d[0]));
	return CK_OK;
}

static void flatten_contract(const ck_op_desc *d, ck_contract *c)
{
	c->inplace_forward = 0;
	c->inplace_backward = ck_op_wants(d, 0) ? 0 : -1;
}

static ck_status cast_infer(ck_op_desc *d, ck_err *err)
{
	ck_dtype from = d->in[0].dtype, to = d->attr.to;
	if (from == d->real ? !ck_dtype_half(to) : to != d->real)
		return ck_fail(err, CK_USAGE, "a cast goes from %s to a 16-bit type or back, not from %s to %s",
			       ck_dtype_name(d->real), ck_dtype_name(from), ck_dtype_name(to));
	ck__set_out(d, d->in[0].shape);
	d->out[0].dtype = to;
	return CK_OK;
}

/* The gradient of a weight's copy is the weight's own. */
static void cast_contract(const ck_op_desc *d, ck_contract *c)
{
	c->inplace_backward = ck_op_wants(d, 0) && d->attr.weight ? 0 : -1;
}

static void no_flops(const ck_op_desc *d, double *forward, double *backward)
{
	(void)d;
	*forward = *backward = 0;
}

const ck_op_entry ck__op_act = {
    .required = 1,
    .in = {"x"},
    .check = act_check,
    .infer = same_infer,
    .contract = act_contract,
    .flops = act_op_flops,
};

const ck_op_entry ck__op_dropout = {
    .required = 1,
    .in = {"x"},
    .residual = true,
    .mixed_residual = true,
    .check = ck__check_p,
    .infer = same_infer,
    .contract = dropout_contract,
    .flops = dropout_flops,
};

const ck_op_entry ck__op_add = {
    .required = 2,
    .in = {"a", "b"},
    .mixed = 2,
    .infer = add_infer,
    .contract = add_contract,
    .flops = add_flops,
};

const ck_op_entry ck__op_flatten = {
    .required = 1,
    .in = {"x"},
    .infer = flatten_infer,
    .contract = flatten_contract,
    .flops = no_flops,
};

const ck_op_entry ck__op_cast = {
    .required = 1,
    .in = {"x"},
    .infer = cast_infer,
    .contract = cast_contract,
    .flops = no_flops,
};
