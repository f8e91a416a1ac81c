#define _GNU_SOURCE
#include "harness/cli/interrupt.h"

#include <string.h>
#include <unistd.h>

#include "harness/record/file.h"

static volatile sig_atomic_t came, keeping;
const volatile sig_atomic_t *const ck_interrupted = &came;

static void tell(const char *remark)
{
	ssize_t told = write(STDERR_FILENO, remark, strlen(remark));
	(void)told; /* with nobody there to read it, it ends all the same */
}

static void handle(int signal)
{
	if (!keeping)
		tell("\nckbench: interrupted: nothing was begun, so nothing is written\n");
	if (!keeping || came) {
		ck_file_abandon();
		_exit(128 + signal);
	}
	came = signal;
	tell("\nckbench: finishing what is under way; once more to stop at once\n");
}

void ck_interrupt_keep(void)
{
	keeping = 1;
}

void ck_interrupt_watch(void)
{
	struct sigaction action;
	memset(&action, 0, sizeof action);
	action.sa_handler = handle;
	action.sa_flags = SA_RESTART;
	const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
		struct sigaction before;
		/* A shell's background job and nohup ignore some of them; so be it. */
		if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
			sigaction(signals[i], &action, NULL);
	}
}
