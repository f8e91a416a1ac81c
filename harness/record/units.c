#include "harness/record/units.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

/* As many digits behind the point as make four in all, three at most. */
static int digits(double x)
{
	return x >= 999.95 ? 0 : x >= 99.995 ? 1 : x >= 9.9995 ? 2 : 3;
}

const char *ck_bytes_text(size_t bytes, char text[CK_UNIT_TEXT])
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double x = (double)bytes;
	int u = 0;
	for (; x >= 1023.95 && u < 6; u++)
		x /= 1024;
	snprintf(text, CK_UNIT_TEXT, "%.*f %s", u ? 1 : 0, x, units[u]);
	return text;
}

typedef struct seconds_unit {
	double scale;
	const char *name;
} seconds_unit;

static seconds_unit unit_of(double seconds)
{
	static const seconds_unit whole = {1, "s"}, milli = {1e3, "ms"}, micro = {1e6, "us"};
	return seconds >= 0.9995 ? whole : seconds >= 0.9995e-3 ? milli : micro;
}

const char *ck_seconds_text(double seconds, char text[CK_UNIT_TEXT])
{
	const seconds_unit u = unit_of(seconds);
	if (isnan(seconds))
		snprintf(text, CK_UNIT_TEXT, "-");
	else
		snprintf(text, CK_UNIT_TEXT, "%.*f %s", digits(seconds * u.scale), seconds * u.scale, u.name);
	return text;
}

const char *ck_seconds_range(double low, double high, double seconds, char text[CK_UNIT_TEXT])
{
	double scale = unit_of(seconds).scale;
	snprintf(text, CK_UNIT_TEXT, "%.*f .. %.*f", digits(low * scale), low * scale, digits(high * scale), high * scale);
	return text;
}

const char *ck_count_text(double count, char text[CK_UNIT_TEXT])
{
	static const char *const units[] = {"", " k", " M", " G", " T", " P"};
	int u = 0;
	for (; count >= 999.95 && u < 5; u++)
		count /= 1000;
	snprintf(text, CK_UNIT_TEXT, "%.*f%s", u ? 1 : 0, count, units[u]);
	return text;
}
