/* Inside the cpu backend: its device, and how an op's file joins it.
 *
 * An op is one file with one prepare function, named in the table of cpu.c. Its kernel struct begins with ck_cpu_kernel. oneDNN
 * serves matrix products and convolutions (dnnl.h hides its two API versions); everything else is C that the compiler
 * vectorises, built once per instruction set (see vec.h) and split over OpenMP threads.
 *
 * Work is divided among threads by shape and thread count alone, and partial sums are added in thread order: same bits each
 * run. */
#ifndef CK_CPU_H
#define CK_CPU_H

#include "kernels/cpu/throttle.h"
#include "kernels/ops.h"

enum { CK_CPU_MAX_THREADS = 1024 };

struct ck_device {
	int threads;
	char text[256];               /* describe() */
	struct ck_dnnl *dnnl;         /* engine and stream; owned */
	const struct ck_vec_set *vec; /* vector kernels for this machine's instruction set */
	struct ck_throttle throttle;
};

typedef struct ck_cpu_kernel {
	ck_kernel base;
	void (*destroy)(struct ck_cpu_kernel *); /* frees the kernel itself too */
	ck_device *device;
	ck_op_desc desc;
} ck_cpu_kernel;

typedef ck_status ck_cpu_prepare(ck_device *device, const ck_op_desc *desc, ck_kernel **kernel, ck_err *err);

ck_cpu_prepare ck__cpu_linear, ck__cpu_conv2d, ck__cpu_scores, ck__cpu_wsum;                        /* oneDNN */
ck_cpu_prepare ck__cpu_batchnorm, ck__cpu_layernorm, ck__cpu_act, ck__cpu_softmax, ck__cpu_dropout; /* vectorised C */
ck_cpu_prepare ck__cpu_add, ck__cpu_embedding, ck__cpu_maxpool, ck__cpu_avgpool, ck__cpu_flatten, ck__cpu_cast, ck__cpu_tally,
    ck__cpu_xent;

/* The optimizers, and what comes before them. */
void ck__cpu_update(ck_device *device, const ck_update *u);
void ck__cpu_add_gradient(ck_device *device, int64_t n, const void *from, void *to);
bool ck__cpu_unscale(ck_device *device, double factor, int count, const ck_gradient *gradients);

#endif
