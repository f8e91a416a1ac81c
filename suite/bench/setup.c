#include "suite/bench/setup.h"

#include <stdio.h>
#include <stdlib.h>

#include "models/models.h"

static void or_die(ck_status status, const ck_err *err)
{
	if (status == CK_OK)
		return;
	fprintf(stderr, "%s\n", err->text);
	exit((int)status);
}

void setup_open(setup *s, const char *model, ck_dtype low)
{
	ck_err err = {0};
	ck_settings settings = {0};
	int index;
	or_die(ck_settings_read(&settings, model, &err), &err);
	settings.options.low = low;
	or_die(ck_backend_find("cpu", &s->backend, &index, &err), &err);
	or_die(s->backend->open(&(ck_open_options){.index = index}, &s->device, &err), &err);
	or_die(ck_model_build(&settings, s->backend->real, &s->graph, &err), &err);
	or_die(ck_session_open(s->graph, s->backend, s->device, &s->session, &err), &err);
}

void setup_add(setup *s, const char *name)
{
	ck_err err = {0};
	ck_plan plan;
	or_die(ck_plan_read(s->graph, name, &plan, &err), &err);
	or_die(ck_plan_make(s->graph, &plan, &s->schedules[s->n], &err), &err);
	or_die(ck_program_make(s->session, &s->schedules[s->n], &s->programs[s->n], &err), &err);
	s->names[s->n++] = name;
}

void setup_begin(setup *s)
{
	ck_err err = {0};
	size_t arena = 0;
	for (int k = 0; k < s->n; k++)
		arena = s->programs[k]->layout.arena > arena ? s->programs[k]->layout.arena : arena;
	or_die(ck_memory_open(s->session, arena, &s->memory, &err), &err);
	ck_memory_init(&s->memory, &s->programs[0]->layout, 1, NULL);
}

double setup_step(setup *s, int k, double *op_seconds)
{
	ck_err err = {0};
	ck_step step = {.seed = 1, .op_seconds = op_seconds};
	double from = ck_seconds_now();
	or_die(ck_program_run(s->programs[k], &s->memory, &step, &err), &err);
	return ck_seconds_now() - from;
}

void setup_close(setup *s)
{
	for (int k = 0; k < s->n; k++) {
		ck_program_free(s->programs[k]);
		ck_schedule_free(&s->schedules[k]);
	}
	ck_memory_close(&s->memory);
	ck_session_close(s->session);
	ck_graph_free(s->graph);
	s->backend->close(s->device);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

double median(double *at)
{
	qsort(at, ROUNDS, sizeof *at, by_value);
	return at[ROUNDS / 2];
}
