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
    {.name = NULL},
};
