/* A comparison as a record and as a TSV. */
#define _GNU_SOURCE /* open_memstream */
#include <stdlib.h>

#include "harness/record/compare.h"
#include "harness/record/digest.h"
#include "harness/record/json.h"
#include "harness/record/json_put.h"
#include "kernels/alloc.h"

static void put_letter(cJSON *o, const char *name, int side)
{
	put_text(o, name, (char[]){(char)('A' + side), 0});
}

/* ---- sides --------------------------------------------------------------------------------------------------------------- */

/* By precision, FLOP/s; and of a copy, bytes a second. */
static void put_ceilings(cJSON *record, const ck_ceilings *c)
{
	cJSON *o = cJSON_CreateObject();
	for (int i = 0; i < CK_PRECISIONS; i++)
		if (c->matmul[i] > 0)
			put_number(o, ck_precision_names[i], c->matmul[i]);
	if (c->copy > 0)
		put_number(o, "copy", c->copy);
	if (o->child)
		cJSON_AddItemToObject(record, "ceilings", o);
	else
		cJSON_Delete(o);
}

static cJSON *record_object(const char *file, const ck_result *r)
{
	cJSON *o = cJSON_CreateObject();
	put_text(o, "file", file);
	put_digest(o, "digest", r->digest);
	put_text(o, "version", r->tool.version);
	put_text(o, "git", r->tool.git);
	put_text(o, "compiler", r->tool.compiler);
	put_text(o, "flags", r->tool.flags);
	put_text(o, "cpu", r->machine.cpu);
	put_text(o, "device", r->device.name);
	put_text(o, "description", r->device.description);
	put_number(o, "threads", r->device.threads);
	put_text(o, "line", r->c.line);
	put_ceilings(o, &r->ceilings.at);
	return o;
}

static void put_sides(cJSON *root, const ck_comparison *c)
{
	cJSON *list = cJSON_AddArrayToObject(root, "sides");
	for (int s = 0; s < c->nsides; s++) {
		const ck_side *side = &c->sides[s];
		cJSON *o = cJSON_CreateObject();
		put_letter(o, "side", s);
		put_text(o, "name", side->name);
		put_text(o, "source", side->source);
		cJSON *records = cJSON_AddArrayToObject(o, "records");
		for (int i = 0; i < side->n; i++)
			cJSON_AddItemToArray(records, record_object(side->files[i], side->records[i]));
		cJSON_AddItemToArray(list, o);
	}
}

/* ---- cases --------------------------------------------------------------------------------------------------------------- */

static void put_ratio(cJSON *o, const ck_ratio *r)
{
	put_number(o, "ratio", r->at);
	if (isfinite(r->low))
		put_numbers(o, "ci95", (double[]){r->low, r->high}, 2);
	put_text(o, "verdict", ck_speed_names[r->speed]);
}

static void put_figures(cJSON *point, const char *name, const ck_result *r, const ck_point *p)
{
	cJSON *o = cJSON_AddObjectToObject(point, name);
	put_number(o, "median", p->time.median);
	put_numbers(o, "ci95", (double[]){p->time.ci_low, p->time.ci_high}, 2);
	put_number(o, "samples", p->time.n);
	put_number(o, "overhead_time", ck_overhead_time(r, p));
	put_number(o, "saving", ck_saving(r, p));
	put_size(o, "live_peak", p->live_peak);
	put_size(o, "device_peak", p->device_peak);
	put_number(o, "utilisation_model", ck_point_utilisation(r, p).model);
	put_number(o, "utilisation_hardware", ck_point_utilisation(r, p).hardware);
}

static cJSON *point_object(const ck_pair *pair, const ck_pair_point *p)
{
	cJSON *o = cJSON_CreateObject();
	put_text(o, "plan", p->base->plan);
	put_ratio(o, &p->time);
	put_number(o, "live_peak_ratio", (double)p->other->live_peak / (double)p->base->live_peak);
	if (p->base->device_peak && p->other->device_peak)
		put_number(o, "device_peak_ratio", (double)p->other->device_peak / (double)p->base->device_peak);
	put_figures(o, "base", pair->base, p->base);
	put_figures(o, "other", pair->other, p->other);
	return o;
}

static cJSON *pair_object(const ck_pair *p)
{
	cJSON *o = cJSON_CreateObject();
	put_letter(o, "side", p->side);
	put_ratio(o, &p->mean);
	cJSON *points = cJSON_AddArrayToObject(o, "points");
	for (int i = 0; i < p->n; i++)
		cJSON_AddItemToArray(points, point_object(p, &p->at[i]));
	return o;
}

static void put_cases(cJSON *root, const ck_comparison *c)
{
	cJSON *list = cJSON_AddArrayToObject(root, "cases");
	for (int i = 0, end; i < c->npairs; i = end) {
		end = ck_comparison_case_end(c, i);
		cJSON *o = cJSON_CreateObject(), *fields = ck__json_case(c->pairs[i].base);
		cJSON_DeleteItemFromObjectCaseSensitive(fields, "threads");
		cJSON_DeleteItemFromObjectCaseSensitive(fields, "line");
		cJSON_AddItemToObject(o, "case", fields);
		cJSON *pairs = cJSON_AddArrayToObject(o, "pairs");
		for (int k = i; k < end; k++)
			cJSON_AddItemToArray(pairs, pair_object(&c->pairs[k]));
		cJSON_AddItemToArray(list, o);
	}
}

