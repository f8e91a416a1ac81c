/* The two 16-bit floating-point formats, bfloat16 and IEEE half precision, to and from float32: rounding to nearest even, overflow
 * to infinity, subnormals kept, NaN stays NaN (a quiet one). Straight-line integer code, so that loops over it vectorise and every
 * processor gives the same bits. */
#ifndef CK_HALF_H
#define CK_HALF_H

#include <stdint.h>
#include <string.h>

static inline float ck_float_of_bits(uint32_t bits)
{
	float x;
	memcpy(&x, &bits, sizeof x);
	return x;
}

static inline uint32_t ck_bits_of_float(float x)
{
	uint32_t bits;
	memcpy(&bits, &x, sizeof bits);
	return bits;
}

/* bfloat16 is the upper half of a float32. */
static inline float ck_bf16_get(uint16_t h)
{
	return ck_float_of_bits((uint32_t)h << 16);
}

static inline uint16_t ck_bf16_put(float x)
{
	uint32_t bits = ck_bits_of_float(x);
	uint32_t rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
	uint32_t quiet = bits >> 16 | 0x40;
	return (uint16_t)((bits & 0x7FFFFFFF) > 0x7F800000 ? quiet : rounded);
}

/* Half precision has 5 bits of exponent and 10 of fraction. Moved to float32's places the exponent's bias is 112 too small, which
 * a multiplication by 2^112 makes good, subnormals included; infinity and NaN have the largest exponent and get float32's. */
static inline float ck_f16_get(uint16_t h)
{
	uint32_t magnitude = (uint32_t)(h & 0x7FFF) << 13, sign = (uint32_t)(h & 0x8000) << 16;
	uint32_t finite = ck_bits_of_float(ck_float_of_bits(magnitude) * 0x1p112f);
	return ck_float_of_bits(((h & 0x7C00) == 0x7C00 ? magnitude | 0x7F800000 : finite) | sign);
}

/* A subnormal result is rounded by an addition: 0.5's last bit is worth 2^-24, as is half precision's smallest number. */
static inline uint16_t ck_f16_put(float x)
{
	uint32_t bits = ck_bits_of_float(x), magnitude = bits & 0x7FFFFFFF, sign = bits >> 16 & 0x8000;
	uint32_t normal = (magnitude - (112u << 23) + 0xFFF + (magnitude >> 13 & 1)) >> 13;
	uint32_t subnormal = ck_bits_of_float(ck_float_of_bits(magnitude) + 0.5f) - ck_bits_of_float(0.5f);
	uint32_t finite = magnitude < (113u << 23) ? subnormal : normal;
	uint32_t beyond = magnitude > 0x7F800000 ? 0x7E00 | (magnitude >> 13 & 0x3FF) : 0x7C00; /* from 65520 on */
	return (uint16_t)((magnitude >= 0x477FF000 ? beyond : finite) | sign);
}

#endif
