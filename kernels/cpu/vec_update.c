/* Optimizer steps. Each element is a few multiply-adds (ADAMW: a root and a division too) for three to seven passes of memory,
 * which bounds it. */
#include <math.h>

#include "kernels/cpu/vec_impl.h"

static void sgd(const ck_vec_rule *r, int64_t n, const float *g, float *w, float *m)
{
	const ck_vec_rule f = *r; /* so that the compiler knows that no store changes it */
	if (!m) {
		VEC_LOOP
		for (int64_t i = 0; i < n; i++)
			w[i] -= f.lr * (g[i] + f.decay * w[i]);
		return;
	}
	VEC_LOOP
	for (int64_t i = 0; i < n; i++) {
		float moment = f.first * m[i] + (g[i] + f.decay * w[i]);
		m[i] = moment;
		w[i] -= f.lr * moment;
	}
}

static void adamw(const ck_vec_rule *r, int64_t n, const float *g, float *w, float *m, float *v)
{
	const ck_vec_rule f = *r;
	VEC_LOOP
	for (int64_t i = 0; i < n; i++) {
		float moment = f.first * m[i] + f.first_rest * g[i];
		float square = f.second * v[i] + f.second_rest * (g[i] * g[i]);
		m[i] = moment;
		v[i] = square;
		w[i] = f.decay * w[i] - f.lr * moment / (sqrtf(square) * f.second_scale + f.eps);
	}
}

/* Zero times an element is zero, or NaN where the element is not finite: so one sum tells of all, without a branch. */
static bool unscale(float factor, int64_t n, float *g)
{
	float nought = 0;
#pragma omp simd reduction(+ : nought)
	for (int64_t i = 0; i < n; i++) {
		nought += g[i] * 0.0f;
		g[i] *= factor;
	}
	return isnan(nought);
}

const ck_vec_update VEC(ck__vec_update) = {.sgd = sgd, .adamw = adamw, .unscale = unscale};
