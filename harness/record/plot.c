/* Memory against time: from a record to what plots/sweep.gp takes. Everything is worked out here (units, ranges, front, places
 * of names); the script only draws. */
#define _GNU_SOURCE /* open_memstream */
#include "harness/record/plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/plan/planner.h"
#include "harness/record/labels.h"
#include "kernels/alloc.h"

/* The scripts, line by line; made from plots/ by the build. */
static const char *const theme[] = {
#include "harness/record/theme.gp.h"
};
static const char *const sweep[] = {
#include "harness/record/sweep.gp.h"
};

/* The plot's area in the theme's SVG, for placing names: pixels, and those of a "character" in gnuplot's offsets. */
static const double AREA_WIDTH = 620, AREA_HEIGHT = 440, CHARACTER_WIDTH = 8.5, CHARACTER_HEIGHT = 17;

typedef struct figure {
	const ck_result *r;
	const ck_point **at; /* those with a time, the front's first */
	int n;
	double memory_unit, time_unit; /* bytes, seconds */
	const char *memory_name, *time_name;
	double xmin, xmax, ymin, ymax; /* in these units */
} figure;

static double memory_of(const figure *f, const ck_point *p)
{
	return (double)p->live_peak / f->memory_unit;
}

/* Those of the front come first, since names are given while there is room. */
static void collect(figure *f)
{
	f->at = ck_alloc((size_t)f->r->npoints, sizeof *f->at);
	for (int front = 1; front >= 0; front--)
		for (int i = 0; i < f->r->npoints; i++)
			if (f->r->points[i].time.n && f->r->points[i].pareto == (front == 1))
				f->at[f->n++] = &f->r->points[i];
}

double ck__plot_memory_unit(double largest, const char **name)
{
	double unit = largest >= 10 * 0x1p30 ? 0x1p30 : largest >= 10 * 0x1p20 ? 0x1p20 : 0x1p10;
	*name = unit == 0x1p30 ? "GiB" : unit == 0x1p20 ? "MiB" : "KiB";
	return unit;
}

double ck__plot_time_unit(double longest, const char **name)
{
	*name = longest >= 10 ? "s" : "ms";
	return longest >= 10 ? 1 : 1e-3;
}

static void choose_units(figure *f)
{
	size_t largest = 0;
	double longest = 0;
	for (int i = 0; i < f->n; i++) {
		largest = f->at[i]->live_peak > largest ? f->at[i]->live_peak : largest;
		longest = fmax(longest, f->at[i]->time.median);
	}
	f->memory_unit = ck__plot_memory_unit((double)largest, &f->memory_name);
	f->time_unit = ck__plot_time_unit(longest, &f->time_name);
}

/* Room for all points and, as far as that does not squash them, for the bars of their intervals. */
static void choose_ranges(figure *f)
{
	double low = HUGE_VAL, high = -HUGE_VAL;
	f->xmin = f->ymin = HUGE_VAL;
	f->xmax = f->ymax = -HUGE_VAL;
	for (int i = 0; i < f->n; i++) {
		const ck_samples *t = &f->at[i]->time;
		f->xmin = fmin(f->xmin, memory_of(f, f->at[i]));
		f->xmax = fmax(f->xmax, memory_of(f, f->at[i]));
		f->ymin = fmin(f->ymin, t->median / f->time_unit);
		f->ymax = fmax(f->ymax, t->median / f->time_unit);
		low = fmin(low, t->ci_low / f->time_unit);
		high = fmax(high, t->ci_high / f->time_unit);
	}
	double across = fmax(f->xmax - f->xmin, 0.02 * f->xmax), up = fmax(f->ymax - f->ymin, 0.02 * f->ymax);
	f->xmin -= 0.06 * across, f->xmax += 0.06 * across;
	f->ymin = fmax(low, f->ymin - up / 3) - 0.08 * up;
	f->ymax = fmin(high, f->ymax + up / 3) + 0.08 * up;
}

/* ---- what the script takes ----------------------------------------------------------------------------------------------- */

