/* What the commands do when all is well, and how they end when interrupted: exit status, files, and the record. */
#include "program.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/record/result.h"
#include "kernels/alloc.h"

#define MLP "mlp:layers=6,width=32,batch=16"

static ck_result *read_record(const char *text, const char *source)
{
	ck_result *r = NULL;
	ck_err err = {""};
	cr_assert(ck_result_read(text, strlen(text), source, &r, &err) == CK_OK, "%s", err.text);
	return r;
}

static outcome run_well(const char *command)
{
	outcome o = run(command);
	cr_assert(o.status == 0, "%s: exit status %d: %s", command, o.status, o.err);
	return o;
}

Test(commands, tell_what_they_are)
{
	static const struct {
		const char *command, *says;
	} cases[] = {
	    {"ck --help", "ckbench sweep MODEL"},
	    {"ck --version", "ckbench 0."},
	    {"ck sweep --help", "--segments LIST"},
	    {"ck parity mlp -h", "--plans LIST"},
	    {"ck plan --help", "--emit WHAT"},
	    {"ck list --help", "ckbench list"},
	    {"ck list", "presets"},
	    {"ck list models", "transformer"},
	    {"ck list planners", "uniform:K"},
	    {"ck list devices", "(bf16, fp16: stored, float64 arithmetic)"},
	    {"ck list devices", "(bf16: "},
	    {"ck list faults", "statistics-twice"},
	    {"ck env", "compiler"},
	    {"ck env", "device cpu"},
	    {"ck env --ceilings", "FLOP/s, copy "},
	    {"ck env --help", "--ceilings"},
	    {"ck env", "(bf16, fp16: stored, float64 arithmetic)"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		outcome o = run_well(cases[i].command);
		cr_expect(strstr(o.out, cases[i].says), "%s: no '%s' in\n%s", cases[i].command, cases[i].says, o.out);
		cr_expect(!*o.err && !*o.files, "%s: %s %s", cases[i].command, o.err, o.files);
		outcome_free(&o);
	}
}

/* Every point proved before it was timed, its memory as predicted, the front as its definition has it. */
static void expect_whole(const ck_result *r, const char *command)
{
	cr_expect(r->npoints > 0 && strcmp(r->points[0].plan, "none") == 0, "%s: none is not first", command);
	for (int i = 0; i < r->npoints; i++) {
		const ck_point *p = &r->points[i];
		cr_expect(p->status == CK_POINT_OK && p->checked && p->verdict == CK_BITWISE, "%s: %s is not ok", command,
			  p->plan);
		cr_expect(p->live_peak == p->predicted_peak && p->arena >= p->live_peak,
			  "%s: %s: peak %zu, predicted %zu, arena %zu", command, p->plan, p->live_peak, p->predicted_peak,
			  p->arena);
		cr_expect(p->device_peak >= p->arena, "%s: %s: process peak %zu, arena %zu", command, p->plan, p->device_peak,
			  p->arena);
		cr_expect(p->time.n == r->measuring.rounds && p->time.min > 0, "%s: %s: %d samples", command, p->plan,
			  p->time.n);
		size_t sum = 0;
		for (int k = 0; k < CK_MEM_CATEGORIES; k++)
			sum += p->by_category[k];
		cr_expect(sum == p->predicted_peak, "%s: %s: the categories add up to %zu, not %zu", command, p->plan, sum,
			  p->predicted_peak);
	}
}

Test(commands, sweep_leaves_a_record_and_plots)
{
	const char *command = "ck sweep " MLP " --segments 1..4 --seconds 0.2 --rounds 2";
	outcome o = run_well(command);
	cr_expect_str_eq(o.files, "ckbench-out ckbench-out/sweep-mlp-1.json ckbench-out/sweep-mlp-1.png "
				  "ckbench-out/sweep-mlp-1.svg ckbench-out/sweep-mlp-1.tsv ");
	char *json = read_output(&o, "ckbench-out/sweep-mlp-1.json"), *svg = read_output(&o, "ckbench-out/sweep-mlp-1.svg");
	ck_result *r = read_record(json, command);
	cr_expect(r->npoints == 5, "%s: %d points", command, r->npoints);
	expect_whole(r, command);
	cr_expect(r->ceilings.known && r->ceilings.precision == CK_PRECISION_F32 &&
		      r->ceilings.at.matmul[CK_PRECISION_F32] > 0 && !r->ceilings.at.matmul[CK_PRECISION_BF16],
		  "%s: no ceilings", command);
	for (int i = 0; i < r->npoints; i++) {
		const ck_utilisation u = ck_point_utilisation(r, &r->points[i]);
		cr_expect(u.model > 0 && u.hardware >= u.model && isnan(u.model_datasheet), "%s: %s: %g, %g", command,
			  r->points[i].plan, u.model, u.hardware);
	}
	cr_expect(strstr(o.out, "MFU/HFU %") && strstr(o.out, "at which products in f32 were measured"), "%s", o.out);
	cr_expect(strstr(svg, "peak of live memory") && strstr(svg, "</svg>"), "the plot is none");

	char *again = ck_result_json(r); /* what is read is what was written */
	cr_expect_str_eq(again, json);
	char *tsv = ck_result_tsv(r), *tsv_file = read_output(&o, "ckbench-out/sweep-mlp-1.tsv");
	cr_expect_str_eq(tsv, tsv_file);

	run_again(&o, command); /* a second sweep takes the next number and leaves the first alone */
	cr_expect(strstr(o.out, "sweep-mlp-2.json") && strstr(o.files, "sweep-mlp-2.png"), "%s%s", o.out, o.err);
	char *json_after = read_output(&o, "ckbench-out/sweep-mlp-1.json");
	cr_expect_str_eq(json_after, json);
	char *texts[] = {json, svg, again, tsv, tsv_file, json_after};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		free(texts[i]);
	ck_result_free(r);
	outcome_free(&o);
}

/* Without a list: all that are distinct. The line that is printed does the same again. */
Test(commands, parity_without_a_list)
{
	static const char *const models[] = {"mlp:layers=4,width=16,batch=4,dropout=0.1",
					     "cnn:depth=11,width=2,image=32,batch=1", "gpt-tiny:layers=1 --dropout 0.1"};
	for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
		char *command = ck_text("ck parity %s --json r", models[i]);
		outcome o = run_well(command);
		char *json = read_output(&o, "r");
		ck_result *r = read_record(json, command);
		cr_expect(r->npoints > 3 && r->npoints <= 64, "%s: %d points", command, r->npoints);
		for (int p = 0; p < r->npoints; p++)
			cr_expect(r->points[p].verdict == CK_BITWISE && r->points[p].time.n == 0, "%s: %s", command,
				  r->points[p].plan);
		cr_expect(r->forward_only.known && r->forward_only.verdict == CK_BITWISE && !r->forward_only.recomputed_ops,
			  "%s: no forward alone", command);
		cr_expect(r->forward_only.live_peak == r->forward_only.predicted_peak &&
			      r->forward_only.live_peak <= r->points[0].live_peak && strstr(o.out, "forward only: live peak "),
			  "%s: forward only holds %zu bytes, plan none %zu", command, r->forward_only.live_peak,
			  r->points[0].live_peak);
		cr_assert(strncmp(r->c.line, "ckbench parity ", 15) == 0, "%s", r->c.line);
		char *pasted = ck_text("ck %s --json again --force", r->c.line + strlen("ckbench "));
		run_again(&o, pasted);
		char *json_again = read_output(&o, "again");
		ck_result *second = read_record(json_again, pasted);
		cr_expect(second->c.graph == r->c.graph && second->npoints == r->npoints, "%s", pasted);
		cr_expect(memcmp(second->points[0].digest, r->points[0].digest, sizeof r->points[0].digest) == 0,
			  "%s: other bits", pasted);
		ck_result_free(second);
		ck_result_free(r);
		free(json_again);
		free(pasted);
		free(json);
		free(command);
		outcome_free(&o);
	}
}

