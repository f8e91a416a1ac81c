/* The noise floor: what a device that adds in any order (ck_open_options.fast) makes of one and the same step, and whether a plan's
 * step differs from the baseline's by more than that.
 *
 *     baseline, run 1 ── kept whole ──┬──────────────────┐
 *     baseline, runs 2 to 5 ── differences: the largest  │
 *                              is the floor of a tensor  │
 *     a plan ─────────────────────────────────── difference ── at most 4 floors and 4 roundings? ──▶ within-noise, or failed
 *
 * A difference is taken for each tensor (gradients, buffers, the loss; buffers and loss after the forward alone as well), in two norms: L2,
 * in which the rounding of sums adds up to what is small beside the whole tensor (Higham, Accuracy and Stability of Numerical
 * Algorithms, 2002, section 4.2: in any order a sum errs by at most (n - 1) u times the sum of magnitudes; by about sqrt(n) u, Higham
 * and Mary, SIAM J. Sci. Comput. 41, 2019), and the largest element, which a single wrong one cannot hide from.
 *
 * Why 4: were the plan one more run of the baseline, it would be the farthest of five from the first in one case of five, so that 1 will
 * not do; and what is formed twice in a recompute has noise twice, sqrt 2 times as much. With normal noise of that size a tensor of 4
 * elements or more is never seen beyond 4 floors in 30,000 trials, one of 2 in 8 of 10,000, one of 1 in 8 of 1,000: but these have a noise
 * of few roundings, which the 4 roundings cover, as they do a floor that is 0 by luck. A rounding is that of the narrowest type in
 * which the graph stores or multiplies: u = 2^-24 in float32, 2^-11 in float16 and TF32, 2^-8 in bfloat16, times the norm of run 1.
 *
 * No order of sums is in the random stream's position, the scaler's state and buffers of whole numbers: they must be equal in every
 * bit, as ever. */
#ifndef CK_NOISE_H
#define CK_NOISE_H

#include "harness/run/parity.h"

enum { CK_NOISE_RUNS = 5 }; /* of the baseline */
enum { CK_NOISE_FLOORS = 4, CK_NOISE_ROUNDINGS = 4 };

typedef enum ck_norm { CK_NORM_L2, CK_NORM_MAX, CK_NORMS } ck_norm;
extern const char *const ck_norm_names[]; /* "l2", "max"; ends with NULL */

typedef struct ck_noise ck_noise;

/* tf32: products round their operands to it. Borrows the graph. */
ck_noise *ck_noise_open(const ck_graph *g, bool tf32);
void ck_noise_close(ck_noise *n); /* NULL is fine */

/* The outcome that was taken last (ck__outcome_take with this noise) is one more run of the baseline; the first is the one that all
 * others are held against. */
void ck_noise_add(ck_noise *n, const ck_outcome *o);
int ck_noise_runs(const ck_noise *n);

/* Of a comparison: the tensor that came closest to what it is allowed, or went farthest beyond. */
typedef struct ck_noise_found {
	ck_value tensor; /* its gradient; itself, for a buffer or the loss. CK_NONE: nothing differs */
	bool forward;    /* as it was after the forward alone */
	ck_norm norm;
	double difference, floor, allowed; /* parts of run 1's norm; of 1 where that is 0 */
} ck_noise_found;

/* Compares the outcome that was taken last with the baseline's first. CK_BITWISE: equal digests, as ck_outcome_compare has them.
 * CK_PROVES_NOTHING also where the noise is as large as the gradients. `why` names tensor, difference and floor. */
ck_verdict ck_noise_compare(const ck_noise *n, const ck_outcome *baseline, const ck_outcome *o, ck_noise_found *found,
			    ck_err *why);
/* The same where o is of a forward-only pass. */
ck_verdict ck_noise_compare_forward(const ck_noise *n, const ck_outcome *baseline, const ck_outcome *o, ck_err *why);

/* A piece of a tensor of the run under way, `at` bytes from its start; pieces come in order. The loss: both as a value (once all is
 * done) and with forward. Where a run has several steps, the last one's counts. */
void ck__noise_see(ck_noise *n, ck_value v, bool forward, size_t at, const void *data, size_t bytes);

#endif
