/* The loss scaler that a command line asks for. */
#ifndef CK_CLI_SCALER_H
#define CK_CLI_SCALER_H

#include "harness/cli/options.h"
#include "harness/run/scaler.h"

/* From --scaler and --growth-interval; *on tells whether there is one, and comes with what holds where --scaler was not given.
 * CK_USAGE: neither word nor scale, or the interval of a scaler that is off. */
ck_status ck_scaler_read(const ck_options *o, bool *on, ck_scaler_options *scaler, ck_err *err);

#endif
