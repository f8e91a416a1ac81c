/* The cuda backend: opening the device, its memory and its clock, and the table of its ops. */
#include <cublasLt.h>
#include <cudnn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/alloc.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/nvml.h"
#include "kernels/module.h"

/* The three libraries count their errors apart. */
static const char *error_name(const char *call, int error)
{
	if (strncmp(call, "cublasLt", strlen("cublasLt")) == 0)
		return cublasLtGetStatusName((cublasStatus_t)error);
	if (strncmp(call, "cudnn", strlen("cudnn")) == 0)
		return cudnnGetErrorString((cudnnStatus_t)error);
	return cudaGetErrorName((cudaError_t)error);
}

void ck__cuda_must(int error, const char *call, const char *file, int line)
{
	if (!error)
		return;
	fprintf(stderr, "ckbench: %s at %s:%d gives error %d, %s; work started before it may be what failed\n", call, file,
		line, error, error_name(call, error));
	abort();
}

/* ---- device -------------------------------------------------------------------------------------------------------------- */

static void close_device(ck_device *d)
{
	if (!d)
		return;
	if (d->stream)
		CK_CUDA(cudaStreamSynchronize(d->stream));
	if (d->dnn)
		cudnnDestroy(d->dnn);
	if (d->blas)
		cublasLtDestroy(d->blas);
	for (int i = 0; i < CK_MARKS; i++)
		if (d->marks[i])
			cudaEventDestroy(d->marks[i]);
	ck__nvml_close(d->nvml);
	if (d->overflow)
		cudaFree(d->overflow);
	if (d->stream)
		cudaStreamDestroy(d->stream);
	free(d);
}

/* The runtime's answer when it counts devices tells what is missing. */
static ck_status find_device(int index, ck_err *err)
{
	int count = 0, runtime = 0;
	cudaError_t error = cudaGetDeviceCount(&count);
	cudaRuntimeGetVersion(&runtime);
	if (error == cudaErrorInsufficientDriver)
		return ck_fail(
		    err, CK_MISSING,
		    "device cuda: there is no NVIDIA driver, or one too old for CUDA %d.%d; install it (nvidia-smi shows "
		    "which there is)",
		    runtime / 1000, runtime % 1000 / 10);
	if (error == cudaErrorNoDevice || (error == cudaSuccess && count == 0))
		return ck_fail(err, CK_MISSING,
			       "device cuda: the driver sees no GPU; look at nvidia-smi and at CUDA_VISIBLE_DEVICES");
	if (error != cudaSuccess)
		return ck_fail(err, CK_MISSING, "device cuda: the driver refuses: %s", cudaGetErrorString(error));
	if (index >= count)
		return ck_fail(err, CK_MISSING,
			       "device " CK_MODULE_NAME ":%d does not exist: there are %d, from " CK_MODULE_NAME ":0 on", index,
			       count);
	error = cudaSetDevice(index);
	if (error != cudaSuccess)
		return ck_fail(err, CK_MISSING,
			       "device " CK_MODULE_NAME ":%d cannot be used: %s; is another process holding it?", index,
			       cudaGetErrorString(error));
	return CK_OK;
}

static void describe_device(ck_device *d, const struct cudaDeviceProp *p)
{
	int runtime = 0;
	cudaRuntimeGetVersion(&runtime);
	size_t blas = cublasLtGetVersion(), dnn = cudnnGetVersion();
	snprintf(d->name, sizeof d->name, "%.*s", CK_FACT_TEXT - 1, p->name);
	snprintf(d->capability, sizeof d->capability, "%d.%d", p->major, p->minor);
	snprintf(d->libraries, sizeof d->libraries, "CUDA %d.%d, cuBLASLt %zu.%zu.%zu, cuDNN %zu.%zu.%zu", runtime / 1000,
		 runtime % 1000 / 10, blas / 10000, blas / 100 % 100, blas % 100, dnn / 10000, dnn / 100 % 100, dnn % 100);
	snprintf(d->text, sizeof d->text, "%s (%s), %s%s%s", d->name, d->capability, d->libraries, d->tf32 ? ", TF32" : "",
		 d->fast ? ", fast" : "");
}

