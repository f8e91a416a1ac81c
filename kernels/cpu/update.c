/* The optimizers: the factors of a step in float64, then one pass over the elements, split over the threads. And what comes
 * before them: gradients summed, and freed of a scaler's factor. */
#include <math.h>

#include "kernels/cpu/parallel.h"

static ck_vec_rule rule_of(const ck_optimizer *o, int64_t t)
{
	if (o->kind == CK_SGD)
		return (ck_vec_rule){.lr = (float)o->lr, .decay = (float)o->weight_decay, .first = (float)o->momentum};
	double first, second;
	ck_optimizer_corrections(o, t, &first, &second);
	return (ck_vec_rule){
	    .lr = (float)(o->lr / first),
	    .decay = (float)(1 - o->lr * o->weight_decay),
	    .first = (float)o->beta1,
	    .first_rest = (float)(1 - o->beta1),
	    .second = (float)o->beta2,
	    .second_rest = (float)(1 - o->beta2),
	    .second_scale = (float)(1 / sqrt(second)),
	    .eps = (float)o->eps,
	};
}

/* Spans begin at whole vectors, so that an element is in the same place of one with any number of threads. */
void ck__cpu_update(ck_device *d, const ck_update *u)
{
	const ck_vec_rule rule = rule_of(u->optimizer, u->t);
	const float *g = u->gradient;
	float *w = u->parameter, *m = u->state[0], *v = u->state[1];
	int team = ck__team(d, u->n);
	CK_PARTS(team, part)
	{
		ck_span s = ck__span(u->n, team, part, CK_UNIT);
		int64_t at = s.from, n = s.to - s.from;
		if (u->optimizer->kind == CK_SGD)
			d->vec->f32->update->sgd(&rule, n, g + at, w + at, m ? m + at : NULL);
		else
			d->vec->f32->update->adamw(&rule, n, g + at, w + at, m + at, v + at);
	}
}

void ck__cpu_add_gradient(ck_device *d, int64_t n, const void *from, void *to)
{
	ck__add(d, n, CK_F32, to, CK_F32, from, to);
}

bool ck__cpu_unscale(ck_device *d, double factor, int count, const ck_gradient *gradients)
{
	int overflow = 0;
	for (int i = 0; i < count; i++) {
		float *g = gradients[i].data;
		int team = ck__team(d, gradients[i].n);
#pragma omp parallel for num_threads(team) schedule(static, 1) reduction(| : overflow) if (team > 1)
		for (int part = 0; part < team; part++) {
			ck_span s = ck__span(gradients[i].n, team, part, CK_UNIT);
			overflow |= d->vec->f32->update->unscale((float)factor, s.to - s.from, g + s.from);
		}
	}
	return overflow;
}
