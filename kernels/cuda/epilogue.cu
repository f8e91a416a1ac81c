/* What is done around products, a pack of elements a thread. Bound by memory, or by the generator where it draws. */
#include "kernels/cuda/act.cuh"
#include "kernels/cuda/drop.cuh"

extern "C" {
#include "kernels/cuda/epilogue.h"
}

template <int N> CK_DEVICE void add_bias(ck_floats<N> &v, const float *bias, int64_t i, int64_t cols)
{
	int64_t col = i % cols;
#pragma unroll
	for (int k = 0; k < N; k++) {
		v.v[k] += bias[col];
		col = col + 1 == cols ? 0 : col + 1;
	}
}

template <typename T>
CK_KERNEL void epilogue_forward(int64_t n, int64_t cols, ck_act act, bool drops, ck_drop drop, const T *product,
				const float *bias, const T *r, const uint8_t *mask, T *stash, T *y)
{
	ck_each<CK_PACK(T)>(n, [&](auto pack, int64_t i) {
		constexpr int N = decltype(pack)::value;
		ck_floats<N> v = ck_load<N>(product, i);
		if (bias)
			add_bias(v, bias, i, cols);
		if (stash)
			ck_store(stash, i, v);
#pragma unroll
		for (int k = 0; k < N; k++)
			v.v[k] = ck_act_at(act, v.v[k]);
		if (drops)
			v = ck_dropped(drop, mask, i, v);
		if (r) {
			ck_floats<N> w = ck_load<N>(r, i);
#pragma unroll
			for (int k = 0; k < N; k++)
				v.v[k] += w.v[k];
		}
		ck_store(y, i, v);
	});
}

/* ReLU's output is positive where its input is and the element was kept, so that nothing is drawn for it. */
template <typename Y, typename T>
CK_KERNEL void epilogue_backward(int64_t n, ck_act act, bool drops, ck_drop drop, const Y *dy, const T *saved,
				 const uint8_t *mask, T *dz)
{
	ck_each<CK_PACK(T)>(n, [&](auto pack, int64_t i) {
		constexpr int N = decltype(pack)::value;
		ck_floats<N> v = ck_load<N>(dy, i);
		if (drops && act != CK_ACT_RELU)
			v = ck_dropped(drop, mask, i, v);
		if (saved) {
			ck_floats<N> s = ck_load<N>(saved, i);
#pragma unroll
			for (int k = 0; k < N; k++)
				if (act == CK_ACT_RELU)
					v.v[k] = s.v[k] <= 0.0f ? 0.0f : v.v[k] * drop.scale;
				else
					v.v[k] *= ck_act_slope(act, s.v[k]);
		}
		ck_store(dz, i, v);
	});
}

void ck__epilogue_forward(cudaStream_t stream, ck_dtype t, int64_t n, int64_t cols, ck_act act, bool drops, ck_drop drop,
			  const void *product, const float *bias, const void *r, const uint8_t *mask, void *stash, void *y)
{
	CK_STORED(t, T,
		  CK_LAUNCH((epilogue_forward<T>), ck_pack_blocks(n, CK_PACK(T)), CK_BLOCK, 0, stream, n, cols, act, drops,
			    drop, (const T *)product, bias, (const T *)r, mask, (T *)stash, (T *)y));
}

template <typename Y, typename T>
static void launch_backward(cudaStream_t stream, int64_t n, ck_act act, bool drops, ck_drop drop, const Y *dy, const T *saved,
			    const uint8_t *mask, T *dz)
{
	CK_LAUNCH((epilogue_backward<Y, T>), ck_pack_blocks(n, CK_PACK(T)), CK_BLOCK, 0, stream, n, act, drops, drop, dy, saved,
		  mask, dz);
}

void ck__epilogue_backward(cudaStream_t stream, ck_dtype ty, ck_dtype t, int64_t n, ck_act act, bool drops, ck_drop drop,
			   const void *dy, const void *saved, const uint8_t *mask, void *dz)
{
	if (ty == t)
		CK_STORED(t, T, launch_backward(stream, n, act, drops, drop, (const T *)dy, (const T *)saved, mask, (T *)dz));
	else
		CK_STORED(t, T,
			  launch_backward(stream, n, act, drops, drop, (const float *)dy, (const T *)saved, mask, (T *)dz));
}
