/* The vector kernels: loops that the compiler vectorises, built once per instruction set and storage type.
 *
 *                     f32 bf16 f16
 *     vec_*.c ──▶ v4   ▪   ▪   ▪   (AVX-512) ─┐
 *                 v3   ▪   ▪   ▪   (AVX2) ────┼──▶ ck__vec_choose() ──▶ device->vec
 *                 base ▪   ▪   ▪   ───────────┘
 *
 * A kernel here runs in the calling thread over the span that it is given, draws no memory and keeps no state. Threads stand
 * around them: parallel.h has whole-tensor forms of the common ones, and what an op needs to split its work itself.
 *
 * Any output may be the very same pointer as any input (in place); they may not overlap otherwise. Sums are formed in an
 * order that depends on the extents alone, never on addresses. NaNs in the input come out as NaNs.
 *
 * ck_stored stands for elements as a build stores them: float32, or one of the 16-bit types, by get() and put() in vec_impl.h. All
 * arithmetic, parameters of norms, statistics and partial sums are float32; a result is rounded once. */
#ifndef CK_VEC_H
#define CK_VEC_H

#include "kernels/ops.h"

typedef void ck_stored;

/* One op's dropout in one step; the rule is in kernels/philox.h. */
typedef struct ck_drop {
	uint64_t seed;
	uint32_t step, op;
	uint64_t block;      /* of element 0 */
	uint32_t threshold;  /* an element is kept when its word is at least this */
	float scale;         /* of what is kept: 1 / (1 - p) */
	const uint8_t *mask; /* the op's, whole: its bytes are the words; NULL: they are drawn */
} ck_drop;

typedef struct ck_vec_act {
	/* By ck_act. forward: y = act(x). backward: dx = dy act', added to dx with acc. `saved` is what the derivative is
	 * found from: y for ReLU, x for both GELUs, unused (may be NULL) for none. */
	void (*forward[4])(int64_t n, const ck_stored *x, ck_stored *y);
	void (*backward[4])(int64_t n, const ck_stored *dy, const ck_stored *saved, ck_stored *dx, bool acc);
	void (*add)(int64_t n, const ck_stored *a, const ck_stored *b, ck_stored *y); /* y = a + b */
	void (*add_wide)(int64_t n, const float *a, const ck_stored *b, float *y);    /* the same, onto float32 */
	void (*widen)(int64_t n, const ck_stored *x, float *y);                       /* y = x */
	void (*narrow)(int64_t n, const float *x, ck_stored *y, bool acc);            /* y = x, or y += x with acc */
} ck_vec_act;

typedef struct ck_vec_drop {
	/* Elements first .. first + n - 1 of the op; the pointers are those of element `first`, a multiple of 4.
	 * forward: y = r + dropout(x), r may be NULL. backward: dx = dropout'(dy), added to dx with acc. wide: r, y and dy are
	 * float32. */
	void (*forward)(const ck_drop *d, int64_t first, int64_t n, const ck_stored *x, const ck_stored *r, ck_stored *y);
	void (*forward_wide)(const ck_drop *d, int64_t first, int64_t n, const ck_stored *x, const float *r, float *y);
	void (*backward)(const ck_drop *d, int64_t first, int64_t n, const ck_stored *dy, ck_stored *dx, bool acc);
	void (*backward_wide)(const ck_drop *d, int64_t first, int64_t n, const float *dy, ck_stored *dx, bool acc);
	/* dx = dy scale where y > 0 (or NaN), else 0: of ReLU and dropout together, no number need be drawn again. */
	void (*relu_backward)(const ck_drop *d, int64_t n, const ck_stored *dy, const ck_stored *y, ck_stored *dx);
} ck_vec_drop;

typedef struct ck_vec_norm ck_vec_norm; /* vec_norm.h: batch norm, layer norm */

typedef struct ck_vec_rows {
	/* sum[c] += sum over rows of x[row * stride + c] */
	void (*column_sums)(int64_t rows, int64_t cols, int64_t stride, const ck_stored *x, float *sum);
	/* p = softmax of s[0 .. n-1]; softmax_backward: ds = p (dp - <p, dp>) */
	void (*softmax)(int64_t n, const ck_stored *s, ck_stored *p);
	void (*softmax_backward)(int64_t n, const ck_stored *p, const ck_stored *dp, ck_stored *ds, bool acc);
	/* log(sum(exp(x[0 .. n-1]))); and dx = (exp(x - lse)) * scale, added to dx with acc */
	float (*log_sum_exp)(int64_t n, const ck_stored *x);
	void (*exp_scaled)(int64_t n, float lse, float scale, const ck_stored *x, ck_stored *dx, bool acc);
} ck_vec_rows;

typedef struct ck_vec_pool {
	/* One place of `channels` values, out of n places of the other side; `place` is the position in the window that joins
	 * them. max: y, and in `at` whose it was. max_backward: dx (+)= sum of dy[k] where at[k] is place[k]. sum: y (+)=
	 * scale times the sum of x[k]. */
	void (*max)(int64_t channels, int n, const ck_stored *const *x, const uint8_t *place, ck_stored *y, uint8_t *at);
	void (*max_backward)(int64_t channels, int n, const ck_stored *const *dy, const uint8_t *const *at,
			     const uint8_t *place, ck_stored *dx, bool acc);
	void (*sum)(int64_t channels, int n, const ck_stored *const *x, float scale, ck_stored *y, bool acc);
} ck_vec_pool;

/* An optimizer's step as it goes through the elements: the rules of kernels/ops.h, all factors worked out. */
typedef struct ck_vec_rule {
	float lr;           /* ADAMW: lr / (1 - beta1^t) */
	float decay;        /* SGD: what is added to g, times w. ADAMW: what w is multiplied by, 1 - lr weight_decay */
	float first;        /* SGD: momentum. ADAMW: beta1 */
	float first_rest;   /* ADAMW: 1 - beta1 */
	float second;       /* ADAMW: beta2 */
	float second_rest;  /* ADAMW: 1 - beta2 */
	float second_scale; /* ADAMW: 1 / sqrt(1 - beta2^t) */
	float eps;          /* ADAMW */
} ck_vec_rule;

typedef struct ck_vec_update {
	/* n elements of the gradient g, the parameter w and the state m, v. SGD without momentum: m is NULL. */
	void (*sgd)(const ck_vec_rule *r, int64_t n, const float *g, float *w, float *m);
	void (*adamw)(const ck_vec_rule *r, int64_t n, const float *g, float *w, float *m, float *v);
	/* g *= factor; true when any element was infinite or NaN before. */
	bool (*unscale)(float factor, int64_t n, float *g);
} ck_vec_update;

struct ck_vec {
	const ck_vec_act *act;
	const ck_vec_drop *drop;
	const ck_vec_norm *norm;
	const ck_vec_rows *rows;
	const ck_vec_pool *pool;
	const ck_vec_update *update;
};

/* An instruction set's tables. */
typedef struct ck_vec_set {
	const char *name; /* "v4", "v3" (x86-64 levels: AVX-512, AVX2) or "base" */
	const struct ck_vec *f32, *bf16, *f16;
} ck_vec_set;

/* The best one for this processor; fixed for a machine. */
const ck_vec_set *ck__vec_choose(void);

#endif