static ck_status start(ck_device *d, ck_err *err)
{
	struct cudaDeviceProp p;
	cudaError_t error = cudaGetDeviceProperties(&p, d->index);
	if (error == cudaSuccess)
		error = cudaStreamCreateWithFlags(&d->stream, cudaStreamNonBlocking);
	for (int i = 0; i < CK_MARKS && error == cudaSuccess; i++)
		error = cudaEventCreateWithFlags(&d->marks[i], cudaEventDefault);
	if (error == cudaSuccess)
		error = cudaMalloc((void **)&d->overflow, sizeof *d->overflow);
	if (error != cudaSuccess)
		return ck_fail(err, CK_MISSING, "device " CK_MODULE_NAME ":%d does not start: %s", d->index,
			       cudaGetErrorString(error));
	if (p.major * 10 + p.minor < 75)
		return ck_fail(err, CK_MISSING,
			       "device " CK_MODULE_NAME ":%d, %s, has compute capability %d.%d; 7.5 is the least", d->index,
			       p.name, p.major, p.minor);
	d->multiprocessors = p.multiProcessorCount;
	d->memory = p.totalGlobalMem;
	if (cublasLtCreate(&d->blas) != CUBLAS_STATUS_SUCCESS)
		return ck_fail(err, CK_MISSING, "device " CK_MODULE_NAME ":%d: cuBLASLt does not start; is its memory taken?",
			       d->index);
	cudnnStatus_t dnn = cudnnCreate(&d->dnn);
	if (dnn == CUDNN_STATUS_SUCCESS)
		dnn = cudnnSetStream(d->dnn, d->stream);
	if (dnn != CUDNN_STATUS_SUCCESS)
		return ck_fail(err, CK_MISSING, "device " CK_MODULE_NAME ":%d: cuDNN does not start: %s", d->index,
			       cudnnGetErrorString(dnn));
	describe_device(d, &p);
	char bus[32];
	if (cudaDeviceGetPCIBusId(bus, sizeof bus, d->index) == cudaSuccess)
		ck__nvml_open(bus, &d->nvml);
	return CK_OK;
}

static ck_status open_device(const ck_open_options *o, ck_device **device, ck_err *err)
{
	ck_status status = find_device(o->index, err);
	if (status != CK_OK)
		return status;
	ck_device *d = ck_alloc(1, sizeof *d);
	d->index = o->index, d->tf32 = o->tf32, d->fast = o->fast;
	status = start(d, err);
	if (status != CK_OK) {
		close_device(d);
		return status;
	}
	*device = d;
	return CK_OK;
}

static const char *describe(ck_device *d)
{
	return d->text;
}

static int threads_of(ck_device *d)
{
	(void)d;
	return 1;
}

/* ---- ops ----------------------------------------------------------------------------------------------------------------- */

static ck_cuda_prepare *const ops[CK_OP_KIND_COUNT] = {
    [CK_LINEAR] = ck__cuda_linear,
    [CK_CONV2D] = ck__cuda_conv2d,
    [CK_BATCHNORM] = ck__cuda_batchnorm,
    [CK_LAYERNORM] = ck__cuda_layernorm,
    [CK_ACT] = ck__cuda_act,
    [CK_SCORES] = ck__cuda_scores,
    [CK_SOFTMAX] = ck__cuda_softmax,
    [CK_WSUM] = ck__cuda_wsum,
    [CK_DROPOUT] = ck__cuda_dropout,
    [CK_ADD] = ck__cuda_add,
    [CK_EMBEDDING] = ck__cuda_embedding,
    [CK_MAXPOOL] = ck__cuda_maxpool,
    [CK_AVGPOOL] = ck__cuda_avgpool,
    [CK_FLATTEN] = ck__cuda_flatten,
    [CK_CAST] = ck__cuda_cast,
    [CK_TALLY] = ck__cuda_tally,
    [CK_XENT] = ck__cuda_xent,
};

static ck_status prepare(ck_device *d, const ck_op_desc *desc, ck_kernel **kernel, ck_err *err)
{
	if (!ops[desc->kind])
		return ck_fail(err, CK_USAGE, "device cuda has no op %s", ck_op_kind_name(desc->kind));
	return ops[desc->kind](d, desc, kernel, err);
}

static void release(ck_device *d, ck_kernel *kernel)
{
	(void)d;
	ck_cuda_kernel *k = (ck_cuda_kernel *)kernel;
	if (k)
		k->destroy(k);
}

static void destroy_plain(ck_cuda_kernel *k)
{
	free(k);
}

void *ck__cuda_kernel_new(ck_device *device, const ck_op_desc *desc, size_t bytes)
{
	ck_cuda_kernel *k = ck_alloc(1, bytes);
	k->destroy = destroy_plain;
	k->device = device;
	k->desc = *desc;
	return k;
}

