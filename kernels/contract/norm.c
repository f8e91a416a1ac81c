/* BATCHNORM, LAYERNORM. */
#include "kernels/contract/contract.h"

enum { BN_X, BN_GAMMA, BN_BETA, BN_RMEAN, BN_RVAR, BN_COUNT };

static ck_status check_eps(const ck_attr *a, ck_err *err)
{
	return a->eps > 0 ? CK_OK : ck_fail(err, CK_USAGE, "eps %g: must be above 0", a->eps);
}

static ck_status batchnorm_check(const ck_attr *a, ck_err *err)
{
	if (ck_act_gelu(a->act))
		return ck_fail(err, CK_USAGE, "batchnorm is followed by ReLU or by nothing");
	return check_eps(a, err);
}

static ck_status batchnorm_infer(ck_op_desc *d, ck_err *err)
{
	ck_shape x = d->in[BN_X].shape;
	int64_t channels = ck_shape_last(x);
	for (int i = BN_GAMMA; i <= BN_COUNT; i++)
		if (ck__want_vector(d, i, i == BN_COUNT ? 1 : channels, BN_X, err) != CK_OK)
			return CK_USAGE;
	if (d->attr.training && ck_shape_rows(x) < 2)
		return ck__bad_shape(d, BN_X, err, "training needs more than one row per channel: use a larger batch");
	ck__set_out(d, x);
	if (d->attr.training) {
		ck__add_stash(d, d->real, ck_dims(1, channels));
		ck__add_stash(d, d->real, ck_dims(1, channels));
	}
	return ck__want_residual(d, err);
}

static void batchnorm_contract(const ck_op_desc *d, ck_contract *c)
{
	bool training = d->attr.training, x = ck_op_wants(d, BN_X), gamma = ck_op_wants(d, BN_GAMMA);
	int r = ck_op_residual(d);
	if (x)
		c->reads_in |= 1u << BN_GAMMA;
	if (gamma || (training && x)) /* the normalised input */
		c->reads_in |= 1u << BN_X;
	if (training) {
		c->reads_stash = x || gamma ? 3 : 0;
		c->state = 1u << BN_RMEAN | 1u << BN_RVAR | 1u << BN_COUNT;
	} else {
		c->reads_in |= (gamma ? 1u << BN_RMEAN : 0) | (x || gamma ? 1u << BN_RVAR : 0);
	}
	c->reads_out = d->attr.act == CK_ACT_RELU;
	c->inplace_backward = ck_op_wants(d, r) ? r : x ? BN_X : -1;
}

static ck_status layernorm_infer(ck_op_desc *d, ck_err *err)
{
	ck_shape x = d->in[0].shape;
	for (int i = 1; i <= 2; i++)
		if (ck__want_vector(d, i, ck_shape_last(x), 0, err) != CK_OK)
			return CK_USAGE;
	if (d->attr.to != CK_DTYPE_NONE && d->attr.to != d->real && !ck_dtype_half(d->attr.to))
		return ck_fail(err, CK_USAGE, "its output cannot be %s: must be %s or a 16-bit type", ck_dtype_name(d->attr.to),
			       ck_dtype_name(d->real));
	ck__set_out(d, x);
	if (ck_dtype_half(d->attr.to)) {
		d->out[0].dtype = d->attr.to;
		ck__add_stash(d, d->attr.to, x);
	} else {
		ck__add_stash(d, d->real, ck_dims(1, ck_shape_rows(x)));
	}
	ck__add_stash(d, d->real, ck_dims(1, ck_shape_rows(x)));
	return CK_OK;
}

static void layernorm_contract(const ck_op_desc *d, ck_contract *c)
{
	bool x = ck_op_wants(d, 0), gamma = ck_op_wants(d, 1), xhat = ck_layernorm_stashes_xhat(d);
	c->reads_in = ((x || gamma) && !xhat ? 1u : 0) | (x ? 2u : 0);
	c->reads_stash = x ? 3 : !gamma ? 0 : xhat ? 1 : 3; /* dgamma sums dy xhat */
}

static void norm_flops(const ck_op_desc *d, double *forward, double *backward)
{
	double n = ck__count(&d->in[0]);
	double after = n * ((d->kind == CK_BATCHNORM) * ck__act_flops(d->attr.act) + ck__has_residual(d));
	*forward = 8 * n + after; /* mean 1, variance 3, normalise 2, scale and shift 2 */
	*backward = n * (8 * ck_op_wants(d, 0) + 4 * ck_op_wants(d, 1) + ck_op_wants(d, 2)) + after;
}

const ck_op_entry ck__op_batchnorm = {
    .required = 6,
    .in = {"x", "gamma", "beta", "rmean", "rvar", "count"},
    .residual = true,
    .integer = 1u << BN_COUNT,
    .real = 1u << BN_GAMMA | 1u << BN_BETA | 1u << BN_RMEAN | 1u << BN_RVAR,
    .fixed = 1u << BN_RMEAN | 1u << BN_RVAR | 1u << BN_COUNT,
    .check = batchnorm_check,
    .infer = batchnorm_infer,
    .contract = batchnorm_contract,
    .flops = norm_flops,
};

const ck_op_entry ck__op_layernorm = {
    .required = 3,
    .in = {"x", "gamma", "beta"},
    .real = 7,
    .check = check_eps,
    .infer = layernorm_infer,
    .contract = layernorm_contract,
    .flops = norm_flops,
};
