/* Shared by the tests of models: a case's graph in one call, and the line that shows it by hand. */
#ifndef CK_SUITE_MODELS_CASES_H
#define CK_SUITE_MODELS_CASES_H

#include <criterion/criterion.h>

#include "models/models.h"

/* The graph of a case that must build; freed by the caller. Arithmetic `real`. */
static inline ck_graph *case_graph(const char *text, ck_build_options options, ck_dtype real)
{
	ck_settings s;
	ck_err err = {""};
	ck_graph *g = NULL;
	ck_status status = ck_settings_read(&s, text, &err);
	if (status == CK_OK) {
		s.options = options;
		status = ck_model_build(&s, real, &g, &err);
	}
	cr_assert(status == CK_OK, "%s: %s", text, err.text);
	return g;
}

/* What reading and building a case says: CK_OK, or the message in err. */
static inline ck_status case_refusal(const char *text, ck_err *err)
{
	ck_settings s;
	ck_graph *g = NULL;
	*err = (ck_err){""};
	ck_status status = ck_settings_read(&s, text, err);
	if (status == CK_OK)
		status = ck_model_build(&s, CK_F32, &g, err);
	ck_graph_free(g);
	return status;
}

#endif
