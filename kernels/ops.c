/* What is known of each kind of op without computing it: how its shapes fit together, what its backward reads, what it costs.
 * One entry per kind in the table at the end; adding an op is a line in CK_OP_KINDS, three functions here, and its entry.
 *
 * Where an in-place choice was to be made (backward: which gradient may lie over the output's gradient):
 *   - with a residual, its gradient: it is the output's gradient itself (masked, for BatchNorm with ReLU), so that nothing is
 *     copied. A kernel then forms the other gradients first, or from what it writes there (a mask applied twice changes
 *     nothing).
 *   - else the gradient of the elementwise (ADD: a, or b alone) or row-wise (SOFTMAX, BATCHNORM) input. */
#include "kernels/ops.h"

typedef struct op_entry {
	int required;                             /* inputs that are always there */
	const char *in[6];                        /* their names */
	const char *bias;                         /* then comes this one, if attr.bias says so; NULL: there is none */
	bool residual;                            /* and, if attr.residual says so, "r" */
	unsigned integer;                         /* inputs that are i32; all others are real */
	unsigned fixed;                           /* inputs that have no gradient */
	bool (*check)(const ck_attr *, ck_err *); /* attributes; NULL: none to check */
	ck_status (*infer)(ck_op_desc *, ck_err *);
	void (*contract)(const ck_op_desc *, ck_contract *);
	void (*flops)(const ck_op_desc *, double *forward, double *backward);
} op_entry;

static const op_entry *entry_of(ck_op_kind kind);

/* ---- what the functions of the ops share ------------------------------------------------------------------------------- */

static bool has_bias(const ck_op_desc *d)
{
	return entry_of(d->kind)->bias && d->attr.bias;
}

static bool has_residual(const ck_op_desc *d)
{
	return entry_of(d->kind)->residual && d->attr.residual;
}

int ck_op_residual(const ck_op_desc *d)
{
	return has_residual(d) ? entry_of(d->kind)->required + has_bias(d) : -1;
}

static const char *input_name(const ck_op_desc *d, int i)
{
	const op_entry *e = entry_of(d->kind);
	return i < e->required ? e->in[i] : i == ck_op_residual(d) ? "r" : e->bias;
}

static bool needs(const ck_op_desc *d, int i)
{
	return i >= 0 && (d->needs >> i & 1);
}

static double count(const ck_tensor_desc *t)
{
	return (double)ck_shape_count(t->shape);
}

/* "x 4x30: <why>" */
static ck_status bad_shape(const ck_op_desc *d, int i, ck_err *err, const char *why)
{
	char text[CK_SHAPE_TEXT];
	return ck_fail(err, CK_USAGE, "%s %s: %s", input_name(d, i), ck_shape_text(d->in[i].shape, text), why);
}

/* "x 4x30 and w 10x20: <why>" */
static ck_status bad_pair(const ck_op_desc *d, int i, int j, ck_err *err, const char *why)
{
	char a[CK_SHAPE_TEXT], b[CK_SHAPE_TEXT];
	return ck_fail(err, CK_USAGE, "%s %s and %s %s: %s", input_name(d, i), ck_shape_text(d->in[i].shape, a),
		       input_name(d, j), ck_shape_text(d->in[j].shape, b), why);
}

/* Input i must be a vector of n elements, where n comes from input `from`. */
static ck_status want_vector(const ck_op_desc *d, int i, int64_t n, int from, ck_err *err)
{
	if (ck_shape_equal(d->in[i].shape, ck_dims(1, n)))
		return CK_OK;
	char a[CK_SHAPE_TEXT], b[CK_SHAPE_TEXT];
	return ck_fail(err, CK_USAGE, "%s %s: must have the one extent %lld, to fit %s %s", input_name(d, i),
		       ck_shape_text(d->in[i].shape, a), (long long)n, input_name(d, from),
		       ck_shape_text(d->in[from].shape, b));
}

static void set_out(ck_op_desc *d, ck_shape shape)
{
	d->nout = 1;
	d->out[0] = (ck_tensor_desc){d->in[0].dtype, shape};
}

