/* A record read back. What is required and of the wrong type or missing is told by its place, "points[3].memory.arena"; fields
 * that we do not know are passed over, so that later versions can add some. The first fault sticks. */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "harness/record/digest.h"
#include "harness/record/result.h"
#include "kernels/alloc.h"
#include "kernels/number.h"

typedef struct reader {
	const char *source;
	ck_err *err;
	ck_status status;
	char at[96]; /* the object under way: "points[3].memory." */
} reader;

static void wrong(reader *r, const char *field, const char *what)
{
	r->status = ck_fail(r->err, CK_USAGE, "%s is no whole %s record: %s%s %s; give a file that ckbench wrote", r->source,
			    CK_RESULT_SCHEMA, r->at, field, what);
}

__attribute__((format(printf, 2, 3))) static void enter(reader *r, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(r->at, sizeof r->at, format, args);
	va_end(args);
}

/* ---- fields -------------------------------------------------------------------------------------------------------------- */

static const cJSON *object_in(reader *r, const cJSON *from, const char *field)
{
	const cJSON *o = cJSON_GetObjectItemCaseSensitive(from, field);
	if (!cJSON_IsObject(o))
		wrong(r, field, o ? "is no object" : "is missing");
	return o;
}

/* Fresh text, "" on failure, so that a caller need not look. */
static char *text_in(reader *r, const cJSON *from, const char *field)
{
	const cJSON *t = cJSON_GetObjectItemCaseSensitive(from, field);
	if (!cJSON_IsString(t))
		wrong(r, field, t ? "is no text" : "is missing");
	return ck_text("%s", cJSON_IsString(t) ? t->valuestring : "");
}

/* 1e999 reads as infinity, which no record holds. */
static double number_in(reader *r, const cJSON *from, const char *field)
{
	const cJSON *n = cJSON_GetObjectItemCaseSensitive(from, field);
	bool number = cJSON_IsNumber(n) && isfinite(n->valuedouble);
	if (!number)
		wrong(r, field, n ? "is no number" : "is missing");
	return number ? n->valuedouble : 0;
}

/* FLOPs, seconds, rates. */
static double amount_in(reader *r, const cJSON *from, const char *field)
{
	double n = number_in(r, from, field);
	if (n < 0)
		wrong(r, field, "is out of range");
	return n;
}

/* A whole number from 0 to `most`. */
static double whole_in(reader *r, const cJSON *from, const char *field, double most)
{
	double n = number_in(r, from, field);
	if (n >= 0 && n <= most && n == floor(n))
		return n;
	wrong(r, field, "is out of range");
	return 0;
}

static int int_in(reader *r, const cJSON *from, const char *field)
{
	return (int)whole_in(r, from, field, INT32_MAX);
}

static size_t size_in(reader *r, const cJSON *from, const char *field)
{
	return (size_t)whole_in(r, from, field, 0x1p53);
}

static bool has(const cJSON *from, const char *field)
{
	return cJSON_GetObjectItemCaseSensitive(from, field) != NULL;
}

static bool bool_in(reader *r, const cJSON *from, const char *field)
{
	const cJSON *b = cJSON_GetObjectItemCaseSensitive(from, field);
	if (!cJSON_IsBool(b))
		wrong(r, field, b ? "is neither true nor false" : "is missing");
	return cJSON_IsTrue(b);
}

/* false when it is not there. */
static bool flag_in(reader *r, const cJSON *from, const char *field)
{
	return has(from, field) && bool_in(r, from, field);
}

/* 0 and "" when it is not there: not known. */
static double known_number_in(reader *r, const cJSON *from, const char *field)
{
	return has(from, field) ? amount_in(r, from, field) : 0;
}

static int known_int_in(reader *r, const cJSON *from, const char *field)
{
	return has(from, field) ? int_in(r, from, field) : 0;
}

static size_t known_size_in(reader *r, const cJSON *from, const char *field)
{
	return has(from, field) ? size_in(r, from, field) : 0;
}

/* The word's place in the list, which ends after `n` words. */
static int word_in(reader *r, const cJSON *from, const char *field, const char *const *words, int n)
{
	char *text = text_in(r, from, field);
	int place = 0;
	while (place < n && strcmp(text, words[place]) != 0)
		place++;
	if (place == n) {
		place = 0;
		wrong(r, field, "is none of the words that it can be");
	}
	free(text);
	return place;
}

static ck_digest digest_in(reader *r, const cJSON *from, const char *field)
{
	ck_digest d = {0};
	char *text = text_in(r, from, field);
	if (strlen(text) != 32 || !ck_hex64(text, &d.hi) || !ck_hex64(text + 16, &d.lo))
		wrong(r, field, "is no digest of 32 hexadecimal digits");
	free(text);
	return d;
}

