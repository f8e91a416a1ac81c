/* The optimizers by themselves: `ref` against torch.optim and closed forms, `cpu` against `ref`, and cpu's bits with any number of
 * threads. */
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/alloc.h"
#include "kernels/ops.h"
#include "suite/device.h"

TestSuite(optimizers, .init = device_or_skip);

enum { STEPS = 4 };

/* A parameter of n elements with its state on a device. */
typedef struct rig {
	const ck_backend *backend;
	ck_device *device;
	ck_optimizer optimizer;
	int64_t n;
	void *gradient, *parameter, *state[CK_MAX_STATES];
} rig;

static void *device_tensor(const rig *r)
{
	void *memory = NULL;
	ck_err err = {""};
	size_t bytes = (size_t)r->n * ck_dtype_size(r->backend->real);
	cr_assert(r->backend->alloc(r->device, bytes, &memory, &err) == CK_OK, "%s", err.text);
	r->backend->fill(r->device, memory, 0, bytes);
	return memory;
}

static size_t bytes_of(const rig *r)
{
	return (size_t)r->n * ck_dtype_size(r->backend->real);
}

static void put(const rig *r, void *to, const double *from)
{
	void *host = ck_alloc(1, bytes_of(r));
	for (int64_t i = 0; i < r->n; i++)
		ck_element_put(r->backend->real, host, i, from[i]);
	r->backend->write(r->device, to, host, bytes_of(r));
	free(host);
}

static double get(const rig *r, const void *from, int64_t i)
{
	double element;
	size_t size = ck_dtype_size(r->backend->real);
	r->backend->read(r->device, &element, (const char *)from + (size_t)i * size, size);
	return ck_element_get(r->backend->real, &element, 0);
}

/* All n elements, on the host; fresh memory. */
static double *get_all(const rig *r, const void *from)
{
	void *host = ck_alloc(1, bytes_of(r));
	double *x = ck_alloc((size_t)r->n, sizeof *x);
	r->backend->read(r->device, host, from, bytes_of(r));
	for (int64_t i = 0; i < r->n; i++)
		x[i] = ck_element_get(r->backend->real, host, i);
	free(host);
	return x;
}

static rig rig_open(const char *device, int threads, ck_optimizer o, int64_t n, const double *start)
{
	ck_err err = {""};
	int index;
	rig r = {.optimizer = o, .n = n};
	cr_assert(ck_backend_find(device, &r.backend, &index, &err) == CK_OK, "%s", err.text);
	cr_assert(r.backend->open(&(ck_open_options){.index = index, .threads = threads}, &r.device, &err) == CK_OK, "%s",
		  err.text);
	r.gradient = device_tensor(&r);
	r.parameter = device_tensor(&r);
	for (int k = 0; k < ck_optimizer_states(&o); k++)
		r.state[k] = device_tensor(&r);
	put(&r, r.parameter, start);
	return r;
}

static void rig_close(rig *r)
{
	void *all[] = {r->gradient, r->parameter, r->state[0], r->state[1]};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (all[i])
			r->backend->free(r->device, all[i]);
	r->backend->close(r->device);
}

/* Step t, from 1 on. */
static void rig_step(rig *r, int64_t t, const double *gradient)
{
	put(r, r->gradient, gradient);
	ck_update u = {.optimizer = &r->optimizer, .t = t, .n = r->n, .gradient = r->gradient, .parameter = r->parameter};
	memcpy(u.state, r->state, sizeof u.state);
	r->backend->update(r->device, &u);
}

static ck_optimizer sgd(double lr, double momentum, double weight_decay)
{
	ck_optimizer o = ck_optimizer_preset(CK_SGD);
	o.lr = lr;
	o.momentum = momentum;
	o.weight_decay = weight_decay;
	return o;
}

static ck_optimizer adamw(double lr, double weight_decay)
{
	ck_optimizer o = ck_optimizer_preset(CK_ADAMW);
	o.lr = lr;
	o.weight_decay = weight_decay;
	return o;
}

/* ---- the rules ------------------------------------------------------------------------------------------------------------ */

static const double start[3] = {1, -2, 0.5};
static const double gradients[STEPS][3] = {{0.5, -1.25, 0}, {-0.25, 2, 1e-3}, {1, 0.75, -3}, {0.125, -0.5, 0}};

