/* Shared by the vec_*.c files: names by build, and how elements are read and written. */
#ifndef CK_VEC_IMPL_H
#define CK_VEC_IMPL_H

#include "kernels/cpu/vec.h"
#include "kernels/cpu/vec_norm.h"

#define VEC_JOIN(name, suffix) name##_##suffix
#define VEC_NAME(name, suffix) VEC_JOIN(name, suffix)
#define VEC(name) VEC_NAME(name, CK_VEC_SUFFIX) /* ck__vec becomes ck__vec_v4 */

/* Iterations of the loop that follows depend on nothing that another one wrote, also when an output is an input: so the compiler
 * needs no test for overlap, which in-place calls would fail. */
#define VEC_LOOP _Pragma("omp simd")

#define INLINE static inline __attribute__((always_inline))

/* Storage to arithmetic and back. */
INLINE float get(const ck_stored *p, int64_t i)
{
	return p[i];
}

INLINE void put(ck_stored *p, int64_t i, float value)
{
	p[i] = value;
}

/* Writes a gradient, or adds it to what is there. `acc` is a constant wherever this is inlined. */
INLINE void put_gradient(ck_stored *p, int64_t i, float value, bool acc)
{
	put(p, i, acc ? get(p, i) + value : value);
}

/* ---- blocks: for sums along a row ---------------------------------------------------------------------------------------
 *
 * A row is worked through LANES elements at a time, which the compiler holds in vector registers; partial sums stay apart by lane
 * and are added as a tree at the end. The last block of a row may be short: it is padded with what changes nothing. (Left to the
 * compiler, lanes are added one after the other, and the rest of a row is done element by element: for rows of a few hundred
 * elements that costs as much as all else.) */

enum { LANES = 16 };

/* `VEC_BLOCKS(n, i, count, statements)` runs the statements for each block: at i, with `count` elements, a constant in full ones. */
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

INLINE void load_block(const ck_stored *x, int64_t count, float pad, float block[LANES])
{
	VEC_LANES block[l] = l < count ? get(x, l) : pad;
}

INLINE void store_block(ck_stored *y, int64_t count, const float block[LANES], bool acc)
{
	VEC_LANES
	{
		if (l < count)
			put_gradient(y, l, block[l], acc);
	}
}

INLINE void set_block(float block[LANES], float value)
{
	VEC_LANES block[l] = value;
}

INLINE float sum_block(const float block[LANES])
{
	float eight[8], four[4];
	VEC_LOOP
	for (int l = 0; l < 8; l++)
		eight[l] = block[l] + block[l + 8];
	VEC_LOOP
	for (int l = 0; l < 4; l++)
		four[l] = eight[l] + eight[l + 4];
	return (four[0] + four[2]) + (four[1] + four[3]);
}

INLINE float larger(float a, float b)
{
	return a > b ? a : b;
}

INLINE float max_block(const float block[LANES])
{
	float eight[8], four[4];
	VEC_LOOP
	for (int l = 0; l < 8; l++)
		eight[l] = larger(block[l], block[l + 8]);
	VEC_LOOP
	for (int l = 0; l < 4; l++)
		four[l] = larger(eight[l], eight[l + 4]);
	return larger(larger(four[0], four[2]), larger(four[1], four[3]));
}

extern const ck_vec_act VEC(ck__vec_act);
extern const ck_vec_drop VEC(ck__vec_drop);
extern const ck_vec_norm VEC(ck__vec_norm);
extern const ck_vec_pool VEC(ck__vec_pool);
extern const ck_vec_rows VEC(ck__vec_rows);

#endif
