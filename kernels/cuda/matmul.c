/* Row-major matrices are column-major ones transposed, and cuBLASLt's are column-major: it is asked for d^T = alpha b^T a^T + beta c^T, so that our
 * b is its A, our a its B, n its rows and m its columns. A bias, which cuBLASLt adds along its rows, is then one of n elements.
 *
 *     ours                          as column-major           its operand and operation
 *     b (k,n)                       (n,k)                     A, N
 *     b stored (n,k), transposed    (k,n)                     A, T
 *     a (m,k)                       (k,m)                     B, N
 *     a stored (k,m), transposed    (m,k)                     B, T
 *     c, d (m,n)                    (n,m)                     C, D
 *
 * The algorithm is the first that the heuristics name for the shapes, the strides, and the alignments that every call keeps; no time is
 * measured, so that it is the same each time. Of the ways to split a long sum those are allowed that add the parts in a separate step and
 * in the arithmetic's type: INPLACE adds them in the output's, and nothing is said of their order. */
#include "kernels/cuda/matmul.h"

#include <cublasLt.h>
#include <stdlib.h>

#include "kernels/alloc.h"

enum { MOST_WORKSPACE = 32 << 20 }; /* bytes: what cuBLAS itself takes on Hopper */

struct ck_matmul {
	ck_device *device;
	float alpha;
	ck_fused fused;
	cublasLtMatmulDesc_t operation;
	cublasLtMatrixLayout_t a, b, c; /* cuBLASLt's */
	cublasLtMatmulAlgo_t algorithm;
	size_t workspace; /* bytes that the algorithm asks for */
};

static cudaDataType_t type_of(ck_dtype t)
{
	return t == CK_BF16 ? CUDA_R_16BF : t == CK_F16 ? CUDA_R_16F : CUDA_R_32F;
}

uint32_t ck__alignment(size_t bytes)
{
	size_t all = bytes | CK_TENSOR_ALIGN;
	return (uint32_t)(all & (~all + 1));
}

#define SET(function, object, attribute, type, value)                                                                          \
	do {                                                                                                                   \
		type set_value = (value);                                                                                      \
		CK_CUDA(function((object), (attribute), &set_value, sizeof set_value));                                        \
	} while (0)

/* ---- preparing ----------------------------------------------------------------------------------------------------------- */

/* rows and cols as they are multiplied. */
static cublasLtMatrixLayout_t layout_of(const ck_operand *o, int64_t rows, int64_t cols, int64_t batch)
{
	cublasLtMatrixLayout_t layout;
	int64_t stored_rows = o->transposed ? cols : rows, length = o->transposed ? rows : cols;
	CK_CUDA(cublasLtMatrixLayoutCreate(&layout, type_of(o->dtype), (uint64_t)length, (uint64_t)stored_rows, o->row));
	if (batch > 1) {
		SET(cublasLtMatrixLayoutSetAttribute, layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, int32_t, (int32_t)batch);
		SET(cublasLtMatrixLayoutSetAttribute, layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, int64_t, o->batch);
	}
	return layout;
}

static bool has_bias(ck_fused fused)
{
	return fused == CK_FUSED_BIAS || fused == CK_FUSED_GELU_BIAS;
}

static bool has_gelu(ck_fused fused)
{
	return fused == CK_FUSED_GELU || fused == CK_FUSED_GELU_BIAS;
}

