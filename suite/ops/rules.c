/* What is fixed outside of any kernel: the random generator's bits, the mask that dropout draws from it, and which shapes an op
 * refuses, in which words. */
#include "suite/ops/op_run.h"

#include <math.h>
#include <string.h>

#include "kernels/philox.h"

/* Known answers of the authors' own distribution (Random123, tests/kat_vectors, philox4x32 10). */
static const struct {
	uint32_t counter[4], key[2], answer[4];
} known[] = {
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     {0xffffffff, 0xffffffff},
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

Test(rules, philox_known_answers)
{
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		uint32_t out[4];
		ck_philox(known[i].counter, known[i].key, out);
		cr_expect(!memcmp(out, known[i].answer, sizeof out), "vector %zu: %08x %08x %08x %08x", i, out[0], out[1],
			  out[2], out[3]);
	}
}

/* The mask, on every backend: element e is kept when word e % 4 of block e / 4 is at least the threshold. */
static void check_mask(const ck_backend *b, ck_device *device, const char *line)
{
	ck_op_case c;
	ck_err err = {""};
	cr_assert(ck_op_case_read(line, b->real, &c, &err) == CK_OK, "%s: %s", line, err.text);
	op_run r;
	op_run_open(&r, b, device, &c, c.desc.needs);
	op_values v = op_values_draw(&c), y = op_forward(&r, &v, (op_how){0});
	int64_t kept = 0;
	for (int64_t e = 0; e < y.n[OP_OUT]; e++) {
		uint32_t w[4];
		ck_philox_block(OP_SEED, OP_STEP, OP_NUMBER, (uint64_t)e / 4, w);
		bool keep = w[e % 4] >= ck_drop_threshold(c.desc.attr.p);
		cr_assert(keep == (y.at[OP_OUT][e] != 0), "%s: element %lld", r.name, (long long)e);
		kept += keep;
	}
	double n = (double)y.n[OP_OUT], p = c.desc.attr.p;
	cr_expect(fabs((double)kept - n * (1 - p)) < 5 * sqrt(n * p * (1 - p)), "%s: %lld of %g are kept", r.name,
		  (long long)kept, n);
	op_values_free(&v);
	op_values_free(&y);
	op_run_close(&r);
}

Test(rules, dropout_mask)
{
	static const char *const lines[] = {"dropout 7x13 p=0.3", "dropout 64x517 p=0.1", "linear 33x5 67x5 67 bias p=0.5"};
	for (const ck_backend *const *b = ck_backends; *b; b++) {
		ck_device *device = op_device(*b, 2);
		for (size_t i = 0; device && i < sizeof lines / sizeof *lines; i++)
			check_mask(*b, device, lines[i]);
		if (device)
			(*b)->close(device);
	}
}

