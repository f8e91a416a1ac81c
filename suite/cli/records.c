/* The record apart from any run: statistics, front and saving are what they are said to be, and what is no whole record is
 * refused with its place named. */
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
	ck_point_add_zero_gradient(&r->points[0], "fc1.weight");
	ck_point_add_zero_gradient(&r->points[0], "fc1.bias");
	r->points[1].verdict = CK_PROVES_NOTHING;
	ck_result_front(r);
	char *text = ck_result_json(r);
	ck_err err;
	cr_assert(read_text(text, &back, &err) == CK_OK, "%s", err.text);
	char *again = ck_result_json(back);
	cr_expect_str_eq(again, text);
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

/* The record cut short at every place, and fields spoiled: refused, never a crash, and the message says where. */
Test(records, refused)
{
	ck_result *r = example(), *back;
	ck_point_add_zero_gradient(&r->points[0], "fc1.weight");
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
	    {"\"arena\":\t640", "\"arena\":\t-1", "forward_only.arena"},
	    {"fedcba9876543210", "fedcba987654321g", "forward_only.digest"},
	    {"\"status\":\t\"ok\"", "\"status\":\t1", "points[0].status"},
	    {"\"arena\":\t1000", "\"arena\":\t-1", "points[0].memory.arena"},
	    {"\"arena\":\t1000", "\"arena\":\t1e99", "points[0].memory.arena"},
	    {"\"arena\":\t1000", "\"arena\":\t0.5", "points[0].memory.arena"},
	    {"\"samples\":\t[1]", "\"samples\":\t[]", "points[0].time.samples"},
	    {"\"samples\":\t[1]", "\"samples\":\t[-1]", "points[0].time.samples"},
	    {"0123456789abcdef", "0123456789abcdeg", "points[0].parity.digests.loss"},
	    {"\"parity\":", "\"purity\":", "points[0].time stands without"},
	    {"\"points\":\t[", "\"points\":\t7, \"other\":\t[", "points is no list"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *at = strstr(text, cases[i].from);
		cr_assert(at, "no %s in %s", cases[i].from, text);
		char *spoiled = ck_text("%.*s%s%s", (int)(at - text), text, cases[i].to, at + strlen(cases[i].from));
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
