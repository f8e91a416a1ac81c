#include "harness/record/columns.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/alloc.h"

ck_columns ck_columns_new(int n, const char *const *heads)
{
	return (ck_columns){.heads = heads, .n = n};
}

void ck_columns_add(ck_columns *c, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	char text[1024];
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	c->cells = ck_grow(c->cells, &c->capacity, c->count + 1, sizeof *c->cells);
	c->cells[c->count++] = ck_text("%s", text);
}

/* 0 when no row has anything in this column. */
static int width_of(const ck_columns *c, int column)
{
	size_t widest = 0;
	for (int i = column; i < c->count; i += c->n)
		if (strlen(c->cells[i]) > widest)
			widest = strlen(c->cells[i]);
	size_t head = strlen(c->heads[column] + 1);
	return (int)(widest && head > widest ? head : widest);
}

static void print_row(const ck_columns *c, const int *widths, const char *const *cells, const char *indent, FILE *to)
{
	int blanks = (int)strlen(indent); /* held back, so that no line ends with them */
	for (int i = 0; i < c->n; i++) {
		if (!widths[i])
			continue;
		int length = (int)strlen(cells[i]), free_cells = widths[i] - length;
		int before = c->heads[i][0] == '>' ? free_cells : 0;
		blanks += before;
		if (length > 0) {
			fprintf(to, "%*s%s", blanks, "", cells[i]);
			blanks = 0;
		}
		blanks += free_cells - before + 2;
	}
	fputc('\n', to);
}

void ck_columns_print(const ck_columns *c, const char *indent, FILE *to)
{
	int *widths = ck_alloc((size_t)c->n, sizeof *widths);
	const char **heads = ck_alloc((size_t)c->n, sizeof *heads);
	bool headed = false;
	for (int i = 0; i < c->n; i++) {
		widths[i] = width_of(c, i);
		heads[i] = c->heads[i] + 1;
		headed |= *heads[i] != 0;
	}
	if (headed)
		print_row(c, widths, heads, indent, to);
	for (int i = 0; i + c->n <= c->count; i += c->n)
		print_row(c, widths, (const char *const *)c->cells + i, indent, to);
	free(widths);
	free(heads);
}

void ck_columns_free(ck_columns *c)
{
	for (int i = 0; i < c->count; i++)
		free(c->cells[i]);
	free(c->cells);
	*c = (ck_columns){0};
}
