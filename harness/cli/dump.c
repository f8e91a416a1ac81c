/* ckbench dump MODEL: one training step as a file of tensors, so that anyone can check it elsewhere.
 *
 *     [--load: file ──▶ given] ──▶ memory ──▶ before the step ─┐
 *                                     │                        ├─▶ the file, whole in host memory ──▶ the disk
 *                                     └─▶ step ──▶ after it ───┘
 *
 * Logits are gone when the step ends, so that the step copies them out when they are made. Masks are not stored anywhere: they
 * are drawn again after the step from where each op drew (harness/run/rng.h); masks from a file are taken by the kernels
 * instead. */
#include <stdlib.h>
#include <string.h>

#include "harness/cli/interrupt.h"
#include "harness/cli/plans.h"
#include "harness/cli/step_file.h"
#include "harness/record/file.h"
#include "harness/record/machine.h"
#include "harness/record/shell.h"
#include "harness/record/units.h"
#include "harness/record/version.h"
#include "kernels/alloc.h"
#include "kernels/philox.h"

typedef struct dump {
	const ck_cli *cli;
	ck_case c;
	ck_plans plans;
	const ck_plan_entry *plan; /* the one */
	ck_step_tensors tensors;
	ck_safetensors file;
	void **given; /* by value: what --load gives in host memory, owned; NULL without it */
	ck_memory memory;
	void *device_masks;    /* all of them, one after the other; NULL: they are drawn */
	const uint8_t **masks; /* by op, in device_masks */
} dump;

/* ---- the plan ------------------------------------------------------------------------------------------------------------ */

static ck_status choose_plan(dump *d, ck_err *err)
{
	ck_options o = d->cli->options;
	if (!o.given[CK_OPTION_plans])
		o.text[CK_OPTION_plans] = "none";
	ck_status status = ck_plans_choose(d->c.graph, &o, &d->plans, err);
	if (status != CK_OK)
		return status;
	if (d->plans.n > 2 || strchr(o.text[CK_OPTION_plans], ',')) /* none is always the first of the list */
		return ck_fail(err, CK_USAGE, "--plans '%.60s': dump writes the step of one plan; name one: --plans uniform:4",
			       o.text[CK_OPTION_plans]);
	ck_plan_entry *e = &d->plans.at[d->plans.n - 1];
	ck_err why = {""};
	d->plan = e;
	status = ck_program_make(d->c.session, &e->schedule, &e->program, &why);
	return status == CK_OK ? CK_OK : ck_fail(err, status, "plan %.200s: %s", e->name, why.text);
}

/* ---- the file ------------------------------------------------------------------------------------------------------------ */

/* The whole case as a line that runs again. */
static char *line_of(const dump *d)
{
	const ck_options *o = &d->cli->options;
	char *plans = ck_option_line(o, CK_OPTION_plans), *load = ck_option_line(o, CK_OPTION_load);
	char *out = ck_option_line(o, CK_OPTION_out);
	char *more = ck_text("%s%s%s%s%s", plans, *plans ? " " : "", load, *load ? " " : "", out);
	char *line = ck_case_line(&d->c, "dump", more);
	free(plans);
	free(load);
	free(out);
	free(more);
	return line;
}

static ck_status lay_out(dump *d, ck_err *err)
{
	d->tensors = ck_step_tensors_of(&d->c);
	for (int i = 0; i < d->tensors.n; i++) {
		const ck_step_tensor *t = &d->tensors.at[i];
		ck_safetensors_add(&d->file, t->name, t->dtype, t->shape);
	}
	char *line = line_of(d);
	/* "pt": as PyTorch has them, which its readers ask for */
	const char *metadata[] = {"format",  "pt",
				  "schema",  CK_STEP_SCHEMA,
				  "ckbench", CK_VERSION " (" CK_GIT ")",
				  "model",   d->c.model,
				  "plan",    d->plan->name,
				  "device",  d->cli->options.text[CK_OPTION_device],
				  "amp",     d->cli->options.text[CK_OPTION_amp],
				  "line",    line,
				  NULL};
	ck_status status = ck_safetensors_lay_out(&d->file, metadata, err);
	free(line);
	return status;
}

/* ---- what the step starts from ------------------------------------------------------------------------------------------- */

static size_t elements(const ck_op_info *op)
{
	return (size_t)ck_shape_count(op->desc.out[0].shape);
}

/* Values become host arrays, masks go into our file. */
static void take_loaded(dump *d, const ck_safetensors *loaded)
{
	const ck_step_tensors *t = &d->tensors;
	d->given = ck_alloc((size_t)d->c.graph->nvalues, sizeof *d->given);
	for (int i = 0; i < t->n; i++) {
		if (t->at[i].role == CK_STEP_MASK)
			ck_step_get(t, i, loaded, ck_safetensors_data(&d->file, ck_safetensors_find(&d->file, t->at[i].name)));
		if (t->at[i].role != CK_STEP_VALUE)
			continue;
		void *host = ck_alloc(1, d->c.graph->values[t->at[i].id].bytes);
		ck_step_get(t, i, loaded, host);
		d->given[t->at[i].id] = host;
	}
}

