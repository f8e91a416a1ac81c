/* Mistakes with memory: freed too early or never, two values in one place, late copies, meters that do not tell the truth. */
#include <string.h>

#include "harness/fault/internal.h"

/* ---- drops --------------------------------------------------------------------------------------------------------------- */

static void move_call(ck_program *p, int from, int to)
{
	ck_call held = p->calls[from];
	for (; from > to; from--)
		p->calls[from] = p->calls[from - 1];
	for (; from < to; from++)
		p->calls[from] = p->calls[from + 1];
	p->calls[to] = held;
}

/* The first D goes; the calls after it move up. */
static bool leak(ck_program *p, const ck_schedule *s)
{
	(void)s;
	for (int i = 0; i < p->ncalls; i++)
		if (p->calls[i].code == 'D') {
			move_call(p, i, p->ncalls - 1);
			p->ncalls--;
			return true;
		}
	return false;
}

/* The last D that follows an F or a B that reads its value comes before that. */
static bool freed_early(ck_program *p, const ck_schedule *s)
{
	const ck_graph *g = p->session->graph;
	for (int i = s->n - 1; i > 0; i--) {
		if (s->at[i].code != 'D' || s->at[i - 1].code == 'D')
			continue;
		const ck_op_info *op = &g->ops[s->at[i - 1].id];
		for (int k = 0; k < op->desc.nin; k++)
			if (op->in[k] == s->at[i].id && p->calls[i - 1].in[k] != CK_NOWHERE) {
				move_call(p, i, i - 1);
				return true;
			}
	}
	return false;
}

/* ---- places -------------------------------------------------------------------------------------------------------------- */

static bool plain(const ck_graph *g, const ck_lifetime *l)
{
	return l->slot < g->nvalues && l->shares == CK_NONE;
}

/* Moves one activation onto another value, or onto a weight's copy, that lives when it is made. */
static bool put_over(ck_program *p, const ck_schedule *s, bool copies)
{
	const ck_trace *t = &p->trace;
	const ck_graph *g = p->session->graph;
	for (int i = 0; i < t->nlives; i++)
		for (int k = 0; k < i; k++) {
			const ck_lifetime *late = &t->lives[i], *early = &t->lives[k];
			if (!plain(g, late) || !plain(g, early) || early->to <= late->from || early->from == late->from ||
			    late->bytes > early->bytes || (copies && g->values[early->slot].kind != CK_WEIGHT_COPY))
				continue;
			p->layout.offset[i] = p->layout.offset[k];
			ck__program_resolve(p, s);
			return true;
		}
	return false;
}

static bool overlap(ck_program *p, const ck_schedule *s)
{
	return put_over(p, s, false);
}

static bool over_weight_copy(ck_program *p, const ck_schedule *s)
{
	return put_over(p, s, true);
}

/* ---- a copy that comes late ---------------------------------------------------------------------------------------------- */

static bool is_activation(const ck_faulty *f, const ck_lifetime *l)
{
	return l->slot < f->graph->nvalues && f->graph->values[l->slot].kind == CK_ACTIVATION;
}

/* An activation that lay, and ended, just where the one that call i makes lies now; CK_NONE when there is none. */
static ck_value earlier_here(const ck_faulty *f, int i)
{
	const ck_trace *t = &f->program->trace;
	const size_t *offset = f->program->layout.offset;
	int mine = 0;
	while (mine < t->nlives && !(t->lives[mine].from == i && is_activation(f, &t->lives[mine])))
		mine++;
	for (int k = 0; k < mine && mine < t->nlives; k++) {
		const ck_lifetime *l = &t->lives[k], *m = &t->lives[mine];
		bool here = offset[k] == offset[mine] && l->bytes == m->bytes && l->to < m->from;
		if (here && is_activation(f, l) && l->slot != m->slot && f->kept[l->slot])
			return l->slot;
	}
	return CK_NONE;
}

/* A copy out of the first value (or back in), still under way when the second has been made in its place. Once. */
static void late_copy(ck_faulty *f, const ck_call *c, const ck_args *a, ck_step *step)
{
	(void)step;
	if (c->code != 'F' || f->hits > 0)
		return;
	ck_value made = ck__op(f, c)->out[0], earlier = earlier_here(f, ck__index(f, c));
	ck__keep(f, made, ck__tensor(f, made), a->out[0]);
	if (earlier == CK_NONE || !ck__output_is_read(f, c) ||
	    memcmp(f->kept[made], f->kept[earlier], f->graph->values[made].bytes) == 0)
		return;
	ck__write(f, ck__tensor(f, made), a->out[0], f->kept[earlier]);
	f->hits++;
}

/* ---- meters -------------------------------------------------------------------------------------------------------------- */

static size_t not_reset(ck_faulty *f, size_t seen)
{
	f->hits += f->none_peak > seen;
	return f->none_peak > seen ? f->none_peak : seen;
}

static size_t without_workspace(ck_faulty *f, size_t seen)
{
	size_t workspace = f->program->trace.peak_by_category[CK_MEM_WORKSPACE];
	f->hits += workspace > 0;
	return seen - workspace;
}

static size_t without_gradients(ck_faulty *f, size_t seen)
{
	const size_t *held = f->program->trace.peak_by_category;
	size_t gradients = held[CK_MEM_PARAMETER_GRADIENTS] + held[CK_MEM_ACTIVATION_GRADIENTS];
	f->hits += gradients > 0;
	return seen - gradients;
}

const ck_fault ck__memory_faults[] = {
    {.name = "leak",
     .field = "a reference is left, so a dropped value is never freed and memory grows",
     .needs = "nothing is dropped",
     .program = leak},
    {.name = "freed-too-early",
     .field = "the last reference goes before the op that reads the value has run",
     .needs = "no value ends with the op that reads it",
     .program = freed_early},
    {.name = "offsets-overlap",
     .field = "a memory planner believes one of two lifetimes shorter than it is and gives both the same place",
     .needs = "no two values that are alive at once are of sizes that fit",
     .program = overlap},
    {.name = "weight-copy-overwritten",
     .field = "the cast cache lets a 16-bit weight go after the forward, and its memory is in use when the backward reads it",
     .needs = "no weight has a 16-bit copy that is as large as what is made beside it",
     .program = over_weight_copy},
    {.name = "late-copy",
     .field = "a copy to or from the host ends late and lands on what has taken over the memory",
     .needs = "no two activations of one size take turns in one place, the second being read and other than the first",
     .after = late_copy},
    {.name = "peak-not-reset",
     .field = "the peak counter is not reset, so a plan is charged with what ran before it",
     .needs = "the plan's peak is not below that of plan none",
     .meter = not_reset},
    {.name = "workspace-not-counted",
     .field = "a library's workspace is allocated behind the meter's back",
     .needs = "no workspace is held at the peak",
     .meter = without_workspace},
    {.name = "gradients-not-counted",
     .field = "a budget counts saved tensors and forgets the gradients that live beside them",
     .needs = "no gradient is held at the peak",
     .meter = without_gradients},
    {.name = NULL},
};
