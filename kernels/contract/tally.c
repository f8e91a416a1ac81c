/* TALLY. */
#include "kernels/contract/contract.h"

enum { X, LOAD, CALLS };

static ck_status tally_infer(ck_op_desc *d, ck_err *err)
{
	ck_shape x = d->in[X].shape;
	if (ck__want_vector(d, LOAD, ck_shape_last(x), X, err) != CK_OK || ck__want_vector(d, CALLS, 1, X, err) != CK_OK)
		return CK_USAGE;
	ck__set_out(d, x);
	return CK_OK;
}

static void tally_contract(const ck_op_desc *d, ck_contract *c)
{
	c->state = 1u << LOAD | 1u << CALLS;
	c->inplace_forward = X;
	c->inplace_backward = ck_op_wants(d, X) ? X : -1;
}

/* A comparison an element. */
static void tally_flops(const ck_op_desc *d, double *forward, double *backward)
{
	*forward = ck__count(&d->in[X]);
	*backward = 0;
}

const ck_op_entry ck__op_tally = {
    .required = 3,
    .in = {"x", "load", "calls"},
    .integer = 1u << LOAD | 1u << CALLS,
    .fixed = 1u << LOAD | 1u << CALLS,
    .infer = tally_infer,
    .contract = tally_contract,
    .flops = tally_flops,
};
