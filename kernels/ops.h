/* The ops: what each computes, what its backward reads, what it costs. And the backend: who computes it.
 *
 * An op is described by a ck_op_desc: its kind, its attributes, and dtype and shape of every tensor it touches. From that alone
 *   - ck_op_contract() tells planners and schedules what the backward needs,
 *   - a backend prepares a kernel (primitives created, workspace sized), which is then run any number of times.
 * A desc holds no names, values or pointers, so equal ops share one kernel.
 *
 * Tensor order per kind. M is the product of all leading extents; [..] is optional and present by attribute.
 *
 * Dtypes. `real` is the dtype of the graph's arithmetic (f32, or f64 for the reference backend). What is marked ' is stored in
 * real or, under mixed precision, in one of the 16-bit types, all of an op's marked tensors in the same; only an addend (r of LINEAR
 * and DROPOUT, an operand of ADD) may be real where the rest is 16-bit, and then y is real. All else is real. Arithmetic, sums and
 * statistics are in real, whatever is stored; a result is rounded once, to nearest even; but a gradient that is added to may have
 * been rounded before, and what LINEAR passes on inside (z, dz, what dropout then scales) is stored, so rounded, too.
 * On cuda, with 16-bit outputs, the bias of LINEAR and CONV2D or what it is added to is rounded as well, and so is CONV2D's weight
 * gradient, which cuDNN writes in x's dtype.
 *
 *   kind       in                                          out             stash
 *   LINEAR     x(M,K)' w(N,K)' [b(N)] [r(M,N)']            y(M,N)'         [z(M,N)']    z: before activation; for GELU only
 *   CONV2D     x(N,H,W,C)' w(O,kh,kw,C/g)' [b(O)]          y(N,OH,OW,O)'
 *   BATCHNORM  x(..,C)' gamma beta rmean rvar count [r']   y(..,C)'        mean(C) rstd(C)   no stash in evaluation
 *   LAYERNORM  x(..,C) gamma(C) beta(C)                    y(..,C)'        mean(M) rstd(M), or xhat(..,C)' rstd(M): see below
 *   ACT        x'                                          y'
 *   SCORES     qkv(B,T,3C)'                                s(B,H,T,T)'
 *   SOFTMAX    s(B,H,T,T)'                                 p(B,H,T,T)'
 *   WSUM       p(B,H,T,T)' qkv(B,T,3C)'                    y(B,T,C)'
 *   DROPOUT    x' [r']                                     y'
 *   ADD        a' b'                                       y'
 *   EMBEDDING  ids(B,T):i32 wte(V,C) [wpe(S,C), S >= T]    y(B,T,C)
 *   MAXPOOL    x(N,H,W,C)'                                 y(N,OH,OW,C)'   at(N,OH,OW,C):u8   place in the window, row-major
 *   AVGPOOL    x(N,H,W,C)'                                 y(N,OH,OW,C)'
 *   FLATTEN    x(N,..)'                                    y(N,rest)'
 *   CAST       x'                                          y'
 *   XENT       logits(M,V)' target(M..):i32                loss(1)         lse(M)     mean over rows of lse - logit[target]
 *   TALLY      x(..,C)' load(C):i32 calls(1):i32           y(..,C)'
 *
 * What they compute:
 *   LINEAR     z = x w^T + b;  y = r + dropout(act(z)). r and an activation do not come together.
 *   BATCHNORM  training: over all rows per channel, biased variance normalises; y = act(gamma (x - mean) rstd + beta + r).
 *              On a first forward (not a recompute): rmean += momentum (mean - rmean), rvar += momentum (unbiased var - rvar),
 *              count += 1 (count is an i32 of one element). Evaluation: mean, rstd from rmean, rvar; no state changes.
 *              act is none or ReLU. As torch.nn.BatchNorm2d.
 *   SCORES     s[b,h,i,j] = scale * <q[b,i,h,:], k[b,j,h,:]>; qkv holds q, k, v side by side, each (B,T,H,C/H). As GPT-2's
 *              c_attn.
 *   SOFTMAX    over the last extent; causal: j > i is masked, p there is exactly 0 and s there is never read.
 *   WSUM       y[b,i,h,:] = sum_j p[b,h,i,j] v[b,j,h,:]
 *   DROPOUT    y = r + x * keep / (1 - p). keep by counter, see philox.h: element e of this op in this step; or from a place in
 *              a running stream; or as given.
 *   EMBEDDING  y[b,t] = wte[ids[b,t]] + wpe[t]
 *   ReLU       0 where x <= 0, and so is its slope; else x, and 1: a NaN stays one and lets the gradient through, as in PyTorch.
 *   GELU       tanh form: 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))); erf form: 0.5 x (1 + erf(x / sqrt 2)).
 *   LAYERNORM  `to` says in which dtype y is stored. Where that is 16-bit, xhat = (x - mean) rstd is stashed as y is, and the
 *              backward reads it instead of x: the real x, twice its size, need not be kept then.
 *   CAST       y = x, in dtype `to`, rounded to nearest even; beyond the largest number is infinity, subnormals are kept.
 *   MAXPOOL    a tie goes to the first place of the window; padding is never chosen.
 *   AVGPOOL    divides by the whole window (padding counts).
 *   TALLY      y = x. On a first forward (not a recompute): load[c] += the rows whose largest channel is c, calls += 1. The first
 *              of equals is the largest, and a NaN is larger than any number. As a router counts its experts' load.
 *
 * The backward of an op reads only what its contract says, plus the gradient of its output, and gives the gradient of each
 * input that needs one: written when acc[i] is false, added to when true. A gradient has its tensor's dtype, with one exception:
 * that of a weight (w of LINEAR and CONV2D) is real, and so is what enters the CAST that made a weight's 16-bit copy. Sums run in
 * an order fixed by the shapes and the number of threads alone, so that equal inputs give equal bits on every call.
 */
