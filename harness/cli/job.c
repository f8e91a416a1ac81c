#include "harness/cli/job.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "harness/cli/interrupt.h"
#include "harness/cli/outputs.h"
#include "harness/record/units.h"
#include "kernels/alloc.h"

void ck_job_remark(const ck_job *j, const char *format, ...)
{
	if (j->cli->options.given[CK_OPTION_quiet])
		return;
	va_list args;
	va_start(args, format);
	vfprintf(j->out, format, args);
	fputc('\n', j->out);
	va_end(args);
}

/* ---- what fits ----------------------------------------------------------------------------------------------------------- */

/* Checking keeps four bytes on each line of 64 (harness/run/watch.c), in the host's memory. */
static size_t needed(const ck_case *c, const ck_program *p)
{
	return p->layout.arena + (c->backend->free_memory ? 0 : p->layout.arena / 16);
}

/* Bytes, of the device or the host; `limit`, fresh memory, says in words what leaves so many. */
static size_t room_for_arenas(const ck_case *c, char **limit)
{
	const char *of_host;
	size_t bytes = c->backend->free_memory ? c->backend->free_memory(c->device) : ck_memory_available(&of_host);
	*limit = c->backend->free_memory ? ck_text("device %s:%d", c->backend->name, c->opened.index) : ck_text("%s", of_host);
	return bytes;
}

/* Points for all plans; those that cannot fit are told and skipped. The first that fits is the baseline. */
static ck_status add_points(ck_job *j, ck_err *err)
{
	char *limit, need[CK_UNIT_TEXT], room[CK_UNIT_TEXT];
	size_t available = room_for_arenas(&j->c, &limit), least = SIZE_MAX, most = 0;
	for (int i = 0; i < j->plans.n; i++) {
		const ck_plan_entry *e = &j->plans.at[i];
		ck_point *p = ck_result_add_plan(j->result, e->name, e->segments, e->program);
		size_t bytes = needed(&j->c, e->program);
		least = bytes < least ? bytes : least;
		if (bytes <= available && most == 0) {
			free(j->result->baseline);
			j->result->baseline = ck_text("%s", e->name);
		}
		if (bytes <= available)
			most = p->arena > most ? p->arena : most;
		else
			ck_point_fail(p, CK_POINT_SKIPPED,
				      ck_text("it needs %s, but %s leaves %s", ck_bytes_text(bytes, need), limit,
					      ck_bytes_text(available, room)));
	}
	if (most == 0)
		ck_fail(err, CK_MISSING,
			"no plan fits in memory: the smallest needs %s, but %s leaves %s; take a smaller batch or model",
			ck_bytes_text(least, need), limit, ck_bytes_text(available, room));
	free(limit);
	return most == 0 ? CK_MISSING : ck_memory_open(j->c.session, most, &j->memory, err);
}

static void tell_what_is_skipped(const ck_job *j)
{
	for (int i = 0; i < j->result->npoints; i++)
		if (j->result->points[i].status == CK_POINT_SKIPPED)
			ck_job_remark(j, "skipping plan %s: %s", j->result->points[i].plan, j->result->points[i].reason);
	if (strcmp(j->result->baseline, "none") != 0)
		ck_job_remark(j, "plan none does not fit, so the others are compared with %s", j->result->baseline);
}

/* ---- opening ------------------------------------------------------------------------------------------------------------- */

static ck_status choose_plans(ck_job *j, ck_err *err)
{
	const ck_options *o = &j->cli->options;
	bool listed = o->given[CK_OPTION_plans] || o->given[CK_OPTION_segments] || o->given[CK_OPTION_schedule];
	if (j->cli->command->few_plans && !listed)
		return ck_plans_few(j->c.graph, &j->plans, err);
	return ck_plans_choose(j->c.graph, o, &j->plans, err);
}

/* The options that pick the plans and say how to train, as they were given. */
static char *work_options(const ck_options *o)
{
	static const ck_option which[] = {CK_OPTION_plans,    CK_OPTION_segments,       CK_OPTION_schedule,
					  CK_OPTION_steps,    CK_OPTION_optimizer,      CK_OPTION_lr,
					  CK_OPTION_momentum, CK_OPTION_weight_decay,   CK_OPTION_accumulate,
					  CK_OPTION_scaler,   CK_OPTION_growth_interval};
	char *line = ck_text("%s", "");
	for (size_t i = 0; i < sizeof which / sizeof *which; i++) {
		char *one = ck_option_line(o, which[i]);
		char *longer = ck_text("%s%s%s", line, *line && *one ? " " : "", one);
		free(line);
		free(one);
		line = longer;
	}
	return line;
}

static void tell_the_case(ck_job *j)
{
	char parameters[CK_UNIT_TEXT], flops[CK_UNIT_TEXT];
	const ck_result *r = j->result;
	ck_job_remark(j, "%s", r->c.line);
	ck_job_remark(j, "%s parameters, %d ops in %d stages, %sFLOP a step; %s",
		      ck_count_text((double)r->c.parameters, parameters), r->c.ops, r->c.stages,
		      ck_count_text(r->c.model_flops, flops), r->device.description);
	if (r->device.threads > r->machine.cores)
		ck_job_remark(j, "%d threads take turns on %d core(s): times will be long and uneven", r->device.threads,
			      r->machine.cores);
	if (j->plans.same)
		ck_job_remark(j, "%d plans; %d more are the same as one of these", j->plans.n, j->plans.same);
	if (j->plans.left_out)
		ck_job_remark(j, "%d plans in between are left out; --plans or --segments names any of them",
			      j->plans.left_out);
}

static ck_status open_parts(ck_job *j, bool input_grad, ck_err *err)
{
	const ck_cli *cli = j->cli;
	const char *folder = cli->command->takes & CK_TAKES(out) ? ck_outputs_folder(&cli->options) : NULL;
	ck_status status = ck_outputs_check(cli, folder, err);
	if (status == CK_OK)
		status = ck_case_open(cli, input_grad, &j->c, err);
	if (status == CK_OK)
		status = choose_plans(j, err);
	if (status == CK_OK)
		status = ck_plans_make(&j->plans, j->c.session, err);
	if (status != CK_OK)
		return status;
	j->result = ck_result_new(cli->argc, cli->argv);
	ck_case_describe(&j->c, j->result);
	char *options = work_options(&cli->options);
	j->result->c.line = ck_case_line(&j->c, cli->command->name, options);
	free(options);
	tell_the_case(j);
	status = add_points(j, err);
	tell_what_is_skipped(j);
	return status;
}

ck_status ck_job_open(const ck_cli *cli, bool input_grad, ck_job *j, ck_err *err)
{
	*j = (ck_job){.cli = cli, .out = ck_outputs_to_people(cli)};
	j->progress = ck_progress_new(cli->options.given[CK_OPTION_quiet]);
	ck_interrupt_watch();
	ck_status status = open_parts(j, input_grad, err);
	fflush(j->out); /* so that a crash later on still says which case it was */
	if (status != CK_OK)
		ck_job_close(j);
	return status;
}

void ck_job_close(ck_job *j)
{
	ck_memory_close(&j->memory);
	ck_result_free(j->result);
	ck_plans_free(&j->plans);
	ck_case_close(&j->c);
}
