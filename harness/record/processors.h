/* The processors as Linux's sysfs lists them: sockets, cores, caches, frequencies. */
#ifndef CK_PROCESSORS_H
#define CK_PROCESSORS_H

#include <stddef.h>

#define CK_PROCESSORS_ROOT "/sys/devices/system"

typedef struct ck_cache {
	size_t bytes; /* of one; of the largest, where they differ */
	int count;
} ck_cache;

enum { CK_L1D, CK_L2, CK_L3, CK_CACHES };
extern const char *const ck_cache_names[]; /* "l1d", "l2", "l3"; ends with NULL */

typedef struct ck_processors {               /* 0 and NULL: not known */
	int sockets, cores, numa_nodes;      /* cores: physical ones, of the whole machine */
	ck_cache cache[CK_CACHES];           /* data or unified ones */
	char *governor;                      /* of frequencies: "performance"; "mixed" where they differ. Owned */
	double frequency;                    /* Hz, now: the mean over the processors */
	double frequency_min, frequency_max; /* Hz: the least and most that the hardware can */
} ck_processors;

/* root: CK_PROCESSORS_ROOT, or a folder that looks like it. */
void ck_processors_read(const char *root, ck_processors *p);
void ck_processors_free(ck_processors *p);

#endif
