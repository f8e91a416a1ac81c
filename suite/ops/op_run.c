#include "suite/ops/op_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/philox.h"

enum { GUARD = 64, POISON = 0xFF };

/* Behind a buffer: NaNs for who reads there, and other ones than are written anywhere. */
static const unsigned char guard_bytes[GUARD] = {
#define FOUR 0xFF, 0x7F, 0xFF, 0x7F
#define SIXTEEN FOUR, FOUR, FOUR, FOUR
    SIXTEEN,
    SIXTEEN,
    SIXTEEN,
    SIXTEEN,
#undef SIXTEEN
#undef FOUR
};

static void *must(void *memory)
{
	if (!memory) {
		fputs("out of memory\n", stderr);
		abort();
	}
	return memory;
}

/* ---- slots --------------------------------------------------------------------------------------------------------------- */

const char *op_slot_name(int slot)
{
	static const char *const names[OP_SLOTS] = {"in[0]",  "in[1]",  "in[2]",    "in[3]",    "in[4]",  "in[5]",
						    "in[6]",  "out[0]", "stash[0]", "stash[1]", "dout",   "din[0]",
						    "din[1]", "din[2]", "din[3]",   "din[4]",   "din[5]", "din[6]"};
	return names[slot];
}

ck_tensor_desc op_slot_desc(const ck_op_desc *d, int slot)
{
	const ck_tensor_desc none = {CK_DTYPE_NONE, {0}};
	if (slot < OP_OUT)
		return slot - OP_IN < d->nin ? d->in[slot - OP_IN] : none;
	if (slot == OP_OUT)
		return d->out[0];
	if (slot == OP_DOUT)
		return ck_op_dout(d);
	if (slot < OP_DOUT)
		return slot - OP_STASH < d->nstash ? d->stash[slot - OP_STASH] : none;
	return d->needs >> (slot - OP_DIN) & 1 ? ck_op_din(d, slot - OP_DIN) : none;
}

/* ---- values -------------------------------------------------------------------------------------------------------------- */

/* Draw i of stream `slot`, of a normal distribution. */
static double normal(int slot, int64_t i)
{
	uint32_t w[4];
	ck_philox_block(42, (uint32_t)slot, 99, (uint64_t)i, w);
	return sqrt(-2 * log((w[0] + 1.0) / 4294967297.0)) * cos(2 * 3.14159265358979323846 * w[1] / 4294967296.0);
}

/* The largest index that an integer input may hold, plus one; 0: it is not an index. */
static int64_t index_range(const ck_op_desc *d, int slot)
{
	return d->kind == CK_EMBEDDING                   ? d->in[1].shape.d[0]
	       : d->kind == CK_XENT && slot == OP_IN + 1 ? ck_shape_last(d->in[0].shape)
							 : 0;
}

static double draw(const ck_op_case *c, int slot, int64_t i, int64_t n)
{
	const ck_op_desc *d = &c->desc;
	double v = normal(slot, i);
	if (slot < OP_OUT && d->in[slot].dtype == CK_I32) {
		int64_t range = index_range(d, slot);
		return range ? floor(fmod(fabs(v) * 1000, (double)range)) : 3;
	}
	if (slot == OP_IN && c->ties)
		return round(v);
	if (slot == OP_IN && d->kind == CK_MAXPOOL) /* all distinct, and far enough apart for differences */
		return 8.0 * (double)(i * 7919 % n) / (double)n - 4;
	if (slot == OP_IN && d->kind == CK_ACT) /* away from ReLU's corner */
		v += v < 0 ? -0.01 : 0.01;
	if (slot == OP_IN + 4 && d->kind == CK_BATCHNORM) /* a variance */
		return 0.5 + fabs(v);
	return slot == OP_IN ? v * c->spread + c->shift : v;
}

/* The nearest number that fits into f32 and t. */
static double rounded(ck_dtype t, double v)
{
	double stored;
	v = (float)v;
	if (!ck_dtype_half(t))
		return v;
	ck_element_put(t, &stored, 0, v);
	return ck_element_get(t, &stored, 0);
}

op_values op_values_draw(const ck_op_case *c)
{
	op_values v = {{NULL}, {0}};
	for (int slot = 0; slot < OP_SLOTS; slot++) {
		const ck_tensor_desc t = op_slot_desc(&c->desc, slot);
		if (!t.dtype)
			continue;
		v.n[slot] = ck_shape_count(t.shape);
		v.at[slot] = must(malloc((size_t)v.n[slot] * sizeof(double)));
		for (int64_t i = 0; i < v.n[slot]; i++)
			v.at[slot][i] = rounded(t.dtype, draw(c, slot, i, v.n[slot]));
	}
	if (c->twice)
		memcpy(v.at[OP_IN + c->desc.nin - 1], v.at[OP_IN], (size_t)v.n[OP_IN] * sizeof(double));
	return v;
}

