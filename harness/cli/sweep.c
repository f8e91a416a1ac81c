/* ckbench sweep MODEL: the tradeoff curve of memory against time. */
#include <stdlib.h>
#include <string.h>

#include "harness/cli/ceilings.h"
#include "harness/cli/complain.h"
#include "harness/cli/interrupt.h"
#include "harness/cli/outputs.h"
#include "harness/cli/peak.h"
#include "harness/record/plot.h"
#include "harness/record/units.h"
#include "kernels/alloc.h"

/* ---- times --------------------------------------------------------------------------------------------------------------- */

static void tell_progress(void *user, double fraction, double left)
{
	ck_job *j = user;
	ck_progress_show(&j->progress, false, "measuring %d plans: %.0f %%, about %.0f s left", j->plans.n, 100 * fraction,
			 left);
}

/* A median that is known to within 2 % tells plans apart as well as a machine shared with others ever will. */
static const double NARROW = 0.02;

static ck_measure_options measure_options(ck_job *j)
{
	const ck_options *o = &j->cli->options;
	int rounds = (int)o->whole[CK_OPTION_rounds];
	return (ck_measure_options){
	    .warmup = 1,
	    .min_rounds = rounds,
	    .max_rounds = rounds > 1000 ? rounds : 1000,
	    .seconds = o->real[CK_OPTION_seconds],
	    .narrow = NARROW,
	    .seed = j->c.seed,
	    .stop = ck_interrupted,
	    .progress = tell_progress,
	    .user = j,
	};
}

/* Takes the samples over; a point that has none was interrupted before its first. */
static void keep_times(ck_job *j, const int *which, ck_samples *samples, int n)
{
	for (int i = 0; i < n; i++) {
		ck_point *p = &j->result->points[which[i]];
		p->time = samples[i];
		if (p->time.n == 0)
			ck_point_fail(p, CK_POINT_SKIPPED, ck_text("checked, but interrupted before it was timed"));
		if (p->time.n > j->result->measuring.rounds)
			j->result->measuring.rounds = p->time.n;
	}
}

/* Times all plans whose gradients were proved, against each other. */
static ck_status measure(ck_job *j, ck_err *err)
{
	ck_program **programs = ck_alloc((size_t)j->plans.n, sizeof(ck_program *));
	ck_samples *samples = ck_alloc((size_t)j->plans.n, sizeof *samples);
	int *which = ck_alloc((size_t)j->plans.n, sizeof *which), n = 0;
	for (int i = 0; i < j->plans.n; i++) {
		if (j->result->points[i].status != CK_POINT_OK || !j->result->points[i].checked)
			continue;
		which[n] = i;
		programs[n++] = j->plans.at[i].program;
	}
	const ck_measure_options o = measure_options(j);
	ck_measure_end end = CK_END_STOPPED;
	ck_status status = CK_OK;
	if (n > 0) {
		double from = ck_seconds_now();
		ck_memory_reset(&j->memory, &programs[0]->layout, j->c.seed);
		status = ck_measure(programs, n, &j->memory, &o, samples, &end, err);
		j->result->measuring.seconds = ck_seconds_now() - from;
		j->result->measuring.end = ck_text("%s", ck_measure_end_names[end]);
		keep_times(j, which, samples, n);
	}
	free(programs);
	free(samples);
	free(which);
	ck_progress_clear(&j->progress);
	return status;
}

/* ---- ceilings ------------------------------------------------------------------------------------------------------------- */

/* Taken before the times and after them, and the larger kept: what the device can do, whatever disturbed one of them. */
static void take_ceilings(ck_job *j)
{
	const ck_case *c = &j->c;
	ck_ceiling_options o = ck_ceiling_choose(c->backend, c->device, &j->result->machine);
	ck_precision p = ck_precision_of(c->backend->real, c->settings.options.low, c->opened.tf32);
	ck_ceilings now;
	if (*ck_interrupted)
		return;
	o.precisions = 1u << p | 1u << ck_precision_of(c->backend->real, CK_DTYPE_NONE, c->opened.tf32);
	ck_progress_show(&j->progress, true, "measuring what the device can do");
	ck_ceilings_take(c->backend, c->device, &o, &now);
	ck_progress_clear(&j->progress);
	j->result->ceilings.known = true;
	j->result->ceilings.precision = p;
	ck_ceilings_raise(&j->result->ceilings.at, &now);
}

