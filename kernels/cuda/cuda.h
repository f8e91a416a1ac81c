/* Inside the cuda backend: its device, and how an op's file joins it.
 *
 * Host code is C and includes this; kernels are .cu files that include launch.cuh. An op is one file with one prepare function, named
 * in the table of device.c; its kernel struct begins with ck_cuda_kernel. An op's own kernels lie in a .cu file of the op's name,
 * whose launchers (extern "C", declared in a header of that name) only pick the instance and launch it. cuBLASLt serves matrix
 * products, cuDNN convolutions, pooling by averages and plain batch normalisation.
 *
 * All work goes to the device's one stream, in the order of the calls, and no op waits for it. Grids, algorithms and the order of
 * sums depend on shapes and the kind of device alone: same bits each run, unless the device was opened `fast`.
 *
 * The same sources make two modules, which the program opens at run time: cuda, and emu, for which a host compiler translates the
 * kernels and kernels/emu stands in for the CUDA runtime, cuBLASLt and cuDNN. */
#ifndef CK_CUDA_H
#define CK_CUDA_H

#include <cuda_runtime_api.h>

#include "kernels/ops.h"

struct cublasLtContext; /* *cublasLtHandle_t */
struct cudnnContext;    /* *cudnnHandle_t */
struct ck_nvml;

struct ck_device {
	int index;
	bool tf32, fast;
	int multiprocessors;
	size_t memory;
	cudaStream_t stream;
	cudaEvent_t marks[CK_MARKS];
	struct cublasLtContext *blas;
	struct cudnnContext *dnn; /* on the stream */
	struct ck_nvml *nvml;     /* NULL: nothing to be known from it */
	int *overflow;            /* device memory: unscale's flag */
	char name[CK_FACT_TEXT], capability[CK_FACT_TEXT], libraries[CK_FACT_TEXT];
	char text[4 * CK_FACT_TEXT]; /* describe() */
};

typedef struct ck_cuda_kernel {
	ck_kernel base;
	void (*destroy)(struct ck_cuda_kernel *); /* frees the kernel itself too */
	ck_device *device;
	ck_op_desc desc;
} ck_cuda_kernel;

typedef ck_status ck_cuda_prepare(ck_device *device, const ck_op_desc *desc, ck_kernel **kernel, ck_err *err);

ck_cuda_prepare ck__cuda_linear, ck__cuda_scores, ck__cuda_wsum;    /* cuBLASLt */
ck_cuda_prepare ck__cuda_conv2d, ck__cuda_avgpool;                  /* cuDNN */
ck_cuda_prepare ck__cuda_batchnorm;                                 /* cuDNN where it has the op; else own kernels */
ck_cuda_prepare ck__cuda_layernorm, ck__cuda_act, ck__cuda_softmax; /* own kernels, and what follows */
ck_cuda_prepare ck__cuda_dropout, ck__cuda_add, ck__cuda_embedding, ck__cuda_maxpool, ck__cuda_flatten, ck__cuda_cast,
    ck__cuda_tally, ck__cuda_xent;

/* The optimizers, and what comes before them (update.c). unscale waits for the device: its answer decides what comes next. */
void ck__cuda_update(ck_device *device, const ck_update *u);
void ck__cuda_add_gradient(ck_device *device, int64_t n, const void *from, void *to);
bool ck__cuda_unscale(ck_device *device, double factor, int count, const ck_gradient *gradients);

/* A zeroed struct of `bytes` that begins with ck_cuda_kernel, for ops whose calls need the desc alone. */
void *ck__cuda_kernel_new(ck_device *device, const ck_op_desc *desc, size_t bytes);
/* The same whole for an op of own kernels: two functions, no workspace (the caller may add some), plain free. */
ck_kernel *ck__cuda_plain_kernel(ck_device *device, const ck_op_desc *desc, void (*forward)(const ck_kernel *, const ck_args *),
				 void (*backward)(const ck_kernel *, const ck_args *));

/* A call that cannot fail but by a fault of ckbench's or the device's: tells what, where, and ends the program. Work that was
 * started before it is what may have failed. */
#define CK_CUDA(call) ck__cuda_must((int)(call), #call, __FILE__, __LINE__)
void ck__cuda_must(int error, const char *call, const char *file, int line);

#endif
