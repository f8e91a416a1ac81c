/* ckbench faults [MODEL…]: are known mistakes caught? Each is switched on in turn, in each model and precision under each plan that
 * recomputes anything, and the checks that parity makes must notice; and must be silent where nothing is wrong. */
#include <stdlib.h>
#include <string.h>

#include "harness/cli/interrupt.h"
#include "harness/cli/outputs.h"
#include "harness/cli/progress.h"
#include "harness/record/faults.h"
#include "harness/record/file.h"
#include "kernels/alloc.h"

/* Small, and between them every op that can go wrong: statistics, pooling, residuals, masks, tied weights, dropout. */
static const char *const preset_models[] = {
    "mlp:layers=8,width=64,batch=64,dropout=0.1",
    "resnet18:width=8,image=32,classes=10,batch=4,dropout=0.1",
    "gpt-tiny:dropout=0.1,tally=1",
};
enum { PRESETS = sizeof preset_models / sizeof *preset_models };

typedef struct faults_job {
	const ck_cli *cli;
	ck_fault_report report;
	ck_progress progress;
	char **lines; /* of each model, the command line that does the same again; owned */
	int nlines, lines_capacity;
	FILE *out;
} faults_job;

/* ---- a model ------------------------------------------------------------------------------------------------------------- */

static bool recomputes(const ck_graph *g, const ck_schedule *s)
{
	int forwards = 0;
	for (int i = 0; i < s->n; i++)
		forwards += s->at[i].code == 'F';
	return forwards > g->nops;
}

/* Where faults are tried: in the case's session, and those with a running generator in one that has it. */
typedef struct ground {
	ck_session *session;
	ck_outcome baseline;
} ground;
enum { OF_CASE, STATEFUL, GROUNDS };

/* Without a fault no check may fire; then each fault in turn. */
static ck_status try_plan(faults_job *j, int model, ck_fault_subject s[GROUNDS], const char *plan, ck_err *err)
{
	ck_fault_verdict v;
	ck_status status = CK_OK;
	for (int k = 0; k < GROUNDS && status == CK_OK; k++) {
		status = ck_fault_try(&s[k], NULL, &v, err);
		if (status == CK_OK && v.status == CK_FAULT_CAUGHT)
			ck_fault_report_add(&j->report, NULL, model, plan, &v);
	}
	if (!recomputes(s->session->graph, s->schedule))
		return status;
	for (const ck_fault *const *f = ck_faults(); *f && status == CK_OK && !*ck_interrupted; f++) {
		ck_progress_show(&j->progress, false, "%s, --amp %s, %s: %s", j->report.names[model],
				 j->report.models[model]->c.amp, plan, (*f)->name);
		status = ck_fault_try(&s[(*f)->stateful ? STATEFUL : OF_CASE], *f, &v, err);
		if (status == CK_OK)
			ck_fault_report_add(&j->report, *f, model, plan, &v);
	}
	return status;
}

static ck_status take_baseline(const ck_case *c, const ck_session *s, const ck_schedule *none, ck_outcome *o, ck_err *err)
{
	ck_program *p;
	ck_memory m;
	ck_status status = ck_program_make(s, none, &p, err);
	if (status != CK_OK)
		return status;
	status = ck_memory_open(s, p->layout.arena, &m, err);
	if (status == CK_OK) {
		ck_memory_init(&m, &p->layout, c->seed, ck_case_batch(c));
		status = ck_outcome_take(p, &m, c->seed, o, err);
		ck_memory_close(&m);
	}
	ck_program_free(p);
	ck_err why = {""};
	if (status == CK_OK && !ck_outcome_proves(c->graph, o, &why))
		return ck_fail(err, CK_FAILED, "%.200s: %s", c->model, why.text);
	return status;
}

/* The stateful ground has a session of its own; close_grounds, in any case. */
static ck_status open_grounds(const ck_case *c, const ck_schedule *none, ground grounds[GROUNDS], ck_err *err)
{
	grounds[OF_CASE].session = c->session;
	ck_status status = ck_session_open(c->graph, c->backend, c->device, &grounds[STATEFUL].session, err);
	if (status == CK_OK)
		ck_session_rng(grounds[STATEFUL].session, CK_RNG_STATEFUL);
	for (int k = 0; k < GROUNDS && status == CK_OK; k++)
		status = take_baseline(c, grounds[k].session, none, &grounds[k].baseline, err);
	return status;
}

