/* Mistakes with random numbers: a recompute must draw what the first forward drew, and leave the stream where it was. */
#include "harness/fault/internal.h"

static const char needs[] = "no op that draws random numbers is recomputed, other than for its stash";

static bool redraws(ck_faulty *f, const ck_call *c)
{
	return c->code == 'F' && c->recompute && ck__op(f, c)->contract.random;
}

static bool masks_again(ck_faulty *f, const ck_call *c)
{
	return redraws(f, c) && ck__output_is_read(f, c);
}

static bool other_step(ck_faulty *f, const ck_call *c, ck_args *a, ck_step *step)
{
	(void)step;
	a->step += masks_again(f, c);
	f->hits += masks_again(f, c);
	return true;
}

static bool other_seed(ck_faulty *f, const ck_call *c, ck_args *a, ck_step *step)
{
	(void)step;
	a->seed += masks_again(f, c);
	f->hits += masks_again(f, c);
	return true;
}

/* As numbered within the recompute: the first random op of the last segment is op 0 of a fresh generator, and so on. */
static bool other_op(ck_faulty *f, const ck_call *c, ck_args *a, ck_step *step)
{
	(void)step;
	if (masks_again(f, c)) {
		a->op = (uint32_t)(f->graph->nops + f->hits);
		f->hits++;
	}
	return true;
}

/* The next step would begin further on. */
static void moved_on(ck_faulty *f, const ck_call *c, const ck_args *a, ck_step *step)
{
	(void)a;
	if (!redraws(f, c))
		return;
	step->random_draws += (uint64_t)ck_shape_count(ck__op(f, c)->desc.out[0].shape);
	f->hits++;
}

/* ---- a running generator ------------------------------------------------------------------------------------------------- */

static bool drew_elsewhere(ck_faulty *f, const ck_call *c, const ck_args *a)
{
	return masks_again(f, c) && a->block != f->memory.rng.drawn[c->id].block;
}

/* The stream goes on from the outer state, as if nothing had been set before the recompute. */
static bool not_restored(ck_faulty *f, const ck_call *c, ck_args *a, ck_step *step)
{
	(void)step;
	ck_rng *rng = &f->memory.rng;
	if (redraws(f, c) && c->rng.restore != CK_NONE) {
		if (c->rng.enter)
			rng->now = rng->outer;
		else
			rng->now.block = f->next_block;
		a->block = rng->now.block;
		rng->now.block += ck__rng_blocks(ck__op(f, c));
	}
	f->next_block = rng->now.block;
	f->hits += drew_elsewhere(f, c, a);
	return true;
}

/* What is put back is the state that the recompute has left. */
static void not_put_back(ck_faulty *f, const ck_call *c, const ck_args *a, ck_step *step)
{
	(void)a;
	(void)step;
	ck_rng *rng = &f->memory.rng;
	if (!c->rng.leave)
		return;
	f->hits += rng->outer.block != rng->now.block;
	rng->outer = rng->now;
}

static bool saved_late(ck_faulty *f, const ck_call *c, ck_args *a, ck_step *step)
{
	(void)step;
	ck_rng *rng = &f->memory.rng;
	if (c->code == 'F' && c->rng.save != CK_NONE)
		rng->saved[c->rng.save] = rng->now; /* which is behind the op's own draw */
	f->hits += drew_elsewhere(f, c, a);
	return true;
}

const ck_fault ck__random_faults[] = {
    {.name = "mask-of-other-step",
     .field = "the random state is not saved before the forward, so the recompute draws from where the step has got to",
     .needs = needs,
     .before = other_step},
    {.name = "mask-of-other-seed",
     .field = "the state of the wrong generator is restored (CPU's for the GPU's, another rank's)",
     .needs = needs,
     .before = other_seed},
    {.name = "mask-of-other-op",
     .field = "one state is saved for a segment of several dropouts, and recomputed ops draw in another order",
     .needs = needs,
     .before = other_op},
    {.name = "stream-moved-on",
     .field = "the state is not put back after the recompute, so that everything drawn later differs from plain training",
     .needs = "no op that draws random numbers is recomputed",
     .after = moved_on},
    {.name = "rng-not-restored",
     .field = "the generator's state is not set before the recompute, which draws on from where the step has got to",
     .needs = needs,
     .stateful = true,
     .before = not_restored},
    {.name = "rng-not-put-back",
     .field = "the recompute sets the state, and the outer one is not put back: later steps draw again what was drawn",
     .needs = "no op that draws random numbers is recomputed, or the last that draws comes last",
     .stateful = true,
     .after = not_put_back},
    {.name = "rng-not-preserved",
     .field = "preserve_rng_state=False with dropout in the segment: no state is saved, set or put back",
     .needs = needs,
     .stateful = true,
     .before = not_restored,
     .after = not_put_back},
    {.name = "rng-saved-late",
     .field = "the state is saved when the segment's first dropout has drawn already",
     .needs = needs,
     .stateful = true,
     .before = saved_late},
    {.name = NULL},
};
