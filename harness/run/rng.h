/* Where ops that drop get their random numbers. Two disciplines:
 *
 *     counter     seed, step, op and element are the counter itself: a recompute draws the same mask, and nothing is kept
 *     stateful    one running generator, as the frameworks have it: each first forward draws at the stream's position and moves it
 *                 on by its blocks, from step to step. Recomputes must draw what was drawn first, and leave the stream where it was:
 *
 *     position    F drop1   F drop2   …   loss   │ recompute of the segment        │   …   │ next step
 *                 0 ──▶ 8 ──▶ 24 ──────────────▶ │ keep 24, set 0 ─▶ 8 ─▶ 24, set 24 │ 24 ──▶│ 24 ──▶
 *                 └ saved for the recompute
 *
 * As in PyTorch's CUDA generator, the state is a seed and an offset, 16 bytes, and each op keeps its own place for its backward. */
#ifndef CK_RNG_H
#define CK_RNG_H

#include <stddef.h>
#include <stdint.h>

typedef enum ck_rng_kind { CK_RNG_COUNTER, CK_RNG_STATEFUL, CK_RNG_KINDS } ck_rng_kind;
extern const char *const ck_rng_names[CK_RNG_KINDS]; /* "counter", "stateful" */

/* The running generator's whole state. */
typedef struct ck_rng_state {
	uint64_t seed, block; /* position: blocks of four words drawn so far */
} ck_rng_state;

/* Where an op's numbers come from: ck_args has the same fields. */
typedef struct ck_draw {
	uint64_t seed, block;
	uint32_t step, op;
} ck_draw;

/* In a ck_memory, beside the arena. The arrays have room for any program of the session. */
typedef struct ck_rng {
	ck_rng_state now;
	ck_rng_state outer;  /* while recomputes draw: what is put back after them */
	ck_rng_state *saved; /* by first forwards, for recomputes */
	ck_draw *drawn;      /* by op, under either discipline: its first forward's in this step, and so its backward's */
} ck_rng;

/* What a program does with states in a step; all 0 by the counter, and where nothing that draws is recomputed. */
typedef struct ck_rng_cost {
	int saved_states;   /* that first forwards leave for recomputes */
	size_t state_bytes; /* of these */
	int saves;          /* these, and outer states */
	int restores;       /* saved states set for recomputes, and outer states put back */
} ck_rng_cost;

/* A first forward that draws before its turn in the graph's order, and the op whose turn it was; CK_NONE twice: there is none. A
 * running generator then gives both, and all that lie between, other masks than the graph's order does. */
typedef struct ck_rng_order {
	int early, turn;
} ck_rng_order;

#endif
