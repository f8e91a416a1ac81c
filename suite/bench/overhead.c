/* Does a checkpointed step cost what its recomputes cost? For each plan: its overhead over plan none, beside the forward time of the ops
 * that it runs again, measured op by op within steps of the same program. What is left over, as a share of the step, is what ckbench's
 * own machinery (and the caches) add.
 *
 *     build/suite/bench-overhead gpt-char [PLAN …]
 */
#include <stdio.h>
#include <stdlib.h>

#include "harness/plan/planner.h"
#include "harness/run/measure.h"
#include "kernels/alloc.h"
#include "models/models.h"

enum { MAX_PLANS = 16, ROUNDS = 15 };

typedef struct setup {
	ck_graph *graph;
	const ck_backend *backend;
	ck_device *device;
	ck_session *session;
	ck_memory memory;
	ck_program *programs[MAX_PLANS];
	ck_schedule schedules[MAX_PLANS];
	const char *names[MAX_PLANS];
	int n;
} setup;

static void or_die(ck_status status, const ck_err *err)
{
	if (status == CK_OK)
		return;
	fprintf(stderr, "%s\n", err->text);
	exit((int)status);
}

static void add_plan(setup *s, const char *name)
{
	ck_err err = {0};
	ck_plan plan;
	or_die(ck_plan_read(s->graph, name, &plan, &err), &err);
	or_die(ck_plan_make(s->graph, &plan, &s->schedules[s->n], &err), &err);
	or_die(ck_program_make(s->session, &s->schedules[s->n], &s->programs[s->n], &err), &err);
	s->names[s->n++] = name;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* One step of program k: its time, and that of the forwards that it runs again. All forwards of an op share its time evenly. */
static void time_step(setup *s, int k, double *seconds, double *again)
{
	const ck_graph *g = s->graph;
	ck_err err = {0};
	int *runs = ck_alloc((size_t)g->nops, sizeof *runs);
	double *op_seconds = ck_alloc(2 * (size_t)g->nops, sizeof *op_seconds);
	for (int i = 0; i < s->schedules[k].n; i++)
		if (s->schedules[k].at[i].code == 'F')
			runs[s->schedules[k].at[i].id]++;
	ck_step step = {.seed = 1, .op_seconds = op_seconds};
	double from = ck_seconds_now();
	or_die(ck_program_run(s->programs[k], &s->memory, &step, &err), &err);
	*seconds = ck_seconds_now() - from;
	*again = 0;
	for (int o = 0; o < g->nops; o++)
		*again += runs[o] > 1 ? op_seconds[o] * (runs[o] - 1) / runs[o] : 0;
	free(runs);
	free(op_seconds);
}

static double median(double *at)
{
	qsort(at, ROUNDS, sizeof *at, by_value);
	return at[ROUNDS / 2];
}

static void open_case(setup *s, const char *model)
{
	ck_err err = {0};
	ck_settings settings = {0};
	int index;
	or_die(ck_settings_read(&settings, model, &err), &err);
	or_die(ck_backend_find("cpu", &s->backend, &index, &err), &err);
	or_die(s->backend->open(index, 0, &s->device, &err), &err);
	or_die(ck_model_build(&settings, s->backend->real, &s->graph, &err), &err);
	or_die(ck_session_open(s->graph, s->backend, s->device, &s->session, &err), &err);
}

int main(int argc, char **argv)
{
	static char *otherwise[] = {"uniform:2", "uniform:4", "uniform:8", "stages"};
	setup s = {0};
	ck_err err = {0};
	size_t arena = 0;
	open_case(&s, argc > 1 ? argv[1] : "gpt-char");
	add_plan(&s, "none");
	char **plans = argc > 2 ? argv + 2 : otherwise;
	for (int i = 0; i < (argc > 2 ? argc - 2 : 4) && s.n < MAX_PLANS; i++)
		add_plan(&s, plans[i]);
	for (int k = 0; k < s.n; k++)
		arena = s.programs[k]->layout.arena > arena ? s.programs[k]->layout.arena : arena;
	or_die(ck_memory_open(s.session, arena, &s.memory, &err), &err);
	ck_memory_init(&s.memory, &s.programs[0]->layout, 1, NULL);

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
		ck_program_free(s.programs[k]);
		ck_schedule_free(&s.schedules[k]);
	}
	ck_memory_close(&s.memory);
	ck_session_close(s.session);
	ck_graph_free(s.graph);
	s.backend->close(s.device);
	return 0;
}
