/* ckbench env: what this machine and this build are; the facts that every record carries. */
#include <stdio.h>

#include "harness/cli/cli.h"
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

/* Each device as it describes itself, or why it cannot be opened. */
static void add_devices(ck_columns *c)
{
	for (const ck_backend *const *b = ck_backends; *b; b++) {
		ck_device *device;
		ck_err why = {""};
		ck_columns_add(c, "device %s", (*b)->name);
		if ((*b)->open(0, 0, &device, &why) != CK_OK) {
			ck_columns_add(c, "not there: %s", why.text);
			continue;
		}
		ck_columns_add(c, "%s; %d thread(s)", (*b)->describe(device), (*b)->threads(device));
		(*b)->close(device);
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
