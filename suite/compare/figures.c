/* What a comparison says of known samples: ratios, intervals, verdicts and means, exactly. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/alloc.h"
#include "suite/compare/records.h"

/* ---- ratios -------------------------------------------------------------------------------------------------------------- */

/* Samples first, first + step, … of either side. Ranks of the interval's ends from tables of the binomial distribution, each median's
 * interval holding with sqrt(0.95): 1 for 7 to 11 samples, 2 for 12, 5 for 20; none for fewer than 7. Numbers are such that every
 * quotient is exact or correctly rounded once. */
Test(figures, ratios)
{
	static const struct {
		double first[2], step[2];
		int n[2];
		double at, low, high; /* NaN: no end */
		ck_speed speed;
	} cases[] = {
	    {{100, 50}, {1, 0.5}, {7, 7}, 51.5 / 103, 50. / 106, 53. / 100, CK_FASTER},
	    {{100, 200}, {1, 1}, {7, 9}, 204. / 103, 200. / 106, 208. / 100, CK_SLOWER},
	    {{100, 50}, {1, 0.5}, {6, 9}, 52. / 102.5, NAN, NAN, CK_UNCLEAR},
	    {{100, 50}, {1, 0.5}, {9, 6}, 51.25 / 104, NAN, NAN, CK_UNCLEAR},
	    {{100, 100}, {1, 1}, {12, 12}, 1, 101. / 110, 110. / 101, CK_UNCLEAR},
	    {{100, 100}, {0.25, 0.25}, {12, 12}, 1, 100.25 / 102.5, 102.5 / 100.25, CK_SAME},
	    {{100, 80}, {1, 1}, {20, 20}, 89.5 / 109.5, 84. / 115, 95. / 104, CK_FASTER},
	    {{100, 100}, {0, 0}, {7, 7}, 1, 1, 1, CK_SAME},
	    {{100, 106}, {0, 0}, {7, 7}, 1.06, 1.06, 1.06, CK_SLOWER},
	    {{100, 94}, {1, 1}, {7, 7}, 97. / 103, 94. / 106, 1, CK_UNCLEAR}, /* an end on 1 leaves 1 in */
	    {{100, 106}, {1, 1}, {7, 7}, 109. / 103, 1, 112. / 100, CK_UNCLEAR},
	    {{100, 105}, {1, 0}, {7, 7}, 105. / 103, 105. / 106, 1.05, CK_SAME}, /* 5 % is still the same */
	    {{100, 105.5}, {1, 0}, {7, 7}, 105.5 / 103, 105.5 / 106, 1.055, CK_UNCLEAR},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		ck_samples s[2];
		for (int side = 0; side < 2; side++) {
			int n = cases[i].n[side];
			s[side] = (ck_samples){.at = ck_alloc((size_t)n, sizeof(double)), .n = n};
			for (int k = 0; k < n; k++) /* each once, out of order */
				s[side].at[k] = cases[i].first[side] + cases[i].step[side] * ((k * 5 + 3) % n);
			if (n % 5 == 0)
				for (int k = 0; k < n; k++)
					s[side].at[k] = cases[i].first[side] + cases[i].step[side] * (n - 1 - k);
			ck_samples_summarise(&s[side]);
		}
		ck_ratio r = ck__ratio_of(&s[0], &s[1], 0.95);
		bool ends =
		    isnan(cases[i].low) ? isnan(r.low) && isnan(r.high) : r.low == cases[i].low && r.high == cases[i].high;
		cr_expect(r.at == cases[i].at && ends && r.speed == cases[i].speed, "case %zu: %.17g, %.17g .. %.17g, %s", i,
			  r.at, r.low, r.high, ck_speed_names[r.speed]);
		ck_samples_free(&s[0]);
		ck_samples_free(&s[1]);
	}
}

/* ---- means --------------------------------------------------------------------------------------------------------------- */

static bool close_to(double x, double y)
{
	return fabs(x - y) <= 4e-16 * fabs(y); /* what exp and log may round */
}

static ck_result *with_two(double first, double second)
{
	ck_result *r = made_record();
	made_steady(r, "none", first);
	made_steady(r, "uniform:2", second);
	return r;
}

