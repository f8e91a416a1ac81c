#define _GNU_SOURCE
#include "harness/cli/peak.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/alloc.h"

extern char **environ;

/* ---- the child ----------------------------------------------------------------------------------------------------------- */

/* Two steps: the second finds caches filled by the first, as all later ones do. peak: of a device with a memory of its own what it has
 * given since all kernels were prepared, so that the libraries' own is not in it; else this process's. */
static ck_status run_steps(const ck_case *c, const ck_program *p, size_t *peak, ck_err *err)
{
	const ck_backend *b = c->backend;
	size_t before = b->free_memory ? b->free_memory(c->device) : 0;
	ck_memory m;
	ck_status status = ck_memory_open(c->session, p->layout.arena, &m, err);
	if (status != CK_OK)
		return status;
	ck_memory_init(&m, &p->layout, c->seed, ck_case_batch(c));
	for (uint32_t step = 0; step < 2 && status == CK_OK; step++)
		status = ck_program_run(p, &m, &(ck_step){.seed = c->seed, .step = step}, err);
	if (b->sync)
		b->sync(c->device);
	if (b->free_memory) {
		size_t after = b->free_memory(c->device);
		*peak = before > after ? before - after : 0; /* others may have given theirs back meanwhile: not known then */
	} else {
		*peak = ck_process_peak();
	}
	ck_memory_close(&m);
	return status;
}

/* The command line names one plan; it comes after none, which is only planned. */
static ck_status run(const ck_cli *cli, ck_err *err)
{
	ck_case c;
	ck_plans plans = {0};
	size_t peak;
	ck_status status = ck_case_open(cli, false, &c, err);
	if (status != CK_OK)
		return status;
	status = ck_plans_choose(c.graph, &cli->options, &plans, err);
	if (status == CK_OK)
		status = ck_plans_make(&plans, c.session, err);
	if (status == CK_OK)
		status = run_steps(&c, plans.at[plans.n - 1].program, &peak, err);
	if (status == CK_OK)
		printf("%zu\n", peak);
	ck_plans_free(&plans);
	ck_case_close(&c);
	return status;
}

const ck_command ck_command_peak = {
    .name = "peak",
    .subject = "MODEL",
    .takes = CK_TAKES_CASE | CK_TAKES(plans) | CK_TAKES(schedule),
    .run = run,
};

/* ---- its parent ---------------------------------------------------------------------------------------------------------- */

enum { MOST_WORDS = 16 + 2 * CK_OPTIONS };

/* Its argument vector, NULL-terminated; the texts of the numbers are the caller's. */
static void child_arguments(const ck_job *j, const char *plan, char *threads, char *seed, const char *argv[MOST_WORDS])
{
	const ck_options *o = &j->cli->options;
	bool file = strncmp(plan, "schedule:", strlen("schedule:")) == 0;
	int n = 0;
	argv[n++] = "ckbench";
	argv[n++] = ck_command_peak.name;
	argv[n++] = j->c.model;
	argv[n++] = "--device";
	argv[n++] = o->text[CK_OPTION_device];
	argv[n++] = "--threads";
	argv[n++] = threads;
	argv[n++] = "--seed";
	argv[n++] = seed;
	argv[n++] = file ? "--schedule" : "--plans";
	argv[n++] = file ? plan + strlen("schedule:") : plan;
	for (int k = 0; k < CK_OPTIONS; k++) {
		if (!(CK_CASE_GIVEN >> k & 1) || !o->given[k])
			continue;
		argv[n++] = ck_option_name((ck_option)k);
		if (o->text[k])
			argv[n++] = o->text[k];
	}
	argv[n] = NULL;
}

/* Starts it with its standard output going to the pipe. 0, or an errno. */
static int start(const char *const *argv, int to, pid_t *child)
{
	posix_spawn_file_actions_t files;
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, to, STDOUT_FILENO);
	int error = posix_spawn(child, "/proc/self/exe", &files, NULL, (char *const *)argv, environ);
	posix_spawn_file_actions_destroy(&files);
	return error;
}

/* What it says before it ends, a number of bytes; false when it says none. 0 is an answer: less than a device counts its memory by. */
static bool answer(int from, pid_t child, size_t *bytes)
{
	FILE *f = fdopen(from, "r");
	bool told = f && fscanf(f, "%zu", bytes) == 1;
	if (!f)
		close(from);
	if (f)
		fclose(f);
	int status;
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		continue;
	return told && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

ck_status ck_peak_measure(ck_job *j, int i, ck_err *err)
{
	ck_point *p = &j->result->points[i];
	char *threads = ck_text("%d", j->result->device.threads), *seed = ck_text("%llu", (unsigned long long)j->c.seed);
	const char *argv[MOST_WORDS];
	int ends[2];
	pid_t child;
	bool told = false;
	child_arguments(j, p->plan, threads, seed, argv);
	int error = pipe2(ends, O_CLOEXEC) == 0 ? 0 : errno;
	if (!error) {
		error = start(argv, ends[1], &child);
		close(ends[1]);
		if (error)
			close(ends[0]);
		else
			told = answer(ends[0], child, &p->device_peak);
	}
	free(threads);
	free(seed);
	if (error)
		return ck_fail(err, CK_MISSING, "cannot start a process of its own for plan %.200s: %s", p->plan,
			       strerror(error));
	if (told)
		return CK_OK;
	p->device_peak = 0;
	return ck_fail(err, CK_MISSING, "the process for plan %.200s alone did not tell its peak", p->plan);
}
