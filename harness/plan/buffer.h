/* A buffer of the arena: one lifetime, or a chain of lifetimes that work in place. Shared by the ways to place them. */
#ifndef CK_BUFFER_H
#define CK_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

typedef struct buffer {
	size_t bytes, offset; /* multiples of CK_ALIGN */
	int from, to;         /* instructions, both included */
	int first;            /* its first lifetime */
} buffer;

/* Places n buffers as an allocator would that meets them in time, each in the tightest free gap. Backwards, time runs from the last
 * instruction to the first, so that what lives to the end is packed first. Nearly linear, for graphs where orders cannot be
 * searched. Returns the bytes they take. */
size_t ck__place_in_time(buffer *b, int n, int instructions, bool backwards);

#endif
