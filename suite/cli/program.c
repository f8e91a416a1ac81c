#define _GNU_SOURCE
#include "program.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/alloc.h"
#include "kernels/readfile.h"

static char *read_whole(const char *path)
{
	char *text;
	size_t bytes;
	ck_err err = {""};
	cr_assert(ck_file_read(path, SIZE_MAX, &text, &bytes, &err) == CK_OK, "%s", err.text);
	return text;
}

static char *read_beside(const outcome *o, const char *ending)
{
	char *path = ck_text("%s.%s", o->folder, ending);
	char *text = read_whole(path);
	unlink(path);
	free(path);
	return text;
}

/* The printed output goes to files beside the folder, not in it, so that all in it is the program's own. */
void run_again(outcome *o, const char *command)
{
	cr_assert(getenv("CKBENCH"), "CKBENCH names no program; run this through meson test, or set it");
	const char *f = o->folder;
	char *line = ck_text("cd %s && ck() { \"$CKBENCH\" \"$@\"; } && { %s\n} >%s.out 2>%s.err </dev/null", f, command, f, f);
	int status = system(line);
	free(line);
	line = ck_text("cd %s && find . ! -name . -printf '%%P\\n' | LC_ALL=C sort | tr '\\n' ' ' >%s.files", f, f);
	cr_assert(system(line) == 0);
	free(line);
	free(o->out);
	free(o->err);
	free(o->files);
	o->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	o->out = read_beside(o, "out");
	o->err = read_beside(o, "err");
	o->files = read_beside(o, "files");
}

outcome run(const char *command)
{
	outcome o = {.folder = "/tmp/ckbench-test.XXXXXX"};
	cr_assert(mkdtemp(o.folder));
	run_again(&o, command);
	return o;
}

void outcome_free(outcome *o)
{
	char *line = ck_text("rm -rf %s", o->folder);
	cr_assert(system(line) == 0);
	free(line);
	free(o->out);
	free(o->err);
	free(o->files);
}

char *read_output(const outcome *o, const char *name)
{
	char *path = ck_text("%s/%s", o->folder, name);
	char *text = read_whole(path);
	free(path);
	return text;
}
