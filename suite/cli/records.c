/* The record apart from any run: statistics, front and saving are what they are said to be, and what is no whole record is
 * refused with its place named. */
#define _GNU_SOURCE /* open_memstream */
#include <criterion/criterion.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "harness/record/digest.h"
#include "harness/record/result.h"
#include "kernels/alloc.h"

/* ---- statistics ---------------------------------------------------------------------------------------------------------- */

/* Ranks of the interval's ends from tables of the binomial distribution. */
Test(records, statistics)
{
	static const struct {
		int n, low, high; /* of the samples 1, 2, … n */
	} cases[] = {{1, 1, 1},   {2, 1, 2},   {5, 1, 5},   {6, 1, 6},     {8, 1, 8},          {9, 2, 8},
		     {12, 3, 10}, {20, 6, 15}, {25, 8, 18}, {100, 40, 61}, {10000, 4902, 5099}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int n = cases[i].n;
		ck_samples s = {.at = ck_alloc((size_t)n, sizeof(double)), .n = n};
		for (int k = 0; k < n; k++)
			s.at[k] = 1 + k * 7 % n; /* each once, out of order: no n is a multiple of 7 */
		ck_samples_summarise(&s);
		cr_expect(s.median == (1 + n) / 2.0 && s.min == 1, "n = %d: median %g, least %g", n, s.median, s.min);
		cr_expect(s.ci_low == cases[i].low && s.ci_high == cases[i].high, "n = %d: %g .. %g", n, s.ci_low, s.ci_high);
		ck_samples_free(&s);
	}
	double five[] = {1, 2, 4, 8, 100};
	ck_samples s = {.at = five, .n = 5};
	ck_samples_summarise(&s);
	cr_expect(s.median == 4 && s.mad == 3, "median %g, deviation %g", s.median, s.mad);
	s.n = 0;
	ck_samples_summarise(&s);
	cr_expect(isnan(s.median) && isnan(s.ci_low) && isnan(s.min));
}

/* ---- records ------------------------------------------------------------------------------------------------------------- */

static void add_point(ck_result *r, const char *plan, size_t peak, double seconds)
{
	ck_point *p = ck_result_add(r, plan);
	p->checked = true;
	p->loss = 0.1 * (double)peak;
	p->has_digest[CK_DIGEST_LOSS] = true;
	p->digest[CK_DIGEST_LOSS] = (ck_digest){0x0123456789abcdef, peak};
	p->predicted_peak = p->live_peak = p->arena = peak;
	p->by_category[CK_MEM_ACTIVATIONS] = peak;
	p->executed_flops = 100 * seconds;
	if (seconds > 0) {
		p->time = (ck_samples){.at = ck_alloc(1, sizeof(double)), .n = 1};
		p->time.at[0] = seconds;
		ck_samples_summarise(&p->time);
	}
}

static ck_result *example(void)
{
	char *argv[] = {"ckbench", "sweep", "it's"};
	ck_result *r = ck_result_new(3, argv);
	r->device.name = ck_text("cpu");
	r->device.description = ck_text("a \"device\"\\\n");
	r->device.threads = 2;
	r->c.model = ck_text("mlp");
	r->c.data = ck_text("random");
	r->c.amp = ck_text("off");
	r->c.line = ck_text("ckbench sweep mlp");
	r->c.model_flops = 100;
	ck_result_add_setting(r, "layers")->number = 3;
	ck_result_add_setting(r, "activation")->word = ck_text("relu");
	r->forward_only.known = true;
	r->forward_only.verdict = CK_PARITY_FAILED; /* so that each verdict's word stands once */
	r->forward_only.predicted_peak = r->forward_only.live_peak = r->forward_only.arena = 640;
	r->forward_only.digest = (ck_digest){0xfedcba9876543210, 640};
	add_point(r, "none", 1000, 1.0);
	return r;
}

