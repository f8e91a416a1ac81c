/* Which build of the vector kernels this processor runs. A build for a new instruction set is a line here and one in
 * meson.build. */
#include "kernels/cpu/vec.h"

#define SET(name)                                                                                                              \
	extern const struct ck_vec ck__vec_##name##_f32, ck__vec_##name##_bf16, ck__vec_##name##_f16;                          \
	static const ck_vec_set set_##name = {#name, &ck__vec_##name##_f32, &ck__vec_##name##_bf16, &ck__vec_##name##_f16};

SET(base)

#ifdef __x86_64__
SET(v3)
SET(v4)

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

const ck_vec_set *ck__vec_choose(void)
{
	__builtin_cpu_init();
	return has_v4() ? &set_v4 : has_v3() ? &set_v3 : &set_base;
}
#else
const ck_vec_set *ck__vec_choose(void)
{
	return &set_base;
}
#endif
