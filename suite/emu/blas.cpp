/* The double of cuBLASLt: right products against plain loops, and one wrong call for each rule, told by its status and its reason.
 *
 *     build/suite/emu-blas --filter 'blas/…' */
#include <cublasLt.h>

#include "suite/emu/doubles.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

enum { A, B, C, D, BIAS, AUX };

static stored stored_of(cudaDataType_t t)
{
	return t == CUDA_R_32F ? stored::f32 : t == CUDA_R_16F ? stored::f16 : stored::bf16;
}

/* A call, right as it stands: each test changes what it is about. */
struct blas {
	const char *name = "a right call";
	int m = 16, n = 12, k = 80, batch = 2;
	cudaDataType_t type[4] = {CUDA_R_16BF, CUDA_R_16BF, CUDA_R_16BF, CUDA_R_16BF};
	cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
	cudaDataType_t scale = CUDA_R_32F;
	cublasOperation_t transa = CUBLAS_OP_T, transb = CUBLAS_OP_N;
	cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
	int32_t order = CUBLASLT_ORDER_COL, bias_type = -1, aux_type = -1;
	int64_t gap[4] = {3, 0, 5, 5}; /* ld: rows and these */
	int64_t aux_ld = 24, aux_stride = 24 * 12;
	int more_rows = 0, batch_of_b = 0, requested = 4, which = 0,
	    size_of_trans = 4;   /* of D; 0: batch; algorithms, the one taken */
	int64_t stride_of_d = 0; /* 0: one behind the other */
	uint32_t align[4] = {64, 64, 64, 64}, schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
	uint64_t limit = 1 << 20;
	float alpha = 1, beta = 0;
	size_t offset[6] = {}; /* bytes, of the pointers behind an allocation's begin */
	std::function<void(blas &)> before_product = [](blas &) {};

	/* What is made of it. */
	cublasLtHandle_t handle;
	cublasLtMatmulDesc_t operation;
	cublasLtMatrixLayout_t layout[4];
	cublasLtMatmulHeuristicResult_t found[4];
	int count;
	std::vector<float> value[6];
	char *at[6];
	const void *alpha_at, *beta_at;
	const cublasLtMatmulAlgo_t *algo;
	void *workspace;
	size_t workspace_bytes;

	int64_t rows(int i) const
	{
		return i == A ? (transa == CUBLAS_OP_N ? m : k) : i == B ? (transb == CUBLAS_OP_N ? k : n) : m;
	}
	int64_t cols(int i) const
	{
		return i == A ? (transa == CUBLAS_OP_N ? k : m) : i == B ? (transb == CUBLAS_OP_N ? n : k) : n;
	}
	int64_t ld(int i) const
	{
		return rows(i) + gap[i];
	}
	int64_t stride(int i) const
	{
		return i == D && stride_of_d ? stride_of_d : ld(i) * cols(i);
	}
	stored t(int i) const
	{
		return stored_of(type[i < D ? i : D]);
	}
	bool has_bias() const
	{
		return epilogue & CUBLASLT_EPILOGUE_BIAS;
	}
	bool has_aux() const
	{
		return epilogue & 128;
	}

	template <class T> cublasStatus_t set(cublasLtMatmulDescAttributes_t name_of, T v, size_t bytes = sizeof(T))
	{
		return cublasLtMatmulDescSetAttribute(operation, name_of, &v, bytes);
	}
	template <class T> void prefer(cublasLtMatmulPreference_t wish, cublasLtMatmulPreferenceAttributes_t name_of, T v)
	{
		cr_assert(cublasLtMatmulPreferenceSetAttribute(wish, name_of, &v, sizeof v) == CUBLAS_STATUS_SUCCESS);
	}

