/* Each op on each backend keeps its contract (kernels/ops.h): what it reads, what it writes, what may share a buffer. All of it is
 * exact: the same bits, except where a sum is added to on a backend that may add in another order. */
#include "suite/ops/op_run.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

TestSuite(contract, .init = device_or_skip);

/* ---- walking over backends, cases and wanted gradients ------------------------------------------------------------------- */

typedef void op_check(op_run *r, const op_values *v);

/* Whether the wanted gradients make sense and are worth the time: all of them always, subsets for small cases; for the smallest in 16 bits,
 * where the same code runs over another storage. */
static bool take_needs(const ck_op_case *c, unsigned needs)
{
	unsigned all = c->desc.needs, last = (unsigned)c->desc.nin - 1;
	if (needs == all)
		return true;
	bool one_value_two_answers = c->twice && (needs & 1) != (needs >> last & 1);
	return !(needs & ~all) && !one_value_two_answers && ck_op_flops_forward(&c->desc) < (c->low ? 2e3 : 3e4);
}

/* One case under every choice of wanted gradients. */
static void check_case(const ck_backend *b, ck_device *device, const ck_op_case *c, op_check *check)
{
	for (unsigned needs = 1; needs <= c->desc.needs; needs++) {
		if (!take_needs(c, needs))
			continue;
		op_run r;
		op_run_open(&r, b, device, c, needs);
		op_values v = op_values_draw(c);
		check(&r, &v);
		op_values_free(&v);
		op_run_close(&r);
	}
}

static void check_all(op_check *check, const int *threads, int n)
{
	for (const ck_backend *const *b = backends_under_test(); *b; b++)
		for (int t = 0; t < n; t++) {
			ck_device *device = op_device(*b, threads[t]);
			if (!device)
				continue;
			bool has_so_many = (*b)->threads(device) == threads[t] || (t == 0 && strcmp((*b)->name, "cpu") != 0);
			ck_op_case c;
			for (int i = 0; has_so_many && ck_op_case_next(&i, (*b)->real, &c);)
				check_case(*b, device, &c, check);
			(*b)->close(device);
		}
}

/* The forward's results in place of v's: what the backward is given. The caller frees. */
static op_values saved_by_forward(op_run *r, const op_values *v)
{
	op_values saved = op_forward(r, v, (op_how){0});
	for (int slot = OP_DIN; slot < OP_SLOTS; slot++)
		if (saved.at[slot])
			memcpy(saved.at[slot], v->at[slot], (size_t)v->n[slot] * sizeof(double));
	return saved;
}

static void expect_same(const op_run *r, const op_values *a, const op_values *b, unsigned slots, const char *what)
{
	const char *difference = op_difference(a, b, slots);
	cr_expect(!difference, "%s: %s: %s", r->name, what, difference);
}

/* The gradients of a backward run otherwise must be those of `want`. */
static void expect_gradients(op_run *r, const op_values *saved, op_how how, const op_values *want, const char *what)
{
	op_values g = op_backward(r, saved, how);
	expect_same(r, &g, want, OP_GRADIENTS, what);
	op_values_free(&g);
}

static const int one_and_two[] = {1, 2};

/* ---- forward ------------------------------------------------------------------------------------------------------------- */

static void check_forward(op_run *r, const op_values *v)
{
	op_values first = op_forward(r, v, (op_how){0}), again = op_forward(r, v, (op_how){.recompute = true});
	expect_same(r, &first, &again, OP_RESULTS, "a recompute differs from the first forward");
	expect_same(r, &again, v, (1u << CK_MAX_IN) - 1, "a recompute changed an input");
	expect_same(r, &first, v, ((1u << CK_MAX_IN) - 1) & ~r->contract.state, "the forward changed an input");
	for (int i = 0; i < r->desc.nin; i++)
		cr_expect(!(r->contract.state >> i & 1) || op_difference(&first, v, 1u << i),
			  "%s: the forward left in[%d] alone", r->name, i);
	for (int slot = OP_OUT; slot < OP_DOUT; slot++)
		for (int64_t e = 0; e < first.n[slot]; e++)
			cr_assert(!isnan(first.at[slot][e]), "%s: %s element %lld is not written", r->name, op_slot_name(slot),
				  (long long)e);
	if (r->contract.inplace_forward >= 0) {
		op_values over = op_forward(r, v, (op_how){.forward_over = true});
		expect_same(r, &first, &over, OP_RESULTS, "in place differs");
		op_values_free(&over);
	}
	op_values_free(&first);
	op_values_free(&again);
}

