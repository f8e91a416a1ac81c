/* The program: finds the subcommand, reads its options, runs it, tells what went wrong. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/cli/cli.h"
#include "harness/cli/complain.h"
#include "harness/cli/interrupt.h"
#include "harness/cli/wrap.h"
#include "harness/record/file.h"
#include "harness/record/version.h"
#include "kernels/alloc.h"

extern const ck_command ck_command_list, ck_command_parity, ck_command_sweep, ck_command_train, ck_command_plan,
    ck_command_dump, ck_command_faults, ck_command_compare, ck_command_env, ck_command_peak;

/* In the order of the help. */
static const ck_command *const commands[] = {
    &ck_command_list, &ck_command_parity, &ck_command_sweep,   &ck_command_train, &ck_command_plan,
    &ck_command_dump, &ck_command_faults, &ck_command_compare, &ck_command_env,   &ck_command_peak,
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static const char exit_statuses[] =
    "Exit status: 0 all well; 1 a check did not hold; 2 wrong usage or bad input;\n"
    "3 something needed is missing; 130 (128 + signal) interrupted, what was finished is kept\n";

static void help(void)
{
	puts("ckbench: what gradient checkpointing costs and saves, and proof that it changes nothing\n");
	for (int i = 0; i < COMMANDS; i++) {
		char line[80];
		if (!commands[i]->summary)
			continue;
		snprintf(line, sizeof line, "ckbench %s%s%s", commands[i]->name, commands[i]->subject ? " " : "",
			 commands[i]->subject ? commands[i]->subject : "");
		ck_wrap(line, 2, commands[i]->summary, 40, stdout);
	}
	puts("\nMODEL is a name or a preset ('ckbench list models'), with settings: mlp:layers=8,width=256\n"
	     "'ckbench COMMAND --help' tells the options of a command. To begin with: ckbench sweep mlp\n");
	fputs(exit_statuses, stdout);
}

static void command_help(const ck_command *c)
{
	printf("ckbench %s%s%s%s\n\n", c->name, c->subject ? " " : "", c->subject ? c->subject : "",
	       c->takes ? " [options]" : "");
	ck_wrap("", 0, c->summary ? c->summary : "for the program's own use", 0, stdout);
	if (c->text) {
		putchar('\n');
		ck_wrap("", 0, c->text, 0, stdout);
	}
	if (c->takes) {
		puts("\nOptions");
		ck_options_help(c->takes);
	}
	putchar('\n');
	fputs(exit_statuses, stdout);
}

static const ck_command *find(const char *name)
{
	for (int i = 0; i < COMMANDS; i++)
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	return NULL;
}

static ck_status unknown(const char *name, ck_err *err)
{
	char known[200] = "";
	for (int i = 0; i < COMMANDS; i++) {
		size_t used = strlen(known);
		if (commands[i]->summary)
			snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", commands[i]->name);
	}
	return ck_fail(err, CK_USAGE, "there is no command '%.60s'; the commands are %s (see 'ckbench --help')", name, known);
}

static ck_status read_subject(ck_cli *cli, const char *word, ck_err *err)
{
	const ck_command *c = cli->command;
	if (!c->subject)
		return ck_fail(err, CK_USAGE, "%s takes options only, but was given '%.60s' (see 'ckbench %s --help')", c->name,
			       word, c->name);
	cli->subjects[cli->nsubjects++] = word;
	if (cli->subject && c->several)
		return CK_OK;
	if (cli->subject)
		return ck_fail(err, CK_USAGE, "%s takes one %s, but was given '%.60s' and '%.60s'", c->name, c->subject,
			       cli->subject, word);
	cli->subject = word;
	return CK_OK;
}

static bool asks_for_help(const char *word)
{
	return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static ck_status read_command(ck_cli *cli, ck_err *err)
{
	const ck_command *c = find(cli->argv[1]);
	if (!c)
		return unknown(cli->argv[1], err);
	for (int i = 2; i < cli->argc; i++) {
		if (asks_for_help(cli->argv[i])) {
			command_help(c);
			return CK_OK;
		}
	}
	cli->command = c;
	ck_status status = CK_OK;
	for (int i = 2; i < cli->argc && status == CK_OK; i++) {
		if (cli->argv[i][0] == '-')
			status = ck_options_read(&cli->options, c->takes, c->name, cli->argv, cli->argc, &i, err);
		else
			status = read_subject(cli, cli->argv[i], err);
	}
	if (status == CK_OK && c->subject && c->subject[0] != '[' && !cli->subject)
		return strcmp(c->subject, "MODEL") == 0
			   ? ck_fail(err, CK_USAGE, "%s needs a MODEL: ckbench %s MODEL (see 'ckbench list models')", c->name,
				     c->name)
			   : ck_fail(err, CK_USAGE, "%s needs %s (see 'ckbench %s --help')", c->name, c->subject, c->name);
	return status;
}

/* CK_OK with cli->command NULL: all that was asked for is done (help, version). */
static ck_status read_line(ck_cli *cli, ck_err *err)
{
	if (cli->argc < 2) {
		help();
		return ck_fail(err, CK_USAGE, "which command? 'ckbench sweep mlp' is a good one to begin with");
	}
	const char *first = cli->argv[1];
	bool version = strcmp(first, "--version") == 0;
	if (!version && !asks_for_help(first))
		return read_command(cli, err);
	if (cli->argc > 2)
		return ck_fail(err, CK_USAGE,
			       "%s stands alone, but was given '%.60s'; for a command's help: ckbench COMMAND --help", first,
			       cli->argv[2]);
	if (version)
		printf("ckbench %s (%s)\n", CK_VERSION, CK_GIT);
	else
		help();
	return CK_OK;
}

/* Where the standard files are closed, the next ones that are opened would take their numbers, and be read and written in
 * their stead. On these, reading finds the end and writing fails. */
static void fill_standard_files(void)
{
	int fd;
	do
		fd = open("/dev/null", O_RDONLY);
	while (fd >= 0 && fd <= STDERR_FILENO);
	close(fd);
}

int main(int argc, char **argv)
{
	ck_cli cli = {.argc = argc, .argv = argv};
	ck_err err = {""};
	fill_standard_files();
	signal(SIGXFSZ, SIG_IGN); /* a file that grows too long (ulimit -f) is an error like a full disk, to be told */
	ck_options_preset(&cli.options);
	cli.subjects = ck_alloc((size_t)argc, sizeof *cli.subjects);
	ck_status status = read_line(&cli, &err);
	if (status == CK_OK && cli.command)
		status = cli.command->run(&cli, &err);
	if (ck_print("", &err) != CK_OK)
		status = CK_MISSING;
	if (status != CK_OK && err.text[0])
		ck_complain("%s", err.text);
	free(cli.subjects);
	return status == CK_OK && *ck_interrupted ? 128 + *ck_interrupted : (int)status;
}