/* ---- parts --------------------------------------------------------------------------------------------------------------- */

static void read_tool(reader *r, const cJSON *root, ck_result *to)
{
	const cJSON *o = object_in(r, root, "tool");
	enter(r, "tool.");
	to->tool.version = text_in(r, o, "version");
	to->tool.git = text_in(r, o, "git");
	to->tool.compiler = text_in(r, o, "compiler");
	to->tool.flags = text_in(r, o, "flags");
	to->tool.argv = text_in(r, o, "argv");
	enter(r, "%s", "");
}

static void read_caches(reader *r, const cJSON *machine, ck_processors *p)
{
	if (!has(machine, "caches"))
		return;
	const cJSON *caches = object_in(r, machine, "caches");
	for (int i = 0; i < CK_CACHES; i++) {
		enter(r, "machine.caches.");
		if (!has(caches, ck_cache_names[i]))
			continue;
		const cJSON *cache = object_in(r, caches, ck_cache_names[i]);
		enter(r, "machine.caches.%s.", ck_cache_names[i]);
		p->cache[i].bytes = size_in(r, cache, "bytes");
		p->cache[i].count = int_in(r, cache, "count");
	}
	enter(r, "machine.");
}

static void read_processors(reader *r, const cJSON *machine, ck_processors *p)
{
	p->sockets = known_int_in(r, machine, "sockets");
	p->cores = known_int_in(r, machine, "physical_cores");
	p->numa_nodes = known_int_in(r, machine, "numa_nodes");
	read_caches(r, machine, p);
	if (!has(machine, "frequency"))
		return;
	const cJSON *o = object_in(r, machine, "frequency");
	enter(r, "machine.frequency.");
	p->governor = has(o, "governor") ? text_in(r, o, "governor") : NULL;
	p->frequency = known_number_in(r, o, "now");
	p->frequency_min = known_number_in(r, o, "min");
	p->frequency_max = known_number_in(r, o, "max");
	enter(r, "machine.");
}

static void read_machine(reader *r, const cJSON *root, ck_machine *m)
{
	const cJSON *o = object_in(r, root, "machine");
	enter(r, "machine.");
	m->cpu = text_in(r, o, "cpu");
	m->isa = text_in(r, o, "isa");
	m->os = text_in(r, o, "os");
	m->kernel = text_in(r, o, "kernel");
	m->cores = int_in(r, o, "cores");
	read_processors(r, o, &m->processors);
	m->memory = size_in(r, o, "memory");
	m->memory_limit = known_size_in(r, o, "memory_limit");
	enter(r, "%s", "");
}

/* Facts are cut where a text is too long for them. */
static void known_text_in(reader *r, const cJSON *from, const char *field, char to[CK_FACT_TEXT])
{
	char *text = has(from, field) ? text_in(r, from, field) : ck_text("%s", "");
	snprintf(to, CK_FACT_TEXT, "%s", text);
	free(text);
}

static void read_facts(reader *r, const cJSON *o, ck_device_facts *f)
{
	known_text_in(r, o, "product", f->name);
	known_text_in(r, o, "capability", f->capability);
	known_text_in(r, o, "driver", f->driver);
	known_text_in(r, o, "libraries", f->libraries);
	known_text_in(r, o, "throttle_reasons", f->power_state);
	f->memory = known_size_in(r, o, "memory");
	f->multiprocessors = known_int_in(r, o, "multiprocessors");
	f->clock = known_number_in(r, o, "clock");
	f->clock_most = known_number_in(r, o, "clock_max");
	f->memory_clock = known_number_in(r, o, "memory_clock");
	f->power_limit = known_number_in(r, o, "power_limit");
	f->ecc = has(o, "ecc") ? bool_in(r, o, "ecc") : -1;
	f->tells_throttling = has(o, "tells_throttling") && bool_in(r, o, "tells_throttling");
}

static void read_device(reader *r, const cJSON *root, ck_result *to)
{
	const cJSON *o = object_in(r, root, "device");
	enter(r, "device.");
	to->device.name = text_in(r, o, "name");
	to->device.description = text_in(r, o, "description");
	to->device.threads = int_in(r, o, "threads");
	read_facts(r, o, &to->device.facts);
	enter(r, "%s", "");
}

/* What a case holds beside the model's settings. */
static bool is_setting(const char *name)
{
	static const char *const others[] = {"model",   "data",       "amp",    "rng", "tf32",  "fast", "seed",
					     "threads", "parameters", "stages", "ops", "graph", "line"};
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (strcmp(name, others[i]) == 0)
			return false;
	return true;
}

