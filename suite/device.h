/* Which device the suite's programs try. CKBENCH_DEVICE names it, as --device does: emu, cuda, cuda:1; when it is not set, it is cpu. A
 * program that tries it says so in each of its test suites,
 *
 *     TestSuite(NAME, .init = device_or_skip);
 *
 * so that where the device is not there, every test is skipped, with the reason. What is about the processors themselves (their threads,
 * their instruction sets) is about cpu whatever the device under test is, and skipped where another one is named. */
#ifndef CK_SUITE_DEVICE_H
#define CK_SUITE_DEVICE_H

#include "kernels/ops.h"

const char *device_under_test(void);
/* CKBENCH_DEVICE names one: cpu has had its turn then. */
bool device_is_named(void);
/* Each of its threads is a fiber: a test then takes small models and few plans, but every kind of op, plan, precision and fault.
 * CKBENCH_SLOW in the environment says it of any device, to try these small lists. */
bool device_is_slow(void);

void device_or_skip(void);
/* Skips a test of cpu's own ways when another device is named. */
void device_is_cpu_or_skip(void);

/* The device under test and ref, NULL-terminated, in the registry's order. */
const ck_backend *const *backends_under_test(void);
/* How a device of that backend is opened with so many CPU threads: the one under test where it is its backend, else the first. */
ck_open_options device_options(const ck_backend *b, int threads);

#endif
