/* Kernels bound to a graph: one per distinct op, found by the op's hash. */
#include <stdlib.h>

#include "harness/run/run.h"
#include "kernels/alloc.h"

struct ck_kernel_table {
	struct {
		uint64_t hash;
		ck_kernel *kernel;
	} * slots;
	size_t nslots; /* a power of two, at least twice the number of ops */
};

static ck_status find_or_prepare(ck_session *s, const ck_op_info *op, ck_kernel **kernel, ck_err *err)
{
	struct ck_kernel_table *t = s->table;
	uint64_t hash = ck_op_desc_hash(&op->desc, 0);
	size_t at = hash & (t->nslots - 1);
	while (t->slots[at].kernel && t->slots[at].hash != hash)
		at = (at + 1) & (t->nslots - 1);
	if (!t->slots[at].kernel) {
		ck_err why = {0};
		ck_status status = s->backend->prepare(s->device, &op->desc, &t->slots[at].kernel, &why);
		if (status != CK_OK) {
			t->slots[at].kernel = NULL;
			return ck_fail(err, status, "op '%s' on device %s: %s", op->name, s->backend->name, why.text);
		}
		t->slots[at].hash = hash;
	}
	*kernel = t->slots[at].kernel;
	return CK_OK;
}

ck_status ck_session_open(const ck_graph *g, const ck_backend *b, ck_device *d, ck_session **session, ck_err *err)
{
	size_t n = (size_t)g->nops;
	ck_session *s = ck_alloc(1, sizeof *s);
	*s = (ck_session){.graph = g, .backend = b, .device = d};
	s->kernels = ck_alloc(n, sizeof(ck_kernel *));
	s->workspace_forward = ck_alloc(n, sizeof *s->workspace_forward);
	s->workspace_backward = ck_alloc(n, sizeof *s->workspace_backward);
	s->table = ck_alloc(1, sizeof *s->table);
	for (s->table->nslots = 16; s->table->nslots < 2 * n;)
		s->table->nslots *= 2;
	s->table->slots = ck_alloc(s->table->nslots, sizeof *s->table->slots);
	for (int o = 0; o < g->nops; o++) {
		ck_status status = find_or_prepare(s, &g->ops[o], &s->kernels[o], err);
		if (status != CK_OK) {
			ck_session_close(s);
			return status;
		}
		s->workspace_forward[o] = s->kernels[o]->workspace_forward;
		s->workspace_backward[o] = s->kernels[o]->workspace_backward;
	}
	*session = s;
	return CK_OK;
}

void ck_session_close(ck_session *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->table->nslots; i++)
		if (s->table->slots[i].kernel)
			s->backend->release(s->device, s->table->slots[i].kernel);
	free(s->table->slots);
	free(s->table);
	free(s->kernels);
	free(s->workspace_forward);
	free(s->workspace_backward);
	free(s->scaler);
	free(s);
}

ck_workspaces ck_session_workspaces(const ck_session *s)
{
	int states = s->trains ? ck_optimizer_states(&s->optimizer) : 0;
	return (ck_workspaces){s->workspace_forward, s->workspace_backward, states, s->accumulates};
}

void ck_session_rng(ck_session *s, ck_rng_kind rng)
{
	s->rng = rng;
}

void ck_session_train(ck_session *s, const ck_optimizer *o)
{
	s->trains = true;
	s->optimizer = *o;
}

void ck_session_accumulate(ck_session *s)
{
	s->accumulates = true;
}

void ck_session_scale(ck_session *s, const ck_scaler_options *o)
{
	if (!s->scaler)
		s->scaler = ck_alloc(1, sizeof *s->scaler);
	*s->scaler = *o;
}