static void close_grounds(ground grounds[GROUNDS])
{
	for (int k = 0; k < GROUNDS; k++)
		ck_outcome_free(&grounds[k].baseline);
	ck_session_close(grounds[STATEFUL].session);
}

static ck_status try_plans(faults_job *j, int model, const ck_case *c, const ck_plans *plans, ck_err *err)
{
	ground grounds[GROUNDS] = {0};
	bool any = false;
	ck_status status = open_grounds(c, &plans->at[0].schedule, grounds, err);
	for (int i = 0; i < plans->n && status == CK_OK && !*ck_interrupted; i++) {
		ck_fault_subject s[GROUNDS];
		for (int k = 0; k < GROUNDS; k++)
			s[k] = (ck_fault_subject){grounds[k].session, &plans->at[i].schedule, &grounds[k].baseline, c->seed,
						  ck_case_batch(c)};
		any |= recomputes(c->graph, s->schedule);
		status = try_plan(j, model, s, plans->at[i].name, err);
	}
	ck_fault_verdict v = {.status = CK_FAULT_NOT_APPLICABLE};
	ck_fail(&v.why, CK_OK, "no plan recomputes anything in this model");
	for (const ck_fault *const *f = ck_faults(); *f && status == CK_OK && !any; f++) {
		v.rng = grounds[(*f)->stateful ? STATEFUL : OF_CASE].session->rng;
		ck_fault_report_add(&j->report, *f, model, NULL, &v);
	}
	close_grounds(grounds);
	return status;
}

/* One segment per stage, and few large ones of which the last is or is not kept: unless the command line names others. */
static ck_options plan_options(const ck_options *o, const ck_graph *g)
{
	ck_options plans = *o;
	if (!o->given[CK_OPTION_plans])
		plans.text[CK_OPTION_plans] = g->nstages < 4 ? "stages" : "stages,uniform:2,uniform:4";
	return plans;
}

/* The case's command line; fresh memory. */
static char *line_of(const faults_job *j, const ck_case *c)
{
	char *more = ck_option_line(&j->cli->options, CK_OPTION_plans), *line = ck_case_line(c, "faults", more);
	free(more);
	return line;
}

/* In one precision; the first of a model notes its line, which names a precision only if there is but one. */
static ck_status try_case(faults_job *j, const char *model, const char *amp, bool first, ck_err *err)
{
	ck_cli one = *j->cli;
	ck_case c;
	ck_plans plans = {0};
	one.subject = model;
	one.options.given[CK_OPTION_amp] = true;
	one.options.text[CK_OPTION_amp] = amp;
	ck_status status = ck_case_open(&one, true, &c, err);
	if (status != CK_OK)
		return status;
	ck_result *about = ck_result_new(j->cli->argc, j->cli->argv);
	ck_case_describe(&c, about);
	about->c.line = line_of(j, &c);
	c.cli = j->cli;
	if (first) {
		j->lines = ck_grow(j->lines, &j->lines_capacity, j->nlines + 1, sizeof *j->lines);
		j->lines[j->nlines++] = line_of(j, &c);
	}
	ck_interrupt_keep(); /* from here on there is a record */
	int index = ck_fault_report_model(&j->report, model, about);
	ck_options options = plan_options(&j->cli->options, c.graph);
	status = ck_plans_choose(c.graph, &options, &plans, err);
	if (status == CK_OK)
		status = try_plans(j, index, &c, &plans, err);
	ck_plans_free(&plans);
	ck_case_close(&c);
	return status;
}

static ck_status try_model(faults_job *j, const char *model, ck_err *err)
{
	const ck_options *o = &j->cli->options;
	if (o->given[CK_OPTION_amp])
		return try_case(j, model, o->text[CK_OPTION_amp], true, err);
	ck_status status = CK_OK;
	for (int i = 0; ck_amp_words[i] && status == CK_OK && !*ck_interrupted; i++)
		status = try_case(j, model, ck_amp_words[i], i == 0, err);
	return status;
}

