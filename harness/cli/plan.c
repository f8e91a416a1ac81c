/* ckbench plan MODEL: what plans would cost, before anything runs; or one plan's schedule. */
#include <string.h>

#include "harness/cli/job.h"

/* The plan that the command line names: the one after none, or none itself. */
static ck_status emit_schedule(const ck_cli *cli, const ck_case *c, const ck_plans *p, ck_err *err)
{
	const ck_options *o = &cli->options;
	if (strcmp(o->text[CK_OPTION_emit], "schedule") != 0)
		return ck_fail(err, CK_USAGE, "--emit '%.60s': it takes the word schedule", o->text[CK_OPTION_emit]);
	if ((!o->given[CK_OPTION_plans] && !o->given[CK_OPTION_segments]) || p->n > 2)
		return ck_fail(err, CK_USAGE, "--emit schedule takes one plan; name it: --plans uniform:4");
	return ck_schedule_write(c->graph, &p->at[p->n - 1].schedule, stdout, err);
}

static ck_status run_case(const ck_cli *cli, const ck_case *c, ck_plans *p, ck_err *err)
{
	ck_status status = ck_plans_choose(c->graph, &cli->options, p, err);
	if (status != CK_OK)
		return status;
	if (cli->options.given[CK_OPTION_emit])
		return emit_schedule(cli, c, p, err);
	status = ck_plans_make(p, c->session, err);
	if (status != CK_OK)
		return status;
	ck_result *r = ck_result_new(cli->argc, cli->argv);
	ck_case_describe(c, r);
	for (int i = 0; i < p->n; i++)
		ck_result_add_plan(r, p->at[i].name, p->at[i].segments, p->at[i].program);
	ck_result_table(r, stdout);
	ck_result_free(r);
	return CK_OK;
}

static ck_status run(const ck_cli *cli, ck_err *err)
{
	ck_case c;
	ck_plans p = {0};
	ck_status status = ck_case_open(cli, false, &c, err);
	if (status != CK_OK)
		return status;
	status = run_case(cli, &c, &p, err);
	ck_plans_free(&p);
	ck_case_close(&c);
	return status;
}

const ck_command ck_command_plan = {
    .name = "plan",
    .subject = "MODEL",
    .summary = "what plans will cost, or a plan's schedule, without running it",
    .text = "Memory is planned ahead and exact, so the table shows what a sweep would find, times apart. With "
	    "--emit schedule, the one plan's program as text, as --schedule takes it.",
    .takes = CK_TAKES_CASE | CK_TAKES(plans) | CK_TAKES(segments) | CK_TAKES(schedule) | CK_TAKES(emit),
    .run = run,
};