#ifndef CK_OPS_H
#define CK_OPS_H

#include "status.h"
#include "tensor.h"

#define CK_OP_KINDS(X)                                                                                                         \
	X(LINEAR, "linear")                                                                                                    \
	X(CONV2D, "conv2d")                                                                                                    \
	X(BATCHNORM, "batchnorm")                                                                                              \
	X(LAYERNORM, "layernorm")                                                                                              \
	X(ACT, "act")                                                                                                          \
	X(SCORES, "scores")                                                                                                    \
	X(SOFTMAX, "softmax")                                                                                                  \
	X(WSUM, "wsum")                                                                                                        \
	X(DROPOUT, "dropout")                                                                                                  \
	X(ADD, "add")                                                                                                          \
	X(EMBEDDING, "embedding")                                                                                              \
	X(MAXPOOL, "maxpool")                                                                                                  \
	X(AVGPOOL, "avgpool")                                                                                                  \
	X(FLATTEN, "flatten")                                                                                                  \
	X(XENT, "xent")                                                                                                        \
	X(TALLY, "tally")                                                                                                      \
	X(CAST, "cast")

typedef enum ck_op_kind {
#define X(name, text) CK_##name,
	CK_OP_KINDS(X)
#undef X
	    CK_OP_KIND_COUNT
} ck_op_kind;

const char *ck_op_kind_name(ck_op_kind kind);

typedef enum ck_act { CK_ACT_NONE, CK_ACT_RELU, CK_ACT_GELU_TANH, CK_ACT_GELU_ERF } ck_act;

/* In either form. */
static inline bool ck_act_gelu(ck_act act)
{
	return act == CK_ACT_GELU_TANH || act == CK_ACT_GELU_ERF;
}

/* Attributes; an op reads only those that its kind names. */
typedef struct ck_attr {
	int kh, kw, stride, pad, groups; /* CONV2D, pools (groups: CONV2D) */
	int heads;                       /* SCORES, WSUM */
	bool causal;                     /* SOFTMAX */
	bool bias;                       /* LINEAR, CONV2D: b is there. EMBEDDING: wpe is there */
	bool residual;                   /* LINEAR, BATCHNORM, DROPOUT: r is there */
	bool training;                   /* BATCHNORM */
	bool weight;                     /* CAST: x is a parameter, y its copy for products: made once a step */
	ck_dtype to;                     /* CAST, LAYERNORM: of the output; LAYERNORM, none: as the input's */
	ck_act act;                      /* LINEAR, BATCHNORM, ACT */
	bool inplace;                    /* ACT, ReLU only: y must lie over x */
	double p;                        /* LINEAR, DROPOUT: drop probability, 0 <= p < 1 */
	double scale;                    /* SCORES */
	double eps, momentum;            /* BATCHNORM, LAYERNORM */
} ck_attr;

