/* What the sides of a comparison are: names to tell them apart by, and what makes a comparison of their times doubtful. */
#define _GNU_SOURCE /* vasprintf */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/record/compare.h"
#include "harness/record/units.h"
#include "kernels/alloc.h"

char *ck__append(char *text, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	char *more;
	if (vasprintf(&more, format, args) < 0)
		abort();
	va_end(args);
	char *longer = ck_text("%s%s", text, more);
	free(text);
	free(more);
	return longer;
}

/* ---- names --------------------------------------------------------------------------------------------------------------- */

/* Without "(R)", "(TM)" and the words that every processor bears. */
static char *plain(const char *name)
{
	static const char *const empty[] = {"(R)", "(TM)", "(tm)", " Processor", " CPU"};
	char *text = ck_text("%s", name);
	for (size_t i = 0; i < sizeof empty / sizeof *empty; i++)
		for (char *at; (at = strstr(text, empty[i]));)
			memmove(at, at + strlen(empty[i]), strlen(at + strlen(empty[i])) + 1);
	return text;
}

/* "Intel Xeon", "Intel Xeon (ref)", "NVIDIA H200": what did the work. */
static char *worker(const ck_result *r)
{
	bool cpu = strcmp(r->device.name, "cpu") == 0, ref = strcmp(r->device.name, "ref") == 0;
	if (!cpu && !ref && r->device.facts.name[0])
		return ck_text("%s", r->device.facts.name);
	char *name = cpu || ref ? plain(r->machine.cpu)
				: ck_text("%.*s", (int)strcspn(r->device.description, ","), r->device.description);
	return ref ? ck__append(name, " (ref)") : name;
}

static bool is_taken(const ck_comparison *c, int side)
{
	for (int s = 0; s < c->nsides; s++)
		if (s != side && strcmp(c->sides[s].name, c->sides[side].name) == 0)
			return true;
	return false;
}

/* Adds to each name that another side has as well what the side says of itself. */
static void tell_apart(ck_comparison *c, char *(*more)(const ck_side *))
{
	bool taken[CK_SIDES_MOST];
	for (int s = 0; s < c->nsides; s++)
		taken[s] = is_taken(c, s);
	for (int s = 0; s < c->nsides; s++) {
		if (!taken[s])
			continue;
		char *text = more(&c->sides[s]);
		c->sides[s].name = ck__append(c->sides[s].name, ", %s", text);
		free(text);
	}
}

static char *its_threads(const ck_side *s)
{
	int n = s->records[0]->device.threads;
	return ck_text("%d thread%s", n, n == 1 ? "" : "s");
}

static char *its_compiler(const ck_side *s)
{
	return ck_text("%s %s", s->records[0]->tool.compiler, s->records[0]->tool.flags);
}

static char *its_source(const ck_side *s)
{
	return ck_text("%s", s->source);
}

/* What all sides say alike tells none apart. */
static bool differ(const ck_comparison *c, char *(*what)(const ck_side *))
{
	char *first = what(&c->sides[0]);
	bool any = false;
	for (int s = 1; s < c->nsides && !any; s++) {
		char *other = what(&c->sides[s]);
		any = strcmp(first, other) != 0;
		free(other);
	}
	free(first);
	return any;
}

void ck__compare_name(ck_comparison *c)
{
	static char *(*const more[])(const ck_side *) = {its_threads, its_compiler, its_source};
	for (int s = 0; s < c->nsides; s++) {
		char *name = worker(c->sides[s].records[0]);
		c->sides[s].name = ck__append(name, ", %s", c->sides[s].records[0]->tool.git);
	}
	for (size_t i = 0; i < sizeof more / sizeof *more; i++)
		if (differ(c, more[i]))
			tell_apart(c, more[i]);
}

/* ---- warnings ------------------------------------------------------------------------------------------------------------ */

/* Takes over the text; each is kept once. */
static void warn(ck_comparison *c, char *text)
{
	for (int i = 0; i < c->nwarnings; i++) {
		if (strcmp(c->warnings[i], text) == 0) {
			free(text);
			return;
		}
	}
	c->warnings = ck_grow(c->warnings, &c->warnings_capacity, c->nwarnings + 1, sizeof *c->warnings);
	c->warnings[c->nwarnings++] = text;
}

static char letter_of(int side)
{
	return (char)('A' + side);
}

/* ---- of one side */

