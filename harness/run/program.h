/* Inside a program: its instructions with every pointer resolved to an offset in the arena. Shared by the files of run/. */
#ifndef CK_PROGRAM_H
#define CK_PROGRAM_H

#include "harness/run/run.h"

#define CK_NOWHERE ((size_t)-1) /* the offset of what is not there: NULL */

/* What an F does to a running generator; rng.c plans it. */
typedef struct ck_rng_moves {
	int save;    /* first forward: where the state before it is kept for recomputes, or CK_NONE */
	int restore; /* recompute: which of these is set before it, or CK_NONE */
	bool enter;  /* recompute, first of its run: the outer state is kept before it … */
	bool leave;  /* … and put back after the last */
} ck_rng_moves;

typedef struct ck_call {
	char code; /* 'F', 'B', 'D' */
	int id;
	bool recompute;       /* F: not the first of its op */
	bool zero[CK_MAX_IN]; /* B: fill din[i] with zeros first; its op writes only parts of it */
	bool acc[CK_MAX_IN];
	size_t in[CK_MAX_IN], out[CK_MAX_OUT], stash[CK_MAX_STASH], dout, din[CK_MAX_IN], workspace;
	ck_rng_moves rng;
	size_t sum[CK_MAX_IN]; /* B: din[i] is complete then, and is added to what lies there */
} ck_call;

/* Meddles with a run, so that the checks can show that they notice: the one place where faults act on what is executed. Each
 * function is optional; all get `user`. */
typedef struct ck_hook {
	void *user;
	/* Before an F or B, whose arguments it may change. false: the op does not run. */
	bool (*before)(void *user, const ck_call *c, ck_args *a, ck_step *step);
	void (*after)(void *user, const ck_call *c, const ck_args *a, ck_step *step);
	/* Of a checked run: what the meter says of the live peak, given what was seen. */
	size_t (*meter)(void *user, size_t seen);
	/* Of steps with a scaler: at each moment of one. */
	void (*scaler)(void *user, ck_scaler_moment at, ck_scaler *s);
} ck_hook;

/* The device's own clock (kernels/ops.h) or, where it has none, the host's, which waits for the device before it stops. A step's can run
 * around its ops': each has two marks. */
typedef enum ck_clock_of { CK_CLOCK_STEP = 0, CK_CLOCK_OP = 2 } ck_clock_of; /* its first mark */
typedef struct ck_clock {
	ck_clock_of of;
	double from; /* seconds; of the host's */
} ck_clock;
ck_clock ck__clock_start(const ck_backend *b, ck_device *d, ck_clock_of of);
double ck__clock_stop(const ck_backend *b, ck_device *d, ck_clock c); /* seconds since; waits for the device */

/* Resolves every call's pointers again, after the layout was changed. The schedule is the one that the program was made from. */
void ck__program_resolve(ck_program *p, const ck_schedule *schedule);

/* The running generator. Plans a program's moves and counts them; starts a stream; gives what a call draws (before its hook), and
 * ends its moves. */
void ck__rng_plan(ck_program *p);
void ck__rng_start(ck_rng *rng, uint64_t seed);
ck_draw ck__rng_before(ck_memory *m, const ck_call *c, const ck_step *step);
void ck__rng_after(ck_memory *m, const ck_call *c);
enum { CK_RNG_ORDER_TEXT = 400 };
/* "; the cause: …", to follow what differs. "" where nothing draws out of turn. */
const char *ck__rng_order_text(const ck_graph *g, ck_rng_order order, char text[CK_RNG_ORDER_TEXT]);
/* How many blocks the op draws. */
uint64_t ck__rng_blocks(const ck_op_info *op);

/* Watches who owns every line of the arena while a program runs (watch.c): the check of what happens against what was planned. */
typedef struct ck_watch ck_watch;
ck_watch *ck__watch_open(const ck_program *p, ck_memory *m);
/* Before an F or B: its reads must own their bytes, its results take theirs. After it, or at a D: what ends gives its bytes back. */
ck_status ck__watch_before(ck_watch *w, const ck_call *c, ck_err *err);
void ck__watch_after(ck_watch *w, const ck_call *c);
/* Bytes owned now, persistent ones included. */
size_t ck__watch_owned(const ck_watch *w);
/* Ends; gives the most bytes owned at once. */
size_t ck__watch_close(ck_watch *w);

#endif
