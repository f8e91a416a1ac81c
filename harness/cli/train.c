/* ckbench train MODEL: loss curves, plan against plan. */
#include <stdlib.h>
#include <string.h>

#include "harness/cli/complain.h"
#include "harness/cli/interrupt.h"
#include "harness/cli/outputs.h"
#include "harness/record/plot.h"
#include "kernels/alloc.h"

typedef struct train_job {
	ck_job j;
	ck_training record;
	ck_course *curves; /* by plan */
	int at;            /* the plan under way */
} train_job;

static void tell_progress(void *user, int step, double loss)
{
	train_job *t = user;
	ck_progress_show(&t->j.progress, false, "training %s, %d of %d: step %d of %d, loss %.4g",
			 t->j.result->points[t->at].plan, t->at + 1, t->j.plans.n, step, t->record.steps, loss);
}

/* ---- training ------------------------------------------------------------------------------------------------------------ */

static ck_status train_plan(train_job *t, const ck_course *baseline, ck_err *why)
{
	ck_job *j = &t->j;
	ck_point *p = &j->result->points[t->at];
	ck_course *c = &t->curves[t->at];
	ck_train_options o = {
	    .seed = j->c.seed,
	    .steps = t->record.steps,
	    .accumulate = j->c.accumulate,
	    .batch = j->c.batch,
	    .stop = ck_interrupted,
	    .progress = tell_progress,
	    .user = t,
	};
	ck_status status = ck_train(j->plans.at[t->at].program, &j->memory, &o, baseline, c, why);
	p->live_peak = c->live_peak;
	if (status != CK_OK)
		ck_point_fail(p, baseline ? CK_POINT_PARITY_FAILED : CK_POINT_ERROR, ck_text("%s", why->text));
	return status;
}

/* All plans that fit, the baseline first. Without a whole baseline the others go as far as that went. */
static ck_status train_all(train_job *t, ck_err *err)
{
	ck_result *r = t->j.result;
	int base = (int)(ck_result_find(r, r->baseline) - r->points);
	ck_status status = CK_OK;
	ck_interrupt_keep();
	for (t->at = base; t->at < t->j.plans.n; t->at++) {
		ck_point *p = &r->points[t->at];
		if (p->status != CK_POINT_OK)
			continue;
		if (*ck_interrupted || r->points[base].status != CK_POINT_OK) {
			ck_point_fail(p, CK_POINT_SKIPPED,
				      ck_text("%s", *ck_interrupted ? "interrupted before its turn"
								    : "there is no baseline to compare with"));
			continue;
		}
		ck_err why = {""};
		ck_status one = train_plan(t, t->at == base ? NULL : &t->curves[base], &why);
		if (one != CK_OK)
			status = ck_fail(err, one, "plan %s: %s", p->plan, why.text);
	}
	ck_progress_clear(&t->j.progress);
	return status;
}

/* ---- the command --------------------------------------------------------------------------------------------------------- */

static void tell_how(const train_job *t)
{
	const ck_optimizer *o = &t->record.optimizer;
	const ck_batch *batch = t->j.c.batch;
	char *data = batch ? ck_text("%lld batches an epoch", (long long)batch->batches)
			   : ck_text("one batch of random numbers, the same at each step");
	ck_job_remark(&t->j, "%d steps of %s, learning rate %g, weight decay %g; %s", t->record.steps,
		      ck_optimizer_name(o->kind), o->lr, o->weight_decay, data);
	if (t->record.accumulate > 1)
		ck_job_remark(&t->j, "%d batches a step, their gradients accumulated", t->record.accumulate);
	if (t->record.scaler)
		ck_job_remark(
		    &t->j, "loss scale %g at first, doubled after %lld steps in a row without overflow, halved after one with",
		    t->record.scaler->scale, (long long)t->record.scaler->interval);
	free(data);
	fflush(t->j.out);
}

static void tell_what_accuracy_is(const train_job *t)
{
	int steps = t->curves[0].accuracy_steps;
	for (int i = 1; i < t->j.plans.n; i++)
		steps = t->curves[i].accuracy_steps > steps ? t->curves[i].accuracy_steps : steps;
	if (steps)
		ck_job_remark(&t->j, "accuracy: over the batches of the last %d step%s as they were trained on", steps,
			      steps == 1 ? "" : "s");
}

