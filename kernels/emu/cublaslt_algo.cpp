/* What cuBLASLt is asked for, checked, and the heuristics that name algorithms for it.
 *
 * A problem is checked in one place (ck_emu_problem), for the heuristics and the product alike; the pointers are the product's matter.
 * Long sums are split where the preference leaves room, so that workspaces and reduction schemes matter at the sizes that tests
 * have. */
#include "kernels/emu/cublaslt_double.h"

#include <algorithm>
#include <string.h>

/* ---- what is asked for ---------------------------------------------------------------------------------------------------- */

static stored type_of(uint32_t type)
{
	return type == CUDA_R_32F    ? stored::f32
	       : type == CUDA_R_16F  ? stored::f16
	       : type == CUDA_R_16BF ? stored::bf16
				     : stored::none;
}

/* The rows of the documentation's table of types that are of use here. The scale type is float32, the bias has D's type. */
static const struct {
	cublasComputeType_t compute;
	stored operand, result;
	operands round;
} supported[] = {
    {CUBLAS_COMPUTE_32F, stored::bf16, stored::bf16, operands::exact},
    {CUBLAS_COMPUTE_32F, stored::f16, stored::f16, operands::exact},
    {CUBLAS_COMPUTE_32F, stored::bf16, stored::f32, operands::exact},
    {CUBLAS_COMPUTE_32F, stored::f16, stored::f32, operands::exact},
    {CUBLAS_COMPUTE_32F, stored::f32, stored::f32, operands::exact},
    {CUBLAS_COMPUTE_32F_PEDANTIC, stored::bf16, stored::bf16, operands::exact},
    {CUBLAS_COMPUTE_32F_PEDANTIC, stored::f16, stored::f16, operands::exact},
    {CUBLAS_COMPUTE_32F_PEDANTIC, stored::bf16, stored::f32, operands::exact},
    {CUBLAS_COMPUTE_32F_PEDANTIC, stored::f16, stored::f32, operands::exact},
    {CUBLAS_COMPUTE_32F_PEDANTIC, stored::f32, stored::f32, operands::exact},
    {CUBLAS_COMPUTE_32F_FAST_TF32, stored::f32, stored::f32, operands::tf32},
    {CUBLAS_COMPUTE_32F_FAST_16F, stored::f32, stored::f32, operands::f16},
    {CUBLAS_COMPUTE_32F_FAST_16BF, stored::f32, stored::f32, operands::bf16},
};