/* A case that must not be, and what the message has to say. */
static const struct {
	const char *line, *says;
} refused[] = {
    {"linear 4x5", "linear takes 2 inputs here, not 1"},
    {"linear 4x5 3x5 bias", "linear takes 3 inputs here, not 2"},
    {"linear 4x5 3x6", "x 4x5 and w 3x6: their last extents must be equal"},
    {"linear 4x5 3x5x1", "w 3x5x1: must have 2 extents, out x in"},
    {"linear 4x5 3x5 4 bias", "b 4: must have the one extent 3, to fit w 3x5"},
    {"linear 4x5 3x5 4x5 residual", "r 4x5: must be as the output, 4x3"},
    {"linear 4x5 3x5 4x3 residual act=relu", "a residual and an activation do not come together"},
    {"linear 4x5 3x5 p=1", "dropout probability 1: must be at least 0 and below 1"},
    {"linear 0x5 3x5", "x 0x5: every extent must be positive"},
    {"linear 20000000x20000000 3x20000000",
     "x 20000000x20000000: every extent must be positive, with fewer than 2^48 elements"},
    {"linear 20000000x2 20000000x2", "the output 20000000x20000000 would have 2^48 elements or more"},
    {"conv2d 2x5x6x3 4x3x3 stride=1", "x 2x5x6x3 and w 4x3x3: both must have 4 extents"},
    {"conv2d 2x5x6x3 4x3x3x2 stride=1", "x 2x5x6x3 and w 4x3x3x2: channels do not fit"},
    {"conv2d 2x5x6x4 3x3x3x2 stride=1 groups=2", "x 2x5x6x4 and w 3x3x3x2: channels do not fit"},
    {"conv2d 2x2x6x3 4x3x3x3 stride=1", "x 2x2x6x3: smaller than the window 3x3 with pad 0"},
    {"conv2d 2x5x6x3 4x3x3x3 stride=0", "stride 0, pad 0, groups 1: stride and groups must be positive"},
    {"batchnorm 1x3 3 3 3 3 1 training", "x 1x3: training needs more than one row per channel"},
    {"batchnorm 5x3 3 3 3 4 1", "rvar 4: must have the one extent 3, to fit x 5x3"},
    {"batchnorm 5x3 3 3 3 3 2", "count 2: must have the one extent 1"},
    {"batchnorm 5x3 3 3 3 3 1 act=gelu-erf", "batchnorm is followed by ReLU or by nothing"},
    {"batchnorm 5x3 3 3 3 3 1 eps=0", "eps 0: must be above 0"},
    {"layernorm 5x3 3 4", "beta 4: must have the one extent 3, to fit x 5x3"},
    {"act 5x3", "no activation given"},
    {"act 5x3 act=gelu-tanh inplace", "only ReLU works in place: GELU's backward reads its input"},
    {"tally 5x3 4 1", "load 4: must have the one extent 3, to fit x 5x3"},
    {"tally 5x3 3 2", "calls 2: must have the one extent 1"},
    {"scores 2x5x25 heads=1", "qkv 2x5x25: must have 3 extents, B x T x 3C"},
    {"scores 2x5x24 heads=3", "qkv 2x5x24: its width 8 is not a multiple of heads 3"},
    {"softmax 2x2x5x4 causal", "s 2x2x5x4: a causal softmax is over square matrices"},
    {"wsum 2x2x5x4 2x5x24 heads=2", "p 2x2x5x4 and qkv 2x5x24: p must be B x heads x T x T"},
    {"dropout 5x7 7x5 residual p=0.1", "r 7x5: must be as the output, 5x7"},
    {"dropout 5x7 p=-0.5", "dropout probability -0.5"},
    {"add 5x7 7x5", "a 5x7 and b 7x5: both must have the same shape"},
    {"embedding 2x5 7x4 4x4 bias", "ids 2x5 and wpe 4x4: there are fewer positions than the sequence is long"},
    {"embedding 2x5 7x4 9x5 bias", "wte 7x4 and wpe 9x5: must be V x C and S x C"},
    {"maxpool 2x6x7x3 window=2 stride=2 pad=2", "window 2x2, stride 2, pad 2: all must be positive, and pad smaller"},
    {"maxpool 2x60x70x3 window=17 stride=2", "window 17x17: has more than 256 places"},
    {"avgpool 2x6x7 window=2 stride=2", "x 2x6x7: must have 4 extents, N x H x W x C"},
    {"flatten 5", "x 5: must have 2 extents or more"},
    {"xent 6x11 5", "logits 6x11 and target 5: there must be one target for each row of logits"},
};

Test(rules, refused_shapes)
{
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
		ck_op_case c;
		ck_err err = {""};
		ck_status status = ck_op_case_read(refused[i].line, CK_F32, &c, &err);
		cr_expect(status == CK_USAGE && strstr(err.text, refused[i].says), "%s: \"%s\" instead of \"%s\"",
			  refused[i].line, err.text, refused[i].says);
	}
}

Test(rules, refused_dtypes)
{
	ck_op_case c;
	ck_err err = {""};
	cr_assert(ck_op_case_read("xent 6x11 6", CK_F32, &c, &err) == CK_OK);
	cr_expect(ck_op_infer(&c.desc, CK_F64, &err) == CK_USAGE && !strcmp(err.text, "logits is f32: must be f64"), "%s",
		  err.text);
	err.text[0] = 0;
	c.desc.in[1].dtype = CK_F32;
	cr_expect(ck_op_infer(&c.desc, CK_F32, &err) == CK_USAGE && !strcmp(err.text, "target is f32: must be i32"), "%s",
		  err.text);
}

