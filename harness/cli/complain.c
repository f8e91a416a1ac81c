#define _GNU_SOURCE /* vasprintf */
#include "harness/cli/complain.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void ck_complain(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	char *text;
	int n = vasprintf(&text, format, args);
	va_end(args);
	if (n < 0)
		return;
	fputs("ckbench: ", stderr);
	for (const unsigned char *c = (const unsigned char *)text; *c; c++)
		fprintf(stderr, *c < ' ' || *c == 0x7f ? "\\x%02x" : "%c", *c);
	fputc('\n', stderr);
	free(text);
}
