/* One op on one backend, driven by hand: values in as doubles, values out as doubles, on any ck_backend.
 *
 * A tensor of a call is a slot: an input, the output, a stash, the output's gradient, an input's gradient. Before each call what
 * the op has to write is filled with NaN patterns (bytes 0xFF), and so is the workspace; behind every buffer lies a guard that must
 * stay as it was. */
#ifndef CK_SUITE_OP_RUN_H
#define CK_SUITE_OP_RUN_H

#include <criterion/criterion.h>

#include "suite/device.h"
#include "suite/inputs/ops.h"

enum {
	OP_IN = 0,
	OP_OUT = OP_IN + CK_MAX_IN,
	OP_STASH = OP_OUT + CK_MAX_OUT,
	OP_DOUT = OP_STASH + CK_MAX_STASH,
	OP_DIN = OP_DOUT + 1,
	OP_SLOTS = OP_DIN + CK_MAX_IN
};

/* What every call draws its random numbers with. */
#define OP_SEED UINT64_C(0x0123456789abcdef)
enum { OP_STEP = 7, OP_NUMBER = 3 };

/* Masks over slots. */
enum {
	OP_RESULTS = 1 << OP_OUT | 3 << OP_STASH,       /* what a forward writes */
	OP_GRADIENTS = ((1 << CK_MAX_IN) - 1) << OP_DIN /* what a backward writes */
};

const char *op_slot_name(int slot);                         /* "in[0]", "dout", … */
ck_tensor_desc op_slot_desc(const ck_op_desc *d, int slot); /* CK_DTYPE_NONE: the op has no such tensor */

/* The values of all slots; NULL where the op has no such tensor. What is stored in 32 bits or fewer is exact in a double. */
typedef struct op_values {
	double *at[OP_SLOTS];
	int64_t n[OP_SLOTS];
} op_values;

/* Draws inputs, the output's gradient, and values for gradients to be added to. Exact in f32 and as the case stores them, the same for
 * each backend. */
op_values op_values_draw(const ck_op_case *c);
op_values op_values_copy(const op_values *v);
void op_values_free(op_values *v);
/* The nearest numbers of the slots in the mask that d's tensors can hold, and f32 as well. */
void op_values_round(op_values *v, const ck_op_desc *d, unsigned slots);

/* Half of the distance between a 16-bit type's numbers around v: what rounding to nearest can be off by. 0 for any other type. */
double op_half_spacing(ck_dtype t, double v);

/* The first difference in bits among the slots of the mask, told in text; NULL: none. Static text, overwritten by each call. */
const char *op_difference(const op_values *a, const op_values *b, unsigned slots);

typedef struct op_run {
	const ck_backend *backend;
	ck_device *device;
	ck_op_desc desc;
	ck_contract contract;
	ck_kernel *kernel;
	bool twice;
	void *memory[OP_SLOTS], *workspace;
	size_t bytes[OP_SLOTS], offset;
	char name[400]; /* backend, threads, needs, and how to run the case again */
} op_run;

/* needs: which gradients are wanted. The device is the caller's. */
void op_run_open(op_run *r, const ck_backend *backend, ck_device *device, const ck_op_case *c, unsigned needs);
/* The same, with every buffer `offset` bytes (a multiple of 64) further on than the allocator put it. */
void op_run_open_at(op_run *r, const ck_backend *backend, ck_device *device, const ck_op_case *c, unsigned needs,
		    size_t offset);
void op_run_close(op_run *r);

typedef struct op_how {
	bool recompute;     /* forward: not the first: no state is to change */
	bool forward_over;  /* forward: the output lies over the input that the contract names */
	bool every_pointer; /* backward: also pointers to what it must not read are given, not NULL */
	unsigned poison;    /* backward: slots filled with NaN patterns (indices: with other ones) */
	unsigned add;       /* backward: bit i: add to din[i] */
	bool over_dout;     /* backward: the gradient that the contract names lies over dout */
	bool over_own;      /* backward: the gradient that the contract names lies over its own saved input */
	bool no_dout;       /* backward: dout is NULL, its number is given as dloss */
	uint64_t block;     /* where the op's draws begin */
} op_how;

/* Runs forward or backward on copies of `v`; gives every slot's values after it. A backward takes inputs, output and stashes
 * from v: so a caller says what was saved. Gives way to a failed Criterion test when a guard was written over. */
op_values op_forward(op_run *r, const op_values *v, op_how how);
op_values op_backward(op_run *r, const op_values *v, op_how how);

/* Forward as trained, then backward on what it saved: every slot's values after both. */
op_values op_gradients(op_run *r, const op_values *v);

/* Whether the backward has to touch element e of the gradient of in[i] (qkv's three parts belong to different ops). */
bool op_touches(const op_run *r, int i, int64_t e);

/* Opens a backend's device under test, else its first; NULL, after telling why, when it cannot be had. */
ck_device *op_device(const ck_backend *b, int threads);

#endif
