/* Offline placement of buffers in one arena.
 *
 * First as an allocator would that meets them in time (in_time.c): that is fast, and mostly within a percent of the lower bound
 * (the largest sum of what is held at once). Then, while the bound is not met, each buffer goes in some order to the tightest gap that is
 * free through all its life: by size, by length of life, and so on; what ended on top is moved to the front, and so again. The best is
 * taken. Deterministic: ties go by position in the trace. */
#include "harness/plan/buffer.h"
#include "harness/plan/layout.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/alloc.h"

static size_t round_up(size_t bytes)
{
	return (bytes + CK_ALIGN - 1) / CK_ALIGN * CK_ALIGN;
}

/* ---- from lifetimes to buffers -------------------------------------------------------------------------------------------- */

/* Fills buffer_of[life]; returns the number of buffers. */
static int make_buffers(const ck_trace *t, buffer *b, int *buffer_of)
{
	int n = 0;
	for (int i = 0; i < t->nlives; i++) {
		const ck_lifetime *l = &t->lives[i];
		if (l->shares == CK_NONE) {
			b[n] = (buffer){.bytes = round_up(l->bytes), .from = l->from, .to = l->to, .first = i};
			buffer_of[i] = n++;
		} else {
			buffer_of[i] = buffer_of[l->shares];
			b[buffer_of[i]].to = l->to;
		}
	}
	return n;
}

/* The largest sum of rounded bytes held at once. */
static size_t lower_bound(const buffer *b, int n, int instructions)
{
	size_t *change = ck_alloc((size_t)instructions + 1, sizeof *change); /* unsigned, wraps as intended */
	for (int i = 0; i < n; i++) {
		change[b[i].from] += b[i].bytes;
		change[b[i].to + 1] -= b[i].bytes;
	}
	size_t held = 0, most = 0;
	for (int i = 0; i < instructions; i++) {
		held += change[i];
		most = held > most ? held : most;
	}
	free(change);
	return most;
}

/* ---- orders in which to place --------------------------------------------------------------------------------------------- */

static int by_place(const buffer *a, const buffer *b)
{
	return (a->first > b->first) - (a->first < b->first);
}

static int by_size(const void *x, const void *y)
{
	const buffer *a = *(buffer *const *)x, *b = *(buffer *const *)y;
	return a->bytes != b->bytes ? (a->bytes < b->bytes) - (a->bytes > b->bytes) : by_place(a, b);
}

static int by_length(const void *x, const void *y)
{
	const buffer *a = *(buffer *const *)x, *b = *(buffer *const *)y;
	int la = a->to - a->from, lb = b->to - b->from;
	return la != lb ? (la < lb) - (la > lb) : by_size(x, y);
}

static int by_area(const void *x, const void *y)
{
	const buffer *a = *(buffer *const *)x, *b = *(buffer *const *)y;
	double area_a = (double)a->bytes * (a->to - a->from + 1), area_b = (double)b->bytes * (b->to - b->from + 1);
	return area_a != area_b ? (area_a < area_b) - (area_a > area_b) : by_size(x, y);
}

static int by_start(const void *x, const void *y)
{
	return by_place(*(buffer *const *)x, *(buffer *const *)y);
}

static int by_end(const void *x, const void *y)
{
	const buffer *a = *(buffer *const *)x, *b = *(buffer *const *)y;
	return a->to != b->to ? (a->to < b->to) - (a->to > b->to) : by_start(x, y);
}

/* ---- placing -------------------------------------------------------------------------------------------------------------- */

/* The tightest gap for b among those placed (sorted by offset), or the end. */
static size_t find_offset(const buffer *b, buffer *const *placed, int n)
{
	size_t top = 0, best = SIZE_MAX, best_gap = SIZE_MAX;
	for (int i = 0; i < n; i++) {
		const buffer *p = placed[i];
		if (p->to < b->from || p->from > b->to)
			continue;
		if (p->offset > top && p->offset - top >= b->bytes && p->offset - top < best_gap) {
			best = top;
			best_gap = p->offset - top;
		}
		if (p->offset + p->bytes > top)
			top = p->offset + p->bytes;
	}
	return best != SIZE_MAX ? best : top;
}

/* Places all in the given order; returns the bytes they take. */
static size_t place(buffer **order, buffer **placed, int n)
{
	size_t top = 0;
	for (int i = 0; i < n; i++) {
		buffer *b = order[i];
		b->offset = find_offset(b, placed, i);
		if (b->offset + b->bytes > top)
			top = b->offset + b->bytes;
		int at = i;
		for (; at > 0 && placed[at - 1]->offset > b->offset; at--)
			placed[at] = placed[at - 1];
		placed[at] = b;
	}
	return top;
}

