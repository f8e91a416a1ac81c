/* Threads around the vector kernels: how work is divided, whole-tensor forms of what several ops need, and the kernel of an op
 * that has nothing to prepare.
 *
 * How many threads take part and which span each gets follows from the shape and the device's thread count alone. Small tensors
 * stay in the calling thread: waking others costs more than it saves. Every tensor pointer below is the start of a whole tensor
 * (64-byte aligned); in place is allowed as in vec.h. */
#ifndef CK_PARALLEL_H
#define CK_PARALLEL_H

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/vec.h"

/* ---- dividing work ------------------------------------------------------------------------------------------------------- */

/* How many threads to use for a pass over so many elements: all or one, since libgomp ends and restarts the threads that a
 * smaller team leaves out. */
int ck__team(const ck_device *d, int64_t elements);

typedef struct ck_span {
	int64_t from, to;
} ck_span;

/* Part `part` of 0 .. n - 1 cut into `parts` nearly equal pieces whose borders are multiples of `unit`; may be empty. */
ck_span ck__span(int64_t n, int parts, int part, int64_t unit);

/* `CK_PARTS(team, part) { … }` runs the block once for each part, in parallel; also right when there are fewer threads. */
#define CK_PARTS(team, part)                                                                                                   \
	CK_PRAGMA(omp parallel for num_threads(team) schedule(static, 1) if ((team) > 1))                                      \
	for (int part = 0; part < (team); part++)
#define CK_PRAGMA(...) _Pragma(#__VA_ARGS__)

enum { CK_UNIT = 16 }; /* elements in 64 bytes of float32: spans that begin on such a border share no cache line */

/* n rounded up to a multiple of CK_UNIT: per-thread vectors in a workspace. */
int64_t ck__padded(int64_t n);

/* ---- whole tensors ------------------------------------------------------------------------------------------------------- */

void ck__act_forward(const ck_device *d, ck_act act, int64_t n, const ck_stored *x, ck_stored *y);
/* dx (+)= dy act'; `saved` as in vec.h. */
void ck__act_backward(const ck_device *d, ck_act act, int64_t n, const ck_stored *dy, const ck_stored *saved, ck_stored *dx,
		      bool acc);
void ck__add(const ck_device *d, int64_t n, const ck_stored *a, const ck_stored *b, ck_stored *y); /* y = a + b */
void ck__copy(const ck_device *d, int64_t n, const ck_stored *x, ck_stored *y);                    /* nothing when x == y */
/* The gradient of an input that is passed on unchanged: dx = dy, or dx += dy with acc. */
void ck__pass(const ck_device *d, int64_t n, const ck_stored *dy, ck_stored *dx, bool acc);

/* The dropout of a call: `p` from the op's attributes, the counter from the call. */
ck_drop ck__drop(double p, const ck_args *a);
void ck__dropout_forward(const ck_device *d, const ck_drop *drop, int64_t n, const ck_stored *x, const ck_stored *r,
			 ck_stored *y); /* y = r + dropout(x); r may be NULL */
void ck__dropout_backward(const ck_device *d, const ck_drop *drop, int64_t n, const ck_stored *dy, ck_stored *dx, bool acc);

/* sum[c] (+)= sum over rows of x(rows, cols): a bias gradient. */
void ck__column_sums(const ck_device *d, int64_t rows, int64_t cols, const ck_stored *x, float *sum, bool acc);

/* A linear op's backward before its matrix products, in one pass over (rows, cols):
 *     dz = act'(saved) dropout'(dy)   and   sum[c] (+)= column sums of dz.
 * drop NULL: no dropout. sum NULL: no bias gradient. dz may be dy. For ReLU `saved` is the op's output after dropout: where
 * that is positive both let the gradient through. */
void ck__epilogue_backward(const ck_device *d, ck_act act, const ck_drop *drop, int64_t rows, int64_t cols, const ck_stored *dy,
			   const ck_stored *saved, ck_stored *dz, float *sum, bool acc);

/* ---- kernels ------------------------------------------------------------------------------------------------------------- */

typedef void ck_kernel_run(const ck_kernel *, const ck_args *);

/* A kernel that is its desc and two functions. Refuses tensors of a dtype that the vector kernels do not have. */
ck_status ck__vec_kernel(ck_device *device, const ck_op_desc *desc, ck_kernel_run *forward, ck_kernel_run *backward,
			 ck_kernel **kernel, ck_err *err);

static inline const ck_cpu_kernel *ck__cpu_kernel(const ck_kernel *k)
{
	return (const ck_cpu_kernel *)k;
}

#endif
