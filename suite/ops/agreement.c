/* Every other backend agrees with the reference one, op by op: outputs, stashes, state and gradients.
 *
 * Both get the same inputs, exact in f32, and both backwards get what the reference's forward saved, rounded to f32: so forward
 * and backward are judged apart, and a ReLU's output that is all but zero falls to the same side. Scale: the largest element of the
 * tensor, since its elements are sums of terms about as large as that; times 1 + shift, where the case shifts its input and the op
 * takes the shift out again. Tolerance: 32 roundings of that scale, a rounding being 2^-24 (half of f32's epsilon). Indices and
 * counts agree exactly. */
#include "suite/ops/op_run.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

extern const ck_backend ck_ref_backend;

static const double tolerance = 32;

/* The worst that was seen, over all cases. */
typedef struct worst_seen {
	double roundings;
	char where[500];
} worst_seen;

static double largest_of(const double *v, int64_t n)
{
	double largest = 0;
	for (int64_t e = 0; e < n; e++)
		largest = fabs(v[e]) > largest ? fabs(v[e]) : largest;
	return largest;
}

/* The largest difference, in roundings of the scale; infinite when there should be none at all. */
static double roundings_off(const op_run *r, const op_values *want, const op_values *got, int slot, double shift)
{
	double worst = 0;
	for (int64_t e = 0; e < want->n[slot]; e++) {
		double difference = fabs(want->at[slot][e] - got->at[slot][e]);
		bool here = slot < OP_DIN || op_touches(r, slot - OP_DIN, e);
		worst = here && !(difference <= worst) ? difference : worst; /* a NaN, too */
	}
	ck_dtype t = op_slot_desc(&r->desc, slot)->dtype;
	double scale = t == CK_I32 || t == CK_U8 ? 0 : largest_of(want->at[slot], want->n[slot]) * (1 + fabs(shift));
	return worst == 0 ? 0 : worst / (scale * FLT_EPSILON / 2);
}

static void compare(worst_seen *seen, const op_run *r, const op_values *want, const op_values *got, unsigned slots,
		    double shift)
{
	for (int slot = 0; slot < OP_SLOTS; slot++) {
		if (!(slots >> slot & 1) || !want->at[slot] || (r->twice && slot == OP_DIN + r->desc.nin - 1))
			continue;
		double off = roundings_off(r, want, got, slot, shift);
		cr_expect(off <= tolerance, "%s: %s is %.1f roundings off", r->name, op_slot_name(slot), off);
		if (!(off <= seen->roundings)) {
			seen->roundings = off;
			snprintf(seen->where, sizeof seen->where, "%s of %s", op_slot_name(slot), r->name);
		}
	}
}

/* Both backends' gradients of what `saved` says the forward left. */
static void compare_backward(worst_seen *seen, op_run *ref, op_run *other, op_values *saved, const op_values *v, double shift)
{
	for (int slot = OP_DIN; slot < OP_SLOTS; slot++)
		for (int64_t e = 0; e < saved->n[slot]; e++)
			saved->at[slot][e] = v->at[slot][e];
	op_values_round(saved, (1u << OP_SLOTS) - 1);
	for (unsigned add = 0; add <= ref->desc.needs; add += ref->desc.needs) {
		op_values want = op_backward(ref, saved, (op_how){.add = add}),
			  got = op_backward(other, saved, (op_how){.add = add});
		compare(seen, other, &want, &got, OP_GRADIENTS, shift);
		op_values_free(&want);
		op_values_free(&got);
	}
}

/* Case i, as both backends' arithmetic reads it. */
static void compare_case(worst_seen *seen, const ck_backend *b, ck_device *ref_device, ck_device *device, const ck_op_case *c)
{
	ck_op_case other_case;
	ck_err err = {""};
	cr_assert(ck_op_case_read(c->line, b->real, &other_case, &err) == CK_OK, "%s: %s", c->line, err.text);
	op_run ref, other;
	op_run_open(&ref, &ck_ref_backend, ref_device, c, c->desc.needs);
	op_run_open(&other, b, device, &other_case, c->desc.needs);
	op_values v = op_values_draw(c);
	op_values want = op_forward(&ref, &v, (op_how){0}), got = op_forward(&other, &v, (op_how){0});
	compare(seen, &other, &want, &got, OP_RESULTS | ref.contract.state, c->shift);
	compare_backward(seen, &ref, &other, &want, &v, c->shift);
	op_values_free(&v);
	op_values_free(&want);
	op_values_free(&got);
	op_run_close(&ref);
	op_run_close(&other);
}

static void compare_all(const ck_backend *b, int threads)
{
	worst_seen seen = {0, "nothing"};
	ck_device *device = op_device(b, threads), *ref_device = op_device(&ck_ref_backend, 1);
	if (!device || !ref_device)
		return;
	ck_op_case c;
	for (int i = 0; ck_op_case_next(&i, CK_F64, &c);)
		compare_case(&seen, b, ref_device, device, &c);
	if (getenv("CK_VERBOSE"))
		fprintf(stderr, "%s, %d threads: at most %.1f roundings off, in %s\n", b->name, threads, seen.roundings,
			seen.where);
	b->close(device);
	ck_ref_backend.close(ref_device);
}

Test(agreement, with_the_reference)
{
	for (const ck_backend *const *b = ck_backends; *b; b++)
		if (*b != &ck_ref_backend)
			for (int threads = 1; threads <= 4; threads *= 2)
				compare_all(*b, threads);
}
