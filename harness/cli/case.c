#include "harness/cli/case.h"

#include <stdlib.h>
#include <string.h>

#include "harness/cli/optimizer.h"
#include "harness/cli/scaler.h"
#include "harness/record/shell.h"
#include "kernels/alloc.h"

/* --amp's words, and what they stand for. */
const char *const ck_amp_words[] = {"off", "bf16", "fp16", NULL};
static const ck_dtype amps[] = {CK_DTYPE_NONE, CK_BF16, CK_F16};

static ck_status read_amp(const char *word, ck_dtype *low, ck_err *err)
{
	for (int i = 0; ck_amp_words[i]; i++)
		if (!strcmp(word, ck_amp_words[i])) {
			*low = amps[i];
			return CK_OK;
		}
	return ck_fail(err, CK_USAGE, "--amp '%.60s' is not known; take off, bf16 or fp16", word);
}

static ck_status read_settings(const ck_cli *cli, bool input_grad, ck_settings *s, ck_err *err)
{
	const ck_options *o = &cli->options;
	ck_status status = ck_settings_read(s, cli->subject, err);
	if (status == CK_OK && o->given[CK_OPTION_dropout])
		status = ck_setting_change(s, "dropout", o->text[CK_OPTION_dropout], err);
	if (status == CK_OK)
		status = read_amp(o->text[CK_OPTION_amp], &s->options.low, err);
	s->options.input_grad = input_grad;
	s->options.no_fusion = o->given[CK_OPTION_no_fusion];
	return status;
}

static ck_status read_rng(const char *name, ck_rng_kind *rng, ck_err *err)
{
	for (int k = 0; k < CK_RNG_KINDS; k++)
		if (strcmp(name, ck_rng_names[k]) == 0) {
			*rng = (ck_rng_kind)k;
			return CK_OK;
		}
	return ck_fail(err, CK_USAGE, "--rng '%.60s': there is no such one; it takes %s, %s", name,
		       ck_rng_names[CK_RNG_COUNTER], ck_rng_names[CK_RNG_STATEFUL]);
}

static ck_status open_parts(ck_case *c, bool input_grad, ck_err *err)
{
	const ck_options *o = &c->cli->options;
	ck_rng_kind rng = CK_RNG_COUNTER;
	ck_status status = read_settings(c->cli, input_grad, &c->settings, err);
	if (status == CK_OK)
		status = read_rng(o->text[CK_OPTION_rng], &rng, err);
	if (status == CK_OK)
		status = ck_optimizer_read(o, &c->optimizer, err);
	c->scales = c->settings.options.low == CK_F16 && c->cli->command->takes & CK_TAKES(scaler);
	if (status == CK_OK)
		status = ck_scaler_read(o, &c->scales, &c->scaler, err);
	if (status == CK_OK)
		status = ck_backend_find(o->text[CK_OPTION_device], &c->backend, &c->opened.index, err);
	c->opened.threads = (int)o->whole[CK_OPTION_threads];
	c->opened.tf32 = o->given[CK_OPTION_tf32];
	c->opened.fast = o->given[CK_OPTION_fast];
	if (status == CK_OK)
		status = ck_model_build(&c->settings, c->backend->real, &c->graph, err);
	if (status == CK_OK && o->given[CK_OPTION_data])
		status = ck_batch_open(c->graph, o->text[CK_OPTION_data], c->seed, &c->batch, err);
	if (status == CK_OK)
		status = c->backend->open(&c->opened, &c->device, err);
	if (status == CK_OK)
		status = ck_session_open(c->graph, c->backend, c->device, &c->session, err);
	if (status == CK_OK && c->cli->command->takes & CK_TAKES(optimizer))
		ck_session_train(c->session, &c->optimizer);
	if (status == CK_OK && c->scales)
		ck_session_scale(c->session, &c->scaler);
	c->accumulate = (int)o->whole[CK_OPTION_accumulate];
	if (status == CK_OK && c->accumulate > 1)
		ck_session_accumulate(c->session);
	if (status == CK_OK) {
		ck_session_rng(c->session, rng);
		c->model = ck_settings_text(&c->settings);
	}
	return status;
}

ck_status ck_case_open(const ck_cli *cli, bool input_grad, ck_case *c, ck_err *err)
{
	*c = (ck_case){.cli = cli, .seed = (uint64_t)cli->options.whole[CK_OPTION_seed]};
	ck_status status = open_parts(c, input_grad, err);
	if (status != CK_OK)
		ck_case_close(c);
	return status;
}

void ck_case_close(ck_case *c)
{
	if (c->session)
		ck_session_close(c->session);
	if (c->device)
		c->backend->close(c->device);
	ck_batch_close(c->batch);
	ck_graph_free(c->graph);
	free(c->model);
	*c = (ck_case){0};
}

const void *const *ck_case_batch(const ck_case *c)
{
	return c->batch ? c->batch->at : NULL;
}

/* The line, and the words after it if there are any. Both are fresh memory, as is what is returned. */
static char *with_words(char *line, char *words)
{
	char *both = ck_text("%s%s%s", line, *words ? " " : "", words);
	free(line);
	free(words);
	return both;
}

char *ck_case_line(const ck_case *c, const char *command, const char *more)
{
	const ck_options *o = &c->cli->options;
	const char *words[] = {"ckbench", command, c->model, "--device", o->text[CK_OPTION_device]};
	char *begin = ck_shell_line(sizeof words / sizeof *words, words);
	char *line = ck_text("%s --threads %d --seed %llu", begin, c->backend->threads(c->device), (unsigned long long)c->seed);
	for (int k = 0; k < CK_OPTIONS; k++)
		if (CK_CASE_GIVEN >> k & 1)
			line = with_words(line, ck_option_line(o, (ck_option)k));
	free(begin);
	return with_words(line, ck_text("%s", more));
}

void ck_case_describe(const ck_case *c, ck_result *r)
{
	const ck_options *o = &c->cli->options;
	r->device.name = ck_text("%s", o->text[CK_OPTION_device]);
	r->device.description = ck_text("%s", c->backend->describe(c->device));
	r->device.threads = c->backend->threads(c->device);
	r->device.facts = ck_backend_facts(c->backend, c->device);
	r->c.model = ck_text("%s", c->settings.model->name);
	r->c.data = ck_text("%s", c->batch ? o->text[CK_OPTION_data] : "random");
	r->c.amp = ck_text("%s", o->text[CK_OPTION_amp]);
	r->c.rng = ck_text("%s", ck_rng_names[c->session->rng]);
	r->c.tf32 = o->given[CK_OPTION_tf32];
	r->c.fast = o->given[CK_OPTION_fast];
	const ck_setting *table = c->settings.model->settings;
	for (int i = 0; table[i].name; i++) {
		ck_fact *f = ck_result_add_setting(r, table[i].name);
		if (table[i].words)
			f->word = ck_setting_word(&table[i], c->settings.number[i]);
		else
			f->number = c->settings.number[i];
	}
	r->c.seed = (int64_t)c->seed;
	r->c.parameters = c->graph->parameters;
	r->c.stages = c->graph->nstages;
	r->c.ops = c->graph->nops;
	r->c.graph = c->graph->digest;
	r->c.model_flops = c->graph->model_flops;
}