static cublasStatus_t check_types(problem &p)
{
	const lt_operation &o = p.operation;
	for (int i = A; i <= D; i++) {
		p.type[i] = type_of(p.layout[i].type);
		if (p.type[i] == stored::none)
			ck_emu_fail("cuBLASLt: cudaDataType %u of matrix %c is not modelled", p.layout[i].type, "ABCD"[i]);
	}
	CK_REFUSE_IF(p.type[A] != p.type[B], CUBLAS_STATUS_INVALID_VALUE, "the types of A and B differ");
	CK_REFUSE_IF(p.type[C] != p.type[D], CUBLAS_STATUS_INVALID_VALUE, "the types of C and D differ");
	bool known = false, found = false;
	for (const auto &s : supported) {
		known |= s.compute == o.compute;
		if (s.compute == o.compute && s.operand == p.type[A] && s.result == p.type[D]) {
			found = true;
			p.round = s.round;
		}
	}
	if (!known)
		ck_emu_fail("cuBLASLt: compute type %d is not modelled", o.compute);
	CK_REFUSE_IF(o.scale != CUDA_R_32F, CUBLAS_STATUS_INVALID_VALUE, "the scale type is not float32");
	CK_REFUSE_IF(!found, CUBLAS_STATUS_NOT_SUPPORTED, "no product of %s into %s in compute type %d", ck_emu_name(p.type[A]),
		     ck_emu_name(p.type[D]), o.compute);
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t check_shapes(problem &p)
{
	const lt_operation &o = p.operation;
	for (int i = A; i <= D; i++) {
		const lt_layout &l = p.layout[i];
		if (l.order != CUBLASLT_ORDER_COL)
			ck_emu_fail("cuBLASLt: order %d of matrix %c is not modelled; column-major is", l.order, "ABCD"[i]);
		CK_REFUSE_IF(l.rows > INT32_MAX || l.cols > INT32_MAX || l.ld > INT32_MAX, CUBLAS_STATUS_INVALID_VALUE,
			     "an extent of %c is more than an int holds", "ABCD"[i]);
		CK_REFUSE_IF(l.ld < (int64_t)l.rows, CUBLAS_STATUS_INVALID_VALUE,
			     "the leading dimension of %c, %lld, is less than its %llu rows", "ABCD"[i], (long long)l.ld,
			     (unsigned long long)l.rows);
		CK_REFUSE_IF(l.batch < 1 || l.batch != p.layout[A].batch, CUBLAS_STATUS_INVALID_VALUE,
			     "the batch count of %c, %d, is not that of A, %d", "ABCD"[i], l.batch, p.layout[A].batch);
	}
	auto transposed = [](int32_t op) { return op != CUBLAS_OP_N; };
	CK_REFUSE_IF(o.transa < 0 || o.transa > CUBLAS_OP_C || o.transb < 0 || o.transb > CUBLAS_OP_C,
		     CUBLAS_STATUS_INVALID_VALUE, "not an operation on A or B");
	CK_REFUSE_IF(o.transc != CUBLAS_OP_N, CUBLAS_STATUS_NOT_SUPPORTED, "C is transposed");
	CK_REFUSE_IF(o.pointer_mode < 0 || o.pointer_mode > CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_HOST,
		     CUBLAS_STATUS_NOT_SUPPORTED, "pointer mode %d", o.pointer_mode);
	if (o.pointer_mode != CUBLASLT_POINTER_MODE_HOST || o.fill != CUBLAS_FILL_MODE_FULL)
		ck_emu_fail("cuBLASLt: pointer mode %d, fill mode %d are not modelled", o.pointer_mode, o.fill);
	const lt_layout &a = p.layout[A], &b = p.layout[B];
	p.m = (int64_t)(transposed(o.transa) ? a.cols : a.rows);
	p.k = (int64_t)(transposed(o.transa) ? a.rows : a.cols);
	p.n = (int64_t)(transposed(o.transb) ? b.rows : b.cols);
	p.batch = a.batch;
	int64_t inner = (int64_t)(transposed(o.transb) ? b.cols : b.rows);
	CK_REFUSE_IF(p.k != inner, CUBLAS_STATUS_INVALID_VALUE, "the inner dimension of A, %lld, is not that of B, %lld",
		     (long long)p.k, (long long)inner);
	for (int i = C; i <= D; i++)
		CK_REFUSE_IF((int64_t)p.layout[i].rows != p.m || (int64_t)p.layout[i].cols != p.n, CUBLAS_STATUS_INVALID_VALUE,
			     "%c is %llux%llu, the product %lldx%lld", "ABCD"[i], (unsigned long long)p.layout[i].rows,
			     (unsigned long long)p.layout[i].cols, (long long)p.m, (long long)p.n);
	CK_REFUSE_IF(p.m == 0 || p.n == 0 || p.k == 0, CUBLAS_STATUS_INVALID_VALUE, "an empty product");
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t check_epilogue(problem &p)
{
	const lt_operation &o = p.operation;
	switch (o.epilogue) {
	case CUBLASLT_EPILOGUE_DEFAULT:
	case CUBLASLT_EPILOGUE_RELU:
	case CUBLASLT_EPILOGUE_BIAS:
	case CUBLASLT_EPILOGUE_RELU_BIAS:
	case CUBLASLT_EPILOGUE_GELU:
	case CUBLASLT_EPILOGUE_GELU_BIAS:
	case CUBLASLT_EPILOGUE_GELU_AUX:
	case CUBLASLT_EPILOGUE_GELU_AUX_BIAS:
		break;
	default:
		ck_emu_fail("cuBLASLt: epilogue %u is not modelled", o.epilogue);
	}
	p.bias = o.epilogue & CUBLASLT_EPILOGUE_BIAS;
	p.aux = o.epilogue & 128;
	CK_REFUSE_IF(p.bias && o.bias_type != -1 && o.bias_type != (int32_t)p.layout[D].type, CUBLAS_STATUS_NOT_SUPPORTED,
		     "the bias has not D's type");
	CK_REFUSE_IF(!o.bias && o.bias_stride, CUBLAS_STATUS_INVALID_VALUE, "a batch stride of the bias, but no bias");
	if (!p.aux) {
		CK_REFUSE_IF(o.aux && o.epilogue != CUBLASLT_EPILOGUE_DEFAULT && o.epilogue != CUBLASLT_EPILOGUE_BIAS,
			     CUBLAS_STATUS_INVALID_VALUE, "GELU's input is stored by the AUX epilogues alone");
		return CUBLAS_STATUS_SUCCESS;
	}
	CK_REFUSE_IF(o.aux_type != -1 && o.aux_type != (int32_t)p.layout[D].type, CUBLAS_STATUS_INVALID_VALUE,
		     "GELU's input has not D's type");
	CK_REFUSE_IF(o.aux_ld % 8 || o.aux_ld < p.m, CUBLAS_STATUS_INVALID_VALUE,
		     "the leading dimension of GELU's input, %lld, is not divisible by 8 or less than D's %lld rows",
		     (long long)o.aux_ld, (long long)p.m);
	CK_REFUSE_IF(o.aux_stride % 8, CUBLAS_STATUS_INVALID_VALUE, "the batch stride of GELU's input is not divisible by 8");
	CK_REFUSE_IF(p.batch > 1 && o.aux_stride < p.n * o.aux_ld, CUBLAS_STATUS_INVALID_VALUE,
		     "GELU's inputs of a batch overlap: stride %lld", (long long)o.aux_stride);
	return CUBLAS_STATUS_SUCCESS;
}

static uint64_t hash_of(const problem &p)
{
	uint64_t hash = 0xcbf29ce484222325; /* FNV-1a */
	auto add = [&hash](int64_t v) { hash = (hash ^ (uint64_t)v) * 0x100000001b3; };
	const lt_operation &o = p.operation;
	for (int64_t v : {o.compute, o.transa, o.transb, (int32_t)o.epilogue, p.aux ? o.aux_type : 0})
		add(v);
	for (int64_t v : {o.bias_stride, p.aux ? o.aux_ld : 0, o.aux_stride})
		add(v);
	for (const lt_layout &l : p.layout)
		for (int64_t v : {(int64_t)l.type, (int64_t)l.rows, (int64_t)l.cols, l.ld, (int64_t)l.batch, l.stride})
			add(v);
	return hash;
}

cublasStatus_t ck_emu_problem(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const cublasLtMatrixLayout_t (&layouts)[4],
			      problem &p)
{
	CK_REFUSE_IF(!ck_emu_is_blas(handle), CUBLAS_STATUS_NOT_INITIALIZED, "no such cublasLtHandle_t");
	CK_REFUSE_IF(!desc || !layouts[A] || !layouts[B] || !layouts[C] || !layouts[D], CUBLAS_STATUS_INVALID_VALUE,
		     "a descriptor is NULL");
	p.operation = *ck_emu_operation(desc);
	for (int i = A; i <= D; i++)
		p.layout[i] = *ck_emu_layout(layouts[i]);
	cublasStatus_t status = check_types(p);
	if (status == CUBLAS_STATUS_SUCCESS)
		status = check_shapes(p);
	if (status == CUBLAS_STATUS_SUCCESS)
		status = check_epilogue(p);
	if (status == CUBLAS_STATUS_SUCCESS)
		p.hash = hash_of(p);
	return status;
}

/* ---- algorithms ----------------------------------------------------------------------------------------------------------- */

static size_t aligned(size_t bytes)
{
	return (bytes + 255) / 256 * 256;
}

/* Of the schemes that the mask allows, one; its workspace in bytes. NONE where the sum is short. */
static uint32_t choose_scheme(const problem &p, uint32_t mask, int splits, size_t *workspace)
{
	size_t results = (size_t)(p.m * p.n * p.batch);
	*workspace = 0;
	if (p.k < 64 || p.k < std::max(p.m, p.n))
		return CUBLASLT_REDUCTION_SCHEME_NONE;
	if (mask & CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE) {
		*workspace = aligned(results * (size_t)splits * ck_emu_size(p.type[D]));
		return CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
	}
	if (mask & CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE) {
		*workspace = aligned(results * (size_t)splits * sizeof(float));
		return CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
	}
	if (mask & CUBLASLT_REDUCTION_SCHEME_INPLACE) {
		*workspace = aligned((size_t)p.batch * sizeof(int));
		return CUBLASLT_REDUCTION_SCHEME_INPLACE;
	}
	return CUBLASLT_REDUCTION_SCHEME_NONE;
}

int ck_emu_find_algorithms(const problem &p, const lt_preference &wish, int most, cublasLtMatmulHeuristicResult_t *results)
{
	algorithm found = {};
	found.problem = p.hash;
	found.mark = MARK;
	for (int i = A; i <= D; i++)
		found.align[i] = (uint16_t)wish.align[i];
	found.align[BIAS] = (uint16_t)std::min(ck_emu_alignment(p.operation.bias), 16u);
	found.align[AUX] = (uint16_t)std::min(ck_emu_alignment(p.operation.aux), 16u);
	int count = 0;
	auto add = [&](int id, int splits, uint32_t scheme, size_t workspace) {
		if (count == most)
			return;
		found.id = id;
		found.splits = splits;
		found.scheme = scheme;
		found.workspace = workspace;
		cublasLtMatmulHeuristicResult_t &r = results[count++];
		r = {};
		memcpy(&r.algo, &found, sizeof found);
		r.workspaceSize = workspace;
		r.state = CUBLAS_STATUS_SUCCESS;
		r.wavesCount = 1;
	};
	enum { SPLITS = 3 };
	size_t workspace;
	uint32_t scheme = choose_scheme(p, wish.schemes, SPLITS, &workspace);
	if (scheme != CUBLASLT_REDUCTION_SCHEME_NONE && workspace <= wish.workspace)
		add(1, SPLITS, scheme, workspace);
	add(0, 1, CUBLASLT_REDUCTION_SCHEME_NONE, 0);
	return count;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
					      cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
					      cublasLtMatmulPreference_t preference, int most,
					      cublasLtMatmulHeuristicResult_t results[], int *count)
{
	CK_REFUSE_IF(!preference || !results || !count, CUBLAS_STATUS_INVALID_VALUE,
		     "no preference, or nowhere to put results");
	CK_REFUSE_IF(most < 1, CUBLAS_STATUS_INVALID_VALUE, "%d algorithms are wanted", most);
	*count = 0;
	const lt_preference &wish = *ck_emu_preference(preference);
	problem p = {};
	cublasStatus_t status = ck_emu_problem(handle, desc, {a, b, c, d}, p);
	if (status != CUBLAS_STATUS_SUCCESS)
		return status;
	for (int i = A; i <= D; i++) {
		uint32_t align = wish.align[i];
		CK_REFUSE_IF(align < ck_emu_size(p.type[i]) || (align & (align - 1)) || align > 1 << 15,
			     CUBLAS_STATUS_NOT_SUPPORTED, "no algorithm where %c is aligned to %u bytes", "ABCD"[i], align);
	}
	*count = ck_emu_find_algorithms(p, wish, most, results);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t ck_emu_algorithm(const problem &p, const cublasLtMatmulAlgo_t *algo, algorithm &found)
{
	memcpy(&found, algo, sizeof found);
	CK_REFUSE_IF(found.mark != MARK, CUBLAS_STATUS_INVALID_VALUE, "the algorithm is none that the heuristics gave");
	CK_REFUSE_IF(found.problem != p.hash, CUBLAS_STATUS_INVALID_VALUE, "the algorithm was found for another problem");
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
				       cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
				       const cublasLtMatmulAlgo_t *algo, cublasLtMatmulHeuristicResult_t *result)
{
	CK_REFUSE_IF(!algo || !result, CUBLAS_STATUS_INVALID_VALUE, "no algorithm, or nowhere to put the result");
	problem p = {};
	algorithm found;
	cublasStatus_t status = ck_emu_problem(handle, desc, {a, b, c, d}, p);
	if (status == CUBLAS_STATUS_SUCCESS)
		status = ck_emu_algorithm(p, algo, found);
	result->state = status;
	if (status != CUBLAS_STATUS_SUCCESS)
		return status;
	result->workspaceSize = found.workspace;
	result->wavesCount = 1;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algo, cublasLtMatmulAlgoConfigAttributes_t name,
						    void *value, size_t bytes, size_t *written)
{
	CK_REFUSE_IF(!algo || (bytes && !value) || (!bytes && !written), CUBLAS_STATUS_INVALID_VALUE,
		     "no algorithm, or nowhere to put the attribute");
	algorithm found;
	memcpy(&found, algo, sizeof found);
	CK_REFUSE_IF(found.mark != MARK, CUBLAS_STATUS_INVALID_VALUE, "the algorithm is none that the heuristics gave");
	if (name > CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME)
		ck_emu_fail("cublasLtMatmulAlgoConfigGetAttribute: attribute %d is not modelled", name);
	int32_t values[] = {found.id, CUBLASLT_MATMUL_TILE_64x64, found.splits, (int32_t)found.scheme};
	CK_REFUSE_IF(bytes && bytes != sizeof *values, CUBLAS_STATUS_INVALID_VALUE, "the attribute has %zu bytes, not %zu",
		     sizeof *values, bytes);
	if (bytes)
		memcpy(value, &values[name], bytes);
	if (written)
		*written = sizeof *values;
	return CUBLAS_STATUS_SUCCESS;
}
