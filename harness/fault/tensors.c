/* How faults find their way in a program, and how they reach tensors on a device. */
#include <stdlib.h>
#include <string.h>

#include "harness/fault/internal.h"
#include "kernels/alloc.h"

const ck_call *ck__recompute_of(const ck_faulty *f, int op)
{
	for (int i = 0; i < f->program->ncalls; i++) {
		const ck_call *c = &f->program->calls[i];
		if (c->code == 'F' && c->id == op && c->recompute)
			return c;
	}
	return NULL;
}

bool ck__output_is_read(const ck_faulty *f, const ck_call *c)
{
	ck_value v = ck__op(f, c)->out[0];
	for (int i = ck__index(f, c) + 1; i < f->program->ncalls; i++) {
		const ck_call *later = &f->program->calls[i];
		if (later->code == 'D')
			continue;
		const ck_op_info *op = ck__op(f, later);
		for (int k = 0; k < op->desc.nin; k++)
			if (op->in[k] == v && later->in[k] != CK_NOWHERE)
				return true;
		if (later->id == c->id)
			return later->code == 'B' && later->out[0] != CK_NOWHERE;
	}
	return false;
}

int ck__last_recompute(const ck_program *p)
{
	int last = p->ncalls - 1;
	while (last >= 0 && !(p->calls[last].code == 'F' && p->calls[last].recompute))
		last--;
	return last;
}

void *ck__read(const ck_faulty *f, ck_value v, const void *device)
{
	const ck_session *s = f->program->session;
	void *host = ck_alloc(1, f->graph->values[v].bytes);
	if (s->backend->sync)
		s->backend->sync(s->device);
	s->backend->read(s->device, host, device, f->graph->values[v].bytes);
	return host;
}

void ck__write(ck_faulty *f, ck_value v, void *device, const void *host)
{
	const ck_session *s = f->program->session;
	s->backend->write(s->device, device, host, f->graph->values[v].bytes);
}

void ck__edit(ck_faulty *f, ck_value v, void *device, ck_edit *edit)
{
	const ck_value_info *info = &f->graph->values[v];
	void *host = ck__read(f, v, device), *before = ck__read(f, v, device);
	edit(f, host, info->dtype, ck_shape_count(info->shape));
	if (memcmp(host, before, info->bytes) != 0) {
		ck__write(f, v, device, host);
		f->hits++;
	}
	free(host);
	free(before);
}

void ck__keep(ck_faulty *f, ck_value v, const void *device)
{
	free(f->kept[v]);
	f->kept[v] = ck__read(f, v, device);
}

void *ck__scratch(ck_faulty *f)
{
	const ck_session *s = f->program->session;
	size_t most = 0;
	for (int v = 0; v < f->graph->nvalues; v++)
		most = f->graph->values[v].bytes > most ? f->graph->values[v].bytes : most;
	ck_err err = {""};
	if (!f->scratch && s->backend->alloc(s->device, most, &f->scratch, &err) != CK_OK)
		f->scratch = NULL;
	return f->scratch;
}
