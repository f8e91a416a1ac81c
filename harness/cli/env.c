/* ckbench env: what this machine and this build are; the facts that every record carries. */
#include <stdlib.h>

#include "harness/cli/cli.h"
#include "harness/cli/device.h"
#include "harness/record/columns.h"
#include "harness/record/result.h"
#include "harness/record/units.h"

static void add(ck_columns *c, const char *name, const char *text)
{
	ck_columns_add(c, "%s", name);
	ck_columns_add(c, "%s", text);
}

static void add_machine(ck_columns *c, const ck_machine *m)
{
	char text[CK_UNIT_TEXT];
	const char *limit;
	ck_columns_add(c, "cores");
	ck_columns_add(c, "%d that may be used", m->cores);
	add(c, "cpu", m->cpu);
	add(c, "vectors", m->isa);
	add(c, "memory", ck_bytes_text(m->memory, text));
	add(c, "limit", m->memory_limit ? ck_bytes_text(m->memory_limit, text) : "none set");
	add(c, "available", ck_bytes_text(ck_memory_available(&limit), text));
	add(c, "system", m->os);
	add(c, "kernel", m->kernel);
}

static void add_devices(ck_columns *c)
{
	for (const ck_backend *const *b = ck_backends; *b; b++) {
		char *text = ck_device_text(*b);
		ck_columns_add(c, "device %s", (*b)->name);
		ck_columns_add(c, "%s", text);
		free(text);
	}
}

static ck_status run(const ck_cli *cli, ck_err *err)
{
	(void)err;
	static const char *const heads[] = {"<", "<"};
	ck_columns c = ck_columns_new(2, heads);
	ck_result *r = ck_result_new(cli->argc, cli->argv);
	add(&c, "ckbench", r->tool.version);
	add(&c, "revision", r->tool.git);
	add(&c, "compiler", r->tool.compiler);
	add(&c, "flags", r->tool.flags);
	add_machine(&c, &r->machine);
	add_devices(&c);
	ck_columns_print(&c, "", stdout);
	ck_columns_free(&c);
	ck_result_free(r);
	return CK_OK;
}

const ck_command ck_command_env = {
    .name = "env",
    .summary = "what this machine and this build are",
    .run = run,
};
