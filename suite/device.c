#include "suite/device.h"

#include <criterion/criterion.h>
#include <criterion/hooks.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const ck_backend ck_ref_backend;

bool device_is_named(void)
{
	const char *name = getenv("CKBENCH_DEVICE");
	return name && *name;
}

const char *device_under_test(void)
{
	return device_is_named() ? getenv("CKBENCH_DEVICE") : "cpu";
}

bool device_is_slow(void)
{
	return getenv("CKBENCH_SLOW") || strncmp(device_under_test(), "emu", 3) == 0;
}

/* Its name is one (PRE_ALL below). */
static const ck_backend *find(int *index)
{
	const ck_backend *b = NULL;
	ck_backend_find(device_under_test(), &b, index, NULL);
	return b;
}

void device_or_skip(void)
{
	if (!device_is_named())
		return;
	int index;
	const ck_backend *b = find(&index);
	ck_device *device;
	ck_err err = {""};
	if (b->open(&(ck_open_options){.index = index}, &device, &err) != CK_OK)
		cr_skip_test("%s", err.text);
	b->close(device);
}

void device_is_cpu_or_skip(void)
{
	if (strcmp(device_under_test(), "cpu") != 0)
		cr_skip_test("of cpu alone");
}

const ck_backend *const *backends_under_test(void)
{
	static const ck_backend *both[3];
	int index, n = 0;
	const ck_backend *b = find(&index);
	for (const ck_backend *const *known = ck_backends; *known; known++)
		if (*known == b || *known == &ck_ref_backend)
			both[n++] = *known;
	both[n] = NULL;
	return both;
}

ck_open_options device_options(const ck_backend *b, int threads)
{
	int index;
	return (ck_open_options){.index = find(&index) == b ? index : 0, .threads = threads};
}

/* Before any test: a name that no device has is a mistake of the caller's. And time limits are those of cpu. */
ReportHook(PRE_ALL)(struct criterion_test_set *set)
{
	ck_err err = {""};
	const ck_backend *b;
	int index;
	if (ck_backend_find(device_under_test(), &b, &index, &err) != CK_OK) {
		fprintf(stderr, "CKBENCH_DEVICE: %s\n", err.text);
		exit(2);
	}
	FOREACH_SET(struct criterion_suite_set * suite, set->suites)
	FOREACH_SET(struct criterion_test * test, suite->tests)
	test->data->timeout *= device_is_slow() ? 20 : 1;
}
