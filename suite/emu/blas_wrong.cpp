/* The double of cuBLASLt: one wrong call for each rule, told by its status, or the program's end, and by its reason. */
#include "suite/emu/blas.h"

#include <string.h>

struct wrong_blas {
	const char *name;
	int status; /* ENDS: the program ends */
	const char *reason;
	void (*change)(blas &);
};

#define DESCRIBE(name_of, v) b.before_search = [](blas &c) { c.set(name_of, v); }
#define BEFORE(...) b.before_product = [](blas &c) { __VA_ARGS__; }

static const wrong_blas wrongs[] = {
    /* types */
    {"A and B of two types", CUBLAS_STATUS_INVALID_VALUE, "types of A and B", [](blas &b) { b.type[A] = CUDA_R_16F; }},
    {"C and D of two types", CUBLAS_STATUS_INVALID_VALUE, "types of C and D", [](blas &b) { b.type[C] = CUDA_R_32F; }},
    {"bfloat16 into float16", CUBLAS_STATUS_NOT_SUPPORTED, "bfloat16 into float16",
     [](blas &b) { blas_types(b, CUDA_R_16BF, CUDA_R_16F); }},
    {"float32 into bfloat16", CUBLAS_STATUS_NOT_SUPPORTED, "float32 into bfloat16",
     [](blas &b) { blas_types(b, CUDA_R_32F, CUDA_R_16BF); }},
    {"TF32 of bfloat16", CUBLAS_STATUS_NOT_SUPPORTED, "no product", [](blas &b) { b.compute = CUBLAS_COMPUTE_32F_FAST_TF32; }},
    {"alpha in bfloat16", CUBLAS_STATUS_INVALID_VALUE, "scale type", [](blas &b) { b.scale = CUDA_R_16BF; }},
    {"computed in half", ENDS, "compute type 64 is not modelled", [](blas &b) { b.compute = CUBLAS_COMPUTE_16F; }},
    {"float64", ENDS, "is not modelled", [](blas &b) { blas_types(b, CUDA_R_64F, CUDA_R_64F); }},
    {"an attribute of another size", CUBLAS_STATUS_INVALID_VALUE, "has 4 bytes, not 8", [](blas &b) { b.size_of_trans = 8; }},
    /* shapes */
    {"A's columns overlap", CUBLAS_STATUS_INVALID_VALUE, "leading dimension of A", [](blas &b) { b.gap[A] = -1; }},
    {"D's columns overlap", CUBLAS_STATUS_INVALID_VALUE, "leading dimension of D", [](blas &b) { b.gap[D] = -1; }},
    {"A not transposed", CUBLAS_STATUS_INVALID_VALUE, "inner dimension",
     [](blas &b) { DESCRIBE(CUBLASLT_MATMUL_DESC_TRANSA, (int32_t)CUBLAS_OP_N); }},
    {"no such operation", CUBLAS_STATUS_INVALID_VALUE, "not an operation",
     [](blas &b) { DESCRIBE(CUBLASLT_MATMUL_DESC_TRANSB, (int32_t)7); }},
    {"C transposed", CUBLAS_STATUS_NOT_SUPPORTED, "C is transposed",
     [](blas &b) { DESCRIBE(CUBLASLT_MATMUL_DESC_TRANSC, (int32_t)CUBLAS_OP_T); }},
    {"no such pointer mode", CUBLAS_STATUS_NOT_SUPPORTED, "pointer mode 9",
     [](blas &b) { DESCRIBE(CUBLASLT_MATMUL_DESC_POINTER_MODE, (int32_t)9); }},
    {"alpha is to lie on the device", ENDS, "pointer mode 1",
     [](blas &b) { DESCRIBE(CUBLASLT_MATMUL_DESC_POINTER_MODE, (int32_t)CUBLASLT_POINTER_MODE_DEVICE); }},
    {"columns further apart than an int", CUBLAS_STATUS_INVALID_VALUE, "more than an int holds",
     [](blas &b) { b.n = b.batch = 1, b.gap[D] = (int64_t)1 << 31; }},
    {"an empty sum", CUBLAS_STATUS_INVALID_VALUE, "an empty product",
     [](blas &b) {
	     b.before_search = [](blas &c) {
		     cublasLtMatrixLayoutCreate(&c.layout[A], CUDA_R_16BF, 0, 16, 0);
		     cublasLtMatrixLayoutCreate(&c.layout[B], CUDA_R_16BF, 0, 12, 0);
		     cublasLtMatrixLayoutCreate(&c.layout[C], CUDA_R_16BF, 16, 12, 16);
		     c.layout[D] = c.layout[C];
	     };
     }},
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
    {"a batch stride of no bias", CUBLAS_STATUS_INVALID_VALUE, "but no bias",
     [](blas &b) { DESCRIBE(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, (int64_t)16); }},
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
    {"GELU's input over D", ENDS, "D overlaps GELU's input",
     [](blas &b) {
	     b.epilogue = CUBLASLT_EPILOGUE_GELU_AUX, b.gap[D] = 8, b.gap[C] = 8;
	     BEFORE(c.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, (void *)c.at[D]));
     }},
    {"GELU's input over A", ENDS, "GELU's input overlaps A",
     [](blas &b) {
	     b.epilogue = CUBLASLT_EPILOGUE_GELU_AUX;
	     BEFORE(c.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, (void *)c.at[A]));
     }},
    {"GELU's gradient", ENDS, "epilogue 192 is not modelled", [](blas &b) { b.epilogue = CUBLASLT_EPILOGUE_DGELU; }},
    /* pointers */
    {"D is NULL", CUBLAS_STATUS_INVALID_VALUE, "D is NULL", [](blas &b) { BEFORE(c.at[D] = nullptr); }},
    {"A is NULL", CUBLAS_STATUS_INVALID_VALUE, "A or B is NULL", [](blas &b) { BEFORE(c.at[A] = nullptr); }},
    {"C is NULL, beta 1", CUBLAS_STATUS_INVALID_VALUE, "C is NULL", [](blas &b) { b.beta = 1, BEFORE(c.at[C] = nullptr); }},
    {"alpha is NULL", CUBLAS_STATUS_INVALID_VALUE, "alpha or beta is NULL", [](blas &b) { BEFORE(c.alpha_at = nullptr); }},
    {"alpha on the device", ENDS, "cublasLtMatmul: alpha", [](blas &b) { BEFORE(c.alpha_at = c.at[A]); }},
    {"beta on the device", ENDS, "cublasLtMatmul: beta", [](blas &b) { BEFORE(c.beta_at = c.at[A]); }},
    {"A on the host", ENDS, "cublasLtMatmul: A",
     [](blas &b) { BEFORE(c.at[A] = reinterpret_cast<char *>((uintptr_t)c.value[A].data() & ~(uintptr_t)255)); }},
    {"B an element too short", ENDS, "cublasLtMatmul: B", [](blas &b) { b.align[B] = 2, BEFORE(c.at[B] += 2); }},
    {"C over D in another layout", CUBLAS_STATUS_INVALID_VALUE, "C lies over D",
     [](blas &b) { b.beta = 1, b.gap[C] = 0, BEFORE(c.at[C] = c.at[D]); }},
    {"D over A", ENDS, "D overlaps A", [](blas &b) { BEFORE(c.at[D] = c.at[A]); }},
    {"D into B", ENDS, "D overlaps B", [](blas &b) { BEFORE(c.at[D] = c.at[B] + 64); }},
    {"D into C", ENDS, "D overlaps C",
     [](blas &b) { b.beta = 1, b.align[D] = 2, BEFORE(c.at[C] = device_memory(4096); c.at[D] = c.at[C] + 2); }},
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
    {"a workspace over D", ENDS, "D overlaps the workspace",
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
	for (const wrong_blas &w : wrongs)
		expect_refused(w.name, w.status, w.reason, [&w]() -> int {
			blas b;
			w.change(b);
			b.name = w.name;
			return b.run();
		});
}

