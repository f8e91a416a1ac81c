/* The two 16-bit formats: kernels/half.h, ck_element_put and every build of the vector kernels, against rounding worked out here from the
 * formats' definitions in doubles. All 65,536 numbers of each, all places halfway between two and next to those. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "kernels/alloc.h"
#include "kernels/cpu/vec.h"
#include "kernels/half.h"
#include "kernels/tensor.h"

enum { NUMBERS = 1 << 16 };

/* IEEE 754 binary formats: 1 sign bit, `exponent` bits biased by half their range, `fraction` bits. */
typedef struct format {
	ck_dtype t;
	int exponent, fraction;
	float (*get)(uint16_t);
	uint16_t (*put)(float);
} format;

static const format formats[] = {{CK_BF16, 8, 7, ck_bf16_get, ck_bf16_put}, {CK_F16, 5, 10, ck_f16_get, ck_f16_put}};

/* What the bits mean. */
static double meaning(const format *f, unsigned h)
{
	int bias = (1 << (f->exponent - 1)) - 1, e = (int)(h >> f->fraction) & ((1 << f->exponent) - 1);
	double fraction = ldexp(h & ((1u << f->fraction) - 1), -f->fraction), sign = h >> 15 ? -1 : 1;
	if (e == (1 << f->exponent) - 1)
		return fraction != 0 ? NAN : sign * INFINITY;
	return sign * (e ? ldexp(1 + fraction, e - bias) : ldexp(fraction, 1 - bias));
}

/* The nearest number, of two as near the one whose last bit is 0, as a double. */
static double nearest(const format *f, double x)
{
	int most = (1 << (f->exponent - 1)) - 1, least = 1 - most; /* exponents of normal numbers */
	int e = x == 0 || !isfinite(x) ? least : ilogb(x);
	double unit = ldexp(1, (e < least ? least : e) - f->fraction), rounded = nearbyint(x / unit) * unit;
	return fabs(rounded) >= ldexp(1, most + 1) ? copysign(INFINITY, x) : copysign(rounded, x);
}

