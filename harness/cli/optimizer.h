/* The optimizer that a command line asks for. */
#ifndef CK_CLI_OPTIMIZER_H
#define CK_CLI_OPTIMIZER_H

#include "harness/cli/options.h"
#include "kernels/ops.h"

/* From --optimizer, --lr, --momentum and --weight-decay. CK_USAGE: no such optimizer, or an option that it does not have. */
ck_status ck_optimizer_read(const ck_options *o, ck_optimizer *optimizer, ck_err *err);

#endif
