#define _GNU_SOURCE /* open_memstream */
#include "harness/record/shell.h"

#include <stdio.h>
#include <string.h>

#include "kernels/alloc.h"

static void put_word(FILE *to, const char *word)
{
	if (*word && !strpbrk(word, " \t\n\"'\\$`*?;&|<>()[]{}#~!")) {
		fputs(word, to);
		return;
	}
	fputc('\'', to);
	for (; *word; word++) {
		if (*word == '\'')
			fputs("'\\''", to); /* out of the quotes, a quote, in again */
		else
			fputc(*word, to);
	}
	fputc('\'', to);
}

char *ck_shell_line(int n, const char *const *words)
{
	char *line = NULL;
	size_t bytes;
	FILE *to = open_memstream(&line, &bytes);
	if (!to)
		return ck_text("%s", "");
	for (int i = 0; i < n; i++) {
		if (i)
			fputc(' ', to);
		put_word(to, words[i]);
	}
	fclose(to);
	return line;
}
