#include "harness/cli/scaler.h"

#include <float.h>
#include <string.h>

#include "kernels/number.h"

ck_status ck_scaler_read(const ck_options *o, bool *on, ck_scaler_options *scaler, ck_err *err)
{
	const char *text = o->given[CK_OPTION_scaler] ? o->text[CK_OPTION_scaler] : *on ? "on" : "off";
	double scale;
	*scaler = ck_scaler_preset();
	*on = strcmp(text, "off") != 0;
	if (!*on && o->given[CK_OPTION_growth_interval])
		return ck_fail(err, CK_USAGE,
			       "--growth-interval is of the scaler, which is off; add --scaler on, or leave it out");
	if (*on && strcmp(text, "on") != 0) {
		if (!ck_decimal(text, &scale) || scale < 1 || scale > (double)FLT_MAX)
			return ck_fail(err, CK_USAGE,
				       "--scaler '%.60s': give off, on or the first scale, a number from 1 to %g", text,
				       (double)FLT_MAX);
		scaler->scale = scale;
	}
	scaler->interval = o->whole[CK_OPTION_growth_interval];
	return CK_OK;
}