	void lay_out()
	{
		for (int i = A; i <= D; i++) {
			int32_t b = i == B && batch_of_b ? batch_of_b : batch;
			int64_t s = stride(i);
			uint64_t r = (uint64_t)rows(i) + (i == D ? (uint64_t)more_rows : 0);
			cr_assert(cublasLtMatrixLayoutCreate(&layout[i], type[i], r, (uint64_t)cols(i), ld(i)) ==
				  CUBLAS_STATUS_SUCCESS);
			cublasLtMatrixLayoutSetAttribute(layout[i], CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &b, sizeof b);
			cublasLtMatrixLayoutSetAttribute(layout[i], CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &s, sizeof s);
			cublasLtMatrixLayoutSetAttribute(layout[i], CUBLASLT_MATRIX_LAYOUT_ORDER, &order, sizeof order);
			size_t n_values = (size_t)((batch - 1) * s + (cols(i) - 1) * ld(i) + rows(i));
			value[i] = eighths(n_values, (uint32_t)i);
			at[i] = upload(t(i), value[i], offset[i]);
		}
		value[BIAS] = eighths((size_t)m, BIAS);
		at[BIAS] = upload(t(BIAS), value[BIAS], offset[BIAS]);
		at[AUX] =
		    device_memory((size_t)((batch - 1) * aux_stride + (n - 1) * aux_ld + m) * ck_emu_size(t(AUX)), offset[AUX]);
	}

	cublasStatus_t describe()
	{
		cr_assert(cublasLtCreate(&handle) == CUBLAS_STATUS_SUCCESS);
		cr_assert(cublasLtMatmulDescCreate(&operation, compute, scale) == CUBLAS_STATUS_SUCCESS);
		cublasStatus_t status = set(CUBLASLT_MATMUL_DESC_TRANSA, (int64_t)transa, (size_t)size_of_trans);
		if (status != CUBLAS_STATUS_SUCCESS)
			return status;
		set(CUBLASLT_MATMUL_DESC_TRANSB, (int32_t)transb);
		set(CUBLASLT_MATMUL_DESC_EPILOGUE, (uint32_t)epilogue);
		set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, bias_type);
		if (has_bias())
			set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, (const void *)at[BIAS]);
		if (has_aux()) {
			set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, (void *)at[AUX]);
			set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, aux_ld);
			set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, aux_stride);
			set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, aux_type);
		}
		return CUBLAS_STATUS_SUCCESS;
	}

	cublasStatus_t search()
	{
		cublasLtMatmulPreference_t wish;
		cr_assert(cublasLtMatmulPreferenceCreate(&wish) == CUBLAS_STATUS_SUCCESS);
		prefer(wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, limit);
		prefer(wish, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, schemes);
		prefer(wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, align[A]);
		prefer(wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, align[B]);
		prefer(wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, align[C]);
		prefer(wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, align[D]);
		cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(handle, operation, layout[A], layout[B], layout[C],
								       layout[D], wish, requested, found, &count);
		cublasLtMatmulPreferenceDestroy(wish);
		return status;
	}

	cublasStatus_t multiply()
	{
		return cublasLtMatmul(handle, operation, alpha_at, at[A], layout[A], at[B], layout[B], beta_at, at[C],
				      layout[C], at[D], layout[D], algo, workspace, workspace_bytes, nullptr);
	}

	cublasStatus_t run()
	{
		lay_out();
		cublasStatus_t status = describe();
		if (status == CUBLAS_STATUS_SUCCESS)
			status = search();
		if (status != CUBLAS_STATUS_SUCCESS)
			return status;
		cr_assert(which < count, "%s: %d algorithms", name, count);
		algo = &found[which].algo;
		workspace_bytes = found[which].workspaceSize;
		workspace = workspace_bytes ? device_memory(workspace_bytes + 256) : nullptr;
		alpha_at = &alpha;
		beta_at = &beta;
		before_product(*this);
		status = multiply();
		cr_assert(cudaDeviceSynchronize() == cudaSuccess);
		return status;
	}

	/* The exact sum, scaled, with C and the bias added: what goes into the activation. */
	double before_activation(int64_t e, int64_t i, int64_t j) const
	{
		double sum = 0;
		for (int64_t l = 0; l < k; l++)
			sum +=
			    (double)
				value[A][(size_t)(e * stride(A) + (transa == CUBLAS_OP_N ? l * ld(A) + i : i * ld(A) + l))] *
			    (double)value[B][(size_t)(e * stride(B) + (transb == CUBLAS_OP_N ? j * ld(B) + l : l * ld(B) + j))];
		sum *= (double)alpha;
		if (beta != 0)
			sum += (double)beta * (double)value[C][(size_t)(e * stride(C) + j * ld(C) + i)];
		return has_bias() ? sum + (double)value[BIAS][(size_t)i] : sum;
	}
};

