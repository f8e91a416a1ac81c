/* Every processor's folder lists those that share something with it: its core, its package, a cache. A thing that is shared is
 * counted at the first processor of its list. */
#include "harness/record/processors.h"

#include <dirent.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/alloc.h"
#include "kernels/cgroup.h"

const char *const ck_cache_names[] = {"l1d", "l2", "l3", NULL};

/* The file's first line; NULL: there is none. Fresh memory. */
static char *line_of(const char *folder, const char *file)
{
	char *path = ck_text("%s/%s", folder, file), *line = ck_line_after(path, "", " \t\n");
	free(path);
	return line;
}

/* The number that the file begins with; -1: there is none. */
static long number_of(const char *folder, const char *file)
{
	char *line = line_of(folder, file);
	long n;
	if (!line || sscanf(line, "%ld", &n) != 1)
		n = -1;
	free(line);
	return n;
}

/* ---- one processor -------------------------------------------------------------------------------------------------------- */

typedef struct processor {
	const char *folder; /* ".../cpu7" */
	int number;
} processor;

/* Of two names of the same list, the newer first. */
static bool is_first_of(const processor *c, const char *list, const char *older)
{
	long first = number_of(c->folder, list);
	return (first >= 0 ? first : number_of(c->folder, older)) == c->number;
}

/* "48K", "2M" */
static size_t size_of(const char *folder)
{
	char *line = line_of(folder, "size");
	size_t n = 0;
	char unit = 0;
	if (line && sscanf(line, "%zu%c", &n, &unit) >= 1)
		n *= unit == 'K' ? 1024 : unit == 'M' ? 1024 * 1024 : 1;
	free(line);
	return n;
}

static void add_cache(ck_processors *p, const processor *c, int index)
{
	char *folder = ck_text("%s/cache/index%d", c->folder, index), *type = line_of(folder, "type");
	long level = number_of(folder, "level");
	if (type && strcmp(type, "Instruction") != 0 && level >= 1 && level <= CK_CACHES &&
	    number_of(folder, "shared_cpu_list") == c->number) {
		ck_cache *cache = &p->cache[level - 1];
		size_t bytes = size_of(folder);
		cache->bytes = bytes > cache->bytes ? bytes : cache->bytes;
		cache->count += bytes > 0;
	}
	free(type);
	free(folder);
}

static void add_governor(ck_processors *p, const processor *c)
{
	char *governor = line_of(c->folder, "cpufreq/scaling_governor");
	if (!p->governor) {
		p->governor = governor;
		return;
	}
	if (governor && strcmp(governor, p->governor) != 0) {
		free(p->governor);
		p->governor = ck_text("mixed");
	}
	free(governor);
}

/* Files of cpufreq are in kHz. */
static void add_frequencies(ck_processors *p, const processor *c, int *counted)
{
	long now = number_of(c->folder, "cpufreq/scaling_cur_freq");
	long least = number_of(c->folder, "cpufreq/cpuinfo_min_freq"), most = number_of(c->folder, "cpufreq/cpuinfo_max_freq");
	if (now > 0) {
		p->frequency += 1e3 * (double)now;
		++*counted;
	}
	if (least > 0)
		p->frequency_min = p->frequency_min > 0 ? fmin(p->frequency_min, 1e3 * (double)least) : 1e3 * (double)least;
	if (most > 0)
		p->frequency_max = fmax(p->frequency_max, 1e3 * (double)most);
}

static void add_processor(ck_processors *p, const processor *c, int *counted)
{
	enum { MOST_CACHES = 16 };
	p->sockets += is_first_of(c, "topology/package_cpus_list", "topology/core_siblings_list");
	p->cores += is_first_of(c, "topology/core_cpus_list", "topology/thread_siblings_list");
	for (int i = 0; i < MOST_CACHES; i++)
		add_cache(p, c, i);
	add_governor(p, c);
	add_frequencies(p, c, counted);
}

/* ---- all ------------------------------------------------------------------------------------------------------------------ */

/* Calls `one` for each entry of the folder that is the name and a number: cpu0, cpu1, … */
static void each_numbered(const char *folder, const char *name, void (*one)(void *user, const char *path, int number),
			  void *user)
{
	DIR *d = opendir(folder);
	size_t length = strlen(name);
	for (const struct dirent *e; d && (e = readdir(d));) {
		int number, end = 0;
		if (strncmp(e->d_name, name, length) != 0 || sscanf(e->d_name + length, "%d%n", &number, &end) != 1 ||
		    e->d_name[length + (size_t)end])
			continue;
		char *path = ck_text("%s/%s", folder, e->d_name);
		one(user, path, number);
		free(path);
	}
	if (d)
		closedir(d);
}

typedef struct reading {
	ck_processors *p;
	int counted; /* processors that tell their frequency */
} reading;

static void read_processor(void *user, const char *path, int number)
{
	reading *r = user;
	add_processor(r->p, &(processor){path, number}, &r->counted);
}

static void read_node(void *user, const char *path, int number)
{
	(void)path;
	(void)number;
	((ck_processors *)user)->numa_nodes++;
}

void ck_processors_read(const char *root, ck_processors *p)
{
	*p = (ck_processors){0};
	reading r = {.p = p};
	char *cpus = ck_text("%s/cpu", root), *nodes = ck_text("%s/node", root);
	each_numbered(cpus, "cpu", read_processor, &r);
	each_numbered(nodes, "node", read_node, p);
	if (r.counted)
		p->frequency /= r.counted;
	free(cpus);
	free(nodes);
}

void ck_processors_free(ck_processors *p)
{
	free(p->governor);
	*p = (ck_processors){0};
}
