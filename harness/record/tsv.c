/* One line per point, tab-separated, for spreadsheets and scripts; empty where a figure is not known. Bytes and seconds. */
#define _GNU_SOURCE /* open_memstream */
#include <math.h>
#include <stdlib.h>

#include "harness/record/result.h"
#include "kernels/alloc.h"

static void put(FILE *to, double number)
{
	if (isfinite(number))
		fprintf(to, "\t%.10g", number);
	else
		fputc('\t', to);
}

/* 0 means not known. */
static void put_size(FILE *to, size_t bytes)
{
	if (bytes)
		fprintf(to, "\t%zu", bytes);
	else
		fputc('\t', to);
}

static void put_point(FILE *to, const ck_result *r, const ck_point *p)
{
	fprintf(to, "%s", p->plan);
	put_size(to, (size_t)p->segments);
	fprintf(to, "\t%s\t%s", ck_point_status_names[p->status], p->checked ? ck_verdict_names[p->verdict] : "");
	put_size(to, p->predicted_peak);
	put_size(to, p->live_peak);
	put_size(to, p->arena);
	put_size(to, p->device_peak);
	put(to, ck_saving(r, p));
	put(to, p->time.n ? p->time.median : NAN);
	put(to, p->time.n ? p->time.ci_low : NAN);
	put(to, p->time.n ? p->time.ci_high : NAN);
	put(to, p->time.n ? p->time.min : NAN);
	put(to, p->time.n ? p->time.mad : NAN);
	fprintf(to, "\t%d", p->time.n);
	put(to, ck_overhead_time(r, p));
	put(to, ck_overhead_flops(r, p));
	put(to, p->executed_flops);
	fprintf(to, "\t%d\t%d", p->recomputed_ops, p->pareto);
	if (r->c.rng)
		fprintf(to, "\t%s\t%d\t%zu\t%d\t%d", r->c.rng, p->rng.saved_states, p->rng.state_bytes, p->rng.saves,
			p->rng.restores);
	else
		fputs("\t\t\t\t\t", to);
	const ck_utilisation u = ck_point_utilisation(r, p);
	put(to, u.model);
	put(to, u.hardware);
	put(to, u.model_datasheet);
	put(to, u.hardware_datasheet);
	fprintf(to, "\t%d\n", ck_samples_throttled(&p->time));
}

char *ck_result_tsv(const ck_result *r)
{
	char *text = NULL;
	size_t bytes;
	FILE *to = open_memstream(&text, &bytes);
	if (!to)
		return ck_text("%s", "");
	fputs(
	    "plan\tsegments\tstatus\tverdict\tpredicted_peak\tlive_peak\tarena\tdevice_peak\tsaving\t"
	    "time_median\ttime_ci_low\ttime_ci_high\ttime_min\ttime_mad\tsamples\t"
	    "overhead_time\toverhead_flops\texecuted_flops\trecomputed_ops\tpareto\t"
	    "rng\tsaved_states\tstate_bytes\tsaves\trestores\t"
	    "utilisation_model\tutilisation_hardware\tutilisation_model_datasheet\tutilisation_hardware_datasheet\tthrottled\n",
	    to);
	for (int i = 0; i < r->npoints; i++)
		put_point(to, r, &r->points[i]);
	fclose(to);
	return text;
}
