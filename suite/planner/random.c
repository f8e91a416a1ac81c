#include "suite/planner/random.h"

#include <assert.h>
#include <stdlib.h>

#include "harness/plan/reads.h"
#include "kernels/alloc.h"

uint64_t rng_next(rng *r)
{
	uint64_t z = r->state += 0x9E3779B97F4A7C15u;
	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
	return z ^ (z >> 31);
}

int rng_below(rng *r, int n)
{
	return (int)(rng_next(r) % (uint64_t)n);
}

bool rng_chance(rng *r, int percent)
{
	return rng_below(r, 100) < percent;
}

/* ---- graphs --------------------------------------------------------------------------------------------------------------- */

typedef struct draft {
	rng *r;
	ck_graph *g;
	int n;           /* numbers the names */
	ck_value shared; /* a square weight used more than once */
	char name[32];
} draft;

static const char *next_name(draft *d, const char *what)
{
	snprintf(d->name, sizeof d->name, "%s%d", what, d->n++);
	return d->name;
}

static ck_value weight(draft *d, ck_shape shape)
{
	ck_value w = ck_param(d->g, next_name(d, "w"), shape, (ck_init){CK_INIT_NORMAL, 0.4});
	if (rng_chance(d->r, 8))
		ck_freeze(d->g, w);
	return w;
}

static ck_value vector(draft *d, int64_t n, ck_init_kind kind)
{
	return ck_param(d->g, next_name(d, "v"), ck_dims(1, n), (ck_init){kind, 0.3});
}

static ck_value add_linear(draft *d, ck_value x, int64_t out)
{
	int64_t in = ck_shape_last(ck_shape_of(d->g, x));
	bool share = in == out && rng_chance(d->r, 40);
	if (share && d->shared == CK_NONE)
		d->shared = ck_param(d->g, "shared", ck_dims(2, out, in), (ck_init){CK_INIT_NORMAL, 0.4});
	bool fits = share && ck_shape_last(ck_shape_of(d->g, d->shared)) == in;
	ck_value w = fits ? d->shared : weight(d, ck_dims(2, out, in));
	ck_value b = rng_chance(d->r, 60) ? vector(d, out, CK_INIT_NORMAL) : CK_NONE;
	return ck_linear(d->g, next_name(d, "linear"), x, w, b);
}

static ck_value add_batchnorm(draft *d, ck_value x)
{
	int64_t c = ck_shape_last(ck_shape_of(d->g, x));
	ck_shape shape = ck_dims(1, c);
	ck_batchnorm_values v = {.gamma = vector(d, c, CK_INIT_ONE), .beta = vector(d, c, CK_INIT_NORMAL)};
	v.mean = ck_buffer(d->g, next_name(d, "mean"), d->g->real, shape, (ck_init){CK_INIT_ZERO, 0});
	v.var = ck_buffer(d->g, next_name(d, "var"), d->g->real, shape, (ck_init){CK_INIT_ONE, 0});
	v.count = ck_buffer(d->g, next_name(d, "count"), CK_I32, ck_dims(1, (int64_t)1), (ck_init){CK_INIT_ZERO, 0});
	return ck_batchnorm(d->g, next_name(d, "bn"), x, v, 1e-5, 0.1, true);
}

static ck_value add_tally(draft *d, ck_value x)
{
	int64_t c = ck_shape_last(ck_shape_of(d->g, x));
	ck_value load = ck_buffer(d->g, next_name(d, "load"), CK_I32, ck_dims(1, c), (ck_init){CK_INIT_ZERO, 0});
	ck_value calls = ck_buffer(d->g, next_name(d, "calls"), CK_I32, ck_dims(1, (int64_t)1), (ck_init){CK_INIT_ZERO, 0});
	return ck_tally(d->g, next_name(d, "tally"), x, load, calls);
}

static ck_value add_layernorm(draft *d, ck_value x)
{
	int64_t c = ck_shape_last(ck_shape_of(d->g, x));
	ck_value gamma = vector(d, c, CK_INIT_ONE), beta = vector(d, c, CK_INIT_ZERO);
	return ck_layernorm(d->g, next_name(d, "ln"), x, gamma, beta, 1e-5);
}