static void add_stash(ck_op_desc *d, ck_dtype dtype, ck_shape shape)
{
	d->stash[d->nstash++] = (ck_tensor_desc){dtype, shape};
}

/* r, where it is there, must be as the output. */
static ck_status want_residual(const ck_op_desc *d, ck_err *err)
{
	int r = ck_op_residual(d);
	char a[CK_SHAPE_TEXT], b[CK_SHAPE_TEXT];
	if (r < 0 || ck_shape_equal(d->in[r].shape, d->out[0].shape))
		return CK_OK;
	return ck_fail(err, CK_USAGE, "r %s: must be as the output, %s", ck_shape_text(d->in[r].shape, a),
		       ck_shape_text(d->out[0].shape, b));
}

static bool valid_p(const ck_attr *a, ck_err *err)
{
	return (a->p >= 0 && a->p < 1) ||
	       ck_fail(err, CK_USAGE, "dropout probability %g: must be at least 0 and below 1", a->p) == CK_OK;
}

static bool valid_eps(const ck_attr *a, ck_err *err)
{
	return a->eps > 0 || ck_fail(err, CK_USAGE, "eps %g: must be above 0", a->eps) == CK_OK;
}

static bool is_gelu(ck_act act)
{
	return act == CK_ACT_GELU_TANH || act == CK_ACT_GELU_ERF;
}

/* FLOPs an element, forward and backward alike. */
static double act_flops(ck_act act)
{
	return act == CK_ACT_NONE ? 0 : act == CK_ACT_RELU ? 1 : 8;
}

/* ---- LINEAR -------------------------------------------------------------------------------------------------------------- */

static bool linear_check(const ck_attr *a, ck_err *err)
{
	if (a->residual && a->act != CK_ACT_NONE)
		return ck_fail(err, CK_USAGE, "a residual and an activation do not come together") == CK_OK;
	return valid_p(a, err);
}

static ck_status linear_infer(ck_op_desc *d, ck_err *err)
{
	ck_shape x = d->in[0].shape, w = d->in[1].shape, y = x;
	if (w.nd != 2)
		return bad_shape(d, 1, err, "must have 2 extents, out x in");
	if (ck_shape_last(x) != w.d[1])
		return bad_pair(d, 0, 1, err, "their last extents must be equal");
	if (has_bias(d) && want_vector(d, 2, w.d[0], 1, err) != CK_OK)
		return CK_USAGE;
	y.d[y.nd - 1] = w.d[0];
	set_out(d, y);
	if (is_gelu(d->attr.act))
		add_stash(d, d->in[0].dtype, y);
	return want_residual(d, err);
}

static void linear_contract(const ck_op_desc *d, ck_contract *c)
{
	int r = ck_op_residual(d);
	bool inner = d->needs & ~(r < 0 ? 0u : 1u << r); /* a gradient other than the residual's, which is dout */
	c->reads_in = (needs(d, 1) ? 1u : 0) | (needs(d, 0) ? 2u : 0);
	c->reads_out = inner && d->attr.act == CK_ACT_RELU; /* y > 0 is the mask of ReLU and of dropout, too */
	c->reads_stash = inner && is_gelu(d->attr.act);
	c->random = d->attr.p > 0;
	c->inplace_backward = needs(d, r) ? r : -1;
}

static void linear_flops(const ck_op_desc *d, double *forward, double *backward)
{
	double product = 2 * count(&d->out[0]) * (double)ck_shape_last(d->in[0].shape);
	double each = count(&d->out[0]) * (act_flops(d->attr.act) + (d->attr.p > 0 ? 2 : 0));
	double bias = has_bias(d) ? count(&d->out[0]) : 0;
	*forward = product + bias + each + (has_residual(d) ? count(&d->out[0]) : 0);
	*backward = product * (needs(d, 0) + needs(d, 1)) + (has_bias(d) && needs(d, 2) ? bias : 0) + each;
}

/* ---- CONV2D and the pools ------------------------------------------------------------------------------------------------ */

