#include "suite/inputs/ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "suite/device.h"

static const char *const lines[] = {
    "linear 1x1 1x1",
    "linear 4x5 3x5",
    "linear 4x5 3x5 3 bias",
    "linear 2x3x5 4x5 4 bias act=relu",
    "linear 6x5 4x5 4 bias act=gelu-tanh",
    "linear 6x5 8x5 8 bias act=gelu-tanh", /* rows of 8 are what cuBLASLt's GELU needs */
    "linear 6x5 8x5 8 bias act=gelu-tanh p=0.4",
    "linear 6x5 16x5 act=gelu-tanh",
    "linear 6x5 4x5 act=gelu-erf",
    "linear 6x5 4x5 4 bias p=0.25",
    "linear 6x5 4x5 4 bias act=relu p=0.25",
    "linear 6x5 4x5 4 bias act=gelu-tanh p=0.4",
    "linear 6x5 4x5 4 6x4 bias residual",
    "linear 6x5 4x5 6x4 residual",
    "linear 6x5 4x5 4 6x4 bias residual p=0.25",
    "linear 6x4 4x4 4 6x4 bias residual p=0.5 twice",
    "linear 37x129 65x129 65 bias act=relu p=0.1",
    "linear 37x129 65x129 65 bias act=gelu-tanh",
    "linear 19x40 24x40 24 bias act=gelu-tanh",
    "linear 19x40 24x40 act=gelu-tanh p=0.1",
    "linear 300x70 67x70 67 bias",
    "linear 300x70 67x70 67 bias act=relu p=0.1",
    "linear 3x67x33 130x33 130 3x67x130 bias residual p=0.1",
    "linear 256x96 192x96 192 bias act=gelu-erf p=0.1",
    "conv2d 1x1x1x1 1x1x1x1 stride=1",
    "conv2d 2x5x6x3 4x3x3x3 stride=1 pad=1",
    "conv2d 2x5x6x3 4x3x3x3 4 bias stride=1",
    "conv2d 2x7x6x4 6x3x3x2 6 bias stride=2 pad=1 groups=2",
    "conv2d 1x5x5x3 3x3x3x1 stride=1 pad=1 groups=3",
    "conv2d 2x7x6x4 8x3x2x1 8 bias stride=2 pad=1 groups=4",
    "conv2d 2x4x4x5 3x1x1x5 stride=1",
    "conv2d 2x5x4x5 3x1x1x5 stride=2",
    "conv2d 1x6x5x2 3x1x3x2 3 bias stride=1 pad=0",
    "conv2d 1x9x9x3 4x7x7x3 stride=2 pad=3",
    "conv2d 2x14x14x32 48x3x3x32 48 bias stride=1 pad=1",
    "conv2d 2x15x15x64 64x3x3x64 stride=2 pad=1",
    "batchnorm 5x3 3 3 3 3 1 training",
    "batchnorm 2x3x4x5 5 5 5 5 1 training momentum=0.3",
    "batchnorm 2x3x4x5 5 5 5 5 1 training act=relu",
    "batchnorm 2x3x4x5 5 5 5 5 1 2x3x4x5 training residual",
    "batchnorm 2x3x4x5 5 5 5 5 1 2x3x4x5 training residual act=relu",
    "batchnorm 2x3x4x5 5 5 5 5 1 2x3x4x5 training residual act=relu twice",
    "batchnorm 2x3x4x5 5 5 5 5 1 training shift=30",
    "batchnorm 2x3x4x5 5 5 5 5 1",
    "batchnorm 2x3x4x5 5 5 5 5 1 act=relu",
    "batchnorm 2x3x4x5 5 5 5 5 1 2x3x4x5 residual act=relu",
    "batchnorm 4x9x9x67 67 67 67 67 1 4x9x9x67 training residual act=relu",
    "batchnorm 4x16x16x64 64 64 64 64 1 training act=relu",
    "batchnorm 4x9x9x67 67 67 67 67 1 act=relu",
    "batchnorm 4x9x9x67 67 67 67 67 1 training shift=30",
    "batchnorm 3x6001 6001 6001 6001 6001 1 training",
    "layernorm 1x4 4 4",
    "layernorm 6x5 5 5",
    "layernorm 2x3x7 7 7",
    "layernorm 6x35 35 35 shift=30",
    "layernorm 4x33x193 193 193",
    "layernorm 3x6001 6001 6001",
    "layernorm 70x64 64 64 shift=30",
    "layernorm 3x4104 4104 4104",
    "act 7 act=relu",
    "act 5x7 act=relu",
    "act 5x7 act=gelu-tanh",
    "act 5x7 act=gelu-erf",
    "act 5x7 act=gelu-tanh spread=40",
    "act 5x7 act=gelu-erf spread=40",
    "act 61x547 act=relu",
    "act 5x7 act=relu inplace",
    "act 61x547 act=gelu-tanh",
    "act 61x547 act=gelu-erf spread=3",
    "scores 1x1x3 heads=1 scale=1",
    "scores 2x5x24 heads=2 scale=0.5",
    "scores 2x6x18 heads=3 scale=0.7",
    "scores 3x5x24 heads=2 scale=0.5",
    "scores 2x65x192 heads=4 scale=0.25",
    "softmax 5x6",
    "softmax 2x2x5x5",
    "softmax 2x2x5x5 causal",
    "softmax 2x2x5x5 causal shift=200",
    "softmax 5x6 spread=8",
    "softmax 61x547",
    "softmax 2x3x70x70 causal",
    "softmax 2x2x40x40 causal",
    "softmax 3x4104",
    "wsum 1x1x1x1 1x1x3 heads=1",
    "wsum 2x2x5x5 2x5x24 heads=2",
    "wsum 2x3x6x6 2x6x18 heads=3",
    "wsum 3x2x5x5 3x5x24 heads=2",
    "wsum 2x4x65x65 2x65x192 heads=4",
    "dropout 5x7 p=0",
    "dropout 5x7 p=0.3",
    "dropout 5x7 5x7 residual p=0.3",
    "dropout 5x7 5x7 residual p=0.3 twice",
    "dropout 61x547 61x547 residual p=0.1",
    "add 3x5 3x5",
    "add 3x5 3x5 twice",
    "add 61x547 61x547",
    "embedding 2x5 7x4",
    "embedding 2x5 7x4 9x4 bias",
    "embedding 8x40 50x67 43x67 bias",
    "embedding 3x20 9x136 43x136 bias",
    "maxpool 2x6x7x3 window=2 stride=2",
    "maxpool 2x6x7x3 window=3 stride=2 pad=1",
    "maxpool 2x6x7x3 window=3 stride=1 pad=1 ties",
    "maxpool 1x4x5x2 window=3 stride=3",
    "maxpool 2x17x17x67 window=3 stride=2 pad=1",
    "maxpool 2x9x10x24 window=3 stride=2 pad=1",
    "avgpool 2x4x5x3 kh=4 kw=5 stride=1",
    "avgpool 2x6x7x3 window=3 stride=2 pad=1",
    "avgpool 2x6x7x3 window=2 stride=2",
    "avgpool 4x7x7x130 window=7 stride=1",
    "avgpool 2x17x17x67 window=3 stride=2 pad=1",
    "flatten 2x3x4x5",
    "flatten 16x9x9x67",
    "tally 1x1 1 1",
    "tally 5x7 7 1",
    "tally 2x3x5 5 1 ties",
    "tally 61x547 547 1",
    "xent 1x2 1",
    "xent 6x11 6",
    "xent 2x5x11 2x5",
    "xent 6x11 6 shift=200",
    "xent 6x11 6 spread=40",
    "xent 61x547 61",
    "xent 3x4104 3",
};

