#include "harness/cli/progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "harness/run/measure.h"

ck_progress ck_progress_new(bool quiet)
{
	return (ck_progress){.on = !quiet && isatty(STDERR_FILENO)};
}

void ck_progress_show(ck_progress *p, bool now, const char *format, ...)
{
	double seconds = ck_seconds_now();
	if (!p->on || (!now && seconds - p->shown < 0.1))
		return;
	p->shown = seconds;
	va_list args;
	va_start(args, format);
	fputs("\r\033[K", stderr);
	vfprintf(stderr, format, args);
	fflush(stderr);
	va_end(args);
}

void ck_progress_clear(ck_progress *p)
{
	if (p->on)
		fputs("\r\033[K", stderr);
}