static bool window_check(const ck_attr *a, ck_err *err)
{
	return (a->kh > 0 && a->kw > 0 && a->stride > 0 && a->pad >= 0 && a->pad < a->kh && a->pad < a->kw) ||
	       ck_fail(err, CK_USAGE, "window %dx%d, stride %d, pad %d: all must be positive, and pad smaller than the window",
		       a->kh, a->kw, a->stride, a->pad) == CK_OK;
}

/* Extents of the output over x (N,H,W,C), with `channels` of them. */
static ck_status window_out(ck_op_desc *d, int64_t channels, ck_err *err)
{
	const ck_attr *a = &d->attr;
	ck_shape x = d->in[0].shape;
	if (x.nd != 4)
		return bad_shape(d, 0, err, "must have 4 extents, N x H x W x C");
	int64_t h = x.d[1] + 2 * (int64_t)a->pad - a->kh, w = x.d[2] + 2 * (int64_t)a->pad - a->kw;
	if (h < 0 || w < 0) {
		char text[CK_SHAPE_TEXT];
		return ck_fail(err, CK_USAGE, "x %s: smaller than the window %dx%d with pad %d", ck_shape_text(x, text), a->kh,
			       a->kw, a->pad);
	}
	set_out(d, ck_dims(4, x.d[0], h / a->stride + 1, w / a->stride + 1, channels));
	return CK_OK;
}

static bool conv2d_check(const ck_attr *a, ck_err *err)
{
	return (a->stride > 0 && a->pad >= 0 && a->groups > 0) ||
	       ck_fail(err, CK_USAGE, "stride %d, pad %d, groups %d: stride and groups must be positive, pad not negative",
		       a->stride, a->pad, a->groups) == CK_OK;
}

static ck_status conv2d_infer(ck_op_desc *d, ck_err *err)
{
	ck_shape x = d->in[0].shape, w = d->in[1].shape;
	if (x.nd != 4 || w.nd != 4)
		return bad_pair(d, 0, 1, err, "both must have 4 extents, N x H x W x C and O x KH x KW x C/groups");
	if (x.d[3] % d->attr.groups || w.d[0] % d->attr.groups || w.d[3] != x.d[3] / d->attr.groups)
		return bad_pair(d, 0, 1, err, "channels do not fit with these groups");
	if (w.d[1] > 1 << 15 || w.d[2] > 1 << 15)
		return bad_shape(d, 1, err, "the window is too large");
	d->attr.kh = (int)w.d[1];
	d->attr.kw = (int)w.d[2];
	if (has_bias(d) && want_vector(d, 2, w.d[0], 1, err) != CK_OK)
		return CK_USAGE;
	return window_out(d, w.d[0], err);
}

static void conv2d_contract(const ck_op_desc *d, ck_contract *c)
{
	c->reads_in = (needs(d, 1) ? 1u : 0) | (needs(d, 0) ? 2u : 0);
}

static void conv2d_flops(const ck_op_desc *d, double *forward, double *backward)
{
	ck_shape w = d->in[1].shape;
	double product = 2 * count(&d->out[0]) * (double)(w.d[1] * w.d[2] * w.d[3]);
	double bias = has_bias(d) ? count(&d->out[0]) : 0;
	*forward = product + bias;
	*backward = product * (needs(d, 0) + needs(d, 1)) + (has_bias(d) && needs(d, 2) ? bias : 0);
}

static ck_status maxpool_infer(ck_op_desc *d, ck_err *err)
{
	if (d->attr.kh * (int64_t)d->attr.kw > 256)
		return ck_fail(err, CK_USAGE, "window %dx%d: has more than 256 places", d->attr.kh, d->attr.kw);
	if (window_out(d, ck_shape_last(d->in[0].shape), err) != CK_OK)
		return CK_USAGE;
	add_stash(d, CK_U8, d->out[0].shape);
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
	*forward = count(&d->out[0]) * d->attr.kh * d->attr.kw;
	*backward = d->kind == CK_AVGPOOL ? *forward : count(&d->out[0]);
}

/* ---- BATCHNORM, LAYERNORM ------------------------------------------------------------------------------------------------ */