enum { CK_MAX_IN = 7, CK_MAX_OUT = 1, CK_MAX_STASH = 2 };

typedef struct ck_tensor_desc {
	ck_dtype dtype;
	ck_shape shape;
} ck_tensor_desc;

typedef struct ck_op_desc {
	ck_op_kind kind;
	ck_attr attr;
	ck_dtype real; /* the graph's arithmetic; set by ck_op_infer */
	int nin, nout, nstash;
	ck_tensor_desc in[CK_MAX_IN], out[CK_MAX_OUT], stash[CK_MAX_STASH];
	unsigned needs; /* bit i: the gradient of in[i] is wanted. No bit: the op has no backward */
} ck_op_desc;

/* Given kind, attr, nin and in[], fills out[], stash[] and their counts; leaves needs alone. Refuses what does not fit together
 * with a message that gives the shapes (the caller adds the op's name in front). `real` is the graph's arithmetic. */
ck_status ck_op_infer(ck_op_desc *d, ck_dtype real, ck_err *err);

/* Whether the gradient of in[i] is wanted; i of -1: there is no such input. */
static inline bool ck_op_wants(const ck_op_desc *d, int i)
{
	return i >= 0 && d->needs >> i & 1;
}

/* What planners, schedules and layouts know of an op. Bit i of a mask is in[i], out[i], stash[i]. */
typedef struct ck_contract {
	unsigned reads_in, reads_out, reads_stash; /* what the backward reads, given d->needs */
	unsigned differentiable;                   /* inputs that can have a gradient at all */
	unsigned state;                            /* inputs that a first forward changes in place */
	bool random;                               /* draws from the counter-based generator */
	/* Buffers that may be one and the same; -1: none. Nothing else that a call writes overlaps anything that it reads, but
	 * an input given twice is one pointer twice, and so is its gradient: the earlier is then written or added to, the later
	 * added to. So gradients are formed in order of the inputs where two of them share a buffer. */
	int inplace_forward;      /* i: out[0] may lie over in[i] */
	bool inplace_required;    /* and must, so that in[i] is gone once the op has run */
	int inplace_backward;     /* i: din[i] may lie over dout, when it is written and not added to */
	int inplace_backward_own; /* i: din[i] may lie over the saved in[i] itself, when it is written and not added to */
	/* An input's gradient falls into three equal parts of its last extent (q, k, v); the op's backward touches the parts in
	 * this mask only. 7 for all but SCORES (3) and WSUM's qkv (4): that is why qkv needs no zeroing and no adding. */
	uint8_t grad_parts[CK_MAX_IN];
} ck_contract;

ck_contract ck_op_contract(const ck_op_desc *d);

/* The gradients of in[i] and of out[0], as tensors. */
ck_tensor_desc ck_op_din(const ck_op_desc *d, int i);
ck_tensor_desc ck_op_dout(const ck_op_desc *d);

/* Inputs stand without gaps, so optional ones move up. The index of r, which is always last: -1 when there is none. */
int ck_op_residual(const ck_op_desc *d);

/* LAYERNORM: stash[0] is xhat, and not the mean. */
static inline bool ck_layernorm_stashes_xhat(const ck_op_desc *d)
{
	return ck_dtype_half(d->out[0].dtype);
}

/* FLOPs: a multiply-add counts two; elementwise work counts its arithmetic roughly, exps as one. Backward given d->needs. */
double ck_op_flops_forward(const ck_op_desc *d);
double ck_op_flops_backward(const ck_op_desc *d);

/* A hash of all that describes an op; equal descs have equal ones, and a clash among a program's ops is not to be expected (64
 * bits). */
uint64_t ck_op_desc_hash(const ck_op_desc *d, uint64_t seed);

/* ---- optimizers --------------------------------------------------------------------------------------------------------
 *
 * One step of one parameter w with gradient g, element by element. The state of an optimizer is tensors of the parameter's own
 * shape and dtype, which start at zero; t counts the steps from 1 on. The rules and their presets are those of torch.optim.
 *
 *   SGD     g += weight_decay w;  m = momentum m + g;  w -= lr m
 *           state: m, or none when momentum is 0: then w -= lr g
 *   ADAMW   w -= lr weight_decay w;  m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;
 *           w -= lr (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)
 *           state: m, v
 *           Adam: Kingma and Ba 2015, algorithm 1; weight decay apart from the gradient: Loshchilov and Hutter 2019, algorithm 2,
 *           the decay scaled by lr as PyTorch does.
 *
 * An element's new value depends on its own g, w and state alone, so that the bits are the same with any number of threads. */
