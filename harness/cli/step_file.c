#include "harness/cli/step_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/alloc.h"

/* ---- which tensors ------------------------------------------------------------------------------------------------------- */

/* Frameworks index and count with 64 bits. */
static const char *dtype_of(ck_dtype t)
{
	switch (t) {
	case CK_F64:
		return "F64";
	case CK_F32:
		return "F32";
	case CK_BF16:
		return "BF16";
	case CK_F16:
		return "F16";
	case CK_I32:
		return "I64";
	case CK_U8:
		return "U8";
	default:
		abort(); /* a tensor has a dtype */
	}
}

static ck_step_tensor *append(ck_step_tensors *t, ck_step_role role, int id, char *name)
{
	t->at = ck_grow(t->at, &t->capacity, t->n + 1, sizeof *t->at);
	t->at[t->n] = (ck_step_tensor){.role = role, .id = id, .name = name, .axis = {0, 1, 2, 3}};
	return &t->at[t->n++];
}

static void describe(ck_step_tensor *t, ck_dtype dtype, ck_shape shape, bool one_number)
{
	t->dtype = dtype_of(dtype);
	t->shape.nd = one_number ? 0 : shape.nd;
	for (int i = 0; i < t->shape.nd; i++)
		t->shape.d[i] = shape.d[t->axis[i]];
}

static ck_value target_of(const ck_graph *g)
{
	return g->ops[g->values[g->loss].producer].in[1];
}

ck_value ck_step_logits(const ck_graph *g)
{
	return g->ops[g->values[g->loss].producer].in[0];
}

/* Value v in the given role, its name behind `prefix`. */
static void add_value(ck_step_tensors *t, const ck_model *m, ck_step_role role, ck_value v, const char *prefix)
{
	const ck_value_info *info = &t->graph->values[v];
	ck_usual usual = ck_model_usual(m, info);
	const char *name = role == CK_STEP_LOGITS     ? "logits"
			   : role == CK_STEP_LOSS     ? "loss"
			   : v == target_of(t->graph) ? "target"
			   : info->kind == CK_INPUT   ? "input"
						      : usual.name;
	ck_step_tensor *one = append(t, role, v, ck_text("%s%s", prefix, name));
	if (role != CK_STEP_LOGITS)
		memcpy(one->axis, usual.axis, sizeof one->axis);
	bool counter = info->kind == CK_BUFFER && info->dtype == CK_I32;
	describe(one, info->dtype, info->shape, counter || role == CK_STEP_LOSS);
}

ck_step_tensors ck_step_tensors_of(const ck_case *c)
{
	const ck_graph *g = c->graph;
	const ck_model *m = c->settings.model;
	ck_step_tensors t = {.graph = g};
	for (int v = 0; v < g->nvalues; v++) {
		const ck_value_info *info = &g->values[v];
		if (ck_value_managed(info) || v == g->loss)
			continue;
		add_value(&t, m, CK_STEP_VALUE, v, "");
		if (info->kind == CK_BUFFER)
			add_value(&t, m, CK_STEP_AFTER, v, "after/");
		if (info->kind == CK_PARAM && info->needs_grad)
			add_value(&t, m, CK_STEP_GRADIENT, v, "grad/");
	}
	add_value(&t, m, CK_STEP_LOGITS, ck_step_logits(g), "");
	add_value(&t, m, CK_STEP_LOSS, g->loss, "");
	for (int o = 0; o < g->nops; o++)
		if (g->ops[o].contract.random)
			describe(append(&t, CK_STEP_MASK, o, ck_text("mask/%s", g->ops[o].name)), CK_U8,
				 g->ops[o].desc.out[0].shape, false);
	return t;
}

void ck_step_tensors_free(ck_step_tensors *t)
{
	for (int i = 0; i < t->n; i++)
		free(t->at[i].name);
	free(t->at);
	*t = (ck_step_tensors){0};
}

/* ---- to and fro ---------------------------------------------------------------------------------------------------------- */

enum way { TO_FILE, FROM_FILE };

/* n elements, `stride` elements apart in host memory and side by side in the file. */
static void move_row(enum way way, bool widen, size_t each, int64_t n, int64_t stride, char *file, char *host)
{
	for (int64_t i = 0; i < n; i++, host += (size_t)stride * each) {
		if (widen && way == TO_FILE)
			((int64_t *)file)[i] = *(int32_t *)host;
		else if (widen)
			*(int32_t *)host = (int32_t)((int64_t *)file)[i];
		else if (way == TO_FILE)
			memcpy(file + (size_t)i * each, host, each);
		else
			memcpy(host, file + (size_t)i * each, each);
	}
}

/* The file's extents with leading ones, and how far apart our elements are along each. */
static void walk_of(const ck_step_tensor *t, int64_t d[CK_MAX_DIMS], int64_t stride[CK_MAX_DIMS])
{
	int64_t ours[CK_MAX_DIMS] = {1, 1, 1, 1}, step[CK_MAX_DIMS] = {0}, next = 1;
	int nd = t->shape.nd, lead = CK_MAX_DIMS - nd;
	for (int i = 0; i < nd; i++)
		ours[t->axis[i]] = t->shape.d[i];
	for (int i = nd - 1; i >= 0; next *= ours[i--])
		step[i] = next;
	for (int i = 0; i < CK_MAX_DIMS; i++) {
		d[i] = i < lead ? 1 : t->shape.d[i - lead];
		stride[i] = i < lead ? 0 : step[t->axis[i - lead]];
	}
}

