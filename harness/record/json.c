/* The record as JSON text. Numbers that are not known are left out, so that no reader takes a 0 or a null for a figure. */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "harness/record/digest.h"
#include "harness/record/json.h"
#include "harness/record/json_put.h"
#include "harness/record/training.h"
#include "kernels/alloc.h"

static void *json_malloc(size_t bytes)
{
	return ck_alloc(bytes, 1);
}

static void put_tool(cJSON *root, const ck_result *r)
{
	cJSON *o = cJSON_AddObjectToObject(root, "tool");
	put_text(o, "version", r->tool.version);
	put_text(o, "git", r->tool.git);
	put_text(o, "compiler", r->tool.compiler);
	put_text(o, "flags", r->tool.flags);
	put_text(o, "argv", r->tool.argv);
}

/* 0 means not known, as of all facts but ECC. */
static void put_known(cJSON *to, const char *name, double number)
{
	if (number != 0)
		put_number(to, name, number);
}

static void put_known_text(cJSON *to, const char *name, const char *text)
{
	put_text(to, name, *text ? text : NULL);
}

/* An object that is left out while nothing is in it. */
static void put_object(cJSON *to, const char *name, cJSON *o)
{
	if (o->child)
		cJSON_AddItemToObject(to, name, o);
	else
		cJSON_Delete(o);
}

static void put_processors(cJSON *machine, const ck_processors *p)
{
	put_known(machine, "sockets", p->sockets);
	put_known(machine, "physical_cores", p->cores);
	put_known(machine, "numa_nodes", p->numa_nodes);
	cJSON *caches = cJSON_CreateObject(), *frequency = cJSON_CreateObject();
	for (int i = 0; i < CK_CACHES; i++) {
		if (!p->cache[i].count)
			continue;
		cJSON *cache = cJSON_AddObjectToObject(caches, ck_cache_names[i]);
		put_number(cache, "bytes", (double)p->cache[i].bytes);
		put_number(cache, "count", p->cache[i].count);
	}
	put_object(machine, "caches", caches);
	put_text(frequency, "governor", p->governor);
	put_known(frequency, "now", p->frequency);
	put_known(frequency, "min", p->frequency_min);
	put_known(frequency, "max", p->frequency_max);
	put_object(machine, "frequency", frequency);
}

static void put_machine(cJSON *root, const ck_machine *m)
{
	cJSON *o = cJSON_AddObjectToObject(root, "machine");
	put_text(o, "cpu", m->cpu);
	put_text(o, "isa", m->isa);
	put_number(o, "cores", m->cores);
	put_processors(o, &m->processors);
	put_size(o, "memory", m->memory);
	put_size(o, "memory_limit", m->memory_limit);
	put_text(o, "os", m->os);
	put_text(o, "kernel", m->kernel);
}

static void put_facts(cJSON *o, const ck_device_facts *f)
{
	put_known_text(o, "product", f->name);
	put_known_text(o, "capability", f->capability);
	put_known_text(o, "driver", f->driver);
	put_known_text(o, "libraries", f->libraries);
	put_size(o, "memory", f->memory);
	put_known(o, "multiprocessors", f->multiprocessors);
	put_known(o, "clock", f->clock);
	put_known(o, "clock_max", f->clock_most);
	put_known(o, "memory_clock", f->memory_clock);
	put_known(o, "power_limit", f->power_limit);
	if (f->ecc >= 0)
		cJSON_AddBoolToObject(o, "ecc", f->ecc);
	put_known_text(o, "throttle_reasons", f->power_state);
	cJSON_AddBoolToObject(o, "tells_throttling", f->tells_throttling);
}

static void put_device(cJSON *root, const ck_result *r)
{
	cJSON *o = cJSON_AddObjectToObject(root, "device");
	put_text(o, "name", r->device.name);
	put_text(o, "description", r->device.description);
	put_number(o, "threads", r->device.threads);
	put_facts(o, &r->device.facts);
}