/* A comparison that proves nothing is not passed; one that proves nothing of some gradients says of which. */
Test(commands, parity_that_proves_nothing)
{
	static const struct {
		const char *command;
		int status;
		ck_verdict verdict;
		int zeros;
		const char *out, *err;
	} cases[] = {
	    {"ck parity mlp:layers=2,classes=1,batch=4 --plans stages --json r", 1, CK_PROVES_NOTHING, 5, "proves-nothing\n",
	     "plan none: every gradient is zero"},
	    {"ck sweep gpt-tiny:vocab=1 --plans stages --json r", 1, CK_PROVES_NOTHING, 28, "proves-nothing\n",
	     "plan none: every gradient is zero"},
	    {"ck parity mlp:layers=9,width=1,batch=2 --plans stages --json r", 0, CK_BITWISE, 18,
	     "warning: 18 gradients are zero in every element, so that their equality proves nothing: x, fc1.weight, "
	     "fc1.bias, fc2.weight, fc2.bias, fc3.weight and 12 more; ",
	     ""},
	    {"ck parity mlp:layers=2,width=8,batch=4 --plans stages --json r", 0, CK_BITWISE, 0, "bitwise\n", ""},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		outcome o = run(cases[i].command);
		cr_expect(o.status == cases[i].status, "%s: exit status %d: %s", cases[i].command, o.status, o.err);
		cr_expect(strstr(o.out, cases[i].out) && strstr(o.err, cases[i].err), "%s: %s%s", cases[i].command, o.out,
			  o.err);
		cr_expect(!strstr(o.out, "warning") == !strstr(cases[i].out, "warning"), "%s: %s", cases[i].command, o.out);
		char *json = read_output(&o, "r");
		ck_result *r = read_record(json, cases[i].command);
		for (int p = 0; p < r->npoints; p++)
			cr_expect(r->points[p].verdict == cases[i].verdict && r->points[p].nzero_gradients == cases[i].zeros &&
				      r->points[p].time.n == 0,
				  "%s: %s: %s, %d zero", cases[i].command, r->points[p].plan,
				  ck_verdict_names[r->points[p].verdict], r->points[p].nzero_gradients);
		ck_result_free(r);
		free(json);
		outcome_free(&o);
	}
}

