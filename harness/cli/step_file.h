/* One training step as the tensors of a file (results/SCHEMA.md, "The step file"): which there are, how each is called and laid
 * out, and the ways between them and a graph's values. */
#ifndef CK_STEP_FILE_H
#define CK_STEP_FILE_H

#include "harness/cli/case.h"
#include "harness/record/safetensors.h"

#define CK_STEP_SCHEMA "ckbench-step/1"

typedef enum ck_step_role {
	CK_STEP_VALUE,    /* before the step: parameters, buffers, batch */
	CK_STEP_AFTER,    /* buffers after it */
	CK_STEP_GRADIENT, /* of a parameter */
	CK_STEP_LOGITS,
	CK_STEP_LOSS,
	CK_STEP_MASK, /* of an op that drops */
} ck_step_role;

typedef struct ck_step_tensor {
	ck_step_role role;
	int id; /* the value; the op, for a mask */
	char *name;
	const char *dtype;     /* safetensors' */
	ck_shape shape;        /* in the file; nd = 0: one number */
	int axis[CK_MAX_DIMS]; /* the file's extent i is our extent axis[i] */
} ck_step_tensor;

typedef struct ck_step_tensors { /* ck_step_tensors_free */
	const ck_graph *graph;
	ck_step_tensor *at;
	int n, capacity;
} ck_step_tensors;

/* All tensors of a step of this case. */
ck_step_tensors ck_step_tensors_of(const ck_case *c);
void ck_step_tensors_free(ck_step_tensors *t);

/* The value that the loss takes as logits. */
ck_value ck_step_logits(const ck_graph *g);

/* Between the file and host memory in our own order and dtype, of the size of the value (or of the mask, one byte each). */
void ck_step_put(const ck_step_tensors *t, int i, const ck_safetensors *f, const void *host);
void ck_step_get(const ck_step_tensors *t, int i, const ck_safetensors *f, void *host);

/* A file that a step may start from has all weights, buffers, batch and masks, with the right dtypes and shapes and whole numbers
 * in range, and no tensor that belongs to no step of this case. CK_USAGE, with what is wrong; `path` is for the message. */
ck_status ck_step_check(const ck_step_tensors *t, const ck_safetensors *f, const char *path, ck_err *err);

#endif
