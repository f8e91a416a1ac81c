#include "suite/support.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/alloc.h"

#define OK(call) cr_assert((call) == CK_OK, "%s: %s", #call, err.text)

bench bench_open(ck_graph *graph, const char *device, int threads, uint64_t seed)
{
	ck_err err = {0};
	int index = 0;
	bench b = {.graph = graph, .seed = seed};
	OK(ck_backend_find(device, &b.backend, &index, &err));
	OK(b.backend->open(&(ck_open_options){.index = index, .threads = threads}, &b.device, &err));
	OK(ck_session_open(graph, b.backend, b.device, &b.session, &err));
	return b;
}

bench bench_open_model(const char *model, const char *device, int threads, uint64_t seed)
{
	return bench_open_as(model, (ck_build_options){0}, device, threads, seed);
}

bench bench_open_as(const char *model, ck_build_options options, const char *device, int threads, uint64_t seed)
{
	ck_err err = {0};
	ck_settings s = {0};
	const ck_backend *backend;
	int index;
	ck_graph *g;
	OK(ck_settings_read(&s, model, &err));
	s.options = options;
	s.options.input_grad = true;
	OK(ck_backend_find(device, &backend, &index, &err));
	OK(ck_model_build(&s, backend->real, &g, &err));
	return bench_open(g, device, threads, seed);
}

void bench_close(bench *b)
{
	ck_memory_close(&b->memory);
	ck_session_close(b->session);
	b->backend->close(b->device);
	ck_graph_free(b->graph);
}

ck_program *bench_program(const bench *b, const ck_schedule *s)
{
	ck_err err = {0};
	ck_program *p = NULL;
	OK(ck_program_make(b->session, s, &p, &err));
	return p;
}

ck_schedule bench_plan(const bench *b, const char *plan)
{
	ck_err err = {0};
	ck_plan p;
	ck_schedule s;
	OK(ck_plan_read(b->graph, plan, &p, &err));
	OK(ck_plan_make(b->graph, &p, &s, &err));
	return s;
}

void bench_each_plan(const ck_graph *g, void (*one)(void *user, const char *plan), void *user)
{
	for (int i = 0; ck_planners[i]; i++) {
		int64_t least = 1, most = 1;
		if (ck_planners[i]->knob)
			ck_planners[i]->range(g, &least, &most);
		int64_t step = device_is_slow() && most - least > 2 ? (most - least + 1) / 2 : 1;
		for (int64_t k = least; k <= most; k = k < most && k + step > most ? most : k + step) {
			char plan[64];
			snprintf(plan, sizeof plan, ck_planners[i]->knob ? "%s:%" PRId64 : "%s", ck_planners[i]->name, k);
			one(user, plan);
		}
	}
}

void bench_room(bench *b, const ck_program *p)
{
	ck_err err = {0};
	if (p->layout.arena <= b->memory.bytes)
		return;
	ck_memory_close(&b->memory);
	OK(ck_memory_open(b->session, p->layout.arena, &b->memory, &err));
	ck_memory_init(&b->memory, &p->layout, b->seed, NULL);
}

ck_outcome bench_outcome(bench *b, const ck_program *p)
{
	ck_err err = {0};
	ck_outcome o;
	bench_room(b, p);
	OK(ck_outcome_take(p, &b->memory, b->seed, &o, &err));
	return o;
}

char **parity_cases(void)
{
	return read_list(device_is_slow() ? "parity-small.txt" : "parity.txt");
}

char **read_list(const char *name)
{
	const char *folder = getenv("CKBENCH_SUITE");
	cr_assert(folder, "run by `meson test`, or set CKBENCH_SUITE to the folder suite/");
	char *path = ck_text("%s/inputs/%s", folder, name);
	FILE *f = fopen(path, "r");
	cr_assert(f, "cannot read %s", path);
	free(path);
	char **lines = NULL, text[1024];
	int n = 0, capacity = 0;
	while (fgets(text, sizeof text, f)) {
		text[strcspn(text, "#\n")] = 0;
		lines = ck_grow(lines, &capacity, n + 2, sizeof *lines);
		if (text[0])
			lines[n++] = ck_text("%s", text);
	}
	fclose(f);
	cr_assert(n > 0, "%s lists no case", name);
	lines[n] = NULL;
	return lines;
}

void free_list(char **lines)
{
	for (int i = 0; lines[i]; i++)
		free(lines[i]);
	free(lines);
}
