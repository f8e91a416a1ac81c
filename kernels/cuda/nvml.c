/* NVML's functions by name. The declarations follow NVIDIA's "NVML API Reference Guide" (docs.nvidia.com/deploy/nvml-api): nvmlInit
 * and nvmlDeviceGetHandleByPciBusId are macros for the functions that end in _v2, and older drivers call the clocks' event reasons
 * throttle reasons. A function that a driver lacks, or a GPU does not support, leaves its facts unknown. */
#define _GNU_SOURCE
#include "kernels/cuda/nvml.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/alloc.h"

typedef int nvml_return; /* nvmlReturn_t: 0 is NVML_SUCCESS */
typedef struct nvml_gpu *nvml_device;

enum { CLOCK_SM = 1, CLOCK_MEM = 2 };                        /* nvmlClockType_t */
enum { POLICY_POWER = 0, POLICY_THERMAL = 1, POLICIES = 2 }; /* nvmlPerfPolicyType_t */
enum { DRIVER_VERSION_TEXT = 80 };                           /* NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE */
typedef struct {
	unsigned long long total, free, used;
} nvml_memory; /* nvmlMemory_t, bytes */
typedef struct {
	unsigned long long reference, violation;
} nvml_violation; /* nvmlViolationTime_t: us, ns */

#define FUNCTIONS(X)                                                                                                           \
	X(shutdown, "nvmlShutdown", (void))                                                                                    \
	X(driver, "nvmlSystemGetDriverVersion", (char *, unsigned))                                                            \
	X(name, "nvmlDeviceGetName", (nvml_device, char *, unsigned))                                                          \
	X(capability, "nvmlDeviceGetCudaComputeCapability", (nvml_device, int *, int *))                                       \
	X(memory, "nvmlDeviceGetMemoryInfo", (nvml_device, nvml_memory *))                                                     \
	X(clock, "nvmlDeviceGetClockInfo", (nvml_device, int, unsigned *))                                                     \
	X(clock_most, "nvmlDeviceGetMaxClockInfo", (nvml_device, int, unsigned *))                                             \
	X(power_limit, "nvmlDeviceGetEnforcedPowerLimit", (nvml_device, unsigned *))                                           \
	X(ecc, "nvmlDeviceGetEccMode", (nvml_device, int *, int *))                                                            \
	X(reasons, "nvmlDeviceGetCurrentClocksEventReasons", (nvml_device, unsigned long long *))                              \
	X(reasons_older, "nvmlDeviceGetCurrentClocksThrottleReasons", (nvml_device, unsigned long long *))                     \
	X(violation, "nvmlDeviceGetViolationStatus", (nvml_device, int, nvml_violation *))

struct ck_nvml {
	void *library;
	nvml_device device;
	unsigned long long violated[POLICIES]; /* ns at the last look */
#define X(field, name, arguments) nvml_return(*field) arguments;
	FUNCTIONS(X)
#undef X
};

/* nvmlClocksEventReasons…: what holds the clocks below the most there can be. What slows the device down on its own account
 * is throttling; an idle device, clocks that somebody has set, and a display are not. */
static const struct {
	unsigned long long bit;
	bool throttles;
	const char *words;
} reasons[] = {
    {0x001, false, "idle"},
    {0x002, false, "clocks set by the user"},
    {0x004, true, "power cap"},
    {0x008, true, "hardware slowdown"},
    {0x010, true, "sync boost"},
    {0x020, true, "too hot (software)"},
    {0x040, true, "too hot (hardware)"},
    {0x080, true, "power brake"},
    {0x100, false, "clocks set for a display"},
};
enum { REASONS = sizeof reasons / sizeof *reasons };

/* A function's address as one: C has no cast for it (POSIX allows it, and dlsym's manual does it this way). */
static void find(void *library, const char *name, void *function)
{
	*(void **)function = dlsym(library, name);
}

static bool begin(ck_nvml *n, const char *pci_bus_id)
{
	nvml_return (*init)(void);
	nvml_return (*by_bus)(const char *, nvml_device *);
	find(n->library, "nvmlInit_v2", &init);
	find(n->library, "nvmlDeviceGetHandleByPciBusId_v2", &by_bus);
#define X(field, name, arguments) find(n->library, name, &n->field);
	FUNCTIONS(X)
#undef X
	if (!n->reasons)
		n->reasons = n->reasons_older;
	if (!init || !n->shutdown || !by_bus || init() != 0)
		return false;
	if (by_bus(pci_bus_id, &n->device) == 0)
		return true;
	n->shutdown();
	return false;
}

