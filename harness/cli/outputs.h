/* The files that a command leaves in its folder: NAME-N.json, .tsv, .svg and .png, N the first number that is free. */
#ifndef CK_OUTPUTS_H
#define CK_OUTPUTS_H

#include "harness/cli/job.h"

/* A record in its forms: texts, and what draws it (harness/record/plot.h). */
typedef struct ck_output {
	const char *json, *tsv;
	const void *record;
	ck_status (*plot)(const void *record, const char *ending, char **image, size_t *bytes, ck_err *err);
} ck_output;

/* Where they go: --out, or ckbench-out. */
const char *ck_outputs_folder(const ck_options *o);
/* A record alone, as FOLDER/NAME-N.json; gives its path, in fresh memory, NULL when there is none. */
ck_status ck_outputs_write_record(const char *folder, const char *name, const char *text, char **path, ck_err *err);
/* Writes them and tells where they are. A plot that cannot be drawn is a remark, a file that cannot be written an error. */
ck_status ck_outputs_write(const ck_job *j, const ck_output *o, ck_err *err);

#endif
