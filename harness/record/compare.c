#include "harness/record/compare.h"

#include <stdlib.h>
#include <string.h>

#include "harness/record/json.h"
#include "kernels/alloc.h"

void ck_comparison_open(ck_comparison *c, int argc, char *const *argv)
{
	*c = (ck_comparison){.about = ck_result_new(argc, argv)};
}

void ck_comparison_free(ck_comparison *c)
{
	for (int s = 0; s < c->nsides; s++) {
		ck_side *side = &c->sides[s];
		for (int i = 0; i < side->n; i++) {
			ck_result_free(side->records[i]);
			free(side->files[i]);
		}
		free(side->records);
		free(side->files);
		free(side->source);
		free(side->name);
	}
	for (int i = 0; i < c->npairs; i++)
		free(c->pairs[i].at);
	free(c->pairs);
	for (int i = 0; i < c->nleft_out; i++) {
		free(c->left_out[i].what);
		free(c->left_out[i].plan);
		free(c->left_out[i].why);
	}
	free(c->left_out);
	for (int i = 0; i < c->nwarnings; i++)
		free(c->warnings[i]);
	free(c->warnings);
	ck_result_free(c->about);
	*c = (ck_comparison){0};
}

/* ---- what comes in ------------------------------------------------------------------------------------------------------- */

int ck_comparison_add_side(ck_comparison *c, const char *source)
{
	c->sides[c->nsides] = (ck_side){.source = ck_text("%s", source)};
	return c->nsides++;
}

static const char *file_of_same(const ck_comparison *c, const ck_result *r)
{
	for (int s = 0; s < c->nsides; s++)
		for (int i = 0; i < c->sides[s].n; i++)
			if (memcmp(&c->sides[s].records[i]->digest, &r->digest, sizeof r->digest) == 0)
				return c->sides[s].files[i];
	return NULL;
}

ck_status ck_comparison_add(ck_comparison *c, int side, const char *file, ck_result *r, ck_err *err)
{
	if (!r->sealed)
		return ck_fail(
		    err, CK_USAGE,
		    "%s has no \"digest\", so nobody can tell whether it was edited: it is an older record, or part of "
		    "one; run its command again to get one that has",
		    file);
	const char *same = file_of_same(c, r);
	if (same)
		return ck_fail(err, CK_USAGE, "%s and %s are the same record; name two runs, each once", same, file);
	ck_side *s = &c->sides[side];
	s->records = ck_grow(s->records, &s->records_capacity, s->n + 1, sizeof *s->records);
	s->files = ck_grow(s->files, &s->files_capacity, s->n + 1, sizeof *s->files);
	s->records[s->n] = r;
	s->files[s->n++] = ck_text("%s", file);
	return CK_OK;
}

void ck_comparison_leave_out(ck_comparison *c, int side, const char *what, const char *plan, char *why)
{
	c->left_out = ck_grow(c->left_out, &c->left_out_capacity, c->nleft_out + 1, sizeof *c->left_out);
	c->left_out[c->nleft_out++] = (ck_left_out){side, ck_text("%s", what), plan ? ck_text("%s", plan) : NULL, why};
}

/* ---- words --------------------------------------------------------------------------------------------------------------- */

/* What a field of a case says, "-" where it is left out. */
static const char *field_text(const cJSON *field)
{
	if (!field)
		return "-";
	return cJSON_IsBool(field) ? (cJSON_IsTrue(field) ? "on" : "off") : field->valuestring;
}

static bool is_one_of(const char *name, const char *const *names)
{
	while (*names && strcmp(name, *names) != 0)
		names++;
	return *names != NULL;
}

/* Of a case's fields, those that say how it ran, not what: they may differ. */
static const char *const how_it_ran[] = {"threads", "line", NULL};
/* And those that follow from the others, unless the program itself has changed. */
static const char *const what_follows[] = {"parameters", "stages", "ops", "graph", NULL};

/* The model with its settings, as the record's own command line has it: behind the program and the command. */
static char *model_words(const ck_result *r)
{
	const char *at = r->c.line;
	for (int i = 0; i < 2; i++) {
		at += strcspn(at, " ");
		at += strspn(at, " ");
	}
	size_t n = strlen(r->c.model);
	return strncmp(at, r->c.model, n) == 0 ? ck_text("%.*s", (int)strcspn(at, " "), at) : ck_text("%s", r->c.model);
}

char *ck_case_words(const ck_result *r)
{
	static const char *const options[] = {"data", "amp", "rng", "seed", "tf32", "fast", NULL};
	static const char *const presets[] = {"random", "off", "counter"}; /* of the first three */
	cJSON *o = ck__json_case(r);
	char *words = model_words(r);
	for (int i = 0; options[i]; i++) {
		const cJSON *field = cJSON_GetObjectItemCaseSensitive(o, options[i]);
		bool preset = !field || cJSON_IsFalse(field) || (i < 3 && strcmp(field_text(field), presets[i]) == 0);
		if (!preset)
			words = ck__append(words, " --%s%s%s", options[i], cJSON_IsBool(field) ? "" : " ",
					   cJSON_IsBool(field) ? "" : field_text(field));
	}
	cJSON_Delete(o);
	return words;
}

