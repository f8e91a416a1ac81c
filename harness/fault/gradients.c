/* Mistakes in how gradients are wired: cut off, overwritten, added too often, left over. */
#include <stdlib.h>

#include "harness/fault/internal.h"

static bool is_weight(const ck_faulty *f, const ck_call *c, int i)
{
	return ck__is_weight(f, ck__op(f, c)->in[i]);
}

static ck_tensor_desc din(const ck_faulty *f, const ck_call *c, int i)
{
	return ck__gradient(f, ck__op(f, c)->in[i]);
}

/* The backwards of the segment that is recomputed last, the first of the model. */
static bool in_first_segment(const ck_faulty *f, const ck_call *c)
{
	int last = ck__last_recompute(f->program);
	return c->code == 'B' && last >= 0 && ck__index(f, c) > last;
}

static void zero(ck_faulty *f, void *host, ck_dtype t, int64_t n)
{
	(void)f;
	for (int64_t i = 0; i < n; i++)
		ck_element_put(t, host, i, 0);
}

static void no_parameter_gradients(ck_faulty *f, const ck_call *c, const ck_args *a, ck_step *step)
{
	(void)step;
	for (int i = 0; i < ck__op(f, c)->desc.nin && in_first_segment(f, c); i++)
		if (a->din[i] && is_weight(f, c, i))
			ck__edit(f, din(f, c, i), a->din[i], zero);
}

static bool detached(ck_faulty *f, const ck_call *c, ck_args *a, ck_step *step)
{
	(void)step;
	if (in_first_segment(f, c) && f->hits == 0 && a->dout)
		ck__edit(f, ck__gradient(f, ck__op(f, c)->out[0]), (void *)a->dout, zero);
	return true;
}

static bool overwritten(ck_faulty *f, const ck_call *c, ck_args *a, ck_step *step)
{
	(void)step;
	for (int i = 0; i < ck__op(f, c)->desc.nin && c->code == 'B'; i++) {
		f->hits += a->din[i] && a->acc[i];
		a->acc[i] = false;
	}
	return true;
}

static void twofold(ck_faulty *f, void *host, ck_dtype t, int64_t n)
{
	(void)f;
	for (int64_t i = 0; i < n; i++)
		ck_element_put(t, host, i, 2 * ck_element_get(t, host, i));
}

static void added_twice(ck_faulty *f, const ck_call *c, const ck_args *a, ck_step *step)
{
	(void)step;
	for (int i = 0; i < ck__op(f, c)->desc.nin && c->code == 'B' && ck__recompute_of(f, c->id); i++)
		if (a->din[i] && !a->acc[i] && is_weight(f, c, i))
			ck__edit(f, din(f, c, i), a->din[i], twofold);
}

static bool adds_to_tied(const ck_faulty *f, const ck_call *c, const ck_args *a, int i)
{
	return c->code == 'B' && a->din[i] && a->acc[i] && is_weight(f, c, i);
}

static bool keep_tied(ck_faulty *f, const ck_call *c, ck_args *a, ck_step *step)
{
	(void)step;
	for (int i = 0; i < ck__op(f, c)->desc.nin; i++)
		if (adds_to_tied(f, c, a, i))
			ck__keep(f, ck__op(f, c)->in[i], din(f, c, i), a->din[i]);
	return true;
}

/* What was there is added once more, as when the weight's two uses are taken for two weights that are then tied again. */
static void tied_twice(ck_faulty *f, const ck_call *c, const ck_args *a, ck_step *step)
{
	(void)step;
	for (int i = 0; i < ck__op(f, c)->desc.nin; i++) {
		ck_value v = ck__op(f, c)->in[i];
		if (!adds_to_tied(f, c, a, i))
			continue;
		ck_tensor_desc t = din(f, c, i);
		void *host = ck__read(f, t, a->din[i]);
		for (int64_t e = 0; e < ck_shape_count(t.shape); e++) {
			double earlier = ck_element_get(t.dtype, f->kept[v], e);
			ck_element_put(t.dtype, host, e, ck_element_get(t.dtype, host, e) + earlier);
			f->hits += earlier != 0;
		}
		ck__write(f, t, a->din[i], host);
		free(host);
	}
}

enum { LEFT_OVER = 0x3c }; /* every byte: 0.0115 in float32 */

static bool left_over(ck_faulty *f, const ck_call *c, ck_args *a, ck_step *step)
{
	(void)step;
	const ck_session *s = f->program->session;
	for (int i = 0; i < ck__op(f, c)->desc.nin && c->code == 'B'; i++) {
		bool in_place = a->din[i] == a->dout; /* of a weight's copy, which had its turn */
		if (!a->din[i] || a->acc[i] || c->zero[i] || in_place || !is_weight(f, c, i))
			continue;
		s->backend->fill(s->device, a->din[i], LEFT_OVER, ck__bytes(din(f, c, i)));
		a->acc[i] = true;
		f->hits++;
	}
	return true;
}

const ck_fault ck__gradient_faults[] = {
    {.name = "segment-without-gradients",
     .field = "a segment's input needs no gradient, so none flows to the segment's parameters",
     .needs = "the segment that is recomputed last has no parameters",
     .after = no_parameter_gradients},
    {.name = "segment-detached",
     .field = "a segment runs without recording gradients, so all before it gets zeros",
     .needs = "the gradient of the segment's output is zero anyway, or there is none",
     .before = detached},
    {.name = "gradient-overwritten",
     .field = "the second contribution to a gradient (a residual, a tied weight) is written where it should be added",
     .needs = "no gradient has two contributions",
     .before = overwritten},
    {.name = "gradient-added-twice",
     .field = "the recompute builds a second graph, and both hand their gradient to the parameter",
     .needs = "no op with a trained parameter is recomputed",
     .after = added_twice},
    {.name = "tied-gradient-twice",
     .field = "a tied weight's gradient is accumulated, or announced to the reducer, once per use instead of once",
     .needs = "no weight is tied",
     .before = keep_tied,
     .after = tied_twice},
    {.name = "gradient-left-over",
     .field = "the buffers are not cleared between steps, so an earlier step's gradient is added to",
     .needs = "no parameter is trained",
     .before = left_over},
    {.name = NULL},
};