/* Text in gnuplot's single quotes; `enhanced` text gives meaning to a few characters, which a backslash takes from them. */
void ck__plot_quoted(FILE *to, const char *name, const char *text)
{
	fprintf(to, "%s = '", name);
	for (; *text; text++) {
		if (strchr("_^{}@&~\\", *text))
			fputc('\\', to);
		fputs(*text == '\'' ? "''" : (char[]){*text, 0}, to);
	}
	fputs("'\n", to);
}

/* "layers 8, width 1024, …" */
static char *settings_in_words(const ck_result *r)
{
	char *words = ck_text("%s", "");
	for (int i = 0; i < r->c.nsettings; i++) {
		const ck_fact *s = &r->c.settings[i];
		char *longer = s->word ? ck_text("%s%s%s %s", words, i ? ", " : "", s->name, s->word)
				       : ck_text("%s%s%s %.10g", words, i ? ", " : "", s->name, s->number);
		free(words);
		words = longer;
	}
	return words;
}

void ck__plot_heading(FILE *to, const ck_result *r, const char *ending)
{
	char *settings = settings_in_words(r);
	bool mixed = strcmp(r->c.amp, "off") != 0;
	char *heading = ck_text("%s on %s, %s%s%d thread%s", r->c.model, r->device.name, mixed ? r->c.amp : "",
				mixed ? ", " : "", r->device.threads, r->device.threads == 1 ? "" : "s");
	fprintf(to, "out = 'plot.%s'\n", ending);
	ck__plot_quoted(to, "heading", heading);
	ck__plot_quoted(to, "subheading", settings);
	free(heading);
	free(settings);
}

static void put_variables(const figure *f, FILE *to, const char *ending)
{
	const ck_result *r = f->r;
	const ck_point *base = ck_result_find(r, r->baseline);
	ck__plot_heading(to, r, ending);
	ck__plot_quoted(to, "baseline", r->baseline);
	fprintf(to, "memory_unit = '%s'\ntime_unit = '%s'\n", f->memory_name, f->time_name);
	fprintf(to, "xmin = %.10g\nxmax = %.10g\nymin = %.10g\nymax = %.10g\n", f->xmin, f->xmax, f->ymin, f->ymax);
	fprintf(to, "base = %.10g\n", base && base->time.n ? base->time.median / f->time_unit : 0.0);
}

int ck__plot_style(const ck_point *p)
{
	size_t length = strcspn(p->plan, ":");
	int i = 0;
	while (ck_planners[i] &&
	       (strlen(ck_planners[i]->name) != length || strncmp(ck_planners[i]->name, p->plan, length) != 0))
		i++;
	return i + 1;
}

static void put_styles(const figure *f, FILE *to)
{
	char *styles = ck_text("%s", ""), *names = ck_text("%s", "");
	for (int style = 1, known = 1; known; style++) {
		known = ck_planners[style - 1] != NULL;
		bool used = false;
		for (int i = 0; i < f->n; i++)
			used |= ck__plot_style(f->at[i]) == style;
		if (!used)
			continue;
		char *more = ck_text("%s %d", styles, style);
		char *named = ck_text("%s %s", names, known ? ck_planners[style - 1]->name : "schedule");
		free(styles);
		free(names);
		styles = more;
		names = named;
	}
	fprintf(to, "styles = '%s'\nnames = '%s'\n", styles, names);
	free(styles);
	free(names);
}

static void put_points(const figure *f, FILE *to)
{
	fputs("$points << END\n", to);
	for (int i = 0; i < f->n; i++) {
		const ck_samples *t = &f->at[i]->time;
		fprintf(to, "%d %.10g %.10g %.10g %.10g %d\n", ck__plot_style(f->at[i]), memory_of(f, f->at[i]),
			t->median / f->time_unit, t->ci_low / f->time_unit, t->ci_high / f->time_unit, f->at[i]->pareto);
	}
	fputs("END\n", to);
}

static int by_memory(const void *a, const void *b)
{
	const ck_point *p = *(const ck_point *const *)a, *q = *(const ck_point *const *)b;
	return (p->live_peak > q->live_peak) - (p->live_peak < q->live_peak);
}