/* A search for the order that gives the smallest arena. */
typedef struct search {
	buffer *b;
	buffer **order, **placed;
	size_t *best_offset;
	size_t best, enough; /* bytes: found so far; at which to stop */
	int n;
} search;

static void keep_if_best(search *s, size_t top)
{
	if (top >= s->best)
		return;
	s->best = top;
	for (int i = 0; i < s->n; i++)
		s->best_offset[i] = s->b[i].offset;
}

static void try_order(search *s)
{
	keep_if_best(s, place(s->order, s->placed, s->n));
}

/* What ended up at the top was placed too late: it goes first in the next try. */
static void promote_top(search *s)
{
	int top = 0;
	for (int i = 1; i < s->n; i++)
		if (s->order[i]->offset + s->order[i]->bytes > s->order[top]->offset + s->order[top]->bytes)
			top = i;
	buffer *first = s->order[top];
	memmove(s->order + 1, s->order, (size_t)top * sizeof *s->order);
	s->order[0] = first;
}

static size_t place_best(buffer *b, int n, int instructions, size_t bound)
{
	static int (*const orders[])(const void *, const void *) = {by_size, by_length, by_area, by_end, by_start};
	search s = {.b = b, .best = SIZE_MAX, .n = n};
	int promotions = (int)(8e6 / ((double)n * n + 1e5)); /* 80 for small graphs, none for large ones */
	s.enough =
	    n > 2000 ? bound + bound / 100 : bound; /* large graphs: within a percent is soon found, the last bytes are not */
	s.order = ck_alloc((size_t)n, sizeof *s.order);
	s.placed = ck_alloc((size_t)n, sizeof *s.placed);
	s.best_offset = ck_alloc((size_t)n, sizeof *s.best_offset);
	for (int backwards = 0; backwards < 2 && s.best > s.enough; backwards++)
		keep_if_best(&s, ck__place_in_time(b, n, instructions, backwards));
	for (size_t k = 0; k < sizeof orders / sizeof *orders && s.best > s.enough; k++) {
		for (int i = 0; i < n; i++)
			s.order[i] = &b[i];
		qsort(s.order, (size_t)n, sizeof *s.order, orders[k]);
		try_order(&s);
		for (int tries = 0; tries < promotions && s.best > s.enough; tries++) {
			promote_top(&s);
			try_order(&s);
		}
	}
	for (int i = 0; i < n; i++)
		b[i].offset = s.best_offset[i];
	free(s.order);
	free(s.placed);
	free(s.best_offset);
	return n ? s.best : 0;
}

static void place_persistent(const ck_graph *g, ck_layout *l)
{
	size_t top = 0;
	for (int v = 0; v < g->nvalues; v++)
		if (!ck_value_managed(&g->values[v])) {
			l->persistent[v] = top;
			top += round_up(g->values[v].bytes);
		}
	for (int k = 0; k < l->states; k++)
		for (int v = 0; v < g->nvalues; v++)
			if (ck_value_trained(&g->values[v])) {
				l->state[k * g->nvalues + v] = top;
				top += round_up(g->values[v].bytes);
			}
	for (int v = 0; v < g->nvalues && l->sum; v++)
		if (ck_value_trained(&g->values[v])) {
			l->sum[v] = top;
			top += round_up(g->values[v].bytes);
		}
	l->persistent_bytes = top;
}

ck_status ck_layout_make(const ck_graph *g, const ck_trace *t, ck_layout *l, ck_err *err)
{
	*l = (ck_layout){.states = t->states};
	if (t->peak > SIZE_MAX / 4)
		return ck_fail(err, CK_USAGE, "the model's tensors add up to more than can be addressed; make it smaller");
	l->persistent = ck_alloc((size_t)g->nvalues, sizeof *l->persistent);
	l->state = ck_alloc((size_t)l->states * (size_t)g->nvalues, sizeof *l->state);
	l->sum = t->accumulates ? ck_alloc((size_t)g->nvalues, sizeof *l->sum) : NULL;
	place_persistent(g, l);
	l->offset = ck_alloc((size_t)t->nlives, sizeof *l->offset);
	buffer *b = ck_alloc((size_t)t->nlives, sizeof *b);
	int *buffer_of = ck_alloc((size_t)t->nlives, sizeof *buffer_of);
	int n = make_buffers(t, b, buffer_of);
	l->arena = l->persistent_bytes + place_best(b, n, t->n, lower_bound(b, n, t->n));
	for (int i = 0; i < t->nlives; i++)
		l->offset[i] = l->persistent_bytes + b[buffer_of[i]].offset;
	free(b);
	free(buffer_of);
	return CK_OK;
}

void ck_layout_free(ck_layout *l)
{
	free(l->persistent);
	free(l->state);
	free(l->sum);
	free(l->offset);
	*l = (ck_layout){0};
}