static cublasLtMatmulDesc_t operation_of(const ck_device *device, const ck_product *p)
{
	static const cublasLtEpilogue_t epilogues[] = {[CK_FUSED_NONE] = CUBLASLT_EPILOGUE_DEFAULT,
						       [CK_FUSED_BIAS] = CUBLASLT_EPILOGUE_BIAS,
						       [CK_FUSED_GELU] = CUBLASLT_EPILOGUE_GELU_AUX,
						       [CK_FUSED_GELU_BIAS] = CUBLASLT_EPILOGUE_GELU_AUX_BIAS};
	bool tf32 = device->tf32 && p->a.dtype == CK_F32;
	cublasLtMatmulDesc_t operation;
	CK_CUDA(cublasLtMatmulDescCreate(&operation, tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F));
	SET(cublasLtMatmulDescSetAttribute, operation, CUBLASLT_MATMUL_DESC_TRANSA, int32_t,
	    p->b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
	SET(cublasLtMatmulDescSetAttribute, operation, CUBLASLT_MATMUL_DESC_TRANSB, int32_t,
	    p->a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
	SET(cublasLtMatmulDescSetAttribute, operation, CUBLASLT_MATMUL_DESC_EPILOGUE, uint32_t, epilogues[p->fused]);
	/* The heuristics look at how the pointers are aligned: these stand for what calls will give. */
	void *aligned = (void *)(uintptr_t)CK_TENSOR_ALIGN;
	if (has_bias(p->fused)) {
		SET(cublasLtMatmulDescSetAttribute, operation, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, int32_t,
		    type_of(p->c.dtype));
		SET(cublasLtMatmulDescSetAttribute, operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, const void *, aligned);
	}
	if (has_gelu(p->fused)) {
		SET(cublasLtMatmulDescSetAttribute, operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, int32_t,
		    type_of(p->c.dtype));
		SET(cublasLtMatmulDescSetAttribute, operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, int64_t, p->n);
		SET(cublasLtMatmulDescSetAttribute, operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, void *, aligned);
	}
	return operation;
}

/* The first algorithm; which status there is when there is none. */
static cublasStatus_t choose(ck_matmul *m, const ck_product *p)
{
	cublasLtMatmulPreference_t wish;
	cublasLtMatmulHeuristicResult_t found = {0};
	int count = 0;
	uint32_t ordered = CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
	CK_CUDA(cublasLtMatmulPreferenceCreate(&wish));
	SET(cublasLtMatmulPreferenceSetAttribute, wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t, MOST_WORKSPACE);
	SET(cublasLtMatmulPreferenceSetAttribute, wish, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, uint32_t,
	    m->device->fast ? (uint32_t)CUBLASLT_REDUCTION_SCHEME_MASK : ordered);
	SET(cublasLtMatmulPreferenceSetAttribute, wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, uint32_t, p->b.align);
	SET(cublasLtMatmulPreferenceSetAttribute, wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, uint32_t, p->a.align);
	SET(cublasLtMatmulPreferenceSetAttribute, wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, uint32_t, p->c.align);
	SET(cublasLtMatmulPreferenceSetAttribute, wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, uint32_t, p->c.align);
	cublasStatus_t status =
	    cublasLtMatmulAlgoGetHeuristic(m->device->blas, m->operation, m->a, m->b, m->c, m->c, wish, 1, &found, &count);
	CK_CUDA(cublasLtMatmulPreferenceDestroy(wish));
	if (status == CUBLAS_STATUS_SUCCESS)
		status = count ? found.state : CUBLAS_STATUS_NOT_SUPPORTED;
	m->algorithm = found.algo;
	m->workspace = found.workspaceSize;
	return status;
}

ck_status ck__matmul_new(ck_device *device, const ck_product *p, ck_matmul **matmul, ck_err *err)
{
	ck_matmul *m = ck_alloc(1, sizeof *m);
	m->device = device;
	m->alpha = p->alpha;
	m->fused = p->fused;
	m->operation = operation_of(device, p);
	m->a = layout_of(&p->b, p->k, p->n, p->batch);
	m->b = layout_of(&p->a, p->m, p->k, p->batch);
	m->c = layout_of(&p->c, p->m, p->n, p->batch);
	cublasStatus_t status = choose(m, p);
	if (status == CUBLAS_STATUS_SUCCESS) {
		*matmul = m;
		return CK_OK;
	}
	ck__matmul_free(m);
	return ck_fail(
	    err, CK_USAGE,
	    "cuBLASLt has no product of (%lld,%lld) and (%lld,%lld) in %s to %s: %s; choose other sizes or precision",
	    (long long)p->m, (long long)p->k, (long long)p->k, (long long)p->n, ck_dtype_name(p->a.dtype),
	    ck_dtype_name(p->c.dtype), cublasLtGetStatusName(status));
}

void ck__matmul_free(ck_matmul *m)
{
	if (!m)
		return;
	CK_CUDA(cublasLtMatrixLayoutDestroy(m->a));
	CK_CUDA(cublasLtMatrixLayoutDestroy(m->b));
	CK_CUDA(cublasLtMatrixLayoutDestroy(m->c));
	CK_CUDA(cublasLtMatmulDescDestroy(m->operation));
	free(m);
}

size_t ck__matmul_workspace(const ck_matmul *m)
{
	return m ? ck__library_bytes(m->workspace) : 0;
}

/* ---- running ------------------------------------------------------------------------------------------------------------- */

void ck__matmul_run(const ck_matmul *m, const ck_product_args *args)
{
	void *workspace = ck__library_workspace(args->workspace, m->workspace);
	if (has_bias(m->fused))
		SET(cublasLtMatmulDescSetAttribute, m->operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, const void *, args->bias);
	if (has_gelu(m->fused))
		SET(cublasLtMatmulDescSetAttribute, m->operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, void *,
		    args->before);
	CK_CUDA(cublasLtMatmul(m->device->blas, m->operation, &m->alpha, args->b, m->a, args->a, m->b, &args->beta,
			       args->c ? args->c : args->d, m->c, args->d, m->c, &m->algorithm, workspace, m->workspace,
			       m->device->stream));
}

/* ---- an op of products --------------------------------------------------------------------------------------------------- */

static void destroy(ck_cuda_kernel *kernel)
{
	ck_matmul_kernel *k = (ck_matmul_kernel *)kernel;
	ck__matmul_free(k->forward);
	for (int i = 0; i < 2; i++)
		ck__matmul_free(k->gradient[i]);
	free(k);
}

void *ck__matmul_kernel_new(ck_device *device, const ck_op_desc *desc, size_t bytes,
			    void (*forward)(const ck_kernel *, const ck_args *),
			    void (*backward)(const ck_kernel *, const ck_args *))
{
	ck_matmul_kernel *k = ck__cuda_kernel_new(device, desc, bytes);
	k->base.destroy = destroy;
	k->base.base.forward = forward;
	k->base.base.backward = desc->needs ? backward : NULL;
	return k;
}

ck_status ck__matmul_kernel_finish(ck_matmul_kernel *k, ck_status status, ck_kernel **kernel)
{
	if (status != CK_OK) {
		destroy(&k->base);
		return status;
	}
	size_t first = ck__matmul_workspace(k->gradient[0]), second = ck__matmul_workspace(k->gradient[1]);
	k->base.base.workspace_forward = k->ahead_forward + ck__matmul_workspace(k->forward);
	k->base.base.workspace_backward = k->ahead + (first > second ? first : second);
	*kernel = &k->base.base;
	return CK_OK;
}