#define CK_OPTIMIZER_KINDS(X)                                                                                                  \
	X(SGD, "sgd")                                                                                                          \
	X(ADAMW, "adamw")

typedef enum ck_optimizer_kind {
#define X(name, text) CK_##name,
	CK_OPTIMIZER_KINDS(X)
#undef X
	    CK_OPTIMIZER_KIND_COUNT
} ck_optimizer_kind;

enum { CK_MAX_STATES = 2 };

typedef struct ck_optimizer {
	ck_optimizer_kind kind;
	double lr, weight_decay;
	double momentum;          /* SGD */
	double beta1, beta2, eps; /* ADAMW */
} ck_optimizer;

const char *ck_optimizer_name(ck_optimizer_kind kind);
/* The kind with PyTorch's presets. */
ck_optimizer ck_optimizer_preset(ck_optimizer_kind kind);
/* How many tensors of state it keeps for each parameter. */
int ck_optimizer_states(const ck_optimizer *o);
/* ADAMW's corrections for moments that start at zero: 1 - beta1^t and 1 - beta2^t. */
void ck_optimizer_corrections(const ck_optimizer *o, int64_t t, double *first, double *second);

/* One call's work. */
typedef struct ck_update {
	const ck_optimizer *optimizer;
	int64_t t;                  /* which step, from 1 on */
	int64_t n;                  /* elements */
	const void *gradient;       /* (n) */
	void *parameter;            /* (n) read and written */
	void *state[CK_MAX_STATES]; /* (n) read and written: as many as ck_optimizer_states says */
} ck_update;

/* A gradient as the backend's unscale takes it. */
typedef struct ck_gradient {
	int64_t n;  /* elements */
	void *data; /* (n) */
} ck_gradient;

/* ---- backend ---------------------------------------------------------------------------------------------------------- */

/* One call's pointers. Unused ones are NULL. Every pointer is 64-byte aligned and holds the tensor that the desc describes. */
typedef struct ck_args {
	const void *in[CK_MAX_IN]; /* forward: all. backward: those of reads_in, others NULL */
	void *state[CK_MAX_IN];    /* forward: state[i] == in[i] for the state inputs when this is a first forward, NULL in a
				      recompute */
	void *out[CK_MAX_OUT];     /* forward: written. backward: read, those of reads_out */
	void *stash[CK_MAX_STASH]; /* forward: written. backward: read, those of reads_stash */
	const void *dout;          /* backward: gradient of out[0]; NULL: it is dloss, as only the loss's is */
	double dloss;              /* 1, or what a scaler or accumulation makes of it */
	void *din[CK_MAX_IN];      /* backward: gradient of in[i], NULL where not needed */
	bool acc[CK_MAX_IN];       /* backward: add to din[i] (true) or write it (false) */
	void *workspace;           /* kernel->workspace_forward or _backward bytes */
	uint64_t seed;             /* of the random stream */
	uint32_t step, op;         /* its counter: which step, which op of the graph; two constants for a running stream */
	uint64_t block;            /* the first block that it draws: 0 by the counter, the position of a running stream */
	const uint8_t *mask; /* (elements of out[0]), 1 kept, 0 dropped: dropout takes this one and draws none, forward and
				      backward alike. NULL, as ever but for a step that was recorded elsewhere: by the counter */
} ck_args;

/* A prepared op on a device. Backends embed it as their first member. */
typedef struct ck_kernel {
	size_t workspace_forward, workspace_backward; /* bytes */
	void (*forward)(const struct ck_kernel *, const ck_args *);
	void (*backward)(const struct ck_kernel *, const ck_args *); /* NULL when desc.needs is 0 */
} ck_kernel;

typedef struct ck_device ck_device; /* a backend's own context */

/* How a device is opened. */
typedef struct ck_open_options {
	int index;   /* which of the backend's devices */
	int threads; /* CPU threads; 0: all that may be used */
	bool tf32;   /* products of float32 may round their operands to TF32 (10 bits of fraction) */
	bool fast;   /* sums in any order, where that is faster: equal inputs need not give equal bits any more */
} ck_open_options;

enum { CK_FACT_TEXT = 96, CK_MARKS = 4 };

