#define _GNU_SOURCE /* renameat2 */
#include "harness/record/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/alloc.h"

enum { FILE_MOST = 256 << 20 };

/* The temporary file under way, for ck_file_abandon: a signal handler can be given nothing. `pending` is set only while the
 * name is whole. */
static char pending_name[PATH_MAX];
static volatile sig_atomic_t pending;

void ck_file_abandon(void)
{
	if (pending)
		unlink(pending_name);
	pending = 0;
}

ck_status ck_print(const char *text, ck_err *err)
{
	if (fputs(text, stdout) >= 0 && fflush(stdout) == 0 && !ferror(stdout))
		return CK_OK;
	return ck_fail(err, CK_MISSING, "cannot write to the standard output: %s; send it elsewhere", strerror(errno));
}

bool ck_file_exists(const char *path)
{
	struct stat s;
	return lstat(path, &s) == 0;
}

static const char *remedy(int error)
{
	switch (error) {
	case ENOSPC:
	case EDQUOT:
		return "free some space or choose another place";
	case EACCES:
	case EPERM:
	case EROFS:
		return "choose a place that you may write to";
	case ENOENT:
		return "make its folder first, or choose another place";
	case ENOTDIR:
		return "a file stands where a folder is needed; choose another place";
	default:
		return "choose another place";
	}
}

static ck_status cannot_write(const char *path, int error, ck_err *err)
{
	return ck_fail(err, CK_MISSING, "cannot write %s: %s; %s", path, strerror(error), remedy(error));
}

static ck_status is_there(const char *path, ck_err *err)
{
	return ck_fail(err, CK_USAGE, "%s exists already; choose another name, or give --force to replace it", path);
}

static bool write_all(int fd, const char *data, size_t bytes)
{
	while (bytes > 0) {
		ssize_t n = write(fd, data, bytes);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return false;
		data += n;
		bytes -= (size_t)n;
	}
	return true;
}

static ck_status write_straight(const char *path, const void *data, size_t bytes, ck_err *err)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool fine = fd >= 0 && write_all(fd, data, bytes);
	int error = errno;
	if (fd >= 0 && close(fd) != 0 && fine)
		fine = false, error = errno;
	return fine ? CK_OK : cannot_write(path, error, err);
}

/* Gives the temporary file its name. Without force, in one step with the question whether that name is free; file systems
 * that cannot do so (NFS) can link. */
static bool publish(const char *path, bool force)
{
	if (force)
		return rename(pending_name, path) == 0;
	if (renameat2(AT_FDCWD, pending_name, AT_FDCWD, path, RENAME_NOREPLACE) == 0)
		return true;
	return (errno == EINVAL || errno == ENOSYS) && link(pending_name, path) == 0 && unlink(pending_name) == 0;
}

static bool write_pending(int fd, const void *data, size_t bytes)
{
	mode_t mask = umask(0);
	umask(mask);
	bool fine = write_all(fd, data, bytes) && fchmod(fd, 0666 & ~mask) == 0 && fsync(fd) == 0;
	int error = errno;
	if (close(fd) != 0 && fine)
		return false;
	errno = error;
	return fine;
}

static ck_status write_whole(const char *path, const void *data, size_t bytes, bool force, ck_err *err)
{
	if ((size_t)snprintf(pending_name, sizeof pending_name, "%s.XXXXXX", path) >= sizeof pending_name)
		return cannot_write(path, ENAMETOOLONG, err);
	int fd = mkostemp(pending_name, O_CLOEXEC);
	if (fd < 0)
		return cannot_write(path, errno, err);
	pending = 1;
	bool fine = write_pending(fd, data, bytes) && publish(path, force);
	int error = errno;
	if (fine)
		pending = 0;
	else
		ck_file_abandon();
	if (fine)
		return CK_OK;
	return error == EEXIST ? is_there(path, err) : cannot_write(path, error, err);
}

