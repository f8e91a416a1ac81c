/* The gradients of whole models are right: central differences of the loss, in float64 on the reference backend. What the ops' own
 * tests cannot see is here: that gradients of a value with several readers add up, that a tied weight gets both its parts, that fusion,
 * masks and statistics fit together.
 *
 * Where. At random points, not at the model's start: there gammas are 1 and biases 0, so that a factor or a term too many or too few
 * would not be seen. A direction is drawn like the point itself, so each parameter moves in proportion to its size.
 *
 * How far. D(h) = (L(+h) - L(-h)) / 2h is off by h^2 L''' / 6 + O(h^4), and (4 D(h/2) - D(h)) / 3 by O(h^4) only (Richardson); both by
 * the rounding of L over h. The distance between D(h/2) and the extrapolated value tells the first, of which the second is roughly
 * the square: so h is divided by 4 until that distance is below 1e-5 of the value.
 *
 * Corners. ReLU and max-pooling have them, and a difference across one is none of the gradient's business. Each step notes on which side
 * of every corner it is (the signs of ReLU's outputs, the places of the maxima). A step that is on another side than the point itself
 * does not count: h is divided by 4 as well. A case in which too few differences are left fails.
 *
 * What cancels. A bias that BatchNorm takes out again, or that attention adds to every key, has no influence on the loss. Its gradient
 * is the rounding of a sum that would be zero; that it and the difference are both no larger than that is all that can be asked. Every
 * other tensor has to stand out of the noise with its largest element.
 *
 * CK_CASE='text' in the environment runs the cases with that text in their line only; CK_VERBOSE=1 tells how close they came. */
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/run/program.h"
#include "kernels/alloc.h"
#include "suite/support.h"

typedef struct gradient_case {
	const char *line;
	bool no_fusion;
	bool erf; /* the GELUs in erf form, which this model has no setting for */
} gradient_case;

static const gradient_case cases[] = {
    {"mlp:layers=4,width=9,inputs=7,classes=5,batch=6", false, false},
    {"mlp:layers=4,width=9,inputs=7,classes=5,batch=6,activation=gelu", false, false},
    {"mlp:layers=4,width=9,inputs=7,classes=5,batch=6,activation=gelu-erf", false, false},
    {"mlp:layers=4,width=9,inputs=7,classes=5,batch=6,dropout=0.3", false, false},
    {"mlp:layers=4,width=9,inputs=7,classes=5,batch=6,activation=gelu,dropout=0.3", true, false},
    {"mlp-wide:layers=3,width=8,inputs=6,classes=5,batch=4", true, false},
    {"resnet20:image=8,batch=3,width=3,dropout=0.2", false, false},
    {"resnet20:image=8,batch=3,width=3", true, false},
    {"resnet56:image=8,batch=2,width=2", false, false},
    {"resnet18:image=33,batch=2,classes=5,width=3", false, false},
    {"resnet34:image=33,batch=2,classes=5,width=2", false, false},
    {"resnet50:image=33,batch=2,classes=5,width=2", false, false},
    {"vgg11:image=32,batch=3,classes=5,width=2,dropout=0.2", false, false},
    {"transformer:layers=2,width=12,heads=3,seq=6,vocab=11,batch=2", false, false},
    {"transformer:layers=2,width=12,heads=3,seq=6,vocab=11,batch=2", true, true},
    {"transformer:layers=2,width=12,heads=3,seq=5,positions=7,vocab=11,batch=2,dropout=0.2", false, true},
    {"transformer:layers=2,width=12,heads=3,seq=6,vocab=11,batch=2,dropout=0.2", true, false},
    {"gpt-tiny:vocab=20", false, false},
};

/* Per case; per tensor, but only the first, which is its largest, where there are many tensors. */
enum { DIRECTIONS = 4, ELEMENTS = 3, MANY_TENSORS = 60 };
static const double tolerance = 1e-6;

/* ---- a model at a point -------------------------------------------------------------------------------------------------- */

typedef struct subject {
	const gradient_case *c;
	bench b;
	ck_schedule schedule;
	ck_program *p;
	double **point, **gradient; /* by value: host copies, of those that have a gradient; else NULL */
	bool backward;              /* the step under way runs it */
	uint64_t side;              /* a hash of the sides of all corners that the step under way was on */
	double loss;                /* at the point */
	uint64_t own_side;
} subject;

