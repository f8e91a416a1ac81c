#include "kernels/cpu/throttle.h"

#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "kernels/cgroup.h"

enum { MOST_CPUS = 4096 };

static size_t counter(const char *cpus, int cpu, const char *which)
{
	char path[256];
	snprintf(path, sizeof path, "%s/cpu%d/thermal_throttle/%s_throttle_count", cpus, cpu, which);
	size_t n = ck_number_after(path, "");
	return n == SIZE_MAX ? 0 : n;
}

static size_t heat(const ck_throttle *t)
{
	size_t sum = 0;
	for (int cpu = 0; cpu < t->ncpus; cpu++)
		sum += counter(t->cpus, cpu, "core") + counter(t->cpus, cpu, "package");
	return sum;
}

/* How many processors to look at: up to the last that counts, since some in between may be off. */
static int count(const char *cpus)
{
	int n = 0;
	for (int cpu = 0, gap = 0; cpu < MOST_CPUS && gap < 64; cpu++, gap++) {
		char path[256];
		snprintf(path, sizeof path, "%s/cpu%d/thermal_throttle", cpus, cpu);
		if (access(path, F_OK) == 0)
			n = cpu + 1, gap = 0;
	}
	return n;
}

ck_throttle ck__throttle_begin(const char *cpus)
{
	ck_throttle t = {.cpus = cpus, .ncpus = count(cpus), .quota = ck_cgroup_throttled()};
	t.heat = heat(&t);
	t.tells = t.ncpus > 0 || t.quota != SIZE_MAX;
	return t;
}

bool ck__throttle_changed(ck_throttle *t)
{
	size_t quota = ck_cgroup_throttled(), now = heat(t);
	bool changed = quota != t->quota || now != t->heat;
	t->quota = quota;
	t->heat = now;
	return changed;
}
