/* Real data: read to the bit, every example once an epoch, and refused where it does not fit. */
#include "cases.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/run/batch.h"

/* ---- help --------------------------------------------------------------------------------------------------------------- */

/* A graph and its batches, which must open. */
typedef struct fixture {
	ck_graph *g;
	ck_batch *b;
} fixture;

static fixture open_case(const char *text, const char *data, uint64_t seed, ck_dtype real)
{
	fixture f = {.g = case_graph(text, (ck_build_options){0}, real)};
	ck_err err = {""};
	cr_assert(ck_batch_open(f.g, data, seed, &f.b, &err) == CK_OK, "%s --data %s: %s", text, data, err.text);
	return f;
}

static void close_case(fixture f)
{
	ck_batch_close(f.b);
	ck_graph_free(f.g);
}

static const void *content(fixture f, const char *value)
{
	return f.b->at[ck_graph_value(f.g, value)];
}

static void expect_refusal(const char *text, const char *data, const char *fragment)
{
	ck_graph *g = case_graph(text, (ck_build_options){0}, CK_F32);
	ck_batch *b;
	ck_err err = {""};
	ck_status status = ck_batch_open(g, data, 1, &b, &err);
	cr_expect(status == CK_USAGE && !b && strstr(err.text, fragment), "%s --data %s: status %d, '%s' does not say '%s'",
		  text, data, status, err.text, fragment);
	ck_batch_close(b);
	ck_graph_free(g);
}

/* Writes `size` bytes into the present folder, which each test makes for itself. */
static void put_file(const char *name, const void *bytes, size_t size)
{
	FILE *f = fopen(name, "wb");
	cr_assert(f && fwrite(bytes, 1, size, f) == size && fclose(f) == 0, "cannot write %s", name);
}

static char folder[] = "/tmp/ckbench-data-XXXXXX";
static const char *const files[] = {"i", "l", "t"};

static void enter_folder(void)
{
	cr_assert(mkdtemp(folder) && chdir(folder) == 0, "cannot make %s", folder);
}

static void leave_folder(void)
{
	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		remove(files[i]);
	rmdir(folder);
}

/* ---- digits ------------------------------------------------------------------------------------------------------------- */

/* The sums were taken from the package's CSV file, by another program. */
enum { DIGITS = 1797, INK = 561718, LABELS = 8070 };
static const int of_each[10] = {178, 182, 177, 183, 181, 182, 181, 179, 174, 180};
static const uint8_t first[64] = {0, 0,  5, 13, 9,  1, 0,  0, 0,  0,  13, 15, 10, 15, 5, 0,  0,  3, 15, 2, 0,  11,
				  8, 0,  0, 4,  12, 0, 0,  8, 8,  0,  0,  5,  8,  0,  0, 9,  8,  0, 0,  4, 11, 0,
				  1, 12, 7, 0,  0,  2, 14, 5, 10, 12, 0,  0,  0,  0,  6, 13, 10, 0, 0,  0};

static double pixel(fixture f, int64_t i)
{
	const void *x = content(f, "x");
	return f.g->real == CK_F64 ? ((const double *)x)[i] : ((const float *)x)[i];
}

/* Sixteenths are exact in both arithmetics. */
static bool is_first(fixture f, int64_t n)
{
	for (int i = 0; i < 64; i++)
		if (pixel(f, n * 64 + i) != first[i] / 16.0)
			return false;
	return true;
}

