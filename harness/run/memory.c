/* The memory in which programs run, and what it starts with. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "harness/run/program.h"
#include "kernels/alloc.h"
#include "kernels/philox.h"

ck_status ck_memory_open(const ck_session *s, size_t bytes, ck_memory *m, ck_err *err)
{
	*m = (ck_memory){.session = s, .bytes = (bytes + CK_ALIGN - 1) / CK_ALIGN * CK_ALIGN};
	void *base = NULL;
	ck_status status = s->backend->alloc(s->device, m->bytes, &base, err);
	m->base = base;
	if (status == CK_OK) {
		m->rng.saved = ck_alloc((size_t)s->graph->nops, sizeof *m->rng.saved);
		m->rng.drawn = ck_alloc((size_t)s->graph->nops, sizeof *m->rng.drawn);
	}
	return status;
}

void ck_memory_close(ck_memory *m)
{
	if (m->base)
		m->session->backend->free(m->session->device, m->base);
	m->base = NULL;
	free(m->rng.saved);
	free(m->rng.drawn);
	m->rng = (ck_rng){0};
}

/* Start values are drawn by name and element, so that they are the same whatever else the graph holds: with or without dropout or
 * fusion, in float32 (which float64 graphs start from, too). The stream is kept apart from dropout's by the step. */
enum { START_STEP = -1 };

static void draw_block(uint64_t seed, uint32_t stream, int64_t block, double unit[4])
{
	uint32_t w[4];
	ck_philox_block(seed, (uint32_t)START_STEP, stream, (uint64_t)block, w);
	for (int k = 0; k < 4; k++)
		unit[k] = ((double)w[k] + 0.5) / 4294967296.0;
}

/* Box and Muller's transform, two normals of two uniforms. */
static void normal_pair(double *u)
{
	double radius = sqrt(-2 * log(u[0])), angle = 6.283185307179586 * u[1];
	u[0] = radius * cos(angle);
	u[1] = radius * sin(angle);
}

static float real_start(ck_init init, const double unit[4], int k)
{
	return (float)(init.kind == CK_INIT_UNIFORM ? init.scale * (2 * unit[k] - 1) : init.scale * unit[k]);
}

enum { CHUNK = 1 << 18 }; /* elements drawn at a time, a multiple of 4: so no tensor is there twice */

/* Elements first .. first + n - 1, into host[0 .. n - 1]; first is a multiple of 4. */
static void draw_reals(ck_init init, ck_dtype t, uint64_t seed, uint32_t stream, int64_t first, int64_t n, void *host)
{
#pragma omp parallel for schedule(static)
	for (int64_t i = 0; i < n; i += 4) {
		double unit[4];
		draw_block(seed, stream, (first + i) / 4, unit);
		if (init.kind == CK_INIT_NORMAL) {
			normal_pair(unit);
			normal_pair(unit + 2);
		}
		for (int k = 0; k < 4 && i + k < n; k++)
			ck_element_put(t, host, i + k, (double)real_start(init, unit, k));
	}
}

static void draw_integers(int64_t range, uint64_t seed, uint32_t stream, int64_t first, int64_t n, int32_t *host)
{
	for (int64_t i = 0; i < n; i++) {
		double unit[4];
		draw_block(seed, stream, (first + i) / 4, unit);
		host[i] = (int32_t)(unit[i % 4] * (double)range);
	}
}

static void fill_chunk(const ck_value_info *v, uint64_t seed, uint32_t stream, int64_t first, int64_t n, void *host)
{
	ck_init init = v->kind == CK_INPUT ? (ck_init){CK_INIT_NORMAL, 1} : v->init;
	if (v->kind == CK_INPUT && v->dtype == CK_I32)
		draw_integers(v->range, seed, stream, first, n, host);
	else if (init.kind == CK_INIT_NORMAL || init.kind == CK_INIT_UNIFORM)
		draw_reals(init, v->dtype, seed, stream, first, n, host);
	else
		for (int64_t i = 0; i < n; i++)
			ck_element_put(v->dtype, host, i, init.kind == CK_INIT_ONE);
}

static void start_value(ck_memory *m, const ck_layout *l, ck_value v, uint64_t seed, const void *given)
{
	const ck_session *s = m->session;
	const ck_value_info *info = &s->graph->values[v];
	char *to = m->base + l->persistent[v];
	if (given) {
		s->backend->write(s->device, to, given, info->bytes);
		return;
	}
	uint32_t stream = XXH32(info->name, strlen(info->name), 0);
	int64_t count = ck_shape_count(info->shape);
	size_t each = ck_dtype_size(info->dtype);
	void *host = ck_alloc(count < CHUNK ? (size_t)count : CHUNK, each);
	for (int64_t first = 0; first < count; first += CHUNK) {
		int64_t n = count - first < CHUNK ? count - first : CHUNK;
		fill_chunk(info, seed, stream, first, n, host);
		s->backend->write(s->device, to + (size_t)first * each, host, (size_t)n * each);
	}
	free(host);
}

void ck_memory_clear_sums(ck_memory *m, const ck_layout *l)
{
	const ck_session *s = m->session;
	for (int v = 0; v < s->graph->nvalues && l->sum; v++)
		if (ck_value_trained(&s->graph->values[v]))
			s->backend->fill(s->device, m->base + l->sum[v], 0, s->graph->values[v].bytes);
}

void ck_memory_init(ck_memory *m, const ck_layout *l, uint64_t seed, const void *const *given)
{
	const ck_graph *g = m->session->graph;
	for (int v = 0; v < g->nvalues; v++)
		if (!ck_value_managed(&g->values[v]) && g->values[v].kind != CK_LOSS)
			start_value(m, l, v, seed, given ? given[v] : NULL);
	for (int k = 0; k < l->states; k++)
		for (int v = 0; v < g->nvalues; v++)
			if (ck_value_trained(&g->values[v]))
				m->session->backend->fill(m->session->device, m->base + l->state[k * g->nvalues + v], 0,
							  g->values[v].bytes);
	ck_memory_clear_sums(m, l);
	ck__rng_start(&m->rng, seed);
}

void ck_memory_batch(ck_memory *m, const ck_layout *l, const void *const *batch)
{
	const ck_session *s = m->session;
	for (int v = 0; v < s->graph->nvalues; v++)
		if (s->graph->values[v].kind == CK_INPUT && batch[v])
			s->backend->write(s->device, m->base + l->persistent[v], batch[v], s->graph->values[v].bytes);
}

void ck_memory_reset(ck_memory *m, const ck_layout *l, uint64_t seed)
{
	const ck_graph *g = m->session->graph;
	for (int v = 0; v < g->nvalues; v++)
		if (g->values[v].kind == CK_BUFFER)
			start_value(m, l, v, seed, NULL);
	ck__rng_start(&m->rng, seed);
}
