/* The cpu backend: opening the device, its memory, and the table of its ops. */
#include "kernels/cpu/cpu.h"

#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "kernels/alloc.h"
#include "kernels/cpu/dnnl.h"
#include "kernels/cpu/vec.h"

/* ---- device -------------------------------------------------------------------------------------------------------------- */

static void close_device(ck_device *d)
{
	if (!d)
		return;
	ck__dnnl_close(d->dnnl);
	free(d);
}

/* Address space for the threads' stacks and oneDNN's compiled kernels. Where a limit leaves less, libgomp and oneDNN would end
 * the program, the one without a remedy, the other by a crash. So it is tried out, and given back at once. */
static ck_status try_space(int threads, ck_err *err)
{
	enum { KERNELS = 16 << 20 };
	pthread_attr_t preset;
	size_t stack = 0;
	pthread_attr_init(&preset);
	pthread_attr_getstacksize(&preset, &stack);
	pthread_attr_destroy(&preset);
	size_t bytes = KERNELS + (size_t)(threads - 1) * stack;
	void *trial = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (trial == MAP_FAILED)
		return ck_fail(
		    err, CK_MISSING,
		    "device cpu: %d thread(s) need %zu MiB of address space, more than is left; raise the limit (ulimit "
		    "-v) or take fewer threads",
		    threads, bytes >> 20);
	munmap(trial, bytes);
	return CK_OK;
}

/* How many threads: as asked for, or all there are. The work is divided by their number, so that with fewer than that a part of
 * it is not done, or waited for without end; what the environment says may not come between. */
static ck_status find_threads(int asked, int *threads, ck_err *err)
{
	int limit = omp_get_thread_limit(), all = omp_get_num_procs();
	*threads = asked ? asked : all < limit ? all : limit;
	if (*threads > limit)
		return ck_fail(
		    err, CK_MISSING,
		    "device cpu: %d threads are more than the %d that OMP_THREAD_LIMIT allows; take fewer threads or "
		    "raise it",
		    *threads, limit);
	omp_set_dynamic(0); /* their number decides the order of sums, too */
	if (omp_get_max_active_levels() < 1)
		omp_set_max_active_levels(1);
	omp_set_num_threads(*threads);
	return CK_OK;
}

static ck_status open_device(const ck_open_options *o, ck_device **device, ck_err *err)
{
	int threads = o->threads;
	if (o->index != 0)
		return ck_fail(err, CK_MISSING, "device cpu:%d does not exist: the processors together are one device, cpu",
			       o->index);
	if (o->tf32 || o->fast)
		return ck_fail(err, CK_USAGE, "device cpu has no %s; leave it out", o->tf32 ? "TF32" : "other order of sums");
	if (threads < 0 || threads > CK_CPU_MAX_THREADS)
		return ck_fail(err, CK_USAGE, "threads %d: must be 0 (all processors) to %d", threads, CK_CPU_MAX_THREADS);
	ck_device *d = ck_alloc(1, sizeof(*d));
	d->vec = ck__vec_choose();
	ck_status status = find_threads(threads, &d->threads, err);
	if (status == CK_OK)
		status = try_space(d->threads, err);
	if (status == CK_OK)
		status = ck__dnnl_open(d->threads, d->vec, &d->dnnl, err);
	if (status != CK_OK) {
		close_device(d);
		return status;
	}
	char library[160];
	ck__dnnl_describe(d->dnnl, library, sizeof library);
	snprintf(d->text, sizeof d->text, "%s, %s vector kernels, %d thread%s", library, d->vec->name, d->threads,
		 d->threads == 1 ? "" : "s");
	d->throttle = ck__throttle_begin(CK_THROTTLE_CPUS);
	*device = d;
	return CK_OK;
}

static const char *describe(ck_device *d)
{
	return d->text;
}

static int threads_of(ck_device *d)
{
	return d->threads;
}

static void tell_facts(ck_device *d, ck_device_facts *facts)
{
	facts->tells_throttling = d->throttle.tells;
}

static bool throttled(ck_device *d)
{
	return ck__throttle_changed(&d->throttle);
}

/* ---- ops ----------------------------------------------------------------------------------------------------------------- */

