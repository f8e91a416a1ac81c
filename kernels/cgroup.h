/* The limits that control groups set to this process (versions 1 and 2): containers and batch systems set them. */
#ifndef CK_CGROUP_H
#define CK_CGROUP_H

#include <stddef.h>

typedef struct ck_cgroup {
	size_t memory_limit; /* bytes; SIZE_MAX: none */
	size_t memory_room;  /* bytes left below the tightest limit, caches that the kernel can give up counted as free */
	double cores;        /* CPU time per time; HUGE_VAL: no limit */
} ck_cgroup;

ck_cgroup ck_cgroup_read(void);
/* How many times the groups have been stopped because their CPU time was used up; only grows. SIZE_MAX: nothing tells. */
size_t ck_cgroup_throttled(void);

/* Of two limits, the one that counts. */
static inline size_t ck_less(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Small files of numbers, as /proc and /sys are full of them. What stands behind the first `key` that starts a line, without
 * `separators` around it, in fresh memory (NULL: none), and that as a number (SIZE_MAX: none). */
char *ck_line_after(const char *path, const char *key, const char *separators);
size_t ck_number_after(const char *path, const char *key);

#endif
