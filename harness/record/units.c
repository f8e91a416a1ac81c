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

const char *ck_seconds_text(double seconds, char text[CK_UNIT_TEXT])
{
	if (isnan(seconds)) {
		snprintf(text, CK_UNIT_TEXT, "-");
		return text;
	}
	bool whole = seconds >= 0.9995, milli = seconds >= 0.9995e-3;
	double x = seconds * (whole ? 1 : milli ? 1e3 : 1e6);
	snprintf(text, CK_UNIT_TEXT, "%.*f %s", digits(x), x, whole ? "s" : milli ? "ms" : "us");
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
