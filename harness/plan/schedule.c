#include "harness/plan/schedule.h"

#include <stdlib.h>
#include <xxhash.h>

#include "kernels/alloc.h"

void ck_schedule_add(ck_schedule *s, char code, int id)
{
	s->at = ck_grow(s->at, &s->capacity, s->n + 1, sizeof *s->at);
	s->at[s->n++] = (ck_instr){code, id};
}

void ck_schedule_free(ck_schedule *s)
{
	free(s->at);
	*s = (ck_schedule){0};
}

uint64_t ck_schedule_digest(const ck_schedule *s)
{
	XXH64_hash_t hash = 0;
	for (int i = 0; i < s->n; i++) {
		const int pair[2] = {s->at[i].code, s->at[i].id};
		hash = XXH3_64bits_withSeed(pair, sizeof pair, hash);
	}
	return hash;
}
