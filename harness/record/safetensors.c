#include "harness/record/safetensors.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/alloc.h"
#include "kernels/readfile.h"

enum {
	LENGTH = 8,              /* bytes of the header's length */
	HEADER_MOST = 100000000, /* bytes, the limit of the format's own reader */
	DATA_ALIGN = 64,
	DIMS_MOST = sizeof(((ck_safetensor *)0)->d) / sizeof(int64_t),
};

static const struct {
	const char *name;
	size_t each;
} dtypes[] = {
    {"F64", 8}, {"I64", 8}, {"U64", 8}, {"F32", 4}, {"I32", 4},  {"U32", 4},     {"F16", 2},     {"BF16", 2},
    {"I16", 2}, {"U16", 2}, {"U8", 1},  {"I8", 1},  {"BOOL", 1}, {"F8_E5M2", 1}, {"F8_E4M3", 1},
};

/* The name as a constant, and the element's size; NULL: the format has no such type. */
static const char *find_dtype(const char *name, size_t *each)
{
	for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
		if (strcmp(dtypes[i].name, name) == 0) {
			*each = dtypes[i].each;
			return dtypes[i].name;
		}
	return NULL;
}

void ck_safetensors_free(ck_safetensors *f)
{
	for (int i = 0; i < f->n; i++)
		free(f->tensors[i].name);
	free(f->tensors);
	free(f->file);
	*f = (ck_safetensors){0};
}

static ck_safetensor *append(ck_safetensors *f, const char *name)
{
	f->tensors = ck_grow(f->tensors, &f->capacity, f->n + 1, sizeof *f->tensors);
	f->tensors[f->n] = (ck_safetensor){.name = ck_text("%s", name)};
	return &f->tensors[f->n++];
}

char *ck_safetensor_text(const char *dtype, int nd, const int64_t *d)
{
	char *text = ck_text("%s", dtype);
	for (int i = 0; i < nd; i++) {
		char *longer = ck_text("%s%c%" PRId64, text, i ? 'x' : ' ', d[i]);
		free(text);
		text = longer;
	}
	return text;
}

/* ---- finding ------------------------------------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
	return strcmp(((const ck_safetensor *)a)->name, ((const ck_safetensor *)b)->name);
}

static int by_place(const void *a, const void *b)
{
	const ck_safetensor *x = a, *y = b;
	return x->at != y->at ? (x->at > y->at) - (x->at < y->at) : (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static int by_size_of_element(const void *a, const void *b)
{
	const ck_safetensor *x = a, *y = b;
	return x->each != y->each ? (x->each < y->each) - (x->each > y->each) : by_name(a, b);
}

static void sort(ck_safetensors *f, int (*order)(const void *, const void *))
{
	if (f->n)
		qsort(f->tensors, (size_t)f->n, sizeof *f->tensors, order);
}

/* Sorts for find. CK_USAGE when a name stands twice. */
static ck_status sort_by_name(ck_safetensors *f, ck_err *err)
{
	sort(f, by_name);
	for (int i = 1; i < f->n; i++)
		if (by_name(&f->tensors[i - 1], &f->tensors[i]) == 0)
			return ck_fail(err, CK_USAGE, "two tensors are named '%.200s'", f->tensors[i].name);
	return CK_OK;
}

const ck_safetensor *ck_safetensors_find(const ck_safetensors *f, const char *name)
{
	ck_safetensor key = {.name = (char *)name};
	return f->n ? bsearch(&key, f->tensors, (size_t)f->n, sizeof *f->tensors, by_name) : NULL;
}

void *ck_safetensors_data(const ck_safetensors *f, const ck_safetensor *t)
{
	return f->file + f->data + t->at;
}

/* ---- making -------------------------------------------------------------------------------------------------------------- */

void ck_safetensors_add(ck_safetensors *f, const char *name, const char *dtype, ck_shape shape)
{
	ck_safetensor *t = append(f, name);
	t->dtype = find_dtype(dtype, &t->each);
	if (!t->dtype)
		abort(); /* the caller's own fault */
	t->nd = shape.nd;
	memcpy(t->d, shape.d, sizeof shape.d);
	t->bytes = (shape.nd ? (size_t)ck_shape_count(shape) : 1) * t->each;
}

static cJSON *numbers(const int64_t *at, int n)
{
	cJSON *array = cJSON_CreateArray();
	for (int i = 0; i < n; i++)
		cJSON_AddItemToArray(array, cJSON_CreateNumber((double)at[i]));
	return array;
}

