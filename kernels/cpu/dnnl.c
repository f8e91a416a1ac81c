#include "kernels/cpu/dnnl.h"

#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "kernels/alloc.h"
#include "kernels/cpu/dnnl_api.h"
#include "kernels/cpu/stage.h"

struct ck_dnnl {
	int threads;
	const ck_vec_set *vec;
	dnnl_engine_t engine;
	dnnl_stream_t stream;
};

enum { MAX_STEPS = 10, MAX_SLOTS = 16, MAX_STEP_ARGS = 6, ALIGN = 64, IN_WORKSPACE = -1 };

/* A memory object, and where its bytes are in a run: one of the caller's tensors, or a stretch of the workspace. */
typedef struct ck_slot {
	dnnl_memory_t memory;
	int place; /* ck_place or IN_WORKSPACE */
	size_t offset;
} ck_slot;

typedef struct ck_step {
	dnnl_primitive_t primitive;
	dnnl_exec_arg_t args[MAX_STEP_ARGS];
	int nargs;
	/* primitive NULL: a tensor of the caller's to its float32 copy in the workspace, or back. */
	ck_view view;
	enum ck_place place;
	size_t offset;
	bool back;
} ck_step;

struct ck_prim {
	const ck_dnnl *dnnl;
	ck_slot slots[MAX_SLOTS];
	ck_step steps[MAX_STEPS];
	int nslots, nsteps;
	size_t workspace;
};

/* ---- engine ------------------------------------------------------------------------------------------------------------- */

ck_status ck__dnnl_open(int threads, const ck_vec_set *vec, ck_dnnl **dnnl, ck_err *err)
{
	ck_dnnl *d = ck_alloc(1, sizeof(*d));
	d->threads = threads;
	d->vec = vec;
	if (dnnl_engine_create(&d->engine, dnnl_cpu, 0) != dnnl_success ||
	    dnnl_stream_create(&d->stream, d->engine, dnnl_stream_in_order) != dnnl_success) {
		ck__dnnl_close(d);
		return ck_fail(err, CK_MISSING, "oneDNN gives no CPU engine; install a build of it with a CPU runtime");
	}
	*dnnl = d;
	return CK_OK;
}

void ck__dnnl_close(ck_dnnl *d)
{
	if (!d)
		return;
	if (d->stream)
		dnnl_stream_destroy(d->stream);
	if (d->engine)
		dnnl_engine_destroy(d->engine);
	free(d);
}

/* ---- building a ck_prim -------------------------------------------------------------------------------------------------- */

/* What is being built. The first failure sticks in `status`; later calls then do nothing. */
typedef struct ck_builder {
	ck_dnnl *dnnl;
	ck_prim *prim;
	dnnl_primitive_attr_t attr; /* of the kernel */
	dnnl_post_ops_t post;       /* of attr */
	bool staged;                /* 16-bit tensors are copied to float32 and back */
	dnnl_status_t status;
} ck_builder;

static bool ok(ck_builder *b, dnnl_status_t status)
{
	if (b->status == dnnl_success)
		b->status = status;
	return b->status == dnnl_success;
}

static dnnl_data_type_t data_type(ck_dtype t)
{
	switch (t) {
	case CK_F32:
		return dnnl_f32;
	case CK_BF16:
		return dnnl_bf16;
	case CK_F16:
		return dnnl_f16;
	default:
		return dnnl_data_type_undef; /* refused when the primitive is made */
	}
}

/* As the kernel has it. */
static dnnl_data_type_t made_type(const ck_builder *b, const ck_view *v)
{
	return data_type(b->staged && ck_dtype_half(v->dtype) ? CK_F32 : v->dtype);
}

static api_md plain_md(ck_builder *b, const ck_view *v)
{
	api_md md = NULL;
	if (v->nd)
		ok(b, md_strides(&md, v->nd, v->d, made_type(b, v), v->stride));
	return md;
}

static api_md wanted_md(ck_builder *b, const ck_view *v)
{
	if (!v->pack)
		return plain_md(b, v);
	api_md md = NULL;
	ok(b, md_any(&md, v->nd, v->d, made_type(b, v)));
	return md;
}