Test(contract, forward)
{
	check_all(check_forward, one_and_two, 2);
}

/* ---- what the backward reads --------------------------------------------------------------------------------------------- */

static unsigned reads(const op_run *r)
{
	return r->contract.reads_in << OP_IN | r->contract.reads_out << OP_OUT | r->contract.reads_stash << OP_STASH;
}

static void check_reads(op_run *r, const op_values *v)
{
	unsigned readable = (1u << OP_DOUT) - 1;
	op_values saved = saved_by_forward(r, v), want = op_backward(r, &saved, (op_how){.every_pointer = true});
	expect_gradients(r, &saved, (op_how){.every_pointer = true, .poison = readable & ~reads(r)}, &want,
			 "the backward reads what its contract does not name");
	expect_gradients(r, &saved, (op_how){0}, &want, "the backward follows a pointer that its contract does not name");
	expect_same(r, &saved, &want, readable, "the backward changed a saved tensor");
	op_values_free(&saved);
	op_values_free(&want);
}

Test(contract, reads_no_more)
{
	check_all(check_reads, one_and_two, 2);
}

/* Only on the reference backend: spoilt indices may lead another one astray. */
static void check_reads_all(op_run *r, const op_values *v)
{
	if (r->backend->real != CK_F64)
		return;
	op_values saved = saved_by_forward(r, v), want = op_backward(r, &saved, (op_how){0});
	for (int slot = 0; slot < OP_DOUT; slot++) {
		if (!(reads(r) >> slot & 1))
			continue;
		op_values g = op_backward(r, &saved, (op_how){.poison = 1u << slot});
		cr_expect(op_difference(&g, &want, OP_GRADIENTS),
			  "%s: the contract names %s, but the backward does not read it", r->name, op_slot_name(slot));
		op_values_free(&g);
	}
	op_values_free(&saved);
	op_values_free(&want);
}

Test(contract, reads_no_less)
{
	check_all(check_reads_all, one_and_two, 1);
}

/* ---- what it writes ------------------------------------------------------------------------------------------------------ */

/* How far adding may be off from previous + written: nothing where every sum is finished before it is added, else rounding of
 * terms no larger than the largest element. In 16 bits, what was written was rounded, and the sum is: see stored_slack. */
static double adding_slack(const op_run *r, const op_values *written, int slot)
{
	double largest = 0;
	for (int64_t e = 0; e < written->n[slot]; e++)
		if (fabs(written->at[slot][e]) > largest)
			largest = fabs(written->at[slot][e]);
	return r->backend->real == CK_F64 ? 0 : 16 * (largest + 4) * FLT_EPSILON;
}

/* Two terms that were each rounded to t, and their sum that is. */
static double stored_slack(ck_dtype t, double a, double b)
{
	return op_half_spacing(t, a) + op_half_spacing(t, b) + op_half_spacing(t, a + b);
}

static double as_stored(const op_run *r, double v)
{
	return r->backend->real == CK_F64 ? v : (float)v;
}

static void check_sums(op_run *r, const op_values *v)
{
	op_values saved = saved_by_forward(r, v), written = op_backward(r, &saved, (op_how){0});
	op_values added = op_backward(r, &saved, (op_how){.add = r->desc.needs});
	for (int i = 0; i < r->desc.nin; i++) {
		int slot = OP_DIN + i;
		double slack = adding_slack(r, &written, slot);
		ck_dtype t = op_slot_desc(&r->desc, slot).dtype;
		for (int64_t e = 0; e < written.n[slot] && !r->twice; e++) {
			double w = written.at[slot][e], a = added.at[slot][e], before = v->at[slot][e];
			if (!op_touches(r, i, e))
				cr_assert(isnan(w) && a == before, "%s: din[%d] element %lld is another op's, but was touched",
					  r->name, i, (long long)e);
			else
				cr_assert(fabs(a - as_stored(r, before + w)) <= slack + stored_slack(t, w, before),
					  "%s: din[%d] element %lld: %.17g was added to %.17g and gave %.17g", r->name, i,
					  (long long)e, w, before, a);
		}
	}
	op_values_free(&saved);
	op_values_free(&written);
	op_values_free(&added);
}

Test(contract, adds_or_writes)
{
	check_all(check_sums, one_and_two, 2);
}

