/* A comparison for people, within 128 columns. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/record/columns.h"
#include "harness/record/compare.h"
#include "harness/record/units.h"
#include "kernels/alloc.h"

static void print_sides(const ck_comparison *c, FILE *to)
{
	static const char *const heads[] = {"<", "<name", ">threads", ">records", "<from"};
	ck_columns columns = ck_columns_new(sizeof heads / sizeof *heads, heads);
	for (int s = 0; s < c->nsides; s++) {
		const ck_side *side = &c->sides[s];
		ck_columns_add(&columns, "%c", 'A' + s);
		ck_columns_add(&columns, "%s", side->name);
		ck_columns_add(&columns, "%d", side->records[0]->device.threads);
		ck_columns_add(&columns, "%d", side->n);
		ck_columns_add(&columns, "%s", side->source);
	}
	ck_columns_print(&columns, "", to);
	ck_columns_free(&columns);
}

/* ---- a case -------------------------------------------------------------------------------------------------------------- */

/* Three digits behind the point, fewer where the number is large. */
static void ratio_text(double x, char text[CK_UNIT_TEXT])
{
	snprintf(text, CK_UNIT_TEXT, "%.*f", x < 9.9995 ? 3 : x < 99.995 ? 2 : 1, x);
}

static void add_ratio(ck_columns *c, double x)
{
	char text[CK_UNIT_TEXT] = "";
	if (isfinite(x))
		ratio_text(x, text);
	ck_columns_add(c, "%s", text);
}

/* "0.791 .. 0.815"; nothing where there is no interval. */
static void interval_text(const ck_ratio *r, char text[3 * CK_UNIT_TEXT])
{
	char low[CK_UNIT_TEXT], high[CK_UNIT_TEXT];
	text[0] = 0;
	if (!isfinite(r->low))
		return;
	ratio_text(r->low, low);
	ratio_text(r->high, high);
	snprintf(text, 3 * CK_UNIT_TEXT, "%s .. %s", low, high);
}

static void add_time(ck_columns *c, double seconds)
{
	char text[CK_UNIT_TEXT];
	ck_columns_add(c, "%s", ck_seconds_text(seconds, text));
}

static void add_overhead(ck_columns *c, const ck_result *r, const ck_point *p)
{
	double x = ck_overhead_time(r, p);
	if (isfinite(x))
		ck_columns_add(c, "%+.0f %%", fabs(x - 1) < 0.005 ? 0.0 : 100 * (x - 1));
	else
		ck_columns_add(c, "%s", "");
}

static void add_utilisation(ck_columns *c, const ck_result *r, const ck_point *p)
{
	double share = ck_point_utilisation(r, p).model;
	if (isfinite(share))
		ck_columns_add(c, "%.1f", 100 * share);
	else
		ck_columns_add(c, "%s", "");
}

static double memory_ratio(size_t other, size_t base)
{
	return other && base ? (double)other / (double)base : NAN;
}

enum { PLAN_WIDTH = 12 };

static void add_plan(ck_columns *c, const char *plan)
{
	bool cut = strlen(plan) > PLAN_WIDTH;
	ck_columns_add(c, "%.*s%s", cut ? PLAN_WIDTH - 2 : PLAN_WIDTH, plan, cut ? ".." : "");
}

static void add_point(ck_columns *c, const ck_pair *pair, const ck_pair_point *p)
{
	char interval[3 * CK_UNIT_TEXT], peak[CK_UNIT_TEXT];
	interval_text(&p->time, interval);
	add_plan(c, p->base->plan);
	add_time(c, p->base->time.median);
	add_time(c, p->other->time.median);
	add_ratio(c, p->time.at);
	ck_columns_add(c, "%s", interval);
	ck_columns_add(c, "%s", ck_speed_names[p->time.speed]);
	add_overhead(c, pair->base, p->base);
	add_overhead(c, pair->other, p->other);
	ck_columns_add(c, "%s", ck_bytes_text(p->base->live_peak, peak));
	add_ratio(c, p->base->live_peak == p->other->live_peak ? NAN : memory_ratio(p->other->live_peak, p->base->live_peak));
	add_ratio(c, memory_ratio(p->other->device_peak, p->base->device_peak));
	add_utilisation(c, pair->base, p->base);
	add_utilisation(c, pair->other, p->other);
}

