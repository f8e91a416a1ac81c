#include "suite/compare/records.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/alloc.h"

void set_text(char **field, const char *text)
{
	free(*field);
	*field = ck_text("%s", text);
}

ck_result *made_record(void)
{
	char *argv[] = {"ckbench", "sweep", "mlp"};
	ck_result *r = ck_result_new(3, argv);
	set_text(&r->tool.git, "0123456789ab");
	set_text(&r->tool.compiler, "gcc 12.2.0");
	set_text(&r->tool.flags, "-O3");
	set_text(&r->machine.cpu, "Intel(R) Xeon(R) Processor");
	r->machine.cores = 4;
	r->device.name = ck_text("cpu");
	r->device.description = ck_text("oneDNN 2.6.3, 2 threads");
	r->device.threads = 2;
	r->c.model = ck_text("mlp");
	r->c.data = ck_text("random");
	r->c.amp = ck_text("off");
	r->c.rng = ck_text("counter");
	r->c.line = ck_text("ckbench sweep mlp:layers=3,batch=8 --device cpu --threads 2 --seed 1");
	r->c.seed = 1;
	r->c.graph = 77;
	r->c.model_flops = 100;
	ck_result_add_setting(r, "layers")->number = 3;
	ck_result_add_setting(r, "batch")->number = 8;
	r->measuring.rounds = FEW;
	r->measuring.end = ck_text("narrow");
	return r;
}

ck_point *made_point(ck_result *r, const char *plan, const double *seconds, int n)
{
	ck_point *p = ck_result_add(r, plan);
	p->checked = true;
	p->verdict = CK_BITWISE;
	p->loss = 1;
	p->live_peak = p->predicted_peak = p->arena = r->npoints == 1 ? 1000 : 500;
	p->device_peak = 2000;
	p->by_category[CK_MEM_ACTIVATIONS] = p->live_peak;
	p->executed_flops = 100;
	if (n) {
		p->time = (ck_samples){.at = ck_alloc((size_t)n, sizeof(double)), .n = n};
		memcpy(p->time.at, seconds, (size_t)n * sizeof(double));
		ck_samples_summarise(&p->time);
	}
	return p;
}

ck_point *made_steady(ck_result *r, const char *plan, double seconds)
{
	double at[FEW];
	for (int i = 0; i < FEW; i++)
		at[i] = seconds;
	return made_point(r, plan, at, FEW);
}

ck_result *made_sealed(ck_result *r)
{
	ck_err err = {""};
	ck_result *back;
	char *text = ck_result_json(r);
	cr_assert(ck_result_read(text, strlen(text), "made up", &back, &err) == CK_OK, "%s", err.text);
	free(text);
	ck_result_free(r);
	return back;
}

void add_side(ck_comparison *c, ck_result *r)
{
	ck_err err = {""};
	char *file = ck_text("%c.json", 'a' + c->nsides);
	cr_assert(ck_comparison_add(c, ck_comparison_add_side(c, file), file, made_sealed(r), &err) == CK_OK, "%s", err.text);
	free(file);
}

void compare_made(ck_comparison *c, ck_result *a, ck_result *b)
{
	ck_err err = {""};
	ck_comparison_open(c, 0, NULL);
	/* Records made in the same moment of the same figures would be the same record. */
	a->measuring.seconds = 1;
	b->measuring.seconds = 2;
	add_side(c, a);
	add_side(c, b);
	cr_assert(ck_comparison_make(c, &err) == CK_OK, "%s", err.text);
}