ck_kernel *ck__cuda_plain_kernel(ck_device *device, const ck_op_desc *desc, void (*forward)(const ck_kernel *, const ck_args *),
				 void (*backward)(const ck_kernel *, const ck_args *))
{
	ck_cuda_kernel *k = ck__cuda_kernel_new(device, desc, sizeof *k);
	k->base.forward = forward;
	k->base.backward = desc->needs ? backward : NULL;
	return &k->base;
}

/* ---- memory -------------------------------------------------------------------------------------------------------------- */

static size_t free_memory(ck_device *d)
{
	size_t left = 0, all = 0;
	(void)d;
	CK_CUDA(cudaMemGetInfo(&left, &all));
	return left;
}

static ck_status allocate(ck_device *d, size_t bytes, void **memory, ck_err *err)
{
	cudaError_t error = cudaMalloc(memory, bytes ? bytes : 1);
	if (error == cudaSuccess)
		return CK_OK;
	*memory = NULL;
	cudaGetLastError(); /* the refusal is told, and is nobody else's */
	if (error != cudaErrorMemoryAllocation)
		return ck_fail(err, CK_MISSING, "device " CK_MODULE_NAME ":%d cannot give memory: %s", d->index,
			       cudaGetErrorString(error));
	return ck_fail(err, CK_MISSING,
		       "device " CK_MODULE_NAME
		       ":%d cannot give %.1f MiB of memory, %.1f MiB are free; take a smaller batch or a plan that keeps "
		       "less",
		       d->index, (double)bytes / 0x1p20, (double)free_memory(d) / 0x1p20);
}

static void release_memory(ck_device *d, void *memory)
{
	(void)d;
	CK_CUDA(cudaFree(memory));
}

static void sync(ck_device *d)
{
	CK_CUDA(cudaStreamSynchronize(d->stream));
}

/* Waits: of a copy between pageable memory and a device CUDA says only that it might be synchronous ("API synchronization behavior"), and
 * the caller may write over the source, or free it, at once. */
static void write_memory(ck_device *d, void *to, const void *host, size_t bytes)
{
	CK_CUDA(cudaMemcpyAsync(to, host, bytes, cudaMemcpyHostToDevice, d->stream));
	sync(d);
}

static void read_memory(ck_device *d, void *host, const void *from, size_t bytes)
{
	CK_CUDA(cudaMemcpyAsync(host, from, bytes, cudaMemcpyDeviceToHost, d->stream));
	sync(d);
}

static void fill_memory(ck_device *d, void *to, int byte, size_t bytes)
{
	CK_CUDA(cudaMemsetAsync(to, byte, bytes, d->stream));
}

/* ---- clock and facts ----------------------------------------------------------------------------------------------------- */

static void mark(ck_device *d, int which)
{
	CK_CUDA(cudaEventRecord(d->marks[which], d->stream));
}

static double elapsed(ck_device *d, int from, int to)
{
	float milliseconds = 0;
	CK_CUDA(cudaEventSynchronize(d->marks[to]));
	CK_CUDA(cudaEventElapsedTime(&milliseconds, d->marks[from], d->marks[to]));
	return 1e-3 * (double)milliseconds;
}

static void facts(ck_device *d, ck_device_facts *f)
{
	*f = (ck_device_facts){.memory = d->memory, .multiprocessors = d->multiprocessors, .ecc = -1};
	snprintf(f->name, sizeof f->name, "%s", d->name);
	snprintf(f->capability, sizeof f->capability, "%s", d->capability);
	snprintf(f->libraries, sizeof f->libraries, "%s", d->libraries);
	ck__nvml_facts(d->nvml, f);
}

static bool throttled(ck_device *d)
{
	return ck__nvml_throttled(d->nvml);
}

CK_MODULE_EXPORT const size_t ck_module_layout[CK_MODULE_LAYOUT_ITEMS] = CK_MODULE_LAYOUT;

CK_MODULE_EXPORT const ck_backend ck_module_backend = {
    .name = CK_MODULE_NAME, /* the build's: "cuda", or "emu" of the same sources */
    .real = CK_F32,
    .open = open_device,
    .close = close_device,
    .describe = describe,
    .threads = threads_of,
    .prepare = prepare,
    .release = release,
    .update = ck__cuda_update,
    .add = ck__cuda_add_gradient,
    .unscale = ck__cuda_unscale,
    .alloc = allocate,
    .free = release_memory,
    .write = write_memory,
    .read = read_memory,
    .fill = fill_memory,
    .sync = sync,
    .mark = mark,
    .elapsed = elapsed,
    .free_memory = free_memory,
    .facts = facts,
    .throttled = throttled,
};
