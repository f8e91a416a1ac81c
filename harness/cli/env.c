/* ckbench env: what this machine and this build are; the facts that every record carries. */
#include <stdlib.h>

#include "harness/cli/cli.h"
#include "harness/cli/device.h"
#include "harness/cli/interrupt.h"
#include "harness/record/columns.h"
#include "harness/record/result.h"
#include "harness/record/units.h"
#include "kernels/alloc.h"

static void add(ck_columns *c, const char *name, const char *text)
{
	ck_columns_add(c, "%s", name);
	ck_columns_add(c, "%s", text);
}

static void add_sockets(ck_columns *c, const ck_processors *p)
{
	if (!p->sockets || !p->cores)
		return;
	ck_columns_add(c, "sockets");
	char *nodes =
	    p->numa_nodes ? ck_text(", %d NUMA node%s", p->numa_nodes, p->numa_nodes == 1 ? "" : "s") : ck_text("%s", "");
	ck_columns_add(c, "%d, %d core%s in all%s", p->sockets, p->cores, p->cores == 1 ? "" : "s", nodes);
	free(nodes);
}

static void add_caches(ck_columns *c, const ck_processors *p)
{
	static const char *const words[CK_CACHES] = {"L1 data", "L2", "L3"};
	char *list = ck_text("%s", "");
	for (int i = 0; i < CK_CACHES; i++) {
		const ck_cache *cache = &p->cache[i];
		char size[CK_UNIT_TEXT];
		if (!cache->count)
			continue;
		char *longer = ck_text("%s%s%s %d x %s", list, *list ? ", " : "", words[i], cache->count,
				       ck_bytes_text(cache->bytes, size));
		free(list);
		list = longer;
	}
	if (*list)
		add(c, "caches", list);
	free(list);
}

static void add_frequency(ck_columns *c, const ck_processors *p)
{
	if (p->frequency > 0)
		ck_columns_add(c, "frequency"), ck_columns_add(c, "%.0f MHz now", 1e-6 * p->frequency);
	if (p->frequency_max > 0)
		ck_columns_add(c, "range"),
		    ck_columns_add(c, "%.0f .. %.0f MHz", 1e-6 * p->frequency_min, 1e-6 * p->frequency_max);
	if (p->governor)
		add(c, "governor", p->governor);
}

static void add_processors(ck_columns *c, const ck_processors *p)
{
	add_sockets(c, p);
	add_caches(c, p);
	add_frequency(c, p);
}

static void add_machine(ck_columns *c, const ck_machine *m)
{
	char text[CK_UNIT_TEXT];
	const char *limit;
	ck_columns_add(c, "cores");
	ck_columns_add(c, "%d that may be used", m->cores);
	add(c, "cpu", m->cpu);
	add_processors(c, &m->processors);
	add(c, "vectors", m->isa);
	add(c, "memory", ck_bytes_text(m->memory, text));
	add(c, "limit", m->memory_limit ? ck_bytes_text(m->memory_limit, text) : "none set");
	add(c, "available", ck_bytes_text(ck_memory_available(&limit), text));
	add(c, "system", m->os);
	add(c, "kernel", m->kernel);
}

static void add_device_line(void *user, const char *name, const char *text)
{
	ck_columns *c = user;
	ck_columns_add(c, "%s%s", *name ? "device " : "", name);
	ck_columns_add(c, "%s", text);
}

static void add_devices(ck_columns *c, const ck_machine *measured)
{
	for (const ck_backend *const *b = ck_backends; *b && !*ck_interrupted; b++)
		ck_devices_tell(*b, measured, add_device_line, c);
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
	add_devices(&c, cli->options.given[CK_OPTION_ceilings] ? &r->machine : NULL);
	ck_columns_print(&c, "", stdout);
	ck_columns_free(&c);
	ck_result_free(r);
	return CK_OK;
}

const ck_command ck_command_env = {
    .name = "env",
    .summary = "what this machine and this build are",
    .takes = CK_TAKES(ceilings),
    .run = run,
};