/* A device opened fast, of whose points the first has no difference and a new one has. */
static void judge_by_noise(ck_result *r)
{
	r->c.fast = true;
	add_point(r, "stages", 900, 2.0);
	ck_point *p = &r->points[r->npoints - 1];
	p->verdict = CK_WITHIN_NOISE;
	r->points[0].noise.runs = p->noise.runs = 5;
	p->noise.tensor = ck_text("fc1.weight");
	p->noise.norm = CK_NORM_MAX;
	p->noise.floor = 1.0 / 3;
	p->noise.worst = 2.0 / 3;
	p->noise.allowed = 4.0 / 3;
}

Test(records, front)
{
	static const struct {
		const char *plan;
		size_t peak;
		double seconds; /* 0: not timed */
		bool on_front;
	} points[] = {
	    {"same", 1000, 1.0, true},   {"worse", 1001, 1.5, false}, {"slower", 1000, 1.1, false}, {"smaller", 500, 1.2, true},
	    {"larger", 501, 1.2, false}, {"untimed", 1, 0, false},    {"failed", 2, 0.5, false},    {"least", 400, 9.0, true},
	};
	ck_result *r = example();
	for (size_t i = 0; i < sizeof points / sizeof *points; i++)
		add_point(r, points[i].plan, points[i].peak, points[i].seconds);
	ck_point_fail(&r->points[7], CK_POINT_PARITY_FAILED, ck_text("other bits"));
	ck_result_front(r);
	cr_expect(r->points[0].pareto);
	for (size_t i = 0; i < sizeof points / sizeof *points; i++)
		cr_expect(r->points[i + 1].pareto == points[i].on_front, "%s", points[i].plan);
	const ck_point *smaller = ck_result_find(r, "smaller");
	cr_expect(ck_saving(r, smaller) == 0.5 && ck_overhead_time(r, smaller) == 1.2 && ck_overhead_flops(r, smaller) == 1.2);
	cr_expect(isnan(ck_overhead_time(r, ck_result_find(r, "untimed"))));
	ck_result_free(r);
}

static ck_status read_text(const char *text, ck_result **r, ck_err *err)
{
	*err = (ck_err){""};
	return ck_result_read(text, strlen(text), "a.json", r, err);
}

/* Records from before mixed precision have no category for weights' copies; every other one must be there. */
Test(records, older_ones_without_weight_copies)
{
	ck_result *r = example(), *back;
	char *text = ck_result_json(r), *first = strstr(text, "\"weight_copies\"");
	cr_assert(first);
	char *next = strchr(first, ',');
	cr_assert(next);
	memmove(first, next + 1, strlen(next));
	ck_record_seal(text, strlen(text));
	ck_err err;
	cr_assert(read_text(text, &back, &err) == CK_OK, "%s", err.text);
	cr_expect(back->points[0].by_category[CK_MEM_WEIGHT_COPIES] == 0 && back->points[0].predicted_peak == 1000);
	ck_result_free(back);
	char *stashes = strstr(text, "\"stashes\"");
	cr_assert(stashes);
	stashes[1] = 'x';
	cr_expect(read_text(text, &back, &err) == CK_USAGE && strstr(err.text, "stashes"), "%s", err.text);
	free(text);
	ck_result_free(r);
}

Test(records, read_back_to_the_same)
{
	ck_result *r = example(), *back;
	add_point(r, "uniform:2", (size_t)1 << 52 | 1, 1.0 / 3);
	r->points[1].scaled = true;
	r->points[1].scale = 1.0 / 3;
	r->points[1].skipped = 7;
	ck_point_fail(ck_result_add(r, "uniform:3"), CK_POINT_SKIPPED, ck_text("no room"));
	judge_by_noise(r);
	ck_point_add_zero_gradient(&r->points[0], "fc1.weight");
	ck_point_add_zero_gradient(&r->points[0], "fc1.bias");
	r->points[1].verdict = CK_PROVES_NOTHING;
	ck_result_front(r);
	char *text = ck_result_json(r);
	ck_err err;
	cr_assert(read_text(text, &back, &err) == CK_OK, "%s", err.text);
	char *again = ck_result_json(back);
	cr_expect_str_eq(again, text);
	cr_expect(back->c.fast && !back->c.tf32 && back->points[0].noise.runs == 5 && !back->points[0].noise.tensor);
	const ck_point *far = &back->points[3];
	cr_expect(far->verdict == CK_WITHIN_NOISE && far->noise.runs == 5 && far->noise.norm == CK_NORM_MAX &&
		  far->noise.floor == 1.0 / 3 && far->noise.worst == 2.0 / 3 && far->noise.allowed == 4.0 / 3 &&
		  strcmp(far->noise.tensor, "fc1.weight") == 0);
	cr_expect(!back->points[0].scaled && back->points[1].scaled && back->points[1].scale == 1.0 / 3 &&
		  back->points[1].skipped == 7);
	cr_expect(back->points[1].time.at[0] == 1.0 / 3 && back->points[1].live_peak == ((size_t)1 << 52 | 1),
		  "not to the last bit");
	cr_expect(back->points[0].nzero_gradients == 2 && back->points[1].nzero_gradients == 0 &&
		  back->points[1].verdict == CK_PROVES_NOTHING);
	free(text);
	free(again);
	ck_result_free(r);
	ck_result_free(back);
}