/* An attribute with the scratchpad in our hands and full precision whatever the environment says. */
static dnnl_primitive_attr_t new_attr(ck_builder *b, dnnl_post_ops_t *post)
{
	dnnl_primitive_attr_t attr = NULL;
	if (ok(b, dnnl_primitive_attr_create(&attr)) &&
	    ok(b, dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user)))
		ok(b, dnnl_primitive_attr_set_fpmath_mode(attr, dnnl_fpmath_mode_strict));
	ok(b, dnnl_post_ops_create(post));
	return attr;
}

static void free_attr(dnnl_primitive_attr_t attr, dnnl_post_ops_t post)
{
	if (attr)
		dnnl_primitive_attr_destroy(attr);
	if (post)
		dnnl_post_ops_destroy(post);
}

/* A memory object in the workspace (place IN_WORKSPACE) or for a caller's tensor. */
static dnnl_memory_t add_slot(ck_builder *b, api_const_md md, int place)
{
	ck_prim *p = b->prim;
	ck_slot *s = &p->slots[p->nslots];
	ok(b, p->nslots < MAX_SLOTS ? dnnl_success : dnnl_invalid_arguments);
	if (b->status != dnnl_success || !ok(b, dnnl_memory_create(&s->memory, md, b->dnnl->engine, DNNL_MEMORY_NONE)))
		return NULL;
	s->place = place;
	if (place == IN_WORKSPACE) {
		s->offset = p->workspace;
		p->workspace += (dnnl_memory_desc_get_size(md) + ALIGN - 1) / ALIGN * ALIGN;
	}
	p->nslots++;
	return s->memory;
}

static void add_arg(ck_step *s, int arg, dnnl_memory_t memory)
{
	s->args[s->nargs++] = (dnnl_exec_arg_t){arg, memory};
}

/* Whether another step can be appended: nothing has failed, and the program is not full. */
static bool has_room(ck_builder *b)
{
	return ok(b, b->prim->nsteps < MAX_STEPS ? dnnl_success : dnnl_invalid_arguments);
}

/* Makes the primitive and appends the step to the program. Takes pd over. */
static void add_step(ck_builder *b, dnnl_primitive_desc_t pd, ck_step step)
{
	if (b->status == dnnl_success) {
		api_const_md scratch = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
		if (scratch && dnnl_memory_desc_get_size(scratch))
			add_arg(&step, DNNL_ARG_SCRATCHPAD, add_slot(b, scratch, IN_WORKSPACE));
		if (has_room(b) && ok(b, dnnl_primitive_create(&step.primitive, pd)))
			b->prim->steps[b->prim->nsteps++] = step;
	}
	if (pd)
		dnnl_primitive_desc_destroy(pd);
}

/* Appends a copy between memory objects, which may differ in layout; with accumulate, adds to what is there. */
static void add_copy(ck_builder *b, dnnl_memory_t from, dnnl_memory_t to, bool accumulate)
{
	dnnl_primitive_desc_t pd = NULL;
	dnnl_post_ops_t post = NULL;
	dnnl_primitive_attr_t attr = new_attr(b, &post);
	api_const_md from_md = NULL, to_md = NULL;
	if (b->status == dnnl_success && accumulate && ok(b, api_append_sum(post, 1)))
		ok(b, dnnl_primitive_attr_set_post_ops(attr, post));
	if (b->status == dnnl_success && ok(b, dnnl_memory_get_memory_desc(from, &from_md)) &&
	    ok(b, dnnl_memory_get_memory_desc(to, &to_md)))
		ok(b, dnnl_reorder_primitive_desc_create(&pd, from_md, b->dnnl->engine, to_md, b->dnnl->engine, attr));
	add_step(b, pd, (ck_step){.args = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}, .nargs = 2});
	free_attr(attr, post);
}

/* One operand of the kernel. */
typedef struct ck_operand {
	int arg; /* DNNL_ARG_… */
	enum ck_place place;
	const ck_view *view; /* as the caller has it */
	bool result;         /* written by the kernel, */
	bool added;          /* which reads it too */
} ck_operand;

static void add_conversion(ck_builder *b, const ck_operand *o, size_t offset, bool back)
{
	if (has_room(b))
		b->prim->steps[b->prim->nsteps++] =
		    (ck_step){.view = *o->view, .place = o->place, .offset = offset, .back = back};
}

/* The program around the kernel `pd` (taken over): copies in, kernel, copy out. Operands that do not exist are left out.
 * With `aside` the kernel writes its result elsewhere, to be added to the caller's. */