enum { BN_X, BN_GAMMA, BN_BETA, BN_RMEAN, BN_RVAR, BN_COUNT };

static bool batchnorm_check(const ck_attr *a, ck_err *err)
{
	if (is_gelu(a->act))
		return ck_fail(err, CK_USAGE, "batchnorm is followed by ReLU or by nothing") == CK_OK;
	return valid_eps(a, err);
}

static ck_status batchnorm_infer(ck_op_desc *d, ck_err *err)
{
	ck_shape x = d->in[BN_X].shape;
	int64_t channels = ck_shape_last(x);
	for (int i = BN_GAMMA; i <= BN_COUNT; i++)
		if (want_vector(d, i, i == BN_COUNT ? 1 : channels, BN_X, err) != CK_OK)
			return CK_USAGE;
	if (d->attr.training && ck_shape_rows(x) < 2)
		return bad_shape(d, BN_X, err, "training needs more than one row per channel: use a larger batch");
	set_out(d, x);
	if (d->attr.training) {
		add_stash(d, d->in[BN_X].dtype, ck_dims(1, channels));
		add_stash(d, d->in[BN_X].dtype, ck_dims(1, channels));
	}
	return want_residual(d, err);
}

static void batchnorm_contract(const ck_op_desc *d, ck_contract *c)
{
	bool training = d->attr.training, x = needs(d, BN_X), gamma = needs(d, BN_GAMMA);
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
	c->inplace_backward = needs(d, r) ? r : x ? BN_X : -1;
}

static bool layernorm_check(const ck_attr *a, ck_err *err)
{
	return valid_eps(a, err);
}

static ck_status layernorm_infer(ck_op_desc *d, ck_err *err)
{
	ck_shape x = d->in[0].shape;
	for (int i = 1; i <= 2; i++)
		if (want_vector(d, i, ck_shape_last(x), 0, err) != CK_OK)
			return CK_USAGE;
	set_out(d, x);
	add_stash(d, d->in[0].dtype, ck_dims(1, ck_shape_rows(x)));
	add_stash(d, d->in[0].dtype, ck_dims(1, ck_shape_rows(x)));
	return CK_OK;
}

static void layernorm_contract(const ck_op_desc *d, ck_contract *c)
{
	bool x = needs(d, 0), gamma = needs(d, 1);
	c->reads_in = (x || gamma ? 1u : 0) | (x ? 2u : 0);
	c->reads_stash = x || gamma ? 3 : 0;
}

static void norm_flops(const ck_op_desc *d, double *forward, double *backward)
{
	double n = count(&d->in[0]);
	double after = n * ((d->kind == CK_BATCHNORM) * act_flops(d->attr.act) + has_residual(d));
	*forward = 8 * n + after; /* mean 1, variance 3, normalise 2, scale and shift 2 */
	*backward = n * (8 * needs(d, 0) + 4 * needs(d, 1) + needs(d, 2)) + after;
}

/* ---- attention: SCORES, SOFTMAX, WSUM ------------------------------------------------------------------------------------ */

/* qkv (B,T,3C) with C a multiple of heads, as input i. */
static ck_status check_qkv(const ck_op_desc *d, int i, ck_err *err)
{
	ck_shape qkv = d->in[i].shape;
	if (qkv.nd != 3 || qkv.d[2] % 3)
		return bad_shape(d, i, err, "must have 3 extents, B x T x 3C");
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
	set_out(d, scores_shape(d, 0));
	return CK_OK;
}

static void scores_contract(const ck_op_desc *d, ck_contract *c)
{
	c->reads_in = needs(d, 0);
	c->grad_parts[0] = 1 | 2; /* q, k */
}

static void scores_flops(const ck_op_desc *d, double *forward, double *backward)
{
	double head = (double)(ck_shape_last(d->in[0].shape) / 3 / d->attr.heads);
	*forward = count(&d->out[0]) * (2 * head + 1);
	*backward = count(&d->out[0]) * (4 * head + 1);
}

