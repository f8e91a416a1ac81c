/* What the ops have in common that oneDNN computes: one product forward, and one for each of two gradients backward, which is
 * written or added. */
#ifndef CK_PRODUCT_H
#define CK_PRODUCT_H

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/dnnl.h"

typedef struct ck_product_kernel {
	ck_cpu_kernel base;
	ck_prim *forward;
	ck_prim *gradient[2][2]; /* [which][added]; NULL when not needed */
	size_t ahead[2];         /* bytes of the backward's workspace that gradient[which] must leave alone, before its own */
} ck_product_kernel;

/* Begins prepare. CK_USAGE when the arithmetic is not to be in float32. */
ck_status ck__product_new(ck_device *device, const ck_op_desc *desc, ck_product_kernel **k, ck_err *err);

/* Ends prepare: `status` is that of making the primitives. Hands the kernel over, or frees it. */
ck_status ck__product_finish(ck_product_kernel *k, ck_status status, ck_kernel **kernel);

/* Runs gradient[which][added] with a workspace of the backward. */
void ck__product_gradient(const ck_product_kernel *k, int which, bool added, const void *const at[CK_PLACES], void *workspace);

/* Makes gradient[which] both ways, if `wanted`. */
ck_status ck__product_matmul(ck_product_kernel *k, int which, bool wanted, ck_matmul m, ck_err *err);

/* Bytes rounded up so that what follows them is aligned as a tensor is. */
static inline size_t ck__product_align(size_t bytes)
{
	return (bytes + 63) / 64 * 64;
}

#endif