/* Nanoseconds that the policy has held the clocks down for; false where it is not counted. */
static bool violation_of(const ck_nvml *n, int policy, unsigned long long *ns)
{
	nvml_violation v = {0, 0};
	if (!n->violation || n->violation(n->device, policy, &v) != 0)
		return false;
	*ns = v.violation;
	return true;
}

/* Whether a counter has grown since the last look. */
static bool violated(ck_nvml *n)
{
	bool grown = false;
	for (int p = 0; p < POLICIES; p++) {
		unsigned long long now;
		if (!violation_of(n, p, &now))
			continue;
		grown |= now > n->violated[p];
		n->violated[p] = now;
	}
	return grown;
}

bool ck__nvml_open(const char *pci_bus_id, ck_nvml **nvml)
{
	*nvml = NULL;
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return false;
	ck_nvml *n = ck_alloc(1, sizeof *n);
	n->library = library;
	if (!begin(n, pci_bus_id)) {
		dlclose(library);
		free(n);
		return false;
	}
	violated(n); /* from here on */
	*nvml = n;
	return true;
}

void ck__nvml_close(ck_nvml *n)
{
	if (!n)
		return;
	n->shutdown();
	dlclose(n->library);
	free(n);
}

/* ---- facts --------------------------------------------------------------------------------------------------------------- */

/* 0 where it is not known. NVML counts in MHz. */
static double hertz(const ck_nvml *n, nvml_return (*get)(nvml_device, int, unsigned *), int which)
{
	unsigned mhz = 0;
	return get && get(n->device, which, &mhz) == 0 ? 1e6 * mhz : 0;
}

static bool reasons_now(const ck_nvml *n, unsigned long long *bits)
{
	*bits = 0;
	return n->reasons && n->reasons(n->device, bits) == 0;
}

/* The words of those bits that throttle, comma between. */
static void tell_reasons(unsigned long long bits, char text[CK_FACT_TEXT])
{
	size_t at = 0;
	for (int i = 0; i < REASONS; i++)
		if (bits & reasons[i].bit && reasons[i].throttles && at < CK_FACT_TEXT)
			at += (size_t)snprintf(text + at, CK_FACT_TEXT - at, "%s%s", at ? ", " : "", reasons[i].words);
}

static void identify(const ck_nvml *n, ck_device_facts *f)
{
	int major, minor;
	nvml_memory memory;
	if (!f->name[0] && n->name && n->name(n->device, f->name, CK_FACT_TEXT) != 0)
		f->name[0] = 0;
	if (!f->capability[0] && n->capability && n->capability(n->device, &major, &minor) == 0)
		snprintf(f->capability, CK_FACT_TEXT, "%d.%d", major, minor);
	if (!f->memory && n->memory && n->memory(n->device, &memory) == 0)
		f->memory = (size_t)memory.total;
}

void ck__nvml_facts(ck_nvml *n, ck_device_facts *f)
{
	if (!n)
		return;
	char version[DRIVER_VERSION_TEXT];
	unsigned milliwatts;
	int ecc, pending;
	unsigned long long bits, ns;
	identify(n, f);
	if (n->driver && n->driver(version, sizeof version) == 0)
		snprintf(f->driver, CK_FACT_TEXT, "%s", version);
	f->clock = hertz(n, n->clock, CLOCK_SM);
	f->clock_most = hertz(n, n->clock_most, CLOCK_SM);
	f->memory_clock = hertz(n, n->clock, CLOCK_MEM);
	if (n->power_limit && n->power_limit(n->device, &milliwatts) == 0)
		f->power_limit = 1e-3 * milliwatts;
	if (n->ecc && n->ecc(n->device, &ecc, &pending) == 0)
		f->ecc = ecc;
	bool tells_reasons = reasons_now(n, &bits);
	tell_reasons(bits, f->power_state);
	f->tells_throttling = tells_reasons || violation_of(n, POLICY_POWER, &ns) || violation_of(n, POLICY_THERMAL, &ns);
}

bool ck__nvml_throttled(ck_nvml *n)
{
	if (!n)
		return false;
	unsigned long long bits;
	bool grown = violated(n); /* looked at in any case, so that the next call starts from here */
	reasons_now(n, &bits);
	for (int i = 0; i < REASONS; i++)
		grown |= bits & reasons[i].bit && reasons[i].throttles;
	return grown;
}