/* These are for 16 bits only. */
static const char *const mixed[] = {
    "linear 6x5 4x5 4 6x4:real bias residual",
    "linear 6x5 4x5 6x4:real residual p=0.25",
    "linear 5x5 3x5 3 5x3:real bias residual p=0.25", /* rows that begin inside a block of the generator */
    "linear 3x67x33 130x33 130 3x67x130:real bias residual p=0.1",
    "linear 300x70 67x70 67 300x67:real bias residual",
    "dropout 5x7 5x7:real residual p=0.3",
    "dropout 61x547 61x547:real residual p=0.1",
    "add 3x5 3x5:real",
    "add 3x5:real 3x5",
    "add 61x547 61x547:real",
    "add 61x547:real 61x547",
    "cast 5x7",
    "cast 5x7:real",
    "cast 5x7:real weight",
    "cast 61x547",
    "cast 61x547:real",
    "cast 61x547:real weight",
};

static ck_status set_act(ck_op_case *c, const char *value, ck_err *err)
{
	static const char *const names[] = {"none", "relu", "gelu-tanh", "gelu-erf"}; /* in order of ck_act */
	for (int i = 0; i < 4; i++)
		if (!strcmp(value, names[i])) {
			c->desc.attr.act = (ck_act)i;
			return CK_OK;
		}
	return ck_fail(err, CK_USAGE, "no activation \"%s\"", value);
}

