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
#include "kernels/readfile.h"

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
	return ck_fail(err, CK_MISSING, "cannot write %.200s: %s; %s", path, strerror(error), remedy(error));
}

static ck_status is_there(const char *path, ck_err *err)
{
	return ck_fail(err, CK_USAGE, "%.200s exists already; choose another name, or give --force to replace it", path);
}

/* ---- where to write ------------------------------------------------------------------------------------------------------ */

/* The file that a path leads to, by what stands there. */
typedef struct place {
	char *path;  /* owned; with links followed, so that the file behind a link is replaced and not the link */
	bool device; /* a character device, written straight: there is nothing to rename onto */
} place;

static ck_status find_place(const char *path, bool force, place *p, ck_err *err)
{
	struct stat s;
	*p = (place){0};
	bool taken = ck_file_exists(path);
	if (!taken && errno != ENOENT)
		return cannot_write(path, errno, err);
	if (taken && stat(path, &s) != 0)
		return ck_fail(err, CK_USAGE, "%.200s is a link to nothing (%s); remove it or choose another name", path,
			       strerror(errno));
	if (taken && S_ISDIR(s.st_mode))
		return cannot_write(path, EISDIR, err);
	p->device = taken && S_ISCHR(s.st_mode);
	if (taken && !p->device && !S_ISREG(s.st_mode))
		return ck_fail(err, CK_USAGE,
			       "%.200s is not a regular file, but %s; choose another name, or - for the standard output", path,
			       ck_file_kind(s.st_mode));
	if (taken && !p->device && !force)
		return is_there(path, err);
	p->path = taken ? realpath(path, NULL) : ck_text("%s", path);
	return p->path ? CK_OK : cannot_write(path, errno, err);
}

/* The folder that `path` lies in, in fresh memory. */
static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	if (!slash)
		return ck_text(".");
	return slash == path ? ck_text("/") : ck_text("%.*s", (int)(slash - path), path);
}

/* ---- writing ------------------------------------------------------------------------------------------------------------- */

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
	int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	bool fine = fd >= 0 && write_all(fd, data, bytes);
	int error = errno;
	if (fd >= 0 && close(fd) != 0 && fine)
		fine = false, error = errno;
	return fine ? CK_OK : cannot_write(path, error, err);
}

/* A new file of no name that matters, in this folder. Returns its descriptor, or -1 with errno; `name` has PATH_MAX bytes. */
static int open_temporary(const char *folder, char *name)
{
	if (snprintf(name, PATH_MAX, "%s/.ckbench.XXXXXX", folder) >= PATH_MAX) {
		errno = ENAMETOOLONG;
		return -1;
	}
	return mkostemp(name, O_CLOEXEC);
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
	char *folder = folder_of(path);
	int fd = open_temporary(folder, pending_name);
	free(folder);
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
	place p;
	ck_status status = find_place(path, force, &p, err);
	if (status == CK_OK)
		status = p.device ? write_straight(p.path, data, bytes, err) : write_whole(p.path, data, bytes, force, err);
	free(p.path);
	return status;
}

/* ---- beforehand ---------------------------------------------------------------------------------------------------------- */

/* Could a file be made in this folder? Tried out: permission bits say little to root or to /proc. `path` is what to call it. */
static ck_status try_folder(const char *folder, const char *path, ck_err *err)
{
	char name[PATH_MAX];
	int fd = open_temporary(folder, name);
	if (fd < 0 && errno == ENOENT) /* a link to nothing, a folder that was removed, /proc */
		return ck_fail(err, CK_MISSING, "cannot write %.200s: %.200s takes no new files; choose another place", path,
			       folder);
	if (fd < 0)
		return cannot_write(path, errno, err);
	unlink(name);
	close(fd);
	return CK_OK;
}

/* Tries the nearest folder on the way that is there: it has to let us make the others in it. */
ck_status ck_folder_writable(const char *path, ck_err *err)
{
	char *folder = ck_text("%s", path);
	while (!ck_file_exists(folder) && errno == ENOENT) {
		char *above = folder_of(folder);
		free(folder);
		folder = above;
	}
	ck_status status = try_folder(folder, path, err);
	free(folder);
	return status;
}

/* Is `folder` the folder `other`, or on the way to it? */
static bool leads_to(const char *folder, const char *other)
{
	size_t n = strlen(folder);
	return strncmp(folder, other, n) == 0 && (other[n] == '/' || !other[n]);
}

ck_status ck_file_writable(const char *path, bool force, const char *coming, ck_err *err)
{
	place p;
	ck_status status = find_place(path, force, &p, err);
	if (status != CK_OK)
		return status;
	char *folder = folder_of(p.path);
	if (p.device)
		status = access(p.path, W_OK) == 0 ? CK_OK : cannot_write(path, errno, err);
	else if (ck_file_exists(folder))
		status = try_folder(folder, path, err);
	else
		status = coming && leads_to(folder, coming) ? ck_folder_writable(folder, err) : cannot_write(path, errno, err);
	free(folder);
	free(p.path);
	return status;
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
