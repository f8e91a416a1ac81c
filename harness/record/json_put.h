/* Fields of a record's objects. Numbers that are not known are left out, so that no reader takes a 0 or a null for a figure. */
#ifndef CK_JSON_PUT_H
#define CK_JSON_PUT_H

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/run/parity.h"

/* In the fewest digits that read back to the same number; cJSON's own way may lose the last bit. */
static inline cJSON *exact(double number)
{
	char text[32];
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof text, "%.*g", digits, number);
		if (strtod(text, NULL) == number)
			break;
	}
	return cJSON_CreateRaw(text);
}

static inline void put_number(cJSON *to, const char *name, double number)
{
	if (isfinite(number))
		cJSON_AddItemToObject(to, name, exact(number));
}

static inline void put_numbers(cJSON *to, const char *name, const double *numbers, int n)
{
	cJSON *list = cJSON_AddArrayToObject(to, name);
	for (int i = 0; i < n; i++)
		cJSON_AddItemToArray(list, exact(numbers[i]));
}

/* 0 means not known. */
static inline void put_size(cJSON *to, const char *name, size_t bytes)
{
	if (bytes)
		put_number(to, name, (double)bytes);
}

static inline void put_text(cJSON *to, const char *name, const char *text)
{
	if (text)
		cJSON_AddStringToObject(to, name, text);
}

static inline void digest_text(ck_digest d, char text[33])
{
	snprintf(text, 33, "%016" PRIx64 "%016" PRIx64, d.hi, d.lo);
}

static inline void put_digest(cJSON *to, const char *name, ck_digest d)
{
	char text[33];
	digest_text(d, text);
	cJSON_AddStringToObject(to, name, text);
}

#endif