cJSON *ck__json_case(const ck_result *r)
{
	cJSON *o = cJSON_CreateObject();
	put_text(o, "model", r->c.model);
	for (int i = 0; i < r->c.nsettings; i++) {
		const ck_fact *f = &r->c.settings[i];
		f->word ? put_text(o, f->name, f->word) : put_number(o, f->name, f->number);
	}
	put_text(o, "data", r->c.data);
	put_text(o, "amp", r->c.amp);
	put_text(o, "rng", r->c.rng);
	if (r->c.tf32)
		cJSON_AddTrueToObject(o, "tf32");
	if (r->c.fast)
		cJSON_AddTrueToObject(o, "fast");
	put_number(o, "seed", (double)r->c.seed);
	put_number(o, "threads", r->device.threads);
	put_number(o, "parameters", (double)r->c.parameters);
	put_number(o, "stages", r->c.stages);
	put_number(o, "ops", r->c.ops);
	char graph[17];
	snprintf(graph, sizeof graph, "%016" PRIx64, r->c.graph);
	put_text(o, "graph", graph);
	put_text(o, "line", r->c.line);
	return o;
}

static void put_measuring(cJSON *root, const ck_result *r)
{
	if (!r->measuring.end)
		return;
	cJSON *o = cJSON_AddObjectToObject(root, "measuring");
	put_number(o, "rounds", r->measuring.rounds);
	put_number(o, "seconds", r->measuring.seconds);
	put_text(o, "end", r->measuring.end);
}

static void put_matmul(cJSON *to, const double *rates)
{
	cJSON *o = cJSON_CreateObject();
	for (int i = 0; i < CK_PRECISIONS; i++)
		put_known(o, ck_precision_names[i], rates[i]);
	put_object(to, "matmul", o);
}

static void put_ceilings(cJSON *root, const ck_result *r)
{
	if (!r->ceilings.known)
		return;
	cJSON *o = cJSON_AddObjectToObject(root, "ceilings");
	put_text(o, "precision", ck_precision_names[r->ceilings.precision]);
	put_matmul(o, r->ceilings.at.matmul);
	put_known(o, "copy", r->ceilings.at.copy);
	const ck_datasheet *sheet = ck_datasheet_find(r->device.facts.name);
	if (!sheet)
		return;
	o = cJSON_AddObjectToObject(root, "datasheet");
	put_text(o, "source", sheet->source);
	put_matmul(o, sheet->matmul);
	put_known(o, "bandwidth", sheet->bandwidth);
}

static void put_forward_only(cJSON *root, const ck_result *r)
{
	if (!r->forward_only.known)
		return;
	cJSON *o = cJSON_AddObjectToObject(root, "forward_only");
	put_text(o, "verdict", ck_verdict_names[r->forward_only.verdict]);
	put_size(o, "predicted_peak", r->forward_only.predicted_peak);
	put_size(o, "live_peak", r->forward_only.live_peak);
	put_size(o, "arena", r->forward_only.arena);
	put_number(o, "recomputed_ops", r->forward_only.recomputed_ops);
	put_digest(o, "digest", r->forward_only.digest);
}

static void put_noise(cJSON *parity, const ck_point *p)
{
	if (!p->noise.runs)
		return;
	cJSON *o = cJSON_AddObjectToObject(parity, "noise");
	put_number(o, "runs", p->noise.runs);
	if (!p->noise.tensor)
		return;
	put_text(o, "tensor", p->noise.tensor);
	put_text(o, "norm", ck_norm_names[p->noise.norm]);
	put_number(o, "floor", p->noise.floor);
	put_number(o, "worst", p->noise.worst);
	put_number(o, "allowed", p->noise.allowed);
}

static void put_parity(cJSON *point, const ck_point *p)
{
	if (!p->checked)
		return;
	cJSON *o = cJSON_AddObjectToObject(point, "parity");
	put_text(o, "verdict", ck_verdict_names[p->verdict]);
	put_noise(o, p);
	put_number(o, "loss", p->loss);
	if (p->scaled) {
		cJSON *scaler = cJSON_AddObjectToObject(o, "scaler");
		put_number(scaler, "scale", p->scale);
		put_number(scaler, "skipped", p->skipped);
	}
	cJSON *digests = cJSON_AddObjectToObject(o, "digests");
	for (int k = 0; k < CK_DIGEST_KINDS; k++)
		if (p->has_digest[k])
			put_digest(digests, ck_digest_names[k], p->digest[k]);
	if (p->nzero_gradients)
		cJSON_AddItemToObject(o, "zero_gradients",
				      cJSON_CreateStringArray((const char *const *)p->zero_gradients, p->nzero_gradients));
}

