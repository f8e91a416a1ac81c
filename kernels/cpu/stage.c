#include "kernels/cpu/stage.h"

#include <string.h>

/* The view's runs: stretches of `length` elements side by side, one for each combination of the other extents' indices. */
typedef struct runs {
	int64_t count, length;
	int along; /* the extent that a run goes along */
} runs;

static runs runs_of(const ck_view *v)
{
	runs r = {.count = 1, .length = 1, .along = -1};
	for (int i = 0; i < v->nd && r.along < 0; i++)
		if (v->stride[i] == 1)
			r.along = i, r.length = v->d[i];
	for (int i = 0; i < v->nd; i++)
		r.count *= i == r.along ? 1 : v->d[i];
	return r;
}

/* Where run k begins, in elements. */
static int64_t run_at(const ck_view *v, const runs *r, int64_t k)
{
	int64_t at = 0;
	for (int i = v->nd - 1; i >= 0; i--) {
		if (i == r->along)
			continue;
		at += k % v->d[i] * v->stride[i];
		k /= v->d[i];
	}
	return at;
}

static const ck_vec_act *kernels(const ck_vec_set *vec, ck_dtype t)
{
	return (t == CK_BF16 ? vec->bf16 : vec->f16)->act;
}

void ck__stage_widen(const ck_vec_set *vec, int threads, const ck_view *v, const void *tensor, float *wide)
{
	const runs r = runs_of(v);
	const uint16_t *from = tensor;
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
	for (int64_t k = 0; k < r.count; k++) {
		int64_t at = run_at(v, &r, k);
		kernels(vec, v->dtype)->widen(r.length, from + at, wide + at);
	}
}

void ck__stage_narrow(const ck_vec_set *vec, int threads, const ck_view *v, const float *wide, void *tensor)
{
	const runs r = runs_of(v);
	uint16_t *to = tensor;
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
	for (int64_t k = 0; k < r.count; k++) {
		int64_t at = run_at(v, &r, k);
		kernels(vec, v->dtype)->narrow(r.length, wide + at, to + at, false);
	}
}
