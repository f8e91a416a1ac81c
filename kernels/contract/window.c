/* CONV2D, MAXPOOL, AVGPOOL: windows sliding over NHWC images. */
#include "kernels/contract/contract.h"

static ck_status window_check(const ck_attr *a, ck_err *err)
{
	if (a->kh > 0 && a->kw > 0 && a->stride > 0 && a->pad >= 0 && a->pad < a->kh && a->pad < a->kw)
		return CK_OK;
	return ck_fail(err, CK_USAGE, "window %dx%d, stride %d, pad %d: all must be positive, and pad smaller than the window",
		       a->kh, a->kw, a->stride, a->pad);
}

/* Extents of the output over x (N,H,W,C), with `channels` of them. */
static ck_status window_out(ck_op_desc *d, int64_t channels, ck_err *err)
{
	const ck_attr *a = &d->attr;
	ck_shape x = d->in[0].shape;
	if (x.nd != 4)
		return ck__bad_shape(d, 0, err, "must have 4 extents, N x H x W x C");
	int64_t h = x.d[1] + 2 * (int64_t)a->pad - a->kh, w = x.d[2] + 2 * (int64_t)a->pad - a->kw;
	if (h < 0 || w < 0) {
		char text[CK_SHAPE_TEXT];
		return ck_fail(err, CK_USAGE, "x %s: smaller than the window %dx%d with pad %d", ck_shape_text(x, text), a->kh,
			       a->kw, a->pad);
	}
	ck__set_out(d, ck_dims(4, x.d[0], h / a->stride + 1, w / a->stride + 1, channels));
	return CK_OK;
}

static ck_status conv2d_check(const ck_attr *a, ck_err *err)
{
	if (a->stride > 0 && a->pad >= 0 && a->groups > 0)
		return CK_OK;
	return ck_fail(err, CK_USAGE, "stride %d, pad %d, groups %d: stride and groups must be positive, pad not negative",
		       a->stride, a->pad, a->groups);
}

static ck_status conv2d_infer(ck_op_desc *d, ck_err *err)
{
	ck_shape x = d->in[0].shape, w = d->in[1].shape;
	if (x.nd != 4 || w.nd != 4)
		return ck__bad_pair(d, 0, 1, err, "both must have 4 extents, N x H x W x C and O x KH x KW x C/groups");
	if (x.d[3] % d->attr.groups || w.d[0] % d->attr.groups || w.d[3] != x.d[3] / d->attr.groups)
		return ck__bad_pair(d, 0, 1, err, "channels do not fit with these groups");
	if (w.d[1] > 1 << 15 || w.d[2] > 1 << 15)
		return ck__bad_shape(d, 1, err, "the window is too large");
	d->attr.kh = (int)w.d[1];
	d->attr.kw = (int)w.d[2];
	if (ck__has_bias(d) && ck__want_vector(d, 2, w.d[0], 1, err) != CK_OK)
		return CK_USAGE;
	return window_out(d, w.d[0], err);
}

static void conv2d_contract(const ck_op_desc *d, ck_contract *c)
{
	c->reads_in = (ck_op_wants(d, 1) ? 1u : 0) | (ck_op_wants(d, 0) ? 2u : 0);
}

static void conv2d_flops(const ck_op_desc *d, double *forward, double *backward)
{
	ck_shape w = d->in[1].shape;
	double product = 2 * ck__count(&d->out[0]) * (double)(w.d[1] * w.d[2] * w.d[3]);
	double bias = ck__has_bias(d) ? ck__count(&d->out[0]) : 0;
	*forward = product + bias;
	*backward = product * (ck_op_wants(d, 0) + ck_op_wants(d, 1)) + (ck__has_bias(d) && ck_op_wants(d, 2) ? bias : 0);
}

static ck_status maxpool_infer(ck_op_desc *d, ck_err *err)
{
	if (d->attr.kh * (int64_t)d->attr.kw > 256)
		return ck_fail(err, CK_USAGE, "window %dx%d: has more than 256 places", d->attr.kh, d->attr.kw);
	if (window_out(d, ck_shape_last(d->in[0].shape), err) != CK_OK)
		return CK_USAGE;
	ck__add_stash(d, CK_U8, d->out[0].shape);
	return CK_OK;
}

static void maxpool_contract(const ck_op_desc *d, ck_contract *c)
{
	(void)d;
	c->reads_stash = 1;
}

static ck_status avgpool_infer(ck_op_desc *d, ck_err *err)
{
	return window_out(d, ck_shape_last(d->in[0].shape), err);
}

static void pool_flops(const ck_op_desc *d, double *forward, double *backward)
{
	*forward = ck__count(&d->out[0]) * d->attr.kh * d->attr.kw;
	*backward = d->kind == CK_AVGPOOL ? *forward : ck__count(&d->out[0]);
}

const ck_op_entry ck__op_conv2d = {
    .required = 2,
    .in = {"x", "w"},
    .bias = "b",
    .check = conv2d_check,
    .infer = conv2d_infer,
    .contract = conv2d_contract,
    .flops = conv2d_flops,
};

const ck_op_entry ck__op_maxpool = {
    .required = 1,
    .in = {"x"},
    .check = window_check,
    .infer = maxpool_infer,
    .contract = maxpool_contract,
    .flops = pool_flops,
};

const ck_op_entry ck__op_avgpool = {
    .required = 1,
    .in = {"x"},
    .check = window_check,
    .infer = avgpool_infer,
    .flops = pool_flops,
};
