/* Running text in the terminal's usual 80 columns. */
#ifndef CK_WRAP_H
#define CK_WRAP_H

#include <stdio.h>

/* `head` behind `indent` blanks, then the text from column `column` on, broken between words. A longer head stands alone. */
void ck_wrap(const char *head, int indent, const char *text, int column, FILE *to);

#endif
