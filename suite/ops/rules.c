/* What is fixed outside of any kernel: the random generator's bits, the mask that dropout draws from it, and which shapes an op
 * refuses, in which words. */
#include "suite/ops/op_run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/philox.h"

TestSuite(rules, .init = device_or_skip);

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
	for (const ck_backend *const *b = backends_under_test(); *b; b++) {
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

/* The same for dtypes, in arithmetic of f32 or f64. Exactly these messages. */
static const struct {
	const char *line;
	ck_dtype real;
	const char *says;
} refused_types[] = {
    {"xent 6x11:f32 6", CK_F64, "logits is f32: must be f64"},
    {"xent 6x11 6:f32", CK_F32, "target is f32: must be i32"},
    {"xent 6x11:i32 6", CK_F32, "logits is i32: must be f32"},
    {"linear 4x5:f64 3x5", CK_F32, "x is f64: must be f32"},
    {"linear 4x5 3x5:real stored=bf16", CK_F32, "w is f32: must be bf16"},
    {"linear 4x5:real 3x5 stored=bf16", CK_F32, "w is bf16: must be f32"},
    {"linear 4x5:f16 3x5 stored=bf16", CK_F32, "w is bf16: must be f16"},
    {"linear 4x5 3x5 3:bf16 bias stored=bf16", CK_F32, "b is bf16: must be f32"},
    {"linear 4x5 3x5 3:f32 bias stored=bf16", CK_F64, "b is f32: must be f64"},
    {"linear 4x5 3x5 4x3:f16 residual stored=bf16", CK_F32, "r is f16: must be bf16"},
    {"linear 4x5 3x5 4x3:bf16 residual", CK_F32, "r is bf16: must be f32"},
    {"linear 4x5 3x5 4x3:f32 residual stored=f16", CK_F64, "r is f32: must be f16"},
    {"conv2d 2x5x6x3 4x3x3x3:real stride=1 stored=f16", CK_F32, "w is f32: must be f16"},
    {"conv2d 2x5x6x3 4x3x3x3 4:f16 stride=1 bias stored=f16", CK_F32, "b is f16: must be f32"},
    {"batchnorm 5x3 3:bf16 3 3 3 1 training stored=bf16", CK_F32, "gamma is bf16: must be f32"},
    {"batchnorm 5x3 3 3:bf16 3 3 1 training stored=bf16", CK_F32, "beta is bf16: must be f32"},
    {"batchnorm 5x3 3 3 3:bf16 3 1 training stored=bf16", CK_F32, "rmean is bf16: must be f32"},
    {"batchnorm 5x3 3 3 3 3:f16 1 training stored=f16", CK_F32, "rvar is f16: must be f32"},
    {"batchnorm 5x3 3 3 3 3 1 5x3:real residual stored=bf16", CK_F32, "r is f32: must be bf16"},
    {"layernorm 5x3:bf16 3 3", CK_F32, "x is bf16: must be f32"},
    {"layernorm 5x3 3:bf16 3 to=bf16", CK_F32, "gamma is bf16: must be f32"},
    {"layernorm 5x3 3 3 to=i32", CK_F32, "its output cannot be i32: must be f32 or a 16-bit type"},
    {"layernorm 5x3 3 3 to=f64", CK_F32, "its output cannot be f64: must be f32 or a 16-bit type"},
    {"act 5x3:i32 act=relu", CK_F32, "x is i32: must be f32"},
    {"act 5x3:u8 act=relu", CK_F32, "x is u8: must be f32"},
    {"scores 2x5x24:f64 heads=2 scale=1", CK_F32, "qkv is f64: must be f32"},
    {"wsum 2x2x5x5 2x5x24:real heads=2 stored=bf16", CK_F32, "qkv is f32: must be bf16"},
    {"wsum 2x2x5x5:real 2x5x24 heads=2 stored=bf16", CK_F32, "qkv is bf16: must be f32"},
    {"dropout 5x7:real 5x7 residual p=0.1 stored=bf16", CK_F32, "r is bf16: must be f32"},
    {"dropout 5x7 5x7:f16 residual p=0.1 stored=bf16", CK_F32, "r is f16: must be bf16"},
    {"add 5x7 5x7:f16 stored=bf16", CK_F32, "b is f16: must be bf16"},
    {"add 5x7 5x7:f32 stored=bf16", CK_F64, "b is f32: must be bf16"},
    {"embedding 2x5 7x4:bf16", CK_F32, "wte is bf16: must be f32"},
    {"embedding 2x5 7x4 9x4:bf16 bias", CK_F32, "wpe is bf16: must be f32"},
    {"embedding 2x5:f32 7x4", CK_F32, "ids is f32: must be i32"},
    {"maxpool 2x6x7x3:u8 window=2 stride=2", CK_F32, "x is u8: must be f32"},
    {"cast 5x7:real", CK_F32, "a cast goes from f32 to a 16-bit type or back, not from f32 to none"},
    {"cast 5x7:real to=f32", CK_F32, "a cast goes from f32 to a 16-bit type or back, not from f32 to f32"},
    {"cast 5x7:bf16 to=f16", CK_F32, "a cast goes from f32 to a 16-bit type or back, not from bf16 to f16"},
    {"cast 5x7:bf16 to=f32", CK_F64, "a cast goes from f64 to a 16-bit type or back, not from bf16 to f32"},
    {"cast 5x7:i32 to=bf16", CK_F32, "x is i32: must be f32"},
};

Test(rules, refused_dtypes)
{
	for (size_t i = 0; i < sizeof refused_types / sizeof *refused_types; i++) {
		ck_op_case c;
		ck_err err = {""};
		ck_status status = ck_op_case_read(refused_types[i].line, refused_types[i].real, &c, &err);
		cr_expect(status == CK_USAGE && !strcmp(err.text, refused_types[i].says), "%s: \"%s\" instead of \"%s\"",
			  refused_types[i].line, err.text, refused_types[i].says);
	}
}

/* Which dtypes results and gradients have: of y, of the stashes, of dy, of each input's gradient. */
static const struct {
	const char *line, *y, *stash, *dy, *dx;
} types[] = {
    {"linear 4x5 3x5 3 bias act=gelu-erf stored=bf16", "bf16", "bf16", "bf16", "bf16 f32 f32"},
    {"linear 4x5 3x5 3 4x3:real bias residual stored=f16", "f32", "", "f32", "f16 f32 f32 f32"},
    {"linear 4x5 3x5 4x3 residual stored=f16", "f16", "", "f16", "f16 f32 f16"},
    {"conv2d 2x5x6x3 4x3x3x3 4 bias stride=1 stored=bf16", "bf16", "", "bf16", "bf16 f32 f32"},
    {"batchnorm 5x3 3 3 3 3 1 5x3 training residual stored=bf16", "bf16", "f32 f32", "bf16", "bf16 f32 f32 - - - bf16"},
    {"layernorm 5x3 3 3", "f32", "f32 f32", "f32", "f32 f32 f32"},
    {"layernorm 5x3 3 3 to=f16", "f16", "f16 f32", "f16", "f32 f32 f32"},
    {"act 5x3 act=relu stored=f16", "f16", "", "f16", "f16"},
    {"scores 2x5x24 heads=2 scale=1 stored=bf16", "bf16", "", "bf16", "bf16"},
    {"softmax 5x6 stored=bf16", "bf16", "", "bf16", "bf16"},
    {"wsum 2x2x5x5 2x5x24 heads=2 stored=f16", "f16", "", "f16", "f16 f16"},
    {"dropout 5x7 5x7:real residual p=0.1 stored=bf16", "f32", "", "f32", "bf16 f32"},
    {"dropout 5x7 5x7 residual p=0.1 stored=bf16", "bf16", "", "bf16", "bf16 bf16"},
    {"add 5x7 5x7:real stored=bf16", "f32", "", "f32", "bf16 f32"},
    {"add 5x7:real 5x7 stored=bf16", "f32", "", "f32", "f32 bf16"},
    {"add 5x7 5x7 stored=bf16", "bf16", "", "bf16", "bf16 bf16"},
    {"embedding 2x5 7x4 9x4 bias", "f32", "", "f32", "- f32 f32"},
    {"maxpool 2x6x7x3 window=2 stride=2 stored=f16", "f16", "u8", "f16", "f16"},
    {"flatten 2x3x4 stored=f16", "f16", "", "f16", "f16"},
    {"cast 5x7:real stored=bf16", "bf16", "", "bf16", "f32"},
    {"cast 5x7:real weight stored=bf16", "bf16", "", "f32", "f32"},
    {"cast 5x7 stored=f16", "f32", "", "f32", "f16"},
    {"xent 6x11 6 stored=bf16", "f32", "f32", "f32", "bf16 -"},
};

static void add_type(char *text, size_t size, ck_dtype t)
{
	size_t used = strlen(text);
	snprintf(text + used, size - used, "%s%s", used ? " " : "", t ? ck_dtype_name(t) : "-");
}

Test(rules, dtypes_of_results)
{
	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		ck_op_case c;
		ck_err err = {""};
		char stash[32] = "", dx[64] = "";
		cr_assert(ck_op_case_read(types[i].line, CK_F32, &c, &err) == CK_OK, "%s: %s", types[i].line, err.text);
		for (int k = 0; k < c.desc.nstash; k++)
			add_type(stash, sizeof stash, c.desc.stash[k].dtype);
		for (int k = 0; k < c.desc.nin; k++)
			add_type(dx, sizeof dx, op_slot_desc(&c.desc, OP_DIN + k).dtype);
		const char *y = ck_dtype_name(c.desc.out[0].dtype), *dy = ck_dtype_name(op_slot_desc(&c.desc, OP_DOUT).dtype);
		cr_expect(!strcmp(y, types[i].y) && !strcmp(stash, types[i].stash) && !strcmp(dy, types[i].dy) &&
			      !strcmp(dx, types[i].dx),
			  "%s: y %s, stash %s, dy %s, gradients %s", types[i].line, y, stash, dy, dx);
	}
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
    /* 16-bit: over what is of the same size */
    {"linear 4x5 3x5 3 4x3:real bias residual p=0.1 stored=bf16", -1, 3, -1, 0, true},
    {"batchnorm 5x3 3 3 3 3 1 5x3 training residual stored=bf16", -1, 6, -1, 8 | 16 | 32, false},
    {"dropout 5x7 5x7:real residual p=0.1 stored=bf16", -1, 1, -1, 0, true},
    {"dropout 5x7 5x7 residual p=0.1 stored=bf16", 0, 1, -1, 0, true},
    {"add 5x7 5x7 stored=bf16", 0, 0, -1, 0, false},
    {"add 5x7 5x7:real stored=bf16", 1, 1, -1, 0, false},
    {"add 5x7:real 5x7 stored=bf16", 0, 0, -1, 0, false},
    {"cast 5x7 stored=bf16", -1, -1, -1, 0, false},
    {"cast 5x7:real stored=bf16", -1, -1, -1, 0, false},
    {"cast 5x7:real weight stored=bf16", -1, 0, -1, 0, false},
    {"xent 6x11 6 stored=bf16", -1, -1, 0, 0, false},
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

/* Bit i: input i may be 16-bit, in some company. */
static unsigned accepted_halves(const ck_op_desc *plain)
{
	unsigned accepted = 0;
	for (unsigned mask = 1; mask < 1u << plain->nin; mask++) {
		ck_op_desc d = *plain;
		ck_err err = {""};
		bool reals = true;
		for (int i = 0; i < d.nin; i++)
			if (mask >> i & 1) {
				reals = reals && d.in[i].dtype == CK_F32;
				d.in[i].dtype = CK_BF16;
			}
		if (d.kind == CK_CAST)
			d.attr.to = CK_F32;
		if (reals && ck_op_infer(&d, CK_F32, &err) == CK_OK)
			accepted |= mask;
	}
	return accepted;
}

/* So that a new op's 16-bit kernels cannot be left out of the tests: see `marked` in suite/inputs/ops.c. */
Test(rules, what_may_be_16_bit_is_tried_in_16_bits)
{
	unsigned accepted[CK_OP_KIND_COUNT] = {0}, tried[CK_OP_KIND_COUNT] = {0};
	ck_op_case c;
	for (int i = 0; ck_op_case_next(&i, CK_F32, &c);) {
		if (!c.low && c.desc.nin <= CK_MAX_IN)
			accepted[c.desc.kind] |= accepted_halves(&c.desc);
		for (int k = 0; k < c.desc.nin; k++)
			tried[c.desc.kind] |= ck_dtype_half(c.desc.in[k].dtype) ? 1u << k : 0;
	}
	for (int kind = 0; kind < CK_OP_KIND_COUNT; kind++)
		cr_expect((accepted[kind] & ~tried[kind]) == 0, "%s takes inputs %#x in 16 bits, cases have only %#x so",
			  ck_op_kind_name((ck_op_kind)kind), accepted[kind], tried[kind]);
}
