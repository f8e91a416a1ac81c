/* `ckbench faults`: its record, its exit status, and what it refuses. */
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "harness/cli/case.h"
#include "harness/fault/fault.h"
#include "harness/record/faults.h"
#include "kernels/alloc.h"
#include "suite/cli/program.h"

static const char *text_of(const cJSON *o, const char *name)
{
	const cJSON *field = cJSON_GetObjectItemCaseSensitive(o, name);
	cr_assert(cJSON_IsString(field), "%s is no text", name);
	return field->valuestring;
}

static int number_of_faults(void)
{
	int n = 0;
	while (ck_faults()[n])
		n++;
	return n;
}

static void expect_cell(const cJSON *cell, const char *amp)
{
	const char *status = text_of(cell, "status");
	int by = cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(cell, "by"));
	cr_expect(strcmp(status, "caught") == 0 ? by > 0 : strcmp(status, "not-applicable") == 0 && by == 0, "%s: %s by %d",
		  text_of(cell, "fault"), status, by);
	cr_expect_str_eq(text_of(cell, "amp"), amp);
	cr_expect_str_eq(text_of(cell, "rng"), strncmp(text_of(cell, "fault"), "rng-", 4) == 0 ? "stateful" : "counter");
	cr_expect(*text_of(cell, "model") && *text_of(cell, "plan") && *text_of(cell, "why"));
	cr_expect(cJSON_IsBool(cJSON_GetObjectItemCaseSensitive(cell, "shapes_only")));
}

enum { PRECISIONS = 3 };

Test(record, has_all_fields)
{
	static const char command[] =
	    "ck faults mlp:layers=4,width=16,batch=8 gpt-tiny --plans stages,uniform:2 --json r --out d";
	outcome o = run(command);
	cr_assert(o.status == 0, "%s: exit status %d: %s", command, o.status, o.err);
	cr_expect(strstr(o.out, "0 missed") && strstr(o.out, "0 false alarms") && strstr(o.out, "statistics-twice"), "%s",
		  o.out);
	cr_expect(!strstr(o.out, "--amp"), "the line names a precision, but all were tried: %s", o.out);
	cr_expect_str_eq(o.files, "d d/faults-1.json r ");
	char *json = read_output(&o, "r"), *kept = read_output(&o, "d/faults-1.json");
	cr_expect_str_eq(kept, json);
	free(kept);
	cJSON *root = cJSON_Parse(json), *cell;
	cr_expect_str_eq(text_of(root, "schema"), "ckbench-faults/1");
	static const char *const objects[] = {"tool", "machine", "device", "case"};
	for (size_t i = 0; i < sizeof objects / sizeof *objects; i++)
		cr_expect(cJSON_IsObject(cJSON_GetObjectItemCaseSensitive(root, objects[i])), "%s", objects[i]);
	cr_expect(cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(root, "cases")) == 2 * PRECISIONS);
	cr_expect(cJSON_GetObjectItemCaseSensitive(root, "false_alarms")->valuedouble == 0);
	cJSON *first = cJSON_GetObjectItemCaseSensitive(root, "case");
	cr_expect(strstr(text_of(first, "line"), " --amp off "), "%s", text_of(first, "line"));
	cJSON *cells = cJSON_GetObjectItemCaseSensitive(root, "cells");
	int each = 2 * number_of_faults(), n = 0; /* cells of a model in one precision */
	cr_expect(cJSON_GetArraySize(cells) == 2 * PRECISIONS * each, "%d cells", cJSON_GetArraySize(cells));
	cJSON_ArrayForEach(cell, cells) expect_cell(cell, ck_amp_words[n++ / each % PRECISIONS]);
	cJSON_Delete(root);
	free(json);
	outcome_free(&o);
}

/* --amp names the one precision; the line that does it again has it, and has none where all were tried. */
Test(record, of_one_precision)
{
	static const char command[] = "ck faults mlp:layers=4,width=16,batch=8 --amp bf16 --plans stages --json r";
	outcome o = run(command);
	cr_assert(o.status == 0, "%s: exit status %d: %s", command, o.status, o.err);
	cr_expect(strstr(o.out, " --amp bf16 ") && strstr(o.out, "cast-without-backward"), "%s", o.out);
	char *json = read_output(&o, "r");
	cJSON *root = cJSON_Parse(json), *cell;
	cJSON *cells = cJSON_GetObjectItemCaseSensitive(root, "cells");
	cr_expect(cJSON_GetArraySize(cells) == number_of_faults(), "%d cells", cJSON_GetArraySize(cells));
	cJSON_ArrayForEach(cell, cells) expect_cell(cell, "bf16");
	cJSON_Delete(root);
	free(json);
	outcome_free(&o);
}

