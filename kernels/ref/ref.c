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
    [CK_CAST] = {ck__ref_flatten_forward, ck__ref_flatten_backward}, /* all is float64 here */
    [CK_TALLY] = {ck__ref_tally_forward, ck__ref_tally_backward},
    [CK_XENT] = {ck__ref_xent_forward, ck__ref_xent_backward},
};

struct ck_device {
	char unused; /* nothing to remember: it is here so that every open has its own close */
};

typedef struct ref_kernel {
	ck_kernel base;
	ck_op_desc desc;
	size_t own; /* bytes of the backward's workspace that are the op's */
} ref_kernel;

/* Threads: always one. */
static ck_status ref_open(const ck_open_options *o, ck_device **device, ck_err *err)
{
	if (o->index != 0)
		return ck_fail(err, CK_MISSING, "ref:%d: there is one reference device only, ref", o->index);
	if (o->tf32 || o->fast)
		return ck_fail(err, CK_USAGE, "device ref has no %s; leave it out", o->tf32 ? "TF32" : "other order of sums");
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
	return "reference: plain C loops, float64 (bf16, fp16: stored, float64 arithmetic), 1 thread";
}

static int ref_threads(ck_device *device)
{
	(void)device;
	return 1;
}

/* ---- ops: what is not stored in float64 is widened into the workspace before, and rounded on its way back ------------------ */

static bool widened(ck_dtype t)
{
	return ck_dtype_real(t) && t != CK_F64;
}

static size_t widened_bytes(const ck_tensor_desc *t)
{
	return widened(t->dtype) ? (size_t)ck_shape_count(t->shape) * sizeof(double) : 0;
}

/* Takes the tensor's place in the workspace at *at, which moves behind it; `read`: what it holds matters. (A gradient's does:
 * it may be added to, or be written in parts.) */
static void *widen(const ck_tensor_desc *t, const void *tensor, bool read, char **at)
{
	double *wide = (void *)*at;
	if (!tensor || !widened(t->dtype))
		return (void *)tensor;
	*at += widened_bytes(t);
	for (int64_t e = 0; read && e < ck_shape_count(t->shape); e++)
		wide[e] = ck_element_get(t->dtype, tensor, e);
	return wide;
}

static void narrow(const ck_tensor_desc *t, const void *wide, void *tensor)
{
	if (tensor && wide != tensor)
		for (int64_t e = 0; e < ck_shape_count(t->shape); e++)
			ck_element_put(t->dtype, tensor, e, ((const double *)wide)[e]);
}

static void run_forward(const ck_kernel *kernel, const ck_args *args)
{
	const ck_op_desc *d = &((const ref_kernel *)kernel)->desc;
	ck_args a = *args;
	char *at = args->workspace;
	for (int i = 0; i < d->nin; i++)
		a.in[i] = widen(&d->in[i], args->in[i], true, &at);
	a.out[0] = widen(&d->out[0], args->out[0], false, &at);
	for (int i = 0; i < d->nstash; i++)
		a.stash[i] = widen(&d->stash[i], args->stash[i], false, &at);
	runs[d->kind].forward(d, &a);
	narrow(&d->out[0], a.out[0], args->out[0]);
	for (int i = 0; i < d->nstash; i++)
		narrow(&d->stash[i], a.stash[i], args->stash[i]);
}

static void run_backward(const ck_kernel *kernel, const ck_args *args)
{
	const ref_kernel *k = (const ref_kernel *)kernel;
	const ck_op_desc *d = &k->desc;
	const ck_tensor_desc dout = ck_op_dout(d);
	ck_tensor_desc din[CK_MAX_IN];
	ck_args a = *args;
	char *at = (char *)args->workspace + k->own;
	for (int i = 0; i < d->nin; i++) {
		din[i] = ck_op_din(d, i);
		a.in[i] = widen(&d->in[i], args->in[i], true, &at);
		a.din[i] = i && args->din[i] == args->din[0] ? a.din[0] : widen(&din[i], args->din[i], true, &at);
	}
	a.out[0] = widen(&d->out[0], args->out[0], true, &at);
	for (int i = 0; i < d->nstash; i++)
		a.stash[i] = widen(&d->stash[i], args->stash[i], true, &at);
	a.dout = widen(&dout, args->dout, true, &at);
	runs[d->kind].backward(d, &a);
	for (int i = 0; i < d->nin; i++)
		narrow(&din[i], a.din[i], args->din[i]);
}

/* Room for what a backward has to hold that is not an output: LINEAR its dz, EMBEDDING one row of a gradient. */
static size_t own_backward(const ck_op_desc *d)
{
	int64_t elements = 0;
	if (d->kind == CK_LINEAR)
		elements = ck_shape_count(d->out[0].shape);
	else if (d->kind == CK_EMBEDDING)
		elements = ck_shape_last(d->out[0].shape);
	return (size_t)elements * sizeof(double);
}

static size_t widened_forward(const ck_op_desc *d)
{
	size_t bytes = widened_bytes(&d->out[0]);
	for (int i = 0; i < d->nin; i++)
		bytes += widened_bytes(&d->in[i]);
	for (int i = 0; i < d->nstash; i++)
		bytes += widened_bytes(&d->stash[i]);
	return bytes;
}

static size_t widened_backward(const ck_op_desc *d)
{
	const ck_tensor_desc dout = ck_op_dout(d);
	size_t bytes = widened_forward(d) + widened_bytes(&dout);
	for (int i = 0; i < d->nin; i++) {
		const ck_tensor_desc din = ck_op_din(d, i);
		bytes += widened_bytes(&din);
	}
	return bytes;
}

static ck_status ref_prepare(ck_device *device, const ck_op_desc *desc, ck_kernel **kernel, ck_err *err)
{
	(void)device;
	if (desc->real != CK_F64)
		return ck_fail(err, CK_USAGE, "ref computes in f64 only, not in %s", ck_dtype_name(desc->real));
	ref_kernel *k = calloc(1, sizeof *k);
	if (!k)
		return ck_fail(err, CK_MISSING, "ref: out of memory");
	k->desc = *desc;
	k->own = own_backward(desc);
	k->base.forward = run_forward;
	k->base.workspace_forward = widened_forward(desc);
	if (desc->needs) {
		k->base.backward = run_backward;
		k->base.workspace_backward = k->own + widened_backward(desc);
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