static ck_status measure_between_ceilings(ck_job *j, ck_err *err)
{
	take_ceilings(j);
	ck_status status = measure(j, err);
	j->result->device.facts = ck_backend_facts(j->c.backend, j->c.device); /* while it is still warm */
	take_ceilings(j);
	return status;
}

/* ---- peaks --------------------------------------------------------------------------------------------------------------- */

/* Our own memory goes first: it would take room from the children. */
static void measure_peaks(ck_job *j)
{
	ck_memory_close(&j->memory);
	for (int i = 0; i < j->plans.n && !*ck_interrupted; i++) {
		ck_err why = {""};
		ck_progress_show(&j->progress, true, "process peak of %s, %d of %d", j->plans.at[i].name, i + 1, j->plans.n);
		if (j->result->points[i].time.n && ck_peak_measure(j, i, &why) != CK_OK && !*ck_interrupted)
			ck_complain("%s", why.text);
	}
	ck_progress_clear(&j->progress);
}

/* ---- the command --------------------------------------------------------------------------------------------------------- */

static void tell_how_measuring_ended(const ck_job *j)
{
	static const char *const words[] = {
	    [CK_END_NARROW] = "every interval is within 2 % of its median",
	    [CK_END_ROUNDS] = "that is the most",
	    [CK_END_TIME] = "the time limit was reached (--seconds)",
	    [CK_END_STOPPED] = "interrupted",
	};
	for (int end = 0; end <= CK_END_STOPPED && j->result->measuring.rounds; end++)
		if (strcmp(j->result->measuring.end, ck_measure_end_names[end]) == 0)
			ck_job_remark(j, "%d rounds in %.1f s: %s", j->result->measuring.rounds, j->result->measuring.seconds,
				      words[end]);
}

static void tell_of_interruption(const ck_job *j)
{
	int finished = 0;
	for (int i = 0; i < j->result->npoints; i++)
		finished += j->result->points[i].time.n > 0;
	ck_complain("interrupted: %d of %d points are finished%s", finished, j->result->npoints,
		    finished ? " and kept" : ", so nothing is written");
}

/* Of two steps that are taken whether or not they succeed, the first failure counts: its message is the one that is told. */
static ck_status first(ck_status earlier, ck_status later)
{
	return earlier != CK_OK ? earlier : later;
}

static ck_status plot(const void *record, const char *ending, char **image, size_t *bytes, ck_err *err)
{
	return ck_plot_sweep(record, ending, image, bytes, err);
}

static ck_status write_all(const ck_job *j, ck_status status, ck_err *err)
{
	char *json = ck_result_json(j->result), *tsv = ck_result_tsv(j->result);
	status = first(status, ck_outputs_write(j, &(ck_output){json, tsv, j->result, plot}, err));
	status = first(status, ck_outputs_write_json(j->cli, json, err)); /* even after a full disk: it may go elsewhere */
	free(json);
	free(tsv);
	return status;
}

static ck_status run_job(ck_job *j, ck_err *err)
{
	ck_status status = ck_job_check(j, err);
	status = first(status, measure_between_ceilings(j, err));
	measure_peaks(j);
	ck_result_front(j->result);
	ck_result_table(j->result, j->out);
	tell_how_measuring_ended(j);
	if (*ck_interrupted)
		tell_of_interruption(j);
	if (!*ck_interrupted || j->result->measuring.rounds)
		status = write_all(j, status, err);
	return status;
}

static ck_status run(const ck_cli *cli, ck_err *err)
{
	ck_job j;
	ck_status status = ck_job_open(cli, false, &j, err);
	if (status != CK_OK)
		return status;
	status = run_job(&j, err);
	ck_job_close(&j);
	return status;
}

const ck_command ck_command_sweep = {
    .name = "sweep",
    .subject = "MODEL",
    .summary = "the tradeoff curve of memory against time",
    .text = "Checks every plan's gradients as parity does, then times all plans in rounds, each round in a new order, "
	    "and runs each in a process of its own for that process's peak memory. Prints a table and writes the "
	    "record, a TSV and plots. Without a list, all distinct plans are swept. Ctrl-C keeps what is finished.",
    .takes = CK_TAKES_CASE | CK_TAKES(plans) | CK_TAKES(segments) | CK_TAKES(schedule) | CK_TAKES(seconds) | CK_TAKES(rounds) |
	     CK_TAKES(out) | CK_TAKES(json) | CK_TAKES(force) | CK_TAKES(quiet),
    .run = run,
};
