/* `ckbench compare` as a user runs it: what it prints and writes, and what it refuses. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/record/digest.h"
#include "kernels/alloc.h"
#include "kernels/readfile.h"
#include "suite/cli/program.h"
#include "suite/compare/records.h"

static void write_file(const outcome *o, const char *name, const char *text)
{
	char *path = ck_text("%s/%s", o->folder, name);
	FILE *f = fopen(path, "w");
	cr_assert(f && fputs(text, f) >= 0 && fclose(f) == 0, "cannot write %s", path);
	free(path);
}

/* Frees r. */
static void write_record(const outcome *o, const char *name, ck_result *r)
{
	char *text = ck_result_json(r);
	write_file(o, name, text);
	free(text);
	ck_result_free(r);
}

static ck_result *with(double none, double uniform, const char *git)
{
	ck_result *r = made_record();
	set_text(&r->tool.git, git);
	made_steady(r, "none", none);
	made_steady(r, "uniform:2", uniform)->executed_flops = 150;
	r->ceilings.known = true;
	r->ceilings.precision = CK_PRECISION_F32;
	r->ceilings.at.matmul[CK_PRECISION_F32] = 800;
	ck_result_front(r);
	return r;
}

/* a.json and b.json, of which b is twice as fast under none and the same under uniform:2; and old.json, from before digests. */
static outcome two_records(void)
{
	outcome o = run("true");
	write_record(&o, "a.json", with(0.5, 0.75, "0123456789ab"));
	write_record(&o, "b.json", with(0.25, 0.75, "ba9876543210"));
	run_again(&o,
		  "grep -v '\"digest\":.\"[0-9a-f]*\",$' a.json >old.json; grep -q '\"digest\"' a.json && test -s old.json");
	cr_assert(o.status == 0, "%s", o.err);
	return o;
}

#define FILES "a.json b.json old.json "

/* ---- what it gives ------------------------------------------------------------------------------------------------------- */

/* What the TSV of these two is, line by line; the plot draws the same figures. */
static char *read_golden(void)
{
	char *path = ck_text("%s/compare/golden.tsv", getenv("CKBENCH_SUITE")), *golden;
	size_t bytes;
	ck_err err = {""};
	cr_assert(ck_file_read(path, SIZE_MAX, &golden, &bytes, &err) == CK_OK, "%s", err.text);
	free(path);
	return golden;
}

static void expect_no_line_beyond(const char *text, size_t columns)
{
	for (const char *at = text; *at; at += strcspn(at, "\n") + 1) {
		cr_expect(strcspn(at, "\n") <= columns, "%.*s", (int)strcspn(at, "\n"), at);
		if (!at[strcspn(at, "\n")])
			break;
	}
}

Test(command, table_and_files)
{
	static const char command[] = "ck compare a.json b.json --out d --json -";
	outcome o = two_records();
	run_again(&o, command);
	cr_assert(o.status == 0, "%s: exit status %d: %s", command, o.status, o.err);
	cr_expect_str_eq(o.files, "a.json b.json d d/compare-1.json d/compare-1.png d/compare-1.svg d/compare-1.tsv old.json ");
	static const char *const says[] = {
	    "A  Intel Xeon, 0123456789ab        2        1  a.json",
	    "mlp:layers=3,batch=8 --seed 1\n",
	    "none       500.0 ms  250.0 ms  0.500  0.500 .. 0.500  faster     +0 %    +0 %     1000 B    1.000     25.0     "
	    "50.0",
	    "uniform:2  750.0 ms  750.0 ms  1.000  1.000 .. 1.000  same      +50 %  +200 %      500 B    1.000     16.7     "
	    "16.7",
	    "geometric mean over 2 plans: 0.707 (0.707 .. 0.707); B is faster",
	};
	for (size_t i = 0; i < sizeof says / sizeof *says; i++)
		cr_expect(strstr(o.err, says[i]), "no '%s' in\n%s", says[i], o.err);
	expect_no_line_beyond(o.err, 128);
	char *json = read_output(&o, "d/compare-1.json"), *tsv = read_output(&o, "d/compare-1.tsv"),
	     *svg = read_output(&o, "d/compare-1.svg");
	cr_expect_str_eq(o.out, json); /* the table is on stderr where the record goes to the standard output */
	char *golden = read_golden();
	cr_expect_str_eq(tsv, golden);
	free(golden);
	cr_expect(strstr(svg, "A: Intel Xeon, 0123456789ab") && strstr(svg, "overhead in time") &&
		  strstr(svg, "peak of live memory"));
	free(json);
	free(tsv);
	free(svg);
	run_again(&o, "ck compare a.json b.json 2>e; cat e"); /* nothing is written that was not asked for */
	cr_expect_str_eq(o.files,
			 "a.json b.json d d/compare-1.json d/compare-1.png d/compare-1.svg d/compare-1.tsv e old.json ");
	cr_expect(strncmp(o.out, "   name", 7) == 0 && !strstr(o.out, "written"), "%s", o.out);
	outcome_free(&o);
}