static void assemble(ck_builder *b, dnnl_primitive_desc_t pd, const ck_operand *operands, int n, bool aside)
{
	ck_step kernel = {.nargs = 0};
	dnnl_memory_t inner_result = NULL, result = NULL;
	const ck_operand *narrowed = NULL;
	size_t wide = 0;
	for (int i = 0; i < n && b->status == dnnl_success; i++) {
		const ck_operand *o = &operands[i];
		if (!o->view->nd)
			continue;
		api_const_md inner_md = dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, o->arg);
		api_md md = plain_md(b, o->view);
		bool staged = b->staged && ck_dtype_half(o->view->dtype);
		size_t at = b->prim->workspace;
		dnnl_memory_t outer = add_slot(b, md, staged ? IN_WORKSPACE : (int)o->place), inner = outer;
		if (staged && (!o->result || o->added))
			add_conversion(b, o, at, false);
		if (staged && o->result)
			narrowed = o, wide = at;
		if (b->status == dnnl_success && ((o->result && aside) || !dnnl_memory_desc_equal(inner_md, md)))
			inner = add_slot(b, inner_md, IN_WORKSPACE);
		md_free(md);
		add_arg(&kernel, o->arg, inner);
		if (o->result)
			inner_result = inner, result = outer;
		else if (inner != outer)
			add_copy(b, outer, inner, false);
	}
	add_step(b, pd, kernel);
	if (inner_result != result)
		add_copy(b, inner_result, result, aside);
	if (narrowed)
		add_conversion(b, narrowed, wide, true);
}

static ck_builder begin(ck_dnnl *dnnl, bool staged)
{
	ck_builder b = {.dnnl = dnnl, .prim = ck_alloc(1, sizeof(ck_prim)), .staged = staged, .status = dnnl_success};
	b.prim->dnnl = dnnl;
	omp_set_num_threads(dnnl->threads); /* oneDNN divides its work by what it finds here */
	b.attr = new_attr(&b, &b.post);
	return b;
}

static ck_status finish(ck_builder *b, const char *what, ck_prim **prim, ck_err *err)
{
	free_attr(b->attr, b->post);
	if (b->status == dnnl_success) {
		*prim = b->prim;
		return CK_OK;
	}
	ck__prim_free(b->prim);
	return ck_fail(err, b->status == dnnl_out_of_memory ? CK_MISSING : CK_USAGE, "oneDNN makes no %s of this kind: %s",
		       what, dnnl_status2str(b->status));
}

/* 16-bit work for which oneDNN has only its reference code is not made: staged it is a hundred times faster. */
static void refuse_reference(ck_builder *b, const_dnnl_primitive_desc_t pd, const ck_view *v)
{
	const char *how = "";
	if (b->status == dnnl_success && !b->staged && ck_dtype_half(v->dtype) &&
	    ok(b, dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &how)) && strncmp(how, "ref", 3) == 0)
		b->status = dnnl_unimplemented;
}

/* ---- matrix products ----------------------------------------------------------------------------------------------------- */

/* What is there already comes first, divided by the scale: oneDNN has reference code only for a sum after other operations. A result
 * that is packed is added when it is copied back. */
static void matmul_post_ops(ck_builder *b, const ck_matmul *m, api_const_md r)
{
	if (b->status != dnnl_success)
		return;
	if (m->accumulate && !m->c.pack)
		ok(b, api_append_sum(b->post, 1 / m->scale));
	if (m->scale != 1)
		ok(b, api_append_eltwise(b->post, dnnl_eltwise_linear, m->scale));
	if (r)
		ok(b, dnnl_post_ops_append_binary(b->post, dnnl_binary_add, r));
	ok(b, dnnl_primitive_attr_set_post_ops(b->attr, b->post));
}

