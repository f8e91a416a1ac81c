/* The registry of models. A model is one file: a table of settings, and a function that builds its graph from them.
 *
 * A case is written `name`, or `name:setting=value,setting=value`. A preset is a name for such a text (`resnet18` stands for
 * `cnn:depth=18,…`), and takes further settings in the same way. */
#ifndef CK_MODELS_H
#define CK_MODELS_H

#include "harness/graph/graph.h"

/* One setting: an integer, a fraction, or a word out of a list ("relu|gelu|gelu-erf"). */
typedef struct ck_setting {
	const char *name, *help;
	const char *preset; /* default value, as text */
	double least, most; /* range of a number; ignored for words */
	const char *words;  /* NULL for a number */
	bool fraction;      /* a number that need not be whole */
	const char *alias;  /* another name that it goes by, or NULL */
	bool rare;          /* left out of a case's text while it is as preset */
} ck_setting;

enum { CK_MAX_SETTINGS = 20 };

/* How the case is built, beside the model's own settings. Dropout is a setting, "dropout", of every model; "freeze",
 * where a model has it, tells how many layers with parameters, from the first on, are not trained. */
typedef struct ck_build_options {
	bool input_grad; /* compute the gradient of a real-valued input as well: checks want it, training does not */
	bool evaluation; /* BatchNorm from its running statistics, no dropout */
	bool no_fusion;
	ck_dtype low; /* mixed precision: CK_BF16 or CK_F16; CK_DTYPE_NONE: off */
} ck_build_options;

typedef struct ck_settings { /* values in the order of the model's table */
	const struct ck_model *model;
	ck_build_options options;
	double number[CK_MAX_SETTINGS]; /* for words: the word's place in its list */
} ck_settings;

/* How a parameter, buffer or input is called and laid out where the model is usually found (torchvision, Hugging Face):
 * extent i there is our extent axis[i]. */
typedef struct ck_usual {
	char name[96];
	int axis[CK_MAX_DIMS];
} ck_usual;

typedef struct ck_model {
	const char *name, *summary;
	const ck_setting *settings; /* ends with a NULL name */
	/* Builds the graph up to the loss and returns it; errors stick to the graph. */
	ck_value (*build)(const ck_settings *s, ck_graph *g);
	/* Changes what is not as here; u comes with our name and order. NULL: all is. */
	void (*usual)(const ck_value_info *v, ck_usual *u);
} ck_model;

typedef struct ck_preset {
	const char *name, *stands_for, *summary;
} ck_preset;

extern const ck_model *const ck_models[]; /* NULL-terminated */
extern const ck_preset ck_presets[];      /* ends with a NULL name */

/* Reads a case; unknown names and values out of range are refused with what would be right (CK_USAGE). */
ck_status ck_settings_read(ck_settings *s, const char *text, ck_err *err);
double ck_setting_number(const ck_settings *s, const char *name); /* must exist in the model's table */
/* The word at that place of the setting's list. Fresh memory. */
char *ck_setting_word(const ck_setting *t, double place);
ck_status ck_setting_change(ck_settings *s, const char *name, const char *value, ck_err *err);
/* The whole case as one line that reads back to the same: every setting named, but for rare ones as preset. Returns malloc'd
 * text. */
char *ck_settings_text(const ck_settings *s);

ck_usual ck_model_usual(const ck_model *m, const ck_value_info *v);

/* Builds and finishes the graph. */
ck_status ck_model_build(const ck_settings *s, ck_dtype real, ck_graph **graph, ck_err *err);

#endif
