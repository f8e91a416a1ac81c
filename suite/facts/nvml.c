/* What is read from NVML, on a fake one. It is loaded by its path first: the loader then finds it under the name that the real
 * one bears. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/nvml.h"
#include "suite/facts/fake_nvml.h"

static fake_nvml_state *load(const char *which)
{
	cr_assert(getenv(which), "%s names no library; run this through meson test, or set it", which);
	void *library = dlopen(getenv(which), RTLD_NOW);
	cr_assert(library, "%s", dlerror());
	fake_nvml_state *state = dlsym(library, "fake_nvml");
	cr_assert(state);
	return state;
}

static ck_nvml *open_gpu(const fake_nvml_state *state)
{
	ck_nvml *n;
	cr_assert(ck__nvml_open("0000:1b:00.0", &n) && n);
	cr_assert(state->users == 1);
	return n;
}

Test(nvml, facts)
{
	fake_nvml_state *state = load("CKBENCH_FAKE_NVML");
	ck_nvml *n = open_gpu(state);
	ck_device_facts f = {.ecc = -1};
	ck__nvml_facts(n, &f);
	cr_expect_str_eq(f.name, "NVIDIA H200");
	cr_expect_str_eq(f.capability, "9.0");
	cr_expect_str_eq(f.driver, "580.65.06");
	cr_expect_str_eq(f.power_state, "", "an idle GPU is not throttled: %s", f.power_state);
	cr_expect(f.memory == 150754820096 && f.clock == 345e6 && f.clock_most == 1980e6 && f.memory_clock == 3201e6);
	cr_expect(f.power_limit == 700.5 && f.ecc == 1 && f.tells_throttling);
	strcpy(f.name, "as CUDA has it"); /* what is known already stays */
	f.memory = 7;
	ck__nvml_facts(n, &f);
	cr_expect(strcmp(f.name, "as CUDA has it") == 0 && f.memory == 7);
	ck__nvml_close(n);
	cr_expect(state->users == 0, "it was not shut down");
}

/* Every reason that the reference guide lists, and one of a later driver's. */
static void check_reasons(const char *library)
{
	static const struct {
		unsigned long long bits;
		bool throttled;
		const char *words;
	} cases[] = {
	    {0x000, false, ""},
	    {0x001, false, ""}, /* idle */
	    {0x002, false, ""}, /* application clocks */
	    {0x004, true, "power cap"},
	    {0x008, true, "hardware slowdown"},
	    {0x010, true, "sync boost"},
	    {0x020, true, "too hot (software)"},
	    {0x040, true, "too hot (hardware)"},
	    {0x080, true, "power brake"},
	    {0x100, false, ""}, /* display clocks */
	    {0x200, false, ""},
	    {0x049, true, "hardware slowdown, too hot (hardware)"},
	    {0x1ff, true, "power cap, hardware slowdown, sync boost, too hot (software), too hot (hardware), power brake"},
	};
	fake_nvml_state *state = load(library);
	ck_nvml *n = open_gpu(state);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		ck_device_facts f = {.ecc = -1};
		state->reasons = cases[i].bits;
		ck__nvml_facts(n, &f);
		cr_expect(strcmp(f.power_state, cases[i].words) == 0 && f.tells_throttling, "%s: %#llx: '%s'", library,
			  cases[i].bits, f.power_state);
		cr_expect(ck__nvml_throttled(n) == cases[i].throttled, "%s: %#llx", library, cases[i].bits);
	}
	ck__nvml_close(n);
}

Test(nvml, reasons)
{
	check_reasons("CKBENCH_FAKE_NVML");
}

Test(nvml, reasons_by_their_older_name)
{
	check_reasons("CKBENCH_FAKE_NVML_OLD");
}

/* What was over before the call looks at it shows in the counters, once. */
Test(nvml, since_the_last_call)
{
	fake_nvml_state *state = load("CKBENCH_FAKE_NVML");
	state->violation[0] = 5000; /* from before it was opened */
	ck_nvml *n = open_gpu(state);
	cr_expect(!ck__nvml_throttled(n));
	for (int policy = 0; policy < 2; policy++) {
		state->violation[policy] += 1;
		cr_expect(ck__nvml_throttled(n), "policy %d", policy);
		cr_expect(!ck__nvml_throttled(n), "policy %d, a second time", policy);
	}
	state->violation[0] = state->violation[1] += 1; /* both at once are both seen */
	cr_expect(ck__nvml_throttled(n) && !ck__nvml_throttled(n));
	ck__nvml_close(n);
}

/* No library, a driver that does not run, another place on the bus, a GPU that supports nothing: all stays unknown. */
Test(nvml, unknown)
{
	ck_nvml *n = (ck_nvml *)&n;
	cr_expect(!ck__nvml_open("ffff:ff:1f.7", &n) && !n);
	fake_nvml_state *state = load("CKBENCH_FAKE_NVML");
	cr_expect(!ck__nvml_open("0000:1c:00.0", &n) && !n && state->users == 0);
	state->fails_to_start = true;
	cr_expect(!ck__nvml_open("0000:1b:00.0", &n) && !n && state->users == 0);
	state->fails_to_start = false;
	state->supports_nothing = true;
	for (int open = 0; open < 2; open++) {
		ck_device_facts f = {.ecc = -1};
		cr_expect(ck__nvml_open("0000:1b:00.0", &n) == true);
		ck__nvml_facts(open ? n : NULL, &f);
		cr_expect(!f.name[0] && !f.capability[0] && !f.power_state[0] && !f.memory && !f.clock && !f.clock_most &&
			  !f.memory_clock && !f.power_limit && f.ecc == -1 && !f.tells_throttling);
		cr_expect(!f.driver[0] == !open, "the driver tells its version all the same");
		cr_expect(!ck__nvml_throttled(open ? n : NULL));
		ck__nvml_close(n);
	}
	ck__nvml_close(NULL);
	cr_expect(state->users == 0);
}