Test(data, digits)
{
	static const struct {
		const char *text;
		ck_dtype real;
	} cases[] = {
	    {"mlp:inputs=64,classes=10,batch=1797", CK_F32},
	    {"mlp:inputs=64,classes=10,batch=1797", CK_F64},
	    {"resnet20:image=8,channels=1,classes=10,batch=1797", CK_F32},
	    {"mlp:inputs=64,classes=11,batch=599", CK_F64},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		fixture f = open_case(cases[i].text, "digits", 1, cases[i].real);
		int64_t size = DIGITS / f.b->batches;
		double ink = 0;
		int labels = 0, count[10] = {0}, firsts = 0;
		for (int64_t k = 0; k < f.b->batches; k++) {
			ck_batch_take(f.b, k);
			const int32_t *target = content(f, "target");
			for (int64_t n = 0; n < size; n++) {
				for (int64_t p = 0; p < 64; p++)
					ink += 16 * pixel(f, n * 64 + p);
				labels += target[n];
				count[target[n]]++;
				firsts += is_first(f, n) && target[n] == 0;
			}
		}
		cr_expect(size * f.b->batches == DIGITS && ink == INK && labels == LABELS && firsts == 1 &&
			      memcmp(count, of_each, sizeof count) == 0,
			  "%s --data digits, %s: %lld batches, ink %.17g, labels %d, the first digit %d times", cases[i].text,
			  ck_dtype_name(cases[i].real), (long long)f.b->batches, ink, labels, firsts);
		close_case(f);
	}
}

/* A batch depends on seed and number alone, not on what was taken before; epochs and seeds differ. */
Test(data, order)
{
	const char *text = "mlp:inputs=64,classes=10,batch=100";
	fixture a = open_case(text, "digits", 1, CK_F32), b = open_case(text, "digits", 1, CK_F32);
	fixture other = open_case(text, "digits", 2, CK_F32);
	cr_assert(a.b->batches == 17, "%s: %lld batches", text, (long long)a.b->batches);
	size_t bytes = 100 * 64 * sizeof(float);
	for (int64_t k = 40; k >= 0; k -= 8) {
		ck_batch_take(a.b, k);
		ck_batch_take(b.b, k + 1);
		cr_expect(memcmp(content(a, "x"), content(b, "x"), bytes), "batches %d and %d are the same", (int)k,
			  (int)k + 1);
		ck_batch_take(b.b, k + 17);
		cr_expect(memcmp(content(a, "x"), content(b, "x"), bytes), "batch %d is the same in the next epoch", (int)k);
		ck_batch_take(b.b, k);
		cr_expect(!memcmp(content(a, "x"), content(b, "x"), bytes), "batch %d differs when taken again", (int)k);
		ck_batch_take(other.b, k);
		cr_expect(memcmp(content(a, "x"), content(other, "x"), bytes), "batch %d ignores the seed", (int)k);
	}
	close_case(a);
	close_case(b);
	close_case(other);
}

