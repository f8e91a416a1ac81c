/* gnuplot as a child process: the script goes in, the image comes out, both through unnamed temporary files, so that neither
 * side waits for the other and nothing is left behind. */
#define _GNU_SOURCE /* memfd_create */
#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/record/plot.h"
#include "kernels/alloc.h"

extern char **environ;

static bool write_from_start(int fd, const char *data, size_t bytes)
{
	for (size_t done = 0; done < bytes;) {
		ssize_t n = pwrite(fd, data + done, bytes - done, (off_t)done);
		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	return true;
}

/* All that the file holds, with a terminating 0. */
static char *content(int fd, size_t *bytes)
{
	struct stat s;
	*bytes = 0;
	char *data = ck_alloc(fstat(fd, &s) == 0 ? (size_t)s.st_size + 1 : 1, 1);
	for (ssize_t n; *bytes < (size_t)s.st_size; *bytes += (size_t)n)
		if ((n = pread(fd, data + *bytes, (size_t)s.st_size - *bytes, (off_t)*bytes)) <= 0)
			break;
	return data;
}

/* The child's exit status, -1 when it could not be started (errno tells). It does not get our Ctrl-C: a plot takes a moment,
 * and it is of what is already measured. Other than us, it had better be killed than go on when its image grows too long. */
static int run(int in, int out, int complaints)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t too_long;
	sigemptyset(&too_long);
	sigaddset(&too_long, SIGXFSZ);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&files, complaints, STDERR_FILENO);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigdefault(&attributes, &too_long);
	char *argv[] = {"gnuplot", "-", NULL};
	pid_t child;
	int error = posix_spawnp(&child, "gnuplot", &files, &attributes, argv, environ), status = 0;
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attributes);
	if (error) {
		errno = error;
		return -1;
	}
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		continue;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* gnuplot does not always notice that it could not write all. */
static bool is_whole(const char *ending, const char *image, size_t bytes)
{
	static const struct {
		const char *ending, *last;
	} forms[] = {{"svg", "</svg>"}, {"png", "IEND\xae\x42\x60\x82"}, {"pdf", "%%EOF"}};
	while (bytes > 0 && image[bytes - 1] == '\n')
		bytes--;
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		size_t n = strlen(forms[i].last);
		if (strcmp(forms[i].ending, ending) == 0)
			return bytes >= n && memcmp(image + bytes - n, forms[i].last, n) == 0;
	}
	return false;
}

/* Several lines as one, without the blanks by which gnuplot points at a place in its script. */
static void join_lines(char *text)
{
	char *to = text;
	for (const char *from = text; *from; from++) {
		char c = isspace((unsigned char)*from) ? ' ' : *from;
		if (c != ' ' || (to > text && to[-1] != ' '))
			*to++ = c;
	}
	*to = 0;
}

ck_status ck__gnuplot(const char *script, size_t length, const char *ending, char **image, size_t *bytes, ck_err *err)
{
	int in = memfd_create("script", MFD_CLOEXEC), out = memfd_create("image", MFD_CLOEXEC);
	int complaints = memfd_create("complaints", MFD_CLOEXEC);
	int outcome = -1;
	*image = NULL;
	if (in >= 0 && out >= 0 && complaints >= 0 && write_from_start(in, script, length))
		outcome = run(in, out, complaints);
	int error = errno;
	ck_status status = CK_OK;
	if (outcome < 0) {
		status = ck_fail(err, CK_MISSING, "cannot run gnuplot: %s; install it (Debian: gnuplot-nox) to get plots",
				 strerror(error));
	} else {
		size_t n;
		char *text = content(complaints, &n);
		*image = content(out, bytes);
		join_lines(text);
		if (outcome != 0 && *text)
			status = ck_fail(err, CK_MISSING, "gnuplot failed: %.400s; version 5.2 or later is needed", text);
		else if (outcome != 0 || !is_whole(ending, *image, *bytes))
			status = ck_fail(
			    err, CK_MISSING,
			    "gnuplot left the %s unfinished; see that memory and file sizes are not limited (ulimit -a)",
			    ending);
		free(text);
	}
	if (status != CK_OK) {
		free(*image);
		*image = NULL;
	}
	close(in);
	close(out);
	close(complaints);
	return status;
}