static ck_status make_matmul(ck_dnnl *dnnl, const ck_matmul *m, bool staged, ck_prim **prim, ck_err *err)
{
	ck_builder b = begin(dnnl, staged);
	api_md a = wanted_md(&b, &m->a), w = wanted_md(&b, &m->b), c = wanted_md(&b, &m->c);
	api_md bias = plain_md(&b, &m->bias), r = plain_md(&b, &m->r);
	dnnl_primitive_desc_t pd = NULL;
	matmul_post_ops(&b, m, r);
	if (b.status == dnnl_success)
		ok(&b, api_matmul(&pd, dnnl->engine, a, w, bias, c, b.attr));
	refuse_reference(&b, pd, &m->a);
	int post_r = DNNL_ARG_ATTR_MULTIPLE_POST_OP(m->scale != 1) | DNNL_ARG_SRC_1; /* by its place among them */
	assemble(&b, pd,
		 (ck_operand[]){{DNNL_ARG_SRC, CK_AT_A, &m->a, false, false},
				{DNNL_ARG_WEIGHTS, CK_AT_B, &m->b, false, false},
				{DNNL_ARG_BIAS, CK_AT_BIAS, &m->bias, false, false},
				{post_r, CK_AT_R, &m->r, false, false},
				{DNNL_ARG_DST, CK_AT_C, &m->c, true, m->accumulate}},
		 5, m->accumulate && m->c.pack);
	md_free(a), md_free(w), md_free(c), md_free(bias), md_free(r);
	return finish(&b, "matrix product", prim, err);
}

ck_status ck__prim_matmul(ck_dnnl *dnnl, const ck_matmul *m, ck_prim **prim, ck_err *err)
{
	bool half = ck_dtype_half(m->a.dtype);
	if (half && make_matmul(dnnl, m, false, prim, &(ck_err){""}) == CK_OK)
		return CK_OK;
	return make_matmul(dnnl, m, half, prim, err);
}

/* ---- convolutions -------------------------------------------------------------------------------------------------------- */

/* Padding at the far end: what the window needs to end where the last output place does. */
static int64_t pad_high(const ck_conv *c, int axis)
{
	int window = c->b.nd - 2 + axis;
	return (c->c.d[2 + axis] - 1) * c->stride + c->b.d[window] - c->a.d[2 + axis] - c->pad;
}

/* oneDNN counts the places of all images of a batch in 32 bits, and divides by zero beyond. */
static bool too_many_places(const ck_view *image)
{
	return image->d[0] * image->d[2] * image->d[3] > INT32_MAX;
}

static ck_status make_conv(ck_dnnl *dnnl, const ck_conv *v, bool staged, ck_prim **prim, ck_err *err)
{
	ck_builder b = begin(dnnl, staged);
	ck_view weights = v->b; /* of the forward, which comes first in any case; their gradient may be of another dtype */
	weights.dtype = v->a.dtype;
	api_md x = wanted_md(&b, &v->a), w = wanted_md(&b, &v->b), y = wanted_md(&b, &v->c), bias = plain_md(&b, &v->bias);
	api_md w_forward = wanted_md(&b, &weights);
	dnnl_dims_t stride = {v->stride, v->stride}, low = {v->pad, v->pad}, high = {pad_high(v, 0), pad_high(v, 1)};
	dnnl_primitive_desc_t pd = NULL, hint = NULL;
	if (b.status == dnnl_success)
		ok(&b, api_conv_forward(&hint, dnnl->engine, x, w_forward, bias, y, stride, low, high, b.attr));
	if (b.status == dnnl_success && v->pass == CK_CONV_DATA)
		ok(&b, api_conv_data(&pd, dnnl->engine, x, w, y, stride, low, high, hint, b.attr));
	if (b.status == dnnl_success && v->pass == CK_CONV_WEIGHTS)
		ok(&b, api_conv_weights(&pd, dnnl->engine, x, w, y, stride, low, high, hint, b.attr));
	if (v->pass == CK_CONV_FORWARD)
		pd = hint, hint = NULL;
	refuse_reference(&b, pd, &v->c);
	static const int args[][3] = {[CK_CONV_FORWARD] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
				      [CK_CONV_DATA] = {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST},
				      [CK_CONV_WEIGHTS] = {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST}};
	const int *arg = args[v->pass];
	assemble(&b, pd,
		 (ck_operand[]){{arg[0], CK_AT_A, &v->a, v->pass == CK_CONV_DATA, false},
				{arg[1], CK_AT_B, &v->b, v->pass == CK_CONV_WEIGHTS, false},
				{arg[2], CK_AT_C, &v->c, v->pass == CK_CONV_FORWARD, false},
				{DNNL_ARG_BIAS, CK_AT_BIAS, &v->bias, false, false}},
		 4, v->accumulate);
	if (hint)
		dnnl_primitive_desc_destroy(hint);
	md_free(x), md_free(w), md_free(y), md_free(bias), md_free(w_forward);
	return finish(&b, "convolution", prim, err);
}

