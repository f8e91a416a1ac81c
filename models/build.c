/* From settings to a finished graph. */
#include "models/models.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kernels/alloc.h"

/* All tensors of a case together must stay under this many bytes: far more than any machine has, and few enough that no sum
 * of sizes downstream can overflow. */
static const size_t most_bytes = (size_t)1 << 50;

static void check_total(ck_graph *g, const char *model)
{
	size_t total = 0;
	for (int v = 0; v < g->nvalues && total <= most_bytes; v++)
		total += g->values[v].bytes; /* each under 2^51 */
	if (total > most_bytes)
		ck_graph_error(
		    g, "%s: these sizes make tensors of more than 1024 TiB in all; make the batch or the model smaller", model);
}

ck_usual ck_model_usual(const ck_model *m, const ck_value_info *v)
{
	ck_usual u = {.axis = {0, 1, 2, 3}};
	snprintf(u.name, sizeof u.name, "%s", v->name);
	if (m->usual)
		m->usual(v, &u);
	return u;
}

/* How many layers are to be frozen; none where the model has no such setting. */
static int64_t frozen_layers(const ck_settings *s)
{
	for (int i = 0; s->model->settings[i].name; i++)
		if (strcmp(s->model->settings[i].name, "freeze") == 0)
			return (int64_t)s->number[i];
	return 0;
}

/* Freezes the parameters of the op, or only tells whether it has any. */
static bool freeze_op(ck_graph *g, const ck_op_info *op, bool wanted)
{
	bool any = false;
	for (int i = 0; i < op->desc.nin; i++) {
		if (g->values[op->in[i]].kind != CK_PARAM)
			continue;
		any = true;
		if (wanted)
			ck_freeze(g, op->in[i]);
	}
	return any;
}

/* Freezes the parameters of the first layers that have any. One that is shared is frozen for all its uses. */
static void freeze(ck_graph *g, const char *model, int64_t wanted)
{
	int64_t layers = 0;
	for (int o = 0; o < g->nops; o++)
		layers += freeze_op(g, &g->ops[o], layers < wanted);
	if (wanted > 0 && wanted >= layers)
		ck_graph_error(g,
			       "%s: freeze=%" PRId64 " leaves none of the %" PRId64 " layers with parameters to train; set "
			       "freeze=%" PRId64 " or less",
			       model, wanted, layers, layers - 1);
}

ck_status ck_model_build(const ck_settings *s, ck_dtype real, ck_graph **graph, ck_err *err)
{
	ck_graph *g = ck_graph_new(real);
	ck_graph_mix(g, s->options.low);
	ck_value loss = s->model->build(s, g);
	check_total(g, s->model->name);
	freeze(g, s->model->name, frozen_layers(s));
	ck_status status = ck_graph_finish(g, loss, !s->options.no_fusion, err);
	if (status != CK_OK) {
		ck_graph_free(g);
		g = NULL;
	}
	*graph = g;
	return status;
}