static ck_status softmax_infer(ck_op_desc *d, ck_err *err)
{
	ck_shape s = d->in[0].shape;
	if (d->attr.causal && (s.nd < 2 || s.d[s.nd - 1] != s.d[s.nd - 2]))
		return bad_shape(d, 0, err, "a causal softmax is over square matrices: the last two extents must be equal");
	set_out(d, s);
	return CK_OK;
}

static void softmax_contract(const ck_op_desc *d, ck_contract *c)
{
	c->reads_out = needs(d, 0);
	c->inplace_forward = 0;
	c->inplace_backward = needs(d, 0) ? 0 : -1;
}

static void softmax_flops(const ck_op_desc *d, double *forward, double *backward)
{
	double used = count(&d->in[0]) * (d->attr.causal ? 0.5 : 1);
	*forward = 5 * used;
	*backward = 4 * used;
}

static ck_status wsum_infer(ck_op_desc *d, ck_err *err)
{
	ck_shape qkv = d->in[1].shape;
	if (check_qkv(d, 1, err) != CK_OK)
		return CK_USAGE;
	if (!ck_shape_equal(d->in[0].shape, scores_shape(d, 1)))
		return bad_pair(d, 0, 1, err, "p must be B x heads x T x T");
	set_out(d, ck_dims(3, qkv.d[0], qkv.d[1], qkv.d[2] / 3));
	return CK_OK;
}

static void wsum_contract(const ck_op_desc *d, ck_contract *c)
{
	c->reads_in = (needs(d, 1) ? 1u : 0) | (needs(d, 0) ? 2u : 0);
	c->grad_parts[1] = 4; /* v */
}

static void wsum_flops(const ck_op_desc *d, double *forward, double *backward)
{
	double product = 2 * count(&d->out[0]) * (double)ck_shape_last(d->in[0].shape);
	*forward = product;
	*backward = product * (needs(d, 0) + needs(d, 1));
}

/* ---- elementwise: ACT, DROPOUT, ADD, FLATTEN ----------------------------------------------------------------------------- */

static bool act_check(const ck_attr *a, ck_err *err)
{
	return a->act != CK_ACT_NONE || ck_fail(err, CK_USAGE, "no activation given") == CK_OK;
}

static ck_status same_infer(ck_op_desc *d, ck_err *err)
{
	set_out(d, d->in[0].shape);
	return want_residual(d, err);
}

static void act_contract(const ck_op_desc *d, ck_contract *c)
{
	bool relu = d->attr.act == CK_ACT_RELU;
	c->reads_out = needs(d, 0) && relu;
	c->reads_in = needs(d, 0) && !relu;
	c->inplace_forward = relu ? 0 : -1;
	c->inplace_backward = needs(d, 0) ? 0 : -1;
}

static void act_op_flops(const ck_op_desc *d, double *forward, double *backward)
{
	*forward = *backward = count(&d->in[0]) * act_flops(d->attr.act);
}

static void dropout_contract(const ck_op_desc *d, ck_contract *c)
{
	int r = ck_op_residual(d);
	c->random = d->attr.p > 0;
	c->inplace_forward = 0;
	c->inplace_backward = needs(d, r) ? r : needs(d, 0) ? 0 : -1;
}

static void dropout_flops(const ck_op_desc *d, double *forward, double *backward)
{
	*forward = count(&d->in[0]) * (2 + has_residual(d));
	*backward = count(&d->in[0]) * 2 * needs(d, 0);
}

static ck_status add_infer(ck_op_desc *d, ck_err *err)
{
	if (!ck_shape_equal(d->in[0].shape, d->in[1].shape))
		return bad_pair(d, 0, 1, err, "both must have the same shape");
	set_out(d, d->in[0].shape);
	return CK_OK;
}

static void add_contract(const ck_op_desc *d, ck_contract *c)
{
	c->inplace_forward = 0;
	c->inplace_backward = needs(d, 0) ? 0 : needs(d, 1) ? 1 : -1;
}

static void add_flops(const ck_op_desc *d, double *forward, double *backward)
{
	*forward = count(&d->in[0]);
	*backward = 0;
}