static ck_cpu_prepare *const ops[CK_OP_KIND_COUNT] = {
    [CK_LINEAR] = ck__cpu_linear,
    [CK_CONV2D] = ck__cpu_conv2d,
    [CK_BATCHNORM] = ck__cpu_batchnorm,
    [CK_LAYERNORM] = ck__cpu_layernorm,
    [CK_ACT] = ck__cpu_act,
    [CK_SCORES] = ck__cpu_scores,
    [CK_SOFTMAX] = ck__cpu_softmax,
    [CK_WSUM] = ck__cpu_wsum,
    [CK_DROPOUT] = ck__cpu_dropout,
    [CK_ADD] = ck__cpu_add,
    [CK_EMBEDDING] = ck__cpu_embedding,
    [CK_MAXPOOL] = ck__cpu_maxpool,
    [CK_AVGPOOL] = ck__cpu_avgpool,
    [CK_FLATTEN] = ck__cpu_flatten,
    [CK_CAST] = ck__cpu_cast,
    [CK_TALLY] = ck__cpu_tally,
    [CK_XENT] = ck__cpu_xent,
};

static ck_status prepare(ck_device *d, const ck_op_desc *desc, ck_kernel **kernel, ck_err *err)
{
	if (!ops[desc->kind])
		return ck_fail(err, CK_USAGE, "device cpu has no op %s", ck_op_kind_name(desc->kind));
	return ops[desc->kind](d, desc, kernel, err);
}

static void release(ck_device *d, ck_kernel *kernel)
{
	(void)d;
	ck_cpu_kernel *k = (ck_cpu_kernel *)kernel;
	if (k)
		k->destroy(k);
}

/* ---- memory -------------------------------------------------------------------------------------------------------------- */

enum { ALIGN = 64, HUGE_PAGE = 2 << 20 };

/* Bytes that can be had without swapping, or SIZE_MAX where the system does not tell. The system promises more than it has:
 * a process that uses it would be killed, so that it is refused here. */
static size_t available_bytes(void)
{
	FILE *f = fopen("/proc/meminfo", "r");
	if (!f)
		return SIZE_MAX;
	char line[128];
	size_t kib = 0;
	bool found = false;
	while (!found && fgets(line, sizeof line, f))
		found = sscanf(line, "MemAvailable: %zu kB", &kib) == 1;
	fclose(f);
	return found ? kib * 1024 : SIZE_MAX;
}

/* A large piece starts on a huge page and asks for them: fewer misses in address translation, the same for every plan. */
static ck_status allocate(ck_device *d, size_t bytes, void **memory, ck_err *err)
{
	(void)d;
	size_t align = bytes >= 4 * (size_t)HUGE_PAGE ? HUGE_PAGE : ALIGN, available = available_bytes();
	*memory = NULL;
	if (bytes <= available && bytes <= SIZE_MAX - align)
		*memory = aligned_alloc(align, bytes ? (bytes + align - 1) / align * align : align);
	if (!*memory)
		return ck_fail(err, CK_MISSING,
			       "device cpu cannot give %.1f MiB of memory, %.1f MiB are free; take a smaller batch or a plan "
			       "that keeps less",
			       (double)bytes / 0x1p20, (double)available / 0x1p20);
	if (align == HUGE_PAGE)
		madvise(*memory, bytes, MADV_HUGEPAGE);
	return CK_OK;
}

static void release_memory(ck_device *d, void *memory)
{
	(void)d;
	free(memory);
}

static void write_memory(ck_device *d, void *to, const void *host, size_t bytes)
{
	(void)d;
	memcpy(to, host, bytes);
}

static void read_memory(ck_device *d, void *host, const void *from, size_t bytes)
{
	(void)d;
	memcpy(host, from, bytes);
}

static void fill_memory(ck_device *d, void *to, int byte, size_t bytes)
{
	(void)d;
	memset(to, byte, bytes);
}

const ck_backend ck_cpu_backend = {
    .name = "cpu",
    .summary = "this machine's processors, through oneDNN and vectorised C",
    .real = CK_F32,
    .open = open_device,
    .close = close_device,
    .describe = describe,
    .threads = threads_of,
    .prepare = prepare,
    .release = release,
    .update = ck__cpu_update,
    .add = ck__cpu_add_gradient,
    .unscale = ck__cpu_unscale,
    .alloc = allocate,
    .free = release_memory,
    .write = write_memory,
    .read = read_memory,
    .fill = fill_memory,
    .facts = tell_facts,
    .throttled = throttled,
};
