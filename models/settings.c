/* Reading a case, `name:setting=value,…`, and writing it back. */
#include "models/models.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/alloc.h"
#include "kernels/number.h"

/* ---- lists for messages ------------------------------------------------------------------------------------------------- */

/* Adds ", word" to text of `size` bytes; what does not fit is left out. */
static void append(char *text, size_t size, const char *word)
{
	size_t used = strlen(text);
	snprintf(text + used, size - used, "%s%s", used ? ", " : "", word);
}

static ck_status unknown_model(const char *name, ck_err *err)
{
	char models[256] = "", presets[512] = "";
	for (const ck_model *const *m = ck_models; *m; m++)
		append(models, sizeof models, (*m)->name);
	for (const ck_preset *p = ck_presets; p->name; p++)
		append(presets, sizeof presets, p->name);
	if (!*name)
		return ck_fail(err, CK_USAGE, "no model is named; the models are %s, their presets %s", models, presets);
	return ck_fail(err, CK_USAGE, "no model is called '%.60s'; the models are %s, their presets %s", name, models, presets);
}

static ck_status unknown_setting(const ck_model *m, const char *name, ck_err *err)
{
	char known[512] = "";
	for (const ck_setting *t = m->settings; t->name; t++)
		append(known, sizeof known, t->name);
	return ck_fail(err, CK_USAGE, "%s has no setting '%.60s'; it has %s", m->name, name, known);
}

/* ---- one value ---------------------------------------------------------------------------------------------------------- */

/* The place of `value` in the list "a|b|c", or -1. */
static int word_index(const char *words, const char *value)
{
	size_t length = strlen(value);
	for (int i = 0;; i++) {
		size_t n = strcspn(words, "|");
		if (n == length && memcmp(words, value, n) == 0)
			return i;
		if (!words[n])
			return -1;
		words += n + 1;
	}
}

static ck_status read_number(const ck_model *m, const ck_setting *t, const char *value, double *number, ck_err *err)
{
	const char *kind = t->fraction ? "number" : "whole number";
	double x;
	if (!ck_decimal(value, &x) || (!t->fraction && strpbrk(value, ".eE")))
		return ck_fail(err, CK_USAGE, "%s: %s=%.60s is not a %s; it takes one from %.15g to %.15g (%s)", m->name,
			       t->name, value, kind, t->least, t->most, t->help);
	if (!(x >= t->least && x <= t->most))
		return ck_fail(err, CK_USAGE, "%s: %s=%.60s is out of range; it takes a %s from %.15g to %.15g (%s)", m->name,
			       t->name, value, kind, t->least, t->most, t->help);
	*number = x == 0 ? 0 : x; /* no -0 */
	return CK_OK;
}

static ck_status read_value(const ck_model *m, const ck_setting *t, const char *value, double *number, ck_err *err)
{
	if (!*value)
		return ck_fail(err, CK_USAGE, "%s: setting '%s' has no value; write %s=%s, say (%s)", m->name, t->name, t->name,
			       t->preset, t->help);
	if (!t->words)
		return read_number(m, t, value, number, err);
	int i = word_index(t->words, value);
	if (i < 0)
		return ck_fail(err, CK_USAGE, "%s: %s=%.60s is not one of %s", m->name, t->name, value, t->words);
	*number = i;
	return CK_OK;
}

/* The setting's place in the model's table, by its name or alias, or -1. */
static int find(const ck_model *m, const char *name)
{
	for (int i = 0; m->settings[i].name; i++)
		if (strcmp(m->settings[i].name, name) == 0 || (m->settings[i].alias && strcmp(m->settings[i].alias, name) == 0))
			return i;
	return -1;
}

ck_status ck_setting_change(ck_settings *s, const char *name, const char *value, ck_err *err)
{
	int i = find(s->model, name);
	return i < 0 ? unknown_setting(s->model, name, err)
		     : read_value(s->model, &s->model->settings[i], value, &s->number[i], err);
}

