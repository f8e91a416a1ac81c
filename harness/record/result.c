#include "harness/record/result.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/record/shell.h"
#include "harness/record/version.h"
#include "kernels/alloc.h"

const char *const ck_point_status_names[] = {"ok", "parity-failed", "oom", "skipped", "error", NULL};

ck_result *ck_result_new(int argc, char *const *argv)
{
	ck_result *r = ck_alloc(1, sizeof *r);
	r->tool.version = ck_text("%s", CK_VERSION);
	r->tool.git = ck_text("%s", CK_GIT);
	r->tool.compiler = ck_text("%s", CK_COMPILER);
	r->tool.flags = ck_text("%s", CK_FLAGS);
	r->tool.argv = ck_shell_line(argc, (const char *const *)argv);
	ck_machine_read(&r->machine);
	r->baseline = ck_text("none");
	r->device.facts.ecc = -1;
	return r;
}

static void point_free(ck_point *p)
{
	free(p->plan);
	free(p->reason);
	for (int i = 0; i < p->nzero_gradients; i++)
		free(p->zero_gradients[i]);
	free(p->zero_gradients);
	free(p->noise.tensor);
	ck_samples_free(&p->time);
}

void ck_result_free(ck_result *r)
{
	if (!r)
		return;
	char *texts[] = {r->tool.version,       r->tool.git,     r->tool.compiler, r->tool.flags, r->tool.argv, r->device.name,
			 r->device.description, r->c.model,      r->c.data,        r->c.amp,      r->c.rng,     r->c.line,
			 r->baseline,           r->measuring.end};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		free(texts[i]);
	ck_machine_free(&r->machine);
	for (int i = 0; i < r->c.nsettings; i++) {
		free(r->c.settings[i].name);
		free(r->c.settings[i].word);
	}
	free(r->c.settings);
	for (int i = 0; i < r->npoints; i++)
		point_free(&r->points[i]);
	free(r->points);
	free(r);
}

ck_point *ck_result_add(ck_result *r, const char *plan)
{
	r->points = ck_grow(r->points, &r->capacity, r->npoints + 1, sizeof *r->points);
	ck_point *p = &r->points[r->npoints++];
	*p = (ck_point){.plan = ck_text("%s", plan)};
	return p;
}

ck_point *ck_result_add_plan(ck_result *r, const char *plan, int segments, const ck_program *program)
{
	ck_point *p = ck_result_add(r, plan);
	const ck_trace *t = &program->trace;
	p->segments = segments;
	p->predicted_peak = t->peak;
	p->arena = program->layout.arena;
	memcpy(p->by_category, t->peak_by_category, sizeof p->by_category);
	p->executed_flops = t->executed_flops;
	p->recomputed_ops = t->recomputed_ops;
	p->rng = program->rng;
	return p;
}

ck_fact *ck_result_add_setting(ck_result *r, const char *name)
{
	r->c.settings = ck_grow(r->c.settings, &r->c.capacity, r->c.nsettings + 1, sizeof *r->c.settings);
	ck_fact *f = &r->c.settings[r->c.nsettings++];
	*f = (ck_fact){.name = ck_text("%s", name)};
	return f;
}

void ck_point_add_zero_gradient(ck_point *p, const char *name)
{
	p->zero_gradients = ck_grow(p->zero_gradients, &p->zero_capacity, p->nzero_gradients + 1, sizeof *p->zero_gradients);
	p->zero_gradients[p->nzero_gradients++] = ck_text("%s", name);
}

void ck_point_fail(ck_point *p, ck_point_status status, char *reason)
{
	free(p->reason);
	p->status = status;
	p->reason = reason;
}

const ck_point *ck_result_find(const ck_result *r, const char *plan)
{
	for (int i = 0; i < r->npoints; i++)
		if (strcmp(r->points[i].plan, plan) == 0)
			return &r->points[i];
	return NULL;
}

static double ratio(double a, double b)
{
	return b > 0 ? a / b : NAN;
}

double ck_overhead_time(const ck_result *r, const ck_point *p)
{
	const ck_point *base = ck_result_find(r, r->baseline);
	return base && base->time.n && p->time.n ? ratio(p->time.median, base->time.median) : NAN;
}

double ck_overhead_flops(const ck_result *r, const ck_point *p)
{
	return ratio(p->executed_flops, r->c.model_flops);
}

static double peak_of(const ck_point *p)
{
	return (double)(p->live_peak ? p->live_peak : p->predicted_peak);
}

double ck_saving(const ck_result *r, const ck_point *p)
{
	const ck_point *base = ck_result_find(r, "none");
	return base ? 1 - ratio(peak_of(p), peak_of(base)) : NAN;
}

ck_utilisation ck_point_utilisation(const ck_result *r, const ck_point *p)
{
	ck_utilisation u = {NAN, NAN, NAN, NAN};
	if (!p->time.n || !r->ceilings.known)
		return u;
	const ck_datasheet *sheet = ck_datasheet_find(r->device.facts.name);
	double measured = r->ceilings.at.matmul[r->ceilings.precision],
	       promised = sheet ? sheet->matmul[r->ceilings.precision] : 0;
	double model = ratio(r->c.model_flops, p->time.median), hardware = ratio(p->executed_flops, p->time.median);
	u.model = ratio(model, measured);
	u.hardware = ratio(hardware, measured);
	u.model_datasheet = ratio(model, promised);
	u.hardware_datasheet = ratio(hardware, promised);
	return u;
}

static bool beats(const ck_point *a, const ck_point *b)
{
	bool no_worse = a->live_peak <= b->live_peak && a->time.median <= b->time.median;
	return no_worse && (a->live_peak < b->live_peak || a->time.median < b->time.median);
}

void ck_result_front(ck_result *r)
{
	for (int i = 0; i < r->npoints; i++) {
		ck_point *p = &r->points[i];
		p->pareto = p->status == CK_POINT_OK && p->time.n > 0;
		for (int j = 0; j < r->npoints && p->pareto; j++)
			p->pareto = r->points[j].status != CK_POINT_OK || r->points[j].time.n == 0 || !beats(&r->points[j], p);
	}
}
