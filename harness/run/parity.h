/* Parity: what a step left behind, as digests, and the verdict of one plan against plan `none`.
 *
 * A digest is XXH3-128 (xxhash) over the raw little-endian bytes of the tensors of one kind, in order of value; anyone can
 * check it. */
#ifndef CK_PARITY_H
#define CK_PARITY_H

#include "harness/run/run.h"

typedef enum ck_digest_kind {
	CK_DIGEST_LOSS,
	CK_DIGEST_GRADIENTS, /* all parameter gradients */
	CK_DIGEST_INPUT,     /* gradient of the inputs that have one */
	CK_DIGEST_STATE,     /* buffers after the step: BatchNorm mean, variance, count */
	CK_DIGEST_RANDOM,    /* the random stream's position */
	CK_DIGEST_SCALER,    /* ck_scaler_state after the step, where the session has a scaler */
	CK_DIGEST_KINDS
} ck_digest_kind;
extern const char *const ck_digest_names[CK_DIGEST_KINDS]; /* "loss", "gradients", "input", "state", "random", "scaler" */

typedef struct ck_digest {
	uint64_t hi, lo;
} ck_digest;

/* Everything a step leaves: a digest per value (buffers and gradients) so that a difference can be named, and one per kind. */
typedef struct ck_outcome {
	double loss;
	ck_digest kind[CK_DIGEST_KINDS];
	bool has[CK_DIGEST_KINDS]; /* the case has this kind at all */
	ck_digest *value;          /* by value: its gradient's digest, or a buffer's content's */
	int nvalues;
	size_t live_peak;
	bool finite;         /* loss and all gradients are finite */
	ck_run_check broken; /* when the run was refused: by which check */
	bool some_nonzero;   /* some gradient is not zero: else the comparison proves nothing */
	double scale;        /* that the last step's loss gradient had; 1 without a scaler */
	int skipped;         /* steps before that one, which overflowed */
} ck_outcome;

typedef enum ck_verdict { CK_BITWISE, CK_PARITY_FAILED } ck_verdict;
extern const char *const ck_verdict_names[]; /* "bitwise", "failed" */

/* Resets the buffers, runs one checked step (step 0 of the seed) and takes the outcome. Memory must hold initialised values.
 * CK_FAILED: the run itself was refused.
 *
 * With a scaler, a step that overflows is followed by the next, as in training, until one does not, or the scale is below 1:
 * a step of infinities alone would prove nothing. The digests are over what all of these steps left, the loss and `finite` are
 * the last one's. Gradients are unscaled, those of inputs as well. */
ck_status ck_outcome_take(const ck_program *p, ck_memory *m, uint64_t seed, ck_outcome *o, ck_err *err);
/* The same with something that meddles (program.h), for faults. NULL: nothing does. */
ck_status ck__outcome_take(const ck_program *p, ck_memory *m, uint64_t seed, const struct ck_hook *hook, ck_outcome *o,
			   ck_err *err);
void ck_outcome_free(ck_outcome *o);

/* Compares with the baseline's; on a difference `why` names the first value that differs, and how many do. */
ck_verdict ck_outcome_compare(const ck_graph *g, const ck_outcome *baseline, const ck_outcome *o, ck_err *why);

#endif
