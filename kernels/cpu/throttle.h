/* Whether the processors have slowed down or stopped this process: Linux counts how often the control group's quota was used up,
 * and how often a core or a package ran too hot. */
#ifndef CK_THROTTLE_H
#define CK_THROTTLE_H

#include <stdbool.h>
#include <stddef.h>

#define CK_THROTTLE_CPUS "/sys/devices/system/cpu"

typedef struct ck_throttle {
	const char *cpus;   /* borrowed: the folder of cpu0, cpu1, … */
	int ncpus;          /* of these; 0 where none counts heat */
	bool tells;         /* there is any counter */
	size_t quota, heat; /* sums of the counters at the last look */
} ck_throttle;

ck_throttle ck__throttle_begin(const char *cpus);
/* Whether any counter has grown since the last look. */
bool ck__throttle_changed(ck_throttle *t);

#endif
