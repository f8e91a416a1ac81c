/* What the device can do at most, measured in the same run through its own ops: a square product in each precision, and a copy.
 * What a step attains is held against these, so that a reader need not trust a data sheet, or know of the clocks of that day.
 *
 * Memory is the measurement's own, and given back: no plan's peak sees it. */
#ifndef CK_CEILING_H
#define CK_CEILING_H

#include <signal.h>

#include "kernels/ops.h"

#define CK_PRECISION_ROWS(X)                                                                                                   \
	X(F64, "f64")                                                                                                          \
	X(F32, "f32")                                                                                                          \
	X(TF32, "tf32") /* float32 on a device that was opened with tf32 */                                                    \
	X(BF16, "bf16")                                                                                                        \
	X(F16, "f16")

typedef enum ck_precision {
#define X(name, text) CK_PRECISION_##name,
	CK_PRECISION_ROWS(X)
#undef X
	    CK_PRECISIONS
} ck_precision;
extern const char *const ck_precision_names[]; /* ends with NULL */

/* In which precision the products of a graph are: `low` where that is a 16-bit type, else `real`. */
ck_precision ck_precision_of(ck_dtype real, ck_dtype low, bool tf32);

typedef struct ck_ceilings {          /* 0: not measured */
	double matmul[CK_PRECISIONS]; /* FLOP/s, a multiply-add counts two */
	double copy;                  /* bytes read and bytes written a second */
} ck_ceilings;

typedef struct ck_ceiling_options {
	unsigned precisions;               /* bit p: ck_precision p; F32 and TF32 go with how the device was opened */
	size_t room;                       /* bytes that may be held at once; what does not fit is smaller, or not measured */
	size_t caches;                     /* bytes: a copy of less would stay in them */
	const volatile sig_atomic_t *stop; /* measures nothing more once it is not zero; may be NULL */
} ck_ceiling_options;

/* What the device has no op for, or no room, is left at 0. Takes a second or so at most on a device of today. */
void ck_ceilings_take(const ck_backend *b, ck_device *d, const ck_ceiling_options *o, ck_ceilings *c);
/* The larger of both, figure by figure. */
void ck_ceilings_raise(ck_ceilings *c, const ck_ceilings *other);

#endif