/* ---- facts, ceilings, utilisation ---------------------------------------------------------------------------------------- */

static ck_result *measured_example(void)
{
	ck_result *r = example();
	ck_processors_free(&r->machine.processors); /* not this machine's */
	r->machine.processors = (ck_processors){.sockets = 2,
						.cores = 64,
						.numa_nodes = 4,
						.cache = {{48 << 10, 64}, {2 << 20, 64}, {32 << 20, 2}},
						.governor = ck_text("performance"),
						.frequency = 2350e6,
						.frequency_min = 800e6,
						.frequency_max = 3500e6};
	r->device.facts = (ck_device_facts){.name = "NVIDIA H200",
					    .capability = "9.0",
					    .driver = "580.65.06",
					    .libraries = "CUDA 13.0",
					    .power_state = "power cap, power brake",
					    .memory = 150754820096,
					    .multiprocessors = 132,
					    .clock = 345e6,
					    .clock_most = 1980e6,
					    .memory_clock = 3201e6,
					    .power_limit = 700.5,
					    .ecc = 0,
					    .tells_throttling = true};
	r->ceilings.known = true;
	r->ceilings.precision = CK_PRECISION_BF16;
	r->ceilings.at = (ck_ceilings){.matmul = {0, 1.0 / 3, 0, 800, 0}, .copy = 3e12};
	r->c.model_flops = 100;
	r->points[0].executed_flops = 150; /* in the 1 s of its one sample */
	r->points[0].time.throttled = ck_alloc(1, sizeof(bool));
	return r;
}

Test(records, utilisation)
{
	ck_result *r = measured_example();
	ck_point *p = &r->points[0];
	ck_utilisation u = ck_point_utilisation(r, p);
	cr_expect(u.model == 100 / 800.0 && u.hardware == 150 / 800.0, "%g, %g", u.model, u.hardware);
	cr_expect(u.model_datasheet == 100 / 989.5e12 && u.hardware_datasheet == 150 / 989.5e12, "%g, %g", u.model_datasheet,
		  u.hardware_datasheet);
	r->ceilings.precision = CK_PRECISION_F64; /* neither measured nor promised */
	u = ck_point_utilisation(r, p);
	cr_expect(isnan(u.model) && isnan(u.hardware) && isnan(u.model_datasheet) && isnan(u.hardware_datasheet));
	r->ceilings.precision = CK_PRECISION_F16; /* promised only */
	u = ck_point_utilisation(r, p);
	cr_expect(isnan(u.model) && isnan(u.hardware) && u.model_datasheet == 100 / 989.5e12);
	r->ceilings.precision = CK_PRECISION_BF16;
	strcpy(r->device.facts.name, "NVIDIA H200 NVL"); /* another product */
	u = ck_point_utilisation(r, p);
	cr_expect(u.model == 100 / 800.0 && isnan(u.model_datasheet) && isnan(u.hardware_datasheet));
	ck_point *untimed = ck_result_add(r, "untimed");
	u = ck_point_utilisation(r, untimed);
	cr_expect(isnan(u.model) && isnan(u.hardware));
	r->ceilings.known = false;
	u = ck_point_utilisation(r, &r->points[0]);
	cr_expect(isnan(u.model) && isnan(u.model_datasheet));
	ck_result_free(r);
}

