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
	size_t beside;       /* bytes that the fault holds beside the arena now … */
	size_t peak_beside;  /* … and the most that was held with them */
	void **kept;         /* by value: host copy of a tensor, or NULL; owned */
	float scale_left;    /* of the loss, at the end of plan none's training */
	void *scratch;       /* device memory for one tensor, as large as the largest; NULL until wanted */
};

/* Tables of faults end with a NULL name. */
extern const ck_fault ck__state_faults[], ck__random_faults[], ck__value_faults[], ck__gradient_faults[], ck__memory_faults[],
    ck__schedule_faults[], ck__precision_faults[], ck__scaler_faults[];

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
/* Whether another op does: the op's own backward may look at no more than signs (ReLU). */
bool ck__output_goes_on(const ck_faulty *f, const ck_call *c);
/* The index of the last recompute in the program, or -1. */
int ck__last_recompute(const ck_program *p);

/* The value and its gradient, as tensors. */
static inline ck_tensor_desc ck__tensor(const ck_faulty *f, ck_value v)
{
	return (ck_tensor_desc){f->graph->values[v].dtype, f->graph->values[v].shape};
}

static inline ck_tensor_desc ck__gradient(const ck_faulty *f, ck_value v)
{
	const ck_value_info *info = &f->graph->values[v];
	return (ck_tensor_desc){info->kind == CK_WEIGHT_COPY ? f->graph->real : info->dtype, info->shape};
}

/* A parameter, or the 16-bit copy that ops read in its place. */
static inline bool ck__is_weight(const ck_faulty *f, ck_value v)
{
	return f->graph->values[v].kind == CK_PARAM || f->graph->values[v].kind == CK_WEIGHT_COPY;
}

/* The parameter that weight v is a copy of, or v itself. */
static inline ck_value ck__master(const ck_faulty *f, ck_value v)
{
	return f->graph->values[v].kind == CK_WEIGHT_COPY ? f->graph->ops[f->graph->values[v].producer].in[0] : v;
}

/* Tensors on the device, by way of the host. An edit changes n elements of type t at `host`. */
typedef void ck_edit(ck_faulty *f, void *host, ck_dtype t, int64_t n);
size_t ck__bytes(ck_tensor_desc t);
/* Edits the tensor where it lies; a hit when any bit changed. */
void ck__edit(ck_faulty *f, ck_tensor_desc t, void *device, ck_edit *edit);
void *ck__read(const ck_faulty *f, ck_tensor_desc t, const void *device); /* fresh memory */
void ck__write(const ck_faulty *f, ck_tensor_desc t, void *device, const void *host);
/* Writes it; a hit when any bit changed. */
void ck__change(ck_faulty *f, ck_tensor_desc t, void *device, const void *host);
/* The tensor in dtype `to`, each element rounded once; fresh memory. */
void *ck__convert(ck_tensor_desc t, const void *host, ck_dtype to);
/* Keeps a copy in f->kept[v], in place of an older one. */
void ck__keep(ck_faulty *f, ck_value v, ck_tensor_desc t, const void *device);
/* Weight v as it is when its parameter is `factor` times what it is; fresh memory. */
void *ck__scaled_weight(const ck_faulty *f, ck_value v, double factor);
/* Room on the device for any one value; NULL when there is none. */
void *ck__scratch(ck_faulty *f);

/* What comparing shapes and dtypes sees of op o, described by d: the tensors that it makes, but not what they hold. */
uint64_t ck__shapes(const ck_op_desc *d, int o);

/* Runs a forward described by d with the draws of `a`, aside from the arena. in: host tensors as d has them; out, stash: fresh
 * memory. false: the backend does not run it. */
bool ck__run_aside(ck_faulty *f, const ck_args *a, const ck_op_desc *d, void *const in[], void **out, void *stash[]);

#endif