static void read_case(reader *r, const cJSON *root, ck_result *to)
{
	const cJSON *o = object_in(r, root, "case"), *item;
	enter(r, "case.");
	to->c.model = text_in(r, o, "model");
	to->c.data = text_in(r, o, "data");
	to->c.amp = text_in(r, o, "amp");
	to->c.rng = has(o, "rng") ? text_in(r, o, "rng") : NULL;
	to->c.tf32 = flag_in(r, o, "tf32");
	to->c.fast = flag_in(r, o, "fast");
	to->c.line = text_in(r, o, "line");
	to->c.seed = (int64_t)size_in(r, o, "seed");
	to->c.parameters = (int64_t)size_in(r, o, "parameters");
	to->c.stages = int_in(r, o, "stages");
	to->c.ops = int_in(r, o, "ops");
	char *graph = text_in(r, o, "graph");
	if (strlen(graph) != 16 || !ck_hex64(graph, &to->c.graph))
		wrong(r, "graph", "is no number of 16 hexadecimal digits");
	free(graph);
	cJSON_ArrayForEach(item, o)
	{
		if (!is_setting(item->string))
			continue;
		ck_fact *f = ck_result_add_setting(to, item->string);
		if (cJSON_IsString(item))
			f->word = ck_text("%s", item->valuestring);
		else
			f->number = number_in(r, o, item->string);
	}
	enter(r, "%s", "");
}

static void read_measuring(reader *r, const cJSON *root, ck_result *to)
{
	if (!has(root, "measuring"))
		return;
	const cJSON *o = object_in(r, root, "measuring");
	enter(r, "measuring.");
	to->measuring.rounds = int_in(r, o, "rounds");
	to->measuring.seconds = amount_in(r, o, "seconds");
	to->measuring.end = text_in(r, o, "end");
	enter(r, "%s", "");
}

/* The names that the data sheet has are looked up anew: they are no part of what is read. */
static void read_ceilings(reader *r, const cJSON *root, ck_result *to)
{
	to->ceilings.known = has(root, "ceilings");
	if (!to->ceilings.known)
		return;
	const cJSON *o = object_in(r, root, "ceilings");
	enter(r, "ceilings.");
	to->ceilings.precision = (ck_precision)word_in(r, o, "precision", ck_precision_names, CK_PRECISIONS);
	to->ceilings.at.copy = known_number_in(r, o, "copy");
	if (has(o, "matmul")) {
		const cJSON *matmul = object_in(r, o, "matmul");
		enter(r, "ceilings.matmul.");
		for (int i = 0; i < CK_PRECISIONS; i++)
			to->ceilings.at.matmul[i] = known_number_in(r, matmul, ck_precision_names[i]);
	}
	enter(r, "%s", "");
}

/* Left out where there is none. */
static void read_zero_gradients(reader *r, const cJSON *parity, ck_point *p)
{
	const cJSON *names = cJSON_GetObjectItemCaseSensitive(parity, "zero_gradients"), *name;
	if (names && (!cJSON_IsArray(names) || cJSON_GetArraySize(names) == 0))
		wrong(r, "zero_gradients", "is no list of names");
	cJSON_ArrayForEach(name, names)
	{
		if (!cJSON_IsString(name))
			wrong(r, "zero_gradients", "holds what is no name");
		else
			ck_point_add_zero_gradient(p, name->valuestring);
	}
}

static void read_forward_only(reader *r, const cJSON *root, ck_result *to)
{
	to->forward_only.known = has(root, "forward_only");
	if (!to->forward_only.known)
		return;
	const cJSON *o = object_in(r, root, "forward_only");
	enter(r, "forward_only.");
	to->forward_only.verdict = (ck_verdict)word_in(r, o, "verdict", ck_verdict_names, CK_PARITY_FAILED + 1);
	to->forward_only.predicted_peak = known_size_in(r, o, "predicted_peak");
	to->forward_only.live_peak = known_size_in(r, o, "live_peak");
	to->forward_only.arena = known_size_in(r, o, "arena");
	to->forward_only.recomputed_ops = int_in(r, o, "recomputed_ops");
	to->forward_only.digest = digest_in(r, o, "digest");
	enter(r, "%s", "");
}

