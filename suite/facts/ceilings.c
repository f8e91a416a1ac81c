/* Ceilings are what was done over the time that it took, and nothing is held afterwards; samples in which the device slowed itself
 * down are marked. On a device that computes nothing and tells what times and throttling a case asks for. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/run/ceiling.h"
#include "harness/run/measure.h"
#include "kernels/alloc.h"
#include "suite/support.h"

/* ---- the device ------------------------------------------------------------------------------------------------------------ */

struct ck_device {
	double seconds;     /* of each product's run; 0: its clock stands still */
	double rate;        /* bytes read and written a second, when it copies */
	size_t copied;      /* bytes of the last run, if that was a copy */
	size_t largest;     /* and of the largest copy */
	ck_op_kind without; /* an op that it has not; CK_OP_KIND_COUNT: it has all */
	ck_dtype dtype;     /* of the last product */
	int products;       /* runs */
	size_t held, most;  /* bytes */
	int kernels;
};

typedef struct plain_kernel {
	ck_kernel base;
	ck_device *device;
	ck_op_desc desc;
} plain_kernel;

static void forward(const ck_kernel *kernel, const ck_args *a)
{
	const plain_kernel *k = (const plain_kernel *)kernel;
	cr_assert(a->in[0] && a->out[0] && a->workspace && (k->desc.nin < 2 || a->in[1]));
	bool copies = k->desc.kind == CK_FLATTEN;
	ck_device *d = k->device;
	d->products += !copies;
	d->copied = copies ? (size_t)ck_shape_count(k->desc.in[0].shape) * ck_dtype_size(k->desc.in[0].dtype) : 0;
	d->largest = d->copied > d->largest ? d->copied : d->largest;
}

static ck_status prepare(ck_device *d, const ck_op_desc *desc, ck_kernel **kernel, ck_err *err)
{
	if (desc->kind == d->without)
		return ck_fail(err, CK_USAGE, "no such op");
	plain_kernel *k = ck_alloc(1, sizeof *k);
	*k = (plain_kernel){.base = {.workspace_forward = 64, .forward = forward}, .device = d, .desc = *desc};
	if (desc->kind == CK_LINEAR)
		d->dtype = desc->in[1].dtype;
	d->kernels++;
	*kernel = &k->base;
	return CK_OK;
}

static void release(ck_device *d, ck_kernel *kernel)
{
	d->kernels--;
	free(kernel);
}

/* Bytes stand before each piece. */
static ck_status take(ck_device *d, size_t bytes, void **memory, ck_err *err)
{
	(void)err;
	char *at = malloc(bytes + 64);
	cr_assert(at);
	memcpy(at, &bytes, sizeof bytes);
	d->held += bytes;
	d->most = d->held > d->most ? d->held : d->most;
	*memory = at + 64;
	return CK_OK;
}

static void give(ck_device *d, void *memory)
{
	char *at = (char *)memory - 64;
	size_t bytes;
	memcpy(&bytes, at, sizeof bytes);
	d->held -= bytes;
	free(at);
}

static void write_nothing(ck_device *d, void *to, const void *host, size_t bytes)
{
	(void)d;
	cr_assert(to && host && bytes);
}

static void fill_nothing(ck_device *d, void *to, int byte, size_t bytes)
{
	(void)d;
	(void)byte;
	cr_assert(to && bytes);
}

static void mark(ck_device *d, int which)
{
	(void)d;
	cr_assert(which >= 0 && which < CK_MARKS);
}

static double elapsed(ck_device *d, int from, int to)
{
	cr_assert(from != to);
	return d->copied && d->seconds > 0 ? 2.0 * (double)d->copied / d->rate : d->seconds;
}

static size_t free_memory(ck_device *d)
{
	(void)d;
	return SIZE_MAX;
}

static const ck_backend plain = {
    .name = "plain",
    .real = CK_F32,
    .prepare = prepare,
    .release = release,
    .alloc = take,
    .free = give,
    .write = write_nothing,
    .fill = fill_nothing,
    .mark = mark,
    .elapsed = elapsed,
};

/* ---- ceilings -------------------------------------------------------------------------------------------------------------- */

enum { MIB = 1 << 20 };

