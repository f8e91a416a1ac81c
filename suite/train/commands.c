/* `ckbench train` as a user runs it: record, TSV, plot, refusals, interruption. */
#include "suite/cli/program.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/alloc.h"

#define MLP "mlp:layers=4,width=16,batch=32,dropout=0.1"

static const cJSON *field(const cJSON *of, const char *name)
{
	const cJSON *f = cJSON_GetObjectItemCaseSensitive(of, name);
	cr_assert(f, "the record has no %s", name);
	return f;
}

static const char *text(const cJSON *of, const char *name)
{
	const cJSON *f = field(of, name);
	cr_assert(cJSON_IsString(f), "%s is no text", name);
	return f->valuestring;
}

static double number(const cJSON *of, const char *name)
{
	const cJSON *f = field(of, name);
	cr_assert(cJSON_IsNumber(f), "%s is no number", name);
	return f->valuedouble;
}

static cJSON *record_of(const outcome *o, const char *file)
{
	char *json = read_output(o, file);
	cJSON *root = cJSON_Parse(json);
	cr_assert(root, "%s is no JSON: %s", file, json);
	cr_expect_str_eq(text(root, "schema"), "ckbench-train/1");
	free(json);
	return root;
}

static outcome run_well(const char *command)
{
	outcome o = run(command);
	cr_assert(o.status == 0, "%s: exit status %d: %s", command, o.status, o.err);
	return o;
}

/* Every curve has a loss and a digest per step, and they are those of the first. */
static void expect_curves(const cJSON *root, int plans, int steps)
{
	const cJSON *curves = field(root, "curves"), *first = cJSON_GetArrayItem(curves, 0), *curve;
	cr_expect_eq(cJSON_GetArraySize(curves), plans);
	cr_expect_str_eq(text(first, "plan"), "none");
	cJSON_ArrayForEach(curve, curves)
	{
		const char *plan = text(curve, "plan");
		cr_expect_str_eq(text(curve, "status"), "ok", "%s", plan);
		cr_expect(cJSON_GetArraySize(field(curve, "loss")) == steps &&
			      cJSON_GetArraySize(field(curve, "digests")) == steps,
			  "%s: not %d steps", plan, steps);
		cr_expect(cJSON_Compare(field(curve, "loss"), field(first, "loss"), true) &&
			      cJSON_Compare(field(curve, "digests"), field(first, "digests"), true),
			  "%s: another course", plan);
		cr_expect_str_eq(text(curve, "digest"), text(first, "digest"));
		cr_expect_str_eq(text(curve, "digest"), cJSON_GetArrayItem(field(curve, "digests"), steps - 1)->valuestring);
		cr_expect(number(curve, "accuracy") >= 0 && number(curve, "accuracy") <= 1);
		const cJSON *memory = field(curve, "memory");
		cr_expect_eq(number(memory, "predicted_peak"), number(memory, "live_peak"));
		cr_expect_eq(number(field(memory, "by_category"), "optimizer"),
			     2 * number(field(memory, "by_category"), "parameters"));
	}
}

