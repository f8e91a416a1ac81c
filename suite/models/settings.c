/* Reading cases: what is written is what is built, all text reads back to the same, and every mistake is named. */
#include "cases.h"

#include <stdlib.h>
#include <string.h>

/* text read, and printed: every setting named, but for rare ones as preset, and again the same. */
static void expect_round_trip(const char *text)
{
	ck_settings first, again;
	ck_err err = {""};
	cr_assert(ck_settings_read(&first, text, &err) == CK_OK, "%s: %s", text, err.text);
	char *line = ck_settings_text(&first);
	cr_expect(ck_settings_read(&again, line, &err) == CK_OK, "%s: %s", line, err.text);
	char *line_again = ck_settings_text(&again);
	cr_expect(first.model == again.model && memcmp(first.number, again.number, sizeof first.number) == 0 &&
		      strcmp(line, line_again) == 0,
		  "%s reads back as %s", line, line_again);
	for (int i = 0; first.model->settings[i].name; i++) {
		const ck_setting *t = &first.model->settings[i];
		bool named = !t->rare || first.number[i] != atof(t->preset);
		cr_expect(named == (strstr(line, t->name) != NULL), "%s: %s is %snamed", line, t->name, named ? "not " : "");
	}
	free(line);
	free(line_again);
}

Test(settings, round_trip)
{
	for (const ck_model *const *m = ck_models; *m; m++)
		expect_round_trip((*m)->name);
	for (const ck_preset *p = ck_presets; p->name; p++)
		expect_round_trip(p->name);
	static const char *const cases[] = {
	    "mlp:dropout=0.1",           "mlp:dropout=0.30000000000000004",       "mlp:dropout=1e-300",
	    "mlp:dropout=0.99",          "mlp:activation=gelu-erf,layers=100000", "resnet18:image=64,batch=2",
	    "gpt2:seq=1024,dropout=.25", "mlp:tally=1,inplace=1,freeze=3",        "resnet18:inplace=1",
	    "gpt-tiny:tally=1"};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		expect_round_trip(cases[i]);
}

/* Every model has what is said to be everywhere: batch, classes, dropout, and fits its table's bounds. */
Test(settings, common_ones)
{
	for (const ck_model *const *m = ck_models; *m; m++) {
		static const char *const common[] = {"batch", "classes", "dropout"};
		int n = 0;
		while ((*m)->settings[n].name)
			n++;
		cr_expect(n <= CK_MAX_SETTINGS, "%s has %d settings", (*m)->name, n);
		for (size_t i = 0; i < sizeof common / sizeof *common; i++) {
			ck_settings s;
			ck_err err = {""};
			cr_assert(ck_settings_read(&s, (*m)->name, &err) == CK_OK, "%s: %s", (*m)->name, err.text);
			cr_expect(ck_setting_change(&s, common[i], i == 2 ? "0.5" : "3", &err) == CK_OK, "%s", err.text);
			cr_expect(ck_setting_number(&s, common[i]) == (i == 2 ? 0.5 : 3), "%s: %s", (*m)->name, common[i]);
		}
	}
}

Test(settings, values)
{
	static const struct {
		const char *text, *name;
		double number;
	} cases[] = {
	    {"resnet18", "depth", 18},
	    {"resnet18:image=64", "image", 64},
	    {"resnet18:image=64", "width", 64},
	    {"gpt-char", "vocab", 256},
	    {"transformer:classes=77", "vocab", 77},
	    {"mlp:activation=gelu", "activation", 1},
	    {"mlp:activation=gelu-erf", "activation", 2},
	    {"mlp:dropout=-0", "dropout", 0},
	    {"mlp:layers=007", "layers", 7},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		ck_settings s;
		ck_err err = {""};
		cr_assert(ck_settings_read(&s, cases[i].text, &err) == CK_OK, "%s: %s", cases[i].text, err.text);
		double number = ck_setting_number(&s, cases[i].name);
		cr_expect(number == cases[i].number, "%s: %s is %g, not %g", cases[i].text, cases[i].name, number,
			  cases[i].number);
	}
}

