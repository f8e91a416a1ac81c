/* The ends of the 16-bit types' ranges, on every backend, exactly: what rounds to infinity and what just does not, subnormal numbers read
 * and written, halfway places, signs of zero. */
#include "suite/ops/op_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(edges, .init = device_or_skip);

extern const ck_backend ck_ref_backend, ck_cpu_backend;

enum { MOST = 8 };
#define SUB_F16 0x1p-24   /* the smallest number */
#define SUB_BF16 0x1p-133 /* of either type */
#define MAX_F16 65504.0
#define MAX_BF16 0x1.fep127
#define INF INFINITY

static const struct {
	const char *line;
	double in[2][MOST], out[MOST]; /* as many as the shapes have */
} known[] = {
    /* between the last number and the next, that is not there, the half belongs to infinity */
    {"cast 8x1:real stored=f16",
     {{MAX_F16, 65519, 65520, -1e30, 0, -0.0, 65519.99, -65520}},
     {MAX_F16, MAX_F16, INF, -INF, 0, -0.0, MAX_F16, -INF}},
    {"cast 8x1:real weight stored=f16",
     {{MAX_F16, 65519, 65520, -1e30, 0, -0.0, INF, -INF}},
     {MAX_F16, MAX_F16, INF, -INF, 0, -0.0, INF, -INF}},
    {"cast 8x1:real stored=bf16",
     {{MAX_BF16, 0x1.fefffep127, 0x1.ffp127, -0x1.fffffep127, 0, -0.0, INF, -INF}},
     {MAX_BF16, MAX_BF16, INF, -INF, 0, -0.0, INF, -INF}},
    /* halfway goes to even, below and above it */
    {"cast 8x1:real stored=f16",
     {{0x1.002p0, 0x1.006p0, 0x1.002002p0, 0x1.005ffep0, -0x1.002p0, 0x1.ffep0, 0x1.ffdffep0, 1}},
     {1, 0x1.008p0, 0x1.004p0, 0x1.004p0, -1, 2, 0x1.ffcp0, 1}},
    {"cast 8x1:real stored=bf16",
     {{0x1.01p0, 0x1.03p0, 0x1.010002p0, 0x1.02fffep0, -0x1.01p0, 0x1.ffp0, 0x1.fefffep0, 1}},
     {1, 0x1.04p0, 0x1.02p0, 0x1.02p0, -1, 2, 0x1.fep0, 1}},
    /* subnormal */
    {"cast 8x1:real stored=f16",
     {{SUB_F16, SUB_F16 / 2, 1.5 * SUB_F16 / 2, 1.5 * SUB_F16, 2.5 * SUB_F16, -SUB_F16, -SUB_F16 / 2, 0x1.ffep-15}},
     {SUB_F16, 0, SUB_F16, 2 * SUB_F16, 2 * SUB_F16, -SUB_F16, -0.0, 0x1p-14}},
    {"cast 8x1:real stored=bf16",
     {{SUB_BF16, SUB_BF16 / 2, 1.5 * SUB_BF16 / 2, 1.5 * SUB_BF16, 2.5 * SUB_BF16, -SUB_BF16, -SUB_BF16 / 2, 0x1.fep-127}},
     {SUB_BF16, 0, SUB_BF16, 2 * SUB_BF16, 2 * SUB_BF16, -SUB_BF16, -0.0, 0x1p-126}},
    {"cast 4x1 stored=f16", {{SUB_F16, -SUB_F16, MAX_F16, -INF}}, {SUB_F16, -SUB_F16, MAX_F16, -INF}},
    {"cast 4x1 stored=bf16", {{SUB_BF16, -SUB_BF16, MAX_BF16, -INF}}, {SUB_BF16, -SUB_BF16, MAX_BF16, -INF}},
    {"act 4x1 act=relu stored=f16", {{SUB_F16, -SUB_F16, MAX_F16, INF}}, {SUB_F16, 0, MAX_F16, INF}},
    {"act 4x1 act=relu stored=bf16", {{SUB_BF16, -SUB_BF16, MAX_BF16, INF}}, {SUB_BF16, 0, MAX_BF16, INF}},
    {"add 4x1 4x1 stored=f16",
     {{SUB_F16, SUB_F16, MAX_F16, MAX_F16}, {SUB_F16, -SUB_F16, 16, 8}},
     {2 * SUB_F16, 0, INF, MAX_F16}},
    {"add 4x1 4x1 stored=bf16",
     {{SUB_BF16, SUB_BF16, MAX_BF16, MAX_BF16}, {SUB_BF16, -SUB_BF16, 0x1p119, 0x1p118}},
     {2 * SUB_BF16, 0, INF, MAX_BF16}},
    {"add 2x1:real 2x1 stored=f16", {{1, MAX_F16}, {SUB_F16, MAX_F16}}, {1, 2 * MAX_F16}}, /* 1 + 2^-24 is halfway in float32 */
    {"add 2x1 2x1:real stored=bf16", {{1, MAX_BF16}, {0x1p-20, 1}}, {1 + 0x1p-20, MAX_BF16}},
    {"maxpool 1x2x2x1 window=2 stride=1 stored=f16", {{-SUB_F16, SUB_F16, 0, -1}}, {SUB_F16}},
    {"maxpool 1x2x2x1 window=2 stride=1 stored=bf16", {{-SUB_BF16, SUB_BF16, 0, -1}}, {SUB_BF16}},
    {"avgpool 1x2x2x1 window=2 stride=1 stored=f16", {{SUB_F16, SUB_F16, SUB_F16, 3 * SUB_F16}}, {2 * SUB_F16}}, /* 1.5 */
    {"avgpool 1x2x2x1 window=2 stride=1 stored=bf16", {{SUB_BF16, SUB_BF16, SUB_BF16, 3 * SUB_BF16}}, {2 * SUB_BF16}},
    /* products: beyond the range, up to its end, and sums that are within it though their terms are not */
    {"linear 1x1 1x1 stored=f16", {{256}, {256}}, {INF}},
    {"linear 1x1 1x1 stored=f16", {{-32752}, {2}}, {-MAX_F16}},
    {"linear 1x1 1x1 stored=f16", {{4095}, {16}}, {INF}}, /* 65520 */
    {"linear 1x2 1x2 stored=f16", {{MAX_F16, MAX_F16}, {MAX_F16, -MAX_F16}}, {0}},
    {"linear 1x1 1x1 stored=bf16", {{0x1p64}, {0x1p64}}, {INF}},
    {"linear 1x1 1x1 stored=f16", {{0x1p-12}, {0x1p-12}}, {SUB_F16}},
    {"linear 1x1 1x1 stored=f16", {{SUB_F16}, {2}}, {2 * SUB_F16}},
    {"conv2d 1x1x1x1 1x1x1x1 stride=1 stored=f16", {{256}, {256}}, {INF}},
    {"conv2d 1x1x1x1 1x1x1x1 stride=1 stored=f16", {{0x1p-12}, {0x1p-12}}, {SUB_F16}},
    {"scores 1x1x3 heads=1 scale=0.5 stored=f16", {{512, 512, 1}}, {INF}}, /* scaled, 131072 */
    {"scores 1x1x3 heads=1 scale=0.125 stored=f16", {{512, 512, 1}}, {32768}},
    {"scores 1x1x3 heads=1 scale=0.125 stored=f16", {{0x1p-10, 0x1p-11, 1}}, {SUB_F16}},
};

