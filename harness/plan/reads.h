/* Which managed values (activations, stashes) an F or a B reads and an F writes, each once. */
#ifndef CK_READS_H
#define CK_READS_H

#include "harness/plan/schedule.h"

typedef struct ck_reads {
	int n;
	ck_value at[CK_MAX_IN + CK_MAX_OUT + CK_MAX_STASH];
} ck_reads;

ck_reads ck_reads_of(const ck_graph *g, ck_instr in);
ck_reads ck_writes_of(const ck_graph *g, ck_instr in); /* of an F; empty for others */

/* Whether op's backward, by its input i, makes the last contribution to that value's gradient. */
bool ck_gradient_completes(const ck_graph *g, int op, int i);

#endif