/* Calls on nothing, and attributes: what the real library, too, said to these. */
Test(blas, descriptors)
{
	cublasLtHandle_t handle, gone;
	cublasLtMatmulDesc_t o;
	cublasLtMatrixLayout_t l;
	cublasLtMatmulPreference_t p;
	cublasLtCreate(&handle);
	cublasLtCreate(&gone);
	cublasLtDestroy(gone);
	cublasLtMatmulDescCreate(&o, CUBLAS_COMPUTE_32F, CUDA_R_32F);
	cublasLtMatrixLayoutCreate(&l, CUDA_R_32F, 8, 8, 8);
	cublasLtMatmulPreferenceCreate(&p);
	int32_t four = 4;
	int64_t eight = 8;
	cublasLtMatmulHeuristicResult_t found[1];
	cublasLtMatmulAlgo_t none = {};
	int count;
	size_t written;
	const struct {
		const char *call;
		cublasStatus_t want, got;
	} calls[] = {
#define CALL(want, call) {#call, want, call}
	    CALL(CUBLAS_STATUS_INVALID_VALUE, cublasLtCreate(NULL)),
	    CALL(CUBLAS_STATUS_NOT_INITIALIZED, cublasLtDestroy(gone)),
	    CALL(CUBLAS_STATUS_INVALID_VALUE, cublasLtMatmulDescCreate(NULL, CUBLAS_COMPUTE_32F, CUDA_R_32F)),
	    CALL(CUBLAS_STATUS_INVALID_VALUE, cublasLtMatrixLayoutCreate(NULL, CUDA_R_32F, 8, 4, 8)),
	    CALL(CUBLAS_STATUS_INVALID_VALUE, cublasLtMatmulPreferenceCreate(NULL)),
	    CALL(CUBLAS_STATUS_INVALID_VALUE, cublasLtMatmulDescSetAttribute(NULL, CUBLASLT_MATMUL_DESC_TRANSA, &four, 4)),
	    CALL(CUBLAS_STATUS_INVALID_VALUE, cublasLtMatmulDescSetAttribute(o, CUBLASLT_MATMUL_DESC_TRANSA, NULL, 4)),
	    CALL(CUBLAS_STATUS_INVALID_VALUE, cublasLtMatmulDescSetAttribute(o, CUBLASLT_MATMUL_DESC_TRANSA, &eight, 8)),
	    CALL(CUBLAS_STATUS_INVALID_VALUE, cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_LD, &four, 4)),
	    CALL(CUBLAS_STATUS_SUCCESS, cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_LD, &eight, 8)),
	    CALL(CUBLAS_STATUS_INVALID_VALUE,
		 cublasLtMatmulPreferenceSetAttribute(p, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &four, 4)),
	    CALL(CUBLAS_STATUS_INVALID_VALUE, cublasLtMatmulAlgoGetHeuristic(handle, o, l, l, l, l, NULL, 1, found, &count)),
	    CALL(CUBLAS_STATUS_INVALID_VALUE, cublasLtMatmulAlgoCheck(handle, o, l, l, l, l, NULL, found)),
	    CALL(CUBLAS_STATUS_INVALID_VALUE,
		 cublasLtMatmulAlgoConfigGetAttribute(NULL, CUBLASLT_ALGO_CONFIG_ID, &four, 4, &written)),
	    CALL(CUBLAS_STATUS_INVALID_VALUE,
		 cublasLtMatmulAlgoConfigGetAttribute(&none, CUBLASLT_ALGO_CONFIG_ID, &four, 4, &written)),
#undef CALL
	};
	for (const auto &call : calls)
		cr_expect(call.got == call.want, "%s: %s, not %s", call.call, cublasLtGetStatusName(call.got),
			  cublasLtGetStatusName(call.want));
	cr_expect(
	    !strcmp(cublasLtGetStatusString(CUBLAS_STATUS_NOT_SUPPORTED), "the requested functionality is not supported"));
}