/* Over a case's plans: the square root of the product of two, whichever side is divided by which. */
Test(figures, mean_over_plans)
{
	static const struct {
		double a[2], b[2], mean;
		ck_speed speed;
	} cases[] = {
	    {{1, 1}, {2, 0.5}, 1, CK_SAME},
	    {{1, 2}, {4, 2}, 2, CK_SLOWER},
	    {{4, 2}, {1, 2}, 0.5, CK_FASTER},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		ck_comparison c;
		compare_made(&c, with_two(cases[i].a[0], cases[i].a[1]), with_two(cases[i].b[0], cases[i].b[1]));
		cr_assert(c.npairs == 1 && c.pairs[0].n == 2);
		const ck_ratio *m = &c.pairs[0].mean;
		cr_expect(close_to(m->at, cases[i].mean) && close_to(m->low, m->at) && close_to(m->high, m->at) &&
			      m->speed == cases[i].speed,
			  "case %zu: %.17g, %.17g .. %.17g, %s", i, m->at, m->low, m->high, ck_speed_names[m->speed]);
		ck_comparison_free(&c);
	}
}

/* Two intervals that are to hold together need eight samples on either side, one alone seven. */
Test(figures, interval_of_a_mean)
{
	static const double eight[] = {1, 1.25, 1.5, 1.75, 2, 2.25, 2.5, 2.75};
	for (int n = 7; n <= 8; n++) {
		ck_result *r[2];
		ck_comparison c;
		for (int side = 0; side < 2; side++) {
			r[side] = made_record();
			made_point(r[side], "none", eight, n);
			made_point(r[side], "uniform:2", eight, n);
		}
		compare_made(&c, r[0], r[1]);
		const ck_pair *p = &c.pairs[0];
		cr_expect(isfinite(p->at[0].time.low) && p->at[0].time.low == 1 / eight[n - 1], "n = %d: %g", n,
			  p->at[0].time.low);
		cr_expect(n == 7 ? isnan(p->mean.low) && p->mean.speed == CK_UNCLEAR
				 : close_to(p->mean.low, 1 / eight[7]) && close_to(p->mean.high, eight[7]),
			  "n = %d: %g .. %g", n, p->mean.low, p->mean.high);
		ck_comparison_free(&c);
	}
}

/* Each case counts the same, however many plans it has: 4 over one plan and 1 over three make 2, not 4 ^ (1 / 4). */
Test(figures, mean_over_cases)
{
	ck_comparison c;
	ck_err err = {""};
	ck_comparison_open(&c, 0, NULL);
	for (int side = 0; side < 2; side++) {
		char *file = ck_text("%c", 'a' + side);
		int at = ck_comparison_add_side(&c, file);
		for (int k = 0; k < 2; k++) {
			ck_result *r = made_record();
			static const char *const plans[] = {"none", "uniform:2", "uniform:3"};
			r->c.seed = 10 + k;
			r->measuring.seconds = side + 1;
			for (int i = 0; i < (k == 0 ? 1 : 3); i++)
				made_steady(r, plans[i], side == 1 && k == 0 ? 4 : 1);
			cr_assert(ck_comparison_add(&c, at, file, made_sealed(r), &err) == CK_OK, "%s", err.text);
		}
		free(file);
	}
	cr_assert(ck_comparison_make(&c, &err) == CK_OK, "%s", err.text);
	cr_expect(c.npairs == 2 && close_to(c.means[1].at, 2) && c.means[1].speed == CK_SLOWER, "%.17g", c.means[1].at);
	cr_expect(ck_comparison_count(&c, 1, CK_SLOWER) == 1 && ck_comparison_count(&c, 1, CK_SAME) == 3);
	ck_comparison_free(&c);
}

/* Ratios go by the baseline: exchanged sides give the reciprocal; a side against itself, twice measured, exactly 1. */
Test(figures, the_first_is_the_baseline)
{
	ck_comparison c;
	compare_made(&c, with_two(1, 2), with_two(4, 8));
	cr_expect(c.pairs[0].at[0].time.at == 4 && c.pairs[0].at[1].time.at == 4);
	ck_comparison_free(&c);
	compare_made(&c, with_two(4, 8), with_two(1, 2));
	cr_expect(c.pairs[0].at[0].time.at == 0.25 && c.pairs[0].at[0].time.speed == CK_FASTER);
	ck_comparison_free(&c);
	compare_made(&c, with_two(1, 2), with_two(1, 2));
	cr_expect(c.pairs[0].at[1].time.at == 1 && c.pairs[0].at[1].time.speed == CK_SAME && c.nwarnings == 0);
	ck_comparison_free(&c);
}
