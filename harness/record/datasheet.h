/* What makers promise of their GPUs. */
#ifndef CK_DATASHEET_H
#define CK_DATASHEET_H

#include "harness/run/ceiling.h"

typedef struct ck_datasheet {
	const char *product;          /* as the device names itself */
	double matmul[CK_PRECISIONS]; /* FLOP/s, dense, sums in float32; 0: not known */
	double bandwidth;             /* of its memory, B/s */
	const char *source;           /* the document's name */
} ck_datasheet;

/* NULL where there is none for a device of this name. */
const ck_datasheet *ck_datasheet_find(const char *product);

#endif
