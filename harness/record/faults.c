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

/* What became of a fault in a model under all plans together. */
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

static void add_standing(ck_columns *c, const standing *s)
{
	char text[200] = "";
	for (int k = 0; k < CK_CHECKS; k++) {
		size_t used = strlen(text);
		if (s->by >> k & 1)
			snprintf(text + used, sizeof text - used, "%s%s", used ? ", " : "", ck_check_name(k));
	}
	ck_columns_add(c, "%s", s->missed ? "MISSED" : s->caught ? text : "-");
}

/* Where a fault applies under no plan, and why. */
static void print_not_applicable(const ck_fault_report *r, const ck_fault *fault, FILE *to)
{
	const char *why = NULL;
	char models[200] = "";
	for (int m = 0; m < r->nmodels; m++) {
		standing s = find_standing(r, fault, m);
		size_t used = strlen(models);
		if (s.caught || s.missed || !s.why)
			continue;
		why = s.why;
		snprintf(models + used, sizeof models - used, "%s%s", used ? ", " : "", r->models[m]->c.model);
	}
	if (why)
		fprintf(to, "  %s, %s: %s\n", fault->name, models, why);
}

static void print_cells(const char *what, const ck_fault_report *r, const ck_fault_cell *cells, int n, bool all, FILE *to)
{
	for (int i = 0; i < n; i++)
		if (all || cells[i].verdict.status == CK_FAULT_MISSED)
			fprintf(to, "%s: %s in %s under %s: %s\n", what, cells[i].fault ? cells[i].fault->name : "no fault",
				r->names[cells[i].model], cells[i].plan ? cells[i].plan : "any plan",
				all ? cells[i].verdict.why.text : "no check noticed it");
}

void ck_fault_report_table(const ck_fault_report *r, FILE *to)
{
	const char **heads = ck_alloc((size_t)r->nmodels + 2, sizeof *heads);
	char **texts = ck_alloc((size_t)r->nmodels, sizeof *texts);
	heads[0] = "<fault";
	for (int m = 0; m < r->nmodels; m++)
		heads[m + 1] = texts[m] = ck_text("<%s", r->models[m]->c.model);
	heads[r->nmodels + 1] = "<by shapes only";
	ck_columns c = ck_columns_new(r->nmodels + 2, heads);
	for (const ck_fault *const *f = ck_faults(); *f; f++) {
		int shapes_only = 0, caught = 0;
		ck_columns_add(&c, "%s", (*f)->name);
		for (int m = 0; m < r->nmodels; m++) {
			standing s = find_standing(r, *f, m);
			shapes_only += s.shapes_only;
			caught += s.caught;
			add_standing(&c, &s);
		}
		ck_columns_add(&c, "%s", !caught ? "-" : shapes_only ? "caught" : "not seen");
	}
	ck_columns_print(&c, "", to);
	ck_columns_free(&c);
	fputs("\n-: it cannot apply there\n", to);
	for (const ck_fault *const *f = ck_faults(); *f; f++)
		print_not_applicable(r, *f, to);
	print_cells("missed", r, r->cells, r->ncells, false, to);
	print_cells("false alarm", r, r->alarms, r->nalarms, true, to);
	for (int m = 0; m < r->nmodels; m++)
		free(texts[m]);
	free(texts);
	free(heads);
}
