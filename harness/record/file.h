/* Files whole or not at all: written under a temporary name in the same folder, flushed to the disk, then renamed. An older
 * file is never overwritten unless `force` says so. A link is followed; a character device (/dev/null) is written straight, a
 * pipe is refused. */
#ifndef CK_FILE_H
#define CK_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/status.h"

/* CK_USAGE: there is a file already, or something that is none. CK_MISSING: the folder, the right or the space to write is. Nothing is left behind. */
ck_status ck_file_write(const char *path, const void *data, size_t bytes, bool force, ck_err *err);

/* Beforehand, so that an hour's measuring does not end in a refusal: could ck_file_write(path, …) succeed, and could
 * ck_folder_make(path, …) and files in it? They leave nothing behind. `coming`: a folder that will have been made until then, or
 * NULL. */
ck_status ck_file_writable(const char *path, bool force, const char *coming, ck_err *err);
ck_status ck_folder_writable(const char *path, ck_err *err);

/* To the standard output, at once. CK_MISSING when it does not arrive: a full disk must not pass for success. */
ck_status ck_print(const char *text, ck_err *err);

bool ck_file_exists(const char *path);

/* Makes the folder and those above it; fine when it is there. */
ck_status ck_folder_make(const char *path, ck_err *err);

/* For a signal handler that is about to end the program: removes the temporary file, if one is being written. */
void ck_file_abandon(void);

#endif