static void put_memory(cJSON *point, const ck_point *p)
{
	cJSON *o = cJSON_AddObjectToObject(point, "memory");
	put_size(o, "predicted_peak", p->predicted_peak);
	put_size(o, "live_peak", p->live_peak);
	put_size(o, "arena", p->arena);
	put_size(o, "device_peak", p->device_peak);
	cJSON *categories = cJSON_AddObjectToObject(o, "by_category");
	for (int i = 0; i < CK_MEM_CATEGORIES; i++)
		put_number(categories, ck_category_names[i], (double)p->by_category[i]);
}

static void put_time(cJSON *point, const ck_point *p)
{
	if (!p->time.n)
		return;
	cJSON *o = cJSON_AddObjectToObject(point, "time");
	put_number(o, "median", p->time.median);
	put_numbers(o, "ci95", (double[]){p->time.ci_low, p->time.ci_high}, 2);
	put_number(o, "min", p->time.min);
	put_number(o, "mad", p->time.mad);
	put_numbers(o, "samples", p->time.at, p->time.n);
	cJSON *throttled = cJSON_CreateArray();
	for (int i = 0; i < p->time.n && p->time.throttled; i++)
		if (p->time.throttled[i])
			cJSON_AddItemToArray(throttled, cJSON_CreateNumber(i));
	put_object(o, "throttled", throttled);
}

static void put_utilisation(cJSON *point, const ck_result *r, const ck_point *p)
{
	const ck_utilisation u = ck_point_utilisation(r, p);
	cJSON *o = cJSON_CreateObject();
	put_number(o, "model", u.model);
	put_number(o, "hardware", u.hardware);
	put_number(o, "model_datasheet", u.model_datasheet);
	put_number(o, "hardware_datasheet", u.hardware_datasheet);
	put_object(point, "utilisation", o);
}

static void put_work(cJSON *point, const ck_result *r, const ck_point *p)
{
	cJSON *o = cJSON_AddObjectToObject(point, "work");
	put_number(o, "model_flops", r->c.model_flops);
	put_number(o, "executed_flops", p->executed_flops);
	put_number(o, "recomputed_ops", p->recomputed_ops);
}

static void put_random(cJSON *point, const ck_result *r, const ck_point *p)
{
	if (!r->c.rng)
		return;
	cJSON *o = cJSON_AddObjectToObject(point, "random");
	put_text(o, "discipline", r->c.rng);
	put_number(o, "saved_states", p->rng.saved_states);
	put_number(o, "state_bytes", (double)p->rng.state_bytes);
	put_number(o, "saves", p->rng.saves);
	put_number(o, "restores", p->rng.restores);
}

/* What every record says of a plan first. */
static cJSON *plan_object(const ck_point *p)
{
	cJSON *o = cJSON_CreateObject();
	put_text(o, "plan", p->plan);
	if (p->segments)
		put_number(o, "segments", p->segments);
	put_text(o, "status", ck_point_status_names[p->status]);
	put_text(o, "reason", p->reason);
	return o;
}

static cJSON *point_object(const ck_result *r, const ck_point *p)
{
	cJSON *o = plan_object(p);
	put_parity(o, p);
	put_memory(o, p);
	put_time(o, p);
	put_work(o, r, p);
	put_random(o, r, p);
	put_utilisation(o, r, p);
	put_number(o, "overhead_time", ck_overhead_time(r, p));
	put_number(o, "overhead_flops", ck_overhead_flops(r, p));
	put_number(o, "saving", ck_saving(r, p));
	cJSON_AddBoolToObject(o, "pareto", p->pareto);
	return o;
}

cJSON *ck__json_root(const char *schema, const ck_result *r)
{
	cJSON_InitHooks(&(cJSON_Hooks){.malloc_fn = json_malloc, .free_fn = free});
	cJSON *root = cJSON_CreateObject();
	put_text(root, "schema", schema);
	put_text(root, "digest", CK_NO_DIGEST);
	put_tool(root, r);
	return root;
}

