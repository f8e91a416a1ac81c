/* The op cases: every kind of op in every variant, one line each, which is also how a failing test names the case.
 *
 *     linear 6x5 4x5 4 bias act=relu p=0.25
 *
 * The kind, then the inputs' shapes in the order of kernels/ops.h, then attributes. `twice`: the last input is the first one given
 * again. `stored=bf16` (f16): whatever the op lets be 16-bit is (kernels/ops.h marks it '), and so is what LAYERNORM and CAST give, or
 * CAST takes; but for an input whose shape bears its own dtype, `6x4:real`, `3x5:i32`. `to=bf16` says the same of what CAST or LAYERNORM
 * gives. `ties`: small whole values, so that maxima tie. `zero`: its output or a gradient is zero in every element, or its mask keeps or drops
 * all, and is meant to be so (suite/ops/trust.c). The first input's values are drawn with the standard deviation `spread=…`
 * around `shift=…`. CK_CASE='text' in the environment runs the cases with that text in their line only.
 *
 * Small cases go through every variant and edge; large ones (more than 16,384 elements) take the ways that use several threads, and are
 * left out on a slow device. */
#ifndef CK_INPUTS_OPS_H
#define CK_INPUTS_OPS_H

#include "kernels/ops.h"

enum { CK_OP_LINE = 256 };

typedef struct ck_op_case {
	char line[CK_OP_LINE];
	ck_op_desc desc; /* inferred for `real`; needs: every input that can have a gradient */
	ck_dtype low;    /* what `stored` says; CK_DTYPE_NONE: nothing */
	bool twice, ties, zero;
	double shift, spread; /* of the first input's values */
} ck_op_case;

/* Steps i to the next case that CK_CASE lets through, read for a backend's arithmetic: for (int i = 0; ck_op_case_next(&i, CK_F64,
 * &c);). Each line is a case as it stands and, where the op has something to store so, one `stored=bf16` and one `stored=f16`. A line
 * that does not read is a fault of the table: aborts with the reason. */
bool ck_op_case_next(int *i, ck_dtype real, ck_op_case *c);

/* One case from any line; CK_USAGE with the reason of ck_op_infer. */
ck_status ck_op_case_read(const char *line, ck_dtype real, ck_op_case *c, ck_err *err);

#endif
