/* Where a step's time goes: of plan none, by kind of op, forward and backward, as medians over rounds; and the ops that take most.
 *
 *     build/suite/bench-ops gpt-char [bf16|fp16]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/alloc.h"
#include "suite/bench/setup.h"

enum { SHOWN = 12 };

typedef struct row {
	const char *name, *kind;
	double forward, backward, flops;
} row;

static int by_time(const void *a, const void *b)
{
	const row *x = a, *y = b;
	double left = x->forward + x->backward, right = y->forward + y->backward;
	return (left < right) - (left > right);
}

static void print_rows(const row *rows, int n, double step)
{
	for (int i = 0; i < n; i++)
		if (rows[i].forward + rows[i].backward > 0)
			printf("  %-28.28s %-10s %9.2f %9.2f %6.1f %% %9.0f\n", rows[i].name, rows[i].kind,
			       1e3 * rows[i].forward, 1e3 * rows[i].backward, 100 * (rows[i].forward + rows[i].backward) / step,
			       1e-9 * rows[i].flops / (rows[i].forward + rows[i].backward));
}

int main(int argc, char **argv)
{
	setup s = {0};
	const char *amp = argc > 2 ? argv[2] : "off";
	setup_open(&s, argc > 1 ? argv[1] : "gpt-char",
		   !strcmp(amp, "bf16")   ? CK_BF16
		   : !strcmp(amp, "fp16") ? CK_F16
					  : CK_DTYPE_NONE);
	setup_add(&s, "none");
	setup_begin(&s);
	int nops = s.graph->nops;
	double steps[ROUNDS];
	double *seconds = ck_alloc(ROUNDS * 2 * (size_t)nops, sizeof *seconds); /* (round, 2 nops) */
	for (int round = -2; round < ROUNDS; round++) {
		double *here = seconds + 2 * nops * (round < 0 ? 0 : round);
		memset(here, 0, 2 * (size_t)nops * sizeof *here);
		steps[round < 0 ? 0 : round] = setup_step(&s, 0, here);
	}
	row *ops = ck_alloc((size_t)nops, sizeof *ops), kinds[CK_OP_KIND_COUNT] = {{0}};
	for (int i = 0; i < 2 * nops; i++) {
		double at[ROUNDS];
		for (int round = 0; round < ROUNDS; round++)
			at[round] = seconds[2 * nops * round + i];
		const ck_op_info *op = &s.graph->ops[i % nops];
		row *one = &ops[i % nops], *kind = &kinds[op->desc.kind];
		double time = median(at);
		one->name = op->name;
		one->kind = kind->name = ck_op_kind_name(op->desc.kind);
		kind->kind = "";
		*(i < nops ? &one->forward : &one->backward) += time;
		*(i < nops ? &kind->forward : &kind->backward) += time;
		one->flops += i < nops ? op->flops_forward : op->flops_backward;
		kind->flops += i < nops ? op->flops_forward : op->flops_backward;
	}
	double step = median(steps);
	printf("%s, amp %s: %.1f ms a step, %.0f GFLOP/s\n  %-39s %9s %9s %8s %9s\n", argc > 1 ? argv[1] : "gpt-char", amp,
	       1e3 * step, 1e-9 * s.graph->model_flops / step, "", "forward", "backward", "of step", "GFLOP/s");
	qsort(kinds, CK_OP_KIND_COUNT, sizeof *kinds, by_time);
	print_rows(kinds, CK_OP_KIND_COUNT, step);
	printf("  the %d ops that take most:\n", SHOWN < nops ? SHOWN : nops);
	qsort(ops, (size_t)nops, sizeof *ops, by_time);
	print_rows(ops, SHOWN < nops ? SHOWN : nops, step);
	free(ops);
	free(seconds);
	setup_close(&s);
	return 0;
}
