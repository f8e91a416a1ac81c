/* Loss over steps, a curve per plan: from a record to what plots/train.gp takes. */
#define _GNU_SOURCE /* open_memstream */
#include <math.h>
#include <stdlib.h>

#include "harness/record/plot.h"

static const char *const script_lines[] = {
#include "harness/record/train.gp.h"
};

/* Those with two steps or more, from 1 on: a step alone is no curve. */
static void put_curves(const ck_training *t, FILE *to)
{
	int n = 0;
	for (int i = 0; i < t->head->npoints; i++) {
		const ck_course *c = &t->curves[i];
		if (c->steps < 2)
			continue;
		char name[16];
		snprintf(name, sizeof name, "name_%d", ++n);
		ck__plot_quoted(to, name, t->head->points[i].plan);
		fprintf(to, "style_%d = %d\n$curve_%d << END\n", n, ck__plot_style(&t->head->points[i]), n);
		for (int k = 0; k < c->steps; k++)
			fprintf(to, "%d %.10g\n", k + 1, c->loss[k]);
		fputs("END\n", to);
	}
	fprintf(to, "curves = %d\n", n);
}

static int longest(const ck_training *t)
{
	int steps = 0;
	for (int i = 0; i < t->head->npoints; i++)
		steps = t->curves[i].steps > steps ? t->curves[i].steps : steps;
	return steps;
}

ck_status ck_plot_training(const ck_training *t, const char *ending, char **image, size_t *bytes, ck_err *err)
{
	if (longest(t) < 2)
		return ck_fail(err, CK_USAGE, "a curve takes two steps or more; set --steps");
	char *script = NULL;
	size_t length = 0;
	FILE *to = open_memstream(&script, &length);
	if (!to)
		return ck_fail(err, CK_MISSING, "no memory for the plot's script");
	ck__plot_heading(to, t->head, ending);
	fprintf(to, "optimizer = '%s, learning rate %g'\nsteps = %d\n", ck_optimizer_name(t->optimizer.kind), t->optimizer.lr,
		longest(t));
	put_curves(t, to);
	ck__plot_theme(to);
	fputs("out = ''\n", to); /* ours goes to the standard output */
	ck__plot_script(to, script_lines, sizeof script_lines / sizeof *script_lines);
	fclose(to);
	ck_status status = ck__gnuplot(script, length, ending, image, bytes, err);
	free(script);
	return status;
}
