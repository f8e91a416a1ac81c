/* Times and a device's own clock: a device that has one (mark, elapsed) is timed by it alone, and nothing waits for it within what is
 * timed; one that has none by the host's clock, which waits before it stops. The device is cpu with a clock that notes its calls. */
#include <criterion/criterion.h>
#include <string.h>

#include "harness/run/measure.h"
#include "kernels/alloc.h"
#include "suite/support.h"

static char calls[1 << 16]; /* in their order: '0' to '3': marks; 'e': elapsed; 's': sync */
static size_t ncalls;
static double says; /* what elapsed says next, seconds */

static void note(char c)
{
	cr_assert(ncalls + 1 < sizeof calls);
	calls[ncalls++] = c;
	calls[ncalls] = 0;
}

static void mark(ck_device *d, int which)
{
	(void)d;
	cr_assert(which >= 0 && which < CK_MARKS);
	note((char)('0' + which));
}

static double elapsed(ck_device *d, int from, int to)
{
	(void)d;
	cr_expect(to == from + 1);
	note('e');
	return says += 1;
}

static void synchronise(ck_device *d)
{
	(void)d;
	note('s');
}

/* The session's backend becomes one with what is asked for. */
static bench open_with(ck_backend *backend, bool clock)
{
	bench b = bench_open_model("mlp:layers=2,width=8,inputs=5,classes=4,batch=3", "cpu", 1, 1);
	*backend = *b.backend;
	backend->sync = synchronise;
	backend->mark = clock ? mark : NULL;
	backend->elapsed = clock ? elapsed : NULL;
	b.session->backend = b.backend = backend;
	return b;
}

static void begin(void)
{
	ncalls = 0;
	calls[0] = 0;
	says = 100;
}

Test(clock, steps)
{
	for (int clock = 0; clock < 2; clock++) {
		ck_backend backend;
		bench b = open_with(&backend, clock);
		ck_schedule s = bench_plan(&b, "stages");
		ck_program *p = bench_program(&b, &s);
		ck_samples samples;
		ck_measure_end end;
		ck_err err = {""};
		bench_room(&b, p);
		begin();
		cr_assert(ck_measure(&p, 1, &b.memory,
				     &(ck_measure_options){.warmup = 1, .min_rounds = 2, .max_rounds = 2, .seconds = 60},
				     &samples, &end, &err) == CK_OK,
			  "%s", err.text);
		cr_expect_str_eq(calls, clock ? "01e01e01e" : "sss", "clock %d: %s", clock, calls);
		cr_expect(samples.n == 2 && samples.at[0] > 0);
		cr_expect(!clock || (samples.at[0] == 102 && samples.at[1] == 103), "%g, %g", samples.at[0], samples.at[1]);
		ck_samples_free(&samples);
		ck_program_free(p);
		ck_schedule_free(&s);
		bench_close(&b);
	}
}

/* A profile waits after each op, and has marks of its own. */
Test(clock, ops)
{
	ck_backend backend;
	bench b = open_with(&backend, true);
	ck_schedule s = bench_plan(&b, "none");
	ck_program *p = bench_program(&b, &s);
	int nops = b.graph->nops;
	double *seconds = ck_alloc(2 * (size_t)nops, sizeof *seconds);
	ck_err err = {""};
	bench_room(&b, p);
	begin();
	cr_assert(ck_program_run(p, &b.memory, &(ck_step){.seed = 1, .op_seconds = seconds}, &err) == CK_OK, "%s", err.text);
	cr_expect(ncalls == 3 * 2 * (size_t)nops, "%s", calls);
	for (size_t i = 0; i < ncalls; i += 3)
		cr_expect(strncmp(calls + i, "23e", 3) == 0, "%s", calls);
	for (int k = 0; k < nops; k++) {
		cr_expect(seconds[k] == 101 + k, "forward of op %d: %g", k, seconds[k]);
		cr_expect(seconds[nops + k] == 100 + 2 * nops - k, "backward of op %d: %g", k, seconds[nops + k]);
	}
	free(seconds);
	ck_program_free(p);
	ck_schedule_free(&s);
	bench_close(&b);
}
