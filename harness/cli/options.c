#include "harness/cli/options.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/cli/wrap.h"
#include "harness/record/shell.h"
#include "kernels/alloc.h"
#include "kernels/number.h"

typedef enum kind { FLAG, WHOLE, REAL, TEXT } kind;

typedef struct row {
	const char *name, *value;
	kind kind;
	double least, most;
	const char *preset, *help;
} row;

static const row rows[CK_OPTIONS] = {
#define X(name, value, kind, least, most, preset, help) {"--" #name, value, kind, least, most, preset, help},
    CK_OPTION_ROWS(X)
#undef X
};

/* A C name has '_' where the command line has '-'. Compares up to the end of `name` or a '='. */
static bool is_named(const row *r, const char *name)
{
	size_t i = 0;
	for (; name[i] && name[i] != '=' && r->name[i]; i++)
		if ((r->name[i] == '_' ? '-' : r->name[i]) != name[i])
			return false;
	return !r->name[i] && (!name[i] || name[i] == '=');
}

const char *ck_option_name(ck_option which)
{
	static char names[CK_OPTIONS][24];
	char *name = names[which];
	snprintf(name, sizeof names[which], "%s", rows[which].name);
	for (char *c = name; *c; c++)
		*c = *c == '_' ? '-' : *c;
	return name;
}

static ck_status read_whole(ck_options *o, ck_option which, const char *text, ck_err *err)
{
	int64_t n;
	const row *r = &rows[which];
	if (!ck_whole(text, &n) || (double)n < r->least || (double)n > r->most)
		return ck_fail(err, CK_USAGE, "%s '%.60s': give a whole number from %.0f to %.0f", ck_option_name(which), text,
			       r->least, r->most);
	o->whole[which] = n;
	return CK_OK;
}

static ck_status read_real(ck_options *o, ck_option which, const char *text, ck_err *err)
{
	double x;
	const row *r = &rows[which];
	if (!ck_decimal(text, &x) || x < r->least || x > r->most)
		return ck_fail(err, CK_USAGE, "%s '%.60s': give a number from %g to %g", ck_option_name(which), text, r->least,
			       r->most);
	o->real[which] = x;
	return CK_OK;
}

static ck_status set(ck_options *o, ck_option which, const char *text, ck_err *err)
{
	o->text[which] = text;
	switch (rows[which].kind) {
	case WHOLE:
		return read_whole(o, which, text, err);
	case REAL:
		return read_real(o, which, text, err);
	case TEXT:
		return *text ? CK_OK
			     : ck_fail(err, CK_USAGE, "%s: the value is empty; give %s", ck_option_name(which),
				       rows[which].value);
	case FLAG:
		break;
	}
	return CK_OK;
}

void ck_options_preset(ck_options *o)
{
	*o = (ck_options){0};
	for (int i = 0; i < CK_OPTIONS; i++)
		if (rows[i].preset)
			set(o, (ck_option)i, rows[i].preset, NULL);
}

static ck_status unknown(const char *name, unsigned takes, const char *command, ck_err *err)
{
	char *known = ck_text("%s", "");
	for (int i = 0; i < CK_OPTIONS; i++) {
		if (!(takes & 1u << i))
			continue;
		char *longer = ck_text("%s%s%s", known, *known ? ", " : "", ck_option_name((ck_option)i));
		free(known);
		known = longer;
	}
	ck_status status =
	    *known ? ck_fail(err, CK_USAGE, "%s does not know the option '%.60s'; it takes %s", command, name, known)
		   : ck_fail(err, CK_USAGE, "%s takes no options, but was given '%.60s'", command, name);
	free(known);
	return status;
}

ck_status ck_options_read(ck_options *o, unsigned takes, const char *command, char *const *argv, int argc, int *i, ck_err *err)
{
	const char *given = argv[*i], *value = strchr(given, '=');
	int which = 0;
	while (which < CK_OPTIONS && !((takes & 1u << which) && is_named(&rows[which], given)))
		which++;
	if (which == CK_OPTIONS)
		return unknown(given, takes, command, err);
	const char *name = ck_option_name((ck_option)which);
	if (o->given[which])
		return ck_fail(err, CK_USAGE, "%s is given twice; leave one out", name);
	o->given[which] = true;
	if (rows[which].kind == FLAG)
		return value ? ck_fail(err, CK_USAGE, "%s takes no value", name) : CK_OK;
	if (value)
		return set(o, (ck_option)which, value + 1, err);
	if (*i + 1 >= argc)
		return ck_fail(err, CK_USAGE, "%s needs a value: %s %s", name, name, rows[which].value);
	return set(o, (ck_option)which, argv[++*i], err);
}

void ck_options_help(unsigned takes)
{
	for (int i = 0; i < CK_OPTIONS; i++) {
		if (!(takes & 1u << i))
			continue;
		const row *r = &rows[i];
		char *head = ck_text("%s%s%s", ck_option_name((ck_option)i), r->value ? " " : "", r->value ? r->value : "");
		char *help = r->preset ? ck_text("%s [%s]", r->help, r->preset) : ck_text("%s", r->help);
		ck_wrap(head, 2, help, 20, stdout);
		free(head);
		free(help);
	}
}

char *ck_option_line(const ck_options *o, ck_option which)
{
	if (!o->given[which])
		return ck_text("%s", "");
	const char *words[] = {ck_option_name(which), o->text[which]};
	return ck_shell_line(rows[which].kind == FLAG ? 1 : 2, words);
}
