#include "kernels/number.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char DIGITS[] = "0123456789";

bool ck_whole_at(const char **at, int64_t *n)
{
	size_t digits = strspn(*at + (**at == '-'), DIGITS);
	if (!digits)
		return false;
	char *end;
	errno = 0;
	long long read = strtoll(*at, &end, 10);
	if (errno)
		return false;
	*n = read;
	*at = end;
	return true;
}

bool ck_whole(const char *text, int64_t *n)
{
	return ck_whole_at(&text, n) && !*text;
}

/* How many digits *at starts with; it moves behind them. */
static size_t skip_digits(const char **at)
{
	size_t n = strspn(*at, DIGITS);
	*at += n;
	return n;
}

bool ck_decimal(const char *text, double *x)
{
	const char *at = text + (*text == '-');
	size_t digits = skip_digits(&at);
	if (*at == '.') {
		at++;
		digits += skip_digits(&at);
	}
	if (digits && (*at == 'e' || *at == 'E')) {
		at++;
		at += *at == '-' || *at == '+';
		digits = skip_digits(&at);
	}
	if (!digits || *at)
		return false;
	*x = strtod(text, NULL);
	return true;
}

bool ck_hex64(const char *text, uint64_t *n)
{
	char digits[17] = "";
	strncpy(digits, text, 16);
	if (strspn(digits, "0123456789abcdef") != 16)
		return false;
	*n = strtoull(digits, NULL, 16);
	return true;
}