static ck_status flatten_infer(ck_op_desc *d, ck_err *err)
{
	ck_shape x = d->in[0].shape;
	if (x.nd < 2)
		return bad_shape(d, 0, err, "must have 2 extents or more");
	set_out(d, ck_dims(2, x.d[0], ck_shape_count(x) / x.d[0]));
	return CK_OK;
}

static void flatten_contract(const ck_op_desc *d, ck_contract *c)
{
	c->inplace_forward = 0;
	c->inplace_backward = needs(d, 0) ? 0 : -1;
}

static void no_flops(const ck_op_desc *d, double *forward, double *backward)
{
	(void)d;
	*forward = *backward = 0;
}

/* ---- EMBEDDING, XENT ----------------------------------------------------------------------------------------------------- */

static ck_status embedding_infer(ck_op_desc *d, ck_err *err)
{
	ck_shape y = d->in[0].shape, wte = d->in[1].shape;
	if (y.nd >= CK_MAX_DIMS)
		return bad_shape(d, 0, err, "has too many extents");
	if (wte.nd != 2)
		return bad_shape(d, 1, err, "must have 2 extents, V x C");
	if (has_bias(d)) {
		ck_shape wpe = d->in[2].shape;
		if (wpe.nd != 2 || wpe.d[1] != wte.d[1])
			return bad_pair(d, 1, 2, err, "must be V x C and S x C");
		if (wpe.d[0] < ck_shape_last(y))
			return bad_pair(d, 0, 2, err, "there are fewer positions than the sequence is long");
	}
	y.d[y.nd++] = wte.d[1];
	set_out(d, y);
	d->out[0].dtype = d->in[1].dtype;
	return CK_OK;
}

static void embedding_contract(const ck_op_desc *d, ck_contract *c)
{
	c->reads_in = needs(d, 1);
}

static void embedding_flops(const ck_op_desc *d, double *forward, double *backward)
{
	*forward = has_bias(d) ? count(&d->out[0]) : 0;
	*backward = count(&d->out[0]) * (needs(d, 1) + needs(d, 2));
}

static ck_status xent_infer(ck_op_desc *d, ck_err *err)
{
	int64_t rows = ck_shape_rows(d->in[0].shape);
	if (ck_shape_count(d->in[1].shape) != rows)
		return bad_pair(d, 0, 1, err, "there must be one target for each row of logits");
	set_out(d, ck_dims(1, (int64_t)1));
	add_stash(d, d->in[0].dtype, ck_dims(1, rows));
	return CK_OK;
}

static void xent_contract(const ck_op_desc *d, ck_contract *c)
{
	c->reads_in = needs(d, 0) ? 3 : 0;
	c->reads_stash = needs(d, 0);
	c->inplace_backward_own = needs(d, 0) ? 0 : -1;
}

static void xent_flops(const ck_op_desc *d, double *forward, double *backward)
{
	*forward = *backward = 4 * count(&d->in[0]);
}

/* ---- the table ----------------------------------------------------------------------------------------------------------- */