/* The same command leaves the same bits behind in every process, with any number of threads (which may each leave their own). */
Test(commands, the_same_bits_in_every_process)
{
	static const char *const models[] = {"mlp:layers=4,width=48,batch=67,dropout=0.2,activation=gelu",
					     "resnet18:width=8,image=32,batch=4,classes=10", "gpt-tiny:dropout=0.1",
					     "gpt-tiny --device ref"};
	for (size_t i = 0; i < sizeof models / sizeof *models; i++)
		for (int threads = 1; threads <= 4; threads *= 2) {
			char *command =
			    ck_text("ck parity %s --threads %d --plans stages --json - --quiet", models[i], threads);
			outcome one = run_well(command), other = run_well(command);
			ck_result *r = read_record(one.out, command), *again = read_record(other.out, command);
			for (int p = 0; p < r->npoints && p < again->npoints; p++)
				cr_expect(
				    r->points[p].verdict == CK_BITWISE && again->points[p].verdict == CK_BITWISE &&
					memcmp(r->points[p].digest, again->points[p].digest, sizeof r->points[p].digest) == 0,
				    "%s: %s differs from process to process", command, r->points[p].plan);
			cr_expect(r->npoints == 2 && again->npoints == 2);
			ck_result_free(r);
			ck_result_free(again);
			free(command);
			outcome_free(&one);
			outcome_free(&other);
		}
}

/* A schedule goes out as text and comes in as a plan, in a file whose name needs quotes and that an editor put a mark into. */
Test(commands, schedule_there_and_back)
{
	const char *command =
	    "{ printf '\\357\\273\\277'; ck plan " MLP " --plans uniform:3 --emit schedule; } >'a schedule' && "
	    "ck sweep " MLP " --schedule 'a schedule' --plans uniform:3 --seconds 0.1 --json - --quiet";
	outcome o = run_well(command);
	ck_result *r = read_record(o.out, command);
	expect_whole(r, command);
	cr_assert(r->npoints == 3 && strcmp(r->points[2].plan, "schedule:a schedule") == 0, "%s", o.out);
	cr_expect(r->points[1].live_peak == r->points[2].live_peak &&
		      r->points[1].executed_flops == r->points[2].executed_flops,
		  "the same schedule costs something else");
	cr_expect(strstr(r->c.line, "--schedule 'a schedule'"), "%s", r->c.line);
	ck_result_free(r);
	outcome_free(&o);
}

