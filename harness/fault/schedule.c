/* Mistakes of a planner: schedules that break a rule. The validator has to refuse them before anything runs. */
#include <stdlib.h>

#include "harness/fault/internal.h"
#include "harness/plan/reads.h"
#include "kernels/alloc.h"

static void take_out(ck_schedule *s, int i)
{
	for (; i + 1 < s->n; i++)
		s->at[i] = s->at[i + 1];
	s->n--;
}

static void swap(ck_schedule *s, int i, int k)
{
	ck_instr held = s->at[i];
	s->at[i] = s->at[k];
	s->at[k] = held;
}

/* The last F that is a recompute, or -1. */
static int last_recompute(const ck_graph *g, const ck_schedule *s)
{
	int *runs = ck_alloc((size_t)g->nops, sizeof *runs), last = -1;
	for (int i = 0; i < s->n; i++)
		if (s->at[i].code == 'F' && runs[s->at[i].id]++)
			last = i;
	free(runs);
	return last;
}

static bool drop_too_early(const ck_graph *g, ck_schedule *s)
{
	for (int i = s->n - 1; i > 0; i--) {
		if (s->at[i].code != 'D' || s->at[i - 1].code == 'D')
			continue;
		ck_reads reads = ck_reads_of(g, s->at[i - 1]);
		for (int k = 0; k < reads.n; k++)
			if (reads.at[k] == s->at[i].id) {
				swap(s, i, i - 1);
				return true;
			}
	}
	return false;
}

static bool drop_forgotten(const ck_graph *g, ck_schedule *s)
{
	(void)g;
	for (int i = 0; i < s->n; i++)
		if (s->at[i].code == 'D') {
			take_out(s, i);
			return true;
		}
	return false;
}

static bool dropped_twice(const ck_graph *g, ck_schedule *s)
{
	(void)g;
	for (int i = s->n - 1; i >= 0; i--)
		if (s->at[i].code == 'D') {
			ck_schedule_add(s, 'D', s->at[i].id);
			return true;
		}
	return false;
}

static bool recompute_left_out(const ck_graph *g, ck_schedule *s)
{
	int at = last_recompute(g, s);
	if (at >= 0)
		take_out(s, at);
	return at >= 0;
}

/* The last B, that of the model's first trained op. */
static bool backward_left_out(const ck_graph *g, ck_schedule *s)
{
	(void)g;
	for (int i = s->n - 1; i >= 0; i--)
		if (s->at[i].code == 'B') {
			take_out(s, i);
			return true;
		}
	return false;
}

static bool backwards_reordered(const ck_graph *g, ck_schedule *s)
{
	(void)g;
	for (int i = s->n - 1, later = -1; i >= 0; i--) {
		if (s->at[i].code != 'B')
			continue;
		if (later >= 0) {
			swap(s, i, later);
			return true;
		}
		later = i;
	}
	return false;
}

/* Instruction i moves to place `to`. */
static void move(ck_schedule *s, int i, int to)
{
	for (; i > to; i--)
		swap(s, i, i - 1);
	for (; i < to; i++)
		swap(s, i, i + 1);
}

/* Which weight's copy instruction i reads, or CK_NONE. */
static ck_value copy_read(const ck_graph *g, ck_instr in)
{
	ck_reads reads = ck_reads_of(g, in);
	for (int k = 0; in.code != 'D' && k < reads.n; k++)
		if (g->values[reads.at[k]].kind == CK_WEIGHT_COPY)
			return reads.at[k];
	return CK_NONE;
}

/* The first instruction from `from` on, and before `to`, that reads the copy; or -1. */
static int copy_reader(const ck_graph *g, const ck_schedule *s, ck_value copy, int from, int to)
{
	for (int i = from; i < to; i++)
		if (copy_read(g, s->at[i]) == copy)
			return i;
	return -1;
}

/* The last copy to be dropped goes after its first reader instead, as if only the forward read it. */
static bool copy_dropped(const ck_graph *g, ck_schedule *s)
{
	for (int i = s->n - 1; i > 0; i--) {
		if (s->at[i].code != 'D' || g->values[s->at[i].id].kind != CK_WEIGHT_COPY)
			continue;
		int first = copy_reader(g, s, s->at[i].id, 0, i);
		if (copy_reader(g, s, s->at[i].id, first + 1, i) < 0)
			continue;
		move(s, i, first + 1);
		return true;
	}
	return false;
}

/* The last recompute that reads a copy has it made first. */
static bool copy_made_again(const ck_graph *g, ck_schedule *s)
{
	int last = last_recompute(g, s);
	ck_value copy = last >= 0 ? copy_read(g, s->at[last]) : CK_NONE;
	if (copy == CK_NONE)
		return false;
	ck_schedule_add(s, 'F', g->values[copy].producer);
	move(s, s->n - 1, last);
	return true;
}

const ck_fault ck__schedule_faults[] = {
    {.name = "schedule-drops-too-early",
     .field = "a planner overlooks the last reader of a value",
     .needs = "no value ends with the op that reads it",
     .schedule = drop_too_early},
    {.name = "schedule-forgets-a-drop",
     .field = "recomputed buffers are never freed",
     .needs = "nothing is dropped",
     .schedule = drop_forgotten},
    {.name = "schedule-drops-twice",
     .field = "two segments that share a value both free it",
     .needs = "nothing is dropped",
     .schedule = dropped_twice},
    {.name = "schedule-forgets-a-recompute",
     .field = "the last op of a segment is not run again, though a backward wants what it makes",
     .needs = "nothing is recomputed",
     .schedule = recompute_left_out},
    {.name = "schedule-forgets-a-backward",
     .field = "a segment at the model's start has no input that needs a gradient, so its backward never runs",
     .needs = "no op has a backward",
     .schedule = backward_left_out},
    {.name = "schedule-reorders-backwards",
     .field = "backwards run as segments come, so that gradient sums are formed in another order",
     .needs = "fewer than two ops have a backward",
     .schedule = backwards_reordered},
    {.name = "schedule-drops-weight-copy",
     .field = "a planner takes a 16-bit weight for the forward's own and frees it there, though the backward reads it",
     .needs = "no weight has a 16-bit copy that is read again after the forward",
     .schedule = copy_dropped},
    {.name = "schedule-casts-again",
     .field = "the cast of a weight is recomputed with the op that reads it, while the cached copy is still there",
     .needs = "the last op that is recomputed reads no weight's copy",
     .schedule = copy_made_again},
    {.name = NULL},
};