/* The front reaches to the right edge: whoever has more memory than its last point needs gets that point's time. */
static void put_front(const figure *f, FILE *to)
{
	const ck_point **front = ck_alloc((size_t)f->n, sizeof *front);
	int n = 0;
	for (int i = 0; i < f->n; i++)
		if (f->at[i]->pareto)
			front[n++] = f->at[i];
	qsort(front, (size_t)n, sizeof *front, by_memory);
	fprintf(to, "has_front = %d\n$front << END\n", n > 1);
	for (int i = 0; i < n; i++)
		fprintf(to, "%.10g %.10g\n", memory_of(f, front[i]), front[i]->time.median / f->time_unit);
	fprintf(to, "%.10g %.10g\nEND\n", f->xmax, front[n - 1]->time.median / f->time_unit);
	free(front);
}

const char *ck__plot_name(const ck_point *p)
{
	const char *colon = strchr(p->plan, ':');
	return strncmp(p->plan, "schedule:", 9) == 0 ? NULL : colon ? colon + 1 : p->plan;
}

/* Where there are many points, those off the front go without a name. */
static bool is_named(const figure *f, const ck_point *p)
{
	return p->pareto || f->n <= 16 || strcmp(p->plan, f->r->baseline) == 0;
}

static void put_labels(const figure *f, FILE *to)
{
	double across = AREA_WIDTH / (f->xmax - f->xmin), up = AREA_HEIGHT / (f->ymax - f->ymin);
	ck_mark *marks = ck_alloc((size_t)f->n, sizeof *marks);
	for (int i = 0; i < f->n; i++) {
		const ck_point *p = f->at[i];
		marks[i] = (ck_mark){.x = (memory_of(f, p) - f->xmin) * across,
				     .y = (p->time.median / f->time_unit - f->ymin) * up,
				     .low = (p->time.ci_low / f->time_unit - f->ymin) * up,
				     .high = (p->time.ci_high / f->time_unit - f->ymin) * up,
				     .text = is_named(f, p) ? ck__plot_name(p) : NULL};
	}
	ck_labels_place(marks, f->n, AREA_WIDTH, AREA_HEIGHT);
	for (int i = 0; i < f->n; i++) {
		const ck_mark *m = &marks[i];
		if (m->side)
			fprintf(to,
				"set label '%s' at first %.10g,%.10g %s offset character %.3g,%.3g front textcolor rgb ink "
				"font ',11'\n",
				m->text, memory_of(f, f->at[i]), f->at[i]->time.median / f->time_unit,
				m->side == 'l'   ? "left"
				: m->side == 'r' ? "right"
						 : "center",
				m->dx / CHARACTER_WIDTH, m->dy / CHARACTER_HEIGHT);
	}
	free(marks);
}

void ck__plot_script(FILE *to, const char *const *lines, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fputs(lines[i], to);
}

void ck__plot_theme(FILE *to)
{
	ck__plot_script(to, theme, sizeof theme / sizeof *theme);
}

ck_status ck_plot_sweep(const ck_result *r, const char *ending, char **image, size_t *bytes, ck_err *err)
{
	figure f = {.r = r};
	collect(&f);
	if (f.n == 0) {
		free(f.at);
		return ck_fail(err, CK_USAGE, "no plan was timed, so there is nothing to plot");
	}
	char *script = NULL;
	size_t length = 0;
	FILE *to = open_memstream(&script, &length);
	if (!to) {
		free(f.at);
		return ck_fail(err, CK_MISSING, "no memory for the plot's script");
	}
	choose_units(&f);
	choose_ranges(&f);
	put_variables(&f, to, ending);
	put_styles(&f, to);
	put_points(&f, to);
	put_front(&f, to);
	ck__plot_theme(to);
	put_labels(&f, to);
	/* The script's `set output out` serves those who run it by hand; ours goes to the standard output. */
	fputs("out = ''\n", to);
	ck__plot_script(to, sweep, sizeof sweep / sizeof *sweep);
	fclose(to);
	ck_status status = ck__gnuplot(script, length, ending, image, bytes, err);
	free(script);
	free(f.at);
	return status;
}
