#include "kernels/contract/contract.h"

bool ck__has_bias(const ck_op_desc *d)
{
	return ck__op_entry(d->kind)->bias && d->attr.bias;
}

bool ck__has_residual(const ck_op_desc *d)
{
	return ck__op_entry(d->kind)->residual && d->attr.residual;
}

const char *ck__input_name(const ck_op_desc *d, int i)
{
	const ck_op_entry *e = ck__op_entry(d->kind);
	return i < e->required ? e->in[i] : i == ck_op_residual(d) ? "r" : e->bias;
}

double ck__count(const ck_tensor_desc *t)
{
	return (double)ck_shape_count(t->shape);
}

ck_status ck__bad_shape(const ck_op_desc *d, int i, ck_err *err, const char *why)
{
	char text[CK_SHAPE_TEXT];
	return ck_fail(err, CK_USAGE, "%s %s: %s", ck__input_name(d, i), ck_shape_text(d->in[i].shape, text), why);
}

ck_status ck__bad_pair(const ck_op_desc *d, int i, int j, ck_err *err, const char *why)
{
	char a[CK_SHAPE_TEXT], b[CK_SHAPE_TEXT];
	return ck_fail(err, CK_USAGE, "%s %s and %s %s: %s", ck__input_name(d, i), ck_shape_text(d->in[i].shape, a),
		       ck__input_name(d, j), ck_shape_text(d->in[j].shape, b), why);
}

ck_status ck__want_vector(const ck_op_desc *d, int i, int64_t n, int from, ck_err *err)
{
	if (ck_shape_equal(d->in[i].shape, ck_dims(1, n)))
		return CK_OK;
	char a[CK_SHAPE_TEXT], b[CK_SHAPE_TEXT];
	return ck_fail(err, CK_USAGE, "%s %s: must have the one extent %lld, to fit %s %s", ck__input_name(d, i),
		       ck_shape_text(d->in[i].shape, a), (long long)n, ck__input_name(d, from),
		       ck_shape_text(d->in[from].shape, b));
}

void ck__set_out(ck_op_desc *d, ck_shape shape)
{
	int r = ck_op_residual(d);
	d->nout = 1;
	d->out[0] = (ck_tensor_desc){r >= 0 ? d->in[r].dtype : d->in[0].dtype, shape};
}

void ck__add_stash(ck_op_desc *d, ck_dtype dtype, ck_shape shape)
{
	d->stash[d->nstash++] = (ck_tensor_desc){dtype, shape};
}

ck_status ck__want_residual(const ck_op_desc *d, ck_err *err)
{
	int r = ck_op_residual(d);
	char a[CK_SHAPE_TEXT], b[CK_SHAPE_TEXT];
	if (r < 0 || ck_shape_equal(d->in[r].shape, d->out[0].shape))
		return CK_OK;
	return ck_fail(err, CK_USAGE, "r %s: must be as the output, %s", ck_shape_text(d->in[r].shape, a),
		       ck_shape_text(d->out[0].shape, b));
}

ck_status ck__check_p(const ck_attr *a, ck_err *err)
{
	if (a->p >= 0 && a->p < 1)
		return CK_OK;
	return ck_fail(err, CK_USAGE, "dropout probability %g: must be at least 0 and below 1", a->p);
}

double ck__act_flops(ck_act act)
{
	return act == CK_ACT_NONE ? 0 : act == CK_ACT_RELU ? 1 : 8;
}
