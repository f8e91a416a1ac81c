/* The optimizers, as kernels/ops.h writes them, and what comes before them. */
#include <math.h>

#include "kernels/ref/ref.h"

static void sgd(const ck_update *u)
{
	const ck_optimizer *o = u->optimizer;
	const double *gradient = u->gradient;
	double *w = u->parameter, *m = u->state[0];
	for (int64_t e = 0; e < u->n; e++) {
		double g = gradient[e] + o->weight_decay * w[e];
		if (o->momentum != 0)
			g = m[e] = o->momentum * m[e] + g;
		w[e] -= o->lr * g;
	}
}

static void adamw(const ck_update *u)
{
	const ck_optimizer *o = u->optimizer;
	const double *g = u->gradient;
	double *w = u->parameter, *m = u->state[0], *v = u->state[1], first, second;
	ck_optimizer_corrections(o, u->t, &first, &second);
	for (int64_t e = 0; e < u->n; e++) {
		w[e] -= o->lr * o->weight_decay * w[e];
		m[e] = o->beta1 * m[e] + (1 - o->beta1) * g[e];
		v[e] = o->beta2 * v[e] + (1 - o->beta2) * g[e] * g[e];
		w[e] -= o->lr * (m[e] / first) / (sqrt(v[e] / second) + o->eps);
	}
}

void ck__ref_update(ck_device *device, const ck_update *u)
{
	(void)device;
	(u->optimizer->kind == CK_SGD ? sgd : adamw)(u);
}

void ck__ref_add(ck_device *device, int64_t n, const void *from, void *to)
{
	(void)device;
	for (int64_t e = 0; e < n; e++)
		((double *)to)[e] += ((const double *)from)[e];
}

bool ck__ref_unscale(ck_device *device, double factor, int count, const ck_gradient *gradients)
{
	(void)device;
	bool overflow = false;
	for (int i = 0; i < count; i++) {
		double *g = gradients[i].data;
		for (int64_t e = 0; e < gradients[i].n; e++) {
			overflow = overflow || !isfinite(g[e]);
			g[e] *= factor;
		}
	}
	return overflow;
}