Test(commands, train_leaves_a_record_a_tsv_and_plots)
{
	const char *command = "ck train " MLP " --steps 15 --data digits --weight-decay 0.1 --json r";
	outcome o = run_well(command);
	cr_expect_str_eq(o.files, "ckbench-out ckbench-out/train-mlp-1.json ckbench-out/train-mlp-1.png "
				  "ckbench-out/train-mlp-1.svg ckbench-out/train-mlp-1.tsv r ");
	cr_expect(strstr(o.out, "every step bitwise") && strstr(o.out, "accuracy: over the batches"), "%s", o.out);
	cJSON *root = record_of(&o, "r");
	expect_curves(root, 3, 15);
	const char *const parts[] = {"tool", "machine", "device", "case"};
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		cr_expect(cJSON_IsObject(field(root, parts[i])));
	const cJSON *training = field(root, "training");
	cr_expect_str_eq(text(training, "optimizer"), "adamw");
	cr_expect_str_eq(text(training, "end"), "steps");
	cr_expect(number(training, "lr") == 1e-3 && number(training, "weight_decay") == 0.1 &&
		  number(training, "beta1") == 0.9 && number(training, "beta2") == 0.999 && number(training, "eps") == 1e-8 &&
		  number(training, "steps") == 15);

	char *svg = read_output(&o, "ckbench-out/train-mlp-1.svg"), *tsv = read_output(&o, "ckbench-out/train-mlp-1.tsv");
	cr_expect(strstr(svg, "loss of the step") && strstr(svg, "</svg>"), "the plot is none");
	int lines = 0;
	for (const char *c = tsv; *c; c++)
		lines += *c == '\n';
	cr_expect(lines == 1 + 3 * 15 && strncmp(tsv, "plan\tstep\tloss\taccuracy\tdigest\nnone\t1\t", 38) == 0, "%s", tsv);

	/* The line that is printed does the same again. */
	char *again = ck_text("ck %s --json again --quiet", text(field(root, "case"), "line") + strlen("ckbench "));
	run_again(&o, again);
	cJSON *second = record_of(&o, "again");
	cr_expect(cJSON_Compare(field(root, "curves"), field(second, "curves"), true), "%s: other curves", again);
	cJSON_Delete(root);
	cJSON_Delete(second);
	free(svg);
	free(tsv);
	free(again);
	outcome_free(&o);
}

/* Accumulation and the scaler as the record, the TSV and the table have them. The scale grows every second step, beyond what
 * gradients bear in the end: a skipped step says so everywhere. */
Test(commands, accumulates_and_scales)
{
	const char *command = "ck train cnn:depth=20,image=8,channels=1,width=16,classes=10,batch=16 --data digits --steps 6 "
			      "--accumulate 2 --scaler 1e38 --growth-interval 1 --plans stages --json r";
	outcome o = run_well(command);
	cr_expect(strstr(o.out, "skipped") && strstr(o.out, "2 batches a step") && strstr(o.out, "loss scale 1e+38"), "%s",
		  o.out);
	cJSON *root = record_of(&o, "r");
	const cJSON *training = field(root, "training"), *scaler = field(training, "scaler"), *curve;
	cr_expect(number(training, "accumulate") == 2 && number(scaler, "scale") == 1e38 && number(scaler, "growth") == 2 &&
		  number(scaler, "backoff") == 0.5 && number(scaler, "interval") == 1);
	cJSON_ArrayForEach(curve, field(root, "curves"))
	{
		const cJSON *scale = field(curve, "scale"), *skipped = field(curve, "skipped");
		cr_expect(cJSON_GetArraySize(scale) == 6 && cJSON_GetArraySize(skipped) == 6);
		double before = 1e38f;
		int skips = 0;
		for (int k = 0; k < 6; k++) {
			bool skip = cJSON_IsTrue(cJSON_GetArrayItem(skipped, k));
			cr_expect(cJSON_GetArrayItem(scale, k)->valuedouble == before, "step %d", k + 1);
			double grown = 2 * before > 3.5e38 ? before : 2 * before;
			before = skip ? before / 2 : grown;
			skips += skip;
		}
		cr_expect(skips > 0, "no step overflowed: %s", o.out);
		cr_expect(cJSON_Compare(field(curve, "digests"), field(cJSON_GetArrayItem(field(root, "curves"), 0), "digests"),
					true));
	}
	const char *line = text(field(root, "case"), "line");
	cr_expect(strstr(line, " --accumulate 2 --scaler 1e38 --growth-interval 1"), "%s", line);
	char *tsv = read_output(&o, "ckbench-out/train-cnn-1.tsv");
	cr_expect(strncmp(tsv, "plan\tstep\tloss\taccuracy\tdigest\tscale\tskipped\nnone\t1\t", 51) == 0, "%s", tsv);
	cJSON_Delete(root);
	free(tsv);
	outcome_free(&o);
}