ck_status ck_file_write(const char *path, const void *data, size_t bytes, bool force, ck_err *err)
{
	struct stat s;
	if (stat(path, &s) == 0) {
		if (S_ISDIR(s.st_mode))
			return cannot_write(path, EISDIR, err);
		if (!S_ISREG(s.st_mode))
			return write_straight(path, data, bytes, err);
		if (!force)
			return is_there(path, err);
	}
	return write_whole(path, data, bytes, force, err);
}

/* The folder that `path` lies in, in fresh memory. */
static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	if (!slash)
		return ck_text(".");
	return slash == path ? ck_text("/") : ck_text("%.*s", (int)(slash - path), path);
}

/* 0, or the errno that making a file in this folder meets. Tried out: permission bits say little to root or to /proc. */
static int folder_error(const char *folder)
{
	char *probe = ck_text("%s/.ckbench.XXXXXX", folder);
	int fd = mkostemp(probe, O_CLOEXEC), error = fd < 0 ? errno : 0;
	if (fd >= 0) {
		unlink(probe);
		close(fd);
	}
	free(probe);
	return error;
}

ck_status ck_folder_writable(const char *path, ck_err *err)
{
	/* The nearest folder on the way that is there has to let us make the others in it. */
	char *folder = ck_text("%s", path);
	while (!ck_file_exists(folder) && errno == ENOENT) {
		char *above = folder_of(folder);
		free(folder);
		folder = above;
	}
	int error = folder_error(folder);
	free(folder);
	return error ? cannot_write(path, error, err) : CK_OK;
}

ck_status ck_file_writable(const char *path, bool force, ck_err *err)
{
	struct stat s;
	if (stat(path, &s) == 0) {
		if (S_ISDIR(s.st_mode))
			return cannot_write(path, EISDIR, err);
		if (!S_ISREG(s.st_mode))
			return access(path, W_OK) == 0 ? CK_OK : cannot_write(path, errno, err);
		if (!force)
			return is_there(path, err);
	}
	char *folder = folder_of(path);
	int error = folder_error(folder);
	free(folder);
	return error ? cannot_write(path, error, err) : CK_OK;
}

ck_status ck_folder_make(const char *path, ck_err *err)
{
	char *part = ck_text("%s", path);
	int error = 0;
	for (char *at = part + 1; !error; at++) {
		char held = *at;
		if (held != '/' && held)
			continue;
		*at = 0;
		if (mkdir(part, 0777) != 0 && errno != EEXIST)
			error = errno;
		*at = held;
		if (!held)
			break;
	}
	struct stat s;
	if (!error && (stat(path, &s) != 0 || !S_ISDIR(s.st_mode)))
		error = ENOTDIR;
	free(part);
	return error ? cannot_write(path, error, err) : CK_OK;
}

ck_status ck_file_read(const char *path, char **data, size_t *bytes, ck_err *err)
{
	*data = NULL;
	*bytes = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return ck_fail(err, CK_USAGE, "cannot read %s: %s; check the name", path, strerror(errno));
	int capacity = 0, n = 0;
	ssize_t got = 0;
	do {
		n += (int)got;
		*data = ck_grow(*data, &capacity, n + 4096, 1);
		got = read(fd, *data + n, (size_t)(capacity - n - 1));
	} while (n <= FILE_MOST && (got > 0 || (got < 0 && errno == EINTR && (got = 0, true))));
	int error = errno;
	close(fd);
	if (got < 0)
		ck_fail(err, CK_USAGE, "cannot read %s: %s; check the name", path, strerror(error));
	else if (n > FILE_MOST)
		ck_fail(err, CK_USAGE, "%s is longer than %d MiB, so it is no file of ckbench's; check the name", path,
			FILE_MOST >> 20);
	else {
		(*data)[n] = 0;
		*bytes = (size_t)n;
		return CK_OK;
	}
	free(*data);
	*data = NULL;
	return CK_USAGE;
}
