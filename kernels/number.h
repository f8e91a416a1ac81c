/* Numbers as users write them, read in one way everywhere: plain digits, '-' in front at most. strtoll and its kin would also
 * take blanks, '+', hexadecimal, "nan" and "inf". Who reads a number checks its range, and so tells why -1 is refused. */
#ifndef CK_NUMBER_H
#define CK_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* The whole number at *at, which moves behind it. false, and nothing changes: there is none, or it is beyond int64. */
bool ck_whole_at(const char **at, int64_t *n);
/* All of the text is a whole number. */
bool ck_whole(const char *text, int64_t *n);
/* All of the text is a decimal number, 0.5 or .5 or 5e-1; infinite where it is beyond double. */
bool ck_decimal(const char *text, double *x);
/* The first 16 characters are hexadecimal digits in lower case, as digests are written. */
bool ck_hex64(const char *text, uint64_t *n);

#endif