/* parity with a scaler: its own kind of digest, and the overflowing steps are told. */
Test(commands, parity_scales)
{
	outcome o = run_well("ck parity resnet18:image=32,batch=2,classes=10,width=8 --scaler 3e38 --plans stages --json r");
	cr_expect(strstr(o.out, "  scaler") && strstr(o.out, "loss scale ") && strstr(o.out, "overflowed"), "%s", o.out);
	char *json = read_output(&o, "r");
	cJSON *root = cJSON_Parse(json), *point;
	cr_assert(root, "%s", json);
	cJSON_ArrayForEach(point, field(root, "points"))
	{
		const cJSON *parity = field(point, "parity"), *scaler = field(parity, "scaler");
		cr_expect_str_eq(text(parity, "verdict"), "bitwise");
		cr_expect(strlen(text(field(parity, "digests"), "scaler")) == 32);
		cr_expect(number(scaler, "skipped") > 0 && number(scaler, "scale") < 3e38);
	}
	cJSON_Delete(root);
	free(json);
	outcome_free(&o);
}

/* Without data there is one batch, which is learnt by heart; without momentum SGD keeps no state. */
Test(commands, sgd_on_one_random_batch)
{
	const char *command = "ck train " MLP " --steps 200 --optimizer sgd --lr 0.1 --plans stages --json - --quiet";
	outcome o = run_well(command);
	cJSON *root = cJSON_Parse(o.out);
	cr_assert(root, "%s", o.out);
	const cJSON *curve = cJSON_GetArrayItem(field(root, "curves"), 1), *loss = field(curve, "loss");
	cr_expect_str_eq(text(curve, "plan"), "stages");
	cr_expect(cJSON_GetArrayItem(loss, 199)->valuedouble < 0.7 * cJSON_GetArrayItem(loss, 0)->valuedouble, "%s", o.out);
	cr_expect_eq(number(field(field(curve, "memory"), "by_category"), "optimizer"), 0);
	cr_expect_eq(number(field(root, "training"), "momentum"), 0);
	cr_expect_eq(number(curve, "accuracy_steps"), 1);
	cJSON_Delete(root);
	outcome_free(&o);
}

Test(commands, few_plans_without_a_list)
{
	static const struct {
		const char *model;
		int plans;
	} cases[] = {{"mlp:layers=1,batch=4", 2}, {"mlp:layers=9,width=8,batch=4", 3}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char *command = ck_text("ck train %s --steps 2 --json - --quiet", cases[i].model);
		outcome o = run_well(command);
		cJSON *root = cJSON_Parse(o.out);
		cr_assert(root, "%s: %s", command, o.out);
		cr_expect(cJSON_GetArraySize(field(root, "curves")) == cases[i].plans, "%s: %s", command, o.out);
		cJSON_Delete(root);
		free(command);
		outcome_free(&o);
	}
}

