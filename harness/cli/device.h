/* What a device says of itself, for the commands that show devices. */
#ifndef CK_CLI_DEVICE_H
#define CK_CLI_DEVICE_H

#include "kernels/ops.h"

/* The first device of a backend in its own words, with what its 16-bit types are there, or why it cannot be opened. Fresh memory. */
char *ck_device_text(const ck_backend *b);

#endif
