/* Inside a program: its instructions with every pointer resolved to an offset in the arena. Shared by the files of run/. */
#ifndef CK_PROGRAM_H
#define CK_PROGRAM_H

#include "harness/run/run.h"

#define CK_NOWHERE ((size_t)-1) /* the offset of what is not there: NULL */

typedef struct ck_call {
	char code; /* 'F', 'B', 'D' */
	int id;
	bool recompute;       /* F: not the first of its op */
	bool zero[CK_MAX_IN]; /* B: fill din[i] with zeros first; its op writes only parts of it */
	bool acc[CK_MAX_IN];
	size_t in[CK_MAX_IN], out[CK_MAX_OUT], stash[CK_MAX_STASH], dout, din[CK_MAX_IN], workspace;
} ck_call;

/* Watches who owns every line of the arena while a program runs (watch.c): the check of what happens against what was planned. */
typedef struct ck_watch ck_watch;
ck_watch *ck__watch_open(const ck_program *p, ck_memory *m);
/* Before an F or B: its reads must own their bytes, its results take theirs. After it, or at a D: what ends gives its bytes back. */
ck_status ck__watch_before(ck_watch *w, const ck_call *c, ck_err *err);
void ck__watch_after(ck_watch *w, const ck_call *c);
/* Ends; gives the most bytes owned at once. */
size_t ck__watch_close(ck_watch *w);

#endif
