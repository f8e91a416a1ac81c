/* A product's rate grows with its size, so sizes double until a run takes long enough or the largest is reached; the best run of
 * all is the ceiling. */
#include "harness/run/ceiling.h"

#include <math.h>
#include <stdlib.h>

#include "harness/run/program.h"
#include "kernels/alloc.h"
#include "kernels/philox.h"

const char *const ck_precision_names[] = {
#define X(name, text) text,
    CK_PRECISION_ROWS(X)
#undef X
	NULL};

/* Extents of products; a device with memory of its own takes more to be busy. */
enum { LEAST = 256, MOST_HOST = 2048, MOST_DEVICE = 8192 };
static const double LONG_ENOUGH = 0.1; /* seconds of one run */
static const double SLOW = 0.5;        /* seconds of one run: then it is not repeated */
static const double SPAN = 0.05;       /* seconds of repeating */
enum { LEAST_RUNS = 3, MOST_RUNS = 100 };

ck_precision ck_precision_of(ck_dtype real, ck_dtype low, bool tf32)
{
	if (ck_dtype_half(low))
		return low == CK_BF16 ? CK_PRECISION_BF16 : CK_PRECISION_F16;
	return real == CK_F64 ? CK_PRECISION_F64 : tf32 ? CK_PRECISION_TF32 : CK_PRECISION_F32;
}

static ck_dtype dtype_of(ck_precision p)
{
	static const ck_dtype types[CK_PRECISIONS] = {
	    [CK_PRECISION_F64] = CK_F64,   [CK_PRECISION_F32] = CK_F32, [CK_PRECISION_TF32] = CK_F32,
	    [CK_PRECISION_BF16] = CK_BF16, [CK_PRECISION_F16] = CK_F16,
	};
	return types[p];
}

/* ---- one op, ready to run -------------------------------------------------------------------------------------------------- */

typedef struct trial {
	const ck_backend *b;
	ck_device *d;
	ck_op_desc desc;
	ck_kernel *kernel;
	ck_args args;
	void *memory[CK_MAX_IN + 2]; /* inputs, output, workspace; NULL: none */
	int n;
} trial;

static size_t bytes_of(const ck_tensor_desc *t)
{
	return (size_t)ck_shape_count(t->shape) * ck_dtype_size(t->dtype);
}

static void finish(const trial *t)
{
	if (t->b->sync)
		t->b->sync(t->d);
}

static void trial_close(trial *t)
{
	if (t->kernel)
		finish(t);
	for (int i = 0; i < t->n; i++)
		t->b->free(t->d, t->memory[i]);
	if (t->kernel)
		t->b->release(t->d, t->kernel);
}

static bool take_memory(trial *t, size_t bytes, size_t *room, void **at)
{
	ck_err why = {""};
	if (bytes > *room || t->b->alloc(t->d, bytes, at, &why) != CK_OK)
		return false;
	*room -= bytes;
	t->memory[t->n++] = *at;
	return true;
}

/* Numbers from -1 to 1, not zeros: what a multiplier draws depends on its operands, and so do clocks under a power limit. */
static void fill(const trial *t, const ck_tensor_desc *tensor, void *to)
{
	enum { PIECE = 1 << 16 };
	size_t size = ck_dtype_size(tensor->dtype), left = bytes_of(tensor);
	char *piece = ck_alloc(PIECE, size);
	for (int i = 0; i < PIECE; i += 4) {
		uint32_t word[4];
		ck_philox_block(0, 0, 0, (uint64_t)i, word);
		for (int k = 0; k < 4; k++)
			ck_element_put(tensor->dtype, piece, i + k, word[k] * 0x1p-31 - 1);
	}
	for (size_t at = 0; left > 0;) {
		size_t bytes = left < PIECE * size ? left : PIECE * size;
		t->b->write(t->d, (char *)to + at, piece, bytes);
		at += bytes;
		left -= bytes;
	}
	finish(t);
	free(piece);
}

/* Of desc's inputs and kind: false where the device has no such op, or no room for it. trial_close in any case. */
static bool trial_open(trial *t, ck_dtype real, size_t room)
{
	ck_err why = {""};
	if (ck_op_infer(&t->desc, real, &why) != CK_OK || t->b->prepare(t->d, &t->desc, &t->kernel, &why) != CK_OK) {
		t->kernel = NULL;
		return false;
	}
	for (int i = 0; i < t->desc.nin; i++) {
		void *at;
		if (!take_memory(t, bytes_of(&t->desc.in[i]), &room, &at))
			return false;
		fill(t, &t->desc.in[i], at);
		t->args.in[i] = at;
	}
	if (!take_memory(t, bytes_of(&t->desc.out[0]), &room, &t->args.out[0]))
		return false;
	t->b->fill(t->d, t->args.out[0], 0, bytes_of(&t->desc.out[0])); /* so that the system has given it by then */
	return !t->kernel->workspace_forward || take_memory(t, t->kernel->workspace_forward, &room, &t->args.workspace);
}

