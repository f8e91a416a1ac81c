/* ckbench compare A B …: machines or builds against each other. */
#define _GNU_SOURCE /* versionsort */
#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "harness/cli/cli.h"
#include "harness/cli/complain.h"
#include "harness/cli/interrupt.h"
#include "harness/cli/outputs.h"
#include "harness/record/compare.h"
#include "harness/record/faults.h"
#include "harness/record/file.h"
#include "harness/record/plot.h"
#include "harness/record/training.h"
#include "kernels/alloc.h"
#include "kernels/readfile.h"

/* Far more than any record of a sweep: a thousand plans of a thousand samples each are 20 MB. */
enum { RECORD_BYTES_MOST = 64 << 20 };

/* ---- reading ------------------------------------------------------------------------------------------------------------- */

/* Other records of ckbench, which may well lie in the same folder. */
static bool is_other_record(const char *text, size_t bytes)
{
	static const char *const others[] = {CK_TRAINING_SCHEMA, CK_FAULTS_SCHEMA, CK_COMPARE_SCHEMA};
	cJSON *root = cJSON_ParseWithLength(text, bytes);
	const cJSON *schema = cJSON_GetObjectItemCaseSensitive(root, "schema");
	bool other = false;
	for (size_t i = 0; i < sizeof others / sizeof *others && cJSON_IsString(schema); i++)
		other |= strcmp(schema->valuestring, others[i]) == 0;
	cJSON_Delete(root);
	return other;
}

static ck_status add_record(ck_comparison *c, int side, const char *file, bool alone, ck_err *err)
{
	char *text;
	size_t bytes;
	ck_result *r = NULL;
	ck_status status = ck_file_read(file, RECORD_BYTES_MOST, &text, &bytes, err);
	if (status != CK_OK)
		return status;
	if (bytes == 0)
		status = ck_fail(err, CK_USAGE, "%s is empty; give a record that 'ckbench sweep' wrote", file);
	else if (!alone && is_other_record(text, bytes))
		ck_comparison_leave_out(c, side, file, NULL, ck_text("is a record, but not of a sweep"));
	else
		status = ck_result_read(text, bytes, file, &r, err);
	free(text);
	if (r)
		status = ck_comparison_add(c, side, file, r, err);
	if (status != CK_OK)
		ck_result_free(r);
	return status;
}

static int is_json(const struct dirent *entry)
{
	size_t n = strlen(entry->d_name);
	return n > 5 && entry->d_name[0] != '.' && strcmp(entry->d_name + n - 5, ".json") == 0;
}

/* All records in the folder, "sweep-mlp-2.json" before "sweep-mlp-10.json". */
static ck_status add_folder(ck_comparison *c, int side, const char *folder, ck_err *err)
{
	struct dirent **entries;
	int n = scandir(folder, &entries, is_json, versionsort);
	if (n < 0)
		return ck_fail(err, CK_USAGE, "cannot read the folder '%.200s': %s; check its name and permissions", folder,
			       strerror(errno));
	ck_status status = CK_OK;
	size_t length = strlen(folder);
	for (int i = 0; i < n; i++) {
		char *file = ck_text("%s%s%s", folder, length && folder[length - 1] == '/' ? "" : "/", entries[i]->d_name);
		if (status == CK_OK)
			status = add_record(c, side, file, false, err);
		free(file);
		free(entries[i]);
	}
	free(entries);
	if (status == CK_OK && c->sides[side].n == 0)
		return ck_fail(err, CK_USAGE,
			       "the folder '%.200s' holds no record of a sweep (*.json); name another, or a file", folder);
	return status;
}

static ck_status add_all(ck_comparison *c, const ck_cli *cli, ck_err *err)
{
	ck_status status = CK_OK;
	for (int i = 0; i < cli->nsubjects && status == CK_OK; i++) {
		struct stat s;
		const char *source = cli->subjects[i];
		int side = ck_comparison_add_side(c, source);
		bool folder = stat(source, &s) == 0 && S_ISDIR(s.st_mode);
		status = folder ? add_folder(c, side, source, err) : add_record(c, side, source, true, err);
	}
	return status;
}

/* ---- the command --------------------------------------------------------------------------------------------------------- */

static ck_status plot(const void *record, const char *ending, char **image, size_t *bytes, ck_err *err)
{
	return ck_plot_comparison(record, ending, image, bytes, err);
}

static ck_status write_all(const ck_comparison *c, const ck_cli *cli, FILE *to, ck_err *err)
{
	const ck_options *o = &cli->options;
	char *json = ck_comparison_json(c), *tsv = ck_comparison_tsv(c);
	ck_status status = CK_OK;
	if (o->given[CK_OPTION_out])
		status = ck_outputs_write_as(ck_outputs_folder(o), "compare", to, &(ck_output){json, tsv, c, plot}, err);
	ck_status asked = ck_outputs_write_json(cli, json, err); /* even after a full disk: it may go elsewhere */
	free(json);
	free(tsv);
	return status != CK_OK ? status : asked;
}

static ck_status compare(ck_comparison *c, const ck_cli *cli, ck_err *err)
{
	FILE *to = ck_outputs_to_people(cli);
	ck_status status = add_all(c, cli, err);
	if (status != CK_OK)
		return status;
	status = ck_comparison_make(c, err);
	ck_comparison_table(c, to);
	fflush(to);
	for (int i = 0; i < c->nwarnings && !cli->options.given[CK_OPTION_quiet]; i++)
		ck_complain("warning: %s", c->warnings[i]);
	if (status == CK_OK)
		ck_interrupt_keep(); /* no file half-written stays behind */
	return status == CK_OK ? write_all(c, cli, to, err) : status;
}

static ck_status run(const ck_cli *cli, ck_err *err)
{
	if (cli->nsubjects < 2)
		return ck_fail(err, CK_USAGE,
			       "compare takes two records or more, but was given only '%.200s': ckbench compare "
			       "A.json B.json",
			       cli->subject);
	if (cli->nsubjects > CK_SIDES_MOST)
		return ck_fail(err, CK_USAGE,
			       "compare takes %d records or folders at most, but was given %d; compare fewer at once",
			       CK_SIDES_MOST, cli->nsubjects);
	ck_status status = ck_outputs_check(cli, cli->options.text[CK_OPTION_out], err);
	if (status != CK_OK)
		return status;
	ck_interrupt_watch();
	ck_comparison c;
	ck_comparison_open(&c, cli->argc, cli->argv);
	status = compare(&c, cli, err);
	ck_comparison_free(&c);
	return status;
}

const ck_command ck_command_compare = {
    .name = "compare",
    .subject = "A.json B.json ...",
    .summary = "machines or builds against each other",
    .text =
	"Takes two records of sweeps or more, or folders of them: each is a machine or a build, the first the baseline. "
	"Compares the cases that they share, plan by plan: the ratio of median step times with an interval that holds it in "
	"95 % of cases, whether that makes it faster or slower, memory, and the geometric mean over plans and over cases. "
	"Lists what cannot be compared, and why; warns of what makes times doubtful. With --out, writes the comparison, "
	"a TSV and plots. Edited, truncated or foreign records are refused.",
    .several = true,
    .takes = CK_TAKES(out) | CK_TAKES(json) | CK_TAKES(force) | CK_TAKES(quiet),
    .run = run,
};
