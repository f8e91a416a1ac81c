/* Parity: what a step left behind, as digests, and the verdict of one plan against plan `none`.
 *
 * A digest is XXH3-128 (xxhash) over the raw little-endian bytes of the tensors of one kind, in order of value; anyone can
 * check it. */
#ifndef CK_PARITY_H
#define CK_PARITY_H

#include "harness/run/run.h"

struct ck_hook;
struct ck_noise;

typedef enum ck_digest_kind {
	CK_DIGEST_LOSS,
	CK_DIGEST_GRADIENTS, /* all parameter gradients */
	CK_DIGEST_INPUT,     /* gradient of the inputs that have one */
	CK_DIGEST_STATE,     /* buffers after the step: BatchNorm mean, variance, count; counters */
	CK_DIGEST_FORWARD,   /* buffers and loss after the forward alone, when the loss has been computed first */
	CK_DIGEST_RANDOM,    /* the random stream's position */
	CK_DIGEST_SCALER,    /* ck_scaler_state after the step, where the session has a scaler */
	CK_DIGEST_KINDS
} ck_digest_kind;
extern const char *const ck_digest_names[CK_DIGEST_KINDS]; /* "loss", "gradients", …, in this order */

typedef struct ck_digest {
	uint64_t hi, lo;
} ck_digest;

/* Everything a step leaves: a digest per value (buffers and gradients) so that a difference can be named, and one per kind. */
typedef struct ck_outcome {
	double loss;
	ck_digest kind[CK_DIGEST_KINDS];
	bool has[CK_DIGEST_KINDS]; /* the case has this kind at all */
	ck_digest *value;          /* by value: its gradient's digest, or a buffer's content's */
	ck_digest *forward;        /* by value: a buffer's content's or the loss's, after the forward alone */
	int nvalues;
	size_t live_peak;
	ck_run_check broken; /* when the run was refused: by which check */
	/* What equality with this outcome is worth. A gradient that is zero in every element is the same under any plan that
	 * writes zeros, right or wrong: dead ReLUs and dropout that drops all bring it about. No model has one by its nature: what
	 * cancels (the bias of a convolution before BatchNorm, the part of c_attn's bias that is added to all keys) leaves
	 * rounding behind, whose bits a plan has to get right like any others. */
	ck_value not_finite;  /* the first value whose gradient (of the loss: which itself) is not finite; CK_NONE */
	bool *zero;           /* by value: it has a gradient, and that is zero in every element */
	int gradients, zeros; /* how many gradients there are, and how many of them are zero in every element */
	ck_rng_order order;   /* the program's: why masks may be others */
	double scale;         /* that the last step's loss gradient had; 1 without a scaler */
	int skipped;          /* steps before that one, which overflowed */
} ck_outcome;

/* A comparison that cannot fail is not passed: it proves nothing. Within noise: noise.h. */
typedef enum ck_verdict { CK_BITWISE, CK_WITHIN_NOISE, CK_PARITY_FAILED, CK_PROVES_NOTHING, CK_VERDICTS } ck_verdict;
extern const char *const ck_verdict_names[CK_VERDICTS]; /* "bitwise", "within-noise", "failed", "proves-nothing" */

static inline bool ck_verdict_passed(ck_verdict v)
{
	return v == CK_BITWISE || v == CK_WITHIN_NOISE;
}

/* Resets the buffers, runs one checked step (step 0 of the seed) and takes the outcome. Memory must hold initialised values.
 * CK_FAILED: the run itself was refused.
 *
 * With a scaler, a step that overflows is followed by the next, as in training, until one does not, or the scale is below 1:
 * a step of infinities alone would prove nothing. The digests are over what all of these steps left, the loss and what is not
 * finite are the last one's. Gradients are unscaled, those of inputs as well. */
ck_status ck_outcome_take(const ck_program *p, ck_memory *m, uint64_t seed, ck_outcome *o, ck_err *err);
/* The same with something that meddles (program.h), for faults, and with what looks at the values (noise.h). NULL: nothing does. */
ck_status ck__outcome_take(const ck_program *p, ck_memory *m, uint64_t seed, const struct ck_hook *hook, struct ck_noise *noise,
			   ck_outcome *o, ck_err *err);
void ck_outcome_free(ck_outcome *o);

/* Whether equality with the outcome proves anything at all; `why` says what speaks against it. */
bool ck_outcome_proves(const ck_graph *g, const ck_outcome *o, ck_err *why);

/* Compares with the baseline's; on a difference `why` names the first value that differs, and how many do. CK_PROVES_NOTHING where
 * the baseline is such that equality would prove nothing. */
ck_verdict ck_outcome_compare(const ck_graph *g, const ck_outcome *baseline, const ck_outcome *o, ck_err *why);
/* The same where o is of a forward-only pass: what a forward leaves is compared, that is loss, buffers and random stream. */
ck_verdict ck_outcome_compare_forward(const ck_graph *g, const ck_outcome *baseline, const ck_outcome *o, ck_err *why);
/* What may be why o differs, to follow a message: draws in another order. "" where they are not. Room for CK_RNG_ORDER_TEXT
 * (program.h). */
const char *ck__outcome_cause(const ck_graph *g, const ck_outcome *baseline, const ck_outcome *o, char *text);

#endif
