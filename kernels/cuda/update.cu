/* Optimizer steps, four elements a thread: a few multiply-adds each (ADAMW: a root and a division too) for three to seven passes of
 * memory, which bounds it. */
#include "kernels/cuda/pack.cuh"

extern "C" {
#include "kernels/cuda/update.h"
}

CK_KERNEL void update_sgd(ck_sgd_step f, int64_t n, const float *gradient, float *parameter, float *state)
{
	ck_each<CK_PACK(float)>(n, [&](auto pack, int64_t i) {
		constexpr int N = decltype(pack)::value;
		ck_floats<N> g = ck_load<N>(gradient, i), w = ck_load<N>(parameter, i);
#pragma unroll
		for (int k = 0; k < N; k++)
			g.v[k] += f.decay * w.v[k];
		if (state) {
			ck_floats<N> m = ck_load<N>(state, i);
#pragma unroll
			for (int k = 0; k < N; k++)
				g.v[k] += f.momentum * m.v[k];
			ck_store(state, i, g);
		}
#pragma unroll
		for (int k = 0; k < N; k++)
			w.v[k] -= f.lr * g.v[k];
		ck_store(parameter, i, w);
	});
}

CK_KERNEL void update_adamw(ck_adamw_step f, int64_t n, const float *gradient, float *parameter, float *first, float *second)
{
	ck_each<CK_PACK(float)>(n, [&](auto pack, int64_t i) {
		constexpr int N = decltype(pack)::value;
		ck_floats<N> g = ck_load<N>(gradient, i), w = ck_load<N>(parameter, i);
		ck_floats<N> m = ck_load<N>(first, i), v = ck_load<N>(second, i);
#pragma unroll
		for (int k = 0; k < N; k++) {
			m.v[k] = f.beta1 * m.v[k] + f.rest1 * g.v[k];
			v.v[k] = f.beta2 * v.v[k] + f.rest2 * (g.v[k] * g.v[k]);
			w.v[k] = f.decay * w.v[k] - f.lr * m.v[k] / (sqrtf(v.v[k]) * f.scale2 + f.eps);
		}
		ck_store(first, i, m);
		ck_store(second, i, v);
		ck_store(parameter, i, w);
	});
}

/* Zero times an element is zero, or NaN where the element is not finite. */
CK_KERNEL void update_scale(float factor, int64_t n, float *g, int *overflow)
{
	float nought = 0;
	ck_each<CK_PACK(float)>(n, [&](auto pack, int64_t i) {
		constexpr int N = decltype(pack)::value;
		ck_floats<N> v = ck_load<N>(g, i);
#pragma unroll
		for (int k = 0; k < N; k++) {
			nought += v.v[k] * 0.0f;
			v.v[k] *= factor;
		}
		ck_store(g, i, v);
	});
	if (nought != nought)
		atomicOr(overflow, 1);
}

void ck__cuda_sgd(cudaStream_t stream, ck_sgd_step step, int64_t n, const float *g, float *w, float *m)
{
	CK_LAUNCH(update_sgd, ck_pack_blocks(n, CK_PACK(float)), CK_BLOCK, 0, stream, step, n, g, w, m);
}

void ck__cuda_adamw(cudaStream_t stream, ck_adamw_step step, int64_t n, const float *g, float *w, float *m, float *v)
{
	CK_LAUNCH(update_adamw, ck_pack_blocks(n, CK_PACK(float)), CK_BLOCK, 0, stream, step, n, g, w, m, v);
}

void ck__cuda_scale(cudaStream_t stream, float factor, int64_t n, float *g, int *overflow)
{
	CK_LAUNCH(update_scale, ck_pack_blocks(n, CK_PACK(float)), CK_BLOCK, 0, stream, factor, n, g, overflow);
}
