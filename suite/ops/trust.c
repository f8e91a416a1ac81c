/* The cases themselves can be trusted: a tensor that is zero in every element agrees with any other that a broken kernel left at zero, and
 * a mask that keeps or drops all shows nothing of a mask. Such a case is MISTRUSTED, as oneDNN's benchdnn has it, whatever else it passes,
 * unless its line says `zero`; and one that says so without need is, too. */
#include "suite/ops/op_run.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/alloc.h"
#include "kernels/philox.h"

TestSuite(trust, .init = device_or_skip);

static bool all_zero(const op_run *r, const op_values *v, int slot)
{
	for (int64_t e = 0; e < v->n[slot]; e++)
		if (v->at[slot][e] != 0 && (slot < OP_DIN || op_touches(r, slot - OP_DIN, e)))
			return false;
	return true;
}

/* Of an op that drops: how many elements of its output are kept. */
static int64_t count_kept(const op_run *r, int64_t n)
{
	int64_t kept = 0;
	for (int64_t e = 0; e < n; e++) {
		uint32_t w[4];
		ck_philox_block(OP_SEED, OP_STEP, OP_NUMBER, (uint64_t)e / 4, w);
		kept += w[e % 4] >= ck_drop_threshold(r->desc.attr.p);
	}
	return kept;
}

/* Why the case proves nothing, in fresh text; NULL where it proves something. */
static char *distrust(op_run *r, const op_values *after)
{
	for (int slot = 0; slot < OP_SLOTS; slot++)
		if ((OP_GRADIENTS | 1 << OP_OUT) >> slot & 1 && after->at[slot] && all_zero(r, after, slot))
			return ck_text("%s is zero in every element", op_slot_name(slot));
	int64_t n = after->n[OP_OUT], kept = r->contract.random ? count_kept(r, n) : 1;
	if (r->contract.random && (kept == 0 || kept == n))
		return ck_text("its mask %s all", kept ? "keeps" : "drops");
	return NULL;
}

/* As a failing test says it, in fresh text; NULL where the case can be trusted. */
static char *verdict(const ck_backend *b, ck_device *device, const ck_op_case *c)
{
	op_run r;
	op_run_open(&r, b, device, c, c->desc.needs);
	op_values v = op_values_draw(c), after = op_gradients(&r, &v);
	char *why = distrust(&r, &after), *text = NULL;
	if (why && !c->zero)
		text = ck_text("MISTRUSTED: %s: %s, so that nothing is proved; change the case, or add `zero` if it is meant",
			       r.name, why);
	if (!why && c->zero)
		text = ck_text("MISTRUSTED: %s: it says `zero`, but nothing is; take the word out", r.name);
	free(why);
	op_values_free(&v);
	op_values_free(&after);
	op_run_close(&r);
	return text;
}

Test(trust, every_case_proves_something)
{
	for (const ck_backend *const *b = backends_under_test(); *b; b++) {
		ck_device *device = op_device(*b, 1);
		ck_op_case c;
		for (int i = 0; device && ck_op_case_next(&i, (*b)->real, &c);) {
			char *text = verdict(*b, device, &c);
			cr_expect(!text, "%s", text);
			free(text);
		}
		if (device)
			(*b)->close(device);
	}
}

/* What must be mistrusted, and why; NULL: must not. */
static const struct {
	const char *line, *says;
} known[] = {
    {"act 5x7 act=relu", NULL},
    {"act 5x7 act=relu shift=-100", "out[0] is zero in every element"}, /* dead */
    {"act 5x7 act=relu shift=-100 zero", NULL},
    {"act 5x7 act=relu zero", "it says `zero`, but nothing is"},
    {"linear 2x5 3x5 3 bias act=relu p=0.999", "out[0] is zero in every element"}, /* all dropped */
    {"dropout 5x7 5x7 residual p=0.9999", "din[0] is zero in every element"},
    {"dropout 5x7 5x7 residual p=0.9999 zero", NULL},
    {"dropout 5x7 p=0.0001", "its mask keeps all"},
    {"softmax 5x1", "din[0] is zero in every element"}, /* one alone has probability 1 */
    {"xent 3x1 3", "out[0] is zero in every element"},  /* a constant loss */
    {"xent 2x3 2", NULL},
    {"batchnorm 2x1 1 1 1 1 1 training spread=0", "din[1] is zero in every element"}, /* constant */
};

Test(trust, known_verdicts)
{
	for (const ck_backend *const *b = backends_under_test(); *b; b++) {
		ck_device *device = op_device(*b, 1);
		for (size_t i = 0; device && i < sizeof known / sizeof *known; i++) {
			ck_op_case c;
			ck_err err = {""};
			cr_assert(ck_op_case_read(known[i].line, (*b)->real, &c, &err) == CK_OK, "%s: %s", known[i].line,
				  err.text);
			char *text = verdict(*b, device, &c);
			cr_expect(!text == !known[i].says && (!text || strstr(text, known[i].says)), "%s, CK_CASE='%s': %s",
				  (*b)->name, known[i].line, text ? text : "trusted");
			free(text);
		}
		if (device)
			(*b)->close(device);
	}
}
