#include "harness/cli/plans.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/cli/numbers.h"
#include "kernels/alloc.h"
#include "kernels/readfile.h"

enum { PLANS_MOST = 64 }; /* without a list: what a plot and a patient reader can bear */

enum { SCHEDULE_MOST = 256 << 20 }; /* bytes; longer than any of ours */

static const char SCHEDULE[] = "schedule:";

/* ---- adding -------------------------------------------------------------------------------------------------------------- */

static ck_plan_entry *append(ck_plans *p, const char *name)
{
	p->at = ck_grow(p->at, &p->capacity, p->n + 1, sizeof *p->at);
	p->at[p->n] = (ck_plan_entry){.name = ck_text("%s", name)};
	return &p->at[p->n++];
}

static bool is_listed(const ck_plans *p, const char *name)
{
	for (int i = 0; i < p->n; i++)
		if (strcmp(p->at[i].name, name) == 0)
			return true;
	return false;
}

static void entry_free(ck_plan_entry *e)
{
	free(e->name);
	ck_schedule_free(&e->schedule);
	if (e->program)
		ck_program_free(e->program);
}

/* A schedule made elsewhere. Whether it keeps the rules is checked when it becomes a program. */
static ck_status add_file(const ck_graph *g, ck_plans *p, const char *path, ck_err *err)
{
	if (!*path)
		return ck_fail(err, CK_USAGE, "plan '%s' names no file; write %sFILE", SCHEDULE, SCHEDULE);
	char *name = ck_text("%s%s", SCHEDULE, path), *text = NULL;
	size_t bytes;
	ck_status status = is_listed(p, name) ? CK_OK : ck_file_read(path, SCHEDULE_MOST, &text, &bytes, err);
	if (text) {
		ck_schedule schedule = {0};
		ck_err why = {""};
		status = ck_schedule_parse(g, text, bytes, &schedule, &why);
		if (status == CK_OK)
			append(p, name)->schedule = schedule;
		else
			ck_fail(err, status, "%.200s: %s", path, why.text);
	}
	free(name);
	free(text);
	return status;
}

static bool is_file(const char *text)
{
	return strncmp(text, SCHEDULE, strlen(SCHEDULE)) == 0;
}

/* Listed twice is listed once. */
static ck_status add(const ck_graph *g, ck_plans *p, const char *text, ck_err *err)
{
	if (is_file(text))
		return add_file(g, p, text + strlen(SCHEDULE), err);
	ck_plan plan;
	ck_status status = ck_plan_read(g, text, &plan, err);
	if (status != CK_OK || is_listed(p, plan.name))
		return status;
	ck_schedule schedule = {0};
	status = ck_plan_make(g, &plan, &schedule, err);
	if (status != CK_OK)
		return status;
	ck_plan_entry *e = append(p, plan.name);
	e->segments = plan.segments;
	e->planner = plan.planner;
	e->knob = plan.knob;
	e->schedule = schedule;
	return CK_OK;
}

/* ---- by list ------------------------------------------------------------------------------------------------------------- */

/* planner:K for every K of the list. */
static ck_status add_knobs(const ck_graph *g, ck_plans *p, const char *what, const char *planner, const char *knobs,
			   ck_err *err)
{
	ck_numbers list = {0};
	ck_status status = ck_numbers_read(what, knobs, &list, err);
	for (int i = 0; i < list.n && status == CK_OK; i++) {
		char *text = ck_text("%s:%" PRId64, planner, list.at[i]);
		ck_err why = {""};
		status = add(g, p, text, &why);
		if (status != CK_OK)
			ck_fail(err, status, "%s: %s", what, why.text);
		free(text);
	}
	free(list.at);
	return status;
}

/* One of --plans: "stages", "uniform:4", "uniform:1..12", "uniform:1,2,4", "schedule:FILE". */
static ck_status add_item(const ck_graph *g, ck_plans *p, char *item, ck_err *err)
{
	char *colon = strchr(item, ':');
	bool is_list = colon && (strchr(colon, ',') || strstr(colon, ".."));
	if (!is_list || is_file(item))
		return add(g, p, item, err);
	*colon = 0;
	return add_knobs(g, p, "--plans", item, colon + 1, err);
}

/* At the next comma, but a number behind it continues the list after a planner's colon. */
static char *end_of_item(char *item)
{
	char *end = item + strcspn(item, ",");
	bool takes_numbers = memchr(item, ':', (size_t)(end - item)) && !is_file(item);
	while (takes_numbers && *end && end[1] && strchr("-0123456789", end[1]))
		end += 1 + strcspn(end + 1, ",");
	return end;
}

static ck_status add_list(const ck_graph *g, ck_plans *p, const char *text, ck_err *err)
{
	char *list = ck_text("%s", text);
	ck_status status = CK_OK;
	for (char *item = list, *next; item && status == CK_OK; item = next) {
		char *end = end_of_item(item);
		next = *end ? end + 1 : NULL;
		*end = 0;
		if (*item)
			status = add_item(g, p, item, err);
		else
			status = ck_fail(err, CK_USAGE,
					 "--plans '%.60s': a plan is missing between two commas; write none,uniform:4", text);
	}
	free(list);
	return status;
}

/* ---- all that are distinct ----------------------------------------------------------------------------------------------- */

/* Knobs of one letter count something (segments, stages); others are budgets, which have no list of sensible values. */
static bool needs_no_budget(const ck_planner *p)
{
	return !p->knob || strlen(p->knob) == 1;
}

