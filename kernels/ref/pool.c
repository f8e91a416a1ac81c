/* MAXPOOL and AVGPOOL: x (N, H, W, C), y (N, OH, OW, C). */
#include "kernels/ref/ref.h"
#include "kernels/ref/window.h"

/* Element of x under a place of the window of y's element e, or the other way round; -1: there is none. */
static int64_t under(const ck_ref_window *g, int64_t channels, int64_t e, int64_t place)
{
	int64_t pixel = ck__ref_under(g, e / channels, place);
	return pixel < 0 ? -1 : pixel * channels + e % channels;
}

static int64_t over(const ck_ref_window *g, int64_t channels, int64_t e, int64_t place)
{
	int64_t pixel = ck__ref_over(g, e / channels, place);
	return pixel < 0 ? -1 : pixel * channels + e % channels;
}

void ck__ref_maxpool_forward(const ck_op_desc *d, const ck_args *a)
{
	ck_ref_window g = ck__ref_window(d);
	int64_t channels = ck_shape_last(d->in[0].shape);
	const double *x = a->in[0];
	double *y = a->out[0];
	uint8_t *at = a->stash[0]; // (N, OH, OW, C)
	for (int64_t e = 0; e < ck_shape_count(d->out[0].shape); e++) {
		bool found = false;
		for (int64_t place = 0; place < g.places; place++) {
			int64_t from = under(&g, channels, e, place);
			if (from < 0 || (found && !(x[from] > y[e])))
				continue;
			found = true;
			y[e] = x[from];
			at[e] = (uint8_t)place;
		}
	}
}

void ck__ref_maxpool_backward(const ck_op_desc *d, const ck_args *a)
{
	ck_ref_window g = ck__ref_window(d);
	int64_t channels = ck_shape_last(d->in[0].shape);
	const double *dout = a->dout;
	const uint8_t *at = a->stash[0];
	double *dx = a->din[0];
	for (int64_t e = 0; e < ck_shape_count(d->in[0].shape); e++) {
		double sum = 0;
		for (int64_t place = 0; place < g.places; place++) {
			int64_t from = over(&g, channels, e, place);
			sum += from < 0 || at[from] != place ? 0 : dout[from];
		}
		ck__ref_put(&dx[e], sum, a->acc[0]);
	}
}

void ck__ref_avgpool_forward(const ck_op_desc *d, const ck_args *a)
{
	ck_ref_window g = ck__ref_window(d);
	int64_t channels = ck_shape_last(d->in[0].shape);
	const double *x = a->in[0];
	double *y = a->out[0];
	for (int64_t e = 0; e < ck_shape_count(d->out[0].shape); e++) {
		double sum = 0;
		for (int64_t place = 0; place < g.places; place++) {
			int64_t from = under(&g, channels, e, place);
			sum += from < 0 ? 0 : x[from];
		}
		y[e] = sum / (double)g.places;
	}
}

void ck__ref_avgpool_backward(const ck_op_desc *d, const ck_args *a)
{
	ck_ref_window g = ck__ref_window(d);
	int64_t channels = ck_shape_last(d->in[0].shape);
	const double *dout = a->dout;
	double *dx = a->din[0];
	for (int64_t e = 0; e < ck_shape_count(d->in[0].shape); e++) {
		double sum = 0;
		for (int64_t place = 0; place < g.places; place++) {
			int64_t from = over(&g, channels, e, place);
			sum += from < 0 ? 0 : dout[from];
		}
		ck__ref_put(&dx[e], sum / (double)g.places, a->acc[0]);
	}
}