static double activated(cublasLtEpilogue_t epilogue, double x)
{
	if (epilogue & CUBLASLT_EPILOGUE_RELU)
		return x < 0 ? 0 : x;
	if (epilogue & CUBLASLT_EPILOGUE_GELU)
		return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
	return x;
}

/* Every element, and what lies between the columns untouched. GELU alone is not exact: float's
 * arithmetic, which loses digits where 1 + tanh is near 0, and one rounding more or less to a 16-bit type. */
static void expect_right(blas &b)
{
	cr_assert(b.run() == CUBLAS_STATUS_SUCCESS, "%s: %s", b.name, ck_emu_refusal());
	std::vector<float> d = download(b.t(D), b.at[D], b.value[D].size()), aux;
	if (b.has_aux())
		aux = download(b.t(D), b.at[AUX], (size_t)((b.batch - 1) * b.aux_stride + (b.n - 1) * b.aux_ld + b.m));
	double unit = !(b.epilogue & CUBLASLT_EPILOGUE_GELU) ? 0
		      : b.t(D) == stored::f32                ? 1e-6
		      : b.t(D) == stored::f16                ? 0x1p-10
							     : 0x1p-7;
	std::vector<bool> written(d.size(), false);
	for (int64_t e = 0; e < b.batch; e++)
		for (int64_t j = 0; j < b.n; j++)
			for (int64_t i = 0; i < b.m; i++) {
				size_t at = (size_t)(e * b.stride(D) + j * b.ld(D) + i);
				double z = b.before_activation(e, i, j), y = activated(b.epilogue, z);
				double want = (double)rounded(b.t(D), y), got = (double)d[at];
				cr_assert(fabs(got - want) <= unit * fabs(want) + (unit ? 1e-7 * fabs(z) : 0),
					  "%s: D[%d][%d,%d] is %.9g, not %.9g", b.name, (int)e, (int)i, (int)j, got, want);
				written[at] = true;
				if (b.has_aux()) {
					float stored_z = aux[(size_t)(e * b.aux_stride + j * b.aux_ld + i)];
					cr_assert(stored_z == rounded(b.t(D), z), "%s: GELU's input is %g, not %g", b.name,
						  (double)stored_z, z);
				}
			}
	for (size_t i = 0; i < d.size(); i++)
		cr_assert(written[i] || d[i] == b.value[D][i], "%s: element %zu between D's columns was written", b.name, i);
}

struct variant {
	const char *name;
	void (*change)(blas &);
};

static void types(blas &b, cudaDataType_t ab, cudaDataType_t cd)
{
	b.type[A] = b.type[B] = ab;
	b.type[C] = b.type[D] = cd;
}

static const variant right[] = {
    {"bfloat16, TN, a sum in parts", [](blas &) {}},
    {"bfloat16 into float32, NT",
     [](blas &b) { types(b, CUDA_R_16BF, CUDA_R_32F), b.transa = CUBLAS_OP_N, b.transb = CUBLAS_OP_T; }},
    {"float16, NN", [](blas &b) { types(b, CUDA_R_16F, CUDA_R_16F), b.transa = CUBLAS_OP_N; }},
    {"float16 into float32, TT", [](blas &b) { types(b, CUDA_R_16F, CUDA_R_32F), b.transb = CUBLAS_OP_T; }},
    {"float32, one of a kind", [](blas &b) { types(b, CUDA_R_32F, CUDA_R_32F), b.batch = 1; }},
    {"float32, one by one by one", [](blas &b) { types(b, CUDA_R_32F, CUDA_R_32F), b.m = b.n = b.k = b.batch = 1; }},
    {"float32, more than a block each way",
     [](blas &b) { types(b, CUDA_R_32F, CUDA_R_32F), b.m = 70, b.n = 9, b.k = 33, b.aux_ld = 72, b.aux_stride = 720; }},
    {"alpha and beta", [](blas &b) { types(b, CUDA_R_32F, CUDA_R_32F), b.alpha = 0.5f, b.beta = 2; }},
    {"in place",
     [](blas &b) {
	     types(b, CUDA_R_32F, CUDA_R_32F), b.beta = 1;
	     b.before_product = [](blas &c) { c.at[C] = c.at[D], c.layout[C] = c.layout[D], c.value[C] = c.value[D]; };
     }},
    {"bias", [](blas &b) { b.epilogue = CUBLASLT_EPILOGUE_BIAS; }},
    {"ReLU and bias", [](blas &b) { b.epilogue = CUBLASLT_EPILOGUE_RELU_BIAS; }},
    {"GELU and bias", [](blas &b) { b.epilogue = CUBLASLT_EPILOGUE_GELU_BIAS; }},
    {"GELU with its input", [](blas &b) { types(b, CUDA_R_32F, CUDA_R_32F), b.epilogue = CUBLASLT_EPILOGUE_GELU_AUX; }},
    {"GELU with its input, and bias",
     [](blas &b) { b.epilogue = CUBLASLT_EPILOGUE_GELU_AUX_BIAS, b.bias_type = b.aux_type = CUDA_R_16BF; }},
    {"in one sequence", [](blas &b) { b.schemes = CUBLASLT_REDUCTION_SCHEME_NONE; }},
    {"TF32, of numbers that it holds",
     [](blas &b) { types(b, CUDA_R_32F, CUDA_R_32F), b.compute = CUBLAS_COMPUTE_32F_FAST_TF32; }},
    {"D's matrices interleave", [](blas &b) { b.gap[D] = b.m + 5, b.stride_of_d = b.m; }},
};

