/* What is said of a set of timings: the median with its order-statistic interval, the least, the spread. No distribution is
 * assumed: step times are skewed, and a mean would follow the machine's hiccups. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/run/measure.h"
#include "kernels/alloc.h"

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median_of_sorted(const double *at, int n)
{
	return n % 2 ? at[n / 2] : 0.5 * (at[n / 2 - 1] + at[n / 2]);
}

/* Of n sorted samples, the j-th lowest and the j-th highest (j from 1) enclose the true median with probability
 * 1 - 2 P(Bin(n, 1/2) < j). This is the largest j for which that is at least `confidence`; 0 where none is. */
static int interval_rank(int n, double confidence)
{
	double below = 0;
	for (int j = 0; j < n / 2; j++) {
		below += exp(lgamma(n + 1.0) - lgamma(j + 1.0) - lgamma(n - j + 1.0) - n * log(2.0));
		if (2 * below > 1 - confidence)
			return j;
	}
	return n / 2;
}

/* In fresh memory. */
static double *sorted_copy(const ck_samples *s)
{
	double *sorted = ck_alloc((size_t)s->n, sizeof *sorted);
	memcpy(sorted, s->at, (size_t)s->n * sizeof *sorted);
	qsort(sorted, (size_t)s->n, sizeof *sorted, ascending);
	return sorted;
}

bool ck_samples_interval(const ck_samples *s, double confidence, double *low, double *high)
{
	int rank = s->n ? interval_rank(s->n, confidence) : 0;
	*low = *high = NAN;
	if (rank == 0)
		return false;
	double *sorted = sorted_copy(s);
	*low = sorted[rank - 1];
	*high = sorted[s->n - rank];
	free(sorted);
	return true;
}

void ck_samples_summarise(ck_samples *s)
{
	s->median = s->ci_low = s->ci_high = s->min = s->mad = NAN;
	if (s->n == 0)
		return;
	size_t n = (size_t)s->n;
	double *sorted = sorted_copy(s);
	int rank = interval_rank(s->n, 0.95);
	rank = rank ? rank : 1;
	s->median = median_of_sorted(sorted, s->n);
	s->ci_low = sorted[rank - 1];
	s->ci_high = sorted[s->n - rank];
	s->min = sorted[0];
	for (size_t i = 0; i < n; i++)
		sorted[i] = fabs(s->at[i] - s->median);
	qsort(sorted, n, sizeof *sorted, ascending);
	s->mad = median_of_sorted(sorted, s->n);
	free(sorted);
}

void ck_samples_free(ck_samples *s)
{
	free(s->at);
	free(s->throttled);
	*s = (ck_samples){0};
}

int ck_samples_throttled(const ck_samples *s)
{
	int n = 0;
	for (int i = 0; i < s->n && s->throttled; i++)
		n += s->throttled[i];
	return n;
}