/* What the harness builds upon besides what the backward reads (see contract.c). -1: nothing; state and random as masks and flags. */
static const struct {
	const char *line;
	int forward, backward, own; /* in place, over the output or its gradient; over the input itself */
	unsigned state;
	bool random;
} promised[] = {
    {"linear 4x5 3x5 3 bias act=relu", -1, -1, -1, 0, false},
    {"linear 4x5 3x5 3 4x3 bias residual p=0.1", -1, 3, -1, 0, true},
    {"conv2d 2x5x6x3 4x3x3x3 stride=1", -1, -1, -1, 0, false},
    {"batchnorm 5x3 3 3 3 3 1 training act=relu", -1, 0, -1, 8 | 16 | 32, false},
    {"batchnorm 5x3 3 3 3 3 1 5x3 training residual", -1, 6, -1, 8 | 16 | 32, false},
    {"batchnorm 5x3 3 3 3 3 1", -1, 0, -1, 0, false},
    {"layernorm 5x3 3 3", -1, -1, -1, 0, false},
    {"act 5x3 act=relu", 0, 0, -1, 0, false},
    {"act 5x3 act=gelu-tanh", -1, 0, -1, 0, false},
    {"scores 2x5x24 heads=2 scale=1", -1, -1, -1, 0, false},
    {"softmax 2x2x5x5 causal", 0, 0, -1, 0, false},
    {"wsum 2x2x5x5 2x5x24 heads=2", -1, -1, -1, 0, false},
    {"dropout 5x7 p=0.1", 0, 0, -1, 0, true},
    {"dropout 5x7 5x7 residual p=0.1", 0, 1, -1, 0, true},
    {"dropout 5x7 p=0", 0, 0, -1, 0, false},
    {"add 5x7 5x7", 0, 0, -1, 0, false},
    {"embedding 2x5 7x4 9x4 bias", -1, -1, -1, 0, false},
    {"maxpool 2x6x7x3 window=2 stride=2", -1, -1, -1, 0, false},
    {"avgpool 2x6x7x3 window=2 stride=2", -1, -1, -1, 0, false},
    {"flatten 2x3x4", 0, 0, -1, 0, false},
    {"xent 6x11 6", -1, -1, 0, 0, false},
};

Test(rules, promises)
{
	for (size_t i = 0; i < sizeof promised / sizeof *promised; i++) {
		ck_op_case k;
		ck_err err = {""};
		cr_assert(ck_op_case_read(promised[i].line, CK_F32, &k, &err) == CK_OK, "%s: %s", promised[i].line, err.text);
		ck_contract c = ck_op_contract(&k.desc);
		cr_expect(c.inplace_forward == promised[i].forward && c.inplace_backward == promised[i].backward &&
			      c.inplace_backward_own == promised[i].own,
			  "%s: in place: %d, %d, %d", promised[i].line, c.inplace_forward, c.inplace_backward,
			  c.inplace_backward_own);
		cr_expect(c.state == promised[i].state && c.random == promised[i].random, "%s: state %u, random %d",
			  promised[i].line, c.state, c.random);
		k.desc.needs = 0;
		c = ck_op_contract(&k.desc);
		cr_expect(!(c.reads_in | c.reads_out | c.reads_stash) && c.inplace_backward < 0 && c.inplace_backward_own < 0,
			  "%s: reads something for a backward that it does not have", promised[i].line);
	}
}

Test(rules, unknown_devices)
{
	const ck_backend *b;
	int index;
	ck_err err = {""};
	cr_expect(ck_backend_find("ref", &b, &index, &err) == CK_OK && !strcmp(b->name, "ref") && index == 0);
	cr_expect(ck_backend_find("cpu:1", &b, &index, &err) == CK_OK && !strcmp(b->name, "cpu") && index == 1);
	cr_expect(ck_backend_find("gpu", &b, &index, &err) == CK_USAGE &&
		      strstr(err.text, "unknown device \"gpu\"; known ones: cpu"),
		  "%s", err.text);
	static const char *const malformed[] = {"ref:", "ref:x", "ref:-1", "ref:1x", "ref:99999999999999999999",
						"re",   "",      ":1"};
	for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++)
		cr_expect(ck_backend_find(malformed[i], &b, &index, NULL) == CK_USAGE, "%s", malformed[i]);
}
