/* What is read of a CPU: processors, caches and frequencies from folders that look like Linux's sysfs, and heat that is counted. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/record/machine.h"
#include "kernels/alloc.h"
#include "kernels/cpu/throttle.h"

/* A fresh folder in which the shell lines have been run. */
static char *fixture(const char *lines)
{
	char *folder = ck_text("/tmp/ckbench-test.XXXXXX");
	cr_assert(mkdtemp(folder));
	char *command = ck_text("cd %s && p() { mkdir -p \"${1%%/*}\" && echo \"$2\" >\"$1\"; }\n%s", folder, lines);
	cr_assert(system(command) == 0, "%s", command);
	free(command);
	return folder;
}

static void fixture_free(char *folder)
{
	char *command = ck_text("rm -rf %s", folder);
	cr_assert(system(command) == 0);
	free(command);
	free(folder);
}

/* Two sockets of two cores with two threads each, as Linux numbers them: the second threads last. */
static const char two_sockets[] =
    "for c in 0 1 2 3 4 5 6 7; do\n"
    "  core=$((c % 4)); socket=$((core / 2)); t=cpu/cpu$c/topology; i=cpu/cpu$c/cache; f=cpu/cpu$c/cpufreq\n"
    "  p $t/core_cpus_list $core,$((core + 4))\n"
    "  p $t/package_cpus_list $((2 * socket))-$((2 * socket + 1)),$((2 * socket + 4))-$((2 * socket + 5))\n"
    "  p $i/index0/level 1; p $i/index0/type Data; p $i/index0/size 48K; p $i/index0/shared_cpu_list $core,$((core + 4))\n"
    "  p $i/index1/level 1; p $i/index1/type Instruction; p $i/index1/size 32K; p $i/index1/shared_cpu_list $core,$((core + "
    "4))\n"
    "  p $i/index2/level 2; p $i/index2/type Unified; p $i/index2/size 2048K; p $i/index2/shared_cpu_list $core,$((core + 4))\n"
    "  p $i/index3/level 3; p $i/index3/type Unified; p $i/index3/size 32M\n"
    "  p $i/index3/shared_cpu_list $((2 * socket))-$((2 * socket + 1)),$((2 * socket + 4))-$((2 * socket + 5))\n"
    "  p $f/scaling_governor performance; p $f/scaling_cur_freq $((2000000 + c * 100000))\n"
    "  p $f/cpuinfo_min_freq 800000; p $f/cpuinfo_max_freq $((3000000 + socket * 500000))\n"
    "done\n"
    "mkdir -p cpu/cpufreq cpu/cpuidle cpu/cpu9x node/node0 node/node1 node/node2x; p node/online 0-1\n";

Test(machine, processors)
{
	char *folder = fixture(two_sockets);
	ck_processors p;
	ck_processors_read(folder, &p);
	cr_expect(p.sockets == 2 && p.cores == 4 && p.numa_nodes == 2, "%d sockets, %d cores, %d nodes", p.sockets, p.cores,
		  p.numa_nodes);
	static const ck_cache caches[CK_CACHES] = {{48 << 10, 4}, {2 << 20, 4}, {32 << 20, 2}};
	for (int i = 0; i < CK_CACHES; i++)
		cr_expect(p.cache[i].bytes == caches[i].bytes && p.cache[i].count == caches[i].count, "%s: %d of %zu bytes",
			  ck_cache_names[i], p.cache[i].count, p.cache[i].bytes);
	cr_expect_str_eq(p.governor, "performance");
	cr_expect(p.frequency == 2350e6 && p.frequency_min == 800e6 && p.frequency_max == 3500e6, "%g Hz, %g to %g",
		  p.frequency, p.frequency_min, p.frequency_max);
	ck_processors_free(&p);
	fixture_free(folder);
}

