/* A call of cuBLASLt's product on the emulated device. */
#ifndef CK_SUITE_EMU_BLAS_H
#define CK_SUITE_EMU_BLAS_H

#include <cublasLt.h>

#include "suite/emu/doubles.h"

#include <criterion/criterion.h>

enum { A, B, C, D, BIAS, AUX };

inline stored blas_stored(cudaDataType_t t)
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
	std::function<void(blas &)> before_search = [](blas &) {}, before_product = [](blas &) {};

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
		return blas_stored(type[i < D ? i : D]);
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
		if (status != CUBLAS_STATUS_SUCCESS)
			return status;
		before_search(*this);
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

inline void blas_types(blas &b, cudaDataType_t ab, cudaDataType_t cd)
{
	b.type[A] = b.type[B] = ab;
	b.type[C] = b.type[D] = cd;
}

#endif
