#include "kernels/status.h"

#include <stdarg.h>
#include <stdio.h>

ck_status ck_fail(ck_err *err, ck_status status, const char *format, ...)
{
	if (err && !err->text[0]) {
		va_list args;
		va_start(args, format);
		vsnprintf(err->text, sizeof err->text, format, args);
		va_end(args);
	}
	return status;
}
