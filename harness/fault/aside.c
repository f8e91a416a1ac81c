/* Forwards run aside from the arena: an op as another description has it, on tensors that lie elsewhere. */
#include <stdlib.h>

#include "harness/fault/internal.h"
#include "kernels/alloc.h"

enum { TENSORS_MOST = CK_MAX_IN + CK_MAX_OUT + CK_MAX_STASH + 1 }; /* the last one is the workspace */

/* Where each tensor lies in one block of memory; gives the block's bytes. */
static size_t lay_out(const ck_op_desc *d, const ck_kernel *k, size_t at[TENSORS_MOST])
{
	size_t bytes = 0, sizes[TENSORS_MOST] = {0};
	for (int i = 0; i < d->nin; i++)
		sizes[i] = ck__bytes(d->in[i]);
	sizes[CK_MAX_IN] = ck__bytes(d->out[0]);
	for (int i = 0; i < d->nstash; i++)
		sizes[CK_MAX_IN + CK_MAX_OUT + i] = ck__bytes(d->stash[i]);
	sizes[TENSORS_MOST - 1] = k->workspace_forward;
	for (int i = 0; i < TENSORS_MOST; i++) {
		at[i] = bytes;
		bytes += (sizes[i] + CK_ALIGN - 1) / CK_ALIGN * CK_ALIGN;
	}
	return bytes;
}

static void run(const ck_faulty *f, const ck_kernel *k, const ck_args *draws, const ck_op_desc *d, char *block,
		const size_t at[TENSORS_MOST], void *const in[], void **out, void *stash[])
{
	ck_args a = {.seed = draws->seed, .step = draws->step, .op = draws->op, .block = draws->block, .mask = draws->mask};
	for (int i = 0; i < d->nin; i++) {
		ck__write(f, d->in[i], block + at[i], in[i]);
		a.in[i] = block + at[i];
	}
	a.out[0] = block + at[CK_MAX_IN];
	for (int i = 0; i < d->nstash; i++)
		a.stash[i] = block + at[CK_MAX_IN + CK_MAX_OUT + i];
	a.workspace = block + at[TENSORS_MOST - 1];
	k->forward(k, &a);
	*out = ck__read(f, d->out[0], a.out[0]);
	for (int i = 0; i < d->nstash; i++)
		stash[i] = ck__read(f, d->stash[i], a.stash[i]);
}

bool ck__run_aside(ck_faulty *f, const ck_args *draws, const ck_op_desc *d, void *const in[], void **out, void *stash[])
{
	const ck_session *s = f->program->session;
	size_t at[TENSORS_MOST];
	ck_kernel *k;
	ck_err err = {""};
	void *block;
	if (s->backend->prepare(s->device, d, &k, &err) != CK_OK)
		return false;
	bool fits = s->backend->alloc(s->device, lay_out(d, k, at), &block, &err) == CK_OK;
	if (fits) {
		run(f, k, draws, d, block, at, in, out, stash);
		s->backend->free(s->device, block);
	}
	s->backend->release(s->device, k);
	return fits;
}