/* Every row: dense rates that grow as precision falls, and a document. */
Test(records, datasheets)
{
	static const char *const products[] = {"NVIDIA A100-SXM4-40GB",
					       "NVIDIA A100-PCIE-40GB",
					       "NVIDIA A100-SXM4-80GB",
					       "NVIDIA A100 80GB PCIe",
					       "NVIDIA H100 80GB HBM3",
					       "NVIDIA H100 PCIe",
					       "NVIDIA H200",
					       "NVIDIA B200",
					       "NVIDIA L40S",
					       "NVIDIA L4",
					       "NVIDIA GeForce RTX 4090",
					       "NVIDIA GeForce RTX 3090"};
	for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
		const ck_datasheet *s = ck_datasheet_find(products[i]);
		cr_assert(s, "%s", products[i]);
		const double *rate = s->matmul;
		cr_expect(rate[CK_PRECISION_F64] == 0 && rate[CK_PRECISION_F32] >= 1e13 &&
			      rate[CK_PRECISION_TF32] >= rate[CK_PRECISION_F32] &&
			      rate[CK_PRECISION_BF16] >= 1.9 * rate[CK_PRECISION_TF32] &&
			      rate[CK_PRECISION_F16] == rate[CK_PRECISION_BF16] && rate[CK_PRECISION_BF16] < 1e16,
			  "%s", products[i]);
		cr_expect(s->bandwidth >= 3e11 && s->bandwidth <= 8e12 && strstr(s->source, "NVIDIA"), "%s", products[i]);
	}
	static const char *const others[] = {"",
					     "NVIDIA",
					     "H200",
					     "NVIDIA H200 NVL",
					     "NVIDIA L40",
					     "NVIDIA GeForce RTX 4090 D",
					     "NVIDIA GeForce RTX 4090 Laptop GPU"};
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		cr_expect(!ck_datasheet_find(others[i]), "%s", others[i]);
}

Test(records, facts_read_back_to_the_same)
{
	ck_result *r = measured_example(), *back;
	ck_samples *t = &r->points[0].time;
	ck_samples_free(t);
	*t = (ck_samples){.at = ck_alloc(4, sizeof(double)), .throttled = ck_alloc(4, sizeof(bool)), .n = 4};
	for (int i = 0; i < 4; i++)
		t->at[i] = 1 + i;
	t->throttled[0] = t->throttled[3] = true;
	ck_samples_summarise(t);
	ck_result_front(r);
	char *text = ck_result_json(r);
	ck_err err;
	cr_assert(read_text(text, &back, &err) == CK_OK, "%s", err.text);
	char *again = ck_result_json(back);
	cr_expect_str_eq(again, text);
	const ck_processors *p = &back->machine.processors;
	cr_expect(p->sockets == 2 && p->cores == 64 && p->numa_nodes == 4 && p->cache[CK_L3].bytes == 32 << 20 &&
		  p->cache[CK_L1D].count == 64 && strcmp(p->governor, "performance") == 0);
	cr_expect(p->frequency == 2350e6 && p->frequency_min == 800e6 && p->frequency_max == 3500e6);
	const ck_device_facts *f = &back->device.facts;
	cr_expect(strcmp(f->power_state, "power cap, power brake") == 0 && f->memory == 150754820096 &&
		  f->power_limit == 700.5 && f->ecc == 0 && f->tells_throttling);
	cr_expect(back->ceilings.known && back->ceilings.precision == CK_PRECISION_BF16 &&
		  memcmp(&back->ceilings.at, &r->ceilings.at, sizeof r->ceilings.at) == 0);
	cr_expect(ck_samples_throttled(&back->points[0].time) == 2 && back->points[0].time.throttled[0] &&
		  back->points[0].time.throttled[3]);
	static const char *const says[] = {"\"throttled\":\t[0, 3]", "\"utilisation\"", "\"hardware_datasheet\"",
					   "\"source\":\t\"NVIDIA H200 Tensor Core GPU data sheet\"", "\"ecc\":\tfalse"};
	for (size_t i = 0; i < sizeof says / sizeof *says; i++)
		cr_expect(strstr(text, says[i]), "no %s in %s", says[i], text);
	free(text);
	free(again);
	ck_result_free(r);
	ck_result_free(back);
}