cJSON *ck__json_begin(const char *schema, const ck_result *r)
{
	cJSON *root = ck__json_root(schema, r);
	put_machine(root, &r->machine);
	put_device(root, r);
	return root;
}

char *ck__json_end(cJSON *root)
{
	char *printed = cJSON_Print(root), *text = ck_text("%s\n", printed);
	cJSON_free(printed);
	cJSON_Delete(root);
	ck_record_seal(text, strlen(text));
	return text;
}

char *ck_result_json(const ck_result *r)
{
	cJSON *root = ck__json_begin(CK_RESULT_SCHEMA, r);
	cJSON_AddItemToObject(root, "case", ck__json_case(r));
	put_text(root, "baseline", r->baseline);
	put_forward_only(root, r);
	put_measuring(root, r);
	put_ceilings(root, r);
	cJSON *points = cJSON_AddArrayToObject(root, "points");
	for (int i = 0; i < r->npoints; i++)
		cJSON_AddItemToArray(points, point_object(r, &r->points[i]));
	return ck__json_end(root);
}

/* ---- training ------------------------------------------------------------------------------------------------------------ */

static void put_training(cJSON *root, const ck_training *t)
{
	const ck_optimizer *o = &t->optimizer;
	cJSON *to = cJSON_AddObjectToObject(root, "training");
	put_text(to, "optimizer", ck_optimizer_name(o->kind));
	put_number(to, "lr", o->lr);
	put_number(to, "weight_decay", o->weight_decay);
	if (o->kind == CK_SGD)
		put_number(to, "momentum", o->momentum);
	if (o->kind == CK_ADAMW) {
		put_number(to, "beta1", o->beta1);
		put_number(to, "beta2", o->beta2);
		put_number(to, "eps", o->eps);
	}
	put_number(to, "steps", t->steps);
	put_number(to, "accumulate", t->accumulate);
	if (t->scaler) {
		cJSON *scaler = cJSON_AddObjectToObject(to, "scaler");
		put_number(scaler, "scale", t->scaler->scale);
		put_number(scaler, "growth", t->scaler->growth);
		put_number(scaler, "backoff", t->scaler->backoff);
		put_number(scaler, "interval", (double)t->scaler->interval);
	}
	put_text(to, "end", t->interrupted ? "interrupted" : "steps");
}

static void put_course(cJSON *curve, const ck_course *c)
{
	put_numbers(curve, "loss", c->loss, c->steps);
	if (!c->steps)
		return;
	if (c->scaled) {
		put_numbers(curve, "scale", c->scale, c->steps);
		cJSON *skipped = cJSON_AddArrayToObject(curve, "skipped");
		for (int k = 0; k < c->steps; k++)
			cJSON_AddItemToArray(skipped, cJSON_CreateBool(c->skipped[k]));
	}
	put_number(curve, "accuracy", c->accuracy);
	put_number(curve, "accuracy_steps", c->accuracy_steps);
	put_digest(curve, "digest", c->digest[c->steps - 1]);
	cJSON *digests = cJSON_AddArrayToObject(curve, "digests");
	for (int k = 0; k < c->steps; k++) {
		char text[33];
		digest_text(c->digest[k], text);
		cJSON_AddItemToArray(digests, cJSON_CreateString(text));
	}
}

static cJSON *curve_object(const ck_result *r, const ck_point *p, const ck_course *c)
{
	cJSON *o = plan_object(p);
	put_course(o, c);
	put_memory(o, p);
	put_random(o, r, p);
	return o;
}

char *ck_training_json(const ck_training *t)
{
	cJSON *root = ck__json_begin(CK_TRAINING_SCHEMA, t->head);
	cJSON_AddItemToObject(root, "case", ck__json_case(t->head));
	put_text(root, "baseline", t->head->baseline);
	put_training(root, t);
	cJSON *curves = cJSON_AddArrayToObject(root, "curves");
	for (int i = 0; i < t->head->npoints; i++)
		cJSON_AddItemToArray(curves, curve_object(t->head, &t->head->points[i], &t->curves[i]));
	return ck__json_end(root);
}
