/* Reading the files that users name: schedules, data sets. */
#ifndef CK_READFILE_H
#define CK_READFILE_H

#include <stddef.h>
#include <sys/types.h>

#include "kernels/status.h"

/* The whole file in fresh memory, with a terminating 0 that `bytes` does not count. Only regular files: a pipe would have us
 * wait for who knows how long, and could not be read a second time. CK_USAGE when it cannot be read, since the name came from
 * the user, or has more than `most` bytes; CK_MISSING when there is no memory for it. */
ck_status ck_file_read(const char *path, size_t most, char **data, size_t *bytes, ck_err *err);

/* "a pipe", "a folder", … of what is no regular file. */
const char *ck_file_kind(mode_t mode);

#endif