/* The header's text, of the tensors in their present order. */
static char *header_text(const ck_safetensors *f, const char *const *metadata)
{
	cJSON *root = cJSON_CreateObject(), *meta = cJSON_AddObjectToObject(root, "__metadata__");
	for (; *metadata; metadata += 2)
		cJSON_AddStringToObject(meta, metadata[0], metadata[1]);
	for (int i = 0; i < f->n; i++) {
		const ck_safetensor *t = &f->tensors[i];
		const int64_t offsets[] = {(int64_t)t->at, (int64_t)(t->at + t->bytes)};
		cJSON *one = cJSON_AddObjectToObject(root, t->name);
		cJSON_AddStringToObject(one, "dtype", t->dtype);
		cJSON_AddItemToObject(one, "shape", numbers(t->d, t->nd));
		cJSON_AddItemToObject(one, "data_offsets", numbers(offsets, 2));
	}
	char *text = cJSON_PrintUnformatted(root);
	cJSON_Delete(root);
	return text;
}

static void write_header(ck_safetensors *f, const char *text)
{
	uint64_t length = f->data - LENGTH;
	for (int i = 0; i < LENGTH; i++)
		f->file[i] = (char)(length >> 8 * i & 0xff);
	memset(f->file + LENGTH, ' ', length);
	memcpy(f->file + LENGTH, text, strlen(text));
}

ck_status ck_safetensors_lay_out(ck_safetensors *f, const char *const *metadata, ck_err *err)
{
	size_t end = 0;
	sort(f, by_size_of_element);
	for (int i = 0; i < f->n; i++) {
		f->tensors[i].at = end;
		end += f->tensors[i].bytes; /* a graph's values: far from overflowing */
	}
	char *text = header_text(f, metadata);
	if (!text)
		return ck_fail(err, CK_MISSING, "no memory for the header of %d tensors; take a smaller model", f->n);
	f->data = (LENGTH + strlen(text) + DATA_ALIGN - 1) / DATA_ALIGN * DATA_ALIGN;
	f->bytes = f->data + end;
	f->file = malloc(f->bytes);
	if (f->file)
		write_header(f, text);
	cJSON_free(text);
	if (!f->file)
		return ck_fail(err, CK_MISSING, "no memory for a file of %zu bytes; take a smaller model or batch", f->bytes);
	return sort_by_name(f, err);
}

/* ---- reading ------------------------------------------------------------------------------------------------------------- */

/* A whole number from 0 up to where JSON's numbers are exact. */
static bool read_number(const cJSON *item, int64_t *n)
{
	if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0) || item->valuedouble > 9007199254740991.0)
		return false;
	*n = (int64_t)item->valuedouble;
	return (double)*n == item->valuedouble;
}

static ck_status read_shape(const cJSON *item, ck_safetensor *t, ck_err *err)
{
	if (!cJSON_IsArray(item))
		return ck_fail(err, CK_USAGE, "tensor '%.200s' has no shape", t->name);
	const cJSON *extent;
	size_t count = 1;
	cJSON_ArrayForEach(extent, item)
	{
		if (t->nd == DIMS_MOST)
			return ck_fail(err, CK_USAGE, "tensor '%.200s' has more than %d extents", t->name, DIMS_MOST);
		int64_t *d = &t->d[t->nd++];
		if (!read_number(extent, d) || __builtin_mul_overflow(count, (size_t)*d, &count))
			return ck_fail(err, CK_USAGE, "tensor '%.200s' has an extent that is no size", t->name);
	}
	if (__builtin_mul_overflow(count, t->each, &t->bytes))
		return ck_fail(err, CK_USAGE, "tensor '%.200s' would be larger than any memory", t->name);
	return CK_OK;
}

static ck_status read_place(const cJSON *item, ck_safetensor *t, ck_err *err)
{
	int64_t from, to;
	if (!cJSON_IsArray(item) || cJSON_GetArraySize(item) != 2 || !read_number(item->child, &from) ||
	    !read_number(item->child->next, &to) || to < from)
		return ck_fail(err, CK_USAGE, "tensor '%.200s' has no data_offsets from and to", t->name);
	if ((size_t)(to - from) != t->bytes)
		return ck_fail(err, CK_USAGE,
			       "tensor '%.200s' takes %zu bytes by its dtype and shape, but %" PRId64 " by its offsets",
			       t->name, t->bytes, to - from);
	t->at = (size_t)from;
	return CK_OK;
}