/* What a device is and how it stands, for those who read figures measured on it. What is not known is "", 0, or -1 where 0 means
 * something. */
typedef struct ck_device_facts {
	char name[CK_FACT_TEXT];        /* "NVIDIA H200" */
	char capability[CK_FACT_TEXT];  /* compute capability, "9.0" */
	char driver[CK_FACT_TEXT];      /* "580.65.06" */
	char libraries[CK_FACT_TEXT];   /* "CUDA 13.0, cuBLASLt 13.1.0, cuDNN 9.19.0" */
	char power_state[CK_FACT_TEXT]; /* throttle reasons that hold now, in words */
	size_t memory;                  /* bytes */
	int multiprocessors;            /* */
	double clock, clock_most;       /* Hz, of the multiprocessors: now, and the most there can be */
	double memory_clock;            /* Hz */
	double power_limit;             /* W */
	int ecc;                        /* 1 on, 0 off, -1 not known */
	bool tells_throttling;          /* something here would tell if it slowed itself down */
} ck_device_facts;

typedef struct ck_backend {
	const char *name;    /* "cpu", "ref" */
	const char *summary; /* one line for `ckbench list devices` */
	ck_dtype real;       /* arithmetic of graphs for this backend */

	/* CK_USAGE: it has no such option. CK_MISSING: no such device, or no driver or library for it; says which. */
	ck_status (*open)(const ck_open_options *options, ck_device **device, ck_err *err);
	void (*close)(ck_device *device);
	/* Free text for records: library, version, instruction set. Owned by the device. */
	const char *(*describe)(ck_device *device);
	int (*threads)(ck_device *device);

	/* Prepares a kernel; free with release. CK_USAGE when the backend has no such op (message says which). */
	ck_status (*prepare)(ck_device *device, const ck_op_desc *desc, ck_kernel **kernel, ck_err *err);
	void (*release)(ck_device *device, ck_kernel *kernel);

	/* One step of the optimizer for one parameter; every pointer is 64-byte aligned and holds the backend's `real`. */
	void (*update)(ck_device *device, const ck_update *update);
	/* to += from, n elements of `real`: a gradient joins the sum of those before it. */
	void (*add)(ck_device *device, int64_t n, const void *from, void *to);
	/* Multiplies all elements of `count` gradients by `factor`, in place; true when any was infinite or NaN before. */
	bool (*unscale)(ck_device *device, double factor, int count, const ck_gradient *gradients);

	/* Device memory, 64-byte aligned, not initialised. CK_MISSING when there is not enough. */
	ck_status (*alloc)(ck_device *device, size_t bytes, void **memory, ck_err *err);
	void (*free)(ck_device *device, void *memory);
	void (*write)(ck_device *device, void *to, const void *host, size_t bytes);  /* host to device */
	void (*read)(ck_device *device, void *host, const void *from, size_t bytes); /* device to host */
	void (*fill)(ck_device *device, void *to, int byte, size_t bytes);

	/* The rest is optional: NULL. */
	void (*sync)(ck_device *device); /* returns when all that was started is done; NULL: always so */
	/* A clock of the device's own. mark notes, without waiting, when all work that was started before it is done; elapsed waits for
	 * both marks and gives the seconds between them. which, from, to: 0 to CK_MARKS - 1. NULL: the host's clock will do. */
	void (*mark)(ck_device *device, int which);
	double (*elapsed)(ck_device *device, int from, int to);
	/* Bytes of the device's memory that nobody holds now, this process or another. NULL: it is the host's memory. */
	size_t (*free_memory)(ck_device *device);
	/* Fills in what it knows; all else stands at not known before (ck_backend_facts). */
	void (*facts)(ck_device *device, ck_device_facts *facts);
	/* Whether the device has slowed itself down (heat, power, a quota) since the last call, or does now. NULL: it cannot tell. */
	bool (*throttled)(ck_device *device);
} ck_backend;

/* The registry: NULL-terminated. */
extern const ck_backend *const ck_backends[];
/* "cpu", "ref", "cuda:1". Unknown names are refused with the list of known ones (CK_USAGE). */
ck_status ck_backend_find(const char *name, const ck_backend **backend, int *index, ck_err *err);
/* What the device tells of itself; nothing known where the backend tells nothing. */
ck_device_facts ck_backend_facts(const ck_backend *backend, ck_device *device);

#endif