Test(settings, refusals)
{
	static const struct {
		const char *text, *fragment;
	} cases[] = {
	    {"", "no model is named; the models are mlp, cnn, transformer"},
	    {":layers=2", "no model is named"},
	    {"foo", ", their presets mlp-wide, resnet18"},
	    {"foo", "no model is called 'foo'; the models are mlp, cnn, transformer"},
	    {"MLP", "no model is called 'MLP'"},
	    {"mlp layers=2", "no model is called 'mlp layers=2'"},
	    {"mlp:depth=3", "mlp has no setting 'depth'; it has layers, width, inputs, classes, activation, dropout, batch"},
	    {"resnet18:seq=3", "cnn has no setting 'seq'; it has depth"},
	    {"mlp: layers=3", "no setting ' layers'"},
	    {"mlp:", "a setting is missing; write mlp:setting=value"},
	    {"resnet18:", "a setting is missing"},
	    {"mlp:layers=2,", "a setting is missing"},
	    {"mlp:,layers=2", "a setting is missing"},
	    {"mlp:=2", "a setting is missing"},
	    {"mlp:layers", "setting 'layers' has no value; write layers=16"},
	    {"mlp:layers=", "setting 'layers' has no value"},
	    {"mlp:layers=2,layers=2", "setting 'layers' is given twice; leave one out"},
	    {"resnet18:image=64,image=32", "setting 'image' is given twice"},
	    {"transformer:vocab=3,classes=3", "setting 'vocab' is given twice"},
	    {"mlp:layers=0", "layers=0 is out of range; it takes a whole number from 1 to 100000 (linear layers)"},
	    {"mlp:layers=-1", "layers=-1 is out of range"},
	    {"mlp:layers=100001", "layers=100001 is out of range"},
	    {"mlp:batch=18446744073709551617", "batch=18446744073709551617 is out of range"},
	    {"mlp:layers=1.5", "layers=1.5 is not a whole number"},
	    {"mlp:layers=1e3", "layers=1e3 is not a whole number"},
	    {"mlp:layers=0x10", "layers=0x10 is not a whole number"},
	    {"mlp:layers=2 ", "layers=2  is not a whole number"},
	    {"mlp:layers= 2", "layers= 2 is not a whole number"},
	    {"mlp:layers=2=3", "layers=2=3 is not a whole number"},
	    {"mlp:layers=+4", "layers=+4 is not a whole number"},
	    {"mlp:dropout=+0.1", "dropout=+0.1 is not a number"},
	    {"mlp:dropout=0x1p-3", "dropout=0x1p-3 is not a number"},
	    {"mlp:layers=two", "layers=two is not a whole number"},
	    {"mlp:layers=-", "layers=- is not a whole number"},
	    {"mlp:layers=nan", "layers=nan is not a whole number"},
	    {"mlp:dropout=nan", "dropout=nan is not a number; it takes one from 0 to 0.99"},
	    {"mlp:dropout=inf", "dropout=inf is not a number"},
	    {"mlp:dropout=0.1.2", "dropout=0.1.2 is not a number"},
	    {"mlp:dropout=1", "dropout=1 is out of range; it takes a number from 0 to 0.99"},
	    {"mlp:dropout=-0.1", "dropout=-0.1 is out of range"},
	    {"mlp:dropout=1e999", "dropout=1e999 is out of range"},
	    {"mlp:activation=tanh", "activation=tanh is not one of relu|gelu|gelu-erf"},
	    {"mlp:activation=gel", "activation=gel is not one of"},
	    {"mlp:activation=relu|gelu", "activation=relu|gelu is not one of"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		ck_err err;
		ck_status status = case_refusal(cases[i].text, &err);
		cr_expect(status == CK_USAGE && strstr(err.text, cases[i].fragment), "'%s': status %d, '%s' does not say '%s'",
			  cases[i].text, status, err.text, cases[i].fragment);
	}
}

/* A text of any length is refused, not overrun, and does not crowd out the remedy. */
Test(settings, long_text)
{
	static const struct {
		const char *start, *fragment;
	} cases[] = {
	    {"", "; the models are mlp, cnn, transformer"},
	    {"mlp:", "; it has layers, width"},
	    {"mlp:layers=", "is not a whole number; it takes one from 1 to 100000"},
	    {"mlp:activation=", "is not one of relu|gelu|gelu-erf"},
	};
	const size_t size = 1 << 20;
	char *text = malloc(size);
	cr_assert(text);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		memset(text, 'x', size - 1);
		text[size - 1] = 0;
		memcpy(text, cases[i].start, strlen(cases[i].start));
		ck_err err;
		cr_expect(case_refusal(text, &err) == CK_USAGE && strstr(err.text, cases[i].fragment), "'%sxxx…': '%s'",
			  cases[i].start, err.text);
	}
	free(text);
}
