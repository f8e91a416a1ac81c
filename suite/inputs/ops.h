/* The op cases: every kind of op in every variant, one line each, which is also how a failing test names the case.
 *
 *     linear 6x5 4x5 4 bias act=relu p=0.25
 *
 * The kind, then the inputs' shapes in the order of kernels/ops.h, then attributes. `twice`: the last input is the first one given
 * again. `ties`: small whole values, so that maxima tie. `zero`: its output or a gradient is zero in every element, or its mask keeps or drops
 * all, and is meant to be so (suite/ops/trust.c). The first input's values are drawn with the standard deviation `spread=…`
 * around `shift=…`. CK_CASE='text' in the environment runs the cases with that text in their line only.
 *
 * Small cases go through every variant and edge; large ones (more than 16,384 elements) take the ways that use several threads. */
#ifndef CK_INPUTS_OPS_H
#define CK_INPUTS_OPS_H

#include "kernels/ops.h"

typedef struct ck_op_case {
	const char *line;
	ck_op_desc desc; /* inferred for `real`; needs: every input that can have a gradient */
	bool twice, ties, zero;
	double shift, spread; /* of the first input's values */
} ck_op_case;

/* Reads case i of the table for a backend's arithmetic. False past the end. A line that does not read is a fault of the table:
 * aborts with the reason. */
bool ck_op_case_at(int i, ck_dtype real, ck_op_case *c);

/* Steps i to the next case that CK_CASE lets through: for (int i = 0; ck_op_case_next(&i, CK_F64, &c);) */
bool ck_op_case_next(int *i, ck_dtype real, ck_op_case *c);

/* As ck_op_case_at from any line; CK_USAGE with the reason of ck_op_infer. */
ck_status ck_op_case_read(const char *line, ck_dtype real, ck_op_case *c, ck_err *err);

#endif
