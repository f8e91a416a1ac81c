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

bool ck__output_goes_on(const ck_faulty *f, const ck_call *c)
{
	ck_value v = ck__op(f, c)->out[0];
	for (int i = ck__index(f, c) + 1; i < f->program->ncalls; i++) {
		const ck_call *later = &f->program->calls[i];
		if (later->code == 'D')
			continue;
		if (later->id == c->id)
			return false;
		const ck_op_info *op = ck__op(f, later);
		for (int k = 0; k < op->desc.nin; k++)
			if (op->in[k] == v && later->in[k] != CK_NOWHERE)
				return true;
	}
	return false;
}

bool ck__output_is_read(const ck_faulty *f, const ck_call *c)
{
	const ck_call *end = f->program->calls + f->program->ncalls, *next = c + 1;
	while (next < end && (next->code == 'D' || next->id != c->id))
		next++;
	return ck__output_goes_on(f, c) || (next < end && next->code == 'B' && next->out[0] != CK_NOWHERE);
}

int ck__last_recompute(const ck_program *p)
{
	int last = p->ncalls - 1;
	while (last >= 0 && !(p->calls[last].code == 'F' && p->calls[last].recompute))
		last--;
	return last;
}

size_t ck__bytes(ck_tensor_desc t)
{
	return (size_t)ck_shape_count(t.shape) * ck_dtype_size(t.dtype);
}

void *ck__read(const ck_faulty *f, ck_tensor_desc t, const void *device)
{
	const ck_session *s = f->program->session;
	void *host = ck_alloc(1, ck__bytes(t));
	if (s->backend->sync)
		s->backend->sync(s->device);
	s->backend->read(s->device, host, device, ck__bytes(t));
	return host;
}

void ck__write(const ck_faulty *f, ck_tensor_desc t, void *device, const void *host)
{
	const ck_session *s = f->program->session;
	s->backend->write(s->device, device, host, ck__bytes(t));
}

void ck__change(ck_faulty *f, ck_tensor_desc t, void *device, const void *host)
{
	void *before = ck__read(f, t, device);
	if (memcmp(host, before, ck__bytes(t)) != 0) {
		ck__write(f, t, device, host);
		f->hits++;
	}
	free(before);
}

void ck__edit(ck_faulty *f, ck_tensor_desc t, void *device, ck_edit *edit)
{
	void *host = ck__read(f, t, device);
	edit(f, host, t.dtype, ck_shape_count(t.shape));
	ck__change(f, t, device, host);
	free(host);
}

void *ck__convert(ck_tensor_desc t, const void *host, ck_dtype to)
{
	int64_t n = ck_shape_count(t.shape);
	void *converted = ck_alloc((size_t)n, ck_dtype_size(to));
	for (int64_t i = 0; i < n; i++)
		ck_element_put(to, converted, i, ck_element_get(t.dtype, host, i));
	return converted;
}

void ck__keep(ck_faulty *f, ck_value v, ck_tensor_desc t, const void *device)
{
	free(f->kept[v]);
	f->kept[v] = ck__read(f, t, device);
}

void *ck__scaled_weight(const ck_faulty *f, ck_value v, double factor)
{
	ck_value master = ck__master(f, v);
	ck_tensor_desc t = ck__tensor(f, master);
	void *host = ck__read(f, t, f->memory.base + f->program->layout.persistent[master]);
	for (int64_t i = 0; i < ck_shape_count(t.shape); i++)
		ck_element_put(t.dtype, host, i, ck_element_get(t.dtype, host, i) * factor);
	void *scaled = ck__convert(t, host, f->graph->values[v].dtype);
	free(host);
	return scaled;
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