static void note_side(subject *s, uint64_t bit)
{
	s->side = (s->side ^ bit) * 0x100000001b3; /* FNV-1a */
}

static bool before(void *user, const ck_call *c, ck_args *a, ck_step *step)
{
	(void)a, (void)step;
	return c->code == 'F' || ((subject *)user)->backward;
}

static void after(void *user, const ck_call *c, const ck_args *a, ck_step *step)
{
	(void)step;
	subject *s = user;
	const ck_op_desc *d = &s->b.graph->ops[c->id].desc;
	int64_t n = ck_shape_count(d->out[0].shape);
	bool may_act = d->kind == CK_LINEAR || d->kind == CK_BATCHNORM || d->kind == CK_ACT;
	if (c->code != 'F')
		return;
	for (int64_t e = 0; may_act && d->attr.act == CK_ACT_RELU && e < n; e++)
		note_side(s, ((const double *)a->out[0])[e] > 0);
	for (int64_t e = 0; d->kind == CK_MAXPOOL && e < n; e++)
		note_side(s, ((const uint8_t *)a->stash[0])[e]);
}

/* One step from the parameters that are in memory, with the same masks and fresh BatchNorm statistics each time. */
static double run_step(subject *s, bool backward)
{
	const ck_hook hook = {.user = s, .before = before, .after = after};
	ck_step step = {.seed = s->b.seed, .hook = &hook};
	ck_err err = {""};
	s->backward = backward;
	s->side = 0;
	ck_memory_reset(&s->b.memory, &s->p->layout, s->b.seed);
	cr_assert(ck_program_run(s->p, &s->b.memory, &step, &err) == CK_OK, "%s: %s", s->c->line, err.text);
	return ck_program_loss(s->p, &s->b.memory);
}

/* Random parameters of about the size that keeps a signal's, none of them constant. */
static void draw_all(ck_graph *g)
{
	for (int v = 0; v < g->nvalues; v++) {
		ck_value_info *info = &g->values[v];
		double fan_in = (double)ck_shape_count(info->shape) / (double)info->shape.d[0];
		double deviation = info->init.kind == CK_INIT_ONE ? 1 : info->shape.nd == 1 ? 0.3 : sqrt(1.5 / fan_in);
		if (info->kind == CK_PARAM)
			info->init = (ck_init){CK_INIT_NORMAL, deviation};
	}
}

static ck_graph *build(const gradient_case *c)
{
	ck_err err = {""};
	ck_settings settings = {0};
	ck_graph *g = NULL;
	cr_assert(ck_settings_read(&settings, c->line, &err) == CK_OK, "%s: %s", c->line, err.text);
	settings.options = (ck_build_options){.input_grad = true, .no_fusion = c->no_fusion};
	cr_assert(ck_model_build(&settings, CK_F64, &g, &err) == CK_OK, "%s: %s", c->line, err.text);
	for (int o = 0; o < g->nops; o++)
		if (c->erf && g->ops[o].desc.attr.act == CK_ACT_GELU_TANH)
			g->ops[o].desc.attr.act = CK_ACT_GELU_ERF;
	draw_all(g);
	return g;
}

/* What memory holds of all that has a gradient, or of the gradients themselves. */
static double **read_all(const subject *s, bool gradients)
{
	const ck_graph *g = s->b.graph;
	double **all = ck_alloc((size_t)g->nvalues, sizeof *all);
	for (int v = 0; v < g->nvalues; v++) {
		void *gradient = ck_program_gradient(s->p, &s->b.memory, v);
		if (!gradient)
			continue;
		all[v] = ck_alloc(1, g->values[v].bytes);
		s->b.backend->read(s->b.device, all[v], gradients ? gradient : ck_program_value(s->p, &s->b.memory, v),
				   g->values[v].bytes);
	}
	return all;
}

static void free_all(const subject *s, double **all)
{
	for (int v = 0; v < s->b.graph->nvalues; v++)
		free(all[v]);
	free(all);
}

