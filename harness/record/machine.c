/* Read from /proc and the control groups; what is not there is left out rather than guessed. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "harness/record/machine.h"

#include <math.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "kernels/alloc.h"
#include "kernels/cgroup.h"

/* ---- the machine --------------------------------------------------------------------------------------------------------- */

static char *or_unknown(char *text)
{
	return text ? text : ck_text("unknown");
}

static int usable_cores(void)
{
	cpu_set_t set;
	double cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : (double)sysconf(_SC_NPROCESSORS_ONLN);
	return (int)fmax(1, ceil(fmin(cores, ck_cgroup_read().cores)));
}

/* Of the CPU's flags, those that decide how fast the kernels can be. */
static char *instruction_sets(void)
{
	static const char *const wanted[] = {"sse4_2",   "avx",         "avx2",        "fma",         "f16c",
					     "avx512f",  "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_bf16",
					     "amx_tile", "asimd",       "sve"};
	char *flags = ck_line_after("/proc/cpuinfo", "flags", ": \t\n");
	if (!flags)
		flags = ck_line_after("/proc/cpuinfo", "Features", ": \t\n");
	char *all = ck_text(" %s ", flags ? flags : ""), *list = ck_text("%s", "");
	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
		char *word = ck_text(" %s ", wanted[i]);
		if (strstr(all, word)) {
			char *longer = ck_text("%s%s%s", list, *list ? " " : "", wanted[i]);
			free(list);
			list = longer;
		}
		free(word);
	}
	free(flags);
	free(all);
	return list;
}

void ck_machine_read(ck_machine *m)
{
	struct utsname u;
	bool known = uname(&u) == 0;
	m->cpu = or_unknown(ck_line_after("/proc/cpuinfo", "model name", ": \t\n"));
	m->isa = instruction_sets();
	m->os = or_unknown(ck_line_after("/etc/os-release", "PRETTY_NAME=", "\"\n"));
	m->kernel = known ? ck_text("%s %s %s", u.sysname, u.release, u.machine) : or_unknown(NULL);
	m->cores = usable_cores();
	ck_processors_read(CK_PROCESSORS_ROOT, &m->processors);
	m->memory = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
	m->memory_limit = ck_cgroup_read().memory_limit;
	struct rlimit space;
	if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY)
		m->memory_limit = ck_less(m->memory_limit, space.rlim_cur);
	if (m->memory_limit == SIZE_MAX)
		m->memory_limit = 0;
}

void ck_machine_free(ck_machine *m)
{
	free(m->cpu);
	free(m->isa);
	free(m->os);
	free(m->kernel);
	ck_processors_free(&m->processors);
	*m = (ck_machine){0};
}

/* ---- what is free -------------------------------------------------------------------------------------------------------- */

static size_t address_space_left(void)
{
	struct rlimit space;
	if (getrlimit(RLIMIT_AS, &space) != 0 || space.rlim_cur == RLIM_INFINITY)
		return SIZE_MAX;
	size_t pages = ck_number_after("/proc/self/statm", "");
	size_t held = pages == SIZE_MAX ? 0 : pages * (size_t)sysconf(_SC_PAGESIZE);
	return space.rlim_cur - ck_less(space.rlim_cur, held);
}

size_t ck_memory_available(const char **limit)
{
	size_t kib = ck_number_after("/proc/meminfo", "MemAvailable:");
	size_t machine = kib == SIZE_MAX ? SIZE_MAX : kib * 1024, group = ck_cgroup_read().memory_room,
	       space = address_space_left();
	size_t least = ck_less(machine, ck_less(group, space));
	*limit = least == space   ? "the address space limit (ulimit -v)"
		 : least == group ? "the cgroup's memory limit"
				  : "free memory";
	return least;
}