static const cJSON *in(const cJSON *o, const char *name)
{
	const cJSON *field = cJSON_GetObjectItemCaseSensitive(o, name);
	cr_assert(field, "no %s", name);
	return field;
}

static double number(const cJSON *o, const char *name)
{
	cr_assert(cJSON_IsNumber(in(o, name)), "%s is no number", name);
	return in(o, name)->valuedouble;
}

static const char *text(const cJSON *o, const char *name)
{
	cr_assert(cJSON_IsString(in(o, name)), "%s is no text", name);
	return in(o, name)->valuestring;
}

static const cJSON *at(const cJSON *list, int i)
{
	cr_assert(cJSON_IsArray(list) && i < cJSON_GetArraySize(list));
	return cJSON_GetArrayItem(list, i);
}

/* Every field that results/SCHEMA.md names. */
Test(command, record)
{
	outcome o = two_records();
	ck_result *third = with(1, 2, "333333333333");
	third->c.seed = 3;
	write_record(&o, "c.json", third);
	run_again(&o, "ck compare a.json b.json c.json --json r --quiet");
	cr_assert(o.status == 0 && !*o.err, "exit status %d: %s", o.status, o.err);
	char *json = read_output(&o, "r");
	ck_digest digest;
	cr_expect(ck_record_is_sealed(json, strlen(json), &digest));
	cJSON *root = cJSON_Parse(json);
	cr_expect_str_eq(text(root, "schema"), "ckbench-compare/1");
	cr_expect(cJSON_IsObject(in(root, "tool")));
	cr_expect(cJSON_GetArraySize(in(root, "sides")) == 3);
	const cJSON *side = at(in(root, "sides"), 1), *record = at(in(side, "records"), 0);
	cr_expect_str_eq(text(side, "side"), "B");
	cr_expect_str_eq(text(side, "name"), "Intel Xeon, ba9876543210");
	cr_expect_str_eq(text(side, "source"), "b.json");
	static const char *const texts[] = {"file",  "digest", "version", "git",         "compiler",
					    "flags", "cpu",    "device",  "description", "line"};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		cr_expect(*text(record, texts[i]), "%s", texts[i]);
	cr_expect(number(record, "threads") == 2);
	cr_expect(cJSON_GetArraySize(in(root, "cases")) == 1);
	const cJSON *one = at(in(root, "cases"), 0), *pair = at(in(one, "pairs"), 0), *point = at(in(pair, "points"), 0);
	cr_expect(number(in(one, "case"), "layers") == 3 && !cJSON_GetObjectItem(in(one, "case"), "threads"));
	cr_expect_str_eq(text(pair, "side"), "B");
	cr_expect(fabs(number(pair, "ratio") - sqrt(0.5)) < 1e-15 && cJSON_GetArraySize(in(pair, "ci95")) == 2);
	cr_expect_str_eq(text(pair, "verdict"), "faster");
	cr_expect_str_eq(text(point, "plan"), "none");
	cr_expect(number(point, "ratio") == 0.5 && at(in(point, "ci95"), 0)->valuedouble == 0.5 &&
		  number(point, "live_peak_ratio") == 1 && number(point, "device_peak_ratio") == 1);
	const cJSON *other = in(at(in(pair, "points"), 1), "other");
	cr_expect(number(other, "median") == 0.75 && number(other, "overhead_time") == 3 && number(other, "saving") == 0.5 &&
		  number(other, "samples") == FEW && number(other, "live_peak") == 500 && number(other, "device_peak") == 2000);
	cr_expect(number(in(point, "base"), "median") == 0.5 && number(in(point, "base"), "utilisation_model") == 0.25);
	cr_expect(number(other, "utilisation_hardware") == 0.25 && number(in(record, "ceilings"), "f32") == 800);
	cr_expect(cJSON_GetArraySize(in(root, "means")) == 1); /* C shares no case */
	const cJSON *mean = at(in(root, "means"), 0);
	cr_expect(number(mean, "cases") == 1 && number(mean, "faster") == 1 && number(mean, "same") == 1 &&
		  number(mean, "slower") == 0 && number(mean, "unclear") == 0);
	const cJSON *left = at(in(root, "not_compared"), 0);
	cr_expect_str_eq(text(left, "side"), "C");
	cr_expect_str_eq(text(left, "what"), "mlp:layers=3,batch=8 --seed 3");
	cr_expect_str_eq(text(left, "why"), "seed 1 in A, 3 in C");
	cr_expect(cJSON_IsArray(in(root, "warnings")));
	cJSON_Delete(root);
	free(json);
	outcome_free(&o);
}

