#include "harness/record/faults.h"

#include <stdlib.h>
#include <string.h>

#include "harness/record/columns.h"
#include "harness/record/json.h"
#include "kernels/alloc.h"

static void free_cells(ck_fault_cell *cells, int n)
{
	for (int i = 0; i < n; i++)
		free(cells[i].plan);
	free(cells);
}

void ck_fault_report_free(ck_fault_report *r)
{
	for (int i = 0; i < r->nmodels; i++) {
		ck_result_free(r->models[i]);
		free(r->names[i]);
	}
	free(r->models);
	free(r->names);
	free_cells(r->cells, r->ncells);
	free_cells(r->alarms, r->nalarms);
	*r = (ck_fault_report){0};
}

int ck_fault_report_model(ck_fault_report *r, const char *name, ck_result *about)
{
	r->models = ck_grow(r->models, &r->models_capacity, r->nmodels + 1, sizeof *r->models);
	r->names = ck_grow(r->names, &r->names_capacity, r->nmodels + 1, sizeof *r->names);
	r->models[r->nmodels] = about;
	r->names[r->nmodels] = ck_text("%s", name);
	return r->nmodels++;
}

void ck_fault_report_add(ck_fault_report *r, const ck_fault *fault, int model, const char *plan, const ck_fault_verdict *v)
{
	ck_fault_cell cell = {fault, model, plan ? ck_text("%s", plan) : NULL, *v};
	bool alarm = v->status == CK_FAULT_CAUGHT && !v->acted;
	if (alarm) {
		r->alarms = ck_grow(r->alarms, &r->alarms_capacity, r->nalarms + 1, sizeof *r->alarms);
		r->alarms[r->nalarms++] = cell;
		return;
	}
	r->cells = ck_grow(r->cells, &r->capacity, r->ncells + 1, sizeof *r->cells);
	r->cells[r->ncells++] = cell;
}

int ck_fault_report_count(const ck_fault_report *r, ck_fault_status status)
{
	int n = 0;
	for (int i = 0; i < r->ncells; i++)
		n += r->cells[i].verdict.status == status;
	return n;
}

/* ---- JSON ---------------------------------------------------------------------------------------------------------------- */

static cJSON *cell_object(const ck_fault_report *r, const ck_fault_cell *c)
{
	cJSON *o = cJSON_CreateObject();
	if (c->fault)
		cJSON_AddStringToObject(o, "fault", c->fault->name);
	cJSON_AddStringToObject(o, "model", r->names[c->model]);
	if (c->plan)
		cJSON_AddStringToObject(o, "plan", c->plan);
	cJSON_AddStringToObject(o, "amp", r->models[c->model]->c.amp);
	cJSON_AddStringToObject(o, "rng", ck_rng_names[c->verdict.rng]);
	cJSON_AddStringToObject(o, "status", ck_fault_status_names[c->verdict.status]);
	cJSON *by = cJSON_AddArrayToObject(o, "by");
	for (int k = 0; k < CK_CHECKS; k++)
		if (c->verdict.by >> k & 1)
			cJSON_AddItemToArray(by, cJSON_CreateString(ck_check_name(k)));
	cJSON_AddBoolToObject(o, "shapes_only", c->verdict.shapes_only);
	cJSON_AddStringToObject(o, "why", c->verdict.why.text);
	return o;
}

static void put_cells(cJSON *root, const char *name, const ck_fault_report *r, const ck_fault_cell *cells, int n)
{
	cJSON *list = cJSON_AddArrayToObject(root, name);
	for (int i = 0; i < n; i++)
		cJSON_AddItemToArray(list, cell_object(r, &cells[i]));
}

static void put_faults(cJSON *root)
{
	cJSON *list = cJSON_AddArrayToObject(root, "faults");
	for (const ck_fault *const *f = ck_faults(); *f; f++) {
		cJSON *o = cJSON_CreateObject();
		cJSON_AddStringToObject(o, "name", (*f)->name);
		cJSON_AddStringToObject(o, "field", (*f)->field);
		cJSON_AddItemToArray(list, o);
	}
}

char *ck_fault_report_json(const ck_fault_report *r)
{
	cJSON *root = ck__json_begin(CK_FAULTS_SCHEMA, r->models[0]);
	cJSON_AddItemToObject(root, "case", ck__json_case(r->models[0]));
	cJSON *cases = cJSON_AddArrayToObject(root, "cases");
	for (int i = 0; i < r->nmodels; i++)
		cJSON_AddItemToArray(cases, ck__json_case(r->models[i]));
	put_faults(root);
	put_cells(root, "cells", r, r->cells, r->ncells);
	cJSON_AddNumberToObject(root, "false_alarms", r->nalarms);
	put_cells(root, "alarms", r, r->alarms, r->nalarms);
	return ck__json_end(root);
}

/* ---- the table ----------------------------------------------------------------------------------------------------------- */

enum { TEXT = 400 };

/* What became of a fault in a case, of one model in one precision, under all plans together. */
typedef struct standing {
	unsigned by;
	int caught, missed, shapes_only;
	const char *why; /* of the first plan to which it does not apply */
} standing;

static standing find_standing(const ck_fault_report *r, const ck_fault *fault, int model)
{
	standing s = {0};
	for (int i = 0; i < r->ncells; i++) {
		const ck_fault_cell *c = &r->cells[i];
		if (c->fault != fault || c->model != model)
			continue;
		s.by |= c->verdict.by;
		s.caught += c->verdict.status == CK_FAULT_CAUGHT;
		s.missed += c->verdict.status == CK_FAULT_MISSED;
		s.shapes_only += c->verdict.shapes_only;
		if (c->verdict.status == CK_FAULT_NOT_APPLICABLE && !s.why)
			s.why = c->verdict.why.text;
	}
	return s;
}

