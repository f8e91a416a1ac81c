/* What the faults share. */
#ifndef CK_FAULT_INTERNAL_H
#define CK_FAULT_INTERNAL_H

#include "harness/fault/fault.h"
#include "harness/run/program.h"

struct ck_faulty {
	const ck_fault *fault; /* NULL: none */
	const ck_program *program;
	const ck_graph *graph;
	ck_memory memory;
	long hits;           /* how often the fault changed anything: a bit, a pointer, whether an op runs */
	uint64_t shapes;     /* of what recomputes make: number, shapes, dtypes */
	uint64_t next_block; /* of the stream, had no state been set */
	size_t none_peak;    /* live peak of plan none, bytes */
	void **kept;         /* by value: host copy of a tensor, or NULL; owned */
	float scale_left;    /* of the loss, at the end of plan none's training */
	void *scratch;       /* device memory for one tensor, as large as the largest; NULL until wanted */
};

/* Tables of faults end with a NULL name. */
extern const ck_fault ck__state_faults[], ck__random_faults[], ck__value_faults[], ck__gradient_faults[], ck__memory_faults[],
    ck__schedule_faults[], ck__scaler_faults[];

static inline const ck_op_info *ck__op(const ck_faulty *f, const ck_call *c)
{
	return &f->graph->ops[c->id];
}

static inline int ck__index(const ck_faulty *f, const ck_call *c)
{
	return (int)(c - f->program->calls);
}

/* A fault of the scaler, or none, in a short training. */
ck_status ck__scaler_try(const ck_fault_subject *s, ck_faulty *f, ck_fault_verdict *v, ck_err *err);

/* The call that runs op again, or NULL. */
const ck_call *ck__recompute_of(const ck_faulty *f, int op);
/* Whether anything reads the output of this F before it is made again: else it ran for its stash alone. */
bool ck__output_is_read(const ck_faulty *f, const ck_call *c);
/* The index of the last recompute in the program, or -1. */
int ck__last_recompute(const ck_program *p);

/* Tensors on the device, by way of the host. An edit changes n elements of type t at `host`; value v tells dtype and shape. */
typedef void ck_edit(ck_faulty *f, void *host, ck_dtype t, int64_t n);
/* Edits value v (or its gradient, which is of the same form) where it lies; a hit when any bit changed. */
void ck__edit(ck_faulty *f, ck_value v, void *device, ck_edit *edit);
void *ck__read(const ck_faulty *f, ck_value v, const void *device); /* fresh memory */
void ck__write(ck_faulty *f, ck_value v, void *device, const void *host);
/* Keeps a copy in f->kept[v], in place of an older one. */
void ck__keep(ck_faulty *f, ck_value v, const void *device);
/* Room on the device for any one value; NULL when there is none. */
void *ck__scratch(ck_faulty *f);

static inline double ck__get(const void *host, ck_dtype t, int64_t i)
{
	return t == CK_F64 ? ((const double *)host)[i] : (double)((const float *)host)[i];
}

static inline void ck__put(void *host, ck_dtype t, int64_t i, double x)
{
	if (t == CK_F64)
		((double *)host)[i] = x;
	else
		((float *)host)[i] = (float)x;
}

static inline bool ck__real(ck_dtype t)
{
	return t == CK_F64 || t == CK_F32;
}

#endif