/* What the program itself wrote: sealed records of all kinds, and sweeps compared by file and by folder. */
Test(command, real_records)
{
	outcome o = run("ck sweep mlp:layers=3,width=16,batch=4 --segments 2 --seconds 0.1 --rounds 8 --out x && "
			"ck sweep mlp:layers=3,width=16,batch=4 --segments 2,3 --seconds 0.1 --rounds 8 --threads 1 --out y && "
			"ck train mlp:layers=3,width=16,batch=4 --steps 2 --plans stages --out y && "
			"ck faults mlp:layers=3,width=16,batch=4 --plans stages --amp off --out y && "
			"ck compare x/sweep-mlp-1.json y --json r && ck compare y x --json s");
	cr_assert(o.status == 0, "exit status %d: %s", o.status, o.err);
	static const char *const records[] = {"x/sweep-mlp-1.json", "y/train-mlp-1.json", "y/faults-1.json", "r"};
	for (size_t i = 0; i < sizeof records / sizeof *records; i++) {
		char *json = read_output(&o, records[i]);
		ck_digest d;
		cr_expect(ck_record_is_sealed(json, strlen(json), &d), "%s", records[i]);
		free(json);
	}
	cr_expect(strstr(o.out, "y/train-mlp-1.json: is a record, but not of a sweep"), "%s", o.out);
	cr_expect(strstr(o.out, "mlp:layers=3,width=16,") && strstr(o.out, "plan uniform:3: A has no such plan"), "%s", o.out);
	outcome_free(&o);
}

/* ---- what it refuses ----------------------------------------------------------------------------------------------------- */

