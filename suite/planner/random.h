/* Random small graphs, and random schedules over them; everything follows from the seed. */
#ifndef CK_RANDOM_H
#define CK_RANDOM_H

#include "harness/plan/schedule.h"

/* A small generator (Steele, Lea, Flood: SplitMix64, OOPSLA 2014). */
typedef struct rng {
	uint64_t state;
} rng;

uint64_t rng_next(rng *r);
int rng_below(rng *r, int n); /* 0 .. n - 1 */
bool rng_chance(rng *r, int percent);

/* Chains, residuals, shared weights, most kinds of op: a row model, an image model or a sequence model, 3 to 15 ops. */
ck_graph *random_graph(rng *r, ck_dtype real);

/* Any valid schedule at all: forwards in any order that data allows, drops of what is live at any time, recomputes as far down
 * as that makes necessary, and some that nothing made necessary. */
ck_schedule random_schedule(rng *r, const ck_graph *g);

#endif