Test(ceilings, are_work_over_time)
{
	static const struct {
		const char *what;
		double seconds;
		size_t room, caches;
		bool own_memory;
		ck_op_kind without;
		ck_precision precision;
		ck_dtype dtype; /* that the product must have */
		int n, runs;    /* extent of the product that counts; 0: not measured. runs of all products */
		size_t copied;  /* bytes of the largest copy */
		double rate;    /* that is found; 0: not measured */
	} cases[] = {
	    {"host", 0.0625, SIZE_MAX, 0, false, CK_OP_KIND_COUNT, CK_PRECISION_F32, CK_F32, 2048, 16, 64 * MIB, 0x1p33},
	    {"of its own", 0.0625, SIZE_MAX, 0, true, CK_OP_KIND_COUNT, CK_PRECISION_F32, CK_F32, 8192, 24, 64 * MIB, 0x1p33},
	    {"tf32", 0.0625, SIZE_MAX, 0, false, CK_OP_KIND_COUNT, CK_PRECISION_TF32, CK_F32, 2048, 16, 64 * MIB, 0x1p33},
	    {"bf16", 0.0625, SIZE_MAX, 0, false, CK_OP_KIND_COUNT, CK_PRECISION_BF16, CK_BF16, 2048, 16, 64 * MIB, 0x1p33},
	    {"f16", 0.0625, SIZE_MAX, 0, false, CK_OP_KIND_COUNT, CK_PRECISION_F16, CK_F16, 2048, 16, 64 * MIB, 0x1p33},
	    {"long enough", 0.25, SIZE_MAX, 0, false, CK_OP_KIND_COUNT, CK_PRECISION_F32, CK_F32, 256, 4, 64 * MIB, 0x1p33},
	    {"slow", 0.75, SIZE_MAX, 0, false, CK_OP_KIND_COUNT, CK_PRECISION_F32, CK_F32, 256, 1, 64 * MIB, 0x1p33},
	    {"slow copies", 0.75, SIZE_MAX, 0, false, CK_OP_KIND_COUNT, CK_PRECISION_F32, CK_F32, 256, 1, MIB, 0x1p25},
	    {"fast", 0x1p-6, SIZE_MAX, 0, false, CK_OP_KIND_COUNT, CK_PRECISION_F32, CK_F32, 2048, 20, 64 * MIB, 0x1p33},
	    {"no clock", 0, SIZE_MAX, 0, false, CK_OP_KIND_COUNT, CK_PRECISION_F32, CK_F32, 0, 404, 64 * MIB, 0},
	    {"large caches", 0.0625, SIZE_MAX, 256 * MIB, false, CK_OP_KIND_COUNT, CK_PRECISION_F32, CK_F32, 2048, 16,
	     256 * MIB, 0x1p33},
	    {"room for one", 0.0625, 13 * MIB, 0, false, CK_OP_KIND_COUNT, CK_PRECISION_F32, CK_F32, 1024, 12, MIB, 0},
	    {"no room", 0.0625, MIB / 2, 0, false, CK_OP_KIND_COUNT, CK_PRECISION_F32, CK_F32, 0, 0, 0, 0},
	    {"no room for the workspace", 0.0625, 3 * MIB / 4, 0, false, CK_OP_KIND_COUNT, CK_PRECISION_F32, CK_F32, 0, 0, 0,
	     0},
	    {"no products", 0.0625, SIZE_MAX, 0, false, CK_LINEAR, CK_PRECISION_F32, CK_DTYPE_NONE, 0, 0, 64 * MIB, 0x1p33},
	    {"no copies", 0.0625, SIZE_MAX, 0, false, CK_FLATTEN, CK_PRECISION_F32, CK_F32, 2048, 16, 0, 0},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		ck_device d = {.seconds = cases[i].seconds,
			       .rate = cases[i].rate > 0 ? cases[i].rate : 0x1p33,
			       .without = cases[i].without};
		ck_backend b = plain;
		b.free_memory = cases[i].own_memory ? free_memory : NULL;
		const ck_ceiling_options o = {
		    .precisions = 1u << cases[i].precision, .room = cases[i].room, .caches = cases[i].caches};
		ck_ceilings c;
		ck_ceilings_take(&b, &d, &o, &c);
		double n = cases[i].n;
		for (int p = 0; p < CK_PRECISIONS; p++) {
			double right = p == (int)cases[i].precision && n > 0 ? 2 * n * n * n / cases[i].seconds : 0;
			cr_expect(c.matmul[p] == right, "%s: %s: %g FLOP/s, not %g", cases[i].what, ck_precision_names[p],
				  c.matmul[p], right);
		}
		cr_expect(c.copy == cases[i].rate && d.largest == cases[i].copied, "%s: a copy of %zu bytes at %g B/s",
			  cases[i].what, d.largest, c.copy);
		cr_expect(d.dtype == cases[i].dtype && d.products == cases[i].runs, "%s: %d runs in %s", cases[i].what,
			  d.products, ck_dtype_name(d.dtype));
		cr_expect(d.held == 0 && d.kernels == 0 && d.most <= cases[i].room,
			  "%s: %zu bytes and %d kernels are held, %zu were", cases[i].what, d.held, d.kernels, d.most);
	}
}