/* Printed by torch.optim 2.13 in float64, from that start, with these gradients. */
static const struct {
	const char *call;
	ck_optimizer optimizer;
	double after[STEPS][3];
} by_torch[] = {
    {"SGD(lr=0.1)",
     {CK_SGD, .lr = 0.1},
     {{0.95, -1.875, 0.5},
      {0.975, -2.075, 0.4999},
      {0.875, -2.1500000000000004, 0.7999},
      {0.8625, -2.1000000000000005, 0.7999}}},
    {"SGD(lr=0.1, momentum=0.9, weight_decay=0.05)",
     {CK_SGD, .lr = 0.1, .momentum = 0.9, .weight_decay = 0.05},
     {{0.945, -1.865, 0.4975},
      {0.9157749999999999, -1.934175, 0.4926625},
      {0.7848936249999999, -2.061761625, 0.7858454375},
      {0.6506759193749999, -2.116280779375, 1.0457808540625}}},
    {"AdamW()",
     {CK_ADAMW, .lr = 1e-3, .weight_decay = 1e-2, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8},
     {{0.99899000002, -1.998980000008, 0.499995},
      {0.9987136730870784, -1.9992361231983784, 0.4992458737473369},
      {0.9980455743600399, -1.9996132208088901, 0.4998795032047894},
      {0.997436617172527, -1.9997968411445664, 0.5003976246240988}}},
    {"AdamW(lr=0.05, weight_decay=0.2)",
     {CK_ADAMW, .lr = 0.05, .weight_decay = 0.2, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8},
     {{0.940000001, -1.9300000004, 0.495},
      {0.9172831493439233, -1.9245056499149162, 0.4528436848668449},
      {0.8752047383351057, -1.92511509200295, 0.4802463438276734},
      {0.8365038543632807, -1.9160447644771321, 0.5015998911064654}}},
};

Test(optimizers, presets_are_those_of_torch)
{
	ck_optimizer s = ck_optimizer_preset(CK_SGD), a = ck_optimizer_preset(CK_ADAMW);
	cr_expect(s.lr == 1e-3 && s.momentum == 0 && s.weight_decay == 0 && ck_optimizer_states(&s) == 0);
	cr_expect(a.lr == 1e-3 && a.beta1 == 0.9 && a.beta2 == 0.999 && a.eps == 1e-8 && a.weight_decay == 1e-2 &&
		  ck_optimizer_states(&a) == 2);
	s.momentum = 0.9;
	cr_expect(ck_optimizer_states(&s) == 1);
}

/* Several roundings of float64 apart at most: the same sums may be formed in another order. */
Test(optimizers, reference_against_torch)
{
	for (size_t i = 0; i < sizeof by_torch / sizeof *by_torch; i++) {
		rig r = rig_open("ref", 1, by_torch[i].optimizer, 3, start);
		for (int t = 0; t < STEPS; t++) {
			rig_step(&r, t + 1, gradients[t]);
			for (int e = 0; e < 3; e++) {
				double want = by_torch[i].after[t][e], off = fabs(get(&r, r.parameter, e) - want);
				cr_expect(off <= 8 * DBL_EPSILON * fabs(want), "%s: step %d, element %d is %.17g, not %.17g",
					  by_torch[i].call, t + 1, e, get(&r, r.parameter, e), want);
			}
		}
		rig_close(&r);
	}
}

/* With one gradient g at every step the sums are geometric: momentum makes lr g (1 - momentum^k) / (1 - momentum) of step k; Adam's
 * corrected moments are g and g^2, so that every step is lr g / (|g| + eps). With no gradient only the decay is left. */
Test(optimizers, closed_forms)
{
	const double lr = 0.01, g = -0.75, w = 2, momentum = 0.9, decay = 0.1, zero = 0;
	rig moving = rig_open("ref", 1, sgd(lr, momentum, 0), 1, &w), decaying = rig_open("ref", 1, sgd(lr, 0, decay), 1, &w);
	rig adam = rig_open("ref", 1, adamw(lr, 0), 1, &w), adam_decaying = rig_open("ref", 1, adamw(lr, decay), 1, &w);
	double moved = w, decayed = w;
	for (int t = 1; t <= 200; t++) {
		rig_step(&moving, t, &g);
		rig_step(&decaying, t, &zero);
		rig_step(&adam, t, &g);
		rig_step(&adam_decaying, t, &zero);
		moved -= lr * g * (1 - pow(momentum, t)) / (1 - momentum);
		decayed *= 1 - lr * decay;
		const struct {
			const char *what;
			const rig *r;
			double want;
		} all[] = {{"sgd with momentum", &moving, moved},
			   {"sgd with decay alone", &decaying, decayed},
			   {"adamw", &adam, w - t * lr * g / (fabs(g) + 1e-8)},
			   {"adamw with decay alone", &adam_decaying, decayed}};
		for (size_t i = 0; i < sizeof all / sizeof *all; i++)
			cr_expect(fabs(get(all[i].r, all[i].r->parameter, 0) - all[i].want) <= 1e-13 * fabs(all[i].want),
				  "%s: after step %d it is %.17g, not %.17g", all[i].what, t,
				  get(all[i].r, all[i].r->parameter, 0), all[i].want);
	}
	rig_close(&moving);
	rig_close(&decaying);
	rig_close(&adam);
	rig_close(&adam_decaying);
}

