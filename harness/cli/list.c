/* ckbench list: what can be named on the command line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/cli/cli.h"
#include "harness/cli/device.h"
#include "harness/cli/wrap.h"
#include "harness/fault/fault.h"
#include "harness/plan/planner.h"
#include "harness/record/columns.h"
#include "models/models.h"

static void add_range(ck_columns *c, const ck_setting *s)
{
	if (s->words)
		ck_columns_add(c, "%s", s->words);
	else
		ck_columns_add(c, "%.10g .. %.10g", s->least, s->most);
}

static void list_settings(const ck_model *m)
{
	static const char *const heads[] = {"<setting", "<preset", "<range", "<"};
	ck_columns c = ck_columns_new(4, heads);
	for (const ck_setting *s = m->settings; s->name; s++) {
		ck_columns_add(&c, "%s", s->name);
		ck_columns_add(&c, "%s", s->preset);
		add_range(&c, s);
		ck_columns_add(&c, "%s", s->help);
	}
	ck_columns_print(&c, "    ", stdout);
	ck_columns_free(&c);
}

static void list_models(void)
{
	for (const ck_model *const *m = ck_models; *m; m++) {
		printf("  %s: %s\n", (*m)->name, (*m)->summary);
		list_settings(*m);
	}
	static const char *const heads[] = {"<", "<", "<"};
	ck_columns c = ck_columns_new(3, heads);
	for (const ck_preset *p = ck_presets; p->name; p++) {
		ck_columns_add(&c, "%s", p->name);
		ck_columns_add(&c, "%s", p->summary);
		ck_columns_add(&c, "%s", p->stands_for);
	}
	puts("presets");
	ck_columns_print(&c, "  ", stdout);
	ck_columns_free(&c);
}

static void list_planners(void)
{
	static const char *const heads[] = {"<", "<"};
	ck_columns c = ck_columns_new(2, heads);
	for (const ck_planner *const *p = ck_planners; *p; p++) {
		ck_columns_add(&c, "%s%s%s", (*p)->name, (*p)->knob ? ":" : "", (*p)->knob ? (*p)->knob : "");
		ck_columns_add(&c, "%s", (*p)->summary);
	}
	ck_columns_print(&c, "  ", stdout);
	ck_columns_free(&c);
}

typedef struct device_list {
	ck_columns c;
	const char *backend; /* whose name stands before its summary already */
} device_list;

static void add_device_line(void *user, const char *name, const char *text)
{
	device_list *l = user;
	ck_columns_add(&l->c, "%s", strcmp(name, l->backend) == 0 ? "" : name);
	ck_columns_add(&l->c, "%s", text);
}

static void list_devices(void)
{
	static const char *const heads[] = {"<", "<"};
	device_list l = {.c = ck_columns_new(2, heads)};
	for (const ck_backend *const *b = ck_backends; *b; b++) {
		l.backend = (*b)->name;
		ck_columns_add(&l.c, "%s", l.backend);
		ck_columns_add(&l.c, "%s", (*b)->summary);
		ck_devices_tell(*b, NULL, add_device_line, &l);
	}
	ck_columns_print(&l.c, "  ", stdout);
	ck_columns_free(&l.c);
}

static void list_faults(void)
{
	for (const ck_fault *const *f = ck_faults(); *f; f++)
		ck_wrap((*f)->name, 2, (*f)->field, 34, stdout);
}

static ck_status run(const ck_cli *cli, ck_err *err)
{
	static const struct {
		const char *name;
		void (*list)(void);
	} lists[] = {{"models", list_models}, {"planners", list_planners}, {"devices", list_devices}, {"faults", list_faults}};
	bool any = false;
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
		if (cli->subject && strcmp(cli->subject, lists[i].name) != 0)
			continue;
		printf("%s%s\n", any ? "\n" : "", lists[i].name);
		lists[i].list();
		any = true;
	}
	return any ? CK_OK
		   : ck_fail(err, CK_USAGE, "list '%.60s': it can list models, planners, devices or faults", cli->subject);
}

const ck_command ck_command_list = {
    .name = "list",
    .subject = "[models|planners|devices|faults]",
    .summary = "what can be named on the command line",
    .run = run,
};
