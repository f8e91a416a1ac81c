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
	char text[CK_UNIT_TEXT];
	ck_columns_add(c, "%s", s->n ? ck_seconds_text(s->median, text) : "");
	ck_columns_add(c, "%s", s->n ? ck_seconds_range(s->ci_low, s->ci_high, s->median, text) : "");
}

/* "bitwise" where all is well, else what became of the point. */
static const char *standing(const ck_point *p)
{
	bool verdict_says_it = p->checked && (p->status == CK_POINT_OK || p->verdict == CK_PROVES_NOTHING);
	return verdict_says_it ? ck_verdict_names[p->verdict] : ck_point_status_names[p->status];
}

/* Told of the baseline: where bits are equal, the others' are zero, too. */
static void print_zero_gradients(const ck_result *r, FILE *to)
{
	enum { MOST = 6 };
	const ck_point *p = ck_result_find(r, r->baseline);
	int n = p && ck_verdict_passed(p->verdict) ? p->nzero_gradients : 0;
	if (n == 0)
		return;
	fprintf(to, "warning: %d gradient%s zero in every element, so that %s equality proves nothing: ", n,
		n == 1 ? " is" : "s are", n == 1 ? "its" : "their");
	for (int i = 0; i < n && i < MOST; i++)
		fprintf(to, "%s%s", i > 0 ? ", " : "", p->zero_gradients[i]);
	if (n > MOST)
		fprintf(to, " and %d more", n - MOST);
	fputs("; dead ReLUs or dropout may be why, another seed or a larger width may help\n", to);
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

static bool is_stateful(const ck_result *r)
{
	return r->c.rng && strcmp(r->c.rng, ck_rng_names[CK_RNG_STATEFUL]) == 0;
}

/* What a plan does with a running generator; two empty cells where there is none. */
static void add_random(ck_columns *c, const ck_result *r, const ck_point *p)
{
	char bytes[CK_UNIT_TEXT];
	if (is_stateful(r)) {
		ck_columns_add(c, "%d, %s", p->rng.saved_states, ck_bytes_text(p->rng.state_bytes, bytes));
		ck_columns_add(c, "%d", p->rng.restores);
	} else {
		ck_columns_add(c, "%s", "");
		ck_columns_add(c, "%s", "");
	}
}

static void tell_random(const ck_result *r, FILE *to)
{
	if (is_stateful(r))
		fprintf(
		    to,
		    "rng states: saved by first forwards for recomputes, %zu bytes each; restores: how often a step sets the "
		    "generator, to these or back\n",
		    sizeof(ck_rng_state));
}

static void print_forward_only(const ck_result *r, FILE *to)
{
	char peak[CK_UNIT_TEXT];
	if (!r->forward_only.known)
		return;
	fprintf(to, "forward only: live peak %s, %d ops recomputed, loss and state ",
		ck_bytes_text(r->forward_only.live_peak, peak), r->forward_only.recomputed_ops);
	if (ck_verdict_passed(r->forward_only.verdict))
		fprintf(to, "%sas after the forward of plan %s\n", r->forward_only.verdict == CK_BITWISE ? "" : "within noise ",
			r->baseline);
	else
		fprintf(to, "DIFFER from those after the forward of plan %s\n", r->baseline);
}

/* What a comparison that was not of bits was one with. */
static void print_noise(const ck_result *r, FILE *to)
{
	const ck_point *worst = NULL;
	int runs = 0;
	for (int i = 0; i < r->npoints; i++) {
		const ck_point *p = &r->points[i];
		runs = p->noise.runs ? p->noise.runs : runs;
		if (p->verdict != CK_WITHIN_NOISE || !p->checked)
			continue;
		if (!worst || p->noise.worst / p->noise.allowed > worst->noise.worst / worst->noise.allowed)
			worst = p;
	}
	if (!runs)
		return;
	fprintf(to,
		"noise: what %d runs of plan %s differ by; within it: no tensor differs by more than %d times that and %d "
		"roundings\n",
		runs, r->baseline, CK_NOISE_FLOORS, CK_NOISE_ROUNDINGS);
	if (worst)
		fprintf(to, "closest to that: %s of plan %s, %.3g in norm %s; the runs %.3g, allowed %.3g\n",
			worst->noise.tensor, worst->plan, worst->noise.worst, ck_norm_names[worst->noise.norm],
			worst->noise.floor, worst->noise.allowed);
}

/* Of the measured ceiling. */
static void add_utilisation(ck_columns *c, const ck_result *r, const ck_point *p)
{
	const ck_utilisation u = ck_point_utilisation(r, p);
	if (isnan(u.model))
		ck_columns_add(c, "%s", "");
	else
		ck_columns_add(c, "%.1f/%.1f", 100 * u.model, 100 * u.hardware);
}

/* What MFU and HFU are shares of; and, where there is a data sheet, what plan none makes of it. */
static void tell_ceilings(const ck_result *r, FILE *to)
{
	char flops[CK_UNIT_TEXT], bytes[CK_UNIT_TEXT];
	const char *precision = ck_precision_names[r->ceilings.precision];
	const ck_datasheet *sheet = ck_datasheet_find(r->device.facts.name);
	double measured = r->ceilings.at.matmul[r->ceilings.precision];
	if (!r->ceilings.known || !(measured > 0))
		return;
	fprintf(to, "MFU, HFU: model and executed FLOPs, of the %sFLOP/s at which products in %s were measured",
		ck_count_text(measured, flops), precision);
	if (r->ceilings.at.copy > 0)
		fprintf(to, "; a copy: %sB/s", ck_count_text(r->ceilings.at.copy, bytes));
	fputc('\n', to);
	const ck_point *base = ck_result_find(r, r->baseline);
	double share = base ? ck_point_utilisation(r, base).model_datasheet : NAN;
	if (!isnan(share))
		fprintf(to, "of the %sFLOP/s that the data sheet promises, plan %s makes %.1f %%\n",
			ck_count_text(sheet->matmul[r->ceilings.precision], flops), r->baseline, 100 * share);
}

/* How many samples were throttled, plan by plan. */
static void tell_throttling(const ck_result *r, FILE *to)
{
	int told = 0;
	for (int i = 0; i < r->npoints; i++) {
		int throttled = ck_samples_throttled(&r->points[i].time);
		if (!throttled)
			continue;
		fprintf(to, "%s%d of %d samples of %s", told++ ? ", " : "warning: the device slowed itself down in ", throttled,
			r->points[i].time.n, r->points[i].plan);
	}
	if (told)
		fputs("; they count in the medians like all others\n", to);
}

void ck_result_table(const ck_result *r, FILE *to)
{
	static const char *const heads[] = {"<",         "<plan",      ">segs",       ">live peak",     ">saving",
					    ">arena",    ">process",   ">step",       ">95 % interval", ">overhead",
					    ">in FLOPs", ">MFU/HFU %", ">rng states", ">restores",      "<parity"};
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
		add_utilisation(&c, r, p);
		add_random(&c, r, p);
		bool known = p->checked || p->status != CK_POINT_OK;
		ck_columns_add(&c, "%s", known ? standing(p) : "");
	}
	ck_columns_print(&c, "", to);
	ck_columns_free(&c);
	if (any_front)
		fputs("* on the front: no other plan is at least as good in both peak and time and better in one\n", to);
	if (strcmp(r->baseline, "none") != 0)
		fprintf(to, "overhead in time is over plan %s, since none was not run\n", r->baseline);
	tell_ceilings(r, to);
	tell_throttling(r, to);
	print_zero_gradients(r, to);
	tell_random(r, to);
	print_forward_only(r, to);
	print_noise(r, to);
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
	static const char *const heads[] = {"<plan",    ">value of loss", "<loss",   "<gradients",  "<input",    "<state",
					    "<forward", "<random",        "<scaler", ">rng states", ">restores", "<verdict"};
	_Static_assert(CK_DIGEST_KINDS == sizeof heads / sizeof *heads - 5, "one column per kind of digest");
	ck_columns c = ck_columns_new(sizeof heads / sizeof *heads, heads);
	const ck_point *base = ck_result_find(r, r->baseline);
	for (int i = 0; i < r->npoints; i++) {
		const ck_point *p = &r->points[i];
		ck_columns_add(&c, "%s", p->plan);
		add_loss(&c, p);
		for (int k = 0; k < CK_DIGEST_KINDS; k++) {
			bool both = base && p->has_digest[k] && base->has_digest[k];
			const char *other = p->verdict == CK_WITHIN_NOISE ? "noise" : "DIFFERS";
			ck_columns_add(&c, "%s",
				       !both                                                          ? ""
				       : memcmp(&p->digest[k], &base->digest[k], sizeof p->digest[k]) ? other
												      : "same");
		}
		add_random(&c, r, p);
		ck_columns_add(&c, "%s", standing(p));
	}
	ck_columns_print(&c, "", to);
	ck_columns_free(&c);
	print_zero_gradients(r, to);
	tell_random(r, to);
	print_forward_only(r, to);
	print_noise(r, to);
	if (base && base->scaled)
		print_scale(base, to);
	print_reasons(r, to);
}