/* In a table a model has one column: where a fault cannot be made in each precision, those are named in which it is caught. */
Test(record, table_names_precisions)
{
	ck_fault_report r = {0};
	for (int p = 0; p < PRECISIONS; p++) {
		ck_fault_verdict caught = {.status = CK_FAULT_CAUGHT, .acted = true, .by = 1u << CK_DIGEST_GRADIENTS};
		ck_fault_verdict other = {.status = p == 0 ? CK_FAULT_NOT_APPLICABLE : CK_FAULT_CAUGHT,
					  .acted = p != 0,
					  .by = p == 0 ? 0 : 1u << CK_CHECK_WATCH,
					  .why = {"no reason"}};
		ck_result *about = ck_result_new(0, NULL);
		about->c.model = ck_text("mlp");
		about->c.amp = ck_text("%s", ck_amp_words[p]);
		int at = ck_fault_report_model(&r, "mlp:layers=4", about);
		ck_fault_report_add(&r, ck_faults()[0], at, "stages", &caught);
		ck_fault_report_add(&r, ck_faults()[1], at, "stages", &other);
	}
	char *text = NULL;
	size_t size = 0;
	FILE *to = open_memstream(&text, &size);
	ck_fault_report_table(&r, to);
	fclose(to);
	cr_expect(strstr(text, "gradients ") && strstr(text, "watch [bf16 fp16]") && strstr(text, "mlp [off]: no reason"), "%s",
		  text);
	cr_expect(!strstr(text, "gradients ["), "%s", text);
	free(text);
	ck_fault_report_free(&r);
}

/* A missed fault and a false alarm as the record and the table have them. */
Test(record, tells_of_missed_faults_and_false_alarms)
{
	ck_fault_report r = {0};
	ck_fault_verdict missed = {.status = CK_FAULT_MISSED, .acted = true};
	ck_fault_verdict alarm = {.status = CK_FAULT_CAUGHT, .by = 1u << CK_CHECK_WATCH, .why = {"smoke"}};
	ck_result *about = ck_result_new(0, NULL);
	about->c.model = ck_text("mlp");
	about->c.amp = ck_text("off");
	int model = ck_fault_report_model(&r, "mlp:layers=4", about);
	ck_fault_report_add(&r, ck_faults()[0], model, "stages", &missed);
	ck_fault_report_add(&r, NULL, model, "stages", &alarm);
	ck_fault_report_add(&r, ck_faults()[1], model, "stages", &alarm); /* it fired though the fault changed nothing */
	cr_expect(r.ncells == 1 && r.nalarms == 2 && ck_fault_report_count(&r, CK_FAULT_MISSED) == 1);
	char *json = ck_fault_report_json(&r);
	cr_expect(strstr(json, "\"status\":\t\"missed\"") && strstr(json, "\"false_alarms\":\t2"), "%s", json);
	free(json);
	ck_fault_report_free(&r);
}

Test(record, refusals)
{
	static const struct {
		const char *command, *says;
		int status;
	} cases[] = {
	    {"ck faults perceptron", "perceptron", 2},
	    {"ck faults mlp:layers=4 perceptron", "perceptron", 2},
	    {"ck faults mlp:layers=4 --plans uniform:9", "uniform:9", 2},
	    {"ck faults mlp:layers=4 --amp half", "--amp 'half'", 2},
	    {"ck faults mlp:layers=4 --seconds 3", "--seconds", 2},
	    {"touch f; ck faults mlp:layers=4 --json f", "--force", 2},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		outcome o = run(cases[i].command);
		cr_expect(o.status == cases[i].status && strstr(o.err, cases[i].says), "%s: exit status %d: %s",
			  cases[i].command, o.status, o.err);
		outcome_free(&o);
	}
}
