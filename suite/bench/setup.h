/* What the benchmarks share: a model opened on the cpu device, and programs of plans over it. Errors end the process. */
#ifndef CK_BENCH_SETUP_H
#define CK_BENCH_SETUP_H

#include "harness/plan/planner.h"
#include "harness/run/measure.h"

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

/* low: for mixed precision, or CK_DTYPE_NONE. */
void setup_open(setup *s, const char *model, ck_dtype low);
void setup_add(setup *s, const char *plan);
/* After the last setup_add: memory for all programs, with start values. */
void setup_begin(setup *s);
/* One step of program k; op_seconds as in ck_step. Returns its seconds. */
double setup_step(setup *s, int k, double *op_seconds);
void setup_close(setup *s);

/* Of ROUNDS figures; sorts them. */
double median(double *at);

#endif