static ck_status load(dump *d, ck_err *err)
{
	const ck_options *o = &d->cli->options;
	const char *path = o->text[CK_OPTION_load];
	if (!path)
		return CK_OK;
	ck_safetensors loaded;
	ck_status status = ck_safetensors_read(&loaded, path, err);
	if (status != CK_OK)
		return status;
	status = ck_step_check(&d->tensors, &loaded, path, err);
	if (status == CK_OK)
		take_loaded(d, &loaded);
	ck_safetensors_free(&loaded);
	return status;
}

static void drop_given(dump *d)
{
	for (int v = 0; d->given && v < d->c.graph->nvalues; v++)
		free(d->given[v]);
	free(d->given);
	d->given = NULL;
}

/* Masks from a file, in device memory beside the arena: they are no values of the graph, and no plan has to pay for them. */
static ck_status place_masks(dump *d, ck_err *err)
{
	const ck_graph *g = d->c.graph;
	const ck_backend *b = d->c.backend;
	size_t bytes = 0;
	for (int o = 0; o < g->nops; o++)
		bytes += g->ops[o].contract.random ? elements(&g->ops[o]) : 0;
	if (bytes == 0)
		return CK_OK;
	ck_status status = b->alloc(d->c.device, bytes, &d->device_masks, err);
	if (status != CK_OK)
		return status;
	d->masks = ck_alloc((size_t)g->nops, sizeof *d->masks);
	uint8_t *to = d->device_masks;
	for (int i = 0; i < d->tensors.n; i++) {
		const ck_step_tensor *t = &d->tensors.at[i];
		if (t->role != CK_STEP_MASK)
			continue;
		const ck_safetensor *s = ck_safetensors_find(&d->file, t->name);
		b->write(d->c.device, to, ck_safetensors_data(&d->file, s), s->bytes);
		d->masks[t->id] = to;
		to += s->bytes;
	}
	return CK_OK;
}

/* The arena with what checking keeps of it, one tensor on its way, the file; and for one that is loaded as much twice more, as
 * it stands on the disk and as values. */
static ck_status check_room(const dump *d, ck_err *err)
{
	const char *limit;
	char need[CK_UNIT_TEXT], room[CK_UNIT_TEXT];
	size_t arena = d->plan->program->layout.arena, largest = 0;
	for (int v = 0; v < d->c.graph->nvalues; v++)
		largest = d->c.graph->values[v].bytes > largest ? d->c.graph->values[v].bytes : largest;
	size_t files = d->file.bytes * (d->cli->options.given[CK_OPTION_load] ? 3 : 1);
	size_t bytes = arena + arena / 16 + largest + files;
	size_t available = ck_memory_available(&limit);
	if (bytes <= available)
		return CK_OK;
	return ck_fail(err, CK_MISSING, "the step and its file need %s, but %s leaves %s; take a smaller batch or model",
		       ck_bytes_text(bytes, need), limit, ck_bytes_text(available, room));
}

static ck_status start(dump *d, ck_err *err)
{
	const ck_program *p = d->plan->program;
	ck_status status = check_room(d, err);
	if (status == CK_OK)
		status = load(d, err);
	if (status == CK_OK)
		status = ck_memory_open(d->c.session, p->layout.arena, &d->memory, err);
	if (status != CK_OK)
		return status;
	bool loaded = d->given;
	ck_memory_init(&d->memory, &p->layout, d->c.seed, loaded ? (const void *const *)d->given : ck_case_batch(&d->c));
	drop_given(d);
	return loaded ? place_masks(d, err) : CK_OK;
}

/* ---- the step ------------------------------------------------------------------------------------------------------------ */

/* Copies the tensors of a role from device memory into the file. */
static void write_role(dump *d, ck_step_role role)
{
	const ck_program *p = d->plan->program;
	for (int i = 0; i < d->tensors.n; i++) {
		const ck_step_tensor *t = &d->tensors.at[i];
		if (t->role != role)
			continue;
		const void *from = role == CK_STEP_GRADIENT ? ck_program_gradient(p, &d->memory, t->id)
							    : ck_program_value(p, &d->memory, t->id);
		size_t bytes = d->c.graph->values[t->id].bytes;
		void *host = ck_alloc(1, bytes);
		d->c.backend->read(d->c.device, host, from, bytes);
		ck_step_put(&d->tensors, i, &d->file, host);
		free(host);
	}
}

