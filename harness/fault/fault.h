/* Faults: known mistakes of checkpointing code, each switched on in turn, to show that the checks catch it.
 *
 *     schedule ──(schedule)──▶ validator ──▶ layout, calls ──(program)──▶ run ──(before, after, meter)──▶ outcome ──▶ verdict
 *
 * A fault acts in one of the places in brackets, never in a check. Those of the loss scaler act between the steps of a short
 * training (scaler.c). Adding one is a row in the table of its file (state.c, random.c, values.c, gradients.c, precision.c,
 * memory.c, schedule.c, scaler.c), or a new file and a line in registry.c. */
#ifndef CK_FAULT_H
#define CK_FAULT_H

#include "harness/run/parity.h"

struct ck_call;

/* The run under way, as a fault sees it. */
typedef struct ck_faulty ck_faulty;

typedef struct ck_fault {
	const char *name;  /* "statistics-twice" */
	const char *field; /* one line: how it happens in the field */
	const char *needs; /* why it cannot apply where it found nothing to act on */
	bool stateful;     /* it is one with a running generator, and exists under that discipline only */
	/* Changes the schedule before it is checked. false: there is nothing to change. */
	bool (*schedule)(const ck_graph *g, ck_schedule *s);
	/* Changes the program after it was made. */
	bool (*program)(ck_program *p, const ck_schedule *s);
	/* Around every F and B. `before` returns false for an op that is not to run. They count in faulty->hits how often they
	 * changed anything. */
	bool (*before)(ck_faulty *f, const struct ck_call *c, ck_args *a, ck_step *step);
	void (*after)(ck_faulty *f, const struct ck_call *c, const ck_args *a, ck_step *step);
	/* What the meter says of the live peak, given what was seen. */
	size_t (*meter)(ck_faulty *f, size_t seen);
	/* At each moment of each step of a training with a scaler, whose state it may change. Such a fault has nothing else. */
	void (*scaler)(ck_faulty *f, ck_scaler_moment at, ck_scaler *s);
} ck_fault;

/* All faults, NULL-terminated, in the order of tables. */
const ck_fault *const *ck_faults(void);

/* The checks, by which a fault can be caught: the kinds of digests first. */
enum {
	CK_CHECK_PARAMETERS = CK_DIGEST_KINDS, /* a step must leave parameters and batch alone */
	CK_CHECK_MEMORY,
	CK_CHECK_VALIDATOR,
	CK_CHECK_WATCH,
	CK_CHECK_TRAINING, /* what each step of a training leaves: parameters, optimizer state */
	CK_CHECKS
};
const char *ck_check_name(int check);

typedef enum ck_fault_status { CK_FAULT_CAUGHT, CK_FAULT_MISSED, CK_FAULT_NOT_APPLICABLE } ck_fault_status;
extern const char *const ck_fault_status_names[]; /* "caught", "missed", "not-applicable" */

typedef struct ck_fault_verdict {
	ck_fault_status status; /* of a run without a fault: caught would be a false alarm */
	bool acted;             /* the fault changed anything */
	ck_rng_kind rng;        /* how the step drew */
	unsigned by;            /* bit c: check c noticed */
	/* Whether number, shapes and dtypes of what recomputes make differ from those of the plan without the fault: what a
	 * framework's check of recomputed tensors compares, when it looks at these only. */
	bool shapes_only;
	ck_err why; /* the first check's message; why it does not apply */
} ck_fault_verdict;

/* What faults are tried on: a plan's schedule in a session, with the outcome and the peak of plan none in the same. One with a
 * running generator does not apply where the session has none. */
typedef struct ck_fault_subject {
	const ck_session *session;
	const ck_schedule *schedule;
	const ck_outcome *baseline;
	uint64_t seed;
	const void *const *batch; /* as ck_memory_init takes it */
} ck_fault_subject;

/* One checked step, or for a fault of the scaler a short training, with the fault switched on; NULL: none is, and both are run.
 * CK_MISSING when there is no memory for it. */
ck_status ck_fault_try(const ck_fault_subject *s, const ck_fault *fault, ck_fault_verdict *v, ck_err *err);

#endif
