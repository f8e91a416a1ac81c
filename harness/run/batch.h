/* Batches of real data for a graph's inputs, instead of numbers drawn from a seed. The data set is named as on the command
 * line:
 *
 *     digits                the 8x8 handwritten digits that are part of the program (suite/inputs/digits/README.md)
 *     idx:IMAGES,LABELS     two IDX files of unsigned bytes, the form of MNIST: images (n, h, w) or (n, h, w, c), labels (n)
 *     text:FILE             any file, its bytes as tokens; an example is seq tokens, the target of each is the byte after it
 *
 * Pixels become reals from 0 to 1: divided by 255, or by 16 for digits, whose ink goes from 0 to 16. */
#ifndef CK_BATCH_H
#define CK_BATCH_H

#include "harness/graph/graph.h"

typedef struct ck_batch {
	/* By value of the graph: host data of the present batch, in that value's dtype and shape; NULL for all that is no
	 * input. This is what ck_memory_init takes. */
	const void **at;
	int64_t batches;                 /* whole batches in the data set; an epoch leaves out the few examples beyond them */
	struct ck__batch_source *source; /* private */
} ck_batch;

/* Reads the data set and takes batch 0. Borrows the graph, which is a model's: its loss a cross-entropy, with one input besides
 * the targets. Refused (CK_USAGE): files that are not what they should be, and a model whose inputs the data does not fit, with
 * the settings to change. CK_MISSING: no memory for a file's content. */
ck_status ck_batch_open(const ck_graph *g, const char *data, uint64_t seed, ck_batch **b, ck_err *err);
/* Fills at[] with batch k, counted from 0 on through all epochs; each epoch has its own order, from the seed. */
void ck_batch_take(ck_batch *b, int64_t k);
void ck_batch_close(ck_batch *b); /* NULL is fine */

#endif
