#include "harness/record/digest.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "kernels/alloc.h"
#include "kernels/number.h"

enum { DIGITS = sizeof CK_NO_DIGEST - 1 };

/* Where the digits stand. Strings in JSON hold no bare line ends, so only a field of the top level can look like this. */
static const char *digits_in(const char *text, size_t bytes)
{
	static const char before[] = "\n\t\"digest\":\t\"";
	const char *at = strstr(text, before);
	if (!at)
		return NULL;
	at += sizeof before - 1;
	return (size_t)(text + bytes - at) > DIGITS && at[DIGITS] == '"' ? at : NULL;
}

static ck_digest digest_of(const char *text, size_t bytes, const char *digits)
{
	char *canonical = ck_alloc(bytes, 1);
	memcpy(canonical, text, bytes);
	memcpy(canonical + (digits - text), CK_NO_DIGEST, DIGITS);
	XXH128_hash_t hash = XXH3_128bits(canonical, bytes);
	free(canonical);
	return (ck_digest){hash.high64, hash.low64};
}

void ck_record_seal(char *text, size_t bytes)
{
	char *digits = (char *)digits_in(text, bytes), written[DIGITS + 1];
	if (!digits)
		return;
	ck_digest d = digest_of(text, bytes, digits);
	snprintf(written, sizeof written, "%016" PRIx64 "%016" PRIx64, d.hi, d.lo);
	memcpy(digits, written, DIGITS);
}

bool ck_record_is_sealed(const char *text, size_t bytes, ck_digest *digest)
{
	const char *digits = digits_in(text, bytes);
	if (!digits || !ck_hex64(digits, &digest->hi) || !ck_hex64(digits + 16, &digest->lo))
		return false;
	ck_digest d = digest_of(text, bytes, digits);
	return d.hi == digest->hi && d.lo == digest->lo;
}
