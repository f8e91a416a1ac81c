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
#define VEC_SUM(...) _Pragma(VEC_TEXT(omp simd reduction(+ : __VA_ARGS__)))
#define VEC_MAX(...) _Pragma(VEC_TEXT(omp simd reduction(max : __VA_ARGS__)))
#define VEC_TEXT(...) #__VA_ARGS__

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

extern const ck_vec_act VEC(ck__vec_act);
extern const ck_vec_drop VEC(ck__vec_drop);
extern const ck_vec_norm VEC(ck__vec_norm);
extern const ck_vec_pool VEC(ck__vec_pool);
extern const ck_vec_rows VEC(ck__vec_rows);

#endif