Test(commands, refusals)
{
	static const struct {
		const char *command;
		int status;
		const char *thing, *remedy;
	} cases[] = {
	    {"ck train " MLP " --steps 0", 2, "--steps '0'", "1 to 1000000"},
	    {"ck train " MLP " --steps many", 2, "'many'", "whole number"},
	    {"ck train " MLP " --optimizer adam", 2, "'adam'", "sgd, adamw"},
	    {"ck train " MLP " --lr -1", 2, "--lr '-1'", "0 to 1000"},
	    {"ck train " MLP " --lr nan", 2, "--lr 'nan'", "0 to 1000"},
	    {"ck train " MLP " --optimizer sgd --momentum 1", 2, "--momentum '1'", "0 to 0.9999"},
	    {"ck train " MLP " --momentum 0.9", 2, "--momentum", "--optimizer sgd"},
	    {"ck train " MLP " --weight-decay -0.1", 2, "--weight-decay '-0.1'", "0 to 100"},
	    {"ck train " MLP " --accumulate 0", 2, "--accumulate '0'", "1 to 4096"},
	    {"ck train " MLP " --accumulate 4097", 2, "--accumulate '4097'", "1 to 4096"},
	    {"ck train " MLP " --scaler yes", 2, "--scaler 'yes'", "off, on or the first scale"},
	    {"ck train " MLP " --scaler 0.5", 2, "--scaler '0.5'", "from 1 to 3.40282e+38"},
	    {"ck train " MLP " --scaler 3.5e38", 2, "--scaler '3.5e38'", "from 1 to 3.40282e+38"},
	    {"ck parity " MLP " --scaler inf", 2, "--scaler 'inf'", "off, on or the first scale"},
	    {"ck train " MLP " --scaler nan", 2, "--scaler 'nan'", "off, on or the first scale"},
	    {"ck train " MLP " --growth-interval 3", 2, "--growth-interval", "--scaler on"},
	    {"ck train " MLP " --scaler on --growth-interval 0", 2, "--growth-interval '0'", "1 to 2000000000"},
	    {"ck sweep " MLP " --accumulate 2", 2, "'--accumulate'", "it takes --plans"},
	    {"ck parity " MLP " --growth-interval 2", 2, "'--growth-interval'", "it takes --plans"},
	    {"ck train " MLP " --seconds 3", 2, "'--seconds'", "it takes --plans"},
	    {"ck sweep " MLP " --steps 3", 2, "'--steps'", "it takes --plans"},
	    {"ck train " MLP " --plans magic", 2, "'magic'", "uniform:K"},
	    {"ck train " MLP " --data digits --out /proc/nowhere", 3, "/proc/nowhere", "choose another place"},
	    {"ck train mlp:inputs=9 --data digits", 2, "digits", "inputs=64"},
	    {"ck train", 2, "needs a MODEL", "list models"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		outcome o = run(cases[i].command);
		cr_expect(o.status == cases[i].status, "%s: exit status %d: %s", cases[i].command, o.status, o.err);
		cr_expect(strstr(o.err, cases[i].thing) && strstr(o.err, cases[i].remedy), "%s: no '%s' or no '%s' in: %s",
			  cases[i].command, cases[i].thing, cases[i].remedy, o.err);
		cr_expect_str_eq(o.files, "", "%s: left behind: %s", cases[i].command, o.files);
		outcome_free(&o);
	}
}

/* The baseline's training proved nothing, so that no other was held against it. Ends the outcome. */
static void expect_refused_baseline(outcome *o)
{
	cJSON *root = record_of(o, "r");
	const cJSON *curves = field(root, "curves");
	cr_expect_str_eq(text(cJSON_GetArrayItem(curves, 0), "status"), "error");
	cr_expect_str_eq(text(cJSON_GetArrayItem(curves, 1), "status"), "skipped");
	cJSON_Delete(root);
	outcome_free(o);
}

/* A loss that grows beyond all bounds ends it, with what there was kept and exit status 1. */
Test(commands, divergence)
{
	outcome o = run("ck train mlp:layers=4,width=16,batch=32 --optimizer sgd --lr 1000 --steps 300 --json r");
	cr_expect(o.status == 1 && strstr(o.err, "plan none: at step ") && strstr(o.err, "smaller --lr"), "%d: %s", o.status,
		  o.err);
	expect_refused_baseline(&o);
}

/* Where every step is skipped, no parameter has changed. */
Test(commands, only_skipped_steps_prove_nothing)
{
	outcome o = run("ck train mlp:layers=4,width=16,batch=4 --amp fp16 --scaler 3e38 --steps 5 --json r");
	cr_expect(o.status == 1 && strstr(o.err, "plan none: each of the 5 step(s) overflowed") &&
		      strstr(o.err, "smaller --scaler"),
		  "%d: %s", o.status, o.err);
	expect_refused_baseline(&o);
}

/* A million steps would take long; the first signal ends them and keeps what is there. */
Test(commands, interrupted_training_keeps_what_is_finished)
{
	outcome o = run("timeout --foreground --preserve-status -s INT 2 \"$CKBENCH\" train " MLP
			" --plans stages --steps 1000000 --json r");
	cr_expect(o.status == 130 && strstr(o.err, "interrupted: ") && strstr(o.err, "of 2000000 steps are finished and kept"),
		  "%d: %s", o.status, o.err);
	cJSON *root = record_of(&o, "r");
	cr_expect_str_eq(text(field(root, "training"), "end"), "interrupted");
	const cJSON *curves = field(root, "curves"), *none = cJSON_GetArrayItem(curves, 0),
		    *stages = cJSON_GetArrayItem(curves, 1);
	cr_expect_str_eq(text(none, "status"), "ok");
	cr_expect(cJSON_GetArraySize(field(none, "loss")) > 1);
	cr_expect_str_eq(text(stages, "status"), "skipped");
	cr_expect(cJSON_GetArraySize(field(stages, "loss")) == 0);
	cJSON_Delete(root);
	outcome_free(&o);
}
