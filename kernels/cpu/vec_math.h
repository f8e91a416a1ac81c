/* exp and the GELUs, as straight-line float32 code that the compiler can vectorise.
 *
 * Largest errors over float32, found against double libm: exp 0.7 epsilon of the result; GELUs 2.1 epsilon of |x|, their slopes 2
 * epsilon of 1. NaN gives NaN. */
#ifndef CK_VEC_MATH_H
#define CK_VEC_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* exp(x) for x up to 88: the caller sees to that. Where the result would be subnormal it is 0.
 * Cody and Waite's reduction by ln 2 in two parts, then a minimax polynomial (Lawson's iteration, its own error 3e-9). */
static inline __attribute__((always_inline)) float vec_exp(float x)
{
	const float shift = 0x1.8p23f; /* adding it rounds to an integer, which is then in the low bits */
	float shifted = x * 0x1.715476p0f + shift;
	float n = shifted - shift;
	float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
	float p = 1.38145406e-3f;
	p = p * r + 8.36874545e-3f;
	p = p * r + 4.16683890e-2f;
	p = p * r + 1.66665211e-1f;
	p = p * r + 4.99999940e-1f;
	p = (p * r + 1.0f) * r + 1.0f;
	uint32_t bits;
	memcpy(&bits, &shifted, sizeof(bits));
	bits = (bits << 23) + (127u << 23); /* of 2^n */
	float power;
	memcpy(&power, &bits, sizeof(power));
	return x < -87.0f ? 0.0f : p * power; /* below, 2^n is not what the bits say */
}

/* With 0.5 (1 + tanh(u)) = 1 / (1 + exp(-2u)), the tanh form is x / (1 + exp(-2u)): no tanh, and no cancellation. This is
 * exp(-2u); below x = -10 it stays as it is there, 1e38, so that it is finite. */
static inline __attribute__((always_inline)) float vec_gelu_tanh_exponential(float x)
{
	const float a = -1.5957691216f, b = 0.044715f; /* -2 sqrt(2 / pi) */
	x = x < -10.0f ? -10.0f : x;
	return vec_exp(a * x * (b * x * x + 1.0f));
}

static inline __attribute__((always_inline)) float vec_gelu_tanh(float x)
{
	return x / (1.0f + vec_gelu_tanh_exponential(x));
}

static inline __attribute__((always_inline)) float vec_gelu_tanh_slope(float x)
{
	const float a = 1.5957691216f, b = 0.044715f;
	x = x < -10.0f ? -10.0f : x; /* 0 from there on, and 1 */
	x = x > 10.0f ? 10.0f : x;
	float e = vec_gelu_tanh_exponential(x);
	float s = 1.0f / (1.0f + e);
	return s + x * (s * (e * s)) * (a * (3.0f * b * x * x + 1.0f));
}

/* The normal distribution: 0.5 (1 + erf(x / sqrt 2)) and its density. The upper tail is exp(-x^2 / 2) k P(k), k = 1 / (1 + p |x|),
 * the form of Abramowitz and Stegun 26.2.17, with one more term and coefficients fitted anew: error 1e-8, theirs 7.5e-8. */
typedef struct vec_normal {
	float below, density;
} vec_normal;

static inline __attribute__((always_inline)) vec_normal vec_normal_at(float x)
{
	float e = vec_exp(-0.5f * x * x), k = 1.0f / (0.28f * fabsf(x) + 1.0f);
	float p = -1.05807980e-1f;
	p = p * k + 3.89872950e-1f;
	p = p * k - 2.36991770e-1f;
	p = p * k + 2.68908800e-1f;
	p = p * k + 6.74972900e-2f;
	p = p * k + 1.16520710e-1f;
	float above = e * (p * k);
	return (vec_normal){x < 0.0f ? above : 1.0f - above, 0.39894228f * e};
}

static inline __attribute__((always_inline)) float vec_gelu_erf(float x)
{
	return x * vec_normal_at(x).below;
}

static inline __attribute__((always_inline)) float vec_gelu_erf_slope(float x)
{
	vec_normal at = vec_normal_at(x);
	return x * at.density + at.below;
}

#endif
