/* Ratios of times: compare.h tells the method. */
#include <math.h>
#include <stdlib.h>

#include "harness/record/compare.h"
#include "kernels/alloc.h"

const char *const ck_speed_names[CK_SPEEDS] = {"faster", "slower", "same", "unclear"};

/* What is within this of 1 is called the same. Two runs of one build on a quiet machine differ by a few percent. */
static const double CLOSE = 1.05;

static ck_speed speed_of(const ck_ratio *r)
{
	if (r->high < 1)
		return CK_FASTER;
	if (r->low > 1)
		return CK_SLOWER;
	return r->low >= 1 / CLOSE && r->high <= CLOSE ? CK_SAME : CK_UNCLEAR;
}

ck_ratio ck__ratio_of(const ck_samples *base, const ck_samples *other, double confidence)
{
	ck_ratio r = {.at = other->median / base->median, .low = NAN, .high = NAN};
	double each = sqrt(confidence), low[2], high[2];
	if (ck_samples_interval(base, each, &low[0], &high[0]) && ck_samples_interval(other, each, &low[1], &high[1])) {
		r.low = low[1] / high[0];
		r.high = high[1] / low[0];
	}
	r.speed = speed_of(&r);
	return r;
}

ck_ratio ck__ratio_mean(const ck_ratio *at, int n)
{
	ck_ratio sum = {0};
	for (int i = 0; i < n; i++) {
		sum.at += log(at[i].at);
		sum.low += log(at[i].low);
		sum.high += log(at[i].high);
	}
	ck_ratio mean = {exp(sum.at / n), exp(sum.low / n), exp(sum.high / n), CK_UNCLEAR}; /* 0 / 0: NaN */
	mean.speed = speed_of(&mean);
	return mean;
}