/* Left out where bits were compared; all but the runs where none differs. */
static void read_noise(reader *r, const cJSON *parity, int i, ck_point *p)
{
	if (!has(parity, "noise"))
		return;
	const cJSON *o = object_in(r, parity, "noise");
	enter(r, "points[%d].parity.noise.", i);
	p->noise.runs = int_in(r, o, "runs");
	if (has(o, "tensor")) {
		p->noise.tensor = text_in(r, o, "tensor");
		p->noise.norm = (ck_norm)word_in(r, o, "norm", ck_norm_names, CK_NORMS);
		p->noise.floor = number_in(r, o, "floor");
		p->noise.worst = has(o, "worst") ? number_in(r, o, "worst") : NAN;
		p->noise.allowed = number_in(r, o, "allowed");
	}
	enter(r, "points[%d].parity.", i);
}

static void read_parity(reader *r, const cJSON *point, int i, ck_point *p)
{
	p->checked = has(point, "parity");
	if (!p->checked)
		return;
	const cJSON *o = object_in(r, point, "parity");
	enter(r, "points[%d].parity.", i);
	p->verdict = (ck_verdict)word_in(r, o, "verdict", ck_verdict_names, CK_VERDICTS);
	read_noise(r, o, i, p);
	p->loss = has(o, "loss") ? number_in(r, o, "loss") : NAN;
	p->scaled = has(o, "scaler");
	if (p->scaled) {
		const cJSON *scaler = object_in(r, o, "scaler");
		enter(r, "points[%d].parity.scaler.", i);
		p->scale = number_in(r, scaler, "scale");
		p->skipped = int_in(r, scaler, "skipped");
		enter(r, "points[%d].parity.", i);
	}
	const cJSON *digests = object_in(r, o, "digests");
	enter(r, "points[%d].parity.digests.", i);
	for (int k = 0; k < CK_DIGEST_KINDS; k++) {
		p->has_digest[k] = has(digests, ck_digest_names[k]);
		if (p->has_digest[k])
			p->digest[k] = digest_in(r, digests, ck_digest_names[k]);
	}
	enter(r, "points[%d].parity.", i);
	read_zero_gradients(r, o, p);
}

static void read_memory(reader *r, const cJSON *point, int i, ck_point *p)
{
	enter(r, "points[%d].", i);
	const cJSON *o = object_in(r, point, "memory");
	enter(r, "points[%d].memory.", i);
	p->predicted_peak = known_size_in(r, o, "predicted_peak");
	p->live_peak = known_size_in(r, o, "live_peak");
	p->arena = known_size_in(r, o, "arena");
	p->device_peak = known_size_in(r, o, "device_peak");
	const cJSON *categories = object_in(r, o, "by_category");
	enter(r, "points[%d].memory.by_category.", i);
	for (int k = 0; k < CK_MEM_CATEGORIES; k++) {
		bool known = k != CK_MEM_WEIGHT_COPIES || has(categories, ck_category_names[k]); /* older records had none */
		p->by_category[k] = known ? size_in(r, categories, ck_category_names[k]) : 0;
	}
}

static void read_throttled(reader *r, const cJSON *time, ck_samples *s)
{
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(time, "throttled"), *at;
	if (!list)
		return;
	if (!cJSON_IsArray(list))
		wrong(r, "throttled", "is no list of places");
	s->throttled = ck_alloc((size_t)s->n, sizeof *s->throttled);
	cJSON_ArrayForEach(at, list)
	{
		double i = cJSON_IsNumber(at) ? at->valuedouble : -1;
		if (i >= 0 && i < s->n && i == floor(i))
			s->throttled[(int)i] = true;
		else
			wrong(r, "throttled", "holds what is no place of a sample");
	}
}

/* Seconds of a step: from less than any clock tells to more than anyone waits, so that ratios of two are numbers. */
static bool is_time(const cJSON *s)
{
	return cJSON_IsNumber(s) && s->valuedouble >= 1e-9 && s->valuedouble <= 1e9;
}

static void read_time(reader *r, const cJSON *point, int i, ck_point *p)
{
	enter(r, "points[%d].", i);
	if (!has(point, "time"))
		return;
	if (!p->checked)
		wrong(r, "time", "stands without a parity verdict");
	const cJSON *samples = cJSON_GetObjectItemCaseSensitive(object_in(r, point, "time"), "samples"), *s;
	enter(r, "points[%d].time.", i);
	if (!cJSON_IsArray(samples) || cJSON_GetArraySize(samples) == 0) {
		wrong(r, "samples", "is no list of numbers");
		return;
	}
	p->time.at = ck_alloc((size_t)cJSON_GetArraySize(samples), sizeof *p->time.at);
	cJSON_ArrayForEach(s, samples)
	{
		if (!is_time(s))
			wrong(r, "samples", "holds what is no time");
		p->time.at[p->time.n++] = s->valuedouble;
	}
	read_throttled(r, cJSON_GetObjectItemCaseSensitive(point, "time"), &p->time);
	ck_samples_summarise(&p->time);
}

