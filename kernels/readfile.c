#define _GNU_SOURCE
#include "kernels/readfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *ck_file_kind(mode_t mode)
{
	return S_ISDIR(mode) ? "a folder" : S_ISFIFO(mode) ? "a pipe" : S_ISSOCK(mode) ? "a socket" : "a device";
}

/* Fills data[0 .. bytes - 1]. 0, or the errno of the fault; -1: the file ended before. */
static int fill(int fd, char *data, size_t bytes)
{
	for (size_t done = 0; done < bytes;) {
		ssize_t n = read(fd, data + done, bytes - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? errno : -1;
		done += (size_t)n;
	}
	return 0;
}

static ck_status read_open(int fd, const char *path, size_t most, char **data, size_t *bytes, ck_err *err)
{
	struct stat info;
	if (fstat(fd, &info) != 0)
		return ck_fail(err, CK_USAGE, "cannot read '%.200s': %s", path, strerror(errno));
	if (!S_ISREG(info.st_mode))
		return ck_fail(err, CK_USAGE,
			       "'%.200s' is not a regular file, but %s; check the name, or put its content into a file first",
			       path, ck_file_kind(info.st_mode));
	size_t size = (size_t)info.st_size;
	if (size > most)
		return ck_fail(err, CK_USAGE, "'%.200s' is longer than %zu MiB, so it is not what is needed; check the name",
			       path, most >> 20);
	*data = malloc(size + 1);
	if (!*data)
		return ck_fail(err, CK_MISSING, "no memory for the %zu bytes of '%.200s'; take a smaller file", size, path);
	int error = fill(fd, *data, size);
	if (error)
		return ck_fail(err, CK_USAGE, "cannot read all of '%.200s': %s", path,
			       error > 0 ? strerror(error) : "it became shorter meanwhile");
	(*data)[size] = 0;
	*bytes = size;
	return CK_OK;
}

ck_status ck_file_read(const char *path, size_t most, char **data, size_t *bytes, ck_err *err)
{
	*data = NULL;
	*bytes = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* without waiting for a pipe's other end */
	if (fd < 0)
		return ck_fail(err, CK_USAGE, "cannot open '%.200s': %s; check the name", path, strerror(errno));
	ck_status status = read_open(fd, path, most, data, bytes, err);
	close(fd);
	if (status != CK_OK) {
		free(*data);
		*data = NULL;
	}
	return status;
}
