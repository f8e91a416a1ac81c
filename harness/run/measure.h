/* Measuring plans against each other: warm up, then rounds; each round visits every program once in a shuffled order, so that
 * drift of the machine falls on all alike. Stops when every median's 95 % interval is narrow enough, or at the time limit. */
#ifndef CK_MEASURE_H
#define CK_MEASURE_H

#include <signal.h>

#include "harness/run/run.h"

/* Samples of one program's step time in seconds, and what is said of them. */
typedef struct ck_samples {
	double *at;      /* n, in order of measuring */
	bool *throttled; /* (n) the device slowed itself down in this one; NULL: in none. They count like all others */
	int n;
	double median, ci_low, ci_high; /* order-statistic 95 % interval of the median; min and max while n < 6 */
	double min, mad;                /* median absolute deviation from the median */
} ck_samples;

void ck_samples_summarise(ck_samples *s); /* fills the figures from at[] and n; all NaN when n is 0 */
/* The order-statistic interval that holds the median with at least this confidence, below 1. false: there are too few samples for
 * it, and both ends are NaN. */
bool ck_samples_interval(const ck_samples *s, double confidence, double *low, double *high);
void ck_samples_free(ck_samples *s);
int ck_samples_throttled(const ck_samples *s); /* how many are */

typedef struct ck_measure_options {
	int warmup; /* steps per program before the first round */
	int min_rounds, max_rounds;
	double seconds; /* time limit for all; min_rounds are run all the same */
	double narrow;  /* stop when every (ci_high - ci_low) / median is at most this */
	uint64_t seed;  /* of the shuffles and the step's dropout */
	const volatile sig_atomic_t
	    *stop; /* when it becomes non-zero, the round under way is finished and measuring ends; may be NULL */
	void (*progress)(void *user, double fraction,
			 double seconds_left); /* after each step, outside the timed region; may be NULL */
	void *user;
} ck_measure_options;

typedef enum ck_measure_end { CK_END_NARROW, CK_END_ROUNDS, CK_END_TIME, CK_END_STOPPED } ck_measure_end;
extern const char *const ck_measure_end_names[]; /* "narrow", "rounds", "time", "interrupted" */

/* samples: n of them, filled and summarised. Memory must hold initialised values and the largest arena. */
ck_status ck_measure(ck_program *const *programs, int n, ck_memory *m, const ck_measure_options *o, ck_samples *samples,
		     ck_measure_end *end, ck_err *err);

/* Seconds on a clock that only goes forward; only differences mean anything. */
double ck_seconds_now(void);

/* Peak resident bytes of this process so far (VmHWM), 0 where the system does not tell. */
size_t ck_process_peak(void);

#endif
