/* Running: kernels bound to a graph, programs bound to memory, one training step.
 *
 *     graph ──▶ ck_session (kernels, workspace sizes) ─┐
 *     schedule ──▶ trace, layout ──────────────────────┴─▶ ck_program ──▶ ck_program_run(program, memory)
 */
#ifndef CK_RUN_H
#define CK_RUN_H

#include "harness/plan/layout.h"
#include "harness/run/rng.h"
#include "harness/run/scaler.h"

/* A graph on a device: every op's kernel, prepared once. Borrows graph and device. */
typedef struct ck_session {
	const ck_graph *graph;
	const ck_backend *backend;
	ck_device *device;
	ck_kernel **kernels;                            /* by op; equal ops share */
	size_t *workspace_forward, *workspace_backward; /* by op */
	struct ck_kernel_table *table;                  /* private */
	bool trains;                                    /* ck_session_train was called */
	ck_optimizer optimizer;
	ck_rng_kind rng;           /* the counter, unless ck_session_rng said otherwise */
	bool accumulates;          /* ck_session_accumulate was called */
	ck_scaler_options *scaler; /* of its steps; NULL: none. Owned */
} ck_session;

ck_status ck_session_open(const ck_graph *g, const ck_backend *b, ck_device *d, ck_session **s, ck_err *err);
void ck_session_close(ck_session *s);
/* Makes it a session for training: the programs that are made from here on hold the optimizer's state as well. */
void ck_session_train(ck_session *s, const ck_optimizer *o);
/* How the programs that are made from here on draw random numbers, all of a session's alike. */
void ck_session_rng(ck_session *s, ck_rng_kind rng);
/* The programs that are made from here on keep the sums of the parameters' gradients: each run adds to them. */
void ck_session_accumulate(ck_session *s);
/* Steps scale the loss's gradient and unscale those that they leave (ck_outcome_take, ck_train). */
void ck_session_scale(ck_session *s, const ck_scaler_options *o);
ck_workspaces ck_session_workspaces(const ck_session *s);

/* A schedule made ready: checked, laid out, every pointer resolved to an offset. Borrows the session. */
typedef struct ck_program {
	const ck_session *session;
	ck_trace trace;
	ck_layout layout;
	struct ck_call *calls; /* private */
	int ncalls;
	size_t *gradient; /* private: offset of each value's gradient that stays; of its sum, where it accumulates */
	ck_rng_cost rng;
	ck_rng_order rng_order; /* of a stateful session's program */
} ck_program;

ck_status ck_program_make(const ck_session *s, const ck_schedule *schedule, ck_program **p, ck_err *err);
void ck_program_free(ck_program *p);

/* One piece of device memory in which programs of one session take turns. */
typedef struct ck_memory {
	const ck_session *session;
	char *base;
	size_t bytes;
	ck_rng rng; /* goes on from step to step */
} ck_memory;

/* bytes: the largest arena of the programs that will run in it. CK_MISSING, with the figure, when there is not so much. */
ck_status ck_memory_open(const ck_session *s, size_t bytes, ck_memory *m, ck_err *err);
void ck_memory_close(ck_memory *m);

/* Gives parameters, buffers and the batch their start values: those that `given` holds, by value, as host data of that value's
 * dtype and bytes; all where it is NULL (or `given` is) are drawn from the seed. The optimizer's state and the sums of gradients
 * start as zeros, the running generator at the stream's beginning. layout: any program's of the session. */
void ck_memory_init(ck_memory *m, const ck_layout *l, uint64_t seed, const void *const *given);
/* Gives only the buffers and the generator their start values again: all that a step changes among what persists, but for sums of
 * gradients. */
void ck_memory_reset(ck_memory *m, const ck_layout *l, uint64_t seed);
/* The sums of gradients are zeros again. Nothing where it does not accumulate. */
void ck_memory_clear_sums(ck_memory *m, const ck_layout *l);
/* Puts another batch in: by input value as above, NULL where what is there stays. */
void ck_memory_batch(ck_memory *m, const ck_layout *l, const void *const *batch);

/* The checks that a run makes of itself. */
typedef enum ck_run_check {
	CK_RUN_HELD,       /* none was broken */
	CK_RUN_WATCH,      /* whose bytes are read and written */
	CK_RUN_MEMORY,     /* bytes held against the prediction: at every instruction, and the peak */
	CK_RUN_PARAMETERS, /* the step changed a parameter or the batch */
} ck_run_check;

typedef struct ck_step {
	uint64_t seed;
	uint32_t step;               /* counts steps: dropout draws other masks in each */
	double dloss;                /* the loss's own gradient; 0: not set, which is 1 */
	bool check;                  /* poison what is dropped or not yet written, own every byte, find the live peak; slow */
	const uint8_t *const *masks; /* NULL, or by op: a dropout mask in device memory, to be taken instead of the counter's */
	/* An activation that is to be read, though it may be gone when the step ends: copied to `capture`, host memory of its
	 * bytes, when its op has run for the first time. capture NULL: none. */
	ck_value captured;
	void *capture;
	/* Called when the loss has been computed for the first time: the forward is over. NULL: nobody wants to know. */
	void (*forward_done)(void *user);
	void *user;
	/* out */
	uint64_t
	    random_draws; /* the stream's position. By the counter: a sum of hashes of what first forwards drew, seed, step, op and
				  how many elements. Of a running generator: blocks drawn so far */
	size_t live_peak;    /* with check: the most bytes owned at once, persistent ones included; found from what happens, not
			       from the trace */
	ck_run_check broken; /* which check it was, when the run returns CK_FAILED */
	double *op_seconds;  /* NULL, or room for 2 * nops: adds each call's time to [op] (F) or [nops + op] (B) */
	const struct ck_hook *hook; /* NULL, or what meddles with the calls: a fault (harness/fault) */
} ck_step;

/* Runs the program once. Without check nothing is allocated, and the device may still be at work when it returns: what reads from it
 * waits. CK_FAILED when a check of the run itself fails (overlap,
 * prediction). */
ck_status ck_program_run(const ck_program *p, ck_memory *m, ck_step *step, ck_err *err);

/* Where a value or gradient lies after the run: parameters, buffers, inputs, and the gradients that stay. NULL when it has
 * none. */
void *ck_program_value(const ck_program *p, const ck_memory *m, ck_value v);
void *ck_program_gradient(const ck_program *p, const ck_memory *m, ck_value v);
/* The optimizer's tensor k for trained parameter v. */
void *ck_program_state(const ck_program *p, const ck_memory *m, int k, ck_value v);
double ck_program_loss(const ck_program *p, const ck_memory *m);

#endif