static ck_status set_dtype(ck_dtype *t, const char *name, ck_dtype real, ck_err *err)
{
	*t = real;
	if (!strcmp(name, "real"))
		return CK_OK;
	for (*t = CK_F64; *t <= CK_U8; (*t)++)
		if (!strcmp(name, ck_dtype_name(*t)))
			return CK_OK;
	return ck_fail(err, CK_USAGE, "no dtype \"%s\"", name);
}

static ck_status set_number(ck_op_case *c, const char *key, double v, ck_err *err)
{
	ck_attr *a = &c->desc.attr;
	const struct {
		const char *key;
		int *whole;
		double *real;
	} numbers[] = {
	    {"kh", &a->kh, NULL},         {"kw", &a->kw, NULL},
	    {"stride", &a->stride, NULL}, {"pad", &a->pad, NULL},
	    {"heads", &a->heads, NULL},   {"groups", &a->groups, NULL},
	    {"p", NULL, &a->p},           {"eps", NULL, &a->eps},
	    {"scale", NULL, &a->scale},   {"momentum", NULL, &a->momentum},
	    {"shift", NULL, &c->shift},   {"spread", NULL, &c->spread},
	};
	if (!strcmp(key, "window")) {
		a->kh = a->kw = (int)v;
		return CK_OK;
	}
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		if (!strcmp(key, numbers[i].key)) {
			if (numbers[i].whole)
				*numbers[i].whole = (int)v;
			else
				*numbers[i].real = v;
			return CK_OK;
		}
	return ck_fail(err, CK_USAGE, "no attribute \"%s\"", key);
}

static ck_status set_flag(ck_op_case *c, const char *word, ck_err *err)
{
	ck_attr *a = &c->desc.attr;
	const struct {
		const char *word;
		bool *flag;
	} flags[] = {{"inplace", &a->inplace},   {"bias", &a->bias},     {"residual", &a->residual},
		     {"training", &a->training}, {"causal", &a->causal}, {"weight", &a->weight},
		     {"twice", &c->twice},       {"ties", &c->ties},     {"zero", &c->zero}};
	for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
		if (!strcmp(word, flags[i].word)) {
			*flags[i].flag = true;
			return CK_OK;
		}
	return ck_fail(err, CK_USAGE, "no attribute \"%s\"", word);
}

static ck_status add_input(ck_op_case *c, char *text, ck_dtype real, ck_err *err)
{
	ck_op_desc *d = &c->desc;
	ck_shape s = {0};
	if (d->nin == CK_MAX_IN)
		return ck_fail(err, CK_USAGE, "too many inputs");
	char *end = text;
	for (; s.nd < CK_MAX_DIMS; text = end + 1) {
		s.d[s.nd++] = strtoll(text, &end, 10);
		if (*end != 'x')
			break;
	}
	d->in[d->nin] = (ck_tensor_desc){CK_DTYPE_NONE, s};
	ck_tensor_desc *added = &d->in[d->nin++];
	return *end == ':' ? set_dtype(&added->dtype, end + 1, real, err) : CK_OK;
}

/* What may be 16-bit, by place; r, which is last, is apart. */
static const unsigned marked[CK_OP_KIND_COUNT] = {
    [CK_LINEAR] = 3,  [CK_CONV2D] = 3,  [CK_BATCHNORM] = 1, [CK_ACT] = 1,  [CK_SCORES] = 1,
    [CK_SOFTMAX] = 1, [CK_WSUM] = 3,    [CK_DROPOUT] = 1,   [CK_ADD] = 3,  [CK_MAXPOOL] = 1,
    [CK_AVGPOOL] = 1, [CK_FLATTEN] = 1, [CK_CAST] = 1,      [CK_XENT] = 1, [CK_TALLY] = 1,
};