Test(command, refusals)
{
	static const struct {
		const char *command, *thing, *remedy;
		const char *files; /* beside the three */
	} cases[] = {
	    {"ck compare", "compare needs A.json B.json", "compare --help", ""},
	    {"ck compare a.json", "two records or more, but was given only 'a.json'", "ckbench compare A.json B.json", ""},
	    {"ck compare 1 2 3 4 5 6 7 8 9 10", "9 records or folders at most, but was given 10", "fewer at once", ""},
	    {"ck compare a.json a.json", "a.json and a.json are the same record", "each once", ""},
	    {"cp a.json c.json; ck compare a.json c.json", "a.json and c.json are the same record", "each once", "c.json "},
	    {"mkdir d; cp a.json d; ck compare a.json d", "a.json and d/a.json are the same record", "each once",
	     "d d/a.json "},
	    {"ck compare a.json nowhere.json", "nowhere.json", "check the name", ""},
	    {"ck compare a.json old.json", "old.json has no \"digest\"", "run its command again", ""},
	    {"head -c 900 b.json >c.json; ck compare a.json c.json", "c.json is not JSON, or cut short: line", "whole record",
	     "c.json "},
	    {": >c.json; ck compare a.json c.json", "c.json is empty", "give a record", "c.json "},
	    {"echo hello >c.json; ck compare a.json c.json", "c.json is not JSON", "whole record", "c.json "},
	    {"echo '{}' >c.json; ck compare a.json c.json", "c.json is no record of ckbench", "give a file", "c.json "},
	    {"echo '{\"schema\": \"ckbench-train/1\"}' >c.json; ck compare a.json c.json", "is ckbench-train/1, not",
	     "give a file", "c.json "},
	    {"echo '{\"schema\": \"other/1\"}' >c.json; mkdir d; mv c.json d; ck compare a.json d",
	     "d/c.json is no record of ckbench", "give a file", "d d/c.json "},
	    {"sed 's/result.1/result\\/2/' b.json >c.json; ck compare a.json c.json",
	     "is ckbench-result/2, not \"ckbench-result/1\"", "give a file", "c.json "},
	    {"sed 's/0.25/0.20/' b.json >c.json; ck compare a.json c.json", "c.json was edited", "as ckbench wrote it",
	     "c.json "},
	    {"sed 's/ba9876543210/ba9876543211/' b.json >c.json; ck compare a.json c.json", "c.json was edited",
	     "as ckbench wrote it", "c.json "},
	    {"sed 's/\"digest\":.\"./&g/' b.json >c.json; ck compare a.json c.json", "c.json was edited", "as ckbench wrote it",
	     "c.json "},
	    {"truncate -s 65M c.json; ck compare a.json c.json", "'c.json' is longer than 64 MiB", "check the name", "c.json "},
	    {"mkdir d; ck compare a.json d", "the folder 'd' holds no record", "name another", "d "},
	    {"mkdir d; touch d/x.txt d/.json; ck compare a.json d", "the folder 'd' holds no record", "name another",
	     "d d/.json d/x.txt "},
	    {"mkfifo p; ck compare a.json p", "'p' is not a regular file, but a pipe", "check the name", "p "},
	    {"ck compare a.json b.json --seed 3", "'--seed'", "it takes --out", ""},
	    {"touch f; ck compare a.json b.json --json f", "f exists already", "--force", "f "},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		outcome o = two_records();
		run_again(&o, cases[i].command);
		cr_expect(o.status == 2, "%s: exit status %d\n%s", cases[i].command, o.status, o.err);
		cr_expect(strstr(o.err, cases[i].thing) && strstr(o.err, cases[i].remedy), "%s: no '%s' or no '%s' in: %s",
			  cases[i].command, cases[i].thing, cases[i].remedy, o.err);
		const char *end = strchr(o.err, '\n');
		cr_expect(end && !end[1] && !*o.out, "%s: not one line: %s%s", cases[i].command, o.err, o.out);
		size_t beside = strlen(o.files) - strlen(FILES);
		cr_expect(beside == strlen(cases[i].files) && strstr(o.files, cases[i].files), "%s: left behind: %s",
			  cases[i].command, o.files);
		outcome_free(&o);
	}
}

/* Sealed anew after an edit, so that only the reading can tell: two points of one plan, of which the wrong one might be taken. */
Test(command, plan_twice)
{
	outcome o = two_records();
	ck_result *r = with(0.25, 0.75, "333333333333");
	made_steady(r, "none", 0.001);
	write_record(&o, "c.json", r);
	run_again(&o, "ck compare a.json c.json");
	cr_expect(o.status == 2 && strstr(o.err, "points[2].plan stands in an earlier point") && strstr(o.err, "give a file"),
		  "%d %s%s", o.status, o.out, o.err);
	outcome_free(&o);
}

/* Interrupted while it writes, here by a gnuplot that does so: each file is whole or not there. */
Test(command, interrupted)
{
	outcome o = two_records();
	run_again(&o, "mkdir b; printf '#!/bin/sh\\nkill -INT $PPID\\nexit 1\\n' >b/gnuplot; chmod +x b/gnuplot; "
		      "PATH=$PWD/b:$PATH ck compare a.json b.json --out d");
	cr_expect(strstr(o.err, "finishing what is under way"), "%d %s", o.status, o.err);
	cr_expect(o.status == 130, "%d %s", o.status, o.err);
	cr_expect(strstr(o.files, "d/compare-1.json ") && !strstr(o.files, ".ckbench."), "%s", o.files);
	outcome_free(&o);
}

/* Nothing in common: told what stands in the way, and refused. */
Test(command, nothing_in_common)
{
	outcome o = two_records();
	ck_result *r = with(1, 2, "333333333333");
	r->c.seed = 3;
	write_record(&o, "c.json", r);
	run_again(&o, "ck compare a.json c.json --out d --json r");
	cr_expect(o.status == 2 && strstr(o.err, "share no plan") && strstr(o.out, "seed 1 in A, 3 in B"), "%d %s%s", o.status,
		  o.out, o.err);
	cr_expect_str_eq(o.files, "a.json b.json c.json old.json ");
	run_again(&o, "ck compare a.json b.json --out /proc/no");
	cr_expect(o.status == 3 && strstr(o.err, "/proc/no"), "%s", o.err);
	outcome_free(&o);
}