/* "geometric mean over 8 plans  0.812 (0.790 .. 0.834): B is faster" */
static void print_mean(const char *over, char letter, const ck_ratio *r, FILE *to)
{
	static const char *const says[] = {"is faster", "is slower", "is the same", "cannot be told apart from A"};
	char at[CK_UNIT_TEXT], interval[3 * CK_UNIT_TEXT];
	ratio_text(r->at, at);
	interval_text(r, interval);
	fprintf(to, "geometric mean over %s: %s%s%s%s; %c %s\n", over, at, *interval ? " (" : "", interval,
		*interval ? ")" : ", too few samples for an interval", letter, says[r->speed]);
}

static void print_pair(const ck_pair *p, FILE *to)
{
	/* '?' stands for the side's letter. */
	static const char *const forms[] = {"<plan",    ">A's time", ">?'s time", ">?/A",       "<95 % interval",
					    "<verdict", ">A over",   ">? over",   ">live peak", ">live ?/A",
					    ">dev ?/A", ">A MFU %",  ">? MFU %"};
	char letter = (char)('A' + p->side), *heads[sizeof forms / sizeof *forms];
	for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
		heads[i] = ck_text("%s", forms[i]);
		for (char *at; (at = strchr(heads[i], '?'));)
			*at = letter;
	}
	ck_columns columns = ck_columns_new(sizeof heads / sizeof *heads, (const char *const *)heads);
	for (int i = 0; i < p->n; i++)
		add_point(&columns, p, &p->at[i]);
	ck_columns_print(&columns, "", to);
	ck_columns_free(&columns);
	for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
		free(heads[i]);
	char *over = ck_text("%d plan%s", p->n, p->n == 1 ? "" : "s");
	print_mean(over, letter, &p->mean, to);
	free(over);
}

/* ---- all of it ----------------------------------------------------------------------------------------------------------- */

static void print_means(const ck_comparison *c, FILE *to)
{
	for (int s = 1; s < c->nsides; s++) {
		int cases = 0;
		for (int i = 0; i < c->npairs; i++)
			cases += c->pairs[i].side == s;
		if (cases < 2)
			continue;
		char *over = ck_text("%d cases", cases);
		print_mean(over, (char)('A' + s), &c->means[s], to);
		free(over);
	}
}

/* Whether the next entry is of the same case, for the same reason. */
static bool goes_on(const ck_left_out *x, const ck_left_out *next)
{
	return x->plan && next->plan && x->side == next->side && strcmp(x->what, next->what) == 0 &&
	       strcmp(x->why, next->why) == 0;
}

static void print_left_out(const ck_comparison *c, FILE *to)
{
	if (c->nleft_out)
		fputs("\nnot compared\n", to);
	for (int i = 0; i < c->nleft_out; i++) {
		const ck_left_out *x = &c->left_out[i];
		int first = i;
		while (i + 1 < c->nleft_out && goes_on(x, x + 1))
			i++, x++;
		fprintf(to, "  %c  %s", 'A' + x->side, x->what);
		if (x->plan)
			fprintf(to, ", plan %s", c->left_out[first].plan);
		if (i > first)
			fprintf(to, " and %d more", i - first);
		fprintf(to, ": %s\n", x->why);
	}
}

static const char legend[] =
    "ratios are of median step times; faster, slower: the interval is all on one side of 1; same: it holds 1 and nothing\n"
    "beyond 5 % from it; unclear: it holds more, or there is none; over: step time over that of the side's own plan none;\n"
    "live: peak of live bytes; dev: peak as the device has it, on a CPU the process; MFU: model FLOPs over the side's own "
    "ceiling\n";

void ck_comparison_table(const ck_comparison *c, FILE *to)
{
	print_sides(c, to);
	for (int i = 0; i < c->npairs; i++) {
		char *words = ck_case_words(c->pairs[i].base);
		fprintf(to, "\n%s\n", words);
		free(words);
		print_pair(&c->pairs[i], to);
	}
	if (c->npairs)
		fputc('\n', to);
	print_means(c, to);
	if (c->npairs)
		fputs(legend, to);
	print_left_out(c, to);
}
