/* A case: model, device and settings of one command line, opened and ready for programs. */
#ifndef CK_CASE_H
#define CK_CASE_H

#include "harness/cli/cli.h"
#include "harness/record/result.h"
#include "harness/run/batch.h"
#include "models/models.h"

typedef struct ck_case {
	const ck_cli *cli;
	ck_settings settings;
	char *model; /* the model with every setting, as text that reads back */
	const ck_backend *backend;
	ck_open_options opened; /* how the device was */
	ck_device *device;
	ck_graph *graph;
	ck_session *session;
	ck_batch *batch; /* NULL: drawn from the seed */
	uint64_t seed;
	ck_optimizer optimizer; /* of commands that train: the session is one for training then */
	bool scales;            /* there is a scaler, the session's too */
	ck_scaler_options scaler;
	int accumulate; /* micro-batches a step; above 1 the session accumulates */
} ck_case;

/* input_grad: the gradient of a real-valued input is computed too. On failure nothing is left to close. */
ck_status ck_case_open(const ck_cli *cli, bool input_grad, ck_case *c, ck_err *err);
void ck_case_close(ck_case *c);

/* The options of a case that are passed on as they were given: the others stand in the model's text (dropout), or are told as what
 * came of them. */
#define CK_CASE_GIVEN (CK_TAKES_CASE & ~(CK_TAKES(device) | CK_TAKES(threads) | CK_TAKES(seed) | CK_TAKES(dropout)))
/* The words that --amp takes, NULL-terminated. */
extern const char *const ck_amp_words[];

/* What ck_memory_init takes as the batch. */
const void *const *ck_case_batch(const ck_case *c);
/* The command line that does the same again, every setting named; for `command`, followed by `more` ("" for nothing). Fresh
 * memory. */
char *ck_case_line(const ck_case *c, const char *command, const char *more);
/* The facts of the case and its device, for a record. */
void ck_case_describe(const ck_case *c, ck_result *r);

#endif
