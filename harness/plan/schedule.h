/* The schedule: the program that a plan turns into, and the only thing that is ever executed.
 *
 *     F op     run op's forward; a second F of the same op is a recompute
 *     B op     run op's backward
 *     D value  drop an activation, a stash or a weight's copy: its memory may be used again from here on
 *
 * Only these are managed: parameters, buffers and the batch stay. Gradients need no instructions, since the
 * backwards run in one fixed order (the reverse of the graph's), the same under every plan, which is what makes bitwise parity
 * possible: an activation's gradient is born at its first contribution and dies with the B of the op that produced the
 * activation; a parameter's or input's is born at its first contribution and stays.
 *
 * The rules (ck_schedule_check tells which is broken, where):
 *   - F op: every activation that op reads is live; its outputs and stashes are not (drop them first: F writes them anew);
 *   - B op: all that its contract reads is live, and so is the gradient of its output; B's stand in the fixed order, each op
 * with a backward has exactly one, and any other op has none;
 *   - D value: the value is live; at the end nothing is;
 *   - an op that must work in place (kernels/ops.h): its input's D follows at once.
 *
 * Text form, one instruction a line, '#' starts a comment; the first line names the graph:
 *
 *     ckbench-schedule/1 graph 0123456789abcdef
 *     F fc1
 *     F fc2
 *     D fc1
 *     …
 */
#ifndef CK_SCHEDULE_H
#define CK_SCHEDULE_H

#include <stdio.h>

#include "harness/graph/graph.h"

typedef struct ck_instr {
	char code; /* 'F', 'B', 'D' */
	int id;    /* op, or value for D */
} ck_instr;

typedef struct ck_schedule { /* owned by who made it; ck_schedule_free */
	ck_instr *at;
	int n, capacity;
	bool forward_only; /* a validation pass: it has no B at all, where otherwise none may be missing */
} ck_schedule;

void ck_schedule_add(ck_schedule *s, char code, int id);
void ck_schedule_free(ck_schedule *s);
uint64_t ck_schedule_digest(const ck_schedule *s);

/* ---- text --------------------------------------------------------------------------------------------------------------- */

ck_status ck_schedule_write(const ck_graph *g, const ck_schedule *s, FILE *to, ck_err *err);
/* Reads the text form; refuses another graph's, unknown names and malformed lines, with the line's number (CK_USAGE).
 * `text` need not end with a newline. It does not check the rules. */
ck_status ck_schedule_parse(const ck_graph *g, const char *text, size_t length, ck_schedule *s, ck_err *err);

/* ---- lowering: from a planner's decision to a schedule ------------------------------------------------------------------- */

/* Planners say which F's and B's run, in order; where values drop follows from that: each after its last read before it is
 * written again, or before the end. Takes F and B instructions, gives the schedule with the D's in place. */
ck_status ck_lower_drops(const ck_graph *g, const ck_schedule *work, ck_schedule *s, ck_err *err);

/* A chain plan: stages first[k] .. first[k + 1] - 1 form segment k. A segment that is not kept has its inside dropped in the
 * forward, and is recomputed, as far as its backwards need, when its backward comes. */
typedef struct ck_segments {
	int n;
	int *first; /* n + 1, first[0] = 0, first[n] = stages */
	bool *kept; /* n */
} ck_segments;
ck_status ck_lower_segments(const ck_graph *g, const ck_segments *c, ck_schedule *s, ck_err *err);

/* ---- the check, and the memory that it finds ------------------------------------------------------------------------------
 */

enum ck_category {
	CK_MEM_PARAMETERS,
	CK_MEM_PARAMETER_GRADIENTS,
	CK_MEM_OPTIMIZER,
	CK_MEM_INPUTS, /* the batch and its gradient, and the model's buffers */
	CK_MEM_ACTIVATIONS,
	CK_MEM_ACTIVATION_GRADIENTS,
	CK_MEM_STASHES,
	CK_MEM_WEIGHT_COPIES, /* 16-bit copies of weights */
	CK_MEM_WORKSPACE,
	CK_MEM_CATEGORIES
};
extern const char *const ck_category_names[CK_MEM_CATEGORIES];

/* What takes memory besides the graph's values: plain data, all zero for none. Bytes of workspace per op, as the backend asks
 * for (NULL arrays mean none); and how many tensors of its shape the optimizer keeps for each trained parameter, throughout. */
typedef struct ck_workspaces {
	const size_t *forward, *backward;
	int states;
} ck_workspaces;

/* A stretch of the schedule in which some bytes are held. Slots: value v is slot v, its gradient is slot nvalues + v, workspace
 * is slot 2 nvalues. Held from before instruction `from` runs until after `to` has run; both ends count. Two lifetimes whose
 * `shares` says so use the same bytes: the later one takes over the buffer of the earlier (an op in place), which then ends one
 * instruction before the later begins. */
typedef struct ck_lifetime {
	int slot;
	size_t bytes;
	int from, to;
	int shares; /* index of the earlier lifetime whose buffer this one takes over, or -1 */
	enum ck_category category;
} ck_lifetime;

/* What one walk over a valid schedule finds. */
typedef struct ck_trace {
	ck_lifetime *lives; /* in order of `from` */
	int nlives;
	size_t *live;                               /* bytes held while instruction i runs, persistent ones included */
	int n;                                      /* instructions */
	size_t persistent;                          /* parameters, optimizer state, buffers, batch: held throughout */
	int states;                                 /* as it was given */
	size_t peak;                                /* the most of `live` */
	int peak_at;                                /* first instruction where that is */
	size_t peak_by_category[CK_MEM_CATEGORIES]; /* at peak_at */
	double executed_flops;
	int recomputed_ops; /* second and further F's */
	double recompute_flops;
} ck_trace;

/* Checks the schedule against the rules (CK_USAGE, with the instruction's number, its text and the rule) and fills the trace
 * (ck_trace_free; zeroed on failure). trace may be NULL. */
ck_status ck_schedule_check(const ck_graph *g, const ck_schedule *s, ck_workspaces w, ck_trace *trace, ck_err *err);
void ck_trace_free(ck_trace *t);

/* ---- forward alone --------------------------------------------------------------------------------------------------------- */

/* A forward-only pass: every op runs once, every value drops after its last reader. Its order is one whose live peak, with the
 * workspaces given, is the least of all orders in which the graph can run, ops that draw random numbers kept in theirs. The least is
 * found by trying all sets of finished ops of a stage, stage by stage, as everything passes through a single value in between; a stage
 * with more such sets than forward.c is ready to try keeps the graph's order. */
ck_status ck_forward_only(const ck_graph *g, const ck_workspaces *w, ck_schedule *s, ck_err *err);

#endif