static int finished_steps(const train_job *t)
{
	int steps = 0;
	for (int i = 0; i < t->j.plans.n; i++)
		steps += t->curves[i].steps;
	return steps;
}

static ck_status plot(const void *record, const char *ending, char **image, size_t *bytes, ck_err *err)
{
	return ck_plot_training(record, ending, image, bytes, err);
}

static ck_status write_all(const train_job *t, ck_status status, ck_err *err)
{
	char *json = ck_training_json(&t->record), *tsv = ck_training_tsv(&t->record);
	ck_status files = ck_outputs_write(&t->j, &(ck_output){json, tsv, &t->record, plot}, err);
	ck_status asked = ck_outputs_write_json(t->j.cli, json, err); /* even after a full disk: it may go elsewhere */
	free(json);
	free(tsv);
	return status != CK_OK ? status : files != CK_OK ? files : asked;
}

static ck_status run_job(train_job *t, ck_err *err)
{
	tell_how(t);
	ck_status status = train_all(t, err);
	t->record.interrupted = *ck_interrupted != 0;
	ck_training_table(&t->record, t->j.out);
	tell_what_accuracy_is(t);
	int finished = finished_steps(t);
	if (t->record.interrupted)
		ck_complain("interrupted: %d of %d steps are finished%s", finished, t->record.steps * t->j.plans.n,
			    finished ? " and kept" : ", so nothing is written");
	return t->record.interrupted && !finished ? status : write_all(t, status, err);
}

static ck_status run(const ck_cli *cli, ck_err *err)
{
	train_job t = {0};
	if (cli->options.given[CK_OPTION_fast])
		return ck_fail(
		    err, CK_USAGE,
		    "train with --fast: sums in any order make each step's differences larger, so that there is no noise "
		    "floor to hold a training against; leave --fast out, or check one step with ckbench parity --fast");
	ck_status status = ck_job_open(cli, false, &t.j, err);
	if (status != CK_OK)
		return status;
	t.curves = ck_alloc((size_t)t.j.plans.n, sizeof *t.curves);
	t.record = (ck_training){.head = t.j.result,
				 .optimizer = t.j.c.optimizer,
				 .steps = (int)cli->options.whole[CK_OPTION_steps],
				 .accumulate = t.j.c.accumulate,
				 .scaler = t.j.c.scales ? &t.j.c.scaler : NULL,
				 .curves = t.curves};
	status = run_job(&t, err);
	for (int i = 0; i < t.j.plans.n; i++)
		ck_course_free(&t.curves[i]);
	free(t.curves);
	ck_job_close(&t.j);
	return status;
}

const ck_command ck_command_train = {
    .name = "train",
    .subject = "MODEL",
    .summary = "loss curves, plan against plan",
    .text = "Trains with each plan from the same start on the same batches and compares, bit by bit and after every step, "
	    "with plan none: parameters, optimizer state, BatchNorm statistics, loss, the random stream's position. Every "
	    "step is a checked one, as in parity. With --data, step k takes batch k, each epoch in a new order; without, "
	    "every step takes the one batch that the seed gives. With --accumulate N, a step takes N of them, and the "
	    "optimizer the mean of their gradients. With --scaler, a step whose gradients overflow is skipped; scale, tracker "
	    "and overflow flag are compared as well. Writes the record, a TSV and a plot of the curves. Without a "
	    "list, plan none and two that recompute are trained. Ctrl-C keeps what is finished.",
    .takes = CK_TAKES_CASE | CK_TAKES(plans) | CK_TAKES(segments) | CK_TAKES(schedule) | CK_TAKES(steps) | CK_TAKES(optimizer) |
	     CK_TAKES(lr) | CK_TAKES(momentum) | CK_TAKES(weight_decay) | CK_TAKES(accumulate) | CK_TAKES(scaler) |
	     CK_TAKES(growth_interval) | CK_TAKES(out) | CK_TAKES(json) | CK_TAKES(force) | CK_TAKES(quiet),
    .few_plans = true,
    .run = run,
};
