/* The program: finds the subcommand, reads its options, runs it, tells what went wrong. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/cli/cli.h"
#include "harness/cli/interrupt.h"
#include "harness/cli/wrap.h"
#include "harness/record/file.h"
#include "harness/record/version.h"

extern const ck_command ck_command_list, ck_command_parity, ck_command_sweep, ck_command_plan, ck_command_env, ck_command_peak;

/* In the order of the help. */
static const ck_command *const commands[] = {
    &ck_command_list, &ck_command_parity, &ck_command_sweep, &ck_command_plan, &ck_command_env, &ck_command_peak,
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
	if (cli->subject)
		return ck_fail(err, CK_USAGE, "%s takes one %s, but was given '%.60s' and '%.60s'", c->name, c->subject,
			       cli->subject, word);
	cli->subject = word;
	return CK_OK;
}

/* CK_OK with cli->command NULL: all that was asked for is done (help, version). */
static ck_status read_line(ck_cli *cli, ck_err *err)
{
	const char *first = cli->argc > 1 ? cli->argv[1] : "--help";
	if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0) {
		help();
		return cli->argc > 1 ? CK_OK
				     : ck_fail(err, CK_USAGE, "which command? 'ckbench sweep mlp' is a good one to begin with");
	}
	if (strcmp(first, "--version") == 0) {
		printf("ckbench %s (%s)\n", CK_VERSION, CK_GIT);
		return CK_OK;
	}
	const ck_command *c = find(first);
	if (!c)
		return unknown(first, err);
	for (int i = 2; i < cli->argc; i++) {
		if (strcmp(cli->argv[i], "--help") == 0 || strcmp(cli->argv[i], "-h") == 0) {
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
		return ck_fail(err, CK_USAGE, "%s needs a %s: ckbench %s %s (see 'ckbench list models')", c->name, c->subject,
			       c->name, c->subject);
	return status;
}

int main(int argc, char **argv)
{
	ck_cli cli = {.argc = argc, .argv = argv};
	ck_err err = {""};
	signal(SIGXFSZ, SIG_IGN); /* a file that grows too long (ulimit -f) is an error like a full disk, to be told */
	ck_options_preset(&cli.options);
	ck_status status = read_line(&cli, &err);
	if (status == CK_OK && cli.command)
		status = cli.command->run(&cli, &err);
	if (ck_print("", &err) != CK_OK)
		status = CK_MISSING;
	if (status != CK_OK && err.text[0])
		fprintf(stderr, "ckbench: %s\n", err.text);
	return status == CK_OK && *ck_interrupted ? 128 + *ck_interrupted : (int)status;
}
