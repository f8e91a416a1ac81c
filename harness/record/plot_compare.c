/* Several sides' curves in one picture: from a comparison to what plots/compare.gp takes. */
#define _GNU_SOURCE /* open_memstream */
#include <math.h>
#include <stdlib.h>

#include "harness/record/labels.h"
#include "harness/record/plot.h"
#include "kernels/alloc.h"

static const char *const script_lines[] = {
#include "harness/record/compare.gp.h"
};

/* More rows would make a picture that no screen shows; the TSV has all. */
enum { ROWS_MOST = 6, WIDTH = 1120, HEAD = 34, NAME_HEIGHT = 20, ROW_HEIGHT = 430 };
/* Of a left panel, as the script lays it out, for placing names. */
static const double AREA_WIDTH = 476, AREA_HEIGHT = 320;

typedef struct range {
	double low, high;
} range;

/* One case: what each side measured of it. */
typedef struct row {
	const ck_result *of[CK_SIDES_MOST]; /* NULL: the side has it not */
	const char *memory_unit, *time_unit;
	double memory, time; /* these units in bytes and seconds */
	range x, y, s, o;    /* of the axes: memory and time; saving and overhead */
} row;

static bool is_drawn(const ck_point *p)
{
	return p->status == CK_POINT_OK && p->time.n && p->live_peak;
}

static row row_of(const ck_comparison *c, int first)
{
	row r = {.of = {c->pairs[first].base}};
	double largest = 0, longest = 0;
	for (int i = first, end = ck_comparison_case_end(c, first); i < end; i++)
		r.of[c->pairs[i].side] = c->pairs[i].other;
	for (int s = 0; s < c->nsides; s++) {
		for (int i = 0; r.of[s] && i < r.of[s]->npoints; i++) {
			const ck_point *p = &r.of[s]->points[i];
			largest = is_drawn(p) ? fmax(largest, (double)p->live_peak) : largest;
			longest = is_drawn(p) ? fmax(longest, p->time.median) : longest;
		}
	}
	r.memory = ck__plot_memory_unit(largest, &r.memory_unit);
	r.time = ck__plot_time_unit(longest, &r.time_unit);
	return r;
}

/* What the script draws of a point, in the row's units and in percent. */
typedef struct place {
	double memory, time, low, high, saving, overhead;
} place;

static place place_of(const row *w, const ck_result *r, const ck_point *p)
{
	return (place){(double)p->live_peak / w->memory, p->time.median / w->time, p->time.ci_low / w->time,
		       p->time.ci_high / w->time,        100 * ck_saving(r, p),    100 * (ck_overhead_time(r, p) - 1)};
}

/* ---- ranges -------------------------------------------------------------------------------------------------------------- */

static void take_in(range *r, double x)
{
	if (!isfinite(x))
		return;
	r->low = fmin(r->low, x);
	r->high = fmax(r->high, x);
}

/* With some room around it, `least` being the shortest stretch worth drawing. */
static void make_room(range *r, double least)
{
	if (r->low > r->high)
		*r = (range){0, 1};
	double room = 0.06 * fmax(r->high - r->low, least);
	r->low -= room;
	r->high += room;
}

static void choose_ranges(row *w, int nsides)
{
	w->x = w->y = w->s = w->o = (range){HUGE_VAL, -HUGE_VAL};
	for (int side = 0; side < nsides; side++) {
		for (int i = 0; w->of[side] && i < w->of[side]->npoints; i++) {
			if (!is_drawn(&w->of[side]->points[i]))
				continue;
			place at = place_of(w, w->of[side], &w->of[side]->points[i]);
			take_in(&w->x, at.memory);
			take_in(&w->y, at.time);
			take_in(&w->s, at.saving);
			take_in(&w->o, at.overhead);
		}
	}
	make_room(&w->x, 0.02 * w->x.high);
	make_room(&w->y, 0.02 * w->y.high);
	make_room(&w->s, 2);
	make_room(&w->o, 2);
}

static void put_range(FILE *to, char axis, int number, const range *r)
{
	fprintf(to, "%cmin_%d = %.10g\n%cmax_%d = %.10g\n", axis, number, r->low, axis, number, r->high);
}

/* ---- curves -------------------------------------------------------------------------------------------------------------- */

static void put_points(FILE *to, const row *w, int number, int side)
{
	const ck_result *r = w->of[side];
	fprintf(to, "$points_%d_%d << END\n", number, side + 1);
	for (int i = 0; r && i < r->npoints; i++) {
		place at = place_of(w, r, &r->points[i]);
		if (is_drawn(&r->points[i]))
			fprintf(to, "%.10g %.10g %.10g %.10g %.10g %.10g %d\n", at.memory, at.time, at.low, at.high, at.saving,
				at.overhead, r->points[i].pareto);
	}
	/* A block of no line is an error, a point that is none is not. */
	fputs("NaN NaN NaN NaN NaN NaN 0\nEND\n", to);
}

static int by_memory(const void *a, const void *b)
{
	const ck_point *p = *(const ck_point *const *)a, *q = *(const ck_point *const *)b;
	return (p->live_peak > q->live_peak) - (p->live_peak < q->live_peak);
}

/* In the left panel a front reaches to the right edge, in the right one to the left: whoever has more memory than its last point needs
 * gets that point's time. */
