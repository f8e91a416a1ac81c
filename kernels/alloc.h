/* Host memory for our own bookkeeping (names, tables): small, so running out of it ends the program with a message. Tensors'
 * memory is a backend's alloc, which can be refused politely. */
#ifndef CK_ALLOC_H
#define CK_ALLOC_H

#include <stddef.h>

/* n objects of `size` bytes, zeroed; never NULL, even for n = 0. free() releases. */
void *ck_alloc(size_t n, size_t size);
/* Makes room for at least `want` objects in a growing array; capacity at least doubles. Returns the array. */
void *ck_grow(void *array, int *capacity, int want, size_t size);
/* printf into fresh memory. */
char *ck_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
