/* What the tests that run whole steps share. Everything here ends the test with a message when it fails. */
#ifndef CK_SUPPORT_H
#define CK_SUPPORT_H

#include "harness/plan/planner.h"
#include "harness/run/parity.h"
#include "models/models.h"
#include "suite/device.h"

/* A graph on a device, with memory as large as the programs run so far. Owns all of it; bench_close. */
typedef struct bench {
	ck_graph *graph;
	const ck_backend *backend;
	ck_device *device;
	ck_session *session;
	ck_memory memory;
	uint64_t seed;
} bench;

bench bench_open(ck_graph *graph, const char *device, int threads, uint64_t seed); /* takes over the graph */
bench bench_open_model(const char *model, const char *device, int threads, uint64_t seed);
/* The same built otherwise; input_grad is set in any case. */
bench bench_open_as(const char *model, ck_build_options options, const char *device, int threads, uint64_t seed);
void bench_close(bench *b);

ck_program *bench_program(const bench *b, const ck_schedule *s);
ck_schedule bench_plan(const bench *b, const char *plan);
/* Calls `one` for every planner with every knob that it takes for this graph (on a slow device the least, one between and the most), none
 * first. */
void bench_each_plan(const ck_graph *g, void (*one)(void *user, const char *plan), void *user);
/* Memory of the start values that the program fits in; grows when it must. */
void bench_room(bench *b, const ck_program *p);
/* One checked step from the start values. */
ck_outcome bench_outcome(bench *b, const ck_program *p);

/* The cases of suite/inputs/parity.txt or, on a slow device, of parity-small.txt; free_list. */
char **parity_cases(void);
/* The lines of suite/inputs/NAME that are not empty or comments, each malloc'd; NULL-terminated. */
char **read_list(const char *name);
void free_list(char **lines);

#endif
