/* Training: a program step after step, the optimizer's step after each, and what every step left behind.
 *
 *     batch k ──▶ forward and backward, checked ──▶ [scaler: unscale] ──▶ update of each trained parameter ──▶ digests,
 *        └─── N times, gradients summed ──┘               └─ overflow: no update                    against the baseline's
 *
 * Every step is a checked one (ck_step.check), so that its live bytes are those that were predicted: they are the same at
 * every step. Gradients lie in the arena until the update has read them. The scaler is the session's (ck_session_scale). */
#ifndef CK_TRAIN_H
#define CK_TRAIN_H

#include <signal.h>

#include "harness/run/batch.h"
#include "harness/run/parity.h"

/* How a training went. ck_course_free. */
typedef struct ck_course {
	int steps;         /* those that are finished and hold against the baseline */
	double *loss;      /* (steps) of the step's batch, before the update; the mean over its micro-batches */
	ck_digest *digest; /* (steps) after the update, of all tensors: parameters, buffers and the loss in order of value, then
			      the optimizer's state, the random stream's position, and the scaler's state if there is one */
	uint64_t **tensor; /* (steps) one hash for each of these, in that order */
	int tensors;
	int64_t *right;     /* (steps) rows of the batch whose target had the greatest logit */
	int64_t rows;       /* of a step: of all its micro-batches */
	bool scaled;        /* there is a scaler */
	double *scale;      /* (steps) of the step's loss gradient */
	bool *skipped;      /* (steps) the step overflowed, so that nothing was updated */
	int skips;          /* how many were */
	double accuracy;    /* the share of right ones over the last epoch's steps (or as many as there were), each step's as it
			      was before its update, dropout and batch statistics as in training. One step where the batch stays */
	int accuracy_steps; /* over how many steps that is */
	size_t live_peak;
} ck_course;

typedef struct ck_train_options {
	uint64_t seed;
	int steps;
	/* Micro-batches a step, each one's loss gradient divided by as many; 0 or 1: one. For more the session accumulates. */
	int accumulate;
	ck_batch *batch;                   /* micro-batch k, counted through all steps, is batch k; NULL: the start's, always */
	const void *const *start;          /* without batch: as ck_memory_init takes it; NULL: all is drawn from the seed */
	const volatile sig_atomic_t *stop; /* when it becomes non-zero, the step under way is finished; may be NULL */
	void (*progress)(void *user, int step, double loss); /* after each step; may be NULL */
	void *user;
	const struct ck_hook *hook; /* NULL, or what meddles (program.h) */
} ck_train_options;

/* Trains from the start values that the seed gives; the session is one for training. `baseline`: the course that every step
 * is held against, bit by bit, as far as it goes; NULL for the baseline itself. CK_FAILED: a step differs (the message names
 * it and the first tensor that does), a check of the run did not hold, or the loss is not finite any more. The steps before
 * stay in the course in any case. */
ck_status ck_train(const ck_program *p, ck_memory *m, const ck_train_options *o, const ck_course *baseline, ck_course *c,
		   ck_err *err);
void ck_course_free(ck_course *c);

#endif
