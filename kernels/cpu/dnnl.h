/* oneDNN as this backend uses it: matrix products and convolutions over plain tensors of any strides, in float32 or 16 bits. What
 * oneDNN does not make in 16 bits on this processor, or only by its reference code, is made in float32 here, between copies: then
 * 16 bits are how tensors are stored.
 *
 *     ck_matmul, ck_conv ──▶ ck_prim ──▶ ck__prim_run(prim, pointers, workspace)
 *     (what, by shape)      (made once)   (any number of times)
 *
 * A ck_prim is a short program of oneDNN primitives: copies of operands into layouts that the kernel likes better, the
 * kernel, and a copy of its result back. Callers see plain tensors only. All temporary tensors, oneDNN's scratchpad included,
 * lie in the workspace that the caller brings; a run itself allocates nothing but oneDNN's own small change (argument maps, and
 * the packing buffers of its GEMM).
 *
 * dnnl.c and dnnl_api.h alone know oneDNN's types and its two API versions (2.x and 3.x). */
#ifndef CK_DNNL_H
#define CK_DNNL_H

#include "kernels/status.h"
#include "kernels/cpu/vec.h"
#include "kernels/tensor.h"

enum { CK_VIEW_DIMS = 12 }; /* as in oneDNN's arrays of extents */

/* How a tensor lies in memory: extents, and strides in elements. nd = 0: there is no such tensor. */
typedef struct ck_view {
	ck_dtype dtype;
	int nd;
	int64_t d[CK_VIEW_DIMS], stride[CK_VIEW_DIMS];
	bool pack; /* worth a copy into the layout that the kernel likes best */
} ck_view;

/* The places of a ck_prim's tensors in the pointers that ck__prim_run takes. */
enum ck_place { CK_AT_A, CK_AT_B, CK_AT_C, CK_AT_BIAS, CK_AT_R, CK_PLACES };

/* c = scale (a b + bias) + r; or, with accumulate, which goes with neither bias nor r, c += scale a b.
 * a (..,M,K), b (..,K,N), c and r (..,M,N), bias (..,1,N). */
typedef struct ck_matmul {
	ck_view a, b, c, bias, r;
	bool accumulate;
	float scale; /* not 0; 1 leaves a b + bias as it is */
} ck_matmul;

/* a is x or its gradient (N,C,H,W), b is w or its gradient (O,C,kh,kw) or (g,O/g,C/g,kh,kw), c is y or its gradient
 * (N,O,OH,OW): logical extents, whatever the strides. FORWARD writes c, DATA a, WEIGHTS b. */
typedef struct ck_conv {
	enum ck_conv_pass { CK_CONV_FORWARD, CK_CONV_DATA, CK_CONV_WEIGHTS } pass;
	ck_view a, b, c, bias; /* bias: FORWARD only */
	int stride, pad;
	bool accumulate; /* WEIGHTS: add to the result instead of writing it */
} ck_conv;

typedef struct ck_dnnl ck_dnnl; /* engine and stream */
typedef struct ck_prim ck_prim; /* not for two threads at once: the pointers of a run are stored in it */

/* Primitives are made for, and run with, this number of OpenMP threads. */
ck_status ck__dnnl_open(int threads, const ck_vec_set *vec, ck_dnnl **dnnl, ck_err *err);
void ck__dnnl_close(ck_dnnl *dnnl); /* NULL is fine */
/* "oneDNN 2.6.3 (bf16: brg:avx512_core_amx_bf16; fp16: stored, float32 arithmetic)" */
void ck__dnnl_describe(ck_dnnl *dnnl, char *text, size_t size);

ck_status ck__prim_matmul(ck_dnnl *dnnl, const ck_matmul *m, ck_prim **prim, ck_err *err);
ck_status ck__prim_conv(ck_dnnl *dnnl, const ck_conv *c, ck_prim **prim, ck_err *err);
void ck__prim_free(ck_prim *prim);              /* NULL is fine */
size_t ck__prim_workspace(const ck_prim *prim); /* bytes; 0 for NULL */
void ck__prim_run(const ck_prim *prim, const void *const at[CK_PLACES], void *workspace);

#endif