/* Lists, in the order given, each plan once. */
Test(commands, lists_of_plans)
{
	static const struct {
		const char *options, *plans;
	} cases[] = {
	    {"--segments 3,1,2", "none uniform:3 uniform:1 uniform:2 "},
	    {"--segments 1..6*2", "none uniform:1 uniform:2 uniform:4 "},
	    {"--segments 2,2..3,none", NULL},
	    {"--segments 2,2..3,3", "none uniform:2 uniform:3 "},
	    {"--plans stages,none,torch:2..3", "none stages torch:2 torch:3 "},
	    {"--plans=every:2 --segments=6", "none every:2 uniform:6 "},
	    {"--plans uniform:1,2,stages,every:2", "none uniform:1 uniform:2 stages every:2 "},
	    {"--plans uniform:3,1..2,torch:2..6*2,3", "none uniform:3 uniform:1 uniform:2 torch:2 torch:4 torch:3 "},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char *command = ck_text("ck parity " MLP " %s --json - --quiet", cases[i].options), *plans = ck_text("%s", "");
		outcome o = run(command);
		cr_expect(o.status == (cases[i].plans ? 0 : 2), "%s: exit status %d: %s", command, o.status, o.err);
		ck_result *r = cases[i].plans ? read_record(o.out, command) : NULL;
		for (int p = 0; r && p < r->npoints; p++) {
			char *longer = ck_text("%s%s ", plans, r->points[p].plan);
			free(plans);
			plans = longer;
		}
		if (cases[i].plans)
			cr_expect_str_eq(plans, cases[i].plans, "%s: %s", command, plans);
		ck_result_free(r);
		free(plans);
		free(command);
		outcome_free(&o);
	}
}

/* A link stays one: what it leads to is replaced. */
Test(commands, force_replaces)
{
	outcome o = run_well("echo old >f; ln -s f l; ck parity " MLP " --plans stages --json l --force && test -L l");
	char *json = read_output(&o, "f");
	ck_result *r = read_record(json, "f");
	cr_expect(r->npoints == 2);
	cr_expect_str_eq(o.files, "f l ");
	ck_result_free(r);
	free(json);
	outcome_free(&o);
}

/* Neither leaves a part of the work undone; what hangs is ended. */
Test(commands, environment_that_limits_threads)
{
	static const char *const limits[] = {"OMP_THREAD_LIMIT=1", "OMP_MAX_ACTIVE_LEVELS=0", "OMP_DYNAMIC=true"};
	for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
		char *command =
		    ck_text("%s timeout -s KILL 60 \"$CKBENCH\" parity gpt-tiny --amp bf16 --plans stages", limits[i]);
		outcome o = run_well(command);
		cr_expect(strstr(o.out, "bitwise"), "%s: %s", command, o.out);
		free(command);
		outcome_free(&o);
	}
}

/* While it still plans there is nothing to keep: the first signal ends it. */
Test(commands, interrupted_while_planning)
{
	const char *command = "timeout --foreground --preserve-status -k 10 -s INT 1 \"$CKBENCH\" sweep mlp:layers=100000";
	outcome o = run(command);
	cr_expect(o.status == 130 && strstr(o.err, "nothing is written"), "%s: exit status %d: %s", command, o.status, o.err);
	cr_expect_str_eq(o.files, "");
	outcome_free(&o);
}

/* A million rounds would take long; the first signal ends them and keeps what is there. It comes when the ceilings have long been
 * measured. `timeout` passes our status on. */
Test(commands, interrupted_sweep_keeps_what_is_finished)
{
	static const struct {
		const char *signal;
		int status;
	} cases[] = {{"INT", 130}, {"TERM", 143}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char *command = ck_text("timeout --foreground --preserve-status -s %s 6 \"$CKBENCH\" sweep " MLP
					" --plans stages --rounds 1000000 --json r",
					cases[i].signal);
		outcome o = run(command);
		cr_expect(o.status == cases[i].status, "%s: exit status %d", command, o.status);
		cr_expect(strstr(o.err, "interrupted: 2 of 2 points are finished and kept"), "%s: %s", command, o.err);
		char *json = read_output(&o, "r");
		ck_result *r = read_record(json, command);
		cr_expect_str_eq(r->measuring.end, "interrupted");
		cr_expect(r->points[0].time.n > 1 && r->points[0].time.n == r->points[1].time.n);
		cr_expect_str_eq(o.files, "ckbench-out ckbench-out/sweep-mlp-1.json ckbench-out/sweep-mlp-1.png "
					  "ckbench-out/sweep-mlp-1.svg ckbench-out/sweep-mlp-1.tsv r ");
		ck_result_free(r);
		free(json);
		free(command);
		outcome_free(&o);
	}
}