Test(blas, right_products)
{
	for (const variant &v : right) {
		blas b;
		v.change(b);
		b.name = v.name;
		expect_right(b);
	}
}

/* The first of several algorithms splits a long sum, if it may: its parts need a workspace, and in the output's type they are rounded. */
Test(blas, long_sums_are_split)
{
	blas b;
	types(b, CUDA_R_16BF, CUDA_R_32F);
	cr_assert(b.run() == CUBLAS_STATUS_SUCCESS && b.count == 2);
	cr_expect(b.found[0].workspaceSize > 0 && b.found[1].workspaceSize == 0);
	int32_t splits = 0;
	size_t written = 0;
	cublasLtMatmulAlgoConfigGetAttribute(&b.found[0].algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &splits, sizeof splits,
					     &written);
	cr_expect(splits > 1 && written == sizeof splits);
	cublasLtMatmulHeuristicResult_t again = {};
	cr_expect(cublasLtMatmulAlgoCheck(b.handle, b.operation, b.layout[A], b.layout[B], b.layout[C], b.layout[D],
					  &b.found[0].algo, &again) == CUBLAS_STATUS_SUCCESS);
	cr_expect(again.workspaceSize == b.found[0].workspaceSize);

	blas no_room;
	no_room.limit = 0;
	cr_expect(no_room.run() == CUBLAS_STATUS_SUCCESS && no_room.count == 1 && no_room.found[0].workspaceSize == 0);

	blas in_parts, whole;
	in_parts.schemes = CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
	cr_assert(in_parts.run() == CUBLAS_STATUS_SUCCESS && whole.run() == CUBLAS_STATUS_SUCCESS);
	size_t n = whole.value[D].size();
	cr_expect(download(stored::bf16, in_parts.at[D], n) != download(stored::bf16, whole.at[D], n),
		  "parts rounded to bfloat16 give the same sums");
}

/* 1 + 2^-11 is a float and no TF32, half or bfloat16. */
Test(blas, fast_compute_types_round_the_operands)
{
	static const struct {
		cublasComputeType_t compute;
		float squared;
	} kinds[] = {{CUBLAS_COMPUTE_32F, (1 + 0x1p-11f) * (1 + 0x1p-11f)},
		     {CUBLAS_COMPUTE_32F_PEDANTIC, (1 + 0x1p-11f) * (1 + 0x1p-11f)},
		     {CUBLAS_COMPUTE_32F_FAST_TF32, 1},
		     {CUBLAS_COMPUTE_32F_FAST_16F, 1},
		     {CUBLAS_COMPUTE_32F_FAST_16BF, 1}};
	for (const auto &kind : kinds) {
		blas b;
		types(b, CUDA_R_32F, CUDA_R_32F);
		b.m = b.n = b.k = b.batch = 1;
		b.compute = kind.compute;
		b.before_product = [](blas &c) { c.at[A] = c.at[B] = upload(stored::f32, {1 + 0x1p-11f}); };
		cr_assert(b.run() == CUBLAS_STATUS_SUCCESS);
		float got = download(stored::f32, b.at[D], 1)[0];
		cr_expect(got == kind.squared, "compute type %d: %.9g, not %.9g", kind.compute, (double)got,
			  (double)kind.squared);
	}
}