/* Cases first .. the end are one model's, in its precisions. */
static int model_end(const ck_fault_report *r, int first)
{
	int end = first + 1;
	while (end < r->nmodels && strcmp(r->names[end], r->names[first]) == 0)
		end++;
	return end;
}

static void append(char text[TEXT], const char *between, const char *word)
{
	size_t used = strlen(text);
	snprintf(text + used, TEXT - used, "%s%s", used ? between : "", word);
}

/* "bf16 fp16": those of the model's precisions that `of` says; "" where that is all. */
static void tell_precisions(const ck_fault_report *r, int first, int end, const bool of[], char text[TEXT])
{
	bool all = true;
	text[0] = 0;
	for (int m = first; m < end; m++) {
		all &= of[m - first];
		if (of[m - first])
			append(text, " ", r->models[m]->c.amp);
	}
	if (all)
		text[0] = 0;
}

/* The checks that caught it in any of a model's precisions; in which it was caught, unless in all. */
static void add_standings(ck_columns *c, const ck_fault_report *r, const ck_fault *fault, int first, standing *total)
{
	char text[TEXT] = "", where[TEXT];
	standing all = {0};
	int end = model_end(r, first);
	bool *caught = ck_alloc((size_t)(end - first), sizeof *caught);
	for (int m = first; m < end; m++) {
		standing s = find_standing(r, fault, m);
		caught[m - first] = s.caught > 0;
		all.by |= s.by;
		all.caught += s.caught;
		all.missed += s.missed;
		total->caught += s.caught;
		total->shapes_only += s.shapes_only;
	}
	for (int k = 0; k < CK_CHECKS; k++)
		if (all.by >> k & 1)
			append(text, ", ", ck_check_name(k));
	tell_precisions(r, first, end, caught, where);
	if (all.missed)
		ck_columns_add(c, "MISSED");
	else if (!all.caught)
		ck_columns_add(c, "-");
	else
		ck_columns_add(c, "%s%s%s%s", text, *where ? " [" : "", where, *where ? "]" : "");
	free(caught);
}

/* Where a fault applies under no plan, and why: "cnn, mlp [off]". */
static void print_not_applicable(const ck_fault_report *r, const ck_fault *fault, FILE *to)
{
	const char *why = NULL;
	char models[TEXT] = "";
	bool *never = ck_alloc((size_t)r->nmodels, sizeof *never);
	for (int m = 0; m < r->nmodels; m++) {
		standing s = find_standing(r, fault, m);
		never[m] = !s.caught && !s.missed && s.why;
		why = never[m] ? s.why : why;
	}
	for (int m = 0, end; m < r->nmodels; m = end) {
		char where[TEXT];
		bool any = false;
		end = model_end(r, m);
		for (int k = m; k < end; k++)
			any |= never[k];
		tell_precisions(r, m, end, never + m, where);
		if (any)
			append(models, ", ", r->models[m]->c.model);
		if (any && *where) {
			append(models, " ", "[");
			append(models, "", where);
			append(models, "", "]");
		}
	}
	if (why)
		fprintf(to, "  %s, %s: %s\n", fault->name, models, why);
	free(never);
}

static void print_cells(const char *what, const ck_fault_report *r, const ck_fault_cell *cells, int n, bool all, FILE *to)
{
	for (int i = 0; i < n; i++)
		if (all || cells[i].verdict.status == CK_FAULT_MISSED)
			fprintf(to, "%s: %s in %s --amp %s under %s: %s\n", what,
				cells[i].fault ? cells[i].fault->name : "no fault", r->names[cells[i].model],
				r->models[cells[i].model]->c.amp, cells[i].plan ? cells[i].plan : "any plan",
				all ? cells[i].verdict.why.text : "no check noticed it");
}

void ck_fault_report_table(const ck_fault_report *r, FILE *to)
{
	const char **heads = ck_alloc((size_t)r->nmodels + 2, sizeof *heads);
	char **texts = ck_alloc((size_t)r->nmodels, sizeof *texts);
	int n = 0;
	heads[0] = "<fault";
	for (int m = 0; m < r->nmodels; m = model_end(r, m), n++)
		heads[n + 1] = texts[n] = ck_text("<%s", r->models[m]->c.model);
	heads[n + 1] = "<by shapes only";
	ck_columns c = ck_columns_new(n + 2, heads);
	for (const ck_fault *const *f = ck_faults(); *f; f++) {
		standing total = {0};
		ck_columns_add(&c, "%s", (*f)->name);
		for (int m = 0; m < r->nmodels; m = model_end(r, m))
			add_standings(&c, r, *f, m, &total);
		ck_columns_add(&c, "%s", !total.caught ? "-" : total.shapes_only ? "caught" : "not seen");
	}
	ck_columns_print(&c, "", to);
	ck_columns_free(&c);
	fputs("\n[..]: in these precisions only; -: it cannot apply there\n", to);
	for (const ck_fault *const *f = ck_faults(); *f; f++)
		print_not_applicable(r, *f, to);
	print_cells("missed", r, r->cells, r->ncells, false, to);
	print_cells("false alarm", r, r->alarms, r->nalarms, true, to);
	for (int m = 0; m < n; m++)
		free(texts[m]);
	free(texts);
	free(heads);
}