/* ---- cases --------------------------------------------------------------------------------------------------------------- */

static bool field_differs(const cJSON *a, const cJSON *b)
{
	return !a || !b || strcmp(field_text(a), field_text(b)) != 0;
}

/* The fields in which two cases differ: how many, and "seed 1 in A, 2 in B" of each. The baseline's case is A's. */
typedef struct difference {
	int n;
	char *text; /* owned */
	char letter;
} difference;

static void compare_field(difference *d, const char *name, const cJSON *a, const cJSON *b)
{
	if (!field_differs(a, b))
		return;
	d->n++;
	d->text =
	    ck__append(d->text, "%s%s %s in A, %s in %c", *d->text ? "; " : "", name, field_text(a), field_text(b), d->letter);
}

static void compare_fields(difference *d, const cJSON *a, const cJSON *b, bool following)
{
	const cJSON *field;
	cJSON_ArrayForEach(field, a)
	{
		if (!is_one_of(field->string, how_it_ran) && is_one_of(field->string, what_follows) == following)
			compare_field(d, field->string, field, cJSON_GetObjectItemCaseSensitive(b, field->string));
	}
	cJSON_ArrayForEach(field, b)
	{
		if (!is_one_of(field->string, how_it_ran) && is_one_of(field->string, what_follows) == following &&
		    !cJSON_GetObjectItemCaseSensitive(a, field->string))
			compare_field(d, field->string, NULL, field);
	}
}

static difference case_difference(const ck_result *a, const ck_result *b, char letter)
{
	cJSON *x = ck__json_case(a), *y = ck__json_case(b);
	difference d = {.text = ck_text("%s", ""), .letter = letter};
	compare_fields(&d, x, y, false);
	if (d.n == 0) {
		compare_fields(&d, x, y, true);
		if (d.n)
			d.text = ck__append(d.text, "; the versions of ckbench build this model otherwise");
	}
	cJSON_Delete(x);
	cJSON_Delete(y);
	return d;
}

static bool same_case(const ck_result *a, const ck_result *b)
{
	difference d = case_difference(a, b, '?');
	free(d.text);
	return d.n == 0;
}

/* The first record of the side that has this case, before the record `before`; NULL for none. */
static const ck_result *find_case(const ck_side *s, const ck_result *r, int before)
{
	for (int i = 0; i < before; i++)
		if (same_case(s->records[i], r))
			return s->records[i];
	return NULL;
}

static const char *file_of(const ck_side *s, const ck_result *r)
{
	int i = 0;
	while (s->records[i] != r)
		i++;
	return s->files[i];
}

/* Records of a case that their own side has already. */
static bool is_repeated(ck_comparison *c, int side, int i)
{
	ck_side *s = &c->sides[side];
	const ck_result *first = find_case(s, s->records[i], i);
	if (first)
		ck_comparison_leave_out(c, side, s->files[i], NULL,
					ck_text("%s has the same case, and is taken; leave one out", file_of(s, first)));
	return first != NULL;
}

/* A side's record whose case the baseline lacks: what is nearest there. Gives that record's number, -1 for none. */
static int tell_unmatched(ck_comparison *c, int side, const ck_result *r)
{
	const ck_side *base = &c->sides[0];
	int nearest = -1;
	difference least = {0};
	for (int i = 0; i < base->n; i++) {
		if (strcmp(base->records[i]->c.model, r->c.model) != 0)
			continue;
		difference d = case_difference(base->records[i], r, (char)('A' + side));
		bool nearer = nearest < 0 || d.n < least.n;
		free(nearer ? least.text : d.text);
		if (nearer)
			least = d, nearest = i;
	}
	char *words = ck_case_words(r);
	ck_comparison_leave_out(c, side, words, NULL, nearest < 0 ? ck_text("A has no record of %s", r->c.model) : least.text);
	free(words);
	return nearest;
}

/* ---- plans --------------------------------------------------------------------------------------------------------------- */

/* Why a point cannot be compared, in fresh memory; NULL: it can. */
static char *flaw_of(const ck_point *p, char letter)
{
	if (!p)
		return ck_text("%c has no such plan", letter);
	if (p->status == CK_POINT_PARITY_FAILED)
		return ck_text("failed parity in %c: %s", letter, p->reason ? p->reason : "no reason given");
	if (p->status != CK_POINT_OK)
		return ck_text("%s in %c: %s", ck_point_status_names[p->status], letter,
			       p->reason ? p->reason : "no reason given");
	if (p->checked && !ck_verdict_passed(p->verdict))
		return ck_text("parity in %c: %s", letter, ck_verdict_names[p->verdict]);
	return p->time.n ? NULL : ck_text("not timed in %c", letter);
}

/* A schedule is called by its file, and that may hold anything. */
static bool other_schedule(const ck_point *a, const ck_point *b)
{
	return strncmp(a->plan, "schedule:", 9) == 0 &&
	       (a->executed_flops != b->executed_flops || a->predicted_peak != b->predicted_peak);
}

