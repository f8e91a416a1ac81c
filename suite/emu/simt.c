/* The emulated device runs right programs rightly, whatever the order of threads, blocks and streams, and catches each planted fault;
 * good.cpp and planted.cpp list them. */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "suite/emu/programs.h"

enum { SEEDS = 6 };

typedef struct ending {
	int status;     /* waitpid's */
	char line[200]; /* that runs it again */
	char said[2000];
} ending;

/* Runs one program in a process of its own; kind: "good", "right" or "wrong". The line before it, pasted, runs it alone. */
static ending run(const char *kind, const char *name, int seed)
{
	ending e = {0};
	snprintf(e.line, sizeof e.line, "CKBENCH_EMU_SEED=%d build/suite/emu-programs %s \"%s\"", seed, kind, name);
	char text[16];
	snprintf(text, sizeof text, "%d", seed);
	setenv("CKBENCH_EMU_SEED", text, 1);
	const char *program = getenv("CKBENCH_EMU");
	cr_assert(program, "CKBENCH_EMU names no program; run this through meson test, or set it to build/suite/emu-programs");
	int ends[2];
	cr_assert(pipe(ends) == 0);
	pid_t child = fork();
	cr_assert(child >= 0);
	if (child == 0) {
		dup2(ends[1], STDERR_FILENO);
		close(ends[0]);
		close(ends[1]);
		execl(program, program, kind, name, (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	size_t length = 0;
	for (;;) {
		ssize_t n = read(ends[0], e.said + length, sizeof e.said - 1 - length);
		if (n > 0)
			length += (size_t)n;
		else if (n == 0 || errno != EINTR)
			break;
	}
	close(ends[0]);
	while (waitpid(child, &e.status, 0) < 0 && errno == EINTR)
		;
	return e;
}

static bool is_right(const ending *e)
{
	return WIFEXITED(e->status) && WEXITSTATUS(e->status) == RIGHT && !e->said[0];
}

static bool is_caught(const planted *p, const ending *e)
{
	switch (p->end) {
	case PLANTED_SAYS:
		return WIFSIGNALED(e->status) && WTERMSIG(e->status) == SIGABRT && strstr(e->said, p->message);
	case PLANTED_DIES:
		return WIFSIGNALED(e->status) && WTERMSIG(e->status) == SIGSEGV;
	case PLANTED_WRONG:
		return WIFEXITED(e->status) && WEXITSTATUS(e->status) == DIFFERS && !e->said[0];
	}
	return false;
}

Test(good, pass)
{
	for (const good *g = good_programs; g->name; g++)
		for (int seed = 1; seed <= SEEDS; seed++) {
			ending e = run("good", g->name, seed);
			cr_expect(is_right(&e), "%s: status %d: %s", e.line, e.status, e.said);
		}
}

Test(planted, right_ones_pass)
{
	for (const planted *p = planted_programs; p->name; p++)
		for (int seed = 1; seed <= SEEDS; seed++) {
			ending e = run("right", p->name, seed);
			cr_expect(is_right(&e), "%s: status %d: %s", e.line, e.status, e.said);
		}
}

Test(planted, wrong_ones_are_caught)
{
	for (const planted *p = planted_programs; p->name; p++) {
		int caught = 0;
		for (int seed = 1; seed <= SEEDS; seed++) {
			ending e = run("wrong", p->name, seed);
			bool is = is_caught(p, &e);
			caught += is;
			/* What the seed decides is seen, or is as if nothing were wrong. */
			cr_expect(is || (p->sometimes && is_right(&e)), "%s: status %d: %s", e.line, e.status, e.said);
		}
		cr_expect(caught > 0, "\"%s\" is caught by no seed of %d", p->name, SEEDS);
	}
}
