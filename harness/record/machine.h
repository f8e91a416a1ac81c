/* What this machine is, as `ckbench env` tells and every record keeps: what a reader needs to judge the times by. No host
 * name, no user. */
#ifndef CK_MACHINE_H
#define CK_MACHINE_H

#include <stdbool.h>
#include <stddef.h>

#include "harness/record/processors.h"

typedef struct ck_machine { /* owned texts; ck_machine_free */
	char *cpu;          /* model name */
	char *isa;          /* vector extensions, narrow to wide: "sse4.2 avx2 avx512f" */
	char *os, *kernel;
	int cores; /* that this process may use: affinity and cgroup */
	ck_processors processors;
	size_t memory;       /* bytes of main memory */
	size_t memory_limit; /* bytes: the tightest of cgroup and ulimit -v; 0 where none is set */
} ck_machine;

void ck_machine_read(ck_machine *m);
void ck_machine_free(ck_machine *m);

/* Bytes that this process can still take before the machine swaps, the cgroup's killer comes or the address space ends;
 * `limit` says in words which of them is the tightest. SIZE_MAX when nothing is known. */
size_t ck_memory_available(const char **limit);

#endif
