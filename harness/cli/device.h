/* What devices say of themselves, for the commands that show them. */
#ifndef CK_CLI_DEVICE_H
#define CK_CLI_DEVICE_H

#include "harness/record/machine.h"
#include "kernels/ops.h"

/* Calls `line` for each line about the backend's devices, device by device. The first has the name that --device takes ("cpu",
 * "cuda:1") and the device's own words, with what its 16-bit types are there, or why it cannot be opened; the others have the
 * name "" and what is known of it beside. machine: NULL, or what was read of it: then what the device can do at most is measured,
 * too. */
void ck_devices_tell(const ck_backend *b, const ck_machine *machine,
		     void (*line)(void *user, const char *name, const char *text), void *user);

#endif