/* ---- all ----------------------------------------------------------------------------------------------------------------- */

static ck_status verdict(const ck_fault_report *r, ck_err *err)
{
	int missed = ck_fault_report_count(r, CK_FAULT_MISSED);
	if (missed == 0 && r->nalarms == 0)
		return CK_OK;
	return ck_fail(err, CK_FAILED, "%d fault%s missed, %d false alarm%s; the table names them", missed,
		       missed == 1 ? "" : "s", r->nalarms, r->nalarms == 1 ? "" : "s");
}

static ck_status write_out(const faults_job *j, const char *text, ck_err *err)
{
	char *path;
	ck_status status = ck_outputs_write_record(j->cli->options.text[CK_OPTION_out], "faults", text, &path, err);
	if (status == CK_OK)
		fprintf(j->out, "written: %s\n", path);
	free(path);
	return status;
}

/* To the places that were asked for; without any, the table is all. */
static ck_status write_records(const faults_job *j, ck_err *err)
{
	const ck_options *o = &j->cli->options;
	char *text = ck_fault_report_json(&j->report);
	ck_status status = CK_OK;
	if (o->given[CK_OPTION_out])
		status = write_out(j, text, err);
	if (status == CK_OK)
		status = ck_outputs_write_json(j->cli, text, err);
	free(text);
	return status;
}

static void tell(const faults_job *j)
{
	const ck_fault_report *r = &j->report;
	if (!j->cli->options.given[CK_OPTION_quiet])
		for (int i = 0; i < j->nlines; i++)
			fprintf(j->out, "%s\n", j->lines[i]);
	ck_fault_report_table(r, j->out);
	fprintf(j->out, "%d cells: %d caught, %d missed, %d not applicable; %d false alarms\n", r->ncells,
		ck_fault_report_count(r, CK_FAULT_CAUGHT), ck_fault_report_count(r, CK_FAULT_MISSED),
		ck_fault_report_count(r, CK_FAULT_NOT_APPLICABLE), r->nalarms);
}

static ck_status run(const ck_cli *cli, ck_err *err)
{
	const ck_options *o = &cli->options;
	faults_job j = {.cli = cli, .progress = ck_progress_new(o->given[CK_OPTION_quiet]), .out = ck_outputs_to_people(cli)};
	const char *const *models = cli->nsubjects ? cli->subjects : preset_models;
	int n = cli->nsubjects ? cli->nsubjects : PRESETS;
	if (o->given[CK_OPTION_fast])
		return ck_fail(
		    err, CK_USAGE,
		    "faults with --fast: many faults are smaller than the noise of sums in any order, so that a miss would "
		    "prove nothing; leave --fast out");
	ck_interrupt_watch();
	ck_status status = ck_outputs_check(cli, o->text[CK_OPTION_out], err);
	for (int i = 0; i < n && status == CK_OK && !*ck_interrupted; i++)
		status = try_model(&j, models[i], err);
	ck_progress_clear(&j.progress);
	if (status == CK_OK) {
		tell(&j);
		status = write_records(&j, err);
	}
	if (status == CK_OK)
		status = verdict(&j.report, err);
	ck_fault_report_free(&j.report);
	for (int i = 0; i < j.nlines; i++)
		free(j.lines[i]);
	free(j.lines);
	return status;
}

const ck_command ck_command_faults = {
    .name = "faults",
    .subject = "[MODEL ...]",
    .several = true,
    .summary = "are known mistakes caught?",
    .text = "Switches on known mistakes of checkpointing code, one at a time ('ckbench list faults'), and tells which check "
	    "caught each, in each model under each plan that recomputes anything, without and with mixed precision; with "
	    "--amp in that precision only. [..] tells in which, where not in all. The last column is what comparing shapes "
	    "and dtypes of recomputed tensors only would have seen. A fault that no check catches, or a check that fires "
	    "without one, fails. Faults with a running generator (rng-...) are tried with one whatever --rng says. Without a "
	    "model, three small ones are taken. --out keeps the record as DIR/faults-N.json.",
    .takes = CK_TAKES_CASE | CK_TAKES(plans) | CK_TAKES(out) | CK_TAKES(json) | CK_TAKES(force) | CK_TAKES(quiet),
    .run = run,
};
