#define _GNU_SOURCE /* vasprintf */
#include "alloc.h"

#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static void *or_die(void *memory, size_t bytes)
{
	if (!memory) {
		fprintf(stderr,
			"ckbench: out of memory for %zu bytes of bookkeeping; free some memory or take a smaller model\n",
			bytes);
		exit(3);
	}
	return memory;
}

void *ck_alloc(size_t n, size_t size)
{
	return or_die(calloc(n ? n : 1, size), n * size);
}

void *ck_grow(void *array, int *capacity, int want, size_t size)
{
	if (want <= *capacity)
		return array;
	int more = *capacity < INT_MAX / 2 ? *capacity * 2 : INT_MAX;
	if (more < want)
		more = want < 16 ? 16 : want;
	if ((size_t)more > SIZE_MAX / size)
		or_die(NULL, SIZE_MAX);
	array = or_die(realloc(array, (size_t)more * size), (size_t)more * size);
	*capacity = more;
	return array;
}

char *ck_text(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	char *text = NULL;
	int n = vasprintf(&text, format, args);
	va_end(args);
	return or_die(n < 0 ? NULL : text, 0);
}
