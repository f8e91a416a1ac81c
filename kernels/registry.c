/* The backends that this program has, in the order in which they are listed: one line each. */
#include "kernels/ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const ck_backend ck_cpu_backend, ck_ref_backend, ck_cuda_backend, ck_emu_backend;

const ck_backend *const ck_backends[] = {
    &ck_cpu_backend, &ck_ref_backend, &ck_cuda_backend, &ck_emu_backend, NULL,
};

/* Reads the ":1" of "cuda:1"; no suffix means 0. */
static bool read_index(const char *suffix, int *index)
{
	*index = 0;
	if (!*suffix)
		return true;
	if (*suffix != ':' || suffix[1] < '0' || suffix[1] > '9')
		return false;
	char *end;
	unsigned long n = strtoul(suffix + 1, &end, 10);
	*index = (int)n;
	return !*end && n <= 1023;
}

ck_status ck_backend_find(const char *name, const ck_backend **backend, int *index, ck_err *err)
{
	size_t length = strcspn(name, ":");
	char known[256] = "";
	size_t at = 0;
	for (const ck_backend *const *b = ck_backends; *b; b++) {
		if (strlen((*b)->name) == length && !memcmp((*b)->name, name, length)) {
			*backend = *b;
			if (read_index(name + length, index))
				return CK_OK;
			return ck_fail(err, CK_USAGE, "device \"%.60s\": write %s, or %s:N for device number N (0 to 1023)",
				       name, (*b)->name, (*b)->name);
		}
		if (at < sizeof known)
			at += (size_t)snprintf(known + at, sizeof known - at, "%s%s", at ? ", " : "", (*b)->name);
	}
	return ck_fail(err, CK_USAGE, "unknown device \"%.60s\"; known ones: %s", name, known);
}

ck_device_facts ck_backend_facts(const ck_backend *backend, ck_device *device)
{
	ck_device_facts facts = {.ecc = -1};
	if (backend->facts)
		backend->facts(device, &facts);
	return facts;
}