double ck_setting_number(const ck_settings *s, const char *name)
{
	return s->number[find(s->model, name)];
}

/* ---- a whole case ------------------------------------------------------------------------------------------------------- */

/* Reads "setting=value,…", cutting up `list` in place. A setting that stands twice is refused: one of the two is a mistake. */
static ck_status read_list(ck_settings *s, char *list, ck_err *err)
{
	bool given[CK_MAX_SETTINGS] = {false};
	while (list) {
		char *value = strsep(&list, ",");
		const char *name = strsep(&value, "=");
		if (!*name)
			return ck_fail(err, CK_USAGE, "%s: a setting is missing; write %s:setting=value,setting=value",
				       s->model->name, s->model->name);
		int i = find(s->model, name);
		if (i >= 0 && given[i])
			return ck_fail(err, CK_USAGE, "%s: setting '%s' is given twice; leave one out", s->model->name,
				       s->model->settings[i].name);
		if (ck_setting_change(s, name, value ? value : "", err) != CK_OK)
			return CK_USAGE;
		given[i] = true;
	}
	return CK_OK;
}

static const ck_model *find_model(const char *name)
{
	for (const ck_model *const *m = ck_models; *m; m++)
		if (strcmp((*m)->name, name) == 0)
			return *m;
	return NULL;
}

static const ck_preset *find_preset(const char *name)
{
	for (const ck_preset *p = ck_presets; p->name; p++)
		if (strcmp(p->name, name) == 0)
			return p;
	return NULL;
}

/* Reads a case whose name may be a model's only, cutting up `text` in place: defaults, then what the text says. */
static ck_status read_model(ck_settings *s, char *text, ck_err *err)
{
	const char *name = strsep(&text, ":");
	*s = (ck_settings){.model = find_model(name)};
	if (!s->model)
		return unknown_model(name, err);
	for (int i = 0; s->model->settings[i].name; i++)
		if (ck_setting_change(s, s->model->settings[i].name, s->model->settings[i].preset, err) != CK_OK)
			return CK_USAGE;
	return read_list(s, text, err);
}

ck_status ck_settings_read(ck_settings *s, const char *text, ck_err *err)
{
	char *copy = ck_text("%s", text);
	char *list = copy;
	const ck_preset *p = find_preset(strsep(&list, ":"));
	ck_status status;
	if (p) {
		char *base = ck_text("%s", p->stands_for);
		status = read_model(s, base, err);
		free(base);
		if (status == CK_OK)
			status = read_list(s, list, err);
	} else {
		if (list)
			list[-1] = ':';
		status = read_model(s, copy, err);
	}
	free(copy);
	return status;
}

/* The shortest decimal that reads back to the same double. */
static char *number_text(double x)
{
	char text[32];
	for (int digits = 1; digits <= DBL_DECIMAL_DIG; digits++) {
		snprintf(text, sizeof text, "%.*g", digits, x);
		if (strtod(text, NULL) == x)
			break;
	}
	return ck_text("%s", text);
}

char *ck_setting_word(const ck_setting *t, double place)
{
	const char *word = t->words;
	for (int i = 0; i < (int)place; i++)
		word += strcspn(word, "|") + 1;
	return ck_text("%.*s", (int)strcspn(word, "|"), word);
}

static char *value_text(const ck_setting *t, double x)
{
	return t->words ? ck_setting_word(t, x) : t->fraction ? number_text(x) : ck_text("%.0f", x);
}

char *ck_settings_text(const ck_settings *s)
{
	char *text = ck_text("%s", s->model->name);
	for (int i = 0; s->model->settings[i].name; i++) {
		const ck_setting *t = &s->model->settings[i];
		char *value = value_text(t, s->number[i]);
		if (!t->rare || strcmp(value, t->preset) != 0) {
			char *longer = ck_text("%s%c%s=%s", text, i ? ',' : ':', t->name, value);
			free(text);
			text = longer;
		}
		free(value);
	}
	return text;
}