static subject open_subject(const gradient_case *c)
{
	ck_err err = {""};
	subject s = {.c = c, .b = bench_open(build(c), "ref", 1, 1)};
	s.schedule = bench_plan(&s.b, "none");
	s.p = bench_program(&s.b, &s.schedule);
	cr_assert(ck_memory_open(s.b.session, s.p->layout.arena, &s.b.memory, &err) == CK_OK, "%s: %s", c->line, err.text);
	ck_memory_init(&s.b.memory, &s.p->layout, s.b.seed, NULL);
	s.point = read_all(&s, false);
	s.loss = run_step(&s, true);
	s.own_side = s.side;
	s.gradient = read_all(&s, true);
	return s;
}

static void close_subject(subject *s)
{
	free_all(s, s->point);
	free_all(s, s->gradient);
	ck_program_free(s->p);
	ck_schedule_free(&s->schedule);
	bench_close(&s->b);
}

/* ---- moving away from it ------------------------------------------------------------------------------------------------- */

/* All at once, by value; or, where `all` is NULL, element e of v by 1. */
typedef struct direction {
	double **all;
	ck_value v;
	int64_t e;
} direction;

static void put(const subject *s, ck_value v, int64_t first, int64_t n, const double *host)
{
	double *to = ck_program_value(s->p, &s->b.memory, v);
	s->b.backend->write(s->b.device, to + first, host, (size_t)n * sizeof *host);
}

static void move(subject *s, const direction *d, double h)
{
	const ck_graph *g = s->b.graph;
	for (int v = 0; v < g->nvalues; v++) {
		if (!s->point[v] || (!d->all && v != d->v))
			continue;
		int64_t n = d->all ? ck_shape_count(g->values[v].shape) : 1, first = d->all ? 0 : d->e;
		double *moved = ck_alloc((size_t)n, sizeof *moved);
		for (int64_t i = 0; i < n; i++)
			moved[i] = s->point[v][first + i] + h * (d->all ? d->all[v][i] : 1);
		put(s, v, first, n, moved);
		free(moved);
	}
}

static double by_gradient(const subject *s, const direction *d)
{
	if (!d->all)
		return s->gradient[d->v][d->e];
	double sum = 0;
	for (int v = 0; v < s->b.graph->nvalues; v++)
		for (int64_t i = 0; d->all[v] && i < ck_shape_count(s->b.graph->values[v].shape); i++)
			sum += s->gradient[v][i] * d->all[v][i];
	return sum;
}

typedef struct quotient {
	bool smooth;         /* there was a step small enough; else the rest is not known */
	double value, noise; /* noise: what the rounding of the loss may make of it */
} quotient;

/* D(h); false where a corner lies between. */
static bool difference(subject *s, const direction *d, double h, double *result)
{
	double loss[2] = {0, 0};
	for (int k = 0; k < 2; k++) {
		move(s, d, k ? -h : h);
		loss[k] = run_step(s, false);
		if (s->side != s->own_side)
			return false;
	}
	*result = (loss[0] - loss[1]) / (2 * h);
	return true;
}

static quotient by_differences(subject *s, const direction *d)
{
	quotient q = {false, 0, 0};
	for (double h = 0x1p-8; h >= 0x1p-22 && !q.smooth; h /= 4) {
		double whole, half;
		if (!difference(s, d, h, &whole) || !difference(s, d, h / 2, &half))
			continue;
		q.value = (4 * half - whole) / 3;
		q.noise = 8 * DBL_EPSILON * fabs(s->loss) / h; /* the most that is seen where it should be zero: 5 */
		q.smooth = fabs(q.value - half) <= 1e-5 * fabs(q.value) + q.noise;
	}
	move(s, d, 0);
	return q;
}

/* ---- the checks ---------------------------------------------------------------------------------------------------------- */

typedef struct tally {
	int smooth, corners;
	double worst; /* relative difference, of those that stand out of the noise */
} tally;

