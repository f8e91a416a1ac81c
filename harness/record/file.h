/* Files whole or not at all: written under a temporary name in the same folder, flushed to the disk, then renamed. An older
 * file is never overwritten unless `force` says so; what is no regular file (/dev/stdout, a pipe) is written straight. */
#ifndef CK_FILE_H
#define CK_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/status.h"

/* CK_USAGE: there is a file already. CK_MISSING: the folder, the right or the space to write is. Nothing is left behind. */
ck_status ck_file_write(const char *path, const void *data, size_t bytes, bool force, ck_err *err);

/* Beforehand, so that an hour's measuring does not end in a refusal: could ck_file_write(path, …) succeed, and could
 * ck_folder_make(path, …) and files in it? They leave nothing behind. */
ck_status ck_file_writable(const char *path, bool force, ck_err *err);
ck_status ck_folder_writable(const char *path, ck_err *err);

/* To the standard output, at once. CK_MISSING when it does not arrive: a full disk must not pass for success. */
ck_status ck_print(const char *text, ck_err *err);

bool ck_file_exists(const char *path);

/* The whole file in fresh memory, with a terminating 0 that `bytes` does not count. Refuses folders, and what is longer than
 * any record or schedule (256 MiB). CK_USAGE when it cannot be read: the name came from the user. */
ck_status ck_file_read(const char *path, char **data, size_t *bytes, ck_err *err);

/* Makes the folder and those above it; fine when it is there. */
ck_status ck_folder_make(const char *path, ck_err *err);

/* For a signal handler that is about to end the program: removes the temporary file, if one is being written. */
void ck_file_abandon(void);

#endif