static const op_entry entries[CK_OP_KIND_COUNT] = {
    [CK_LINEAR] = {2, {"x", "w"}, "b", true, 0, 0, linear_check, linear_infer, linear_contract, linear_flops},
    [CK_CONV2D] = {2, {"x", "w"}, "b", false, 0, 0, conv2d_check, conv2d_infer, conv2d_contract, conv2d_flops},
    [CK_BATCHNORM] = {6,
		      {"x", "gamma", "beta", "rmean", "rvar", "count"},
		      NULL,
		      true,
		      1u << BN_COUNT,
		      1u << BN_RMEAN | 1u << BN_RVAR | 1u << BN_COUNT,
		      batchnorm_check,
		      batchnorm_infer,
		      batchnorm_contract,
		      norm_flops},
    [CK_LAYERNORM] =
	{3, {"x", "gamma", "beta"}, NULL, false, 0, 0, layernorm_check, layernorm_infer, layernorm_contract, norm_flops},
    [CK_ACT] = {1, {"x"}, NULL, false, 0, 0, act_check, same_infer, act_contract, act_op_flops},
    [CK_SCORES] = {1, {"qkv"}, NULL, false, 0, 0, NULL, scores_infer, scores_contract, scores_flops},
    [CK_SOFTMAX] = {1, {"s"}, NULL, false, 0, 0, NULL, softmax_infer, softmax_contract, softmax_flops},
    [CK_WSUM] = {2, {"p", "qkv"}, NULL, false, 0, 0, NULL, wsum_infer, wsum_contract, wsum_flops},
    [CK_DROPOUT] = {1, {"x"}, NULL, true, 0, 0, valid_p, same_infer, dropout_contract, dropout_flops},
    [CK_ADD] = {2, {"a", "b"}, NULL, false, 0, 0, NULL, add_infer, add_contract, add_flops},
    [CK_EMBEDDING] = {2, {"ids", "wte"}, "wpe", false, 1, 1, NULL, embedding_infer, embedding_contract, embedding_flops},
    [CK_MAXPOOL] = {1, {"x"}, NULL, false, 0, 0, window_check, maxpool_infer, maxpool_contract, pool_flops},
    [CK_AVGPOOL] = {1, {"x"}, NULL, false, 0, 0, window_check, avgpool_infer, NULL, pool_flops},
    [CK_FLATTEN] = {1, {"x"}, NULL, false, 0, 0, NULL, flatten_infer, flatten_contract, no_flops},
    [CK_XENT] = {2, {"logits", "target"}, NULL, false, 2, 2, NULL, xent_infer, xent_contract, xent_flops},
};

static const op_entry *entry_of(ck_op_kind kind)
{
	return &entries[kind];
}

/* ---- what callers see ---------------------------------------------------------------------------------------------------- */

const char *ck_op_kind_name(ck_op_kind kind)
{
	static const char *const names[] = {
#define X(name, text) [CK_##name] = text,
	    CK_OP_KINDS(X)
#undef X
	};
	return names[kind];
}

/* Every input is there, of the right dtype, and not empty. */
static ck_status check_inputs(const ck_op_desc *d, ck_dtype real, ck_err *err)
{
	const op_entry *e = entry_of(d->kind);
	int n = e->required + has_bias(d) + has_residual(d);
	if (d->nin != n)
		return ck_fail(err, CK_USAGE, "%s takes %d inputs here, not %d", ck_op_kind_name(d->kind), n, d->nin);
	for (int i = 0; i < n; i++) {
		ck_dtype want = e->integer >> i & 1 ? CK_I32 : real;
		if (d->in[i].dtype != want)
			return ck_fail(err, CK_USAGE, "%s is %s: must be %s", input_name(d, i), ck_dtype_name(d->in[i].dtype),
				       ck_dtype_name(want));
		if (ck_shape_count(d->in[i].shape) < 0)
			return bad_shape(d, i, err, "every extent must be positive, with fewer than 2^48 elements in all");
	}
	return CK_OK;
}

ck_status ck_op_infer(ck_op_desc *d, ck_dtype real, ck_err *err)
{
	const op_entry *e = entry_of(d->kind);
	d->nout = d->nstash = 0;
	if (check_inputs(d, real, err) != CK_OK || (e->check && !e->check(&d->attr, err)) || e->infer(d, err) != CK_OK)
		return CK_USAGE;
	if (ck_shape_count(d->out[0].shape) >= 0)
		return CK_OK;
	char text[CK_SHAPE_TEXT];
	return ck_fail(err, CK_USAGE, "the output %s would have 2^48 elements or more", ck_shape_text(d->out[0].shape, text));
}

ck_contract ck_op_contract(const ck_op_desc *d)
{
	const op_entry *e = entry_of(d->kind);
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

double ck_op_flops_forward(const ck_op_desc *d)
{
	double forward, backward;
	entry_of(d->kind)->flops(d, &forward, &backward);
	return forward;
}

double ck_op_flops_backward(const ck_op_desc *d)
{
	double forward, backward;
	entry_of(d->kind)->flops(d, &forward, &backward);
	return d->needs ? backward : 0;
}
