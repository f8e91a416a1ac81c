#include "harness/run/scaler.h"

#include <math.h>
#include <stdlib.h>

#include "harness/run/program.h"
#include "kernels/alloc.h"

ck_scaler_options ck_scaler_preset(void)
{
	return (ck_scaler_options){.scale = 65536, .growth = 2, .backoff = 0.5, .interval = 2000};
}

ck_scaler ck_scaler_new(const ck_scaler_options *o)
{
	ck_scaler s = {.on = o != NULL, .now = {.scale = 1}, .inverse = 1};
	if (o) {
		s.o = *o;
		s.now.scale = (float)o->scale;
	}
	return s;
}

bool ck__scaler_multiply(const ck_scaler *s, const ck_program *p, ck_memory *m)
{
	const ck_session *session = p->session;
	const ck_graph *g = session->graph;
	ck_gradient *all = ck_alloc((size_t)g->nvalues, sizeof *all);
	int n = 0;
	for (int v = 0; v < g->nvalues; v++) {
		void *gradient = ck_program_gradient(p, m, v);
		if (gradient)
			all[n++] = (ck_gradient){ck_shape_count(g->values[v].shape), gradient};
	}
	bool overflow = session->backend->unscale(session->device, s->inverse, n, all);
	free(all);
	return overflow;
}

static void tell(const ck_hook *hook, ck_scaler_moment at, ck_scaler *s)
{
	if (hook && hook->scaler)
		hook->scaler(hook->user, at, s);
}

void ck_scaler_unscale(ck_scaler *s, const ck_program *p, ck_memory *m, const ck_hook *hook)
{
	if (!s->on)
		return;
	s->inverse = (float)(1 / (double)s->now.scale);
	tell(hook, CK_BEFORE_UNSCALE, s);
	s->now.overflow = ck__scaler_multiply(s, p, m);
	tell(hook, CK_AFTER_UNSCALE, s);
}

void ck_scaler_update(ck_scaler *s)
{
	ck_scaler_state *n = &s->now;
	if (n->overflow) {
		n->scale = (float)(n->scale * s->o.backoff);
		n->tracker = 0;
		return;
	}
	n->taken++;
	if (!s->on || ++n->tracker < s->o.interval)
		return;
	float grown = (float)(n->scale * s->o.growth);
	n->scale = isfinite(grown) ? grown : n->scale;
	n->tracker = 0;
}
