#define _GNU_SOURCE
#include "harness/cli/interrupt.h"

#include <string.h>
#include <unistd.h>

#include "harness/record/file.h"

static volatile sig_atomic_t came;
const volatile sig_atomic_t *const ck_interrupted = &came;

static void handle(int signal)
{
	static const char remark[] = "\nckbench: finishing what is under way; once more to stop at once\n";
	if (came) {
		ck_file_abandon();
		_exit(128 + signal);
	}
	came = signal;
	if (write(STDERR_FILENO, remark, sizeof remark - 1) < 0)
		came = signal; /* nobody to tell; it ends all the same */
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
