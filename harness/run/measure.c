/* Measuring plans against each other.
 *
 *     warm-up   A B C   A B C
 *     round 1   B A C          ← each round visits every program once, in an order shuffled anew,
 *     round 2   C A B            so that drift of the machine falls on all alike
 *     …
 *
 * A sample is one whole step of one program. Nothing else happens between the two readings of the clock; where the device has a clock
 * of its own, that one is read, and within a step nothing waits for the device. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "harness/run/measure.h"
#include "harness/run/program.h"
#include "kernels/alloc.h"
#include "kernels/philox.h"

const char *const ck_measure_end_names[] = {"narrow", "rounds", "time", "interrupted"};

typedef struct measuring {
	ck_program *const *programs;
	int n;
	ck_memory *memory;
	const ck_measure_options *o;
	ck_samples *samples;
	double started;       /* seconds, monotonic clock */
	double round_seconds; /* what the last whole pass over all programs took */
	int passes;           /* warm-up passes and rounds done */
} measuring;

double ck_seconds_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

ck_clock ck__clock_start(const ck_backend *b, ck_device *d, ck_clock_of of)
{
	if (b->mark)
		b->mark(d, of);
	return (ck_clock){of, b->mark ? 0 : ck_seconds_now()};
}

double ck__clock_stop(const ck_backend *b, ck_device *d, ck_clock c)
{
	if (b->mark) {
		b->mark(d, c.of + 1);
		return b->elapsed(d, c.of, c.of + 1);
	}
	if (b->sync)
		b->sync(d);
	return ck_seconds_now() - c.from;
}

static bool stopped(const measuring *m)
{
	return m->o->stop && *m->o->stop;
}

static ck_status step_once(const measuring *m, int program, double *seconds, ck_err *err)
{
	ck_step step = {.seed = m->o->seed, .step = (uint32_t)m->passes};
	const ck_session *session = m->memory->session;
	ck_clock clock = ck__clock_start(session->backend, session->device, CK_CLOCK_STEP);
	ck_status status = ck_program_run(m->programs[program], m->memory, &step, err);
	*seconds = ck__clock_stop(session->backend, session->device, clock);
	return status;
}

/* Whether the device has slowed itself down since the last call. */
static bool throttled(const measuring *m)
{
	const ck_session *session = m->memory->session;
	return session->backend->throttled && session->backend->throttled(session->device);
}

/* The pass under way has done `done` programs. What is left: passes up to the last that the limits allow. */
static void report(const measuring *m, int done)
{
	if (!m->o->progress)
		return;
	double elapsed = ck_seconds_now() - m->started;
	double passes = m->passes + (double)done / m->n;
	double most = m->o->warmup + m->o->max_rounds, least = m->o->warmup + m->o->min_rounds;
	double pace = elapsed / passes;
	double total = fmax(fmin(pace * most, m->o->seconds), pace * least);
	m->o->progress(m->o->user, fmin(elapsed / total, 1), fmax(total - elapsed, 0));
}

/* Fisher-Yates, from the seed and the pass: the same order whenever it is run again. */
static void shuffle(const measuring *m, int *order)
{
	for (int i = 0; i < m->n; i++)
		order[i] = i;
	for (int i = m->n - 1; i > 0; i--) {
		uint32_t word[4];
		ck_philox_block(m->o->seed, (uint32_t)m->passes, UINT32_MAX, (uint64_t)i, word);
		int j = (int)(word[0] % (uint32_t)(i + 1)), held = order[i];
		order[i] = order[j], order[j] = held;
	}
}

/* One visit to every program. A warm-up keeps no samples, and ends at once when told to stop; a round is finished. */
static ck_status pass(measuring *m, bool keep, ck_err *err)
{
	int *order = ck_alloc((size_t)m->n, sizeof *order);
	double from = ck_seconds_now();
	ck_status status = CK_OK;
	shuffle(m, order);
	for (int i = 0; i < m->n && status == CK_OK && (keep || !stopped(m)); i++) {
		double seconds;
		ck_samples *s = &m->samples[order[i]];
		status = step_once(m, order[i], &seconds, err);
		bool slowed = throttled(m);
		if (keep && status == CK_OK) {
			s->throttled[s->n] = slowed;
			s->at[s->n++] = seconds;
		}
		report(m, i + 1);
	}
	free(order);
	m->passes++;
	m->round_seconds = ck_seconds_now() - from;
	return status;
}

/* Fewer than six samples have no 95 % interval, however close together they lie. */
static bool all_narrow(const measuring *m)
{
	for (int i = 0; i < m->n; i++) {
		const ck_samples *s = &m->samples[i];
		if (s->n < 6 || !(s->ci_high - s->ci_low <= m->o->narrow * s->median))
			return false;
	}
	return true;
}

/* Whether the rounds end here, and why. The time limit is kept by not starting a round that would likely cross it. */
static bool ended(const measuring *m, int rounds, ck_measure_end *end)
{
	bool enough = rounds >= m->o->min_rounds;
	if (stopped(m))
		*end = CK_END_STOPPED;
	else if (enough && all_narrow(m))
		*end = CK_END_NARROW;
	else if (rounds >= m->o->max_rounds)
		*end = CK_END_ROUNDS;
	else if (enough && ck_seconds_now() - m->started + m->round_seconds > m->o->seconds)
		*end = CK_END_TIME;
	else
		return false;
	return true;
}

ck_status ck_measure(ck_program *const *programs, int n, ck_memory *memory, const ck_measure_options *o, ck_samples *samples,
		     ck_measure_end *end, ck_err *err)
{
	measuring m = {.programs = programs, .n = n, .memory = memory, .o = o, .samples = samples, .started = ck_seconds_now()};
	for (int i = 0; i < n; i++) {
		samples[i] = (ck_samples){.at = ck_alloc((size_t)o->max_rounds, sizeof(double)),
					  .throttled = ck_alloc((size_t)o->max_rounds, sizeof(bool))};
		ck_samples_summarise(&samples[i]);
	}
	ck_status status = CK_OK;
	throttled(&m); /* what came before is not ours */
	for (int i = 0; i < o->warmup && status == CK_OK && !stopped(&m); i++)
		status = pass(&m, false, err);
	for (int rounds = 0; status == CK_OK && !ended(&m, rounds, end); rounds++) {
		status = pass(&m, true, err);
		for (int i = 0; i < n; i++)
			ck_samples_summarise(&samples[i]);
	}
	return status;
}

size_t ck_process_peak(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	size_t kib = 0;
	char line[256];
	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "VmHWM: %zu kB", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib * 1024;
}
