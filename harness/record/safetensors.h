/* Tensors in a file, in the form of Hugging Face's safetensors, which every framework reads:
 *
 *     length    | header: one JSON object, padded with blanks                                        | data
 *     8 bytes LE| {"__metadata__": {…}, NAME: {"dtype", "shape", "data_offsets": [from, to]}, …}     | all tensors, no gaps
 *
 * Offsets count from where the data begins, which is a multiple of 64 bytes here. Larger element types come first, so that
 * every tensor lies on a multiple of its element's size without gaps, which the format forbids. */
#ifndef CK_SAFETENSORS_H
#define CK_SAFETENSORS_H

#include <stddef.h>

#include "kernels/status.h"
#include "kernels/tensor.h"

typedef struct ck_safetensor {
	char *name;
	const char *dtype; /* "F64", "F32", "I64", "U8", …, as the format writes it */
	size_t each;       /* bytes of an element */
	int nd;            /* 0: one number */
	int64_t d[8];
	size_t at, bytes; /* in the data */
} ck_safetensor;

typedef struct ck_safetensors { /* ck_safetensors_free */
	ck_safetensor *tensors; /* once laid out or read: by name, ascending */
	int n, capacity;
	char *file; /* the file as it stands on the disk, `bytes` long; NULL before it is laid out */
	size_t bytes, data;
} ck_safetensors;

/* Adds a tensor of one of the format's dtypes. shape.nd may be 0. */
void ck_safetensors_add(ck_safetensors *f, const char *name, const char *dtype, ck_shape shape);

/* All tensors are added: gives each its place, takes memory for the whole file and writes its header. `metadata`: names and
 * texts in turn, ending with NULL. CK_USAGE: two tensors of one name; CK_MISSING: no memory. */
ck_status ck_safetensors_lay_out(ck_safetensors *f, const char *const *metadata, ck_err *err);

/* Reads a file whole. CK_USAGE when it is no such file, is cut short, or its header does not describe its data: dtypes and
 * shapes that do not make the bytes that the offsets say, offsets that overlap, leave gaps or lead out of the file. */
ck_status ck_safetensors_read(ck_safetensors *f, const char *path, ck_err *err);

void ck_safetensors_free(ck_safetensors *f);

/* NULL: there is none. Only once laid out or read. */
const ck_safetensor *ck_safetensors_find(const ck_safetensors *f, const char *name);
void *ck_safetensors_data(const ck_safetensors *f, const ck_safetensor *t);
/* "F32 64x3x7x7", "I64" of one number. Text in fresh memory. */
char *ck_safetensor_text(const char *dtype, int nd, const int64_t *d);

#endif
