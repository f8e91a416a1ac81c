/* cuBLASLt's descriptors. */
#include "kernels/emu/cublaslt_double.h"

#include <string.h>

/* ---- an attribute: where it lies in the descriptor, and its size ---------------------------------------------------------- */

namespace
{
struct attribute {
	int name;
	size_t offset, bytes;
};
} // namespace

#define AT(name, type, member)                                                                                                 \
	{                                                                                                                      \
		name, offsetof(type, member), sizeof(type::member)                                                             \
	}

static const attribute operation_attributes[] = {
    AT(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, lt_operation, compute),
    AT(CUBLASLT_MATMUL_DESC_SCALE_TYPE, lt_operation, scale),
    AT(CUBLASLT_MATMUL_DESC_POINTER_MODE, lt_operation, pointer_mode),
    AT(CUBLASLT_MATMUL_DESC_TRANSA, lt_operation, transa),
    AT(CUBLASLT_MATMUL_DESC_TRANSB, lt_operation, transb),
    AT(CUBLASLT_MATMUL_DESC_TRANSC, lt_operation, transc),
    AT(CUBLASLT_MATMUL_DESC_FILL_MODE, lt_operation, fill),
    AT(CUBLASLT_MATMUL_DESC_EPILOGUE, lt_operation, epilogue),
    AT(CUBLASLT_MATMUL_DESC_BIAS_POINTER, lt_operation, bias),
    AT(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, lt_operation, bias_stride),
    AT(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, lt_operation, bias_type),
    AT(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, lt_operation, aux),
    AT(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, lt_operation, aux_ld),
    AT(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, lt_operation, aux_stride),
    AT(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, lt_operation, aux_type),
};

static const attribute layout_attributes[] = {
    AT(CUBLASLT_MATRIX_LAYOUT_TYPE, lt_layout, type),
    AT(CUBLASLT_MATRIX_LAYOUT_ORDER, lt_layout, order),
    AT(CUBLASLT_MATRIX_LAYOUT_ROWS, lt_layout, rows),
    AT(CUBLASLT_MATRIX_LAYOUT_COLS, lt_layout, cols),
    AT(CUBLASLT_MATRIX_LAYOUT_LD, lt_layout, ld),
    AT(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, lt_layout, batch),
    AT(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, lt_layout, stride),
};

static const attribute preference_attributes[] = {
    AT(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, lt_preference, workspace),
    AT(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, lt_preference, schemes),
    AT(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, lt_preference, align[0]),
    AT(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, lt_preference, align[1]),
    AT(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, lt_preference, align[2]),
    AT(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, lt_preference, align[3]),
};

#undef AT

template <size_t N>
static cublasStatus_t set(void *object, const attribute (&known)[N], int name, const void *value, size_t bytes,
			  const char *call)
{
	CK_REFUSE_IF(!object || !value, CUBLAS_STATUS_INVALID_VALUE, "%s: no descriptor or no value", call);
	for (const attribute &a : known)
		if (a.name == name) {
			CK_REFUSE_IF(bytes != a.bytes, CUBLAS_STATUS_INVALID_VALUE, "%s: attribute %d has %zu bytes, not %zu",
				     call, name, a.bytes, bytes);
			memcpy(static_cast<char *>(object) + a.offset, value, bytes);
			return CUBLAS_STATUS_SUCCESS;
		}
	ck_emu_fail("%s: attribute %d is not modelled", call, name);
}

/* ---- live descriptors ----------------------------------------------------------------------------------------------------- */

static ck_emu_live<lt_operation> operations = {"cublasLtMatmulDesc_t", {}};
static ck_emu_live<lt_layout> layouts = {"cublasLtMatrixLayout_t", {}};
static ck_emu_live<lt_preference> preferences = {"cublasLtMatmulPreference_t", {}};

const lt_operation *ck_emu_operation(cublasLtMatmulDesc_t desc)
{
	return operations.find(desc);
}

const lt_layout *ck_emu_layout(cublasLtMatrixLayout_t desc)
{
	return layouts.find(desc);
}

const lt_preference *ck_emu_preference(cublasLtMatmulPreference_t desc)
{
	return preferences.find(desc);
}

/* ---- the library's functions ---------------------------------------------------------------------------------------------- */

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, cublasComputeType_t compute, cudaDataType_t scale)
{
	CK_REFUSE_IF(!desc, CUBLAS_STATUS_INVALID_VALUE, "cublasLtMatmulDescCreate: nowhere to put it");
	lt_operation *made = operations.make();
	*made = {};
	made->compute = compute;
	made->scale = scale;
	made->fill = CUBLAS_FILL_MODE_FULL;
	made->epilogue = CUBLASLT_EPILOGUE_DEFAULT;
	made->bias_type = made->aux_type = -1;
	*desc = reinterpret_cast<cublasLtMatmulDesc_t>(made);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc)
{
	return operations.erase(desc) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t name, const void *value,
					      size_t bytes)
{
	return set(operations.find(desc), operation_attributes, name, value, bytes, "cublasLtMatmulDescSetAttribute");
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *desc, cudaDataType type, uint64_t rows, uint64_t cols,
					  int64_t ld)
{
	CK_REFUSE_IF(!desc, CUBLAS_STATUS_INVALID_VALUE, "cublasLtMatrixLayoutCreate: nowhere to put it");
	lt_layout *made = layouts.make();
	*made = {(uint32_t)type, CUBLASLT_ORDER_COL, rows, cols, ld, 1, 0};
	*desc = reinterpret_cast<cublasLtMatrixLayout_t>(made);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t desc)
{
	return layouts.erase(desc) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t desc, cublasLtMatrixLayoutAttribute_t name,
						const void *value, size_t bytes)
{
	return set(layouts.find(desc), layout_attributes, name, value, bytes, "cublasLtMatrixLayoutSetAttribute");
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *desc)
{
	CK_REFUSE_IF(!desc, CUBLAS_STATUS_INVALID_VALUE, "cublasLtMatmulPreferenceCreate: nowhere to put it");
	lt_preference *made = preferences.make();
	*made = {0, CUBLASLT_REDUCTION_SCHEME_MASK, {256, 256, 256, 256}};
	*desc = reinterpret_cast<cublasLtMatmulPreference_t>(made);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t desc)
{
	return preferences.erase(desc) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t desc, cublasLtMatmulPreferenceAttributes_t name,
						    const void *value, size_t bytes)
{
	return set(preferences.find(desc), preference_attributes, name, value, bytes, "cublasLtMatmulPreferenceSetAttribute");
}
