/* The reference backend: its table of ops, its device, and its memory, which is the host's. */
#include "kernels/ref/ref.h"

#include <stdlib.h>
#include <string.h>

static const struct {
	ck_ref_run *forward, *backward;
} runs[CK_OP_KIND_COUNT] = {
    [CK_LINEAR] = {ck__ref_linear_forward, ck__ref_linear_backward},
    [CK_CONV2D] = {ck__ref_conv2d_forward, ck__ref_conv2d_backward},
    [CK_BATCHNORM] = {ck__ref_batchnorm_forward, ck__ref_batchnorm_backward},
    [CK_LAYERNORM] = {ck__ref_layernorm_forward, ck__ref_layernorm_backward},
    [CK_ACT] = {ck__ref_act_forward, ck__ref_act_backward},
    [CK_SCORES] = {ck__ref_scores_forward, ck__ref_scores_backward},
    [CK_SOFTMAX] = {ck__ref_softmax_forward, ck__ref_softmax_backward},
    [CK_WSUM] = {ck__ref_wsum_forward, ck__ref_wsum_backward},
    [CK_DROPOUT] = {ck__ref_dropout_forward, ck__ref_dropout_backward},
    [CK_ADD] = {ck__ref_add_forward, ck__ref_add_backward},
    [CK_EMBEDDING] = {ck__ref_embedding_forward, ck__ref_embedding_backward},
    [CK_MAXPOOL] = {ck__ref_maxpool_forward, ck__ref_maxpool_backward},
    [CK_AVGPOOL] = {ck__ref_avgpool_forward, ck__ref_avgpool_backward},
    [CK_FLATTEN] = {ck__ref_flatten_forward, ck__ref_flatten_backward},
    [CK_XENT] = {ck__ref_xent_forward, ck__ref_xent_backward},
};

struct ck_device {
	char unused; /* nothing to remember: it is here so that every open has its own close */
};

typedef struct ref_kernel {
	ck_kernel base;
	ck_op_desc desc;
} ref_kernel;

static ck_status ref_open(int index, int threads, ck_device **device, ck_err *err)
{
	(void)threads; /* always one */
	if (index != 0)
		return ck_fail(err, CK_MISSING, "ref:%d: there is one reference device only, ref", index);
	*device = malloc(sizeof **device);
	return *device ? CK_OK : ck_fail(err, CK_MISSING, "ref: out of memory");
}

static void ref_close(ck_device *device)
{
	free(device);
}

static const char *ref_describe(ck_device *device)
{
	(void)device;
	return "reference: plain C loops, float64";
}

static int ref_threads(ck_device *device)
{
	(void)device;
	return 1;
}

static void run_forward(const ck_kernel *kernel, const ck_args *args)
{
	const ck_op_desc *d = &((const ref_kernel *)kernel)->desc;
	runs[d->kind].forward(d, args);
}

static void run_backward(const ck_kernel *kernel, const ck_args *args)
{
	const ck_op_desc *d = &((const ref_kernel *)kernel)->desc;
	runs[d->kind].backward(d, args);
}

/* Room for what a backward has to hold that is not an output: LINEAR its dz, EMBEDDING one row of a gradient. */
static size_t workspace_backward(const ck_op_desc *d)
{
	int64_t elements = 0;
	if (d->kind == CK_LINEAR)
		elements = ck_shape_count(d->out[0].shape);
	else if (d->kind == CK_EMBEDDING)
		elements = ck_shape_last(d->out[0].shape);
	return (size_t)elements * sizeof(double);
}

static ck_status ref_prepare(ck_device *device, const ck_op_desc *desc, ck_kernel **kernel, ck_err *err)
{
	(void)device;
	if (desc->out[0].dtype != CK_F64)
		return ck_fail(err, CK_USAGE, "ref computes in f64 only, not in %s", ck_dtype_name(desc->out[0].dtype));
	ref_kernel *k = calloc(1, sizeof *k);
	if (!k)
		return ck_fail(err, CK_MISSING, "ref: out of memory");
	k->desc = *desc;
	k->base.forward = run_forward;
	if (desc->needs) {
		k->base.backward = run_backward;
		k->base.workspace_backward = workspace_backward(desc);
	}
	*kernel = &k->base;
	return CK_OK;
}

static void ref_release(ck_device *device, ck_kernel *kernel)
{
	(void)device;
	free(kernel);
}

static ck_status ref_alloc(ck_device *device, size_t bytes, void **memory, ck_err *err)
{
	(void)device;
	if (posix_memalign(memory, 64, bytes ? bytes : 1))
		return ck_fail(err, CK_MISSING, "ref: cannot allocate %zu bytes", bytes);
	return CK_OK;
}

static void ref_free(ck_device *device, void *memory)
{
	(void)device;
	free(memory);
}

static void ref_write(ck_device *device, void *to, const void *host, size_t bytes)
{
	(void)device;
	memcpy(to, host, bytes);
}

static void ref_read(ck_device *device, void *host, const void *from, size_t bytes)
{
	(void)device;
	memcpy(host, from, bytes);
}

static void ref_fill(ck_device *device, void *to, int byte, size_t bytes)
{
	(void)device;
	memset(to, byte, bytes);
}

extern const ck_backend ck_ref_backend;
const ck_backend ck_ref_backend = {
    .name = "ref",
    .summary = "reference: plain C loops in float64, one thread; slow, the oracle for the others",
    .real = CK_F64,
    .open = ref_open,
    .close = ref_close,
    .describe = ref_describe,
    .threads = ref_threads,
    .prepare = ref_prepare,
    .release = ref_release,
    .update = ck__ref_update,
    .add = ck__ref_add,
    .unscale = ck__ref_unscale,
    .alloc = ref_alloc,
    .free = ref_free,
    .write = ref_write,
    .read = ref_read,
    .fill = ref_fill,
};