static void match_plan(ck_comparison *c, ck_pair *p, const char *plan, const char *words)
{
	const ck_point *a = ck_result_find(p->base, plan), *b = ck_result_find(p->other, plan);
	char letter = (char)('A' + p->side), *why = flaw_of(a, 'A');
	if (!why)
		why = flaw_of(b, letter);
	if (!why && other_schedule(a, b))
		why = ck_text("the file held another schedule in %c", letter);
	if (why) {
		ck_comparison_leave_out(c, p->side, words, plan, why);
		return;
	}
	p->at = ck_grow(p->at, &p->capacity, p->n + 1, sizeof *p->at);
	p->at[p->n++] = (ck_pair_point){a, b, ck__ratio_of(&a->time, &b->time, 0.95)};
}

/* The mean over the case's plans, as one of `together` ratios that are to hold together. */
static ck_ratio mean_of(const ck_pair *p, int together)
{
	ck_ratio *at = ck_alloc((size_t)p->n, sizeof *at);
	for (int i = 0; i < p->n; i++)
		at[i] = ck__ratio_of(&p->at[i].base->time, &p->at[i].other->time, 1 - 0.05 / together);
	ck_ratio mean = ck__ratio_mean(at, p->n);
	free(at);
	return mean;
}

static void match_plans(ck_comparison *c, int side, const ck_result *base, const ck_result *other)
{
	ck_pair p = {.side = side, .base = base, .other = other};
	char *words = ck_case_words(base);
	for (int i = 0; i < base->npoints; i++)
		match_plan(c, &p, base->points[i].plan, words);
	for (int i = 0; i < other->npoints; i++)
		if (!ck_result_find(base, other->points[i].plan))
			match_plan(c, &p, other->points[i].plan, words);
	free(words);
	if (p.n == 0)
		return;
	p.mean = mean_of(&p, p.n);
	c->pairs = ck_grow(c->pairs, &c->pairs_capacity, c->npairs + 1, sizeof *c->pairs);
	c->pairs[c->npairs++] = p;
}

/* ---- all of it ----------------------------------------------------------------------------------------------------------- */

/* A baseline's case that a side lacks, unless the side's nearest to it was told already. */
static void match_base(ck_comparison *c, int i, const bool *told)
{
	ck_side *base = &c->sides[0];
	if (is_repeated(c, 0, i))
		return;
	for (int side = 1; side < c->nsides; side++) {
		const ck_side *s = &c->sides[side];
		const ck_result *other = find_case(s, base->records[i], s->n);
		if (other)
			match_plans(c, side, base->records[i], other);
		if (other || told[side * base->n + i])
			continue;
		char *words = ck_case_words(base->records[i]);
		ck_comparison_leave_out(c, 0, words, NULL, ck_text("%c has no record of it", 'A' + side));
		free(words);
	}
}

static void match_all(ck_comparison *c)
{
	ck_side *base = &c->sides[0];
	bool *told = ck_alloc((size_t)(c->nsides * base->n), sizeof *told);
	for (int side = 1; side < c->nsides; side++) {
		for (int i = 0; i < c->sides[side].n; i++) {
			const ck_result *r = c->sides[side].records[i];
			if (is_repeated(c, side, i) || find_case(base, r, base->n))
				continue;
			int nearest = tell_unmatched(c, side, r);
			if (nearest >= 0)
				told[side * base->n + nearest] = true;
		}
	}
	for (int i = 0; i < base->n; i++)
		match_base(c, i, told);
	free(told);
}

/* Over cases, each the mean over its plans. */
static ck_ratio side_mean(const ck_comparison *c, int side)
{
	ck_ratio *at = ck_alloc((size_t)c->npairs, sizeof *at);
	int n = 0, plans = 0;
	for (int i = 0; i < c->npairs; i++)
		plans += c->pairs[i].side == side ? c->pairs[i].n : 0;
	for (int i = 0; i < c->npairs; i++)
		if (c->pairs[i].side == side)
			at[n++] = mean_of(&c->pairs[i], plans);
	ck_ratio mean = ck__ratio_mean(at, n);
	free(at);
	return mean;
}

int ck_comparison_case_end(const ck_comparison *c, int first)
{
	int end = first + 1;
	while (end < c->npairs && c->pairs[end].base == c->pairs[first].base)
		end++;
	return end;
}

int ck_comparison_count(const ck_comparison *c, int side, ck_speed speed)
{
	int n = 0;
	for (int i = 0; i < c->npairs; i++)
		for (int k = 0; k < c->pairs[i].n && c->pairs[i].side == side; k++)
			n += c->pairs[i].at[k].time.speed == speed;
	return n;
}

ck_status ck_comparison_make(ck_comparison *c, ck_err *err)
{
	ck__compare_name(c);
	match_all(c);
	for (int side = 1; side < c->nsides; side++)
		c->means[side] = side_mean(c, side);
	ck__compare_warn(c);
	return c->npairs
		   ? CK_OK
		   : ck_fail(err, CK_USAGE,
			     "the records share no plan of a case that was timed and proved in both; run the same command "
			     "(\"line\" of a record's \"case\") on each machine");
}
