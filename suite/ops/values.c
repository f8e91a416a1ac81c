/* Forward results that can be worked out by hand, on every backend: the formulas themselves, which differences and agreement between
 * backends say nothing about. */
#include "suite/ops/op_run.h"

#include <math.h>

TestSuite(values, .init = device_or_skip);

enum { MOST = 16 };

/* A list of values for a slot. */
typedef struct given {
	int slot, n;
	double v[MOST];
} given;

static const struct {
	const char *line;
	given in[3], out[4]; /* end with n = 0; inputs that are not given keep their drawn values */
} known[] = {
    {"act 5 act=relu", {{OP_IN, 5, {-2, -0.5, 0, 0.5, 2}}}, {{OP_OUT, 5, {0, 0, 0, 0.5, 2}}}},
    {"act 3 act=gelu-tanh", {{OP_IN, 3, {1, -1, 0}}}, {{OP_OUT, 3, {0.84119199060827676, -0.15880800939172324, 0}}}},
    {"act 3 act=gelu-erf", {{OP_IN, 3, {1, -1, 0}}}, {{OP_OUT, 3, {0.84134474606854293, -0.15865525393145707, 0}}}},
    {"linear 1x2 2x2 2 bias act=relu",
     {{OP_IN, 2, {1, 2}}, {OP_IN + 1, 4, {3, 4, -5, 1}}, {OP_IN + 2, 2, {0.5, 1}}},
     {{OP_OUT, 2, {11.5, 0}}}},
    /* one row 1 2 3 4 5, kernel 1 10 100 centred: the padding is zero */
    {"conv2d 1x1x5x1 1x1x3x1 stride=1 pad=1",
     {{OP_IN, 5, {1, 2, 3, 4, 5}}, {OP_IN + 1, 3, {1, 10, 100}}},
     {{OP_OUT, MOST - 1, {0, 0, 0, 0, 0, 210, 321, 432, 543, 54, 0, 0, 0, 0, 0}}}},
    /* channel of 1, 2, 3: mean 2, biased variance 2/3, unbiased 1 */
    {"batchnorm 3x1 1 1 1 1 1 training eps=0.00000000001",
     {{OP_IN, 3, {1, 2, 3}}, {OP_IN + 3, 1, {10}}, {OP_IN + 4, 1, {3}}},
     {{OP_IN + 3, 1, {9.2}}, {OP_IN + 4, 1, {2.8}}, {OP_IN + 5, 1, {4}}, {OP_STASH + 1, 1, {1.2247448713915890}}}},
    {"softmax 1x3", {{OP_IN, 3, {0, 0.69314718055994531, 0}}}, {{OP_OUT, 3, {0.25, 0.5, 0.25}}}},
    {"softmax 2x2 causal", {{OP_IN, 4, {5, 700, 1, 1}}}, {{OP_OUT, 4, {1, 0, 0.5, 0.5}}}},
    {"maxpool 1x2x3x1 window=2 stride=1",
     {{OP_IN, 6, {7, 7, 1, 7, 2, 3}}},
     {{OP_OUT, 2, {7, 7}}, {OP_STASH, 2, {0, 0}}}}, /* the first of equals */
    {"avgpool 1x2x2x1 window=2 stride=2 pad=1", {{OP_IN, 4, {4, 8, 12, 16}}}, {{OP_OUT, 4, {1, 2, 3, 4}}}}, /* padding counts */
    /* the first of equals; a NaN is the largest; the counts were 3 before */
    {"tally 4x3 3 1",
     {{OP_IN, 12, {1, 3, 3, 2, 2, 2, 5, NAN, NAN, -2, -3, -1}}},
     {{OP_IN + 1, 3, {4, 5, 4}}, {OP_IN + 2, 1, {4}}}},
    /* a NaN stays one, also through ReLU and a maximum */
    {"act 3 act=relu", {{OP_IN, 3, {NAN, -1, 2}}}, {{OP_OUT, 3, {NAN, 0, 2}}}},
    {"linear 1x2 1x2 act=relu", {{OP_IN, 2, {NAN, 1}}}, {{OP_OUT, 1, {NAN}}}},
    {"linear 1x2 1x2 1 bias act=relu p=0", {{OP_IN, 2, {1, 1}}, {OP_IN + 2, 1, {NAN}}}, {{OP_OUT, 1, {NAN}}}},
    {"batchnorm 3x1 1 1 1 1 1 training act=relu", {{OP_IN, 3, {1, NAN, 3}}}, {{OP_OUT, 3, {NAN, NAN, NAN}}}},
    {"maxpool 1x1x2x1 kh=1 kw=2 stride=1", {{OP_IN, 2, {NAN, 7}}}, {{OP_OUT, 1, {NAN}}}},
    {"xent 2x4 2",
     {{OP_IN, 8, {0}}},
     {{OP_OUT, 1, {1.3862943611198906}}, {OP_STASH, 2, {1.3862943611198906, 1.3862943611198906}}}},
};

static void check_known(const ck_backend *b, ck_device *device, size_t k)
{
	ck_op_case c;
	ck_err err = {""};
	cr_assert(ck_op_case_read(known[k].line, b->real, &c, &err) == CK_OK, "%s: %s", known[k].line, err.text);
	op_run r;
	op_run_open(&r, b, device, &c, c.desc.needs);
	op_values v = op_values_draw(&c);
	for (const given *g = known[k].in; g < known[k].in + 3; g++)
		for (int e = 0; e < g->n; e++)
			v.at[g->slot][e] = g->v[e];
	op_values y = op_forward(&r, &v, (op_how){0});
	for (const given *g = known[k].out; g < known[k].out + 4; g++)
		for (int e = 0; e < g->n; e++)
			cr_expect(isnan(g->v[e]) ? isnan(y.at[g->slot][e])
						 : fabs(y.at[g->slot][e] - g->v[e]) <= 1e-6 * (1 + fabs(g->v[e])),
				  "%s: %s element %d is %.9g, not %.9g", r.name, op_slot_name(g->slot), e, y.at[g->slot][e],
				  g->v[e]);
	op_values_free(&v);
	op_values_free(&y);
	op_run_close(&r);
}

Test(values, by_hand)
{
	for (const ck_backend *const *b = backends_under_test(); *b; b++) {
		ck_device *device = op_device(*b, 2);
		for (size_t k = 0; device && k < sizeof known / sizeof *known; k++)
			check_known(*b, device, k);
		if (device)
			(*b)->close(device);
	}
}
