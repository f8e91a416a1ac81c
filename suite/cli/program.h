/* The built program under test, as a user runs it: a shell's command line in an empty folder, and what came of it. */
#ifndef CK_TEST_PROGRAM_H
#define CK_TEST_PROGRAM_H

#include <criterion/criterion.h>
#include <stddef.h>

typedef struct outcome {
	char folder[64]; /* where it ran; empty before, and removed by outcome_free with all in it */
	int status;      /* exit status, 128 + signal as a shell has it */
	char *out, *err; /* all that it printed */
	char *files;     /* what it left behind: relative paths, sorted, a blank after each */
} outcome;

/* `ck` in the command is the program. */
outcome run(const char *command);
/* Runs in the folder of an earlier outcome and updates it. */
void run_again(outcome *o, const char *command);
void outcome_free(outcome *o);

/* The file in the outcome's folder as text. Ends the test when it is not there. */
char *read_output(const outcome *o, const char *name);

#endif
