/* A record's own digest, by which a reader notices that it was changed since: the top level's field `digest`, 32 hexadecimal
 * digits, XXH3-128 over the bytes of the whole text with these digits as zeros. It guards against mistakes, not against forgers:
 * anyone can work it out. */
#ifndef CK_RECORD_DIGEST_H
#define CK_RECORD_DIGEST_H

#include <stdbool.h>
#include <stddef.h>

#include "harness/run/parity.h"

#define CK_NO_DIGEST "00000000000000000000000000000000" /* what stands there before it is known */

/* Writes the digest into a record's text that has room for one; leaves any other alone. */
void ck_record_seal(char *text, size_t bytes);
/* Whether the text has a digest and it fits; gives it. */
bool ck_record_is_sealed(const char *text, size_t bytes, ck_digest *digest);

#endif
