#include "harness/run/batch.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/run/data.h"
#include "kernels/alloc.h"
#include "kernels/philox.h"

struct ck__batch_source {
	ck__data data;
	const char *name;     /* of the data, for messages while opening */
	ck_tensor_desc x;     /* (N, H, W, C) or (N, inputs), or tokens (N, T) */
	int64_t target_range; /* targets are 0 .. range - 1 */
	void *x_data;         /* of x's shape */
	int32_t *target_data; /* (N) or (N, T) */
	int64_t examples;
	int64_t *order; /* (examples): the present epoch's */
	int64_t epoch;
	uint64_t seed;
};

/* ---- does the data fit the model? --------------------------------------------------------------------------------------- */

/* The settings that would have to change, "image=8,classes=10"; empty when all is well. */
typedef struct remedy {
	char text[256];
} remedy;

static void advise(remedy *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void advise(remedy *r, const char *format, ...)
{
	size_t used = strlen(r->text);
	if (used && used + 1 < sizeof r->text)
		r->text[used++] = ',';
	va_list args;
	va_start(args, format);
	vsnprintf(r->text + used, sizeof r->text - used, format, args);
	va_end(args);
}

static ck_status fit_images(struct ck__batch_source *s, ck_err *err)
{
	const ck__data *d = &s->data;
	const int64_t *x = s->x.shape.d; /* (N, H, W, C) or (N, inputs) */
	bool square = d->h == d->w;
	if (s->x.dtype == CK_I32)
		return ck_fail(err, CK_USAGE,
			       "data '%.200s' is images, but this model reads tokens; take mlp or cnn, or data text:FILE",
			       s->name);
	if (s->x.shape.nd == 4 && !square)
		return ck_fail(err, CK_USAGE,
			       "data '%.200s' has images of %" PRId64 "x%" PRId64
			       ", but this model takes square ones; take mlp:inputs=%" PRId64,
			       s->name, d->h, d->w, d->h * d->w * d->c);
	remedy r = {""};
	if (s->x.shape.nd == 4 && x[1] != d->h)
		advise(&r, "image=%" PRId64, d->h);
	if (s->x.shape.nd == 4 && x[3] != d->c)
		advise(&r, "channels=%" PRId64, d->c);
	if (s->x.shape.nd == 2 && x[1] != d->h * d->w * d->c)
		advise(&r, "inputs=%" PRId64, d->h * d->w * d->c);
	if (s->target_range < d->classes)
		advise(&r, "classes=%d", d->classes);
	if (x[0] > d->count)
		advise(&r, "batch=%" PRId64, d->count);
	if (r.text[0])
		return ck_fail(err, CK_USAGE,
			       "data '%.200s' does not fit the model: it has %" PRId64 " images of %" PRId64 "x%" PRId64
			       " with %" PRId64 " channel(s), in %d classes; set %s",
			       s->name, d->count, d->h, d->w, d->c, d->classes, r.text);
	s->examples = d->count;
	return CK_OK;
}

static ck_status fit_text(struct ck__batch_source *s, ck_err *err)
{
	if (s->x.dtype != CK_I32)
		return ck_fail(err, CK_USAGE,
			       "data '%.200s' is text, but this model reads numbers; take transformer, or data digits",
			       s->name);
	int64_t batch = s->x.shape.d[0], seq = s->x.shape.d[1], bytes = s->data.count;
	if (bytes < 2)
		return ck_fail(err, CK_USAGE, "data '%.200s' has %" PRId64 " byte(s); an example takes two or more", s->name,
			       bytes);
	s->examples = (bytes - 1) / seq; /* every token has a next one */
	remedy r = {""};
	if (s->target_range < 256)
		advise(&r, "vocab=256");
	if (s->examples == 0)
		advise(&r, "seq=%" PRId64, bytes - 1);
	if (s->examples < batch)
		advise(&r, "batch=%" PRId64, s->examples ? s->examples : 1);
	if (r.text[0])
		return ck_fail(err, CK_USAGE,
			       "data '%.200s' does not fit the model: it has %" PRId64
			       " bytes of 256 kinds, which make %" PRId64 " example(s) of %" PRId64 " tokens; set %s",
			       s->name, bytes, s->examples, seq, r.text);
	return CK_OK;
}

/* ---- filling ------------------------------------------------------------------------------------------------------------ */

/* Fisher-Yates, from the identity, with numbers that depend on seed and epoch alone: any batch can be taken at any time. */
static void shuffle(struct ck__batch_source *s, int64_t epoch)
{
	const uint32_t stream = UINT32_MAX; /* no op of a graph has this number */
	for (int64_t i = 0; i < s->examples; i++)
		s->order[i] = i;
	for (int64_t i = s->examples - 1; i > 0; i--) {
		uint32_t word[4];
		ck_philox_block(s->seed, (uint32_t)epoch, stream, (uint64_t)i, word);
		int64_t j = (int64_t)(((uint64_t)word[0] << 32 | word[1]) % (uint64_t)(i + 1));
		int64_t keep = s->order[i];
		s->order[i] = s->order[j];
		s->order[j] = keep;
	}
	s->epoch = epoch;
}

/* Example e of the data becomes row n of the batch. */
static void put_image(struct ck__batch_source *s, int64_t n, int64_t e)
{
	const ck__data *d = &s->data;
	int64_t size = d->h * d->w * d->c;
	const uint8_t *pixels = d->bytes + e * size;
	for (int64_t i = 0; i < size; i++)
		ck_element_put(s->x.dtype, s->x_data, n * size + i, pixels[i] / d->white);
	s->target_data[n] = d->labels[e];
}

static void put_text(struct ck__batch_source *s, int64_t n, int64_t e)
{
	int64_t seq = s->x.shape.d[1];
	const uint8_t *bytes = s->data.bytes + e * seq;
	for (int64_t t = 0; t < seq; t++) {
		((int32_t *)s->x_data)[n * seq + t] = bytes[t];
		s->target_data[n * seq + t] = bytes[t + 1];
	}
}

void ck_batch_take(ck_batch *b, int64_t k)
{
	struct ck__batch_source *s = b->source;
	int64_t size = s->x.shape.d[0];
	if (k / b->batches != s->epoch)
		shuffle(s, k / b->batches);
	const int64_t *order = s->order + k % b->batches * size;
	for (int64_t n = 0; n < size; n++)
		(s->data.labels ? put_image : put_text)(s, n, order[n]);
}

/* ---- opening ------------------------------------------------------------------------------------------------------------ */

static ck_value target_of(const ck_graph *g)
{
	return g->ops[g->values[g->loss].producer].in[1];
}

/* The first input of the batch that is not the loss's target: what the model reads. */
static ck_value example_of(const ck_graph *g)
{
	ck_value v = 0;
	while (g->values[v].kind != CK_INPUT || v == target_of(g))
		v++;
	return v;
}

static void *host_tensor(const ck_graph *g, ck_batch *b, ck_value v)
{
	void *memory = ck_alloc(1, g->values[v].bytes);
	b->at[v] = memory;
	return memory;
}

static ck_status open_source(const ck_graph *g, ck_batch *b, ck_err *err)
{
	struct ck__batch_source *s = b->source;
	const ck_value_info *x = &g->values[example_of(g)], *target = &g->values[target_of(g)];
	ck_status status = ck__data_open(&s->data, s->name, err);
	if (status != CK_OK)
		return status;
	s->x = (ck_tensor_desc){x->dtype, x->shape};
	s->target_range = target->range;
	return s->data.labels ? fit_images(s, err) : fit_text(s, err);
}

ck_status ck_batch_open(const ck_graph *g, const char *data, uint64_t seed, ck_batch **batch, ck_err *err)
{
	ck_batch *b = ck_alloc(1, sizeof *b);
	struct ck__batch_source *s = b->source = ck_alloc(1, sizeof *s);
	b->at = ck_alloc((size_t)g->nvalues, sizeof *b->at);
	s->seed = seed;
	s->name = data;
	ck_status status = open_source(g, b, err);
	if (status != CK_OK) {
		ck_batch_close(b);
		b = NULL;
	} else {
		b->batches = s->examples / s->x.shape.d[0];
		s->x_data = host_tensor(g, b, example_of(g));
		s->target_data = host_tensor(g, b, target_of(g));
		s->order = ck_alloc((size_t)s->examples, sizeof *s->order);
		s->epoch = -1;
		ck_batch_take(b, 0);
	}
	*batch = b;
	return status;
}

void ck_batch_close(ck_batch *b)
{
	if (!b)
		return;
	struct ck__batch_source *s = b->source;
	ck__data_close(&s->data);
	free(s->x_data);
	free(s->target_data);
	free(s->order);
	free(s);
	free(b->at);
	free(b);
}
