/* The double of cuBLASLt: right products against plain loops. Wrong calls are in blas_wrong.cpp.
 *
 *     build/suite/emu-blas --filter 'blas/...' */
#include "suite/emu/blas.h"

#include <math.h>

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

struct blas_variant {
	const char *name;
	void (*change)(blas &);
};

static const blas_variant right[] = {
    {"bfloat16, TN, a sum in parts", [](blas &) {}},
    {"bfloat16 into float32, NT",
     [](blas &b) { blas_types(b, CUDA_R_16BF, CUDA_R_32F), b.transa = CUBLAS_OP_N, b.transb = CUBLAS_OP_T; }},
    {"float16, NN", [](blas &b) { blas_types(b, CUDA_R_16F, CUDA_R_16F), b.transa = CUBLAS_OP_N; }},
    {"float16 into float32, TT", [](blas &b) { blas_types(b, CUDA_R_16F, CUDA_R_32F), b.transb = CUBLAS_OP_T; }},
    {"float32, one of a kind", [](blas &b) { blas_types(b, CUDA_R_32F, CUDA_R_32F), b.batch = 1; }},
    {"float32, one by one by one", [](blas &b) { blas_types(b, CUDA_R_32F, CUDA_R_32F), b.m = b.n = b.k = b.batch = 1; }},
    {"float32, more than a block each way",
     [](blas &b) { blas_types(b, CUDA_R_32F, CUDA_R_32F), b.m = 70, b.n = 9, b.k = 33, b.aux_ld = 72, b.aux_stride = 720; }},
    {"alpha and beta", [](blas &b) { blas_types(b, CUDA_R_32F, CUDA_R_32F), b.alpha = 0.5f, b.beta = 2; }},
    {"in place",
     [](blas &b) {
	     blas_types(b, CUDA_R_32F, CUDA_R_32F), b.beta = 1;
	     b.before_product = [](blas &c) { c.at[C] = c.at[D], c.layout[C] = c.layout[D], c.value[C] = c.value[D]; };
     }},
    {"bias", [](blas &b) { b.epilogue = CUBLASLT_EPILOGUE_BIAS; }},
    {"ReLU and bias", [](blas &b) { b.epilogue = CUBLASLT_EPILOGUE_RELU_BIAS; }},
    {"GELU and bias", [](blas &b) { b.epilogue = CUBLASLT_EPILOGUE_GELU_BIAS; }},
    {"GELU with its input", [](blas &b) { blas_types(b, CUDA_R_32F, CUDA_R_32F), b.epilogue = CUBLASLT_EPILOGUE_GELU_AUX; }},
    {"GELU with its input, and bias",
     [](blas &b) { b.epilogue = CUBLASLT_EPILOGUE_GELU_AUX_BIAS, b.bias_type = b.aux_type = CUDA_R_16BF; }},
    {"in one sequence", [](blas &b) { b.schemes = CUBLASLT_REDUCTION_SCHEME_NONE; }},
    {"TF32, of numbers that it holds",
     [](blas &b) { blas_types(b, CUDA_R_32F, CUDA_R_32F), b.compute = CUBLAS_COMPUTE_32F_FAST_TF32; }},
    {"D's matrices interleave", [](blas &b) { b.gap[D] = b.m + 5, b.stride_of_d = b.m; }},
};

Test(blas, right_products)
{
	for (const blas_variant &v : right) {
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
	blas_types(b, CUDA_R_16BF, CUDA_R_32F);
	cr_assert(b.run() == CUBLAS_STATUS_SUCCESS && b.count == 2);
	cr_expect(b.found[0].workspaceSize > 0 && b.found[1].workspaceSize == 0);
	int32_t splits = 0;
	size_t written = 0;
	cublasLtMatmulAlgoConfigGetAttribute(&b.found[0].algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &splits, sizeof splits,
					     &written);
	cr_expect(splits > 1 && written == sizeof splits);
	cr_expect(cublasLtMatmulAlgoConfigGetAttribute(&b.found[0].algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &splits, 2,
						       &written) == CUBLAS_STATUS_INVALID_VALUE);
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
		blas_types(b, CUDA_R_32F, CUDA_R_32F);
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
