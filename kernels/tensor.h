/* What a tensor is, apart from its bytes: a data type and a shape. Tensors are always plain row-major; images are NHWC. */
#ifndef CK_TENSOR_H
#define CK_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* CK_DTYPE_NONE stands where no dtype is given. */
typedef enum ck_dtype { CK_DTYPE_NONE, CK_F64, CK_F32, CK_BF16, CK_F16, CK_I32, CK_U8 } ck_dtype;

size_t ck_dtype_size(ck_dtype t);
const char *ck_dtype_name(ck_dtype t); /* "f64", "f32", "bf16", "f16", "i32", "u8" */

/* What a graph's digest takes for it. Schedules and records name their graphs by the digest, so that this never changes: f64 is 0, as
 * it was before there was CK_DTYPE_NONE. */
static inline int ck_dtype_number(ck_dtype t)
{
	return (int)t - 1;
}

static inline bool ck_dtype_real(ck_dtype t)
{
	return t >= CK_F64 && t <= CK_F16;
}

/* The 16-bit floating-point types (half.h). */
static inline bool ck_dtype_half(ck_dtype t)
{
	return t == CK_BF16 || t == CK_F16;
}

/* Element i of a tensor of any dtype in host memory, as a double. put rounds once, to nearest even; integers are cut off. */
double ck_element_get(ck_dtype t, const void *tensor, int64_t i);
void ck_element_put(ck_dtype t, void *tensor, int64_t i, double x);

enum { CK_MAX_DIMS = 4 };

typedef struct ck_shape {
	int nd;
	int64_t d[CK_MAX_DIMS];
} ck_shape;

/* Builds a shape: ck_dims(4, n, h, w, c). Unused extents are 0. */
ck_shape ck_dims(int nd, ...); /* every extent an int64_t */
bool ck_shape_equal(ck_shape a, ck_shape b);

/* Number of elements, or -1 when an extent is not positive or the product overflows 2^48. */
int64_t ck_shape_count(ck_shape s);
int64_t ck_shape_last(ck_shape s); /* the last extent: channels, features */
int64_t ck_shape_rows(ck_shape s); /* the product of all others */

/* "8x56x56x64", in a caller's buffer. */
enum { CK_SHAPE_TEXT = 96 };
const char *ck_shape_text(ck_shape s, char text[CK_SHAPE_TEXT]);

#endif