static void put_means(cJSON *root, const ck_comparison *c)
{
	cJSON *list = cJSON_AddArrayToObject(root, "means");
	for (int s = 1; s < c->nsides; s++) {
		int cases = 0;
		for (int i = 0; i < c->npairs; i++)
			cases += c->pairs[i].side == s;
		if (!cases)
			continue;
		cJSON *o = cJSON_CreateObject();
		put_letter(o, "side", s);
		put_number(o, "cases", cases);
		put_ratio(o, &c->means[s]);
		for (int v = 0; v < CK_SPEEDS; v++)
			put_number(o, ck_speed_names[v], ck_comparison_count(c, s, (ck_speed)v));
		cJSON_AddItemToArray(list, o);
	}
}

static void put_left_out(cJSON *root, const ck_comparison *c)
{
	cJSON *list = cJSON_AddArrayToObject(root, "not_compared");
	for (int i = 0; i < c->nleft_out; i++) {
		cJSON *o = cJSON_CreateObject();
		put_letter(o, "side", c->left_out[i].side);
		put_text(o, "what", c->left_out[i].what);
		put_text(o, "plan", c->left_out[i].plan);
		put_text(o, "why", c->left_out[i].why);
		cJSON_AddItemToArray(list, o);
	}
}

char *ck_comparison_json(const ck_comparison *c)
{
	cJSON *root = ck__json_root(CK_COMPARE_SCHEMA, c->about);
	put_sides(root, c);
	put_cases(root, c);
	put_means(root, c);
	put_left_out(root, c);
	cJSON *warnings = cJSON_AddArrayToObject(root, "warnings");
	for (int i = 0; i < c->nwarnings; i++)
		cJSON_AddItemToArray(warnings, cJSON_CreateString(c->warnings[i]));
	return ck__json_end(root);
}

/* ---- the TSV ------------------------------------------------------------------------------------------------------------- */

static void put_cell(FILE *to, double number)
{
	if (isfinite(number))
		fprintf(to, "\t%.10g", number);
	else
		fputc('\t', to);
}

static double known(size_t bytes)
{
	return bytes ? (double)bytes : NAN;
}

/* ratio: NULL where it has none, as on the baseline's side. */
static void put_row(FILE *to, const ck_comparison *c, int side, const ck_result *r, const ck_point *p, const ck_ratio *ratio)
{
	char *words = ck_case_words(r);
	fprintf(to, "%s\t%c\t%s\t%s", words, 'A' + side, c->sides[side].name, p->plan);
	free(words);
	put_cell(to, known(p->live_peak));
	put_cell(to, known(p->device_peak));
	put_cell(to, ck_saving(r, p));
	put_cell(to, p->time.median);
	put_cell(to, p->time.ci_low);
	put_cell(to, p->time.ci_high);
	put_cell(to, ck_overhead_time(r, p));
	put_cell(to, ck_point_utilisation(r, p).model);
	put_cell(to, ck_point_utilisation(r, p).hardware);
	fprintf(to, "\t%d", p->pareto);
	put_cell(to, ratio ? ratio->at : NAN);
	put_cell(to, ratio ? ratio->low : NAN);
	put_cell(to, ratio ? ratio->high : NAN);
	fprintf(to, "\t%s\n", ratio ? ck_speed_names[ratio->speed] : "");
}

static const ck_ratio *ratio_of(const ck_pair *pair, const ck_point *p)
{
	for (int i = 0; pair && i < pair->n; i++)
		if (pair->at[i].other == p)
			return &pair->at[i].time;
	return NULL;
}

/* All plans that were timed, whether or not another side has them. */
static void put_rows(FILE *to, const ck_comparison *c, int side, const ck_result *r, const ck_pair *pair)
{
	for (int i = 0; i < r->npoints; i++)
		if (r->points[i].status == CK_POINT_OK && r->points[i].time.n)
			put_row(to, c, side, r, &r->points[i], ratio_of(pair, &r->points[i]));
}

char *ck_comparison_tsv(const ck_comparison *c)
{
	char *text = NULL;
	size_t bytes;
	FILE *to = open_memstream(&text, &bytes);
	if (!to)
		return ck_text("%s", "");
	fputs("case\tside\tname\tplan\tlive_peak\tdevice_peak\tsaving\ttime_median\ttime_ci_low\ttime_ci_high\toverhead_time\t"
	      "utilisation_model\tutilisation_hardware\tpareto\tratio\tratio_ci_low\tratio_ci_high\tverdict\n",
	      to);
	for (int i = 0, end; i < c->npairs; i = end) {
		end = ck_comparison_case_end(c, i);
		put_rows(to, c, 0, c->pairs[i].base, NULL);
		for (int k = i; k < end; k++)
			put_rows(to, c, c->pairs[k].side, c->pairs[k].other, &c->pairs[k]);
	}
	fclose(to);
	return text;
}
