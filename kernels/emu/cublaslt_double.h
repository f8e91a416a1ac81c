/* The double of cuBLASLt: its descriptors (cublaslt_desc.cpp), what they ask for and the algorithms for it (cublaslt_algo.cpp), and the
 * product itself (cublaslt.cpp). Attributes have the types that cublasLt.h tells. Setting one checks its size and nothing more, as in
 * the library: whether the values fit together is found out by the call that uses them. */
#ifndef CK_EMU_CUBLASLT_DOUBLE_H
#define CK_EMU_CUBLASLT_DOUBLE_H

#include <cublasLt.h>

#include "kernels/emu/library.h"

struct lt_operation {
	int32_t compute, scale, pointer_mode, transa, transb, transc, fill;
	uint32_t epilogue;
	int32_t bias_type, aux_type; /* -1: D's */
	const void *bias;
	int64_t bias_stride;
	void *aux;
	int64_t aux_ld, aux_stride;
};

struct lt_layout {
	uint32_t type;
	int32_t order;
	uint64_t rows, cols;
	int64_t ld;
	int32_t batch;
	int64_t stride;
};

struct lt_preference {
	uint64_t workspace;
	uint32_t schemes;
	uint32_t align[4]; /* A, B, C, D */
};

/* What a descriptor holds. NULL gives NULL; one that was destroyed or never made ends the program. */
const lt_operation *ck_emu_operation(cublasLtMatmulDesc_t desc);
const lt_layout *ck_emu_layout(cublasLtMatrixLayout_t desc);
const lt_preference *ck_emu_preference(cublasLtMatmulPreference_t desc);

/* ---- a product ------------------------------------------------------------------------------------------------------------ */

enum { A, B, C, D, BIAS, AUX, POINTERS };

struct problem {
	lt_operation operation;
	lt_layout layout[4];
	stored type[4];
	operands round;
	int64_t m, n, k, batch; /* op(A) (m,k), op(B) (k,n), D (m,n) */
	bool bias, aux;         /* the epilogue has them */
	uint64_t hash;          /* of all but pointers */
};

/* What lies in a cublasLtMatmulAlgo_t. */
struct algorithm {
	uint64_t problem, workspace; /* hash; bytes */
	int32_t id, splits;
	uint32_t scheme;
	uint16_t align[POINTERS]; /* promised */
	uint32_t mark;            /* MARK */
};

enum : uint32_t { MARK = 0x4B424C54 };
static_assert(sizeof(algorithm) <= sizeof(cublasLtMatmulAlgo_t), "an algorithm fits");

bool ck_emu_is_blas(cublasLtHandle_t handle);
/* Checks and fills all but pointers. */
cublasStatus_t ck_emu_problem(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const cublasLtMatrixLayout_t (&layouts)[4],
			      problem &p);
/* At most two: the sum split, where it is long and there is room; and in one sequence. Returns how many. */
int ck_emu_find_algorithms(const problem &p, const lt_preference &wish, int most, cublasLtMatmulHeuristicResult_t *results);
/* The algorithm, where it is one and was found for this problem. */
cublasStatus_t ck_emu_algorithm(const problem &p, const cublasLtMatmulAlgo_t *algo, algorithm &found);

#endif
