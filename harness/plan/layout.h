/* The layout: every lifetime's offset in one arena, found before the run (offline best fit over lifetimes).
 *
 * The arena starts with what persists (parameters, buffers, batch, in order of value; then the optimizer's state, then
 * the sums of gradients), the same for
 * every plan over a graph, so that plans can take turns in one piece of memory; the step's own lifetimes follow. Offsets are multiples of 64 bytes: a
 * reduction loop that peels by alignment would otherwise add in another order when a buffer moves. */
#ifndef CK_LAYOUT_H
#define CK_LAYOUT_H

#include "harness/plan/schedule.h"

enum { CK_ALIGN = 64 };

typedef struct ck_layout {
	size_t *persistent; /* offset by value; meaningful for parameters, buffers and inputs */
	size_t *state;      /* (states, values) offset of the optimizer's tensors; meaningful for trained parameters */
	int states;
	size_t
	    *sum; /* offset by value of the gradient's sum; meaningful for trained parameters. NULL: it does not accumulate */
	size_t persistent_bytes;
	size_t *offset; /* by index into trace->lives */
	size_t arena;   /* bytes in all, persistent ones included */
} ck_layout;

/* CK_USAGE when sizes overflow. Never fails otherwise. */
ck_status ck_layout_make(const ck_graph *g, const ck_trace *t, ck_layout *l, ck_err *err);
void ck_layout_free(ck_layout *l);

#endif
