/* Status codes and the one error message that goes with them.
 *
 * A function that can fail returns ck_status and, on failure, leaves a message in the ck_err it was given: what was wrong
 * with what, and what to do about it. The codes are the program's exit statuses (README, "Exit status"). */
#ifndef CK_STATUS_H
#define CK_STATUS_H

typedef enum ck_status {
	CK_OK = 0,
	CK_FAILED = 1,  /* a check did not hold */
	CK_USAGE = 2,   /* wrong usage or bad input */
	CK_MISSING = 3, /* something needed is missing: a device, memory, a file's folder */
} ck_status;

/* Caller-owned, may live on the stack; empty text means no error. Messages that do not fit are cut, never overrun. */
typedef struct ck_err {
	char text[1024];
} ck_err;

/* Formats the message and returns `status`, so that a caller can write `return ck_fail(err, CK_USAGE, "…", …)`.
 * A message that is already there is kept: the first fault is the one to tell. err may be NULL. */
ck_status ck_fail(ck_err *err, ck_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
