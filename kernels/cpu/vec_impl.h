/* Shared by the vec_*.c files: names by build, and how elements are read and written. */
#ifndef CK_VEC_IMPL_H
#define CK_VEC_IMPL_H

#include <string.h>

#include "kernels/cpu/vec.h"
#include "kernels/cpu/vec_norm.h"
#include "kernels/half.h"

#define VEC_JOIN(name, suffix) name##_##suffix
#define VEC_NAME(name, suffix) VEC_JOIN(name, suffix)
#define VEC(name) VEC_NAME(name, CK_VEC_SUFFIX) /* ck__vec becomes ck__vec_v4 */

/* Iterations of the loop that follows depend on nothing that another one wrote, also when an output is an input: so the
 * compiler needs no test for overlap, which in-place calls would fail. */
#define VEC_LOOP _Pragma("omp simd")

#define INLINE static inline __attribute__((always_inline))

/* Storage to arithmetic and back, by CK_VEC_STORED: f32, bf16 or f16. */
typedef float stored_f32;
typedef uint16_t stored_bf16, stored_f16;
typedef VEC_NAME(stored, CK_VEC_STORED) stored;

#define get_bf16 ck_bf16_get
#define put_bf16 ck_bf16_put
#define get_f16 ck_f16_get
#define put_f16 ck_f16_put

INLINE float get_f32(float x)
{
	return x;
}

INLINE float put_f32(float x)
{
	return x;
}

INLINE float get(const stored *p, int64_t i)
{
	return VEC_NAME(get, CK_VEC_STORED)(p[i]);
}

INLINE void put(stored *p, int64_t i, float value)
{
	p[i] = VEC_NAME(put, CK_VEC_STORED)(value);
}

/* Writes a gradient, or adds it to what is there. `acc` is a constant wherever this is inlined. */
INLINE void put_gradient(stored *p, int64_t i, float value, bool acc)
{
	put(p, i, acc ? get(p, i) + value : value);
}

/* ---- blocks: for what goes along a row ------------------------------------------------------------------------------------
 *
 * A row is worked through one vector register at a time; partial sums stay apart by lane and are added as a tree at the end.
 * The last block of a row may be short: it is padded with what changes nothing. (Left to the compiler, lanes are added one
 * after the other, and the rest of a row is done element by element: for rows of a few hundred elements that costs as much as
 * all else.) */

#if defined(__AVX512F__)
enum { LANES = 16 };
#elif defined(__AVX2__)
enum { LANES = 8 };
#else
enum { LANES = 4 };
#endif
typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));

/* `VEC_BLOCKS(n, i, count, statements)` runs the statements for each block: at i, with `count` elements, a constant in full
 * ones. */
#define VEC_BLOCKS(n, i, count, ...)                                                                                           \
	do {                                                                                                                   \
		int64_t i = 0;                                                                                                 \
		for (; i + LANES <= (n); i += LANES) {                                                                         \
			enum { count = LANES };                                                                                \
			__VA_ARGS__                                                                                            \
		}                                                                                                              \
		if (i < (n)) {                                                                                                 \
			int64_t count = (n)-i;                                                                                 \
			__VA_ARGS__                                                                                            \
		}                                                                                                              \
	} while (0)

#define VEC_LANES VEC_LOOP for (int l = 0; l < LANES; l++)

INLINE lanes lanes_of(const float each[LANES])
{
	lanes v;
	memcpy(&v, each, sizeof(v));
	return v;
}

/* bfloat16 of a whole register, as half.h does it for one: left to the compiler, the lanes go through memory in pieces. */
typedef uint16_t half_lanes __attribute__((vector_size(LANES * sizeof(uint16_t))));
typedef uint32_t bit_lanes __attribute__((vector_size(LANES * sizeof(uint32_t))));

INLINE lanes load_bf16(const void *x)
{
	half_lanes h;
	memcpy(&h, x, sizeof(h));
	return (lanes)(__builtin_convertvector(h, bit_lanes) << 16);
}

INLINE void store_bf16(void *y, lanes v)
{
	bit_lanes bits = (bit_lanes)v, rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16, quiet = bits >> 16 | 0x40;
	bit_lanes nan = (bit_lanes)(v != v);
	half_lanes h = __builtin_convertvector((nan & quiet) | (~nan & rounded), half_lanes);
	memcpy(y, &h, sizeof(h));
}

/* Whether this build stores bfloat16: a constant. */
enum { VEC_IS_f32, VEC_IS_f16, VEC_IS_bf16 };
enum { IN_BF16 = VEC_NAME(VEC_IS, CK_VEC_STORED) == VEC_IS_bf16 };

INLINE lanes load_block(const stored *x, int64_t count, float pad)
{
	if (IN_BF16 && count == LANES)
		return load_bf16(x);
	float each[LANES];
	VEC_LANES each[l] = l < count ? get(x, l) : pad;
	return lanes_of(each);
}

INLINE void store_block(stored *y, int64_t count, lanes v, bool acc)
{
	if (IN_BF16 && count == LANES) {
		store_bf16(y, acc ? load_bf16(y) + v : v);
		return;
	}
	float each[LANES];
	memcpy(each, &v, sizeof(v));
	VEC_LANES
	{
		if (l < count)
			put_gradient(y, l, each[l], acc);
	}
}

INLINE float sum_lanes(lanes v)
{
	float each[LANES];
	memcpy(each, &v, sizeof(v));
#pragma GCC unroll 4
	for (int half = LANES / 2; half > 0; half /= 2)
#pragma GCC unroll 8
		for (int l = 0; l < half; l++)
			each[l] += each[l + half];
	return each[0];
}

extern const ck_vec_act VEC(ck__vec_act);
extern const ck_vec_drop VEC(ck__vec_drop);
extern const ck_vec_norm VEC(ck__vec_norm);
extern const ck_vec_pool VEC(ck__vec_pool);
extern const ck_vec_rows VEC(ck__vec_rows);
extern const ck_vec_update VEC(ck__vec_update);

#endif
