/* Ceilings for the commands that measure them. */
#ifndef CK_CLI_CEILINGS_H
#define CK_CLI_CEILINGS_H

#include "harness/record/machine.h"
#include "harness/run/ceiling.h"

/* What there is room for beside all that is held now, and how large a copy must be; no precisions yet. */
ck_ceiling_options ck_ceiling_choose(const ck_backend *b, ck_device *d, const ck_machine *m);

#endif