static void check_known(const ck_backend *b, ck_device *device, size_t k)
{
	ck_op_case c;
	ck_err err = {""};
	cr_assert(ck_op_case_read(known[k].line, b->real, &c, &err) == CK_OK, "%s: %s", known[k].line, err.text);
	op_run r;
	op_run_open(&r, b, device, &c, c.desc.needs);
	op_values v = op_values_draw(&c);
	for (int i = 0; i < 2 && i < c.desc.nin; i++)
		for (int64_t e = 0; e < v.n[OP_IN + i]; e++)
			v.at[OP_IN + i][e] = known[k].in[i][e];
	op_values y = op_forward(&r, &v, (op_how){0});
	for (int64_t e = 0; e < y.n[OP_OUT]; e++) {
		double got = y.at[OP_OUT][e], want = known[k].out[e];
		if (b->real == CK_F64 && y.n[OP_OUT] == 2 && !ck_dtype_half(c.desc.out[0].dtype))
			got = (float)got; /* a real sum is not to be judged */
		cr_expect(!memcmp(&got, &want, sizeof got), "%s: element %lld is %a, not %a", r.name, (long long)e, got, want);
	}
	op_values_free(&v);
	op_values_free(&y);
	op_run_close(&r);
}

/* A bf16 product by oneDNN takes subnormal operands for zero and gives zero for a subnormal result where the processor's dot product
 * instructions do (vdpbf16ps, tdpbf16ps: "denormals are zero, flush to zero", Intel SDM), so on a processor with AVX-512 BF16 or AMX; the
 * reference keeps them, as does the cpu where it works in float32. Gradients so small are of no use to anyone, but this is where
 * the two may part: so each result is one or the other, and nothing else. */
