/* Words as a shell takes them, so that what is printed can be pasted back. */
#ifndef CK_SHELL_H
#define CK_SHELL_H

/* The words in a line, in quotes where one holds more than plain characters. Fresh memory. */
char *ck_shell_line(int n, const char *const *words);

#endif
