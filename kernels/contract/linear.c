/* LINEAR. */
#include "kernels/contract/contract.h"

static ck_status linear_check(const ck_attr *a, ck_err *err)
{
	if (a->residual && a->act != CK_ACT_NONE)
		return ck_fail(err, CK_USAGE, "a residual and an activation do not come together");
	return ck__check_p(a, err);
}

static ck_status linear_infer(ck_op_desc *d, ck_err *err)
{
	ck_shape x = d->in[0].shape, w = d->in[1].shape, y = x;
	if (w.nd != 2)
		return ck__bad_shape(d, 1, err, "must have 2 extents, out x in");
	if (ck_shape_last(x) != w.d[1])
		return ck__bad_pair(d, 0, 1, err, "their last extents must be equal");
	if (ck__has_bias(d) && ck__want_vector(d, 2, w.d[0], 1, err) != CK_OK)
		return CK_USAGE;
	y.d[y.nd - 1] = w.d[0];
	ck__set_out(d, y);
	if (ck_act_gelu(d->attr.act))
		ck__add_stash(d, d->in[0].dtype, y);
	return ck__want_residual(d, err);
}

static void linear_contract(const ck_op_desc *d, ck_contract *c)
{
	int r = ck_op_residual(d);
	c->reads_in = (ck_op_wants(d, 1) ? 1u : 0) | (ck_op_wants(d, 0) ? 2u : 0);
	c->reads_out = d->attr.act == CK_ACT_RELU; /* y > 0 is the mask of ReLU, and of dropout too */
	c->reads_stash = ck_act_gelu(d->attr.act);
	c->random = d->attr.p > 0;
	c->inplace_backward = ck_op_wants(d, r) ? r : -1;
}

static void linear_flops(const ck_op_desc *d, double *forward, double *backward)
{
	double product = 2 * ck__count(&d->out[0]) * (double)ck_shape_last(d->in[0].shape);
	double each = ck__count(&d->out[0]) * (ck__act_flops(d->attr.act) + (d->attr.p > 0 ? 2 : 0));
	double bias = ck__has_bias(d) ? ck__count(&d->out[0]) : 0;
	*forward = product + bias + each + (ck__has_residual(d) ? ck__count(&d->out[0]) : 0);
	*backward =
	    product * (ck_op_wants(d, 0) + ck_op_wants(d, 1)) + (ck__has_bias(d) && ck_op_wants(d, 2) ? bias : 0) + each;
}

const ck_op_entry ck__op_linear = {
    .required = 2,
    .in = {"x", "w"},
    .bias = "b",
    .residual = true,
    .mixed_residual = true,
    .check = linear_check,
    .infer = linear_infer,
    .contract = linear_contract,
    .flops = linear_flops,
};
