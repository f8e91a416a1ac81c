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

/* The vector kernels over tensors that are stored as t. */
const struct ck_vec *ck__vec(const ck_device *d, ck_dtype t);

/* Where element i of a tensor is; NULL stays NULL. */
static inline void *ck__at(ck_dtype t, const ck_stored *tensor, int64_t i)
{
	return tensor ? (char *)tensor + i * (int64_t)ck_dtype_size(t) : NULL;
}

void ck__act_forward(const ck_device *d, ck_dtype t, ck_act act, int64_t n, const ck_stored *x, ck_stored *y);
/* dx (+)= dy act'; `saved` as in vec.h. */
void ck__act_backward(const ck_device *d, ck_dtype t, ck_act act, int64_t n, const ck_stored *dy, const ck_stored *saved,
		      ck_stored *dx, bool acc);
/* y = a + b. a and y are stored as t, b as tb: the same, or 16-bit where t is float32. */
void ck__add(const ck_device *d, int64_t n, ck_dtype t, const ck_stored *a, ck_dtype tb, const ck_stored *b, ck_stored *y);
/* y = x, or y += x with acc; one of the dtypes is float32 where they differ. Nothing is done when x == y and not acc: the gradient of
 * an input that is passed on unchanged. */
void ck__pass(const ck_device *d, int64_t n, ck_dtype tx, const ck_stored *x, ck_dtype ty, ck_stored *y, bool acc);

/* The dropout of a call: `p` from the op's attributes, the counter from the call. */
ck_drop ck__drop(double p, const ck_args *a);
/* y = r + dropout(x); r may be NULL. x is stored as tx, r and y as ty: the same, or float32. */
void ck__dropout_forward(const ck_device *d, const ck_drop *drop, int64_t n, ck_dtype tx, const ck_stored *x, ck_dtype ty,
			 const ck_stored *r, ck_stored *y);
/* dx (+)= dropout'(dy), likewise. */
void ck__dropout_backward(const ck_device *d, const ck_drop *drop, int64_t n, ck_dtype ty, const ck_stored *dy, ck_dtype tx,
			  ck_stored *dx, bool acc);

/* sum[c] (+)= sum over rows of x(rows, cols): a bias gradient. */
void ck__column_sums(const ck_device *d, ck_dtype t, int64_t rows, int64_t cols, const ck_stored *x, float *sum, bool acc);

/* A linear op's backward before its matrix products, in one pass over (rows, cols):
 *     dz = act'(saved) dropout'(dy)   and   sum[c] (+)= column sums of dz. */
typedef struct ck_epilogue {
	ck_act act;
	const ck_drop *drop; /* NULL: no dropout */
	int64_t rows, cols;
	ck_dtype ty, tz; /* of dy, and of all else: the same; or float32 and 16-bit, without an activation */
	const ck_stored *dy;
	const ck_stored
	    *saved;    /* for ReLU the op's output after dropout: where that is positive both let the gradient through */
	ck_stored *dz; /* may be dy, where that is of the same dtype */
	float *sum;    /* NULL: no bias gradient */
	bool acc;
} ck_epilogue;

void ck__epilogue_backward(const ck_device *d, const ck_epilogue *e);

/* ---- kernels ------------------------------------------------------------------------------------------------------------- */

typedef void ck_kernel_run(const ck_kernel *, const ck_args *);

/* A kernel that is its desc and two functions. Refuses arithmetic in another dtype than float32. */
ck_status ck__vec_kernel(ck_device *device, const ck_op_desc *desc, ck_kernel_run *forward, ck_kernel_run *backward,
			 ck_kernel **kernel, ck_err *err);

static inline const ck_cpu_kernel *ck__cpu_kernel(const ck_kernel *k)
{
	return (const ck_cpu_kernel *)k;
}

#endif