static void read_random(reader *r, const cJSON *point, int i, ck_point *p)
{
	enter(r, "points[%d].", i);
	if (!has(point, "random"))
		return;
	const cJSON *o = object_in(r, point, "random");
	enter(r, "points[%d].random.", i);
	p->rng.saved_states = int_in(r, o, "saved_states");
	p->rng.state_bytes = size_in(r, o, "state_bytes");
	p->rng.saves = int_in(r, o, "saves");
	p->rng.restores = int_in(r, o, "restores");
}

static void read_point(reader *r, const cJSON *point, int i, ck_result *to)
{
	enter(r, "points[%d].", i);
	if (!cJSON_IsObject(point)) {
		wrong(r, "", "is no object");
		return;
	}
	char *plan = text_in(r, point, "plan");
	if (ck_result_find(to, plan))
		wrong(r, "plan", "stands in an earlier point as well");
	ck_point *p = ck_result_add(to, plan);
	free(plan);
	p->segments = has(point, "segments") ? int_in(r, point, "segments") : 0;
	p->status = (ck_point_status)word_in(r, point, "status", ck_point_status_names, CK_POINT_ERROR + 1);
	p->reason = has(point, "reason") ? text_in(r, point, "reason") : NULL;
	read_parity(r, point, i, p);
	read_memory(r, point, i, p);
	read_time(r, point, i, p);
	read_random(r, point, i, p);
	enter(r, "points[%d].", i);
	const cJSON *work = object_in(r, point, "work");
	enter(r, "points[%d].work.", i);
	to->c.model_flops = amount_in(r, work, "model_flops");
	p->executed_flops = amount_in(r, work, "executed_flops");
	p->recomputed_ops = int_in(r, work, "recomputed_ops");
}

static void read_root(reader *r, const cJSON *root, ck_result *to)
{
	read_tool(r, root, to);
	read_machine(r, root, &to->machine);
	read_device(r, root, to);
	read_case(r, root, to);
	to->baseline = text_in(r, root, "baseline");
	read_forward_only(r, root, to);
	read_measuring(r, root, to);
	read_ceilings(r, root, to);
	const cJSON *points = cJSON_GetObjectItemCaseSensitive(root, "points"), *point;
	if (!cJSON_IsArray(points))
		wrong(r, "points", "is no list");
	int i = 0;
	cJSON_ArrayForEach(point, points) read_point(r, point, i++, to);
	ck_result_front(to);
}

/* What was cut or spoiled is told as such before; here is what reads well and yet is not what was written. */
static void read_digest(reader *r, const cJSON *root, const char *text, size_t bytes, ck_result *to)
{
	if (!has(root, "digest"))
		return;
	to->sealed = ck_record_is_sealed(text, bytes, &to->digest);
	if (!to->sealed)
		r->status = ck_fail(r->err, CK_USAGE,
				    "%s was edited: its content does not fit its \"digest\"; give the file as ckbench wrote it",
				    r->source);
}

/* Where the text stops being JSON: its line, which for a file cut short is the last. */
static int line_of(const char *text, size_t bytes, const char *at)
{
	int line = 1;
	for (const char *c = text; c < at && c < text + bytes; c++)
		line += *c == '\n';
	return line;
}

ck_status ck_result_read(const char *text, size_t bytes, const char *source, ck_result **result, ck_err *err)
{
	*result = NULL;
	const char *end = NULL;
	cJSON *root = cJSON_ParseWithLengthOpts(text, bytes + 1, &end, true);
	if (!root)
		return ck_fail(err, CK_USAGE,
			       "%s is not JSON, or cut short: line %d cannot be read; give a whole record of ckbench", source,
			       line_of(text, bytes, end));
	const cJSON *schema = cJSON_GetObjectItemCaseSensitive(root, "schema");
	reader r = {.source = source, .err = err};
	if (!cJSON_IsString(schema) || strcmp(schema->valuestring, CK_RESULT_SCHEMA) != 0) {
		r.status =
		    ck_fail(err, CK_USAGE,
			    "%s is no record of ckbench: its \"schema\" is %s, not \"%s\"; give a file that ckbench wrote",
			    source, cJSON_IsString(schema) ? schema->valuestring : "missing", CK_RESULT_SCHEMA);
	} else {
		*result = ck_alloc(1, sizeof **result);
		read_root(&r, root, *result);
		read_digest(&r, root, text, bytes, *result);
	}
	cJSON_Delete(root);
	if (r.status != CK_OK) {
		ck_result_free(*result);
		*result = NULL;
	}
	return r.status;
}
