/* MAXPOOL and AVGPOOL over NHWC images.
 *
 * Both directions gather: an output place collects the inputs in its window, and in the backward an input place collects the
 * outputs whose windows hold it, in row-major order. So each place is written once, by one thread, with no zeroing before and
 * no two threads adding to one place. A gather is a list of pointers to channel vectors; the vector kernels do the rest. */
#include "kernels/cpu/parallel.h"

typedef struct ck_pool {
	int64_t n, h, w, c, oh, ow; /* x (n,h,w,c), y (n,oh,ow,c) */
	int64_t kh, kw, stride, pad;
	double scale; /* of an average: 1 / (kh kw) */
	ck_dtype t;
} ck_pool;

static ck_pool pool_of(const ck_op_desc *d)
{
	ck_shape x = d->in[0].shape, y = d->out[0].shape;
	const ck_attr *a = &d->attr;
	return (ck_pool){.n = x.d[0],
			 .h = x.d[1],
			 .w = x.d[2],
			 .c = x.d[3],
			 .oh = y.d[1],
			 .ow = y.d[2],
			 .kh = a->kh,
			 .kw = a->kw,
			 .stride = a->stride,
			 .pad = a->pad,
			 .scale = 1.0 / ((double)a->kh * a->kw),
			 .t = d->in[0].dtype};
}