static void put_fronts(FILE *to, const row *w, int number, int side)
{
	const ck_result *r = w->of[side];
	const ck_point **front = ck_alloc(r ? (size_t)r->npoints : 0, sizeof *front);
	int n = 0;
	for (int i = 0; r && i < r->npoints; i++)
		if (is_drawn(&r->points[i]) && r->points[i].pareto)
			front[n++] = &r->points[i];
	qsort(front, (size_t)n, sizeof *front, by_memory);
	fprintf(to, "$front_%d_%d << END\n", number, side + 1);
	for (int i = 0; i < n; i++)
		fprintf(to, "%.10g %.10g\n", place_of(w, r, front[i]).memory, place_of(w, r, front[i]).time);
	fprintf(to, "%.10g %.10g\nEND\n", n ? w->x.high : NAN, n ? place_of(w, r, front[n - 1]).time : NAN);
	fprintf(to, "$saved_%d_%d << END\n%.10g %.10g\n", number, side + 1, n ? w->s.low : NAN,
		n ? place_of(w, r, front[n - 1]).overhead : NAN);
	for (int i = n - 1; i >= 0; i--)
		fprintf(to, "%.10g %.10g\n", place_of(w, r, front[i]).saving, place_of(w, r, front[i]).overhead);
	fputs("END\n", to);
	free(front);
}

/* Names for the points of the baseline's front, where there is room. */
static void put_labels(FILE *to, const row *w, int number, int nsides)
{
	double across = AREA_WIDTH / (w->x.high - w->x.low), up = AREA_HEIGHT / (w->y.high - w->y.low);
	ck_mark *marks = NULL;
	int n = 0, capacity = 0;
	for (int side = 0; side < nsides; side++) {
		for (int i = 0; w->of[side] && i < w->of[side]->npoints; i++) {
			const ck_point *p = &w->of[side]->points[i];
			if (!is_drawn(p))
				continue;
			place at = place_of(w, w->of[side], p);
			marks = ck_grow(marks, &capacity, n + 1, sizeof *marks);
			marks[n++] = (ck_mark){.x = (at.memory - w->x.low) * across,
					       .y = (at.time - w->y.low) * up,
					       .low = (at.low - w->y.low) * up,
					       .high = (at.high - w->y.low) * up,
					       .text = side == 0 && p->pareto ? ck__plot_name(p) : NULL};
		}
	}
	ck_labels_place(marks, n, AREA_WIDTH, AREA_HEIGHT);
	fprintf(to, "$labels_%d << END\nNaN NaN none -\n", number);
	for (int i = 0; i < n; i++)
		if (marks[i].side)
			fprintf(to, "%.10g %.10g %s %c\n", w->x.low + (marks[i].x + marks[i].dx) / across,
				w->y.low + (marks[i].y + marks[i].dy) / up, marks[i].text, marks[i].side);
	fputs("END\n", to);
	free(marks);
}

static void put_text(FILE *to, const char *name, int number, const char *text)
{
	char *numbered = ck_text("%s_%d", name, number);
	ck__plot_quoted(to, numbered, text);
	free(numbered);
}

static void put_row(FILE *to, const ck_comparison *c, int first, int number)
{
	row w = row_of(c, first);
	char *words = ck_case_words(c->pairs[first].base);
	put_text(to, "heading", number, words);
	free(words);
	put_text(to, "memory_unit", number, w.memory_unit);
	put_text(to, "time_unit", number, w.time_unit);
	choose_ranges(&w, c->nsides);
	put_range(to, 'x', number, &w.x);
	put_range(to, 'y', number, &w.y);
	put_range(to, 's', number, &w.s);
	put_range(to, 'o', number, &w.o);
	for (int side = 0; side < c->nsides; side++) {
		put_points(to, &w, number, side);
		put_fronts(to, &w, number, side);
	}
	put_labels(to, &w, number, c->nsides);
}

ck_status ck_plot_comparison(const ck_comparison *c, const char *ending, char **image, size_t *bytes, ck_err *err)
{
	char *script = NULL;
	size_t length = 0;
	int rows = 0, head = HEAD + c->nsides * NAME_HEIGHT;
	FILE *to = open_memstream(&script, &length);
	if (!to)
		return ck_fail(err, CK_MISSING, "no memory for the plot's script");
	fprintf(to, "out = 'plot.%s'\n", ending);
	for (int s = 0; s < c->nsides; s++) {
		char *name = ck_text("%c: %s", 'A' + s, c->sides[s].name);
		put_text(to, "name", s + 1, name);
		free(name);
	}
	for (int i = 0; i < c->npairs && rows < ROWS_MOST; i = ck_comparison_case_end(c, i))
		put_row(to, c, i, ++rows);
	fprintf(to, "rows = %d\nsides = %d\nwidth = %d\nhead = %d\nheight = %d\n", rows, c->nsides, WIDTH, head,
		head + rows * ROW_HEIGHT);
	ck__plot_theme(to);
	fputs("out = ''\n", to); /* ours goes to the standard output */
	ck__plot_script(to, script_lines, sizeof script_lines / sizeof *script_lines);
	fclose(to);
	ck_status status = ck__gnuplot(script, length, ending, image, bytes, err);
	free(script);
	return status;
}