static ck_value add_attention(draft *d, ck_value x)
{
	int64_t c = ck_shape_last(ck_shape_of(d->g, x));
	ck_value qkv = add_linear(d, x, 3 * c);
	ck_value p =
	    ck_softmax(d->g, next_name(d, "softmax"), ck_scores(d->g, next_name(d, "scores"), qkv, 2), rng_chance(d->r, 70));
	if (rng_chance(d->r, 40))
		p = ck_dropout(d->g, next_name(d, "drop"), p, 0.25);
	return ck_weighted_sum(d->g, next_name(d, "wsum"), p, qkv, 2);
}

static ck_value add_conv(draft *d, ck_value x)
{
	int64_t c = ck_shape_last(ck_shape_of(d->g, x));
	int64_t k = rng_chance(d->r, 70) ? 3 : 1;
	return ck_conv2d(d->g, next_name(d, "conv"), x, weight(d, ck_dims(4, c, k, k, c)), CK_NONE, 1, (int)(k / 2), 1);
}

/* One op that keeps the shape; for every kind of model, or by the number of extents for that of x. */
static ck_value add_some_op(draft *d, ck_value x)
{
	int nd = ck_shape_of(d->g, x).nd;
	switch (rng_below(d->r, 10)) {
	case 0:
		return ck_activation(d->g, next_name(d, "relu"), x, CK_ACT_RELU);
	case 1:
		return ck_activation(d->g, next_name(d, "gelu"), x, rng_chance(d->r, 50) ? CK_ACT_GELU_TANH : CK_ACT_GELU_ERF);
	case 2:
		return ck_dropout(d->g, next_name(d, "drop"), x, 0.3);
	case 3:
		return add_batchnorm(d, x);
	case 4:
		return nd == 4 ? add_batchnorm(d, x) : add_layernorm(d, x);
	case 5:
		return nd == 4   ? ck_maxpool(d->g, next_name(d, "pool"), x, 3, 1, 1)
		       : nd == 3 ? add_attention(d, x)
				 : add_linear(d, x, ck_shape_last(ck_shape_of(d->g, x)));
	case 6:
		return add_tally(d, x);
	default:
		return nd == 4 ? add_conv(d, x) : add_linear(d, x, ck_shape_last(ck_shape_of(d->g, x)));
	}
}

/* A value before, of the same shape as x, so that a residual can start there. */
static ck_value some_value_like(draft *d, ck_value x)
{
	for (int tries = 0; tries < 10; tries++) {
		ck_value v = rng_below(d->r, d->g->nvalues);
		const ck_value_info *i = &d->g->values[v];
		bool data = i->kind == CK_ACTIVATION || (i->kind == CK_INPUT && i->dtype == d->g->real);
		if (data && ck_shape_equal(i->shape, ck_shape_of(d->g, x)))
			return v;
	}
	return x;
}

static ck_value random_input(draft *d, int64_t rows)
{
	switch (rng_below(d->r, 3)) {
	case 0:
		return ck_input(d->g, "x", ck_dims(2, rows, (int64_t)6), rng_chance(d->r, 50));
	case 1:
		return ck_input(d->g, "x", ck_dims(4, rows, (int64_t)5, (int64_t)4, (int64_t)3), rng_chance(d->r, 50));
	default:
		break;
	}
	ck_value ids = ck_input_int(d->g, "ids", ck_dims(2, rows, (int64_t)4), 7);
	return ck_embedding(d->g, "embed", ids, weight(d, ck_dims(2, (int64_t)7, (int64_t)6)),
			    weight(d, ck_dims(2, (int64_t)5, (int64_t)6)));
}

/* Reads what nobody reads yet into x, so that the graph ends in one place. */
static ck_value join_loose_ends(draft *d, ck_value x)
{
	bool *read = ck_alloc((size_t)d->g->nvalues, sizeof *read);
	int n = d->g->nvalues;
	for (int o = 0; o < d->g->nops; o++)
		for (int i = 0; i < d->g->ops[o].desc.nin; i++)
			read[d->g->ops[o].in[i]] = true;
	for (int v = 0; v < n; v++)
		if (!read[v] && v != x && d->g->values[v].kind == CK_ACTIVATION)
			x = ck_add(d->g, next_name(d, "join"), x, v);
	free(read);
	return x;
}

