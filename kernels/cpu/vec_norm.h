/* The vector kernels of the two norms. As those of vec.h: `rows` consecutive rows of `cols` elements, one thread.
 *
 * Batch norm normalises per column, so its rows are split over threads and per-thread results merged; layer norm normalises per
 * row, and only its parameter gradients cross rows. */
#ifndef CK_VEC_NORM_H
#define CK_VEC_NORM_H

#include "kernels/cpu/vec.h"

/* The backward of batch norm for one span of rows, where dz is dy, or dy where y > 0 if y is given (ReLU):
 *     dx = scale (dz - offset - (x - mean) slope)     dr = dz
 * Vectors of cols: scale = gamma rstd, offset = mean of dz, slope = rstd^2 mean of dz (x - mean). */
typedef struct ck_bn_gradient {
	const ck_stored *dy, *y, *x; /* (rows, cols) */
	const float *mean, *scale, *offset, *slope;
	ck_stored *dx, *dr; /* (rows, cols); dr may be NULL, or dy itself */
	bool acc_x, acc_r;
} ck_bn_gradient;

/* What a layer norm's backward knows of its input: xhat, or else x and its mean; NULL what is not there. */
typedef struct ck_ln_saved {
	const ck_stored *xhat;    /* (rows, cols) */
	const float *x;           /* (rows, cols) */
	const float *mean, *rstd; /* (rows) */
} ck_ln_saved;

struct ck_vec_norm {
	/* Per column: mean[c], and m2[c] = sum of (x - mean)^2. scratch: 2 cols. */
	void (*moments)(int64_t rows, int64_t cols, const ck_stored *x, float *mean, float *m2, float *scratch);
	/* Moments of na and of nb rows become those of all, in a. */
	void (*merge)(int64_t cols, int64_t na, float *mean_a, float *m2_a, int64_t nb, const float *mean_b, const float *m2_b);
	/* y = (x - mean) scale + beta + r, then ReLU if asked; r may be NULL. */
	void (*apply)(int64_t rows, int64_t cols, const ck_stored *x, const float *mean, const float *scale, const float *beta,
		      const ck_stored *r, bool relu, ck_stored *y);
	/* Sums over rows of dz and of dz (x - mean); x NULL: of dz alone. scratch: 2 cols. */
	void (*gradient_sums)(int64_t rows, int64_t cols, const ck_stored *dy, const ck_stored *y, const ck_stored *x,
			      const float *mean, float *sum, float *sum_x, float *scratch);
	void (*gradient)(int64_t rows, int64_t cols, const ck_bn_gradient *g);

	/* Layer norm. Stashes xhat where that is given, else the mean. */
	void (*layer)(int64_t rows, int64_t cols, float eps, const float *x, const float *gamma, const float *beta,
		      ck_stored *y, ck_stored *xhat, float *mean, float *rstd);
	/* dgamma[c] += sum over rows of dy xhat, unless nothing is saved that tells xhat; dbeta[c] += sum of dy. */
	void (*layer_sums)(int64_t rows, int64_t cols, const ck_stored *dy, const ck_ln_saved *saved, float *dgamma,
			   float *dbeta);
	void (*layer_gradient)(int64_t rows, int64_t cols, const ck_stored *dy, const ck_ln_saved *saved, const float *gamma,
			       float *dx, bool acc);
};

#endif