/* Op o's mask as the step drew it. */
static void draw_mask(const dump *d, int o, uint8_t *mask)
{
	const ck_op_info *op = &d->c.graph->ops[o];
	const ck_draw *from = &d->memory.rng.drawn[o];
	uint32_t word[4], threshold = ck_drop_threshold(op->desc.attr.p);
	for (size_t e = 0; e < elements(op); e++) {
		if (e % 4 == 0)
			ck_philox_block(from->seed, from->step, from->op, from->block + e / 4, word);
		mask[e] = word[e % 4] >= threshold;
	}
}

static void write_masks(dump *d)
{
	for (int i = 0; i < d->tensors.n; i++)
		if (d->tensors.at[i].role == CK_STEP_MASK)
			draw_mask(d, d->tensors.at[i].id,
				  ck_safetensors_data(&d->file, ck_safetensors_find(&d->file, d->tensors.at[i].name)));
}

/* One checked step. The logits' bytes go straight into the file, where they lie as they do here. */
static ck_status run_step(dump *d, ck_err *err)
{
	ck_step step = {
	    .seed = d->c.seed,
	    .check = true,
	    .masks = d->masks,
	    .captured = ck_step_logits(d->c.graph),
	    .capture = ck_safetensors_data(&d->file, ck_safetensors_find(&d->file, "logits")),
	};
	return ck_program_run(d->plan->program, &d->memory, &step, err);
}

static ck_status run_and_write(dump *d, ck_err *err)
{
	const ck_options *o = &d->cli->options;
	write_role(d, CK_STEP_VALUE);
	ck_status status = run_step(d, err);
	if (status != CK_OK)
		return status;
	if (!d->masks)
		write_masks(d);
	write_role(d, CK_STEP_AFTER);
	write_role(d, CK_STEP_GRADIENT);
	write_role(d, CK_STEP_LOSS);
	status = ck_file_write(o->text[CK_OPTION_out], d->file.file, d->file.bytes, o->given[CK_OPTION_force], err);
	if (status != CK_OK || o->given[CK_OPTION_quiet])
		return status;
	char bytes[CK_UNIT_TEXT];
	printf("written: %s, %d tensors in %s, loss %.9g\n", o->text[CK_OPTION_out], d->file.n,
	       ck_bytes_text(d->file.bytes, bytes), ck_program_loss(d->plan->program, &d->memory));
	return CK_OK;
}

/* ---- the command --------------------------------------------------------------------------------------------------------- */

/* Refusals that would otherwise come after the work. */
static ck_status check_options(const ck_options *o, ck_err *err)
{
	if (!o->given[CK_OPTION_out])
		return ck_fail(err, CK_USAGE, "dump needs a file to write: --out step.safetensors");
	if (o->given[CK_OPTION_load] && o->given[CK_OPTION_data])
		return ck_fail(err, CK_USAGE, "--load and --data both give the batch; leave one out");
	return ck_file_writable(o->text[CK_OPTION_out], o->given[CK_OPTION_force], NULL, err);
}

static void close_all(dump *d)
{
	drop_given(d);
	ck_memory_close(&d->memory);
	if (d->device_masks)
		d->c.backend->free(d->c.device, d->device_masks);
	free(d->masks);
	ck_safetensors_free(&d->file);
	ck_step_tensors_free(&d->tensors);
	ck_plans_free(&d->plans);
	ck_case_close(&d->c);
}

static ck_status run(const ck_cli *cli, ck_err *err)
{
	dump d = {.cli = cli};
	ck_interrupt_watch();
	ck_status status = check_options(&cli->options, err);
	if (status == CK_OK)
		status = ck_case_open(cli, false, &d.c, err);
	if (status != CK_OK)
		return status;
	status = choose_plan(&d, err);
	if (status == CK_OK)
		status = lay_out(&d, err);
	if (status == CK_OK)
		status = start(&d, err);
	if (status == CK_OK)
		status = run_and_write(&d, err);
	close_all(&d);
	return status;
}

const ck_command ck_command_dump = {
    .name = "dump",
    .subject = "MODEL",
    .summary = "one training step as a safetensors file, to be checked elsewhere",
    .text = "Weights, buffers before and after the step, batch, dropout masks, logits, loss and every gradient. resnet18 and "
	    "resnet50 bear torchvision's names and layouts, gpt2 Hugging Face's. Runs one checked step of plan none, or of "
	    "the one that --plans names. With --load, weights, buffers, batch and masks come from such a file. With --amp, "
	    "logits have the dtype in which the loss takes them, all else is as without; --load takes a file of any "
	    "precision.",
    .takes = CK_TAKES_CASE | CK_TAKES(plans) | CK_TAKES(load) | CK_TAKES(out) | CK_TAKES(force) | CK_TAKES(quiet),
    .run = run,
};