static bool same(double a, double b)
{
	return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

Test(half, every_number_is_read)
{
	for (const format *f = formats; f < formats + 2; f++)
		for (unsigned h = 0; h < NUMBERS; h++) {
			float x = f->get((uint16_t)h);
			uint16_t bits = (uint16_t)h;
			cr_assert(same((double)x, meaning(f, h)), "%s %04x is %g, not %g", ck_dtype_name(f->t), h, (double)x,
				  meaning(f, h));
			cr_assert(same(ck_element_get(f->t, &bits, 0), meaning(f, h)), "%s %04x", ck_dtype_name(f->t), h);
			uint16_t back = f->put(x), quiet = (uint16_t)(h | 1u << (f->fraction - 1));
			cr_assert(back == (isnan(x) ? quiet : h), "%s %04x comes back as %04x", ck_dtype_name(f->t), h, back);
		}
}

/* Of float32: every upper half, which is all of sign, exponent and seven bits of fraction, with these lower halves: at, below, and
 * above what is halfway for bf16 (8000), and for fp16's normal numbers (x1000). Where fp16 is subnormal, what is halfway has its last
 * bit in the upper half or at 8000 to 1000. */
static const uint32_t lower[] = {0x0000, 0x0001, 0x0FFF, 0x1000, 0x1001, 0x2000, 0x2FFF, 0x3000,
				 0x3001, 0x4000, 0x5000, 0x7000, 0x7FFF, 0x8000, 0x8001, 0x9000,
				 0xB000, 0xCFFF, 0xD000, 0xD001, 0xEFFF, 0xF000, 0xF001, 0xFFFF};
enum { LOWER = sizeof lower / sizeof *lower, FLOATS = NUMBERS * LOWER };

static float float_at(int i)
{
	return ck_float_of_bits((uint32_t)(i / LOWER) << 16 | lower[i % LOWER]);
}

Test(half, floats_are_rounded)
{
	for (const format *f = formats; f < formats + 2; f++)
		for (int i = 0; i < FLOATS; i++) {
			float x = float_at(i);
			double got = (double)f->get(f->put(x));
			cr_assert(same(got, nearest(f, (double)x)), "%s: %a (%08x) is rounded to %a, not %a",
				  ck_dtype_name(f->t), (double)x, ck_bits_of_float(x), got, nearest(f, (double)x));
		}
}

static void check_double(const format *f, double x)
{
	uint16_t bits;
	ck_element_put(f->t, &bits, 0, x);
	double got = ck_element_get(f->t, &bits, 0);
	cr_assert(same(got, nearest(f, x)), "%s: %a is stored as %a, not %a", ck_dtype_name(f->t), x, got, nearest(f, x));
}

/* Halfway between all neighbours, and by so little beside it that float32 cannot tell: rounded to float32 first, it would go to the even
 * one on either side. */
Test(half, doubles_are_rounded_once)
{
	for (const format *f = formats; f < formats + 2; f++)
		for (unsigned h = 0; h < NUMBERS - 1; h++) {
			double a = meaning(f, h), b = meaning(f, h + 1);
			if (!isfinite(a) || isnan(b) || h == 0x7FFF)
				continue;
			if (isinf(b)) /* what would come next */
				b = copysign(ldexp(1, 1 << (f->exponent - 1)), a);
			double middle = a / 2 + b / 2, step = (b - a) * 0x1p-40;
			check_double(f, middle);
			check_double(f, middle + step);
			check_double(f, middle - step);
			check_double(f, a + step);
		}
	for (const format *f = formats; f < formats + 2; f++) {
		static const double far[] = {
		    0,         1e300,    0x1p128,    0x1.fffffep127, 0x1.ffffffp127,      65519.99999, 65520,
		    0x1p-1074, 0x1p-150, 0x1.8p-134, 0x1p-134,       0x1.0000000001p-134, 0x1p-25,     0x1.0000000001p-25,
		    INFINITY,  NAN};
		for (size_t i = 0; i < sizeof far / sizeof *far; i++) {
			check_double(f, far[i]);
			check_double(f, -far[i]);
		}
	}
}

/* ---- the vector kernels' builds ------------------------------------------------------------------------------------------ */

#define BUILD(set) extern const struct ck_vec ck__vec_##set##_bf16, ck__vec_##set##_f16;
BUILD(base)
#ifdef __x86_64__
BUILD(v3)
BUILD(v4)
#endif

/* From the least on; a processor that runs one runs those before it. */
static const struct {
	const char *name;
	const struct ck_vec *of[2]; /* in order of formats */
} builds[] = {
    {"base", {&ck__vec_base_bf16, &ck__vec_base_f16}},
#ifdef __x86_64__
    {"v3", {&ck__vec_v3_bf16, &ck__vec_v3_f16}},
    {"v4", {&ck__vec_v4_bf16, &ck__vec_v4_f16}},
#endif
};

typedef void build_check(const char *name, const format *f, const struct ck_vec *vec);

static void for_each_build(build_check *check)
{
	const char *best = ck__vec_choose()->name;
	for (size_t i = 0; i < sizeof builds / sizeof *builds; i++) {
		for (int k = 0; k < 2; k++)
			check(builds[i].name, &formats[k], builds[i].of[k]);
		if (!strcmp(builds[i].name, best))
			return;
	}
	cr_assert_fail("the chosen build, %s, is none of the known ones", best);
}

static void check_widen(const char *name, const format *f, const struct ck_vec *vec)
{
	uint16_t *h = ck_alloc(NUMBERS, sizeof *h);
	float *x = ck_alloc(NUMBERS, sizeof *x);
	for (int i = 0; i < NUMBERS; i++)
		h[i] = (uint16_t)i;
	for (int first = 0; first < 3; first++) { /* and with a short rest */
		vec->act->widen(NUMBERS - first, h + first, x + first);
		for (int i = first; i < NUMBERS; i++)
			cr_assert(ck_bits_of_float(x[i]) == ck_bits_of_float(f->get(h[i])), "%s %s: %04x is widened to %08x",
				  name, ck_dtype_name(f->t), h[i], ck_bits_of_float(x[i]));
	}
	free(h);
	free(x);
}

Test(half, every_build_widens)
{
	for_each_build(check_widen);
}

/* Written, and added to numbers that pass by all of them. */
static void check_narrow(const char *name, const format *f, const struct ck_vec *vec)
{
	float *x = ck_alloc(FLOATS, sizeof *x);
	uint16_t *h = ck_alloc(FLOATS, sizeof *h);
	for (int acc = 0; acc < 2; acc++) {
		for (int i = 0; i < FLOATS; i++)
			x[i] = float_at(i), h[i] = (uint16_t)(i * 40503u >> 4);
		vec->act->narrow(FLOATS, x, h, acc);
		for (int i = 0; i < FLOATS; i++) {
			float before = f->get((uint16_t)(i * 40503u >> 4)), sum = acc ? before + x[i] : x[i];
			bool nan = isnan(sum) && isnan(f->get(h[i])); /* which of two NaNs a sum is does not matter */
			cr_assert((acc && nan) || h[i] == f->put(sum), "%s %s: %a%s is stored as %04x, not %04x", name,
				  ck_dtype_name(f->t), (double)sum, acc ? ", a sum," : "", h[i], f->put(sum));
		}
	}
	free(x);
	free(h);
}

Test(half, every_build_narrows)
{
	for_each_build(check_narrow);
}

/* By blocks of whole registers, as rows and pools are read and stored: 0 + a + b for pairs that pass by all numbers. */
static void check_blocks(const char *name, const format *f, const struct ck_vec *vec)
{
	enum { N = NUMBERS - 5 };
	uint16_t *a = ck_alloc(N, sizeof *a), *b = ck_alloc(N, sizeof *b), *y = ck_alloc(N, sizeof *y);
	for (int shift = 0; shift < 16; shift++) {
		for (int i = 0; i < N; i++)
			a[i] = (uint16_t)i, b[i] = (uint16_t)((i ^ 1 << shift) * 3 + (i >> 7));
		vec->pool->sum(N, 2, (const ck_stored *const[]){a, b}, 1, y, false);
		for (int i = 0; i < N; i++) {
			float sum = 0.0f + f->get(a[i]) + f->get(b[i]);
			bool nan = isnan(sum) && isnan(f->get(y[i]));
			cr_assert(nan || y[i] == f->put(sum), "%s %s: %04x + %04x is %04x, not %04x", name, ck_dtype_name(f->t),
				  a[i], b[i], y[i], f->put(sum));
		}
	}
	free(a);
	free(b);
	free(y);
}

Test(half, every_build_stores_blocks)
{
	for_each_build(check_blocks);
}
