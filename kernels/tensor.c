#include "kernels/tensor.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/half.h"

static const struct {
	const char *name;
	size_t size;
} dtypes[] = {
    [CK_DTYPE_NONE] = {"none", 0}, [CK_F64] = {"f64", 8}, [CK_F32] = {"f32", 4}, [CK_BF16] = {"bf16", 2},
    [CK_F16] = {"f16", 2},         [CK_I32] = {"i32", 4}, [CK_U8] = {"u8", 1},
};

size_t ck_dtype_size(ck_dtype t)
{
	return dtypes[t].size;
}

const char *ck_dtype_name(ck_dtype t)
{
	return dtypes[t].name;
}

double ck_element_get(ck_dtype t, const void *tensor, int64_t i)
{
	switch (t) {
	case CK_F64:
		return ((const double *)tensor)[i];
	case CK_F32:
		return (double)((const float *)tensor)[i];
	case CK_BF16:
		return (double)ck_bf16_get(((const uint16_t *)tensor)[i]);
	case CK_F16:
		return (double)ck_f16_get(((const uint16_t *)tensor)[i]);
	case CK_I32:
		return ((const int32_t *)tensor)[i];
	case CK_U8:
		return ((const uint8_t *)tensor)[i];
	default:
		abort(); /* a tensor has a dtype */
	}
}

/* Rounded to odd: cut off, and the last bit set when that changed anything. Rounding this to 16 bits gives what rounding the double
 * would (Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008). */
static float to_odd(double x)
{
	float nearest = (float)x;
	if ((double)nearest == x || isnan(x))
		return nearest;
	uint32_t bits = ck_bits_of_float(nearest);
	return ck_float_of_bits((bits - (fabs((double)nearest) > fabs(x))) | 1);
}

void ck_element_put(ck_dtype t, void *tensor, int64_t i, double x)
{
	switch (t) {
	case CK_F64:
		((double *)tensor)[i] = x;
		break;
	case CK_F32:
		((float *)tensor)[i] = (float)x;
		break;
	case CK_BF16:
		((uint16_t *)tensor)[i] = ck_bf16_put(to_odd(x));
		break;
	case CK_F16:
		((uint16_t *)tensor)[i] = ck_f16_put(to_odd(x));
		break;
	case CK_I32:
		((int32_t *)tensor)[i] = (int32_t)x;
		break;
	case CK_U8:
		((uint8_t *)tensor)[i] = (uint8_t)x;
		break;
	default:
		abort();
	}
}

ck_shape ck_dims(int nd, ...)
{
	ck_shape s = {.nd = nd};
	va_list args;
	va_start(args, nd);
	for (int i = 0; i < nd && i < CK_MAX_DIMS; i++)
		s.d[i] = va_arg(args, int64_t);
	va_end(args);
	return s;
}

bool ck_shape_equal(ck_shape a, ck_shape b)
{
	if (a.nd != b.nd)
		return false;
	for (int i = 0; i < a.nd; i++)
		if (a.d[i] != b.d[i])
			return false;
	return true;
}

/* The product of the first n extents, or -1 (see ck_shape_count). */
static int64_t product(ck_shape s, int n)
{
	const int64_t most = INT64_C(1) << 48; /* room to multiply by any element size, and by 2 FLOPs and more */
	int64_t count = 1;
	for (int i = 0; i < n; i++) {
		if (s.d[i] <= 0 || s.d[i] > most / count)
			return -1;
		count *= s.d[i];
	}
	return count;
}

int64_t ck_shape_count(ck_shape s)
{
	return s.nd < 1 || s.nd > CK_MAX_DIMS ? -1 : product(s, s.nd);
}

int64_t ck_shape_last(ck_shape s)
{
	return s.nd ? s.d[s.nd - 1] : 0;
}

int64_t ck_shape_rows(ck_shape s)
{
	return s.nd ? product(s, s.nd - 1) : 0;
}

const char *ck_shape_text(ck_shape s, char text[CK_SHAPE_TEXT])
{
	int at = 0; /* an extent takes 20 characters at most, and an x */
	text[0] = 0;
	for (int i = 0; i < s.nd && i < CK_MAX_DIMS; i++)
		at += snprintf(text + at, (size_t)(CK_SHAPE_TEXT - at), "%s%" PRId64, i ? "x" : "", s.d[i]);
	return text;
}