op_values op_values_copy(const op_values *v)
{
	op_values copy = *v;
	for (int slot = 0; slot < OP_SLOTS; slot++)
		if (v->at[slot]) {
			copy.at[slot] = must(malloc((size_t)v->n[slot] * sizeof(double)));
			memcpy(copy.at[slot], v->at[slot], (size_t)v->n[slot] * sizeof(double));
		}
	return copy;
}

void op_values_free(op_values *v)
{
	for (int slot = 0; slot < OP_SLOTS; slot++)
		free(v->at[slot]);
}

void op_values_round(op_values *v, const ck_op_desc *d, unsigned slots)
{
	for (int slot = 0; slot < OP_SLOTS; slot++)
		for (int64_t i = 0; v->at[slot] && slots >> slot & 1 && i < v->n[slot]; i++)
			v->at[slot][i] = rounded(op_slot_desc(d, slot).dtype, v->at[slot][i]);
}

double op_half_spacing(ck_dtype t, double v)
{
	const int digits = t == CK_BF16 ? 8 : 11,
		  least = t == CK_BF16 ? -126 : -14; /* of the smallest normal number's exponent */
	if (!ck_dtype_half(t))
		return 0;
	int exponent = v == 0 ? least : ilogb(v);
	return ldexp(1, (exponent < least ? least : exponent) - digits);
}

const char *op_difference(const op_values *a, const op_values *b, unsigned slots)
{
	static char text[160];
	for (int slot = 0; slot < OP_SLOTS; slot++)
		for (int64_t i = 0; slots >> slot & 1 && a->at[slot] && b->at[slot] && i < a->n[slot]; i++)
			if (memcmp(&a->at[slot][i], &b->at[slot][i], sizeof(double))) {
				snprintf(text, sizeof text, "%s element %lld of %lld: %.17g against %.17g", op_slot_name(slot),
					 (long long)i, (long long)a->n[slot], a->at[slot][i], b->at[slot][i]);
				return text;
			}
	return NULL;
}

/* ---- between doubles and a device's bytes -------------------------------------------------------------------------------- */

static void put(op_run *r, int slot, const double *v, int64_t n)
{
	void *host = must(malloc(r->bytes[slot]));
	for (int64_t i = 0; i < n; i++)
		ck_element_put(op_slot_desc(&r->desc, slot).dtype, host, i, v[i]);
	r->backend->write(r->device, r->memory[slot], host, r->bytes[slot]);
	free(host);
}

static void get(op_run *r, int slot, const void *from, double *v, int64_t n)
{
	void *host = must(malloc(r->bytes[slot]));
	r->backend->read(r->device, host, from, r->bytes[slot]);
	for (int64_t i = 0; i < n; i++)
		v[i] = ck_element_get(op_slot_desc(&r->desc, slot).dtype, host, i);
	free(host);
}

/* ---- memory with guards -------------------------------------------------------------------------------------------------- */

static void *guarded(op_run *r, size_t bytes)
{
	void *memory = NULL;
	ck_err err = {""};
	cr_assert(r->backend->alloc(r->device, r->offset + bytes + GUARD, &memory, &err) == CK_OK, "%s: %s", r->name, err.text);
	cr_assert((uintptr_t)memory % 64 == 0, "%s: memory is not aligned", r->name);
	memory = (char *)memory + r->offset;
	r->backend->fill(r->device, memory, POISON, bytes);
	r->backend->write(r->device, (char *)memory + bytes, guard_bytes, GUARD);
	return memory;
}

static void check_guard(op_run *r, const void *memory, size_t bytes, const char *what)
{
	unsigned char guard[GUARD];
	r->backend->read(r->device, guard, (const char *)memory + bytes, GUARD);
	cr_assert(!memcmp(guard, guard_bytes, GUARD), "%s: wrote past the end of %s", r->name, what);
}

static void check_guards(op_run *r, size_t workspace)
{
	for (int slot = 0; slot < OP_SLOTS; slot++)
		if (r->memory[slot])
			check_guard(r, r->memory[slot], r->bytes[slot], op_slot_name(slot));
	if (workspace)
		check_guard(r, r->workspace, workspace, "the workspace");
}

