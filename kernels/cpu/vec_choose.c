/* Which build of the vector kernels this processor runs. A build for a new instruction set is a line here and one in
 * meson.build. */
#include "kernels/cpu/vec.h"

extern const struct ck_vec ck__vec_base;

#ifdef __x86_64__
extern const struct ck_vec ck__vec_v3, ck__vec_v4;

/* The processor, and the operating system with it, has all that -march=x86-64-v3 (v4) lets the compiler use. */
static bool has_v3(void)
{
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
	       __builtin_cpu_supports("bmi2");
}

static bool has_v4(void)
{
	return has_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	       __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

const struct ck_vec *ck__vec_choose(void)
{
	__builtin_cpu_init();
	return has_v4() ? &ck__vec_v4 : has_v3() ? &ck__vec_v3 : &ck__vec_base;
}
#else
const struct ck_vec *ck__vec_choose(void)
{
	return &ck__vec_base;
}
#endif
