/* Threads around the vector kernels: how work is divided, and whole-tensor forms of what several ops need.
 *
 * How many threads take part and which span each gets follows from the shape and the device's thread count alone. Small tensors
 * stay in the calling thread: waking others costs more than it saves. Every pointer below is the start of a whole tensor
 * (64-byte aligned); in place is allowed as in vec.h. */
#ifndef CK_PARALLEL_H
#define CK_PARALLEL_H

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/vec.h"

/* How many threads to use for a pass that touches so many elements. */
int ck__team(const ck_device *d, int64_t elements);

typedef struct ck_span {
	int64_t from, to;
} ck_span;

/* Part `part` of 0 .. n - 1 cut into `parts` nearly equal pieces whose borders are multiples of `unit` (the last may be
 * empty). */
ck_span ck__span(int64_t n, int parts, int part, int64_t unit);

/* The dropout of a call: `p` from the op's attributes, the counter from the call. */
ck_drop ck__drop(double p, const ck_args *a);

void ck__act_forward(const ck_device *d, ck_act act, int64_t n, const ck_stored *x, ck_stored *y);
void ck__act_backward(const ck_device *d, ck_act act, int64_t n, const ck_stored *dy, const ck_stored *saved, ck_stored *dx,
		      bool acc);
void ck__add(const ck_device *d, int64_t n, const ck_stored *a, const ck_stored *b, ck_stored *y); /* y = a + b */
void ck__copy(const ck_device *d, int64_t n, const ck_stored *x, ck_stored *y); /* nothing to do when x == y */
/* The gradient of an input that is passed through unchanged: dx = dy, or dx += dy with acc. */
void ck__pass(const ck_device *d, int64_t n, const ck_stored *dy, ck_stored *dx, bool acc);
void ck__dropout_forward(const ck_device *d, const ck_drop *drop, int64_t n, const ck_stored *x, const ck_stored *r,
			 ck_stored *y); /* y = r + dropout(x); r may be NULL */
void ck__dropout_backward(const ck_device *d, const ck_drop *drop, int64_t n, const ck_stored *dy, ck_stored *dx, bool acc);

/* sum[c] (+)= sum over rows of x(rows, cols): a bias gradient. */
void ck__column_sums(const ck_device *d, int64_t rows, int64_t cols, const ck_stored *x, float *sum, bool acc);

/* A linear op's backward before its matrix products, in one pass over (rows, cols):
 *     dz = act'(saved) * dropout'(dy)  and  sum[c] (+)= column sums of dz.
 * drop NULL: no dropout. sum NULL: no bias gradient. dz may be dy. */
void ck__epilogue_backward(const ck_device *d, ck_act act, const ck_drop *drop, int64_t rows, int64_t cols, const ck_stored *dy,
			   const ck_stored *saved, ck_stored *dz, float *sum, bool acc);

#endif
