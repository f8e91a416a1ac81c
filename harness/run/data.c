/* Reading data sets. An IDX file, the form of MNIST, is big-endian:
 *
 *     0  0  type  dimensions | extent 0 | extent 1 | … | elements, row-major
 *     1  1  1     1            4          4              1 each for type 8, unsigned bytes
 */
#include "harness/run/data.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/alloc.h"
#include "kernels/readfile.h"
#include "kernels/tensor.h"

/* ---- files -------------------------------------------------------------------------------------------------------------- */

/* Some bytes and the name that messages call them by. */
typedef struct blob {
	const char *name;
	const uint8_t *bytes;
	size_t size;
} blob;

static ck_status read_file(const char *path, blob *b, uint8_t **owned, ck_err *err)
{
	char *data;
	size_t size;
	ck_status status = ck_file_read(path, SIZE_MAX, &data, &size, err);
	*owned = (uint8_t *)data;
	*b = (blob){path, *owned, size};
	return status;
}

/* ---- IDX ---------------------------------------------------------------------------------------------------------------- */

static uint32_t big_endian(const uint8_t *b)
{
	return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static ck_status check_magic(const blob *f, ck_err *err)
{
	const uint8_t *b = f->bytes;
	if (f->size >= 2 && b[0] == 0x1f && b[1] == 0x8b)
		return ck_fail(err, CK_USAGE, "'%.200s' is compressed with gzip; unpack it first: gunzip -k '%.200s'", f->name,
			       f->name);
	if (f->size < 4)
		return ck_fail(err, CK_USAGE, "'%.200s' has %zu bytes, too few for an IDX file; get it anew", f->name, f->size);
	if (b[0] || b[1])
		return ck_fail(err, CK_USAGE, "'%.200s' is not an IDX file: it starts with %02x %02x %02x %02x, not with 00 00",
			       f->name, b[0], b[1], b[2], b[3]);
	if (b[2] != 8)
		return ck_fail(err, CK_USAGE, "'%.200s' has IDX elements of type %02x; only unsigned bytes (08) are read",
			       f->name, b[2]);
	return CK_OK;
}

/* The extents of an IDX file of least..most dimensions and where its elements start; its size must be exactly right. */
static ck_status read_idx(const blob *f, int least, int most, const char *what, ck_shape *shape, const uint8_t **elements,
			  ck_err *err)
{
	if (check_magic(f, err) != CK_OK)
		return CK_USAGE;
	int nd = f->bytes[3];
	if (nd < least || nd > most)
		return ck_fail(err, CK_USAGE,
			       "'%.200s' has %d dimension(s), which are not %s; write idx:IMAGES,LABELS, images first", f->name,
			       nd, what);
	size_t header = 4 + 4 * (size_t)nd;
	if (f->size < header)
		return ck_fail(err, CK_USAGE,
			       "'%.200s' is truncated: %zu bytes do not even hold its IDX header of %zu; get it anew", f->name,
			       f->size, header);
	*shape = (ck_shape){.nd = nd};
	for (int i = 0; i < nd; i++)
		shape->d[i] = big_endian(f->bytes + 4 + 4 * i);
	char text[CK_SHAPE_TEXT];
	int64_t count = ck_shape_count(*shape);
	if (count < 0)
		return ck_fail(err, CK_USAGE, "'%.200s' has the IDX extents %s, empty or beyond all bounds; get it anew",
			       f->name, ck_shape_text(*shape, text));
	if (f->size != header + (size_t)count)
		return ck_fail(err, CK_USAGE, "'%.200s' is %s: its IDX extents %s make %zu bytes, it has %zu; get it anew",
			       f->name, f->size < header + (size_t)count ? "truncated" : "longer than it says",
			       ck_shape_text(*shape, text), header + (size_t)count, f->size);
	*elements = f->bytes + header;
	return CK_OK;
}

static ck_status take_images(ck__data *d, const blob *images, const blob *labels, double white, ck_err *err)
{
	ck_shape pixels, names;
	if (read_idx(images, 3, 4, "images (n, h, w) or (n, h, w, c)", &pixels, &d->bytes, err) != CK_OK ||
	    read_idx(labels, 1, 1, "labels (n)", &names, &d->labels, err) != CK_OK)
		return CK_USAGE;
	if (pixels.d[0] != names.d[0])
		return ck_fail(err, CK_USAGE,
			       "'%.200s' has %" PRId64 " images, but '%.200s' has %" PRId64
			       " labels; give two that belong together",
			       images->name, pixels.d[0], labels->name, names.d[0]);
	d->count = pixels.d[0];
	d->h = pixels.d[1];
	d->w = pixels.d[2];
	d->c = pixels.nd == 4 ? pixels.d[3] : 1;
	d->white = white;
	for (int64_t i = 0; i < d->count; i++)
		if (d->labels[i] >= d->classes)
			d->classes = d->labels[i] + 1;
	return CK_OK;
}

/* ---- the three kinds ---------------------------------------------------------------------------------------------------- */

static ck_status open_digits(ck__data *d, ck_err *err)
{
	blob images = {"digits", ck__digits_images, (size_t)(ck__digits_images_end - ck__digits_images)};
	blob labels = {"digits", ck__digits_labels, (size_t)(ck__digits_labels_end - ck__digits_labels)};
	return take_images(d, &images, &labels, 16, err);
}

/* paths: "IMAGES,LABELS" */
static ck_status open_idx(ck__data *d, const char *paths, ck_err *err)
{
	const char *comma = strchr(paths, ',');
	if (!comma || comma == paths || !comma[1] || strchr(comma + 1, ','))
		return ck_fail(err, CK_USAGE,
			       "data 'idx:%.200s' does not name two files; write idx:IMAGES,LABELS (no commas in names)",
			       paths);
	char *image_path = ck_text("%.*s", (int)(comma - paths), paths);
	blob images, labels;
	ck_status status = read_file(image_path, &images, &d->files[0], err);
	if (status == CK_OK)
		status = read_file(comma + 1, &labels, &d->files[1], err);
	if (status == CK_OK)
		status = take_images(d, &images, &labels, 255, err);
	free(image_path);
	return status;
}

static ck_status open_text(ck__data *d, const char *path, ck_err *err)
{
	if (!*path)
		return ck_fail(err, CK_USAGE, "data 'text:' names no file; write text:FILE");
	blob text;
	ck_status status = read_file(path, &text, &d->files[0], err);
	if (status == CK_OK) {
		d->bytes = text.bytes;
		d->count = (int64_t)text.size;
	}
	return status;
}

ck_status ck__data_open(ck__data *d, const char *text, ck_err *err)
{
	*d = (ck__data){0};
	if (strcmp(text, "digits") == 0)
		return open_digits(d, err);
	if (strncmp(text, "idx:", 4) == 0)
		return open_idx(d, text + 4, err);
	if (strncmp(text, "text:", 5) == 0)
		return open_text(d, text + 5, err);
	return ck_fail(err, CK_USAGE, "there is no data '%.200s'; it takes digits, idx:IMAGES,LABELS or text:FILE", text);
}

void ck__data_close(ck__data *d)
{
	free(d->files[0]);
	free(d->files[1]);
}
