/* Errors and warnings, on stderr. */
#ifndef CK_COMPLAIN_H
#define CK_COMPLAIN_H

/* "ckbench: …" as one line, whatever names in it hold: control characters are shown as \xNN. */
void ck_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