static void move(enum way way, const ck_step_tensor *t, const ck_safetensor *in_file, char *file, char *host)
{
	bool widen = strcmp(t->dtype, "I64") == 0;
	size_t each = widen ? sizeof(int32_t) : in_file->each; /* of ours */
	int64_t d[CK_MAX_DIMS], stride[CK_MAX_DIMS];
	walk_of(t, d, stride);
	for (int64_t a = 0; a < d[0]; a++)
		for (int64_t b = 0; b < d[1]; b++)
			for (int64_t c = 0; c < d[2]; c++, file += (size_t)d[3] * in_file->each) {
				int64_t from = a * stride[0] + b * stride[1] + c * stride[2];
				move_row(way, widen, each, d[3], stride[3], file, host + (size_t)from * each);
			}
}

void ck_step_put(const ck_step_tensors *t, int i, const ck_safetensors *f, const void *host)
{
	const ck_safetensor *in_file = ck_safetensors_find(f, t->at[i].name);
	move(TO_FILE, &t->at[i], in_file, ck_safetensors_data(f, in_file), (char *)host);
}

void ck_step_get(const ck_step_tensors *t, int i, const ck_safetensors *f, void *host)
{
	const ck_safetensor *in_file = ck_safetensors_find(f, t->at[i].name);
	move(FROM_FILE, &t->at[i], in_file, ck_safetensors_data(f, in_file), host);
}

/* ---- checking ------------------------------------------------------------------------------------------------------------ */

static const char remedy[] = "give a file that ckbench dump wrote for the same model, settings and device";

static bool is_start(const ck_step_tensor *t)
{
	return t->role == CK_STEP_VALUE || t->role == CK_STEP_MASK;
}

/* Logits are stored as a case's precision has them, and a step starts from the file of any: theirs may be of another dtype. */
static bool same_form(const ck_step_tensor *t, const ck_safetensor *s)
{
	return (t->role == CK_STEP_LOGITS || strcmp(t->dtype, s->dtype) == 0) && t->shape.nd == s->nd &&
	       memcmp(t->shape.d, s->d, (size_t)s->nd * sizeof *s->d) == 0;
}

/* The greatest whole number that the tensor may hold; -1: it holds reals. */
static int64_t greatest(const ck_graph *g, const ck_step_tensor *t)
{
	if (t->role == CK_STEP_MASK)
		return 1;
	const ck_value_info *v = &g->values[t->id];
	return v->dtype != CK_I32 ? -1 : v->kind == CK_INPUT ? v->range - 1 : INT32_MAX - 1; /* room for one step more */
}

static ck_status check_whole(const ck_step_tensors *t, const ck_step_tensor *one, const ck_safetensors *f,
			     const ck_safetensor *s, const char *path, ck_err *err)
{
	int64_t most = greatest(t->graph, one);
	const char *data = ck_safetensors_data(f, s);
	for (size_t at = 0; most >= 0 && at < s->bytes; at += s->each) {
		int64_t x = (uint8_t)data[at];
		if (s->each == sizeof x)
			memcpy(&x, data + at, sizeof x);
		if (x < 0 || x > most)
			return ck_fail(err, CK_USAGE,
				       "'%.200s': tensor '%.100s' holds %" PRId64 " where 0 to %" PRId64 " may stand; %s", path,
				       one->name, x, most, remedy);
	}
	return CK_OK;
}

/* A start tensor must be there; what a step only leaves behind need not, but has to be as ours where it is. */
static ck_status check_one(const ck_step_tensors *t, const ck_step_tensor *one, const ck_safetensors *f, const char *path,
			   ck_err *err)
{
	const ck_safetensor *s = ck_safetensors_find(f, one->name);
	if (!s && !is_start(one))
		return CK_OK;
	char *want = ck_safetensor_text(one->dtype, one->shape.nd, one->shape.d);
	ck_status status = CK_OK;
	if (!s) {
		status = ck_fail(err, CK_USAGE, "'%.200s' lacks the tensor '%.100s' (%s); %s", path, one->name, want, remedy);
	} else if (!same_form(one, s)) {
		char *has = ck_safetensor_text(s->dtype, s->nd, s->d);
		status = ck_fail(err, CK_USAGE, "'%.200s': tensor '%.100s' is %.100s, but this case needs %s; %s", path,
				 one->name, has, want, remedy);
		free(has);
	}
	free(want);
	return status == CK_OK && is_start(one) ? check_whole(t, one, f, s, path, err) : status;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Weights that are not ours, or masks that nothing would take, would make another step than whoever wrote the file expects. */
static ck_status check_strangers(const ck_step_tensors *t, const ck_safetensors *f, const char *path, ck_err *err)
{
	const char **names = ck_alloc((size_t)t->n, sizeof *names);
	for (int i = 0; i < t->n; i++)
		names[i] = t->at[i].name;
	qsort(names, (size_t)t->n, sizeof *names, by_name);
	ck_status status = CK_OK;
	for (int i = 0; i < f->n && status == CK_OK; i++) {
		const char *name = f->tensors[i].name;
		if (!bsearch(&name, names, (size_t)t->n, sizeof *names, by_name))
			status = ck_fail(err, CK_USAGE, "'%.200s' has a tensor '%.100s', which this case has not; %s", path,
					 name, remedy);
	}
	free(names);
	return status;
}

ck_status ck_step_check(const ck_step_tensors *t, const ck_safetensors *f, const char *path, ck_err *err)
{
	ck_status status = CK_OK;
	for (int i = 0; i < t->n && status == CK_OK; i++)
		status = check_one(t, &t->at[i], f, path, err);
	return status == CK_OK ? check_strangers(t, f, path, err) : status;
}
