#include "harness/cli/wrap.h"

#include <string.h>

enum { WIDTH = 80 };

void ck_wrap(const char *head, int indent, const char *text, int column, FILE *to)
{
	int at = fprintf(to, "%*s%s", indent, "", head);
	if (at > column - 2 && *head) {
		fputc('\n', to);
		at = 0;
	}
	for (const char *word = text; *word;) {
		int length = (int)strcspn(word, " ");
		if (at > column && at + 1 + length > WIDTH) {
			fputc('\n', to);
			at = 0;
		}
		if (at < column)
			at += fprintf(to, "%*s%.*s", column - at, "", length, word);
		else
			at += fprintf(to, "%s%.*s", at > column ? " " : "", length, word);
		word += length;
		word += strspn(word, " ");
	}
	fputc('\n', to);
}