/* ---- cpu ------------------------------------------------------------------------------------------------------------------ */

static const ck_optimizer tried[] = {
    {CK_SGD, .lr = 0.1},
    {CK_SGD, .lr = 0.1, .momentum = 0.9},
    {CK_SGD, .lr = 0.1, .momentum = 0.9, .weight_decay = 0.01},
    {CK_ADAMW, .lr = 1e-3, .weight_decay = 1e-2, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8},
    {CK_ADAMW, .lr = 0.05, .beta1 = 0.5, .beta2 = 0.9, .eps = 1e-3},
};
/* Below and above where threads share the work, whole vectors and a rest. */
static const int64_t sizes[] = {1, 7, 16, 33, 1000, 16384, 16389, 70001};

/* Numbers of all signs and of many sizes that are exact in float32. */
static double number(int64_t i, int t)
{
	uint32_t h = (uint32_t)(i * 2654435761u + (uint32_t)t * 40503u + 12345u);
	h ^= h >> 15;
	h *= 2246822519u;
	h ^= h >> 13;
	return ((double)(h & 0xffff) - 32768) / 32768 * pow(2, (double)(h >> 16 & 7) - 4);
}

static double *numbers(int64_t n, int t)
{
	double *at = ck_alloc((size_t)n, sizeof *at);
	for (int64_t i = 0; i < n; i++)
		at[i] = number(i, t);
	return at;
}

/* What cpu may be off: a few roundings of float32 of what is there and of what moves in each step; in AdamW's state a gradient
 * squared. */
static void compare(const rig *ref, const rig *cpu, const char *what, const void *want, const void *got, double scale)
{
	double *w = get_all(ref, want), *g = get_all(cpu, got);
	for (int64_t e = 0; e < ref->n; e++) {
		double off = fabs(w[e] - g[e]);
		cr_assert(off <= 16 * scale * FLT_EPSILON, "%s, %lld elements: %s of element %lld is %.9g, not %.9g",
			  ck_optimizer_name(ref->optimizer.kind), (long long)ref->n, what, (long long)e, g[e], w[e]);
	}
	free(w);
	free(g);
}

Test(optimizers, cpu_against_the_reference, .timeout = 120)
{
	for (size_t i = 0; i < sizeof tried / sizeof *tried; i++)
		for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
			double *w = numbers(sizes[s], 0);
			rig ref = rig_open("ref", 1, tried[i], sizes[s], w),
			    cpu = rig_open(device_under_test(), 2, tried[i], sizes[s], w);
			for (int t = 1; t <= STEPS; t++) {
				double *g = numbers(sizes[s], t);
				rig_step(&ref, t, g);
				rig_step(&cpu, t, g);
				free(g);
			}
			compare(&ref, &cpu, "the parameter", ref.parameter, cpu.parameter, 8);
			for (int k = 0; k < ck_optimizer_states(&tried[i]); k++)
				compare(&ref, &cpu, "the state", ref.state[k], cpu.state[k], k ? 64 : 32);
			rig_close(&ref);
			rig_close(&cpu);
			free(w);
		}
}

Test(optimizers, same_bits_with_any_number_of_threads, .timeout = 120)
{
	device_is_cpu_or_skip();
	static const int threads[] = {1, 2, 3, 4};
	for (size_t i = 0; i < sizeof tried / sizeof *tried; i++)
		for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
			double *w = numbers(sizes[s], 0);
			size_t bytes = (size_t)sizes[s] * sizeof(float);
			float *first = ck_alloc(1, bytes);
			for (size_t k = 0; k < sizeof threads / sizeof *threads; k++) {
				rig r = rig_open(device_under_test(), threads[k], tried[i], sizes[s], w);
				for (int t = 1; t <= STEPS; t++) {
					double *g = numbers(sizes[s], t);
					rig_step(&r, t, g);
					free(g);
				}
				if (k == 0)
					memcpy(first, r.parameter, bytes);
				cr_expect(memcmp(first, r.parameter, bytes) == 0,
					  "%s, %lld elements: other bits with %d threads", ck_optimizer_name(tried[i].kind),
					  (long long)sizes[s], threads[k]);
				rig_close(&r);
			}
			free(first);
			free(w);
		}
}