Test(data, does_not_fit)
{
	static const struct {
		const char *text, *data, *fragment;
	} cases[] = {
	    {"cnn", "digits", "1797 images of 8x8 with 1 channel(s), in 10 classes; set image=8,channels=1"},
	    {"cnn:image=8", "digits", "set channels=1"},
	    {"cnn:image=8,channels=1,classes=9", "digits", "set classes=10"},
	    {"mlp:inputs=63", "digits", "set inputs=64"},
	    {"mlp:inputs=3,classes=2,batch=1798", "digits", "set inputs=64,classes=10,batch=1797"},
	    {"transformer", "digits", "'digits' is images, but this model reads tokens; take mlp or cnn"},
	    {"mlp", "", "there is no data ''; it takes digits, idx:IMAGES,LABELS or text:FILE"},
	    {"mlp", "mnist", "there is no data 'mnist'"},
	    {"mlp", "idx:", "does not name two files; write idx:IMAGES,LABELS"},
	    {"mlp", "idx:a", "does not name two files"},
	    {"mlp", "idx:a,", "does not name two files"},
	    {"mlp", "idx:,b", "does not name two files"},
	    {"mlp", "idx:a,b,c", "does not name two files"},
	    {"mlp", "idx:/nowhere/a,/nowhere/b", "cannot open '/nowhere/a': No such file or directory"},
	    {"transformer", "text:", "names no file; write text:FILE"},
	    {"transformer", "text:/nowhere/a", "cannot open '/nowhere/a'"},
	    {"transformer", "text:/", "'/' is not a regular file"},
	    {"transformer", "text:/dev/zero", "'/dev/zero' is not a regular file"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		expect_refusal(cases[i].text, cases[i].data, cases[i].fragment);
}

/* ---- IDX ---------------------------------------------------------------------------------------------------------------- */

/* Three images of 2x2 in one or two channels, labels 2, 0, 1. Pixel values tell where they stand: the i-th byte is 20 i + 15. */
#define IMAGES "\0\0\10\3\0\0\0\3\0\0\0\2\0\0\0\2\17\43\67\113\137\163\207\233\257\303\327\353"
#define LABELS3 "\0\0\10\1\0\0\0\3\2\0\1"

Test(data, idx, .init = enter_folder, .fini = leave_folder)
{
	static const char two_channels[] = "\0\0\10\4\0\0\0\3\0\0\0\1\0\0\0\2\0\0\0\2"
					   "\17\43\67\113\137\163\207\233\257\303\327\353";
	static const struct {
		const char *text, *images;
		size_t size;
	} cases[] = {
	    {"cnn:image=2,channels=1,classes=3,batch=3", IMAGES, sizeof IMAGES - 1},
	    {"mlp:inputs=4,classes=3,batch=3", IMAGES, sizeof IMAGES - 1},
	    {"mlp:inputs=4,classes=3,batch=3", two_channels, sizeof two_channels - 1},
	};
	put_file("l", LABELS3, sizeof LABELS3 - 1);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		put_file("i", cases[i].images, cases[i].size);
		fixture f = open_case(cases[i].text, "idx:i,l", 1, CK_F32);
		const float *x = content(f, "x");
		const int32_t *target = content(f, "target");
		static const int place_of_label[] = {1, 2, 0};
		for (int n = 0; n < 3; n++)
			for (int p = 0; p < 4; p++)
				cr_expect(x[4 * n + p] == (float)((20 * (4 * place_of_label[target[n]] + p) + 15) / 255.0),
					  "%s: image with label %d, pixel %d: %g", cases[i].text, target[n], p, x[4 * n + p]);
		cr_expect(target[0] + target[1] + target[2] == 3, "%s: labels", cases[i].text);
		close_case(f);
	}
}

Test(data, idx_refusals, .init = enter_folder, .fini = leave_folder)
{
#define BYTES(text) text, sizeof text - 1
	static const struct {
		const char *what, *images;
		size_t images_size;
		const char *labels;
		size_t labels_size;
		const char *fragment;
	} cases[] = {
	    {"empty", BYTES(""), BYTES(LABELS3), "'i' has 0 bytes, too few for an IDX file"},
	    {"a few bytes", BYTES("\0\0\10"), BYTES(LABELS3), "'i' has 3 bytes, too few"},
	    {"text", BYTES("P5 2 2 255 aaaa"), BYTES(LABELS3), "'i' is not an IDX file: it starts with 50 35 20 32"},
	    {"gzip", BYTES("\37\213\10\0"), BYTES(LABELS3), "'i' is compressed with gzip; unpack it first: gunzip -k 'i'"},
	    {"floats", BYTES("\0\0\15\3\0\0\0\1\0\0\0\1\0\0\0\1aaaa"), BYTES(LABELS3),
	     "IDX elements of type 0d; only unsigned bytes"},
	    {"cut header", BYTES("\0\0\10\3\0\0\0\3\0\0\0\2\0"), BYTES(LABELS3), "'i' is truncated: 13 bytes do not even hold"},
	    {"cut", IMAGES, sizeof IMAGES - 2, BYTES(LABELS3),
	     "'i' is truncated: its IDX extents 3x2x2 make 28 bytes, it has 27"},
	    {"long", IMAGES, sizeof IMAGES, BYTES(LABELS3),
	     "'i' is longer than it says: its IDX extents 3x2x2 make 28 bytes, it has 29"},
	    {"no images", BYTES("\0\0\10\3\0\0\0\0\0\0\0\2\0\0\0\2"), BYTES(LABELS3),
	     "extents 0x2x2, empty or beyond all bounds"},
	    {"overflow", BYTES("\0\0\10\3\377\377\377\377\377\377\377\377\377\377\377\377"), BYTES(LABELS3),
	     "empty or beyond all bounds"},
	    {"swapped", BYTES(LABELS3), BYTES(IMAGES), "'i' has 1 dimension(s), which are not images (n, h, w)"},
	    {"images twice", BYTES(IMAGES), BYTES(IMAGES), "'l' has 3 dimension(s), which are not labels (n)"},
	    {"mismatch", BYTES(IMAGES), BYTES("\0\0\10\1\0\0\0\2\2\0"), "'i' has 3 images, but 'l' has 2 labels"},
	    {"cut labels", BYTES(IMAGES), BYTES("\0\0\10\1\0\0\0\3\2\0"),
	     "'l' is truncated: its IDX extents 3 make 11 bytes, it has 10"},
	    {"large label", BYTES(IMAGES), BYTES("\0\0\10\1\0\0\0\3\2\0\377"), "in 256 classes; set classes=256"},
	    {"not square", BYTES("\0\0\10\3\0\0\0\1\0\0\0\1\0\0\0\2ab"), BYTES("\0\0\10\1\0\0\0\1\0"),
	     "images of 1x2, but this model takes square ones; take mlp:inputs=2"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		put_file("i", cases[i].images, cases[i].images_size);
		put_file("l", cases[i].labels, cases[i].labels_size);
		expect_refusal("cnn:image=2,channels=1,classes=3,batch=3", "idx:i,l", cases[i].fragment);
	}
}

/* ---- text --------------------------------------------------------------------------------------------------------------- */

/* 100 bytes in which each is its place: so an example tells where it comes from, and a target is its token plus one. */
Test(data, text, .init = enter_folder, .fini = leave_folder)
{
	uint8_t bytes[100];
	for (int i = 0; i < 100; i++)
		bytes[i] = (uint8_t)(i + 100);
	put_file("t", bytes, sizeof bytes);
	fixture f = open_case("gpt-tiny:seq=9,batch=2,vocab=300", "text:t", 1, CK_F32);
	cr_expect(f.b->batches == 5, "%lld batches", (long long)f.b->batches);
	bool seen[11] = {false};
	for (int k = 0; k < 5; k++) {
		ck_batch_take(f.b, k);
		const int32_t *ids = content(f, "ids"), *target = content(f, "target");
		for (int n = 0; n < 2; n++) {
			int start = ids[9 * n] - 100;
			cr_assert(start % 9 == 0 && start >= 0 && start <= 90 && !seen[start / 9], "batch %d starts at %d", k,
				  start);
			seen[start / 9] = true;
			for (int t = 0; t < 9; t++)
				cr_expect(ids[9 * n + t] == 100 + start + t && target[9 * n + t] == ids[9 * n + t] + 1,
					  "batch %d, example %d, token %d: %d, then %d", k, n, t, ids[9 * n + t],
					  target[9 * n + t]);
		}
	}
	close_case(f);
}

Test(data, text_refusals, .init = enter_folder, .fini = leave_folder)
{
	static const struct {
		const char *text;
		size_t size;
		const char *fragment;
	} cases[] = {
	    {"gpt-tiny", 0, "'text:t' has 0 byte(s); an example takes two or more"},
	    {"gpt-tiny", 1, "'text:t' has 1 byte(s)"},
	    {"gpt-tiny:seq=16", 16, "make 0 example(s) of 16 tokens; set seq=15,batch=1"},
	    {"gpt-tiny:seq=16", 17, "make 1 example(s) of 16 tokens; set batch=1"},
	    {"gpt-tiny:seq=2,vocab=255", 17, "set vocab=256"},
	    {"mlp", 17, "'text:t' is text, but this model reads numbers; take transformer, or data digits"},
	    {"cnn", 17, "'text:t' is text"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		put_file("t", "the quick brown f", cases[i].size);
		expect_refusal(cases[i].text, "text:t", cases[i].fragment);
	}
}