static void warn_of_record(ck_comparison *c, int side, const ck_result *r)
{
	const char *git = r->tool.git;
	size_t n = strlen(git);
	char letter = letter_of(side);
	if (n > 6 && strcmp(git + n - 6, "-dirty") == 0)
		warn(c, ck_text("%c was built from changed files (%s): its revision does not tell what ran", letter, git));
	if (strcmp(git, "unknown") == 0)
		warn(c, ck_text("%c does not know its revision: it was not built in a git checkout", letter));
	if (strstr(r->tool.flags, "-fsanitize") || strstr(r->tool.flags, "-O0"))
		warn(c, ck_text("%c is no build to measure with (%s)", letter, r->tool.flags));
	if (r->device.threads > r->machine.cores)
		warn(c, ck_text("%c had %d threads take turns on %d core(s): its times are long and uneven", letter,
				r->device.threads, r->machine.cores));
	if (r->measuring.end && strcmp(r->measuring.end, ck_measure_end_names[CK_END_STOPPED]) == 0)
		warn(c, ck_text("%c was interrupted after %d rounds", letter, r->measuring.rounds));
}

/* A folder's records ought to be of one machine and one build. */
static void warn_of_mixture(ck_comparison *c, int side)
{
	const ck_side *s = &c->sides[side];
	const ck_result *first = s->records[0];
	for (int i = 1; i < s->n; i++) {
		const ck_result *r = s->records[i];
		const char *what = strcmp(r->machine.cpu, first->machine.cpu) != 0   ? "machines"
				   : strcmp(r->device.name, first->device.name) != 0 ? "devices"
				   : strcmp(r->tool.git, first->tool.git) != 0       ? "revisions"
				   : strcmp(r->tool.flags, first->tool.flags) != 0   ? "builds"
				   : r->device.threads != first->device.threads      ? "numbers of threads"
										     : NULL;
		if (what)
			warn(c, ck_text("%c holds records of several %s (%s and %s): its name is that of the first",
					letter_of(side), what, s->files[0], s->files[i]));
	}
}

/* ---- of a pair */

static void warn_of_threads(ck_comparison *c, const ck_pair *p)
{
	int a = p->base->device.threads, b = p->other->device.threads;
	if (a != b)
		warn(c, ck_text("%c ran with %d thread%s, A with %d", letter_of(p->side), b, b == 1 ? "" : "s", a));
}

/* The device's words end with its threads, which are told apart from that. */
static int words_without_threads(const ck_result *r)
{
	char *ending = ck_text(", %d thread%s", r->device.threads, r->device.threads == 1 ? "" : "s");
	size_t n = strlen(r->device.description), m = strlen(ending);
	bool ends = n >= m && strcmp(r->device.description + n - m, ending) == 0;
	free(ending);
	return (int)(ends ? n - m : n);
}

static void warn_of_build(ck_comparison *c, const ck_pair *p)
{
	const ck_result *a = p->base, *b = p->other;
	char letter = letter_of(p->side);
	int n = words_without_threads(a), m = words_without_threads(b);
	if (n != m || strncmp(a->device.description, b->device.description, (size_t)n) != 0)
		warn(c, ck_text("%c's device is \"%.*s\", A's is \"%.*s\"", letter, m, b->device.description, n,
				a->device.description));
	if (strcmp(a->tool.compiler, b->tool.compiler) != 0 || strcmp(a->tool.flags, b->tool.flags) != 0)
		warn(c, ck_text("%c was compiled with %s %s, A with %s %s", letter, b->tool.compiler, b->tool.flags,
				a->tool.compiler, a->tool.flags));
	if (strcmp(a->baseline, b->baseline) != 0)
		warn(c, ck_text("overhead is over plan %s in %c, over %s in A: do not compare the two", b->baseline, letter,
				a->baseline));
}

/* The same plan of the same graph holds the same bytes and does the same work, in the same build on the same kind of device. */
static void warn_of_work(ck_comparison *c, const ck_pair *p)
{
	int peaks = 0, works = 0;
	for (int i = 0; i < p->n; i++) {
		const ck_point *a = p->at[i].base, *b = p->at[i].other;
		peaks += a->live_peak != b->live_peak;
		works += a->executed_flops != b->executed_flops || a->recomputed_ops != b->recomputed_ops;
	}
	char letter = letter_of(p->side);
	if (peaks)
		warn(c,
		     ck_text(
			 "%s: the live peak of %d of %d plans is another in %c: another build, or a workspace that depends on "
			 "device and threads",
			 p->base->c.model, peaks, p->n, letter));
	if (works)
		warn(c, ck_text("%s: %d of %d plans do other work in %c: another build, whose planners decide otherwise",
				p->base->c.model, works, p->n, letter));
}