/* What is not there is not known; lists by their older names are found; governors that differ are told as such. */
Test(machine, processors_that_tell_less)
{
	static const struct {
		const char *lines;
		int sockets, cores, l2, nodes;
		const char *governor;
		double frequency;
	} cases[] = {
	    {"true", 0, 0, 0, 0, NULL, 0},
	    {"mkdir -p cpu/cpu0 cpu/cpu1 node/node0", 0, 0, 0, 1, NULL, 0},
	    {"for c in 0 1; do p cpu/cpu$c/topology/core_siblings_list 0-1; p cpu/cpu$c/topology/thread_siblings_list $c; done",
	     1, 2, 0, 0, NULL, 0},
	    {"p cpu/cpu0/cpufreq/scaling_governor powersave; p cpu/cpu1/cpufreq/scaling_governor performance", 0, 0, 0, 0,
	     "mixed", 0},
	    {"p cpu/cpu0/cpufreq/scaling_cur_freq '<unknown>'; p cpu/cpu1/cpufreq/scaling_cur_freq 1000000", 0, 0, 0, 0, NULL,
	     1e9},
	    {"p cpu/cpu0/cache/index0/level 2; p cpu/cpu0/cache/index0/type Unified; p cpu/cpu0/cache/index0/shared_cpu_list 0",
	     0, 0, 0, 0, NULL, 0}, /* a cache of no size */
	    {"p cpu/cpu0/cache/index0/level 4; p cpu/cpu0/cache/index0/type Unified; p cpu/cpu0/cache/index0/shared_cpu_list "
	     "0; p "
	     "cpu/cpu0/cache/index0/size 1K",
	     0, 0, 0, 0, NULL, 0},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char *folder = fixture(cases[i].lines);
		ck_processors p;
		ck_processors_read(folder, &p);
		cr_expect(p.sockets == cases[i].sockets && p.cores == cases[i].cores && p.cache[CK_L2].count == cases[i].l2 &&
			      p.numa_nodes == cases[i].nodes,
			  "%s: %d sockets, %d cores, %d L2 caches, %d nodes", cases[i].lines, p.sockets, p.cores,
			  p.cache[CK_L2].count, p.numa_nodes);
		cr_expect(!p.governor == !cases[i].governor && (!p.governor || strcmp(p.governor, cases[i].governor) == 0),
			  "%s: %s", cases[i].lines, p.governor);
		cr_expect(p.frequency == cases[i].frequency, "%s: %g Hz", cases[i].lines, p.frequency);
		ck_processors_free(&p);
		fixture_free(folder);
	}
}

/* This machine, whatever it is. */
Test(machine, here)
{
	ck_machine m;
	ck_machine_read(&m);
	cr_expect(m.cores > 0 && m.memory > 0 && *m.cpu);
	cr_expect(m.processors.sockets >= 0 && m.processors.cores >= m.processors.sockets);
	ck_machine_free(&m);
}

/* A counter that grows is told once. */
Test(machine, heat)
{
	static const char *const counters[] = {"cpu0/thermal_throttle/core_throttle_count",
					       "cpu0/thermal_throttle/package_throttle_count",
					       "cpu17/thermal_throttle/core_throttle_count"};
	char *folder = fixture("for c in 0 1 17; do p cpu$c/thermal_throttle/core_throttle_count 5; done; "
			       "p cpu0/thermal_throttle/package_throttle_count 7; mkdir cpu2");
	ck_throttle t = ck__throttle_begin(folder);
	cr_expect(t.tells && t.ncpus == 18, "%d processors", t.ncpus);
	for (size_t i = 0; i < sizeof counters / sizeof *counters; i++) {
		size_t heat = t.heat;
		ck__throttle_changed(&t); /* the quota's counter may have grown meanwhile */
		char *command = ck_text("echo 9 >%s/%s", folder, counters[i]);
		cr_assert(system(command) == 0);
		free(command);
		cr_expect(t.heat == heat && ck__throttle_changed(&t) && t.heat > heat, "%s", counters[i]);
		heat = t.heat;
		ck__throttle_changed(&t);
		cr_expect(t.heat == heat, "%s: told twice", counters[i]);
	}
	fixture_free(folder);
	char *empty = fixture("true");
	t = ck__throttle_begin(empty);
	cr_expect(t.ncpus == 0 && t.heat == 0);
	fixture_free(empty);
}
