/* Does a checkpointed step cost what its recomputes cost? For each plan: its overhead over plan none, beside the forward time of the ops
 * that it runs again, measured op by op within steps of the same program. What is left over, as a share of the step, is what ckbench's
 * own machinery (and the caches) add.
 *
 *     build/suite/bench-overhead gpt-char [PLAN …]
 */
#include <stdio.h>
#include <stdlib.h>

#include "kernels/alloc.h"
#include "suite/bench/setup.h"

/* One step of program k: its time, and that of the forwards that it runs again. All forwards of an op share its time evenly. */
static void time_step(setup *s, int k, double *seconds, double *again)
{
	const ck_graph *g = s->graph;
	int *runs = ck_alloc((size_t)g->nops, sizeof *runs);
	double *op_seconds = ck_alloc(2 * (size_t)g->nops, sizeof *op_seconds);
	for (int i = 0; i < s->schedules[k].n; i++)
		if (s->schedules[k].at[i].code == 'F')
			runs[s->schedules[k].at[i].id]++;
	*seconds = setup_step(s, k, op_seconds);
	*again = 0;
	for (int o = 0; o < g->nops; o++)
		*again += runs[o] > 1 ? op_seconds[o] * (runs[o] - 1) / runs[o] : 0;
	free(runs);
	free(op_seconds);
}

int main(int argc, char **argv)
{
	static char *otherwise[] = {"uniform:2", "uniform:4", "uniform:8", "stages"};
	setup s = {0};
	setup_open(&s, argc > 1 ? argv[1] : "gpt-char", CK_DTYPE_NONE);
	setup_add(&s, "none");
	char **plans = argc > 2 ? argv + 2 : otherwise;
	for (int i = 0; i < (argc > 2 ? argc - 2 : 4) && s.n < MAX_PLANS; i++)
		setup_add(&s, plans[i]);
	setup_begin(&s);

	/* Rounds over all plans, so that drift of the machine falls on overheads and recomputes alike; the first two warm up. */
	double seconds[MAX_PLANS][ROUNDS], again[MAX_PLANS][ROUNDS];
	for (int round = -2; round < ROUNDS; round++)
		for (int k = 0; k < s.n; k++)
			time_step(&s, k, &seconds[k][round < 0 ? 0 : round], &again[k][round < 0 ? 0 : round]);
	printf("%-12s %12s %12s %14s %22s\n", "plan", "step", "overhead", "recomputes", "beyond the recomputes");
	const double none = median(seconds[0]);
	for (int k = 0; k < s.n; k++) {
		double overhead = median(seconds[k]) - none, recomputes = median(again[k]);
		printf("%-12s %9.2f ms %9.2f ms %11.2f ms %14.2f %% of step\n", s.names[k], 1e3 * (none + overhead),
		       1e3 * overhead, 1e3 * recomputes, 100 * (overhead - recomputes) / none);
	}
	setup_close(&s);
	return 0;
}