static double run_once(const trial *t)
{
	ck_clock clock = ck__clock_start(t->b, t->d, CK_CLOCK_STEP);
	t->kernel->forward(t->kernel, &t->args);
	return ck__clock_stop(t->b, t->d, clock);
}

/* Seconds of the fastest run. The first one warms up, and counts only where it is too slow to be repeated. */
static double fastest(const trial *t)
{
	double best = run_once(t), spent = 0;
	if (best >= SLOW)
		return best;
	best = HUGE_VAL;
	for (int i = 0; i < MOST_RUNS && (i < LEAST_RUNS || spent < SPAN); i++) {
		double seconds = run_once(t);
		spent += seconds;
		best = fmin(best, seconds);
	}
	return best;
}

/* ---- what is measured ------------------------------------------------------------------------------------------------------ */

static bool stopped(const ck_ceiling_options *o)
{
	return o->stop && *o->stop;
}

/* A rate from a clock too coarse for the run is none. */
static double rate(double work, double seconds)
{
	return seconds > 0 && isfinite(seconds) ? work / seconds : 0;
}

static double product(const ck_backend *b, ck_device *d, ck_precision p, const ck_ceiling_options *o)
{
	int most = b->free_memory ? MOST_DEVICE : MOST_HOST;
	double best = 0, seconds = 0;
	for (int64_t n = LEAST; n <= most && seconds < LONG_ENOUGH && !stopped(o); n *= 2) {
		ck_tensor_desc square = {dtype_of(p), ck_dims(2, n, n)};
		trial t = {.b = b, .d = d, .desc = {.kind = CK_LINEAR, .nin = 2, .in = {square, square}}};
		seconds = trial_open(&t, b->real, o->room) ? fastest(&t) : HUGE_VAL;
		best = fmax(best, rate(2.0 * (double)n * (double)n * (double)n, seconds));
		trial_close(&t);
	}
	return best;
}

/* FLATTEN: the same bytes under another shape. */
/* `seconds`: what a run took. */
static double copy_of(const ck_backend *b, ck_device *d, const ck_ceiling_options *o, size_t bytes, double *seconds)
{
	enum { ROW = 4096 };
	size_t row = ROW * ck_dtype_size(b->real);
	int64_t rows = (int64_t)((bytes + row - 1) / row);
	ck_tensor_desc x = {b->real, ck_dims(3, rows, (int64_t)64, (int64_t)64)};
	trial t = {.b = b, .d = d, .desc = {.kind = CK_FLATTEN, .nin = 1, .in = {x}}};
	*seconds = trial_open(&t, b->real, o->room) ? fastest(&t) : HUGE_VAL;
	trial_close(&t);
	return rate(2.0 * (double)bytes_of(&x), *seconds);
}

/* A device that is slow even within its caches (an emulated one) is not asked for more than that. */
static double copy(const ck_backend *b, ck_device *d, const ck_ceiling_options *o)
{
	enum { PART = 64, LEAST_BYTES = 64 << 20 };
	size_t bytes = o->caches > LEAST_BYTES ? o->caches : LEAST_BYTES;
	double seconds;
	if (stopped(o))
		return 0;
	double within = copy_of(b, d, o, bytes / PART, &seconds);
	return seconds * PART > 4 * SLOW && isfinite(seconds) ? within : copy_of(b, d, o, bytes, &seconds);
}

void ck_ceilings_take(const ck_backend *b, ck_device *d, const ck_ceiling_options *o, ck_ceilings *c)
{
	*c = (ck_ceilings){.copy = copy(b, d, o)};
	for (int p = 0; p < CK_PRECISIONS; p++)
		if (o->precisions >> p & 1)
			c->matmul[p] = product(b, d, (ck_precision)p, o);
}

void ck_ceilings_raise(ck_ceilings *c, const ck_ceilings *other)
{
	c->copy = fmax(c->copy, other->copy);
	for (int p = 0; p < CK_PRECISIONS; p++)
		c->matmul[p] = fmax(c->matmul[p], other->matmul[p]);
}
