/* A table of text in aligned columns. A column in which no row has anything is left out. */
#ifndef CK_COLUMNS_H
#define CK_COLUMNS_H

#include <stdio.h>

typedef struct ck_columns {
	const char *const *heads; /* n; the first character tells the side to align to: '<' left, '>' right */
	int n;
	char **cells; /* row by row; owned */
	int count, capacity;
} ck_columns;

ck_columns ck_columns_new(int n, const char *const *heads);                                        /* borrows heads */
void ck_columns_add(ck_columns *c, const char *format, ...) __attribute__((format(printf, 2, 3))); /* the next cell */
void ck_columns_print(const ck_columns *c, const char *indent, FILE *to);                          /* heads "<": no head line */
void ck_columns_free(ck_columns *c);

#endif
