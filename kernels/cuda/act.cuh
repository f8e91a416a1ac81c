/* Activations and their derivatives, in float. The tanh form of GELU is x / (1 + exp(-2u)), u = sqrt(2/pi) (x + 0.044715 x^3), since
 * 0.5 (1 + tanh(u)) = 1 / (1 + exp(-2u)): no cancellation for negative x. NaN stays NaN. */
#ifndef CK_ACT_CUH
#define CK_ACT_CUH

#include "kernels/cuda/launch.cuh"

CK_DEVICE float ck_gelu_exponential(float z)
{
	return expf(-1.5957691216f * z * (1.0f + 0.044715f * z * z)); /* 2 sqrt(2/pi) */
}

/* The normal distribution's function. */
CK_DEVICE float ck_normal_below(float z)
{
	return 0.5f * (1.0f + erff(0.70710678119f * z));
}

CK_DEVICE float ck_act_at(ck_act act, float z)
{
	if (act == CK_ACT_RELU)
		return z <= 0.0f ? 0.0f : z;
	if (act == CK_ACT_GELU_TANH)
		return z / (1.0f + ck_gelu_exponential(z));
	if (act == CK_ACT_GELU_ERF)
		return z * ck_normal_below(z);
	return z;
}

/* z is ReLU's output, or its input; GELU's input. */
CK_DEVICE float ck_act_slope(ck_act act, float z)
{
	if (act == CK_ACT_RELU)
		return z <= 0.0f ? 0.0f : 1.0f;
	if (act == CK_ACT_GELU_TANH) {
		z = z < -10.0f ? -10.0f : z > 10.0f ? 10.0f : z; /* 0 and 1 from there on; the exponential stays finite */
		float e = ck_gelu_exponential(z), s = 1.0f / (1.0f + e);
		return s + z * (s * (e * s)) * (1.5957691216f * (1.0f + 3.0f * 0.044715f * z * z));
	}
	if (act == CK_ACT_GELU_ERF) /* the normal distribution's function, plus z times its density */
		return ck_normal_below(z) + z * (0.3989422804f * expf(-0.5f * z * z));
	return 1.0f;
}

#endif
