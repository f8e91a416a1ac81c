/* The program's subcommands. Adding one is one file with a ck_command, and one line in main.c. */
#ifndef CK_CLI_H
#define CK_CLI_H

#include "harness/cli/options.h"

/* One command line, read. */
typedef struct ck_cli {
	const struct ck_command *command;
	const char *subject;   /* what the command is about, a MODEL mostly; NULL: nothing */
	const char **subjects; /* all of them, for a command that takes several; subject is the first */
	int nsubjects;
	ck_options options;
	int argc;
	char **argv;
} ck_cli;

typedef struct ck_command {
	const char *name;
	const char *subject; /* as the help shows it: "MODEL" must be given, "[models|…]" may be; NULL: takes none */
	const char *summary; /* one line; NULL: not listed, for the program's own use */
	const char *text;    /* more, for its help; NULL: none */
	bool several;        /* takes any number of subjects */
	unsigned takes;      /* CK_TAKES(…) | … */
	bool few_plans;      /* without a list of plans: a few, and not all that are distinct */
	/* The exit status. On failure the message may be empty: then all was said before. */
	ck_status (*run)(const ck_cli *cli, ck_err *err);
} ck_command;

#endif