static ck_status read_tensor(ck_safetensors *f, const cJSON *item, ck_err *err)
{
	ck_safetensor *t = append(f, item->string);
	const cJSON *dtype = cJSON_GetObjectItemCaseSensitive(item, "dtype");
	if (cJSON_IsString(dtype))
		t->dtype = find_dtype(dtype->valuestring, &t->each);
	if (!t->dtype)
		return ck_fail(err, CK_USAGE, "tensor '%.200s' has the dtype %.40s, which is none of safetensors'", t->name,
			       cJSON_IsString(dtype) ? dtype->valuestring : "(none)");
	ck_status status = read_shape(cJSON_GetObjectItemCaseSensitive(item, "shape"), t, err);
	return status == CK_OK ? read_place(cJSON_GetObjectItemCaseSensitive(item, "data_offsets"), t, err) : status;
}

/* The tensors, in order of place, must be all of the data and nothing twice. */
static ck_status check_places(ck_safetensors *f, ck_err *err)
{
	size_t end = 0, data = f->bytes - f->data;
	sort(f, by_place);
	for (int i = 0; i < f->n; i++) {
		const ck_safetensor *t = &f->tensors[i];
		if (t->at < end)
			return ck_fail(err, CK_USAGE, "tensors '%.200s' and '%.200s' overlap", f->tensors[i - 1].name, t->name);
		if (t->at > end)
			return ck_fail(err, CK_USAGE, "the bytes before tensor '%.200s' belong to none", t->name);
		end = t->at + t->bytes; /* both at most 2^53 */
		if (end > data)
			return ck_fail(err, CK_USAGE,
				       "it is cut short: tensor '%.200s' ends at byte %zu of the data, of which there are %zu",
				       t->name, end, data);
	}
	if (end < data)
		return ck_fail(err, CK_USAGE, "%zu bytes at its end belong to no tensor", data - end);
	return CK_OK;
}

static ck_status read_header(ck_safetensors *f, const cJSON *root, ck_err *err)
{
	ck_status status = CK_OK;
	const cJSON *item;
	cJSON_ArrayForEach(item, root)
	{
		if (status == CK_OK && strcmp(item->string, "__metadata__") != 0)
			status = read_tensor(f, item, err);
	}
	if (status == CK_OK)
		status = check_places(f, err);
	return status == CK_OK ? sort_by_name(f, err) : status;
}

static ck_status read_file(ck_safetensors *f, ck_err *err)
{
	uint64_t length = 0;
	if (f->bytes <= LENGTH)
		return ck_fail(err, CK_USAGE, "it has only %zu bytes", f->bytes);
	for (int i = 0; i < LENGTH; i++)
		length |= (uint64_t)(unsigned char)f->file[i] << 8 * i;
	if (f->file[LENGTH] != '{')
		return ck_fail(err, CK_USAGE, "it does not begin with a header's length and a header");
	if (length > HEADER_MOST)
		return ck_fail(err, CK_USAGE, "its header would have %" PRIu64 " bytes, more than the %d that there may be",
			       length, (int)HEADER_MOST);
	if (length > f->bytes - LENGTH)
		return ck_fail(err, CK_USAGE, "it is cut short: its header has %" PRIu64 " bytes, the file %zu", length,
			       f->bytes);
	f->data = LENGTH + (size_t)length;
	cJSON *root = cJSON_ParseWithLength(f->file + LENGTH, (size_t)length);
	ck_status status =
	    cJSON_IsObject(root) ? read_header(f, root, err) : ck_fail(err, CK_USAGE, "its header is not JSON, or has no end");
	cJSON_Delete(root);
	return status;
}

ck_status ck_safetensors_read(ck_safetensors *f, const char *path, ck_err *err)
{
	ck_err why = {""};
	*f = (ck_safetensors){0};
	ck_status status = ck_file_read(path, SIZE_MAX, &f->file, &f->bytes, err);
	if (status != CK_OK)
		return status;
	status = read_file(f, &why);
	if (status != CK_OK) {
		ck_safetensors_free(f);
		ck_fail(err, status, "'%.200s' is no safetensors file that can be used: %s; get it anew", path, why.text);
	}
	return status;
}