Test(blas, the_workspace_is_spoiled)
{
	blas b;
	b.before_product = [](blas &c) { c.workspace = upload(stored::f32, std::vector<float>(c.workspace_bytes / 4, 1.0f)); };
	cr_assert(b.run() == CUBLAS_STATUS_SUCCESS && b.workspace_bytes > 0);
	std::vector<float> left = download(stored::f32, b.workspace, b.workspace_bytes / 4);
	for (float v : left)
		cr_assert(isnan(v), "the workspace keeps what lay there");
}

/* ---- wrong calls ---------------------------------------------------------------------------------------------------------- */

struct wrong {
	const char *name;
	int status; /* ENDS: the program ends */
	const char *reason;
	void (*change)(blas &);
};

#define BEFORE(...) b.before_product = [](blas &c) { __VA_ARGS__; }

static const wrong wrongs[] = {
    /* types */
    {"A and B of two types", CUBLAS_STATUS_INVALID_VALUE, "types of A and B", [](blas &b) { b.type[A] = CUDA_R_16F; }},
    {"C and D of two types", CUBLAS_STATUS_INVALID_VALUE, "types of C and D", [](blas &b) { b.type[C] = CUDA_R_32F; }},
    {"bfloat16 into float16", CUBLAS_STATUS_NOT_SUPPORTED, "bfloat16 into float16",
     [](blas &b) { types(b, CUDA_R_16BF, CUDA_R_16F); }},
    {"float32 into bfloat16", CUBLAS_STATUS_NOT_SUPPORTED, "float32 into bfloat16",
     [](blas &b) { types(b, CUDA_R_32F, CUDA_R_16BF); }},
    {"TF32 of bfloat16", CUBLAS_STATUS_NOT_SUPPORTED, "no product", [](blas &b) { b.compute = CUBLAS_COMPUTE_32F_FAST_TF32; }},
    {"alpha in bfloat16", CUBLAS_STATUS_INVALID_VALUE, "scale type", [](blas &b) { b.scale = CUDA_R_16BF; }},
    {"computed in half", ENDS, "compute type 64 is not modelled", [](blas &b) { b.compute = CUBLAS_COMPUTE_16F; }},
    {"float64", ENDS, "is not modelled", [](blas &b) { types(b, CUDA_R_64F, CUDA_R_64F); }},
    {"an attribute of another size", CUBLAS_STATUS_INVALID_VALUE, "has 4 bytes, not 8", [](blas &b) { b.size_of_trans = 8; }},
    /* shapes */
    {"A's columns overlap", CUBLAS_STATUS_INVALID_VALUE, "leading dimension of A", [](blas &b) { b.gap[A] = -1; }},
    {"D's columns overlap", CUBLAS_STATUS_INVALID_VALUE, "leading dimension of D", [](blas &b) { b.gap[D] = -1; }},
    {"A not transposed", CUBLAS_STATUS_INVALID_VALUE, "inner dimension",
     [](blas &b) { b.size_of_trans = 4, BEFORE(c.set(CUBLASLT_MATMUL_DESC_TRANSA, (int32_t)CUBLAS_OP_N)); }},
    {"D with a row too many", CUBLAS_STATUS_INVALID_VALUE, "D is 17x12", [](blas &b) { b.more_rows = 1; }},
    {"batches of two sizes", CUBLAS_STATUS_INVALID_VALUE, "batch count of B", [](blas &b) { b.batch_of_b = 1; }},
    {"row-major", ENDS, "order 1 of matrix A", [](blas &b) { b.order = CUBLASLT_ORDER_ROW; }},
    {"the matrices of D overlap", ENDS, "matrices of D overlap", [](blas &b) { b.stride_of_d = 8; }},
    /* heuristics */
    {"no algorithm wanted", CUBLAS_STATUS_INVALID_VALUE, "0 algorithms", [](blas &b) { b.requested = 0; }},
    {"aligned to less than an element", CUBLAS_STATUS_NOT_SUPPORTED, "aligned to 1 bytes", [](blas &b) { b.align[B] = 1; }},
    {"A less aligned than promised", CUBLAS_STATUS_NOT_SUPPORTED, "A is aligned to 32 bytes",
     [](blas &b) { b.offset[A] = 32; }},
    {"D less aligned than the default promises", CUBLAS_STATUS_NOT_SUPPORTED, "D is aligned to 64 bytes",
     [](blas &b) { b.align[D] = 256, b.offset[D] = 64; }},
    {"an algorithm from nowhere", CUBLAS_STATUS_INVALID_VALUE, "none that the heuristics gave",
     [](blas &b) { BEFORE(memset(&c.found[0].algo, 0, sizeof c.found[0].algo)); }},
    {"an algorithm for another problem", CUBLAS_STATUS_INVALID_VALUE, "another problem",
     [](blas &b) { BEFORE(c.set(CUBLASLT_MATMUL_DESC_EPILOGUE, (uint32_t)CUBLASLT_EPILOGUE_RELU)); }},
    {"no algorithm", ENDS, "no algorithm given", [](blas &b) { BEFORE(c.algo = nullptr); }},
    /* epilogues */
    {"no bias", CUBLAS_STATUS_INVALID_VALUE, "needs a bias pointer",
     [](blas &b) { b.epilogue = CUBLASLT_EPILOGUE_BIAS, BEFORE(c.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, (void *)nullptr)); }},
    {"a float32 bias of bfloat16", CUBLAS_STATUS_NOT_SUPPORTED, "bias has not D's type",
     [](blas &b) { b.epilogue = CUBLASLT_EPILOGUE_BIAS, b.bias_type = CUDA_R_32F; }},
    {"a bias between elements", CUBLAS_STATUS_INVALID_VALUE, "bias is not aligned to its type",
     [](blas &b) { b.epilogue = CUBLASLT_EPILOGUE_BIAS, b.offset[BIAS] = 1; }},
    {"a bias less aligned than the heuristics saw", CUBLAS_STATUS_NOT_SUPPORTED, "the bias is aligned to 4 bytes",
     [](blas &b) {
	     b.epilogue = CUBLASLT_EPILOGUE_BIAS;
	     BEFORE(c.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, (void *)(upload(stored::bf16, c.value[BIAS], 4))));
     }},
    {"a bias too short", ENDS, "cublasLtMatmul: the bias",
     [](blas &b) {
	     b.epilogue = CUBLASLT_EPILOGUE_BIAS;
	     BEFORE(c.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, (void *)device_memory((size_t)c.m * 2 - 2)));
     }},
    {"no place for GELU's input", CUBLAS_STATUS_INVALID_VALUE, "needs a pointer for GELU's input",
     [](blas &b) {
	     b.epilogue = CUBLASLT_EPILOGUE_GELU_AUX;
	     BEFORE(c.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, (void *)nullptr));
     }},
    {"GELU's input with a leading dimension of 20", CUBLAS_STATUS_INVALID_VALUE, "not divisible by 8",
     [](blas &b) { b.epilogue = CUBLASLT_EPILOGUE_GELU_AUX, b.aux_ld = 20; }},
    {"GELU's input in columns too short", CUBLAS_STATUS_INVALID_VALUE, "less than D's 16 rows",
     [](blas &b) { b.epilogue = CUBLASLT_EPILOGUE_GELU_AUX, b.aux_ld = 8; }},
    {"GELU's inputs overlap", CUBLAS_STATUS_INVALID_VALUE, "overlap: stride 280",
     [](blas &b) { b.epilogue = CUBLASLT_EPILOGUE_GELU_AUX, b.aux_stride = 280; }},
    {"GELU's inputs 4 apart", CUBLAS_STATUS_INVALID_VALUE, "batch stride of GELU's input",
     [](blas &b) { b.epilogue = CUBLASLT_EPILOGUE_GELU_AUX, b.aux_stride += 4; }},
    {"GELU's input in float32", CUBLAS_STATUS_INVALID_VALUE, "has not D's type",
     [](blas &b) { b.epilogue = CUBLASLT_EPILOGUE_GELU_AUX, b.aux_type = CUDA_R_32F; }},
    {"GELU that stores no input, with a place for it", CUBLAS_STATUS_INVALID_VALUE, "AUX epilogues alone",
     [](blas &b) {
	     b.epilogue = CUBLASLT_EPILOGUE_GELU;
	     BEFORE(c.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, (void *)c.at[AUX]));
     }},
    {"GELU's input over D", ENDS, "GELU's input overlaps D",
     [](blas &b) {
	     b.epilogue = CUBLASLT_EPILOGUE_GELU_AUX, b.gap[D] = 8, b.gap[C] = 8;
	     BEFORE(c.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, (void *)c.at[D]));
     }},
    {"GELU's gradient", ENDS, "epilogue 192 is not modelled", [](blas &b) { b.epilogue = CUBLASLT_EPILOGUE_DGELU; }},
    /* pointers */
    {"D is NULL", CUBLAS_STATUS_INVALID_VALUE, "D is NULL", [](blas &b) { BEFORE(c.at[D] = nullptr); }},
    {"A is NULL", CUBLAS_STATUS_INVALID_VALUE, "A or B is NULL", [](blas &b) { BEFORE(c.at[A] = nullptr); }},
    {"C is NULL, beta 1", CUBLAS_STATUS_INVALID_VALUE, "C is NULL", [](blas &b) { b.beta = 1, BEFORE(c.at[C] = nullptr); }},
    {"alpha is NULL", CUBLAS_STATUS_INVALID_VALUE, "alpha or beta is NULL", [](blas &b) { BEFORE(c.alpha_at = nullptr); }},
    {"alpha on the device", ENDS, "cublasLtMatmul: alpha", [](blas &b) { BEFORE(c.alpha_at = c.at[A]); }},
    {"A on the host", ENDS, "cublasLtMatmul: A",
     [](blas &b) { BEFORE(c.at[A] = reinterpret_cast<char *>(c.value[A].data())); }},
    {"B an element too short", ENDS, "cublasLtMatmul: B", [](blas &b) { b.align[B] = 2, BEFORE(c.at[B] += 2); }},
    {"C over D in another layout", CUBLAS_STATUS_INVALID_VALUE, "C lies over D",
     [](blas &b) { b.beta = 1, b.gap[C] = 0, BEFORE(c.at[C] = c.at[D]); }},
    {"D over A", ENDS, "D overlaps A", [](blas &b) { BEFORE(c.at[D] = c.at[A]); }},
    {"D into B", ENDS, "D overlaps B", [](blas &b) { BEFORE(c.at[D] = c.at[B] + 64); }},
    /* workspace */
    {"no workspace", CUBLAS_STATUS_INVALID_VALUE, "the algorithm needs",
     [](blas &b) { BEFORE(c.workspace = nullptr, c.workspace_bytes = 0); }},
    {"a workspace at NULL", CUBLAS_STATUS_INVALID_VALUE, "at NULL", [](blas &b) { BEFORE(c.workspace = nullptr); }},
    {"a workspace one byte too small", CUBLAS_STATUS_INVALID_VALUE, "the algorithm needs",
     [](blas &b) { BEFORE(c.workspace_bytes--); }},
    {"a workspace aligned to 64 bytes", CUBLAS_STATUS_INVALID_VALUE, "not aligned to 256",
     [](blas &b) { BEFORE(c.workspace = static_cast<char *>(c.workspace) + 64); }},
    {"a workspace on the host", ENDS, "the workspace",
     [](blas &b) { BEFORE(c.workspace = reinterpret_cast<void *>((uintptr_t)0x100000)); }},
    {"a workspace over D", ENDS, "the workspace overlaps",
     [](blas &b) {
	     b.m = 64, b.n = 64, b.aux_ld = 64, b.aux_stride = 64 * 64, BEFORE(c.workspace = c.at[D], c.workspace_bytes = 4096);
	     b.k = 80, b.which = 1;
     }},
    /* objects */
    {"a handle that is gone", CUBLAS_STATUS_NOT_INITIALIZED, "no such", [](blas &b) { BEFORE(cublasLtDestroy(c.handle)); }},
    {"a layout that is gone", ENDS, "was destroyed", [](blas &b) { BEFORE(cublasLtMatrixLayoutDestroy(c.layout[B])); }},
    {"no layout of C", CUBLAS_STATUS_INVALID_VALUE, "a descriptor is NULL", [](blas &b) { BEFORE(c.layout[C] = nullptr); }},
};

Test(blas, wrong_calls_are_refused)
{
	for (const wrong &w : wrongs)
		expect_refused(w.name, w.status, w.reason, [&w]() -> int {
			blas b;
			w.change(b);
			b.name = w.name;
			return b.run();
		});
}
