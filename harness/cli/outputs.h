/* What a command leaves behind: files in its folder, NAME-N.json, .tsv, .svg and .png, N the first number that is free; and the record
 * where --json says. */
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
/* Refusals that would otherwise come after the work. folder: where files will go; NULL: nowhere. */
ck_status ck_outputs_check(const ck_cli *cli, const char *folder, ck_err *err);
/* Where tables go: the standard output, or stderr when the record goes there. */
FILE *ck_outputs_to_people(const ck_cli *cli);
/* Writes the record, as text, to where --json says, if anywhere. */
ck_status ck_outputs_write_json(const ck_cli *cli, const char *text, ck_err *err);

/* A record alone, as FOLDER/NAME-N.json; gives its path, in fresh memory, NULL when there is none. */
ck_status ck_outputs_write_record(const char *folder, const char *name, const char *text, char **path, ck_err *err);
/* Writes all forms as FOLDER/NAME-N.* and tells where they are. A plot that cannot be drawn is a remark, a file that cannot be
 * written an error. */
ck_status ck_outputs_write_as(const char *folder, const char *name, FILE *to, const ck_output *o, ck_err *err);
/* The same, named after the command and its model, in the folder of --out. */
ck_status ck_outputs_write(const ck_job *j, const ck_output *o, ck_err *err);

#endif
