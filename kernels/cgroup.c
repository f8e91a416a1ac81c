/* A process stands in one group per hierarchy, which /proc/self/cgroup lists as "id:controllers:path". The limits of a group
 * hold for those below it, so each folder from ours up to the root is read. Within a container the path may be the host's, and
 * not be there: then the root of what is mounted is our group. Version 2 has one hierarchy, without controllers in its line. */
#define _GNU_SOURCE
#include "kernels/cgroup.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/alloc.h"

char *ck_line_after(const char *path, const char *key, const char *separators)
{
	FILE *f = fopen(path, "r");
	char *line = NULL, *found = NULL;
	size_t capacity = 0;
	while (f && !found && getline(&line, &capacity, f) > 0) {
		if (strncmp(line, key, strlen(key)) != 0)
			continue;
		char *from = line + strlen(key), *to = line + strlen(line);
		from += strspn(from, separators);
		while (to > from && strchr(separators, to[-1]))
			to--;
		found = ck_text("%.*s", (int)(to - from), from);
	}
	free(line);
	if (f)
		fclose(f);
	return found;
}

size_t ck_number_after(const char *path, const char *key)
{
	char *text = ck_line_after(path, key, ": \t\n");
	size_t n;
	if (!text || sscanf(text, "%zu", &n) != 1)
		n = SIZE_MAX;
	free(text);
	return n;
}

static size_t number_in(const char *folder, const char *file, const char *key)
{
	char *path = ck_text("%s/%s", folder, file);
	size_t n = ck_number_after(path, key);
	free(path);
	return n;
}

static void look_at_memory(ck_cgroup *c, const char *folder, const char *limit, const char *usage, const char *cache)
{
	size_t most = number_in(folder, limit, ""), held = number_in(folder, usage, "");
	size_t cached = number_in(folder, "memory.stat", cache);
	if (most > SIZE_MAX / 4) /* version 1 writes "none" as a huge number */
		return;
	c->memory_limit = ck_less(c->memory_limit, most);
	if (held == SIZE_MAX)
		held = 0;
	if (cached != SIZE_MAX)
		held -= ck_less(held, cached);
	c->memory_room = ck_less(c->memory_room, most - ck_less(most, held));
}

static void look_at_cores(ck_cgroup *c, const char *folder)
{
	double quota = (double)number_in(folder, "cpu.cfs_quota_us", ""),
	       period = (double)number_in(folder, "cpu.cfs_period_us", "");
	char *path = ck_text("%s/cpu.max", folder);
	char *text = ck_line_after(path, "", "\n");
	if ((text && sscanf(text, "%lf %lf", &quota, &period) == 2) || quota < (double)(SIZE_MAX / 4))
		c->cores = fmin(c->cores, quota / period);
	free(text);
	free(path);
}

static void look_upward(const char *mount, const char *path, void (*look)(void *user, const char *folder), void *user)
{
	char *folder = ck_text("%s%s", mount, strcmp(path, "/") != 0 ? path : "");
	for (char *end = folder + strlen(folder); end; end = strrchr(folder + strlen(mount), '/')) {
		*end = 0;
		look(user, folder);
	}
	free(folder);
}

/* The folder of each group that this process stands in, and of those above it. */
static void each_folder(void (*look)(void *user, const char *folder), void *user)
{
	FILE *f = fopen("/proc/self/cgroup", "r");
	char *line = NULL;
	size_t capacity = 0;
	while (f && getline(&line, &capacity, f) > 0) {
		char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
		if (!path)
			continue;
		*path++ = 0;
		path[strcspn(path, "\n")] = 0;
		if (!controllers[1]) {
			look_upward("/sys/fs/cgroup", path, look, user);
		} else {
			char *mount = ck_text("/sys/fs/cgroup/%s", controllers + 1);
			look_upward(mount, path, look, user);
			free(mount);
		}
	}
	free(line);
	if (f)
		fclose(f);
}

static void look_at_limits(void *user, const char *folder)
{
	ck_cgroup *c = user;
	look_at_memory(c, folder, "memory.max", "memory.current", "inactive_file ");
	look_at_memory(c, folder, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file ");
	look_at_cores(c, folder);
}

ck_cgroup ck_cgroup_read(void)
{
	ck_cgroup c = {.memory_limit = SIZE_MAX, .memory_room = SIZE_MAX, .cores = HUGE_VAL};
	each_folder(look_at_limits, &c);
	return c;
}

static void count_throttling(void *user, const char *folder)
{
	size_t *sum = user, n = number_in(folder, "cpu.stat", "nr_throttled ");
	if (n != SIZE_MAX)
		*sum = *sum == SIZE_MAX ? n : *sum + n;
}

size_t ck_cgroup_throttled(void)
{
	size_t sum = SIZE_MAX;
	each_folder(count_throttling, &sum);
	return sum;
}
