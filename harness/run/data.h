/* A data set as it lies in memory: images with labels, or text. Shared by data.c and batch.c. */
#ifndef CK_DATA_H
#define CK_DATA_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/status.h"

typedef struct ck__data {
	const uint8_t *bytes;  /* pixels (count, h, w, c), or the text (count) */
	const uint8_t *labels; /* (count); NULL for a text */
	int64_t count;         /* images, or bytes of text */
	int64_t h, w, c;
	int classes;       /* greatest label + 1 */
	double white;      /* the pixel value that stands for 1 */
	uint8_t *files[2]; /* what was read from files, owned */
} ck__data;

/* Reads what `text` names, see batch.h; ck__data_close even after a failure. */
ck_status ck__data_open(ck__data *d, const char *text, ck_err *err);
void ck__data_close(ck__data *d);

/* The digits that are part of the program: two IDX files, byte for byte. */
extern const uint8_t ck__digits_images[], ck__digits_images_end[], ck__digits_labels[], ck__digits_labels_end[];

#endif
