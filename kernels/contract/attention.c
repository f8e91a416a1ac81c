/* Multi-head attention: SCORES, SOFTMAX, WSUM. */
#include "kernels/contract/contract.h"

/* qkv (B,T,3C) with C a multiple of heads, as input i. */
static ck_status check_qkv(const ck_op_desc *d, int i, ck_err *err)
{
	ck_shape qkv = d->in[i].shape;
	if (qkv.nd != 3 || qkv.d[2] % 3)
		return ck__bad_shape(d, i, err, "must have 3 extents, B x T x 3C");
	if (d->attr.heads < 1 || qkv.d[2] / 3 % d->attr.heads) {
		char text[CK_SHAPE_TEXT];
		return ck_fail(err, CK_USAGE, "qkv %s: its width %lld is not a multiple of heads %d", ck_shape_text(qkv, text),
			       (long long)(qkv.d[2] / 3), d->attr.heads);
	}
	return CK_OK;
}

static ck_shape scores_shape(const ck_op_desc *d, int i)
{
	ck_shape qkv = d->in[i].shape;
	return ck_dims(4, qkv.d[0], (int64_t)d->attr.heads, qkv.d[1], qkv.d[1]);
}

static ck_status scores_infer(ck_op_desc *d, ck_err *err)
{
	if (check_qkv(d, 0, err) != CK_OK)
		return CK_USAGE;
	ck__set_out(d, scores_shape(d, 0));
	return CK_OK;
}

static void scores_contract(const ck_op_desc *d, ck_contract *c)
{
	c->reads_in = ck_op_wants(d, 0);
	c->grad_parts[0] = 1 | 2; /* q, k */
}

static void scores_flops(const ck_op_desc *d, double *forward, double *backward)
{
	double head = (double)(ck_shape_last(d->in[0].shape) / 3 / d->attr.heads);
	*forward = ck__count(&d->out[0]) * (2 * head + 1);
	*backward = ck__count(&d->out[0]) * (4 * head + 1);
}

static ck_status softmax_infer(ck_op_desc *d, ck_err *err)
{
	ck_shape s = d->in[0].shape;
	if (d->attr.causal && (s.nd < 2 || s.d[s.nd - 1] != s.d[s.nd - 2]))
		return ck__bad_shape(d, 0, err, "a causal softmax is over square matrices: the last two extents must be equal");
	ck__set_out(d, s);
	return CK_OK;
}

static void softmax_contract(const ck_op_desc *d, ck_contract *c)
{
	c->reads_out = ck_op_wants(d, 0);
	c->inplace_forward = 0;
	c->inplace_backward = ck_op_wants(d, 0) ? 0 : -1;
}

static void softmax_flops(const ck_op_desc *d, double *forward, double *backward)
{
	double used = ck__count(&d->in[0]) * (d->attr.causal ? 0.5 : 1);
	*forward = 5 * used;
	*backward = 4 * used;
}

static ck_status wsum_infer(ck_op_desc *d, ck_err *err)
{
	ck_shape qkv = d->in[1].shape;
	if (check_qkv(d, 1, err) != CK_OK)
		return CK_USAGE;
	if (!ck_shape_equal(d->in[0].shape, scores_shape(d, 1)))
		return ck__bad_pair(d, 0, 1, err, "p must be B x heads x T x T");
	ck__set_out(d, ck_dims(3, qkv.d[0], qkv.d[1], qkv.d[2] / 3));
	return CK_OK;
}

static void wsum_contract(const ck_op_desc *d, ck_contract *c)
{
	c->reads_in = (ck_op_wants(d, 1) ? 1u : 0) | (ck_op_wants(d, 0) ? 2u : 0);
	c->grad_parts[1] = 4; /* v */
}

static void wsum_flops(const ck_op_desc *d, double *forward, double *backward)
{
	double product = 2 * ck__count(&d->out[0]) * (double)ck_shape_last(d->in[0].shape);
	*forward = product;
	*backward = product * (ck_op_wants(d, 0) + ck_op_wants(d, 1));
}

const ck_op_entry ck__op_scores = {
    .required = 1,
    .in = {"qkv"},
    .infer = scores_infer,
    .contract = scores_contract,
    .flops = scores_flops,
};

const ck_op_entry ck__op_softmax = {
    .required = 1,
    .in = {"s"},
    .infer = softmax_infer,
    .contract = softmax_contract,
    .flops = softmax_flops,
};

const ck_op_entry ck__op_wsum = {
    .required = 2,
    .in = {"p", "qkv"},
    .infer = wsum_infer,
    .contract = wsum_contract,
    .flops = wsum_flops,
};
