/* The reference backend's gradients are right: by central differences, element by element, and by the adjoint test,
 * <J v, w> = <v, J^T w>, in random directions, which every other backend's gradients have to pass, too. Both look at the forward only to judge the backward, and both need float64 throughout: in
 * 16 bits the reference's results are these, rounded, to the bit (agreement.c). */
#include "suite/ops/op_run.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

extern const ck_backend ck_ref_backend;

static ck_device *ref_device;

static void open_ref(void)
{
	device_or_skip();
	ref_device = op_device(&ck_ref_backend, 1);
}

static void close_ref(void)
{
	ck_ref_backend.close(ref_device);
}

TestSuite(gradients, .init = open_ref, .fini = close_ref);

/* <y, w> with y = forward(v), w the output's gradient. */
static double probe(op_run *r, const op_values *v)
{
	op_values y = op_forward(r, v, (op_how){0});
	double sum = 0;
	for (int64_t e = 0; e < y.n[OP_OUT]; e++)
		sum += y.at[OP_OUT][e] * v->at[OP_DOUT][e];
	op_values_free(&y);
	return sum;
}

/* Central differences of input i's every element; the largest difference relative to the largest gradient. */
static double worst_difference(op_run *r, op_values *v, const op_values *g, int i)
{
	double worst = 0, largest = 0;
	for (int64_t e = 0; e < v->n[OP_IN + i]; e++) {
		double *x = &v->at[OP_IN + i][e], kept = *x, h = 1e-5;
		if (!op_touches(r, i, e))
			continue;
		*x = kept + h;
		double up = probe(r, v);
		*x = kept - h;
		double down = probe(r, v);
		*x = kept;
		double gradient = g->at[OP_DIN + i][e];
		double difference = fabs((up - down) / (2 * h) - gradient);
		worst = difference > worst || isnan(difference) ? difference : worst;
		largest = fabs(gradient) > largest ? fabs(gradient) : largest;
	}
	return largest > 0 ? worst / largest : worst;
}

/* Evaluations times their cost, in FLOPs: large cases are left to the adjoint test. */
static bool small_enough(const ck_op_case *c)
{
	double elements = 0;
	for (int i = 0; i < c->desc.nin; i++)
		elements += (double)ck_shape_count(c->desc.in[i].shape);
	return elements * (ck_op_flops_forward(&c->desc) + 10 * elements) < 3e7;
}

Test(gradients, central_differences)
{
	ck_op_case c;
	for (int i = 0; ck_op_case_next(&i, CK_F64, &c);) {
		if (c.low || c.ties || !small_enough(&c)) /* a tie is a corner: the gradient is one-sided there */
			continue;
		op_run r;
		op_run_open(&r, &ck_ref_backend, ref_device, &c, c.desc.needs);
		op_values v = op_values_draw(&c), g = op_gradients(&r, &v);
		for (int in = 0; in < c.desc.nin; in++) {
			if (!(c.desc.needs >> in & 1) || (c.twice && in == c.desc.nin - 1))
				continue;
			double worst = worst_difference(&r, &v, &g, in);
			cr_expect(worst < 1e-6, "%s: din[%d] is off by %g of its largest element", r.name, in, worst);
		}
		op_values_free(&v);
		op_values_free(&g);
		op_run_close(&r);
	}
}

/* v's inputs, moved by h times the direction. */
static op_values moved(const op_run *r, const op_values *v, const op_values *direction, double h)
{
	op_values m = op_values_copy(v);
	for (int i = 0; i < r->desc.nin; i++)
		for (int64_t e = 0; r->desc.needs >> i & 1 && e < m.n[OP_IN + i]; e++)
			if (op_touches(r, i, e))
				m.at[OP_IN + i][e] += h * direction->at[OP_DIN + i][e];
	return m;
}

/* <v, J^T w>, and the sum of its terms' sizes. */
static double with_gradients(const op_run *r, const op_values *g, const op_values *direction, double *scale)
{
	double sum = 0;
	*scale = 0;
	for (int i = 0; i < r->desc.nin; i++)
		for (int64_t e = 0; (r->desc.needs >> i & 1) && !(r->twice && i == r->desc.nin - 1) && e < g->n[OP_DIN + i];
		     e++)
			if (op_touches(r, i, e)) {
				double term = g->at[OP_DIN + i][e] * direction->at[OP_DIN + i][e];
				sum += term;
				*scale += fabs(term);
			}
	return sum;
}

/* <J v, w> of the reference against <v, J^T w> with the gradients of r's backend. Returns how far apart they are, relative to the sum
 * of the terms' sizes. */
static double adjoint_difference(op_run *ref, op_run *r, const op_values *v, char text[160])
{
	const double h = 1e-6;
	op_values g = op_gradients(r, v), up = moved(ref, v, v, h),
		  down = moved(ref, v, v, -h); /* v's gradient slots: the direction */
	double scale, adjoint = with_gradients(ref, &g, v, &scale);
	double forward = (probe(ref, &up) - probe(ref, &down)) / (2 * h);
	snprintf(text, 160, "<J v, w> = %.12g but <v, J^T w> = %.12g", forward, adjoint);
	cr_expect(scale > 0, "%s: all gradients are zero, so nothing is proved", r->name);
	op_values_free(&g);
	op_values_free(&up);
	op_values_free(&down);
	return fabs(forward - adjoint) / scale;
}

/* In float32 the terms' own roundings are left: sums of up to a few thousand products, and, where a mean of 30 is subtracted, 30 of
 * them. */
static double adjoint_bound(const ck_backend *b, const ck_op_case *c)
{
	return b->real == CK_F64 ? 1e-6 : 64 * FLT_EPSILON * (1 + fabs(c->shift));
}

Test(gradients, adjoint)
{
	ck_op_case c, own;
	for (const ck_backend *const *b = backends_under_test(); *b; b++) {
		ck_device *device = op_device(*b, 2);
		ck_err err = {""};
		for (int i = 0; device && ck_op_case_next(&i, CK_F64, &c);) {
			if (c.low || c.ties)
				continue;
			op_run ref, r;
			cr_assert(ck_op_case_read(c.line, (*b)->real, &own, &err) == CK_OK, "%s: %s", c.line, err.text);
			op_run_open(&ref, &ck_ref_backend, ref_device, &c, c.desc.needs);
			op_run_open(&r, *b, device, &own, c.desc.needs);
			op_values v = op_values_draw(&c);
			char text[160];
			double difference = adjoint_difference(&ref, &r, &v, text), bound = adjoint_bound(*b, &c);
			cr_expect(difference <= bound, "%s: %s, %g apart, at most %g", r.name, text, difference, bound);
			op_values_free(&v);
			op_run_close(&ref);
			op_run_close(&r);
		}
		if (device)
			(*b)->close(device);
	}
}