/* Nothing known, nothing said: a record as it was before there were such fields. */
Test(records, without_facts)
{
	ck_result *r = example(), *back;
	ck_processors_free(&r->machine.processors);
	ck_result_front(r);
	char *text = ck_result_json(r);
	static const char *const fields[] = {"sockets",     "caches",   "frequency", "product",     "clock",    "ecc",
					     "power_limit", "ceilings", "datasheet", "utilisation", "throttled"};
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
		char *field = ck_text("\"%s\"", fields[i]);
		cr_expect(!strstr(text, field), "%s in %s", field, text);
		free(field);
	}
	char *tells = strstr(text, "\"tells_throttling\"");
	cr_assert(tells);
	tells[1] = 'x'; /* older ones do not say it */
	ck_record_seal(text, strlen(text));
	ck_err err;
	cr_assert(read_text(text, &back, &err) == CK_OK, "%s", err.text);
	cr_expect(back->device.facts.ecc == -1 && !back->device.facts.tells_throttling && !back->ceilings.known &&
		  !back->points[0].time.throttled && !back->machine.processors.governor);
	ck_result_free(back);
	free(text);
	ck_result_free(r);
}

/* The text with the first `from` replaced, which must be there. Fresh memory. */
static char *spoil(const char *text, const char *from, const char *to)
{
	const char *at = strstr(text, from);
	cr_assert(at, "no %s in %s", from, text);
	return ck_text("%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

Test(records, spoiled_facts)
{
	static const struct {
		const char *from, *to, *place;
	} cases[] = {
	    {"\"sockets\":\t2", "\"sockets\":\t2.5", "machine.sockets"},
	    {"\"count\":\t2", "\"count\":\t-2", "machine.caches.l3.count"},
	    {"\"governor\":\t\"performance\"", "\"governor\":\t7", "machine.frequency.governor"},
	    {"\"ecc\":\tfalse", "\"ecc\":\t\"off\"", "device.ecc"},
	    {"\"capability\":\t\"9.0\"", "\"capability\":\t9", "device.capability"},
	    {"\"power_limit\":\t700.5", "\"power_limit\":\ttrue", "device.power_limit"},
	    {"\"precision\":\t\"bf16\"", "\"precision\":\t\"bf17\"", "ceilings.precision"},
	    {"\"bf16\":\t800", "\"bf16\":\t\"800\"", "ceilings.matmul.bf16"},
	    {"\"throttled\":\t[0]", "\"throttled\":\t[1]", "points[0].time.throttled"},
	    {"\"throttled\":\t[0]", "\"throttled\":\t[-1]", "points[0].time.throttled"},
	    {"\"throttled\":\t[0]", "\"throttled\":\t[0.5]", "points[0].time.throttled"},
	    {"\"throttled\":\t[0]", "\"throttled\":\t[true]", "points[0].time.throttled"},
	    {"\"throttled\":\t[0]", "\"throttled\":\t0", "points[0].time.throttled"},
	};
	ck_result *r = measured_example(), *back;
	r->points[0].time.throttled[0] = true;
	ck_result_front(r);
	char *text = ck_result_json(r);
	ck_err err;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char *spoiled = spoil(text, cases[i].from, cases[i].to);
		cr_expect(read_text(spoiled, &back, &err) == CK_USAGE && !back && strstr(err.text, cases[i].place), "%s: %s",
			  cases[i].to, err.text);
		free(spoiled);
	}
	free(text);
	ck_result_free(r);
}

/* The digest is over all other bytes, with its own digits as zeros; this one was worked out by the xxhash library alone. */
Test(records, digest)
{
	ck_result *r = example(), *back;
	char *text = ck_result_json(r), *digits = strstr(text, "\t\"digest\":\t\"") + 12, again[33];
	ck_err err;
	cr_assert(read_text(text, &back, &err) == CK_OK && back->sealed, "%s", err.text);
	char *canonical = ck_text("%s", text);
	memset(canonical + (digits - text), '0', 32);
	XXH128_hash_t hash = XXH3_128bits(canonical, strlen(canonical));
	snprintf(again, sizeof again, "%016llx%016llx", (unsigned long long)hash.high64, (unsigned long long)hash.low64);
	cr_expect(strncmp(digits, again, 32) == 0 && back->digest.hi == hash.high64 && back->digest.lo == hash.low64, "%s",
		  again);
	ck_result_free(back);
	/* No byte can change unnoticed; where it is of the digest's own name, there is none any more. */
	for (size_t i = 0; text[i]; i++) {
		text[i] ^= 1;
		ck_status status = read_text(text, &back, &err);
		bool noticed = status == CK_USAGE && !back && strstr(err.text, "a.json");
		cr_expect(noticed || (status == CK_OK && !back->sealed), "byte %zu: %s", i, err.text);
		ck_result_free(back);
		text[i] ^= 1;
	}
	char *loss = strstr(text, "\"loss\":\t100");
	cr_assert(loss);
	loss[8] = '2';
	cr_expect(read_text(text, &back, &err) == CK_USAGE && strstr(err.text, "edited"), "%s", err.text);
	loss[8] = '1';
	/* Older records have none, and can be read all the same. */
	char *line = strstr(text, "\t\"digest\""), *next = strchr(line, '\n') + 1;
	memmove(line, next, strlen(next) + 1);
	cr_expect(read_text(text, &back, &err) == CK_OK && !back->sealed, "%s", err.text);
	ck_result_free(back);
	free(canonical);
	free(text);
	ck_result_free(r);
}

/* The table and the TSV say what the record knows. */
Test(records, tables_of_facts)
{
	ck_result *r = measured_example();
	char *text = NULL;
	size_t bytes;
	r->points[0].time.throttled[0] = true;
	r->c.model_flops = 98.95e12;
	r->points[0].executed_flops = 197.9e12;
	r->ceilings.at.matmul[CK_PRECISION_BF16] = 791.6e12;
	FILE *to = open_memstream(&text, &bytes);
	cr_assert(to);
	ck_result_table(r, to);
	fclose(to);
	static const char *const says[] = {
	    "MFU/HFU %", " 12.5/25.0 ",
	    "MFU, HFU: model and executed FLOPs, of the 791.6 TFLOP/s at which products in bf16 were measured; a copy: 3.0 "
	    "TB/s\n",
	    "of the 989.5 TFLOP/s that the data sheet promises, plan none makes 10.0 %\n",
	    "warning: the device slowed itself down in 1 of 1 samples of none; they count in the medians like all others\n"};
	for (size_t i = 0; i < sizeof says / sizeof *says; i++)
		cr_expect(strstr(text, says[i]), "no '%s' in\n%s", says[i], text);
	free(text);
	char *tsv = ck_result_tsv(r);
	cr_expect(strstr(tsv, "\tutilisation_model\tutilisation_hardware\tutilisation_model_datasheet\tutilisation_hardware_"
			      "datasheet\tthrottled\n") &&
		      strstr(tsv, "\t0.125\t0.25\t0.1\t0.2\t1\n"),
		  "%s", tsv);
	free(tsv);
	ck_result_free(r);
}

/* ---- refusals -------------------------------------------------------------------------------------------------------------- */

/* The record cut short at every place, and fields spoiled: refused, never a crash, and the message says where. */
Test(records, refused)
{
	ck_result *r = example(), *back;
	ck_point_add_zero_gradient(&r->points[0], "fc1.weight");
	judge_by_noise(r);
	ck_result_front(r);
	char *text = ck_result_json(r);
	ck_err err;
	for (size_t n = 0; n < strlen(text) - 2; n++) {
		char *cut = ck_text("%.*s", (int)n, text);
		cr_expect(read_text(cut, &back, &err) == CK_USAGE && !back && strstr(err.text, "a.json"),
			  "cut after %zu bytes: %s", n, err.text);
		free(cut);
	}
	static const struct {
		const char *from, *to, *place;
	} cases[] = {
	    {"ckbench-result/1", "ckbench-result/9", "ckbench-result/9"},
	    {"\"schema\"", "\"scheme\"", "missing"},
	    {"\"machine\"", "\"machines\"", "machine is missing"},
	    {"\"cores\"", "\"scores\"", "machine.cores is missing"},
	    {"\"bitwise\"", "\"alike\"", "points[0].parity.verdict"},
	    {"[\"fc1.weight\"]", "[]", "points[0].parity.zero_gradients"},
	    {"[\"fc1.weight\"]", "[1]", "points[0].parity.zero_gradients"},
	    {"[\"fc1.weight\"]", "1", "points[0].parity.zero_gradients"},
	    {"\"failed\"", "\"alike\"", "forward_only.verdict"},
	    {"\"within-noise\"", "\"alike\"", "points[1].parity.verdict"},
	    {"\"fast\":\ttrue", "\"fast\":\t1", "case.fast is neither true nor false"},
	    {"\"runs\":\t5", "\"runs\":\t-5", "points[0].parity.noise.runs"},
	    {"\"norm\":\t\"max\"", "\"norm\":\t\"l1\"", "points[1].parity.noise.norm"},
	    {"\"allowed\":", "\"aloud\":", "points[1].parity.noise.allowed is missing"},
	    {"\"arena\":\t640", "\"arena\":\t-1", "forward_only.arena"},
	    {"fedcba9876543210", "fedcba987654321g", "forward_only.digest"},
	    {"\"status\":\t\"ok\"", "\"status\":\t1", "points[0].status"},
	    {"\"arena\":\t1000", "\"arena\":\t-1", "points[0].memory.arena"},
	    {"\"arena\":\t1000", "\"arena\":\t1e99", "points[0].memory.arena"},
	    {"\"arena\":\t1000", "\"arena\":\t0.5", "points[0].memory.arena"},
	    {"\"samples\":\t[1]", "\"samples\":\t[]", "points[0].time.samples"},
	    {"\"samples\":\t[1]", "\"samples\":\t[-1]", "points[0].time.samples"},
	    {"\"samples\":\t[1]", "\"samples\":\t[1, 1e999]", "points[0].time.samples"},
	    {"\"samples\":\t[1]", "\"samples\":\t[1e300]", "points[0].time.samples"},
	    {"\"samples\":\t[1]", "\"samples\":\t[1e-320]", "points[0].time.samples"},
	    {"\"model_flops\":\t100", "\"model_flops\":\t1e999", "points[0].work.model_flops is no number"},
	    {"\"model_flops\":\t100", "\"model_flops\":\t-100", "points[0].work.model_flops is out of range"},
	    {"\"executed_flops\":\t100", "\"executed_flops\":\t-1", "points[0].work.executed_flops is out of range"},
	    {"\"layers\":\t3", "\"layers\":\t1e999", "case.layers is no number"},
	    {"\"graph\":\t\"0", "\"graph\":\t\"", "case.graph"},
	    {"0123456789abcdef", "0123456789abcdeg", "points[0].parity.digests.loss"},
	    {"\"parity\":", "\"purity\":", "points[0].time stands without"},
	    {"\"points\":\t[", "\"points\":\t7, \"other\":\t[", "points is no list"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char *spoiled = spoil(text, cases[i].from, cases[i].to);
		cr_expect(read_text(spoiled, &back, &err) == CK_USAGE && !back && strstr(err.text, cases[i].place), "%s: %s",
			  cases[i].to, err.text);
		free(spoiled);
	}
	static const char *const foreign[] = {
	    "", "{}", "[]", "7", "null", "{\"schema\": 1}", "PK\003\004", "ckbench-schedule/1 graph"};
	for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
		cr_expect(read_text(foreign[i], &back, &err) == CK_USAGE && !back, "%s", foreign[i]);
	free(text);
	ck_result_free(r);
}
