/* Elementwise maps: activations, their backwards, addition. */
#include "kernels/cpu/vec_impl.h"
#include "kernels/cpu/vec_math.h"

INLINE float relu(float x)
{
	return x < 0.0f ? 0.0f : x; /* NaN stays */
}

INLINE float one(float x)
{
	(void)x;
	return 1.0f;
}

INLINE float identity(float x)
{
	return x;
}

INLINE float relu_slope(float y)
{
	return y <= 0.0f ? 0.0f : 1.0f;
}

INLINE lanes map_lanes(lanes x, float (*f)(float))
{
	float each[LANES];
	VEC_LANES each[l] = f(x[l]);
	return lanes_of(each);
}

INLINE void map(int64_t n, const stored *x, stored *y, float (*f)(float))
{
	VEC_BLOCKS(n, i, count, { store_block(y + i, count, map_lanes(load_block(x + i, count, 0), f), false); });
}

INLINE void map_gradient(int64_t n, const stored *dy, const stored *saved, stored *dx, float (*slope)(float), bool acc)
{
	VEC_BLOCKS(n, i, count, {
		lanes slopes = map_lanes(load_block(saved + i, count, 0), slope);
		store_block(dx + i, count, load_block(dy + i, count, 0) * slopes, acc);
	});
}

#define ACT(name, f, slope)                                                                                                    \
	static void name##_forward(int64_t n, const ck_stored *x, ck_stored *y)                                                \
	{                                                                                                                      \
		map(n, x, y, f);                                                                                               \
	}                                                                                                                      \
	static void name##_backward(int64_t n, const ck_stored *dy, const ck_stored *saved, ck_stored *dx, bool acc)           \
	{                                                                                                                      \
		if (acc)                                                                                                       \
			map_gradient(n, dy, saved, dx, slope, true);                                                           \
		else                                                                                                           \
			map_gradient(n, dy, saved, dx, slope, false);                                                          \
	}
ACT(relu, relu, relu_slope)
ACT(gelu_tanh, vec_gelu_tanh, vec_gelu_tanh_slope)
ACT(gelu_erf, vec_gelu_erf, vec_gelu_erf_slope)

static void none_forward(int64_t n, const ck_stored *x, ck_stored *y)
{
	map(n, x, y, identity);
}

static void none_backward(int64_t n, const ck_stored *dy, const ck_stored *saved, ck_stored *dx, bool acc)
{
	(void)saved;
	if (acc)
		map_gradient(n, dy, dy, dx, one, true);
	else if (dx != dy)
		map(n, dy, dx, identity);
}

INLINE void add_stored(int64_t n, const stored *a, const stored *b, stored *y)
{
	VEC_BLOCKS(n, i, count,
		   { store_block(y + i, count, load_block(a + i, count, 0) + load_block(b + i, count, 0), false); });
}

static void add(int64_t n, const ck_stored *a, const ck_stored *b, ck_stored *y)
{
	add_stored(n, a, b, y);
}

static void add_wide(int64_t n, const float *a, const ck_stored *added, float *y)
{
	const stored *b = added;
	VEC_LOOP
	for (int64_t i = 0; i < n; i++)
		y[i] = a[i] + get(b, i);
}

static void widen(int64_t n, const ck_stored *from, float *y)
{
	const stored *x = from;
	VEC_LOOP
	for (int64_t i = 0; i < n; i++)
		y[i] = get(x, i);
}

INLINE void narrow_to(int64_t n, const float *x, stored *y, bool acc)
{
	VEC_LOOP
	for (int64_t i = 0; i < n; i++)
		put_gradient(y, i, x[i], acc);
}

static void narrow(int64_t n, const float *x, ck_stored *y, bool acc)
{
	if (acc)
		narrow_to(n, x, y, true);
	else
		narrow_to(n, x, y, false);
}

const ck_vec_act VEC(ck__vec_act) = {
    .forward = {[CK_ACT_NONE] = none_forward,
		[CK_ACT_RELU] = relu_forward,
		[CK_ACT_GELU_TANH] = gelu_tanh_forward,
		[CK_ACT_GELU_ERF] = gelu_erf_forward},
    .backward = {[CK_ACT_NONE] = none_backward,
		 [CK_ACT_RELU] = relu_backward,
		 [CK_ACT_GELU_TANH] = gelu_tanh_backward,
		 [CK_ACT_GELU_ERF] = gelu_erf_backward},
    .add = add,
    .add_wide = add_wide,
    .widen = widen,
    .narrow = narrow,
};
