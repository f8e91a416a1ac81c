#define _GNU_SOURCE /* open_memstream */
#include "harness/record/training.h"

#include <inttypes.h>
#include <stdlib.h>

#include "harness/record/columns.h"
#include "harness/record/units.h"
#include "kernels/alloc.h"

char *ck_training_tsv(const ck_training *t)
{
	char *text = NULL;
	size_t bytes;
	FILE *to = open_memstream(&text, &bytes);
	if (!to)
		return ck_text("%s", "");
	fprintf(to, "plan\tstep\tloss\taccuracy\tdigest%s\n", t->scaler ? "\tscale\tskipped" : "");
	for (int i = 0; i < t->head->npoints; i++) {
		const ck_course *c = &t->curves[i];
		for (int k = 0; k < c->steps; k++) {
			fprintf(to, "%s\t%d\t%.10g\t%.10g\t%016" PRIx64 "%016" PRIx64, t->head->points[i].plan, k + 1,
				c->loss[k], (double)c->right[k] / (double)c->rows, c->digest[k].hi, c->digest[k].lo);
			if (t->scaler)
				fprintf(to, "\t%.10g\t%d", c->scale[k], c->skipped[k]);
			fputc('\n', to);
		}
	}
	fclose(to);
	return text;
}

static void add_curve(ck_columns *columns, const ck_point *p, const ck_course *c)
{
	char peak[CK_UNIT_TEXT];
	ck_columns_add(columns, "%s", p->plan);
	ck_columns_add(columns, "%s", ck_bytes_text(p->live_peak ? p->live_peak : p->predicted_peak, peak));
	ck_columns_add(columns, "%d", c->steps);
	if (c->scaled)
		ck_columns_add(columns, "%d", c->skips);
	else
		ck_columns_add(columns, "%s", "");
	if (c->steps) {
		ck_columns_add(columns, "%.6g", c->loss[0]);
		ck_columns_add(columns, "%.6g", c->loss[c->steps - 1]);
		ck_columns_add(columns, "%.2f %%", 100 * c->accuracy);
		ck_columns_add(columns, "%016" PRIx64, c->digest[c->steps - 1].hi);
	} else {
		for (int i = 0; i < 4; i++)
			ck_columns_add(columns, "%s", "");
	}
	ck_columns_add(columns, "%s", p->status == CK_POINT_OK ? "every step bitwise" : ck_point_status_names[p->status]);
}

void ck_training_table(const ck_training *t, FILE *to)
{
	static const char *const heads[] = {"<plan",      ">live peak", ">steps",  ">skipped", ">first loss",
					    ">last loss", ">accuracy",  "<digest", "<parity"};
	ck_columns columns = ck_columns_new(sizeof heads / sizeof *heads, heads);
	for (int i = 0; i < t->head->npoints; i++)
		add_curve(&columns, &t->head->points[i], &t->curves[i]);
	ck_columns_print(&columns, "", to);
	ck_columns_free(&columns);
	for (int i = 0; i < t->head->npoints; i++)
		if (t->head->points[i].reason)
			fprintf(to, "%s: %s\n", t->head->points[i].plan, t->head->points[i].reason);
}