/* The dtypes that the line leaves open. */
static void fill_dtypes(ck_op_case *c, ck_dtype real)
{
	ck_op_desc *d = &c->desc;
	for (int i = 0; i < d->nin; i++) {
		bool integer = (d->kind == CK_EMBEDDING && i == 0) || (d->kind == CK_XENT && i == 1) ||
			       (d->kind == CK_BATCHNORM && i == 5) || (d->kind == CK_TALLY && i > 0);
		bool may = marked[d->kind] >> i & 1 || (d->attr.residual && i == d->nin - 1);
		if (d->in[i].dtype == CK_DTYPE_NONE)
			d->in[i].dtype = integer ? CK_I32 : may && c->low ? c->low : real;
	}
	if (d->attr.to == CK_DTYPE_NONE && d->kind == CK_LAYERNORM)
		d->attr.to = c->low;
	if (d->attr.to == CK_DTYPE_NONE && d->kind == CK_CAST)
		d->attr.to = d->in[0].dtype == real ? c->low : real;
}

static ck_status read_word(ck_op_case *c, char *word, ck_dtype real, ck_err *err)
{
	char *value = strchr(word, '=');
	if (*word >= '0' && *word <= '9')
		return add_input(c, word, real, err);
	if (!value)
		return set_flag(c, word, err);
	*value++ = 0;
	if (!strcmp(word, "stored") || !strcmp(word, "to"))
		return set_dtype(*word == 's' ? &c->low : &c->desc.attr.to, value, real, err);
	return strcmp(word, "act") ? set_number(c, word, atof(value), err) : set_act(c, value, err);
}

static ck_status read_kind(ck_op_case *c, const char *word, ck_err *err)
{
	for (int kind = 0; kind < CK_OP_KIND_COUNT; kind++)
		if (word && !strcmp(word, ck_op_kind_name((ck_op_kind)kind))) {
			c->desc.kind = (ck_op_kind)kind;
			return CK_OK;
		}
	return ck_fail(err, CK_USAGE, "no op \"%s\"", word ? word : "");
}

ck_status ck_op_case_read(const char *line, ck_dtype real, ck_op_case *c, ck_err *err)
{
	char text[CK_OP_LINE], *rest = text;
	*c = (ck_op_case){.spread = 1, .desc.attr = {.eps = 1e-5, .momentum = 0.1, .groups = 1}};
	snprintf(c->line, sizeof c->line, "%s", line);
	snprintf(text, sizeof text, "%s", line);
	if (read_kind(c, strtok_r(rest, " ", &rest), err) != CK_OK)
		return CK_USAGE;
	for (char *word; (word = strtok_r(NULL, " ", &rest));)
		if (read_word(c, word, real, err) != CK_OK)
			return CK_USAGE;
	fill_dtypes(c, real);
	if (ck_op_infer(&c->desc, real, err) != CK_OK)
		return CK_USAGE;
	c->desc.needs = ck_op_contract(&c->desc).differentiable;
	return CK_OK;
}

static bool stores_half(const ck_op_desc *d)
{
	bool half = ck_dtype_half(d->out[0].dtype);
	for (int k = 0; k < d->nin; k++)
		half = half || ck_dtype_half(d->in[k].dtype);
	return half;
}

static bool is_large(const ck_op_desc *d)
{
	int64_t most = ck_shape_count(d->out[0].shape);
	for (int k = 0; k < d->nin; k++)
		most = ck_shape_count(d->in[k].shape) > most ? ck_shape_count(d->in[k].shape) : most;
	return most > 16384;
}

bool ck_op_case_next(int *i, ck_dtype real, ck_op_case *c)
{
	enum { LINES = sizeof lines / sizeof *lines, ALL = LINES + sizeof mixed / sizeof *mixed };
	static const char *const stored[] = {"", " stored=bf16", " stored=f16"};
	const char *only = getenv("CK_CASE");
	for (; *i < 3 * ALL; ++*i) {
		int low = *i / ALL, k = *i % ALL;
		char line[CK_OP_LINE];
		ck_err err = {""};
		if (!low && k >= LINES)
			continue;
		snprintf(line, sizeof line, "%s%s", k < LINES ? lines[k] : mixed[k - LINES], stored[low]);
		if (ck_op_case_read(line, real, c, &err) != CK_OK) {
			fprintf(stderr, "suite/inputs/ops.c: %s: %s\n", line, err.text);
			abort();
		}
		if (device_is_slow() && is_large(&c->desc))
			continue;
		if ((!only || strstr(line, only)) && (!low || stores_half(&c->desc)))
			return ++*i, true;
	}
	return false;
}