/* An input given twice: its gradient is the sum of the two that separate inputs would have. */
static void check_twice(op_run *r, const op_values *v)
{
	int last = r->desc.nin - 1;
	if (!r->twice || !(r->desc.needs & 1))
		return;
	op_values saved = saved_by_forward(r, v), together = op_backward(r, &saved, (op_how){0});
	r->twice = false;
	op_values apart = op_backward(r, &saved, (op_how){0});
	r->twice = true;
	double slack = adding_slack(r, &apart, OP_DIN);
	ck_dtype t = op_slot_desc(&r->desc, OP_DIN).dtype;
	for (int64_t e = 0; e < together.n[OP_DIN]; e++) {
		double a = apart.at[OP_DIN][e], b = apart.at[OP_DIN + last][e], want = as_stored(r, a + b);
		cr_assert(fabs(together.at[OP_DIN][e] - want) <= slack + stored_slack(t, a, b),
			  "%s: element %lld: %.17g instead of %.17g", r->name, (long long)e, together.at[OP_DIN][e], want);
	}
	op_values_free(&saved);
	op_values_free(&together);
	op_values_free(&apart);
}

Test(contract, an_input_given_twice)
{
	check_all(check_twice, one_and_two, 2);
}

/* ---- what may share a buffer --------------------------------------------------------------------------------------------- */

static void check_sharing(op_run *r, const op_values *v)
{
	int over = r->contract.inplace_backward, own = r->contract.inplace_backward_own;
	op_values saved = saved_by_forward(r, v);
	if (over >= 0 && !(r->twice && over == r->desc.nin - 1)) { /* given twice, the later one is added to */
		for (int add = 0; add < 2; add++) {
			op_how how = {.add = add ? r->desc.needs & ~(1u << over) : 0};
			if (add && r->twice)
				continue;
			op_values want = op_backward(r, &saved, how);
			how.over_dout = true;
			expect_gradients(r, &saved, how, &want, "a gradient over dout differs");
			op_values_free(&want);
		}
	}
	if (own >= 0) {
		op_values want = op_backward(r, &saved, (op_how){0});
		expect_gradients(r, &saved, (op_how){.over_own = true}, &want, "a gradient over its own input differs");
		op_values_free(&want);
	}
	op_values_free(&saved);
}

Test(contract, shared_buffers)
{
	check_all(check_sharing, one_and_two, 2);
}

/* The loss has no gradient buffer: NULL is the number dloss. */
static void check_loss(op_run *r, const op_values *v)
{
	if (r->desc.kind != CK_XENT)
		return;
	static const double dloss[] = {1, 1.0 / 3, 65536, -2.5};
	op_values saved = saved_by_forward(r, v);
	for (size_t i = 0; i < sizeof dloss / sizeof *dloss; i++) {
		saved.at[OP_DOUT][0] = dloss[i];
		op_values want = op_backward(r, &saved, (op_how){0});
		expect_gradients(r, &saved, (op_how){.no_dout = true}, &want, "dout NULL is not dloss");
		op_values_free(&want);
	}
	op_values_free(&saved);
}

Test(contract, the_loss_has_gradient_dloss)
{
	check_all(check_loss, one_and_two, 1);
}

/* ---- the same bits every time -------------------------------------------------------------------------------------------- */

static void expect_again(op_run *r, const op_values *v, const op_values *saved, const op_values *want, const char *where)
{
	op_values again = saved_by_forward(r, v);
	expect_same(r, &again, saved, OP_RESULTS, where);
	op_values_free(&again);
	expect_gradients(r, saved, (op_how){0}, want, where);
}

static void check_again(op_run *r, const op_values *v)
{
	op_values saved = saved_by_forward(r, v), want = op_backward(r, &saved, (op_how){0});
	expect_again(r, v, &saved, &want, "a second run differs");
	ck_op_case c = {.desc = r->desc, .twice = r->twice};
	snprintf(c.line, sizeof c.line, "%s", strstr(r->name, "CK_CASE"));
	op_run moved;
	op_run_open_at(&moved, r->backend, r->device, &c, r->desc.needs, 3 * 64);
	expect_again(&moved, v, &saved, &want, "a run in other memory differs");
	op_run_close(&moved);
	op_values_free(&saved);
	op_values_free(&want);
}

Test(contract, same_bits_each_time)
{
	static const int threads[] = {1, 2, 4};
	check_all(check_again, threads, 3);
}