/* With no gnuplot, or one that is cut short by a limit that the record (of few rounds, since they are long) keeps. */
Test(commands, all_but_the_plots)
{
#define LARGE "mlp:layers=4,width=512,batch=512"
	static const struct {
		const char *command, *says, *remedy;
	} cases[] = {
	    {"PATH=/nowhere; ck sweep " MLP " --plans stages --seconds 0.1", "no plot: cannot run gnuplot", "gnuplot-nox"},
	    {"ulimit -f 24; ck sweep " LARGE " --plans stages --seconds 0.01", "no plot: gnuplot left the svg unfinished",
	     "ulimit -a"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		outcome o = run_well(cases[i].command);
		cr_expect(strstr(o.err, cases[i].says) && strstr(o.err, cases[i].remedy), "%s: %s", cases[i].command, o.err);
		cr_expect_str_eq(o.files, "ckbench-out ckbench-out/sweep-mlp-1.json ckbench-out/sweep-mlp-1.tsv ");
		outcome_free(&o);
	}
}

/* The record may go to the folder that the sweep makes. Without a standard output nothing is lost but the table. */
Test(commands, odd_places)
{
	const char *command = "ck sweep " MLP " --plans stages --seconds 0.1 --json new/r --out new >&-";
	outcome o = run(command);
	cr_expect(o.status == 3 && strstr(o.err, "cannot write to the standard output"), "%s: %d %s", command, o.status, o.err);
	cr_expect_str_eq(o.files,
			 "new new/r new/sweep-mlp-1.json new/sweep-mlp-1.png new/sweep-mlp-1.svg new/sweep-mlp-1.tsv ");
	char *json = read_output(&o, "new/r");
	ck_result *r = read_record(json, command);
	expect_whole(r, command);
	ck_result_free(r);
	free(json);
	outcome_free(&o);
}

/* A layer keeps 8 MiB, in 16 bits half of that: what a process takes of its own is small beside the whole. */
static void check_process_peak(const char *command)
{
	outcome o = run_well(command);
	char *json = read_output(&o, "r");
	ck_result *r = read_record(json, command);
	expect_whole(r, command);
	const ck_point *none = &r->points[0], *uniform = &r->points[1];
	double arena = (double)none->arena - (double)uniform->arena;
	double process = (double)none->device_peak - (double)uniform->device_peak,
	       own = (double)(none->device_peak - none->arena);
	cr_expect(arena > 0x1p26, "%s: the arenas are but %g bytes apart", command, arena);
	cr_expect(fabs(process - arena) <= 0.05 * arena, "%s: arenas are %g bytes apart, processes %g", command, arena,
		  process);
	cr_expect(own < 0x1p26, "%s: the process takes %g bytes beside its arena", command, own);
	ck_result_free(r);
	free(json);
	outcome_free(&o);
}

Test(commands, process_peak_follows_the_arena)
{
	check_process_peak(
	    "ck sweep mlp:layers=32,width=16,inputs=16,batch=131072 --plans uniform:6 --rounds 1 --seconds 0.1 --json r");
	check_process_peak("ck sweep mlp:layers=32,width=16,inputs=16,batch=131072 --amp bf16 --plans uniform:6 --rounds 1 "
			   "--seconds 0.1 --json r");
}

/* Told beforehand, skipped, and the first that fits takes the place of none. Each layer keeps 8 MiB. */
Test(commands, what_does_not_fit_is_skipped)
{
	const char *command =
	    "ulimit -v 600000; ck parity mlp:layers=100,width=8,batch=262144 --threads 1 --plans uniform:10 --json r";
	outcome o = run_well(command);
	cr_expect(strstr(o.out, "skipping plan none: it needs ") && strstr(o.out, "ulimit -v"), "%s", o.out);
	char *json = read_output(&o, "r");
	ck_result *r = read_record(json, command);
	cr_expect(r->npoints == 2 && r->points[0].status == CK_POINT_SKIPPED && r->points[0].reason && !r->points[0].checked);
	cr_expect(r->points[1].status == CK_POINT_OK && r->points[1].verdict == CK_BITWISE && r->points[1].checked);
	cr_expect_str_eq(r->baseline, "uniform:10");
	ck_result_free(r);
	free(json);
	outcome_free(&o);
}