static int64_t at_least(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t at_most(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Input positions from .. to - 1 along one axis that lie in the window of output position o. */
static ck_span window(int64_t o, int64_t size, int64_t k, int64_t stride, int64_t pad)
{
	int64_t first = o * stride - pad;
	return (ck_span){at_least(first, 0), at_most(first + k, size)};
}

/* Output positions whose windows hold input position i. */
static ck_span covering(int64_t i, int64_t outputs, int64_t k, int64_t stride, int64_t pad)
{
	int64_t last = i + pad, first = last - k + 1;
	return (ck_span){first <= 0 ? 0 : (first + stride - 1) / stride, at_most(last / stride + 1, outputs)};
}

/* What meets at one place: pointers to the channel vectors on the other side, and the place in the window that joins them. */
typedef struct gather {
	const ck_stored **value;
	const uint8_t **at;
	uint8_t *place;
	int n;
} gather;

/* One thread's lists in the workspace, room for a whole window. */
static size_t gather_bytes(const ck_pool *p)
{
	size_t window = (size_t)(p->kh * p->kw), bytes = window * (2 * sizeof(void *) + 1);
	return (bytes + 63) / 64 * 64;
}

static gather gather_in(const ck_pool *p, void *workspace, int part)
{
	size_t window = (size_t)(p->kh * p->kw);
	char *mine = (char *)workspace + (size_t)part * gather_bytes(p);
	return (gather){.value = (const ck_stored **)mine,
			.at = (const uint8_t **)(mine + window * sizeof(void *)),
			.place = (uint8_t *)(mine + 2 * window * sizeof(void *))};
}

/* The inputs in the window of output (n,i,j). */
static void gather_inputs(const ck_pool *p, const ck_stored *x, int64_t n, int64_t i, int64_t j, gather *g)
{
	ck_span rows = window(i, p->h, p->kh, p->stride, p->pad), cols = window(j, p->w, p->kw, p->stride, p->pad);
	int64_t top = i * p->stride - p->pad, left = j * p->stride - p->pad;
	g->n = 0;
	for (int64_t r = rows.from; r < rows.to; r++)
		for (int64_t c = cols.from; c < cols.to; c++, g->n++) {
			g->value[g->n] = ck__at(p->t, x, ((n * p->h + r) * p->w + c) * p->c);
			g->place[g->n] = (uint8_t)((r - top) * p->kw + c - left); /* an average's is not used, and may wrap */
		}
}

/* The outputs whose windows hold input (n,i,j). at NULL: an average. */
static void gather_outputs(const ck_pool *p, const ck_stored *dy, const uint8_t *at, int64_t n, int64_t i, int64_t j, gather *g)
{
	ck_span rows = covering(i, p->oh, p->kh, p->stride, p->pad), cols = covering(j, p->ow, p->kw, p->stride, p->pad);
	g->n = 0;
	for (int64_t r = rows.from; r < rows.to; r++)
		for (int64_t c = cols.from; c < cols.to; c++, g->n++) {
			int64_t y = ((n * p->oh + r) * p->ow + c) * p->c;
			g->value[g->n] = ck__at(p->t, dy, y);
			g->at[g->n] = at ? at + y : NULL;
			g->place[g->n] = (uint8_t)((i + p->pad - r * p->stride) * p->kw + j + p->pad - c * p->stride);
		}
}

/* ---- forward ------------------------------------------------------------------------------------------------------------- */

static void forward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_cpu_kernel *k = ck__cpu_kernel(kernel);
	ck_pool p = pool_of(&k->desc);
	const ck_vec_pool *vec = ck__vec(k->device, p.t)->pool;
	bool max = k->desc.kind == CK_MAXPOOL;
	int team = ck__team(k->device, p.n * p.h * p.w * p.c);
	CK_PARTS(team, part)
	{
		gather g = gather_in(&p, a->workspace, part);
		ck_span s = ck__span(p.n * p.oh * p.ow, team, part, 1);
		for (int64_t place = s.from; place < s.to; place++) {
			int64_t j = place % p.ow, i = place / p.ow % p.oh, n = place / p.ow / p.oh;
			ck_stored *y = ck__at(p.t, a->out[0], place * p.c);
			gather_inputs(&p, a->in[0], n, i, j, &g);
			if (max)
				vec->max(p.c, g.n, g.value, g.place, y, (uint8_t *)a->stash[0] + place * p.c);
			else
				vec->sum(p.c, g.n, g.value, (float)p.scale, y, false);
		}
	}
}

/* ---- backward ------------------------------------------------------------------------------------------------------------ */

static void backward(const ck_kernel *kernel, const ck_args *a)
{
	const ck_cpu_kernel *k = ck__cpu_kernel(kernel);
	ck_pool p = pool_of(&k->desc);
	const ck_vec_pool *vec = ck__vec(k->device, p.t)->pool;
	bool max = k->desc.kind == CK_MAXPOOL, acc = a->acc[0];
	int team = ck__team(k->device, p.n * p.h * p.w * p.c);
	CK_PARTS(team, part)
	{
		gather g = gather_in(&p, a->workspace, part);
		ck_span s = ck__span(p.n * p.h * p.w, team, part, 1);
		for (int64_t place = s.from; place < s.to; place++) {
			int64_t j = place % p.w, i = place / p.w % p.h, n = place / p.w / p.h;
			ck_stored *dx = ck__at(p.t, a->din[0], place * p.c);
			gather_outputs(&p, a->dout, max ? a->stash[0] : NULL, n, i, j, &g);
			if (max)
				vec->max_backward(p.c, g.n, g.value, g.at, g.place, dx, acc);
			else
				vec->sum(p.c, g.n, g.value, (float)p.scale, dx, acc);
		}
	}
}

static ck_status prepare(ck_device *device, const ck_op_desc *desc, ck_kernel **kernel, ck_err *err)
{
	if (ck__vec_kernel(device, desc, forward, backward, kernel, err) != CK_OK)
		return CK_USAGE;
	ck_pool p = pool_of(desc);
	int team = ck__team(device, ck_shape_count(desc->in[0].shape));
	(*kernel)->workspace_forward = (*kernel)->workspace_backward = gather_bytes(&p) * (size_t)team;
	return CK_OK;
}

ck_status ck__cpu_maxpool(ck_device *device, const ck_op_desc *desc, ck_kernel **kernel, ck_err *err)
{
	return prepare(device, desc, kernel, err);
}

ck_status ck__cpu_avgpool(ck_device *device, const ck_op_desc *desc, ck_kernel **kernel, ck_err *err)
{
	return prepare(device, desc, kernel, err);
}
