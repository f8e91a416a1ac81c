/* EMBEDDING and XENT: from token ids, and to the loss over them. */
#include "kernels/contract/contract.h"

static ck_status embedding_infer(ck_op_desc *d, ck_err *err)
{
	ck_shape y = d->in[0].shape, wte = d->in[1].shape;
	if (y.nd >= CK_MAX_DIMS)
		return ck__bad_shape(d, 0, err, "has too many extents");
	if (wte.nd != 2)
		return ck__bad_shape(d, 1, err, "must have 2 extents, V x C");
	if (ck__has_bias(d)) {
		ck_shape wpe = d->in[2].shape;
		if (wpe.nd != 2 || wpe.d[1] != wte.d[1])
			return ck__bad_pair(d, 1, 2, err, "must be V x C and S x C");
		if (wpe.d[0] < ck_shape_last(y))
			return ck__bad_pair(d, 0, 2, err, "there are fewer positions than the sequence is long");
	}
	y.d[y.nd++] = wte.d[1];
	ck__set_out(d, y);
	d->out[0].dtype = d->in[1].dtype;
	return CK_OK;
}

static void embedding_contract(const ck_op_desc *d, ck_contract *c)
{
	c->reads_in = ck_op_wants(d, 1);
}

static void embedding_flops(const ck_op_desc *d, double *forward, double *backward)
{
	*forward = ck__has_bias(d) ? ck__count(&d->out[0]) : 0;
	*backward = ck__count(&d->out[0]) * (ck_op_wants(d, 1) + ck_op_wants(d, 2));
}

static ck_status xent_infer(ck_op_desc *d, ck_err *err)
{
	int64_t rows = ck_shape_rows(d->in[0].shape);
	if (ck_shape_count(d->in[1].shape) != rows)
		return ck__bad_pair(d, 0, 1, err, "there must be one target for each row of logits");
	ck__set_out(d, ck_dims(1, (int64_t)1));
	d->out[0].dtype = d->real;
	ck__add_stash(d, d->real, ck_dims(1, rows));
	return CK_OK;
}

static void xent_contract(const ck_op_desc *d, ck_contract *c)
{
	c->reads_in = ck_op_wants(d, 0) ? 3 : 0;
	c->reads_stash = ck_op_wants(d, 0);
	c->inplace_backward_own = ck_op_wants(d, 0) ? 0 : -1;
}

static void xent_flops(const ck_op_desc *d, double *forward, double *backward)
{
	*forward = *backward = 4 * ck__count(&d->in[0]);
}

const ck_op_entry ck__op_embedding = {
    .required = 2,
    .in = {"ids", "wte"},
    .real = 2,
    .bias = "wpe",
    .integer = 1,
    .fixed = 1,
    .infer = embedding_infer,
    .contract = embedding_contract,
    .flops = embedding_flops,
};

const ck_op_entry ck__op_xent = {
    .required = 2,
    .in = {"logits", "target"},
    .integer = 2,
    .fixed = 2,
    .infer = xent_infer,
    .contract = xent_contract,
    .flops = xent_flops,
};
