/* CONV2D: x (N, H, W, C), weights (O, kh, kw, C/groups), y (N, OH, OW, O). An output channel sees its group's channels only. */
#include "kernels/ref/ref.h"
#include "kernels/ref/window.h"

typedef struct channels {
	int64_t in, out, group_in, group_out;
} channels;

static channels channels_of(const ck_op_desc *d)
{
	int64_t in = ck_shape_last(d->in[0].shape), out = ck_shape_last(d->out[0].shape);
	return (channels){in, out, in / d->attr.groups, out / d->attr.groups};
}

/* y at (pixel, o), without bias. */
static double output(const ck_ref_window *g, channels c, const double *x, const double *w, int64_t pixel, int64_t o)
{
	int64_t first = o / c.group_out * c.group_in; /* input channel of o's group */
	double sum = 0;
	for (int64_t place = 0; place < g->places; place++) {
		int64_t under = ck__ref_under(g, pixel, place);
		for (int64_t i = 0; under >= 0 && i < c.group_in; i++)
			sum += x[under * c.in + first + i] * w[(o * g->places + place) * c.group_in + i];
	}
	return sum;
}

/* The gradient of x at (pixel, i): from all outputs whose window lies over it. */
static double input_gradient(const ck_ref_window *g, channels c, const double *dout, const double *w, int64_t pixel, int64_t i)
{
	int64_t first = i / c.group_in * c.group_out; /* output channel of i's group */
	double sum = 0;
	for (int64_t place = 0; place < g->places; place++) {
		int64_t over = ck__ref_over(g, pixel, place);
		for (int64_t o = first; over >= 0 && o < first + c.group_out; o++)
			sum += dout[over * c.out + o] * w[(o * g->places + place) * c.group_in + i % c.group_in];
	}
	return sum;
}

/* The gradient of w at (o, place, i). */
static double weight_gradient(const ck_ref_window *g, channels c, const double *dout, const double *x, int64_t o, int64_t place,
			      int64_t i)
{
	int64_t first = o / c.group_out * c.group_in;
	double sum = 0;
	for (int64_t pixel = 0; pixel < g->n * g->oh * g->ow; pixel++) {
		int64_t under = ck__ref_under(g, pixel, place);
		sum += under < 0 ? 0 : dout[pixel * c.out + o] * x[under * c.in + first + i];
	}
	return sum;
}

void ck__ref_conv2d_forward(const ck_op_desc *d, const ck_args *a)
{
	ck_ref_window g = ck__ref_window(d);
	channels c = channels_of(d);
	const double *b = d->attr.bias ? a->in[2] : NULL; // (O)
	double *y = a->out[0];
	for (int64_t e = 0; e < ck_shape_count(d->out[0].shape); e++)
		y[e] = output(&g, c, a->in[0], a->in[1], e / c.out, e % c.out) + (b ? b[e % c.out] : 0);
}

void ck__ref_conv2d_backward(const ck_op_desc *d, const ck_args *a)
{
	ck_ref_window g = ck__ref_window(d);
	channels c = channels_of(d);
	const double *dout = a->dout;
	double *dx = a->din[0], *dw = a->din[1], *db = d->attr.bias ? a->din[2] : NULL;
	for (int64_t e = 0; dx && e < ck_shape_count(d->in[0].shape); e++)
		ck__ref_put(&dx[e], input_gradient(&g, c, dout, a->in[1], e / c.in, e % c.in), a->acc[0]);
	for (int64_t e = 0; dw && e < ck_shape_count(d->in[1].shape); e++) {
		int64_t i = e % c.group_in, place = e / c.group_in % g.places, o = e / c.group_in / g.places;
		ck__ref_put(&dw[e], weight_gradient(&g, c, dout, a->in[0], o, place, i), a->acc[1]);
	}
	for (int64_t o = 0; db && o < c.out; o++) {
		double sum = 0;
		for (int64_t pixel = 0; pixel < g.n * g.oh * g.ow; pixel++)
			sum += dout[pixel * c.out + o];
		ck__ref_put(&db[o], sum, a->acc[2]);
	}
}