ck_graph *random_graph(rng *r, ck_dtype real)
{
	draft d = {.r = r, .g = ck_graph_new(real), .shared = CK_NONE};
	static const ck_dtype lows[] = {CK_DTYPE_NONE, CK_DTYPE_NONE, CK_BF16, CK_F16};
	ck_graph_mix(d.g, lows[rng_below(r, 4)]);
	int64_t rows = 2 + rng_below(r, 3);
	ck_value x = random_input(&d, rows);
	for (int n = 3 + rng_below(r, 10); n > 0; n--) {
		ck_value base = rng_chance(r, 15) ? some_value_like(&d, x) : x; /* a branch, or on along the chain */
		ck_value y = add_some_op(&d, base);
		x = rng_chance(r, 35) ? ck_add(d.g, next_name(&d, "add"), y, some_value_like(&d, y)) : y;
	}
	x = join_loose_ends(&d, x);
	if (ck_shape_of(d.g, x).nd == 4)
		x = ck_flatten(d.g, "flatten", ck_avgpool(d.g, "avg", x, 5, 4, 1, 0));
	ck_value logits = add_linear(&d, x, 5);
	ck_shape targets = ck_shape_of(d.g, logits).nd == 3 ? ck_dims(2, rows, (int64_t)4) : ck_dims(1, rows);
	ck_value loss = ck_cross_entropy(d.g, "loss", logits, ck_input_int(d.g, "target", targets, 5));
	ck_err err = {0};
	if (ck_graph_finish(d.g, loss, rng_chance(r, 50), &err) == CK_OK)
		return d.g;
	/* a frozen or unused part can make a draft useless; draw another */
	ck_graph_free(d.g);
	return random_graph(r, real);
}

/* ---- schedules ------------------------------------------------------------------------------------------------------------ */

typedef struct walk {
	rng *r;
	const ck_graph *g;
	ck_schedule s;
	bool *live, *ran;
} walk;

static void emit(walk *w, char code, int id)
{
	ck_schedule_add(&w->s, code, id);
	if (code == 'D')
		w->live[id] = false;
	if (code == 'F') {
		ck_reads writes = ck_writes_of(w->g, (ck_instr){'F', id});
		for (int k = 0; k < writes.n; k++)
			w->live[writes.at[k]] = true;
		w->ran[id] = true;
	}
}

static void run_forward(walk *w, int op);

static void make_live(walk *w, ck_reads reads)
{
	for (bool all = false; !all;) {
		all = true;
		for (int k = 0; k < reads.n; k++)
			if (!w->live[reads.at[k]]) {
				run_forward(w, w->g->values[reads.at[k]].producer);
				all = false;
			}
	}
}

static void run_forward(walk *w, int op)
{
	make_live(w, ck_reads_of(w->g, (ck_instr){'F', op}));
	ck_reads writes = ck_writes_of(w->g, (ck_instr){'F', op});
	for (int k = 0; k < writes.n; k++)
		if (w->live[writes.at[k]])
			emit(w, 'D', writes.at[k]);
	emit(w, 'F', op);
}

/* What no rule asks for: drops of anything live, forwards of anything. */
static void wander(walk *w)
{
	while (rng_chance(w->r, 45)) {
		int v = rng_below(w->r, w->g->nvalues);
		if (ck_value_managed(&w->g->values[v]) && w->live[v])
			emit(w, 'D', v);
		if (rng_chance(w->r, 15))
			run_forward(w, rng_below(w->r, w->g->nops));
	}
}

ck_schedule random_schedule(rng *r, const ck_graph *g)
{
	walk w = {.r = r, .g = g};
	w.live = ck_alloc((size_t)g->nvalues, sizeof *w.live);
	w.ran = ck_alloc((size_t)g->nops, sizeof *w.ran);
	for (int o = 0; o < g->nops; o++) {
		if (!w.ran[o])
			run_forward(&w, o);
		wander(&w);
	}
	for (int o = g->nops - 1; o >= 0; o--) {
		if (!g->ops[o].has_backward)
			continue;
		make_live(&w, ck_reads_of(g, (ck_instr){'B', o}));
		emit(&w, 'B', o);
		wander(&w);
	}
	for (int v = 0; v < g->nvalues; v++)
		if (w.live[v] && ck_value_managed(&g->values[v]))
			emit(&w, 'D', v);
	free(w.live);
	free(w.ran);
	return w.s;
}
