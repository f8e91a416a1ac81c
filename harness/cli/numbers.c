#include "harness/cli/numbers.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/alloc.h"
#include "kernels/number.h"

enum { MOST = 10000 };

/* One item, "4" or "1..64*2": from, to, and the factor, 1 for steps of one. Stops at a ',' or the end. */
static bool item(const char **at, int64_t *from, int64_t *to, int64_t *factor)
{
	if (!ck_whole_at(at, from))
		return false;
	*to = *from;
	*factor = 1;
	if (strncmp(*at, "..", 2) == 0) {
		*at += 2;
		if (!ck_whole_at(at, to))
			return false;
		if (**at == '*') {
			++*at;
			if (!ck_whole_at(at, factor) || *factor < 2 || *from < 1)
				return false;
		}
	}
	return **at == ',' || **at == 0;
}

static ck_status add_item(const char *what, const char *text, int64_t from, int64_t to, int64_t factor, ck_numbers *list,
			  ck_err *err)
{
	if (from > to)
		return ck_fail(err, CK_USAGE, "%s '%.60s': %" PRId64 "..%" PRId64 " is empty; write the lower end first", what,
			       text, from, to);
	for (int64_t n = from;;) {
		if (list->n == MOST)
			return ck_fail(err, CK_USAGE,
				       "%s '%.60s' names more than %d numbers; name fewer, or every other: 1..64*2", what, text,
				       MOST);
		list->at = ck_grow(list->at, &list->capacity, list->n + 1, sizeof *list->at);
		list->at[list->n++] = n;
		if (n == to || n > to / factor || (factor == 1 && n == INT64_MAX))
			return CK_OK;
		n = factor > 1 ? n * factor : n + 1;
	}
}

ck_status ck_numbers_read(const char *what, const char *text, ck_numbers *list, ck_err *err)
{
	const char *at = text;
	ck_status status = CK_OK;
	do {
		int64_t from, to, factor;
		if (!item(&at, &from, &to, &factor))
			return ck_fail(err, CK_USAGE, "%s '%.60s' is no list of whole numbers; write 1,2,4 or 1..12 or 1..64*2",
				       what, text);
		status = add_item(what, text, from, to, factor, list, err);
	} while (status == CK_OK && *at++ == ',');
	return status;
}
