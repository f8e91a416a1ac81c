/* Elementwise passes over memory, which bounds them: 16 bytes at a time wherever a whole pack is left, else single elements.
 *
 *     ck_each<CK_PACK(T)>(n, [&](auto pack, int64_t i) {
 *             constexpr int N = decltype(pack)::value;
 *             ck_floats<N> v = ck_load<N>(x, i);
 *             …
 *             ck_store(y, i, v);
 *     });
 *
 * A pack is read whole before any of it is written, so outputs may lie over inputs of their own dtype. Tensors begin at multiples of
 * 64 bytes; i is a multiple of N. */
#ifndef CK_PACK_CUH
#define CK_PACK_CUH

#include "kernels/cuda/launch.cuh"

#define CK_PACK(T) (16 / (int)sizeof(T))

template <int N> struct ck_floats {
	float v[N]; /* indexed by constants only, once loops are unrolled: they are registers */
};

/* Elements i .. i + N - 1, which lie on a border of 4 (float) or 8 (16-bit) where N is as many or more. */
template <int N> CK_DEVICE ck_floats<N> ck_load(const float *x, int64_t i)
{
	ck_floats<N> to;
	if constexpr (N % 4 == 0) {
#pragma unroll
		for (int k = 0; k < N; k += 4) {
			float4 four = *reinterpret_cast<const float4 *>(x + i + k);
			to.v[k] = four.x, to.v[k + 1] = four.y, to.v[k + 2] = four.z, to.v[k + 3] = four.w;
		}
	} else {
#pragma unroll
		for (int k = 0; k < N; k++)
			to.v[k] = x[i + k];
	}
	return to;
}

/* 16-bit numbers in the halves of a word; the last parameter only tells the type. */
CK_DEVICE float ck_half_of(unsigned word, const __nv_bfloat16 *)
{
	return __bfloat162float(__ushort_as_bfloat16((unsigned short)word));
}
CK_DEVICE float ck_half_of(unsigned word, const __half *)
{
	return __half2float(__ushort_as_half((unsigned short)word));
}
CK_DEVICE unsigned ck_word_of(float low, float high, const __nv_bfloat16 *)
{
	return __bfloat16_as_ushort(__float2bfloat16_rn(low)) | (unsigned)__bfloat16_as_ushort(__float2bfloat16_rn(high)) << 16;
}
CK_DEVICE unsigned ck_word_of(float low, float high, const __half *)
{
	return __half_as_ushort(__float2half_rn(low)) | (unsigned)__half_as_ushort(__float2half_rn(high)) << 16;
}

template <int N, typename T> CK_DEVICE ck_floats<N> ck_load(const T *x, int64_t i)
{
	ck_floats<N> to;
	if constexpr (N == 8) {
		uint4 words = *reinterpret_cast<const uint4 *>(x + i);
		to.v[0] = ck_half_of(words.x, x), to.v[1] = ck_half_of(words.x >> 16, x);
		to.v[2] = ck_half_of(words.y, x), to.v[3] = ck_half_of(words.y >> 16, x);
		to.v[4] = ck_half_of(words.z, x), to.v[5] = ck_half_of(words.z >> 16, x);
		to.v[6] = ck_half_of(words.w, x), to.v[7] = ck_half_of(words.w >> 16, x);
	} else {
#pragma unroll
		for (int k = 0; k < N; k++)
			to.v[k] = ck_get(x, i + k);
	}
	return to;
}

template <int N> CK_DEVICE void ck_store(float *y, int64_t i, ck_floats<N> from)
{
	if constexpr (N % 4 == 0) {
#pragma unroll
		for (int k = 0; k < N; k += 4)
			*reinterpret_cast<float4 *>(y + i + k) =
			    make_float4(from.v[k], from.v[k + 1], from.v[k + 2], from.v[k + 3]);
	} else {
#pragma unroll
		for (int k = 0; k < N; k++)
			y[i + k] = from.v[k];
	}
}

template <int N, typename T> CK_DEVICE void ck_store(T *y, int64_t i, ck_floats<N> from)
{
	if constexpr (N == 8) {
		*reinterpret_cast<uint4 *>(y + i) =
		    make_uint4(ck_word_of(from.v[0], from.v[1], y), ck_word_of(from.v[2], from.v[3], y),
			       ck_word_of(from.v[4], from.v[5], y), ck_word_of(from.v[6], from.v[7], y));
	} else {
#pragma unroll
		for (int k = 0; k < N; k++)
			ck_put(y, i + k, from.v[k]);
	}
}

/* A gradient: written, or added to what is there. */
template <int N, typename T> CK_DEVICE void ck_store_gradient(T *y, int64_t i, ck_floats<N> from, bool acc)
{
	if (acc) {
		ck_floats<N> before = ck_load<N>(y, i);
#pragma unroll
		for (int k = 0; k < N; k++)
			from.v[k] += before.v[k];
	}
	ck_store(y, i, from);
}

template <int N> struct ck_count {
	static constexpr int value = N;
};

/* f(ck_count<N>(), i) for whole packs, then f(ck_count<1>(), i) for the elements that are left, over all threads of the launch. */
template <int N, class F> CK_DEVICE void ck_each(int64_t n, F f)
{
	for (int64_t i = ck_thread(); i < n / N; i += ck_threads())
		f(ck_count<N>(), i * N);
	if (ck_thread() < n % N)
		f(ck_count<1>(), n - n % N + ck_thread());
}

/* The launch for it. */
static inline unsigned ck_pack_blocks(int64_t n, int pack)
{
	return ck_blocks((n + pack - 1) / pack);
}

#endif