/* A workspace of just so many bytes, guard behind it. */
static void *fresh_workspace(op_run *r, size_t bytes)
{
	if (!bytes)
		return NULL;
	r->backend->fill(r->device, r->workspace, POISON, bytes);
	r->backend->write(r->device, (char *)r->workspace + bytes, guard_bytes, GUARD);
	return r->workspace;
}

void op_run_open(op_run *r, const ck_backend *backend, ck_device *device, const ck_op_case *c, unsigned needs)
{
	op_run_open_at(r, backend, device, c, needs, 0);
}

void op_run_open_at(op_run *r, const ck_backend *backend, ck_device *device, const ck_op_case *c, unsigned needs, size_t offset)
{
	ck_err err = {""};
	*r = (op_run){.backend = backend, .device = device, .desc = c->desc, .twice = c->twice, .offset = offset};
	r->desc.needs = needs;
	r->contract = ck_op_contract(&r->desc);
	snprintf(r->name, sizeof r->name, "%s, %d threads, needs %u: CK_CASE='%s'", backend->name, backend->threads(device),
		 needs, c->line);
	cr_assert(backend->prepare(device, &r->desc, &r->kernel, &err) == CK_OK, "%s: %s", r->name, err.text);
	for (int slot = 0; slot < OP_SLOTS; slot++) {
		const ck_tensor_desc t = op_slot_desc(&r->desc, slot);
		if (!t.dtype)
			continue;
		r->bytes[slot] = (size_t)ck_shape_count(t.shape) * ck_dtype_size(t.dtype);
		r->memory[slot] = guarded(r, r->bytes[slot]);
	}
	size_t forward = r->kernel->workspace_forward, backward = r->kernel->workspace_backward;
	r->workspace = guarded(r, forward > backward ? forward : backward);
}

void op_run_close(op_run *r)
{
	for (int slot = 0; slot < OP_SLOTS; slot++)
		if (r->memory[slot])
			r->backend->free(r->device, (char *)r->memory[slot] - r->offset);
	r->backend->free(r->device, (char *)r->workspace - r->offset);
	r->backend->release(r->device, r->kernel);
}

/* ---- calls --------------------------------------------------------------------------------------------------------------- */

/* Where a slot lies in this call: its own memory, or another slot's. */
typedef struct op_places {
	void *at[OP_SLOTS];
} op_places;

static op_places own_places(const op_run *r)
{
	op_places p;
	memcpy(p.at, r->memory, sizeof p.at);
	if (r->twice) {
		p.at[OP_IN + r->desc.nin - 1] = p.at[OP_IN];
		p.at[OP_DIN + r->desc.nin - 1] = p.at[OP_DIN];
	}
	return p;
}

static ck_args args_at(const op_places *p, void *workspace, op_how how)
{
	ck_args a = {.dout = p->at[OP_DOUT],
		     .workspace = workspace,
		     .seed = OP_SEED,
		     .step = OP_STEP,
		     .op = OP_NUMBER,
		     .block = how.block};
	for (int i = 0; i < CK_MAX_IN; i++) {
		a.in[i] = p->at[OP_IN + i];
		a.din[i] = p->at[OP_DIN + i];
	}
	a.out[0] = p->at[OP_OUT];
	for (int i = 0; i < CK_MAX_STASH; i++)
		a.stash[i] = p->at[OP_STASH + i];
	return a;
}

static op_values read_all(op_run *r, const op_places *p, const op_values *v)
{
	op_values result = {{NULL}, {0}};
	if (r->backend->sync)
		r->backend->sync(r->device);
	for (int slot = 0; slot < OP_SLOTS; slot++) {
		const ck_tensor_desc t = op_slot_desc(&r->desc, slot);
		if (!t.dtype)
			continue;
		result.n[slot] = ck_shape_count(t.shape);
		result.at[slot] = must(malloc((size_t)result.n[slot] * sizeof(double)));
		get(r, slot, p->at[slot], result.at[slot], result.n[slot]);
		if (slot == OP_DOUT) /* the call's input, whatever lies over it now */
			memcpy(result.at[slot], v->at[slot], (size_t)result.n[slot] * sizeof(double));
	}
	return result;
}

op_values op_forward(op_run *r, const op_values *v, op_how how)
{
	op_places p = own_places(r);
	for (int slot = OP_IN; slot < OP_DOUT; slot++)
		if (r->memory[slot] && slot < OP_OUT)
			put(r, slot, v->at[slot], v->n[slot]);
		else if (r->memory[slot])
			r->backend->fill(r->device, r->memory[slot], POISON, r->bytes[slot]);
	if (how.forward_over)
		p.at[OP_OUT] = p.at[OP_IN + r->contract.inplace_forward];
	size_t workspace = r->kernel->workspace_forward;
	ck_args a = args_at(&p, fresh_workspace(r, workspace), how);
	a.dout = NULL;
	for (int i = 0; i < CK_MAX_IN; i++) {
		a.din[i] = NULL;
		a.state[i] = r->contract.state >> i & 1 && !how.recompute ? p.at[OP_IN + i] : NULL;
	}
	r->kernel->forward(r->kernel, &a);
	op_values result = read_all(r, &p, v);
	check_guards(r, workspace);
	return result;
}

