/* Shared by the files of the graph; nobody else includes this. */
#ifndef CK_GRAPH_INTERNAL_H
#define CK_GRAPH_INTERNAL_H

#include <stdio.h>

#include "harness/graph/graph.h"

/* Names to values and ops: open addressing, built by finish. A slot holds a value's index, or the op's as -2 - op, or CK_NONE.
 */
struct ck_graph_index {
	int values_capacity, ops_capacity;
	int *slots;
	size_t nslots; /* a power of two, at least twice what it holds */
};

/* Adds a value; takes over `name`. CK_NONE once an error stands. */
ck_value ck__graph_add_value(ck_graph *g, char *name, ck_kind kind, ck_tensor_desc t);
/* Infers op o's outputs and stashes anew, and adds the values of new stashes; those that are there follow. */
ck_status ck__graph_infer(ck_graph *g, int o);
/* The same after its inputs, or their dtypes, were changed; its output follows too. */
void ck__graph_retype(ck_graph *g, int o);
/* Fills readers of every value. */
void ck__graph_readers(ck_graph *g);

void ck__graph_autocast(ck_graph *g); /* autocast.c */
void ck__graph_fuse(ck_graph *g);     /* fuse.c */
void ck__graph_stages(ck_graph *g);   /* stages.c */
void ck__graph_index(ck_graph *g);    /* finish.c */

#endif
