#include "harness/cli/outputs.h"

#include <stdlib.h>
#include <string.h>

#include "harness/cli/complain.h"
#include "harness/record/file.h"
#include "kernels/alloc.h"

const char *ck_outputs_folder(const ck_options *o)
{
	return o->given[CK_OPTION_out] ? o->text[CK_OPTION_out] : "ckbench-out";
}

static bool json_to_stdout(const ck_cli *cli)
{
	const char *json = cli->options.text[CK_OPTION_json];
	return json && strcmp(json, "-") == 0;
}

FILE *ck_outputs_to_people(const ck_cli *cli)
{
	return json_to_stdout(cli) ? stderr : stdout;
}

ck_status ck_outputs_check(const ck_cli *cli, const char *folder, ck_err *err)
{
	const ck_options *o = &cli->options;
	ck_status status = CK_OK;
	if (o->given[CK_OPTION_json] && !json_to_stdout(cli))
		status = ck_file_writable(o->text[CK_OPTION_json], o->given[CK_OPTION_force], folder, err);
	return status == CK_OK && folder ? ck_folder_writable(folder, err) : status;
}

ck_status ck_outputs_write_json(const ck_cli *cli, const char *text, ck_err *err)
{
	const ck_options *o = &cli->options;
	if (!o->given[CK_OPTION_json])
		return CK_OK;
	if (json_to_stdout(cli))
		return ck_print(text, err);
	return ck_file_write(o->text[CK_OPTION_json], text, strlen(text), o->given[CK_OPTION_force], err);
}

static char *in_folder(const char *folder, const char *name)
{
	size_t n = strlen(folder);
	return ck_text("%s%s%s", folder, n && folder[n - 1] == '/' ? "" : "/", name);
}

static char *file_name(const char *stem, int number, const char *ending)
{
	return ck_text("%s-%d.%s", stem, number, ending);
}

static bool is_free(const char *stem, int number)
{
	static const char *const endings[] = {"json", "tsv", "svg", "png"};
	bool taken = false;
	for (size_t i = 0; i < sizeof endings / sizeof *endings && !taken; i++) {
		char *name = file_name(stem, number, endings[i]);
		taken = ck_file_exists(name);
		free(name);
	}
	return !taken;
}

/* The record takes the first free number. When another run takes that in the same moment, the next. */
static ck_status write_record(const char *text, const char *stem, int *number, char **name, ck_err *err)
{
	ck_status status = CK_USAGE;
	ck_err why = {""};
	for (*number = 1; status == CK_USAGE; ++*number) {
		if (!is_free(stem, *number))
			continue;
		*name = file_name(stem, *number, "json");
		why.text[0] = 0;
		status = ck_file_write(*name, text, strlen(text), false, &why);
		if (status != CK_USAGE)
			break;
		free(*name);
		*name = NULL;
	}
	return status == CK_OK ? CK_OK : ck_fail(err, status, "%s", why.text);
}

/* Writes one more file beside the record and adds its ending to the list of what was written. */
static ck_status write_beside(const char *stem, int number, const char *ending, const char *data, size_t bytes, char **list,
			      ck_err *err)
{
	char *name = file_name(stem, number, ending);
	ck_status status = ck_file_write(name, data, bytes, false, err);
	if (status == CK_OK) {
		char *longer = ck_text("%s, .%s", *list, ending);
		free(*list);
		*list = longer;
	}
	free(name);
	return status;
}

static ck_status write_plots(const ck_output *o, const char *stem, int number, char **list, ck_err *err)
{
	static const char *const endings[] = {"svg", "png"};
	ck_status status = CK_OK;
	for (size_t i = 0; i < sizeof endings / sizeof *endings && status == CK_OK; i++) {
		char *image;
		size_t bytes;
		ck_err why = {""};
		if (o->plot(o->record, endings[i], &image, &bytes, &why) != CK_OK) {
			ck_complain("no plot: %s", why.text);
			return CK_OK;
		}
		status = write_beside(stem, number, endings[i], image, bytes, list, err);
		free(image);
	}
	return status;
}

ck_status ck_outputs_write_record(const char *folder, const char *name, const char *text, char **path, ck_err *err)
{
	char *stem = in_folder(folder, name);
	int number;
	*path = NULL;
	ck_status status = ck_folder_make(folder, err);
	if (status == CK_OK)
		status = write_record(text, stem, &number, path, err);
	free(stem);
	return status;
}

ck_status ck_outputs_write_as(const char *folder, const char *name, FILE *to, const ck_output *o, ck_err *err)
{
	char *stem = in_folder(folder, name), *list = NULL;
	int number;
	ck_status status = ck_folder_make(folder, err);
	if (status == CK_OK)
		status = write_record(o->json, stem, &number, &list, err);
	if (status == CK_OK) {
		status = write_beside(stem, number, "tsv", o->tsv, strlen(o->tsv), &list, err);
		if (status == CK_OK)
			status = write_plots(o, stem, number, &list, err);
		fprintf(to, "written: %s\n", list);
	}
	free(list);
	free(stem);
	return status;
}

/* "sweep-resnet18": the command, and the model as the user called it. */
ck_status ck_outputs_write(const ck_job *j, const ck_output *o, ck_err *err)
{
	const char *model = j->cli->subject;
	char *name = ck_text("%s-%.*s", j->cli->command->name, (int)strcspn(model, ":"), model);
	ck_status status = ck_outputs_write_as(ck_outputs_folder(&j->cli->options), name, j->out, o, err);
	free(name);
	return status;
}
