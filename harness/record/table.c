/* The record as tables for people. */
#include <math.h>
#include <string.h>

#include "harness/record/columns.h"
#include "harness/record/result.h"
#include "harness/record/units.h"

static void add_bytes(ck_columns *c, size_t bytes)
{
	char text[CK_UNIT_TEXT];
	ck_columns_add(c, "%s", bytes ? ck_bytes_text(bytes, text) : "");
}

/* A ratio as the percentage that it lies above 1. */
static void add_excess(ck_columns *c, double ratio)
{
	if (isnan(ratio))
		ck_columns_add(c, "%s", "");
	else
		ck_columns_add(c, "%+.1f %%", fabs(ratio - 1) < 0.0005 ? 0.0 : 100 * (ratio - 1));
}

static void add_time(ck_columns *c, const ck_samples *s)
{
	char median[CK_UNIT_TEXT], low[CK_UNIT_TEXT], high[CK_UNIT_TEXT];
	if (!s->n) {
		ck_columns_add(c, "%s", "");
		ck_columns_add(c, "%s", "");
		return;
	}
	ck_columns_add(c, "%s", ck_seconds_text(s->median, median));
	ck_columns_add(c, "%s .. %s", ck_seconds_text(s->ci_low, low), ck_seconds_text(s->ci_high, high));
}

/* "bitwise" where all is well, else what became of the point. */
static const char *standing(const ck_point *p)
{
	return p->status == CK_POINT_OK && p->checked ? ck_verdict_names[p->verdict] : ck_point_status_names[p->status];
}

/* Why the points that are not ok are not; the same reason for several is told once. */
static void print_reasons(const ck_result *r, FILE *to)
{
	for (int i = 0; i < r->npoints; i++) {
		const char *reason = r->points[i].reason;
		if (!reason || (i > 0 && r->points[i - 1].reason && strcmp(r->points[i - 1].reason, reason) == 0))
			continue;
		int last = i;
		while (last + 1 < r->npoints && r->points[last + 1].reason && strcmp(r->points[last + 1].reason, reason) == 0)
			last++;
		fprintf(to, "%s%s%s: %s\n", r->points[i].plan, last > i ? " to " : "", last > i ? r->points[last].plan : "",
			reason);
	}
}

void ck_result_table(const ck_result *r, FILE *to)
{
	static const char *const heads[] = {"<",         "<plan",         ">segments",  ">live peak",     ">saving",
					    ">arena",    ">process peak", ">step time", ">95 % interval", ">overhead",
					    ">in FLOPs", "<  parity"};
	ck_columns c = ck_columns_new(sizeof heads / sizeof *heads, heads);
	bool any_front = false;
	for (int i = 0; i < r->npoints; i++) {
		const ck_point *p = &r->points[i];
		any_front |= p->pareto;
		ck_columns_add(&c, "%s", p->pareto ? "*" : "");
		ck_columns_add(&c, "%s", p->plan);
		ck_columns_add(&c, "%.0d", p->segments); /* 0 prints nothing */
		add_bytes(&c, p->live_peak ? p->live_peak : p->predicted_peak);
		ck_columns_add(&c, "%.1f %%", 100 * ck_saving(r, p));
		add_bytes(&c, p->arena);
		add_bytes(&c, p->device_peak);
		add_time(&c, &p->time);
		add_excess(&c, ck_overhead_time(r, p));
		add_excess(&c, ck_overhead_flops(r, p));
		bool known = p->checked || p->status != CK_POINT_OK;
		ck_columns_add(&c, "%s%s", known ? "  " : "", known ? standing(p) : "");
	}
	ck_columns_print(&c, "", to);
	ck_columns_free(&c);
	if (any_front)
		fputs("* on the front: no other plan is at least as good in both peak and time and better in one\n", to);
	if (strcmp(r->baseline, "none") != 0)
		fprintf(to, "overhead in time is over plan %s, since none was not run\n", r->baseline);
	print_reasons(r, to);
}

static void add_loss(ck_columns *c, const ck_point *p)
{
	if (p->checked)
		ck_columns_add(c, "%.9g", p->loss);
	else
		ck_columns_add(c, "%s", "");
}

static void print_scale(const ck_point *p, FILE *to)
{
	fprintf(to, "loss scale %g", p->scale);
	if (p->skipped)
		fprintf(to, ", after %d step%s that overflowed and whose bits were compared as well", p->skipped,
			p->skipped == 1 ? "" : "s");
	fputc('\n', to);
}

void ck_result_parity(const ck_result *r, FILE *to)
{
	static const char *const heads[] = {"<plan",  ">value of loss", "<loss",   "<gradients", "<input",
					    "<state", "<random",        "<scaler", "<verdict"};
	_Static_assert(CK_DIGEST_KINDS == sizeof heads / sizeof *heads - 3, "one column per kind of digest");
	ck_columns c = ck_columns_new(sizeof heads / sizeof *heads, heads);
	const ck_point *base = ck_result_find(r, r->baseline);
	for (int i = 0; i < r->npoints; i++) {
		const ck_point *p = &r->points[i];
		ck_columns_add(&c, "%s", p->plan);
		add_loss(&c, p);
		for (int k = 0; k < CK_DIGEST_KINDS; k++) {
			bool both = base && p->has_digest[k] && base->has_digest[k];
			ck_columns_add(&c, "%s",
				       !both                                                          ? ""
				       : memcmp(&p->digest[k], &base->digest[k], sizeof p->digest[k]) ? "DIFFERS"
												      : "same");
		}
		ck_columns_add(&c, "%s", standing(p));
	}
	ck_columns_print(&c, "", to);
	ck_columns_free(&c);
	if (base && base->scaled)
		print_scale(base, to);
	print_reasons(r, to);
}