Test(ceilings, stop)
{
	static const volatile sig_atomic_t stop = 1;
	ck_device d = {.seconds = 0.0625, .without = CK_OP_KIND_COUNT};
	ck_ceilings c;
	ck_ceilings_take(&plain, &d, &(ck_ceiling_options){.precisions = 2, .room = SIZE_MAX, .stop = &stop}, &c);
	cr_expect(c.matmul[CK_PRECISION_F32] == 0 && c.copy == 0 && d.products == 0);
}

Test(ceilings, the_larger)
{
	ck_ceilings a = {.matmul = {1, 5, 0, 2, 3}, .copy = 7}, b = {.matmul = {2, 4, 6, 0, 3}, .copy = 6};
	ck_ceilings_raise(&a, &b);
	static const double right[CK_PRECISIONS] = {2, 5, 6, 2, 3};
	cr_expect(memcmp(a.matmul, right, sizeof right) == 0 && a.copy == 7);
}

Test(ceilings, precisions)
{
	static const struct {
		ck_dtype real, low;
		bool tf32;
		const char *name;
	} cases[] = {
	    {CK_F64, CK_DTYPE_NONE, false, "f64"}, {CK_F32, CK_DTYPE_NONE, false, "f32"}, {CK_F32, CK_DTYPE_NONE, true, "tf32"},
	    {CK_F32, CK_BF16, false, "bf16"},      {CK_F32, CK_F16, true, "f16"},         {CK_F64, CK_BF16, false, "bf16"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		cr_expect_str_eq(ck_precision_names[ck_precision_of(cases[i].real, cases[i].low, cases[i].tf32)],
				 cases[i].name);
}

/* Of the backends there are: figures, and no judgement of them. */
Test(ceilings, of_real_devices)
{
	static const struct {
		const char *device;
		ck_precision precision;
	} cases[] = {
	    {"cpu", CK_PRECISION_F32}, {"cpu", CK_PRECISION_BF16}, {"cpu", CK_PRECISION_F16}, {"ref", CK_PRECISION_F64}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const ck_backend *b;
		ck_device *d;
		int index;
		ck_err err = {""};
		ck_ceilings c;
		cr_assert(ck_backend_find(cases[i].device, &b, &index, &err) == CK_OK, "%s", err.text);
		cr_assert(b->open(&(ck_open_options){0}, &d, &err) == CK_OK, "%s", err.text);
		ck_ceilings_take(b, d, &(ck_ceiling_options){.precisions = 1u << cases[i].precision, .room = (size_t)256 * MIB},
				 &c);
		cr_expect(c.copy > 0 && isfinite(c.copy), "%s: a copy at %g B/s", cases[i].device, c.copy);
		for (int p = 0; p < CK_PRECISIONS; p++)
			cr_expect(p == (int)cases[i].precision ? c.matmul[p] > 0 && isfinite(c.matmul[p]) : c.matmul[p] == 0,
				  "%s: %s: %g FLOP/s", cases[i].device, ck_precision_names[p], c.matmul[p]);
		b->close(d);
	}
}

/* ---- throttled samples ----------------------------------------------------------------------------------------------------- */

static int calls;

/* It is throttled in the fourth and seventh look; the first is at what came before, the next ones at the warm-up. */
static bool throttled(ck_device *d)
{
	(void)d;
	calls++;
	return calls == 1 || calls == 2 || calls == 4 || calls == 7;
}

Test(ceilings, throttled_samples_are_marked)
{
	bench b = bench_open_model("mlp:layers=2,width=8,batch=4", "cpu", 1, 1);
	ck_schedule s = bench_plan(&b, "none");
	ck_program *programs[] = {bench_program(&b, &s)};
	ck_backend slowed = *b.backend;
	const ck_measure_options o = {.warmup = 1, .min_rounds = 5, .max_rounds = 5, .seconds = 3600};
	ck_samples samples;
	ck_measure_end end;
	ck_err err = {""};
	bench_room(&b, programs[0]);
	for (int tells = 0; tells < 2; tells++) {
		slowed.throttled = tells ? throttled : NULL;
		b.session->backend = &slowed;
		cr_assert(ck_measure(programs, 1, &b.memory, &o, &samples, &end, &err) == CK_OK, "%s", err.text);
		cr_assert(samples.n == 5);
		for (int i = 0; i < 5; i++) /* look 3 + i */
			cr_expect(samples.throttled[i] == (tells && (i == 1 || i == 4)), "sample %d", i);
		cr_expect(ck_samples_throttled(&samples) == (tells ? 2 : 0));
		ck_samples_free(&samples);
	}
	cr_expect(calls == 7);
	b.session->backend = b.backend;
	ck_program_free(programs[0]);
	ck_schedule_free(&s);
	bench_close(&b);
}
