/* An NVML with one GPU, as NVIDIA's "NVML API Reference Guide" declares its functions, and strict about their arguments. A test
 * sets what it tells (fake_nvml), found by its name as the functions are. Built twice: with CK_FAKE_OLD as an older driver, which
 * has another name for the reasons and counts no violations. */
#include "suite/facts/fake_nvml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7 };

struct nvmlDevice_st {
	int unused;
};
typedef struct nvmlDevice_st *nvmlDevice_t;
typedef struct nvmlMemory_st {
	unsigned long long total, free, used;
} nvmlMemory_t;
typedef struct nvmlViolationTime_st {
	unsigned long long referenceTime, violationTime;
} nvmlViolationTime_t;

fake_nvml_state fake_nvml = {.bus = "0000:1b:00.0", .reasons = 1};
static struct nvmlDevice_st gpu;

/* What every call about the GPU checks first. */
#define CHECK(device, pointer)                                                                                                 \
	do {                                                                                                                   \
		if (fake_nvml.users <= 0)                                                                                      \
			return UNINITIALIZED;                                                                                  \
		if ((device) != &gpu || !(pointer))                                                                            \
			return INVALID_ARGUMENT;                                                                               \
		if (fake_nvml.supports_nothing)                                                                                \
			return NOT_SUPPORTED;                                                                                  \
	} while (0)

int nvmlInit_v2(void);
int nvmlInit_v2(void)
{
	if (fake_nvml.fails_to_start)
		return 9; /* NVML_ERROR_DRIVER_NOT_LOADED */
	fake_nvml.users++;
	return SUCCESS;
}

int nvmlShutdown(void);
int nvmlShutdown(void)
{
	return fake_nvml.users-- > 0 ? SUCCESS : UNINITIALIZED;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *pciBusId, nvmlDevice_t *device);
int nvmlDeviceGetHandleByPciBusId_v2(const char *pciBusId, nvmlDevice_t *device)
{
	if (fake_nvml.users <= 0)
		return UNINITIALIZED;
	if (!pciBusId || !device)
		return INVALID_ARGUMENT;
	if (strcmp(pciBusId, fake_nvml.bus) != 0)
		return NOT_FOUND;
	*device = &gpu;
	return SUCCESS;
}

static int text(const char *from, char *to, unsigned length)
{
	if (strlen(from) + 1 > length)
		return INSUFFICIENT_SIZE;
	strcpy(to, from);
	return SUCCESS;
}

int nvmlSystemGetDriverVersion(char *version, unsigned int length);
int nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
	return fake_nvml.users <= 0 ? UNINITIALIZED : !version ? INVALID_ARGUMENT : text("580.65.06", version, length);
}

int nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length);
int nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length)
{
	CHECK(device, name);
	return text("NVIDIA H200", name, length);
}

int nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor);
int nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor)
{
	CHECK(device, major && minor);
	*major = 9;
	*minor = 0;
	return SUCCESS;
}

int nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory);
int nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
	CHECK(device, memory);
	*memory = (nvmlMemory_t){.total = 150754820096, .free = 150000000000, .used = 754820096};
	return SUCCESS;
}

/* type: NVML_CLOCK_GRAPHICS 0, _SM 1, _MEM 2, _VIDEO 3; in MHz */
int nvmlDeviceGetClockInfo(nvmlDevice_t device, int type, unsigned int *clock);
int nvmlDeviceGetClockInfo(nvmlDevice_t device, int type, unsigned int *clock)
{
	CHECK(device, clock && type >= 0 && type <= 3);
	*clock = (unsigned[]){344, 345, 3201, 765}[type];
	return SUCCESS;
}

int nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, int type, unsigned int *clock);
int nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, int type, unsigned int *clock)
{
	CHECK(device, clock && type >= 0 && type <= 3);
	*clock = (unsigned[]){1979, 1980, 3201, 1545}[type];
	return SUCCESS;
}

int nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int *limit);
int nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int *limit)
{
	CHECK(device, limit);
	*limit = 700500; /* mW */
	return SUCCESS;
}

int nvmlDeviceGetEccMode(nvmlDevice_t device, int *current, int *pending);
int nvmlDeviceGetEccMode(nvmlDevice_t device, int *current, int *pending)
{
	CHECK(device, current && pending);
	*current = 1;
	*pending = 0;
	return SUCCESS;
}

#ifdef CK_FAKE_OLD
#define REASONS nvmlDeviceGetCurrentClocksThrottleReasons
#else
#define REASONS nvmlDeviceGetCurrentClocksEventReasons
#endif

int REASONS(nvmlDevice_t device, unsigned long long *bits);
int REASONS(nvmlDevice_t device, unsigned long long *bits)
{
	CHECK(device, bits);
	*bits = fake_nvml.reasons;
	return SUCCESS;
}

#ifndef CK_FAKE_OLD
/* policy: NVML_PERF_POLICY_POWER 0, _THERMAL 1, … */
int nvmlDeviceGetViolationStatus(nvmlDevice_t device, int policy, nvmlViolationTime_t *time);
int nvmlDeviceGetViolationStatus(nvmlDevice_t device, int policy, nvmlViolationTime_t *time)
{
	CHECK(device, time && policy >= 0 && policy <= 11);
	if (policy > 1)
		return NOT_SUPPORTED;
	*time = (nvmlViolationTime_t){.referenceTime = ++fake_nvml.microseconds, .violationTime = fake_nvml.violation[policy]};
	return SUCCESS;
}
#endif
