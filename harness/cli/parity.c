/* ckbench parity MODEL: does every plan give the same gradients? */
#include <stdlib.h>
#include <string.h>

#include "harness/cli/outputs.h"

/* The gradient of the input is checked as well. But a schedule in a file is for the graph that training has, without it. */
static bool wants_input_gradient(const ck_options *o)
{
	const char *plans = o->text[CK_OPTION_plans];
	return !o->given[CK_OPTION_schedule] && !(plans && strstr(plans, "schedule:"));
}

static ck_status run(const ck_cli *cli, ck_err *err)
{
	ck_job j;
	ck_status status = ck_job_open(cli, wants_input_gradient(&cli->options), &j, err);
	if (status != CK_OK)
		return status;
	status = ck_job_check(&j, err);
	ck_result_parity(j.result, j.out);
	char *json = ck_result_json(j.result);
	ck_status written = ck_outputs_write_json(cli, json, err);
	free(json);
	ck_job_close(&j);
	return status != CK_OK ? status : written;
}

const ck_command ck_command_parity = {
    .name = "parity",
    .subject = "MODEL",
    .summary = "does every plan give the same gradients?",
    .text =
	"Runs each plan for one step from the same start and compares, bit by bit, what it leaves behind with "
	"plan none: loss, parameter gradients, input gradient, state (BatchNorm statistics, counters) after the "
	"step and after its forward alone, the random stream's position. A forward without a backward, as "
	"validation runs it, is held against that as well. Where equal bits prove nothing, since the loss or a gradient is not "
	"finite or every gradient is zero, the verdict is proves-nothing; gradients that are zero in every element are named. "
	"Dropped memory is filled with NaN meanwhile. Without a list, all distinct plans are "
	"checked. With --scaler the step's gradients are scaled and unscaled as in training; a step that overflows is "
	"compared, too, and followed by the next at half the scale, until one does not. With a schedule from a file there is "
	"no input gradient: such a schedule is for the graph "
	"that training has. With --fast a device need not give equal bits: plan none runs five times, and a plan whose tensors "
	"differ from it by at most 4 times what these runs do, and 4 roundings, is within-noise; the random stream's position, "
	"counters and the scaler's state must still be equal.",
    .takes = CK_TAKES_CASE | CK_TAKES(plans) | CK_TAKES(segments) | CK_TAKES(schedule) | CK_TAKES(scaler) | CK_TAKES(json) |
	     CK_TAKES(force) | CK_TAKES(quiet),
    .run = run,
};