static const struct {
	double x, w, kept;
} small_products[] = {
    {0x1p-67, 0x1p-66, SUB_BF16}, /* the result is subnormal */
    {SUB_BF16, 0x1p7, 0x1p-126},  /* an operand is */
    {SUB_BF16, 1, SUB_BF16},      /* both */
    {0x1p-64, 0x1p-62, 0x1p-126}, /* neither: always kept */
};

Test(edges, small_bf16_products)
{
	ck_device *device[2] = {op_device(&ck_ref_backend, 1), op_device(&ck_cpu_backend, 1)};
	for (size_t k = 0; k < sizeof small_products / sizeof *small_products; k++)
		for (int i = 0; i < 2; i++) {
			const ck_backend *b = i ? &ck_cpu_backend : &ck_ref_backend;
			double x = small_products[k].x, w = small_products[k].w, kept = small_products[k].kept;
			ck_op_case c;
			ck_err err = {""};
			cr_assert(ck_op_case_read("linear 1x1 1x1 stored=bf16", b->real, &c, &err) == CK_OK, "%s", err.text);
			op_run r;
			op_run_open(&r, b, device[i], &c, c.desc.needs);
			op_values v = op_values_draw(&c);
			v.at[OP_IN][0] = x, v.at[OP_IN + 1][0] = w;
			op_values y = op_forward(&r, &v, (op_how){0});
			double got = y.at[OP_OUT][0];
			bool may_flush = i && k < 3;
			cr_expect(got == kept || (may_flush && got == 0), "%s: %a %a is %a, not %a", r.name, x, w, got, kept);
			if (getenv("CK_VERBOSE"))
				fprintf(stderr, "%s: bf16 product %a %a = %a\n", b->name, x, w, got);
			op_values_free(&v);
			op_values_free(&y);
			op_run_close(&r);
		}
	ck_ref_backend.close(device[0]);
	ck_cpu_backend.close(device[1]);
}

Test(edges, of_the_ranges)
{
	for (const ck_backend *const *b = backends_under_test(); *b; b++) {
		ck_device *device = op_device(*b, 2);
		for (size_t k = 0; device && k < sizeof known / sizeof *known; k++)
			check_known(*b, device, k);
		if (device)
			(*b)->close(device);
	}
}

/* A NaN is not a dead ReLU: the gradient goes through as where the output is positive (PyTorch's threshold_backward). */
Test(edges, a_nan_lets_the_gradient_through_relu)
{
	static const char *const lines[] = {
	    "act 5x7 act=relu",
	    "linear 6x5 4x5 4 bias act=relu",
	    "linear 6x5 4x5 4 bias act=relu p=0.25",
	    "batchnorm 2x3x4x5 5 5 5 5 1 training act=relu",
	    "batchnorm 2x3x4x5 5 5 5 5 1 2x3x4x5 residual act=relu",
	};
	static const double outputs[] = {1, NAN, 0};
	for (const ck_backend *const *b = backends_under_test(); *b; b++) {
		ck_device *device = op_device(*b, 1);
		for (size_t k = 0; device && k < sizeof lines / sizeof *lines; k++) {
			ck_op_case c;
			ck_err err = {""};
			cr_assert(ck_op_case_read(lines[k], (*b)->real, &c, &err) == CK_OK, "%s", err.text);
			op_run r;
			op_run_open(&r, *b, device, &c, c.desc.needs);
			op_values v = op_values_draw(&c), saved = op_forward(&r, &v, (op_how){0}), got[3];
			for (int o = 0; o < 3; o++) {
				for (int64_t e = 0; e < saved.n[OP_OUT]; e++)
					saved.at[OP_OUT][e] = outputs[o];
				got[o] = op_backward(&r, &saved, (op_how){0});
			}
			const char *difference = op_difference(&got[0], &got[1], OP_GRADIENTS);
			cr_expect(!difference, "%s: with NaN for 1 as output %s", r.name, difference);
			cr_expect(op_difference(&got[0], &got[2], OP_GRADIENTS), "%s: a dead ReLU passes all on", r.name);
			for (int o = 0; o < 3; o++)
				op_values_free(&got[o]);
			op_values_free(&v);
			op_values_free(&saved);
			op_run_close(&r);
		}
		if (device)
			(*b)->close(device);
	}
}