/* What a backward may read besides dout, as slots. */
static unsigned read_slots(const op_run *r)
{
	return r->contract.reads_in << OP_IN | r->contract.reads_out << OP_OUT | r->contract.reads_stash << OP_STASH;
}

/* NaN patterns; other indices where a slot holds indices, since a kernel may trust those. */
static void spoil(op_run *r, int slot, const op_values *v)
{
	int64_t range = op_slot_desc(&r->desc, slot).dtype == CK_I32 ? index_range(&r->desc, slot) : 0;
	r->backend->fill(r->device, r->memory[slot], POISON, r->bytes[slot]);
	if (!range)
		return;
	double *other = must(malloc((size_t)v->n[slot] * sizeof(double)));
	for (int64_t e = 0; e < v->n[slot]; e++)
		other[e] = (double)(range - 1) - v->at[slot][e];
	put(r, slot, other, v->n[slot]);
	free(other);
}

static void fill_backward(op_run *r, const op_values *v, op_how how)
{
	for (int slot = 0; slot < OP_SLOTS; slot++) {
		if (!r->memory[slot])
			continue;
		bool poison = how.poison >> slot & 1, gradient = slot >= OP_DIN;
		if (gradient && !(how.add >> (slot - OP_DIN) & 1))
			r->backend->fill(r->device, r->memory[slot], POISON, r->bytes[slot]);
		else if (poison)
			spoil(r, slot, v);
		else
			put(r, slot, v->at[slot], v->n[slot]);
	}
}

/* Moves a gradient, and with it the other one that shares its buffer. */
static void lay_over(const op_run *r, op_places *p, int slot, void *memory)
{
	p->at[slot] = memory;
	if (r->twice && slot == OP_DIN)
		p->at[OP_DIN + r->desc.nin - 1] = memory;
}

op_values op_backward(op_run *r, const op_values *v, op_how how)
{
	op_places p = own_places(r);
	fill_backward(r, v, how);
	if (how.over_dout)
		lay_over(r, &p, OP_DIN + r->contract.inplace_backward, p.at[OP_DOUT]);
	if (how.over_own)
		lay_over(r, &p, OP_DIN + r->contract.inplace_backward_own, p.at[OP_IN + r->contract.inplace_backward_own]);
	op_places given = p;
	for (int slot = OP_IN; slot < OP_DOUT && !how.every_pointer; slot++)
		if (!(read_slots(r) >> slot & 1))
			given.at[slot] = NULL;
	if (how.no_dout)
		given.at[OP_DOUT] = NULL;
	size_t workspace = r->kernel->workspace_backward;
	ck_args a = args_at(&given, fresh_workspace(r, workspace), how);
	if (how.no_dout)
		a.dloss = v->at[OP_DOUT][0];
	for (int i = 0; i < r->desc.nin; i++)
		a.acc[i] = how.add >> i & 1;
	if (r->twice && r->desc.needs & 1)
		a.acc[r->desc.nin - 1] = true;
	r->kernel->backward(r->kernel, &a);
	op_values result = read_all(r, &p, v);
	check_guards(r, workspace);
	return result;
}

op_values op_gradients(op_run *r, const op_values *v)
{
	op_values saved = op_forward(r, v, (op_how){0});
	for (int slot = OP_DIN; slot < OP_SLOTS; slot++)
		for (int64_t e = 0; e < saved.n[slot]; e++)
			saved.at[slot][e] = v->at[slot][e];
	op_values g = op_backward(r, &saved, (op_how){0});
	op_values_free(&saved);
	return g;
}

bool op_touches(const op_run *r, int i, int64_t e)
{
	int64_t width = ck_shape_last(r->desc.in[i].shape);
	return r->contract.grad_parts[i] == 7 || r->contract.grad_parts[i] >> (3 * (e % width) / width) & 1;
}

ck_device *op_device(const ck_backend *b, int threads)
{
	ck_device *device = NULL;
	ck_err err = {""};
	ck_open_options options = device_options(b, threads);
	cr_expect(b->open(&options, &device, &err) == CK_OK, "%s: %s", b->name, err.text);
	return device;
}
