/* Matrix products by cuBLASLt, prepared once and run any number of times:  d = alpha a b + beta c,  for each of `batch` matrices. */
#ifndef CK_CUDA_MATMUL_H
#define CK_CUDA_MATMUL_H

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/workspace.h"

/* A row-major matrix, or the transpose of one. */
typedef struct ck_operand {
	ck_dtype dtype;
	bool transposed; /* what is stored is the transpose */
	int64_t row;     /* elements from one stored row to the next; a row's own lie side by side */
	int64_t batch;   /* elements from one matrix to the next */
	uint32_t align;  /* bytes: every pointer that a call gives is a multiple */
} ck_operand;

/* What is done to a product before it is rounded. GELU (its tanh form) stores what goes into it as well, in d's dtype, as an (m,n) matrix
 * without gaps; n is then a multiple of 8. */
typedef enum ck_fused { CK_FUSED_NONE, CK_FUSED_BIAS, CK_FUSED_GELU, CK_FUSED_GELU_BIAS } ck_fused;

typedef struct ck_product {
	int64_t m, n, k, batch; /* a (m,k), b (k,n), c and d (m,n) */
	ck_operand a, b, c;     /* d is as c */
	float alpha;
	ck_fused fused;
} ck_product;

/* One call's pointers. */
typedef struct ck_product_args {
	const void *a, *b, *c; /* c: NULL when beta is 0; may be d */
	void *d;
	float beta;
	const void *bias; /* (n) of d's dtype: where fused says so */
	void *before;     /* (m,n): what goes into GELU */
	void *workspace;  /* ck__matmul_workspace bytes, 64-byte aligned */
} ck_product_args;

typedef struct ck_matmul ck_matmul;

/* CK_USAGE when cuBLASLt has no such product: the message tells which. What is got is freed by ck__matmul_free, which takes NULL, too. */
ck_status ck__matmul_new(ck_device *device, const ck_product *product, ck_matmul **matmul, ck_err *err);
void ck__matmul_free(ck_matmul *matmul);
size_t ck__matmul_workspace(const ck_matmul *matmul); /* bytes; 0 for NULL */
void ck__matmul_run(const ck_matmul *matmul, const ck_product_args *args);

/* The largest power of two up to 64, as tensors are aligned, that divides these bytes as well. */
uint32_t ck__alignment(size_t bytes);

/* An op of products: its kernel owns them. Unused ones are NULL. */
typedef struct ck_matmul_kernel {
	ck_cuda_kernel base;
	ck_matmul *forward, *gradient[2];
	size_t ahead_forward,
	    ahead; /* bytes of workspace that lie before the products', forward and backward: multiples of 64 */
} ck_matmul_kernel;

/* A zeroed struct of `bytes` that begins with ck_matmul_kernel. */
void *ck__matmul_kernel_new(ck_device *device, const ck_op_desc *desc, size_t bytes,
			    void (*forward)(const ck_kernel *, const ck_args *),
			    void (*backward)(const ck_kernel *, const ck_args *));
/* Hands the kernel over with its workspace counted, or frees it when `status` is not CK_OK; returns the status. */
ck_status ck__matmul_kernel_finish(ck_matmul_kernel *k, ck_status status, ck_kernel **kernel);

#endif