static void warn_of_samples(ck_comparison *c, const ck_pair *p)
{
	int few = 0;
	for (int i = 0; i < p->n; i++)
		few += isnan(p->at[i].time.low);
	if (few)
		warn(c,
		     ck_text("%s: too few samples in A or %c for an interval of %d of %d plans; seven on either side will do "
			     "(--rounds, --seconds)",
			     p->base->c.model, letter_of(p->side), few, p->n));
}

/* Further apart than two measurements of one machine at rest. */
static bool far_apart(double a, double b)
{
	return a > 0 && b > 0 && fmax(a, b) > 1.1 * fmin(a, b);
}

static void warn_of_ceiling(ck_comparison *c, const ck_pair *p, const char *what, const char *unit, double a, double b)
{
	char first[CK_UNIT_TEXT], second[CK_UNIT_TEXT];
	if (far_apart(a, b))
		warn(c, ck_text("%c's ceiling of %s is %s%s, A's %s%s: another machine, or one that was disturbed",
				letter_of(p->side), what, ck_count_text(b, second), unit, ck_count_text(a, first), unit));
}

static void warn_of_ceilings(ck_comparison *c, const ck_pair *p)
{
	const ck_ceilings *a = &p->base->ceilings.at, *b = &p->other->ceilings.at;
	for (int i = 0; i < CK_PRECISIONS; i++) {
		char *what = ck_text("products in %s", ck_precision_names[i]);
		warn_of_ceiling(c, p, what, "FLOP/s", a->matmul[i], b->matmul[i]);
		free(what);
	}
	warn_of_ceiling(c, p, "a copy", "B/s", a->copy, b->copy);
}

static void warn_of_fact(ck_comparison *c, const ck_pair *p, const char *what, const char *a, const char *b)
{
	if (a && b && *a && *b && strcmp(a, b) != 0)
		warn(c, ck_text("%c's %s is %s, A's is %s", letter_of(p->side), what, b, a));
}

static void warn_of_facts(ck_comparison *c, const ck_pair *p)
{
	const ck_device_facts *a = &p->base->device.facts, *b = &p->other->device.facts;
	warn_of_fact(c, p, "frequency governor", p->base->machine.processors.governor, p->other->machine.processors.governor);
	warn_of_fact(c, p, "driver", a->driver, b->driver);
	if (a->power_limit > 0 && b->power_limit > 0 && a->power_limit != b->power_limit)
		warn(c, ck_text("%c's power limit is %g W, A's is %g W", letter_of(p->side), b->power_limit, a->power_limit));
}

static void warn_of_throttling(ck_comparison *c, int side, const ck_result *r)
{
	int throttled = 0, samples = 0;
	for (int i = 0; i < r->npoints; i++) {
		throttled += ck_samples_throttled(&r->points[i].time);
		samples += r->points[i].time.n;
	}
	if (throttled)
		warn(c, ck_text("%c's device slowed itself down in %d of %d samples of %s, which count like all others",
				letter_of(side), throttled, samples, r->c.model));
}

/* The plan that came farthest from its baseline, as a part of the tensor's norm. */
static void warn_of_noise(ck_comparison *c, int side, const ck_result *r)
{
	const ck_point *worst = NULL;
	int n = 0;
	for (int i = 0; i < r->npoints; i++) {
		const ck_point *p = &r->points[i];
		bool within = p->checked && p->verdict == CK_WITHIN_NOISE;
		n += within;
		if (within && p->noise.tensor && (!worst || p->noise.worst > worst->noise.worst))
			worst = p;
	}
	if (n)
		warn(c, ck_text("%c was held against noise, not bits, in %d of %d plans of %s (--fast); the most: %s, by %.2g "
				"of its norm",
				letter_of(side), n, r->npoints, r->c.model, worst ? worst->noise.tensor : "-",
				worst ? worst->noise.worst : 0));
}

void ck__compare_warn(ck_comparison *c)
{
	for (int s = 0; s < c->nsides; s++) {
		for (int i = 0; i < c->sides[s].n; i++) {
			warn_of_record(c, s, c->sides[s].records[i]);
			warn_of_throttling(c, s, c->sides[s].records[i]);
			warn_of_noise(c, s, c->sides[s].records[i]);
		}
		warn_of_mixture(c, s);
	}
	for (int i = 0; i < c->npairs; i++) {
		const ck_pair *p = &c->pairs[i];
		warn_of_threads(c, p);
		warn_of_build(c, p);
		warn_of_facts(c, p);
		warn_of_ceilings(c, p);
		warn_of_work(c, p);
		warn_of_samples(c, p);
	}
}