ck_status ck__prim_conv(ck_dnnl *dnnl, const ck_conv *v, ck_prim **prim, ck_err *err)
{
	bool half = ck_dtype_half(v->a.dtype);
	if (too_many_places(&v->a) || too_many_places(&v->c))
		return ck_fail(
		    err, CK_USAGE,
		    "a batch of images of %lldx%lld has over 2^31 places, more than oneDNN can count; take a smaller "
		    "batch or image",
		    (long long)v->a.d[2], (long long)v->a.d[3]);
	if (half && make_conv(dnnl, v, false, prim, &(ck_err){""}) == CK_OK)
		return CK_OK;
	return make_conv(dnnl, v, half, prim, err);
}

/* ---- what there is ------------------------------------------------------------------------------------------------------- */

/* How a product of this type is made: oneDNN's name for the kernel, or NULL where it is made in float32. */
static const char *kernel_of(ck_dnnl *dnnl, ck_dtype t, ck_prim **prim)
{
	const ck_view square = {.dtype = t, .nd = 2, .d = {64, 64}, .stride = {64, 1}};
	const ck_matmul m = {.a = square, .b = square, .c = square, .scale = 1};
	const char *how = NULL;
	const_dnnl_primitive_desc_t pd;
	if (make_matmul(dnnl, &m, false, prim, &(ck_err){""}) == CK_OK &&
	    dnnl_primitive_get_primitive_desc((*prim)->steps[0].primitive, &pd) == dnnl_success)
		dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &how);
	return how;
}

void ck__dnnl_describe(ck_dnnl *dnnl, char *text, size_t size)
{
	const dnnl_version_t *v = dnnl_version();
	ck_prim *bf16 = NULL, *f16 = NULL;
	const char *stored = "stored, float32 arithmetic", *bf16_how = kernel_of(dnnl, CK_BF16, &bf16),
		   *f16_how = kernel_of(dnnl, CK_F16, &f16);
	snprintf(text, size, "oneDNN %d.%d.%d (bf16: %s; fp16: %s)", v->major, v->minor, v->patch, bf16_how ? bf16_how : stored,
		 f16_how ? f16_how : stored);
	ck__prim_free(bf16);
	ck__prim_free(f16);
}

/* ---- running ------------------------------------------------------------------------------------------------------------- */

void ck__prim_free(ck_prim *p)
{
	if (!p)
		return;
	for (int i = 0; i < p->nsteps; i++)
		if (p->steps[i].primitive)
			dnnl_primitive_destroy(p->steps[i].primitive);
	for (int i = 0; i < p->nslots; i++)
		dnnl_memory_destroy(p->slots[i].memory);
	free(p);
}

size_t ck__prim_workspace(const ck_prim *p)
{
	return p ? p->workspace : 0;
}

static void must(dnnl_status_t status, const char *what)
{
	if (status == dnnl_success)
		return;
	fprintf(stderr, "ckbench: oneDNN cannot %s: %s; free some memory and run again\n", what, dnnl_status2str(status));
	exit(CK_MISSING);
}

static void convert(const ck_dnnl *d, const ck_step *s, const void *tensor, void *workspace)
{
	void *wide = (char *)workspace + s->offset; /* float32 */
	if (s->back)
		ck__stage_narrow(d->vec, d->threads, &s->view, wide, (void *)tensor);
	else
		ck__stage_widen(d->vec, d->threads, &s->view, tensor, wide);
}

void ck__prim_run(const ck_prim *p, const void *const at[CK_PLACES], void *workspace)
{
	omp_set_num_threads(p->dnnl->threads);
	for (int i = 0; i < p->nslots; i++) {
		const ck_slot *s = &p->slots[i];
		const void *bytes = s->place == IN_WORKSPACE ? (char *)workspace + s->offset : at[s->place];
		must(dnnl_memory_set_data_handle(s->memory, (void *)bytes), "take a tensor's address");
	}
	for (int i = 0; i < p->nsteps; i++)
		if (p->steps[i].primitive)
			must(
			    dnnl_primitive_execute(p->steps[i].primitive, p->dnnl->stream, p->steps[i].nargs, p->steps[i].args),
			    "run a kernel");
		else
			convert(p->dnnl, &p->steps[i], at[p->steps[i].place], workspace);
	must(dnnl_stream_wait(p->dnnl->stream), "end a kernel");
}