/* All from least to most or, where these are too many to try, so many at equal ratios. */
static void spread(int64_t least, int64_t most, ck_numbers *knobs)
{
	bool all = most - least < PLANS_MOST;
	int n = all ? (int)(most - least) + 1 : PLANS_MOST;
	knobs->n = 0;
	for (int i = 0; i < n; i++) {
		double ratio = (double)most / (double)least;
		int64_t k = all ? least + i : llround((double)least * pow(ratio, (double)i / (n - 1)));
		if (knobs->n && knobs->at[knobs->n - 1] == k)
			continue;
		knobs->at = ck_grow(knobs->at, &knobs->capacity, knobs->n + 1, sizeof *knobs->at);
		knobs->at[knobs->n++] = k;
	}
}

/* Drops the last plan when an earlier one has the same schedule. */
static void drop_if_same(ck_plans *p, uint64_t *digests)
{
	digests[p->n - 1] = ck_schedule_digest(&p->at[p->n - 1].schedule);
	for (int i = 0; i < p->n - 1; i++) {
		if (digests[i] != digests[p->n - 1])
			continue;
		entry_free(&p->at[--p->n]);
		p->same++;
		return;
	}
}

static ck_status add_distinct(const ck_graph *g, ck_plans *p, ck_err *err)
{
	ck_status status = CK_OK;
	ck_numbers knobs = {0};
	uint64_t *digests = NULL;
	int capacity = 0;
	for (const ck_planner *const *planner = ck_planners; *planner && status == CK_OK; planner++) {
		int64_t least = 0, most = 0;
		if (!needs_no_budget(*planner))
			continue;
		if ((*planner)->range)
			(*planner)->range(g, &least, &most);
		spread(least, most, &knobs);
		p->left_out += (int)(most - least + 1) - knobs.n;
		for (int i = 0; i < knobs.n && status == CK_OK; i++) {
			char *text = (*planner)->knob ? ck_text("%s:%" PRId64, (*planner)->name, knobs.at[i])
						      : ck_text("%s", (*planner)->name);
			status = add(g, p, text, err);
			free(text);
			digests = ck_grow(digests, &capacity, p->n, sizeof *digests);
			if (status == CK_OK)
				drop_if_same(p, digests);
		}
	}
	free(knobs.at);
	free(digests);
	return status;
}

/* Of each planner's plans, keeps the first, the last and, between them, those whose knob is at least `ratio` times that of the
 * one kept before. Returns how many that are. */
static int choose_apart(const ck_plans *p, double ratio, bool *kept)
{
	int n = 0;
	int64_t before = 0;
	for (int i = 0; i < p->n; i++) {
		const ck_plan_entry *e = &p->at[i];
		bool first = i == 0 || p->at[i - 1].planner != e->planner;
		bool last = i == p->n - 1 || p->at[i + 1].planner != e->planner;
		kept[i] = first || last || (double)e->knob >= ratio * (double)before;
		if (kept[i])
			before = e->knob;
		n += kept[i];
	}
	return n;
}

/* Leaves plans out, ever more of those in between, until few enough remain. */
static void thin_out(ck_plans *p)
{
	bool *kept = ck_alloc((size_t)p->n, sizeof *kept);
	double ratio = 1;
	while (choose_apart(p, ratio, kept) > PLANS_MOST && ratio < 1e9)
		ratio *= 1.02;
	int n = 0;
	for (int i = 0; i < p->n; i++) {
		if (kept[i])
			p->at[n++] = p->at[i];
		else
			entry_free(&p->at[i]);
	}
	p->left_out += p->n - n;
	p->n = n;
	free(kept);
}

ck_status ck_plans_choose(const ck_graph *g, const ck_options *o, ck_plans *p, ck_err *err)
{
	const char *plans = o->text[CK_OPTION_plans], *segments = o->text[CK_OPTION_segments],
		   *file = o->text[CK_OPTION_schedule];
	*p = (ck_plans){0};
	ck_status status;
	if (!plans && !segments && !file) {
		status = add_distinct(g, p, err);
		if (status == CK_OK)
			thin_out(p);
	} else {
		status = add(g, p, "none", err);
		if (status == CK_OK && plans)
			status = add_list(g, p, plans, err);
		if (status == CK_OK && segments)
			status = add_knobs(g, p, "--segments", "uniform", segments, err);
		if (status == CK_OK && file)
			status = add_file(g, p, file, err);
	}
	if (status != CK_OK)
		ck_plans_free(p);
	return status;
}

ck_status ck_plans_few(const ck_graph *g, ck_plans *p, ck_err *err)
{
	char *uniform = ck_text("uniform:%lld", llround(sqrt(g->nstages)));
	const char *const names[] = {"none", uniform, "stages"};
	uint64_t digests[sizeof names / sizeof *names];
	ck_status status = CK_OK;
	*p = (ck_plans){0};
	for (size_t i = 0; i < sizeof names / sizeof *names && status == CK_OK; i++) {
		status = add(g, p, names[i], err);
		if (status == CK_OK)
			drop_if_same(p, digests);
	}
	free(uniform);
	if (status != CK_OK)
		ck_plans_free(p);
	return status;
}

ck_status ck_plans_make(ck_plans *p, const ck_session *s, ck_err *err)
{
	for (int i = 0; i < p->n; i++) {
		ck_err why = {""};
		ck_status status = ck_program_make(s, &p->at[i].schedule, &p->at[i].program, &why);
		if (status != CK_OK)
			return ck_fail(err, status, "plan %.200s: %s", p->at[i].name, why.text);
		ck_schedule_free(&p->at[i].schedule);
	}
	return CK_OK;
}

void ck_plans_free(ck_plans *p)
{
	for (int i = 0; i < p->n; i++)
		entry_free(&p->at[i]);
	free(p->at);
	*p = (ck_plans){0};
}
