/* The file format by itself: what is written reads back, and what is no such file is refused with the reason, never read astray. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/record/safetensors.h"
#include "kernels/alloc.h"

static void write_bytes(const char *path, const void *bytes, size_t n)
{
	FILE *f = fopen(path, "wb");
	cr_assert(f && fwrite(bytes, 1, n, f) == n && fclose(f) == 0, "cannot write %s", path);
}

/* A file of this header, whose length is said to be `length` (0: what it is), and so many bytes of data. */
static void write_file(const char *path, const char *header, uint64_t length, size_t data)
{
	size_t n = strlen(header);
	char *bytes = ck_alloc(8 + n + data, 1);
	for (int i = 0; i < 8; i++)
		bytes[i] = (char)((length ? length : n) >> 8 * i & 0xff);
	memcpy(bytes + 8, header, n);
	write_bytes(path, bytes, 8 + n + data);
	free(bytes);
}

static char *temporary(void)
{
	char *path = ck_text("/tmp/ckbench-test.XXXXXX");
	int fd = mkstemp(path);
	cr_assert(fd >= 0 && close(fd) == 0);
	return path;
}

Test(safetensors, reads_what_it_wrote)
{
	static const struct {
		const char *name, *dtype, *text;
		ck_shape shape;
		size_t at;
	} cases[] = {
	    {"bytes", "U8", "U8 3", {1, {3}}, 46},
	    {"brain", "BF16", "BF16 2", {1, {2}}, 36},
	    {"half", "F16", "F16 3x1", {2, {3, 1}}, 40},
	    {"a", "F32", "F32 2x2", {2, {2, 2}}, 20},
	    {"count", "I64", "I64", {0, {0}}, 0},
	    {"wide", "F64", "F64 1x1x1x1", {4, {1, 1, 1, 1}}, 8},
	    {"\"quoted\" \\ ü", "F32", "F32 1", {1, {1}}, 16},
	};
	enum { N = sizeof cases / sizeof *cases };
	const char *metadata[] = {"format", "pt", NULL};
	ck_safetensors f = {0}, g;
	ck_err err = {""};
	for (int i = 0; i < N; i++)
		ck_safetensors_add(&f, cases[i].name, cases[i].dtype, cases[i].shape);
	cr_assert(ck_safetensors_lay_out(&f, metadata, &err) == CK_OK, "%s", err.text);
	for (size_t i = 0; i < f.bytes - f.data; i++)
		f.file[f.data + i] = (char)i;
	uint64_t length;
	memcpy(&length, f.file, sizeof length);
	cr_expect(length == f.data - 8 && f.data % 64 == 0 && f.file[8] == '{' && f.bytes - f.data == 49);
	char *path = temporary();
	write_bytes(path, f.file, f.bytes);
	cr_assert(ck_safetensors_read(&g, path, &err) == CK_OK, "%s", err.text);
	cr_expect(g.n == N, "%d tensors", g.n);
	for (int i = 0; i < N; i++) {
		const ck_safetensor *t = ck_safetensors_find(&g, cases[i].name);
		cr_assert(t, "%s is missing", cases[i].name);
		char *text = ck_safetensor_text(t->dtype, t->nd, t->d);
		cr_expect_str_eq(text, cases[i].text);
		cr_expect(t->at == cases[i].at && t->at % t->each == 0, "%s lies at %zu", t->name, t->at);
		cr_expect(*(char *)ck_safetensors_data(&g, t) == (char)t->at, "%s: other bytes", t->name);
		free(text);
	}
	cr_expect(!ck_safetensors_find(&g, "byte"));
	ck_safetensors_free(&f);
	ck_safetensors_free(&g);
	unlink(path);
	free(path);
}

#define A(shape, from, to) "\"a\":{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":[" from "," to "]}"
#define B(from, to) "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[" from "," to "]}"

Test(safetensors, refuses_what_is_none)
{
	static const struct {
		const char *header;
		uint64_t length;
		size_t data;
		const char *says; /* NULL: it is one */
	} cases[] = {
	    {"{" A("[2]", "0", "8") "," B("8", "12") "}", 0, 12, NULL},
	    {"{}  ", 0, 0, NULL},
	    {"", 0, 0, "only 8 bytes"},
	    {"[1]", 0, 0, "does not begin with"},
	    {"{" A("[2]", "0", "8"), 0, 8, "not JSON"},
	    {"{\"a\":", 0, 0, "not JSON"},
	    {"{}", 3, 0, "cut short: its header has 3 bytes"},
	    {"{}", 100000001, 0, "more than the 100000000"},
	    {"{}", UINT64_MAX, 0, "18446744073709551615 bytes"},
	    {"{" A("[2]", "0", "8") "}", 0, 7, "cut short: tensor 'a' ends at byte 8"},
	    {"{" A("[2]", "0", "8") "}", 0, 9, "1 bytes at its end"},
	    {"{" A("[2]", "0", "8") "," B("4", "8") "}", 0, 12, "'a' and 'b' overlap"},
	    {"{" A("[2]", "0", "8") "," B("0", "4") "}", 0, 8, "overlap"},
	    {"{" A("[2]", "0", "8") "," B("9", "13") "}", 0, 13, "before tensor 'b' belong to none"},
	    {"{" A("[2]", "0", "8") "," A("[2]", "8", "16") "}", 0, 16, "two tensors are named 'a'"},
	    {"{" A("[2]", "8", "0") "}", 0, 8, "no data_offsets"},
	    {"{" A("[2]", "-8", "0") "}", 0, 8, "no data_offsets"},
	    {"{" A("[2]", "0", "1e300") "}", 0, 8, "no data_offsets"},
	    {"{" A("[2]", "0", "12") "}", 0, 12, "takes 8 bytes by its dtype and shape, but 12"},
	    {"{" A("[4294967296,4294967296]", "0", "8") "}", 0, 8, "no size"},
	    {"{" A("[9007199254740991,1024]", "0", "8") "}", 0, 8, "larger than any memory"},
	    {"{" A("[-1]", "0", "8") "}", 0, 8, "no size"},
	    {"{" A("[0.5]", "0", "8") "}", 0, 8, "no size"},
	    {"{" A("[1,1,1,1,1,1,1,1,1]", "0", "4") "}", 0, 4, "more than 8 extents"},
	    {"{" A("2", "0", "8") "}", 0, 8, "no shape"},
	    {"{\"a\":{\"dtype\":\"F31\",\"shape\":[],\"data_offsets\":[0,4]}}", 0, 4, "dtype F31"},
	    {"{\"a\":{\"shape\":[],\"data_offsets\":[0,4]}}", 0, 4, "dtype (none)"},
	    {"{\"a\":7}", 0, 0, "dtype (none)"},
	};
	char *path = temporary();
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		ck_safetensors f;
		ck_err err = {""};
		write_file(path, cases[i].header, cases[i].length, cases[i].data);
		ck_status status = ck_safetensors_read(&f, path, &err);
		if (!cases[i].says)
			cr_expect(status == CK_OK, "%s: %s", cases[i].header, err.text);
		else
			cr_expect(status == CK_USAGE && strstr(err.text, cases[i].says) && strstr(err.text, path),
				  "%s (%zu bytes of data): no '%s' in: %s", cases[i].header, cases[i].data, cases[i].says,
				  err.text);
		ck_safetensors_free(&f);
	}
	unlink(path);
	free(path);
}