static void check(subject *s, tally *t, const direction *d, bool cancels, bool stands_out, const char *what)
{
	quotient q = by_differences(s, d);
	double gradient = by_gradient(s, d), off = fabs(q.value - gradient);
	bool loud = q.noise < tolerance * fabs(gradient);
	t->smooth += q.smooth;
	t->corners += !q.smooth;
	if (!q.smooth)
		return;
	t->worst = loud && off > t->worst * fabs(gradient) ? off / fabs(gradient) : t->worst;
	cr_expect(off <= tolerance * fabs(gradient) + (loud ? 0 : q.noise),
		  "CK_CASE='%s'%s: %s: gradient %.12g, differences %.12g", s->c->line, s->c->no_fusion ? " (not fused)" : "",
		  what, gradient, q.value);
	cr_expect(!cancels || (fabs(gradient) <= q.noise && fabs(q.value) <= q.noise),
		  "CK_CASE='%s': %s: gradient %.12g, differences %.12g: should be zero but for rounding, %.2g", s->c->line,
		  what, gradient, q.value, q.noise);
	cr_expect(cancels || !stands_out || loud, "CK_CASE='%s': %s: gradient %.12g is lost in the noise, %.2g", s->c->line,
		  what, gradient, q.noise);
}

/* Each other seed draws another direction. */
static void check_directions(subject *s, tally *t)
{
	for (int k = 0; k < DIRECTIONS; k++) {
		ck_memory_init(&s->b.memory, &s->p->layout, s->b.seed + 1 + (uint64_t)k, NULL);
		direction d = {.all = read_all(s, false)};
		ck_memory_init(&s->b.memory, &s->p->layout, s->b.seed, NULL);
		char what[32];
		snprintf(what, sizeof what, "direction %d", k);
		check(s, t, &d, false, true, what);
		free_all(s, d.all);
	}
}

/* Whether element e of v is a bias whose influence BatchNorm or softmax takes out again. */
static bool cancels(const ck_graph *g, ck_value v, int64_t e)
{
	const ck_op_info *op = &g->ops[g->values[v].readers[0]];
	bool bias = op->desc.attr.bias && op->desc.nin > 2 && op->in[2] == v;
	const ck_value_info *y = &g->values[op->out[0]];
	for (int k = 0; bias && k < y->nreaders; k++) {
		const ck_op_desc *reader = &g->ops[y->readers[k]].desc;
		if (op->desc.kind == CK_CONV2D && reader->kind == CK_BATCHNORM && reader->attr.training)
			return true;
		if (op->desc.kind == CK_LINEAR && reader->kind == CK_SCORES) /* q, k, v side by side */
			return 3 * e / g->values[v].shape.d[0] == 1;
	}
	return false;
}

static int64_t largest_of(const double *v, int64_t n)
{
	int64_t largest = 0;
	for (int64_t e = 0; e < n; e++)
		largest = fabs(v[e]) > fabs(v[largest]) ? e : largest;
	return largest;
}

static void check_elements(subject *s, tally *t)
{
	const ck_graph *g = s->b.graph;
	int tensors = 0;
	for (int v = 0; v < g->nvalues; v++)
		tensors += s->gradient[v] != NULL;
	for (int v = 0; v < g->nvalues; v++) {
		int64_t n = s->gradient[v] ? ck_shape_count(g->values[v].shape) : 0, largest = largest_of(s->gradient[v], n);
		const int64_t elements[ELEMENTS] = {largest, (largest + 7919) % (n ? n : 1), n / 2};
		for (int k = 0; k < (tensors > MANY_TENSORS ? 1 : ELEMENTS) && k < n; k++) {
			direction d = {.v = v, .e = elements[k]};
			char what[200];
			snprintf(what, sizeof what, "%.160s element %lld", g->values[v].name, (long long)d.e);
			check(s, t, &d, cancels(g, v, d.e), k == 0, what);
		}
	}
}

Test(gradients, of_whole_models, .timeout = 300)
{
	const char *only = getenv("CK_CASE");
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		if (only && !strstr(cases[i].line, only))
			continue;
		subject s = open_subject(&cases[i]);
		tally t = {0, 0, 0};
		check_directions(&s, &t);
		check_elements(&s, &t);
		cr_expect(t.corners < t.smooth / 8, "CK_CASE='%s': %d of %d differences are lost at corners", cases[i].line,
			  t.corners, t.corners + t.smooth);
		if (getenv("CK_VERBOSE"))
			fprintf(stderr, "%s: %d differences, %d more lost at corners; at most %.2g off\n", cases[i].line,
				t.smooth, t.corners, t.worst);
		close_subject(&s);
	}
}
