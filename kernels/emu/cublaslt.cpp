/* cuBLASLt's handle and its product, D = epilogue(alpha op(A) op(B) + beta C + bias). */
#include "kernels/emu/cublaslt_double.h"

#include <algorithm>
#include <math.h>
#include <set>
#include <string.h>

struct cublasLtContext {
	int unused;
};

static std::set<cublasLtHandle_t> handles;

bool ck_emu_is_blas(cublasLtHandle_t handle)
{
	return handles.count(handle) != 0;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
	CK_REFUSE_IF(!handle, CUBLAS_STATUS_INVALID_VALUE, "cublasLtCreate: nowhere to put it");
	*handle = new cublasLtContext();
	handles.insert(*handle);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
	CK_REFUSE_IF(!handles.erase(handle), CUBLAS_STATUS_NOT_INITIALIZED, "no such cublasLtHandle_t");
	delete handle;
	return CUBLAS_STATUS_SUCCESS;
}

size_t cublasLtGetVersion(void)
{
	return CUBLAS_VERSION;
}

static const struct {
	cublasStatus_t status;
	const char *name, *text;
} statuses[] = {
    {CUBLAS_STATUS_SUCCESS, "CUBLAS_STATUS_SUCCESS", "success"},
    {CUBLAS_STATUS_NOT_INITIALIZED, "CUBLAS_STATUS_NOT_INITIALIZED", "the library was not initialized"},
    {CUBLAS_STATUS_INVALID_VALUE, "CUBLAS_STATUS_INVALID_VALUE",
     "an unsupported value or parameter was passed to the function"},
    {CUBLAS_STATUS_NOT_SUPPORTED, "CUBLAS_STATUS_NOT_SUPPORTED", "the requested functionality is not supported"},
};

const char *cublasLtGetStatusName(cublasStatus_t status)
{
	for (const auto &s : statuses)
		if (s.status == status)
			return s.name;
	return "unrecognized status";
}

const char *cublasLtGetStatusString(cublasStatus_t status)
{
	for (const auto &s : statuses)
		if (s.status == status)
			return s.text;
	return "unrecognized status";
}

/* ---- where the matrices lie ----------------------------------------------------------------------------------------------- */

namespace
{
struct product {
	problem p;
	algorithm algo;
	float alpha, beta;
	const void *a, *b, *c;
	void *d, *workspace;
	size_t workspace_bytes;
};
} // namespace

/* From the first element to the last. */
static size_t bytes_of(const lt_layout &l, stored t)
{
	int64_t last = (int64_t)(l.cols - 1) * l.ld + (int64_t)l.rows + (l.batch - 1) * l.stride;
	return (size_t)last * ck_emu_size(t);
}

/* The columns that a matrix, or a batch of them, covers, as pairs of addresses, sorted. */
static std::vector<std::pair<uintptr_t, uintptr_t>> columns_of(const lt_layout &l, stored t, const void *at)
{
	std::vector<std::pair<uintptr_t, uintptr_t>> all;
	size_t size = ck_emu_size(t);
	for (int64_t e = 0; e < l.batch; e++)
		for (int64_t j = 0; j < (int64_t)l.cols; j++) {
			uintptr_t begin = (uintptr_t)at + (size_t)(e * l.stride + j * l.ld) * size;
			all.push_back({begin, begin + l.rows * size});
		}
	std::sort(all.begin(), all.end());
	return all;
}

/* Matrices may interleave, as the heads of an attention do, and not overlap. */
static void check_apart(const problem &p, int other, const void *at, const void *d)
{
	extent x = {at, bytes_of(p.layout[other], p.type[other]), ""}, y = {d, bytes_of(p.layout[D], p.type[D]), ""};
	if (!ck_emu_overlap(x, y))
		return;
	auto of_d = columns_of(p.layout[D], p.type[D], d), others = columns_of(p.layout[other], p.type[other], at);
	for (size_t i = 0, j = 0; i < of_d.size() && j < others.size();) {
		if (of_d[i].first < others[j].second && others[j].first < of_d[i].second)
			ck_emu_fail("cublasLtMatmul: D overlaps %c", "ABCD"[other]);
		of_d[i].second <= others[j].second ? i++ : j++;
	}
}

static void check_batch_of_d(const problem &p, const void *d)
{
	if (p.batch == 1)
		return;
	auto columns = columns_of(p.layout[D], p.type[D], d);
	for (size_t i = 1; i < columns.size(); i++)
		if (columns[i].first < columns[i - 1].second)
			ck_emu_fail("cublasLtMatmul: the matrices of D overlap: stride %lld", (long long)p.layout[D].stride);
}

static size_t aux_bytes(const problem &p)
{
	int64_t last = (p.n - 1) * p.operation.aux_ld + p.m + (p.batch - 1) * p.operation.aux_stride;
	return (size_t)last * ck_emu_size(p.type[D]);
}

static size_t bias_bytes(const problem &p)
{
	return (size_t)(p.m + (p.batch - 1) * p.operation.bias_stride) * ck_emu_size(p.type[D]);
}

static bool same_layout(const lt_layout &x, const lt_layout &y)
{
	return x.type == y.type && x.order == y.order && x.rows == y.rows && x.cols == y.cols && x.ld == y.ld &&
	       x.batch == y.batch && x.stride == y.stride;
}

static cublasStatus_t check_pointers(const product &q)
{
	const problem &p = q.p;
	const lt_operation &o = p.operation;
	static const char *const names[] = {"A", "B", "C", "D", "the bias", "GELU's input"};
	const void *at[] = {q.a, q.b, q.c, q.d, p.bias ? o.bias : nullptr, p.aux ? o.aux : nullptr};
	CK_REFUSE_IF(!q.d, CUBLAS_STATUS_INVALID_VALUE, "D is NULL");
	CK_REFUSE_IF(!q.a || !q.b, CUBLAS_STATUS_INVALID_VALUE, "A or B is NULL");
	CK_REFUSE_IF(q.beta != 0 && !q.c, CUBLAS_STATUS_INVALID_VALUE, "C is NULL and beta is not 0");
	CK_REFUSE_IF(q.c == q.d && !same_layout(p.layout[C], p.layout[D]), CUBLAS_STATUS_INVALID_VALUE,
		     "C lies over D in another layout");
	CK_REFUSE_IF(p.bias && !o.bias, CUBLAS_STATUS_INVALID_VALUE, "the epilogue needs a bias pointer");
	CK_REFUSE_IF(p.bias && !ck_emu_aligned(o.bias, ck_emu_size(p.type[D])), CUBLAS_STATUS_INVALID_VALUE,
		     "the bias is not aligned to its type");
	CK_REFUSE_IF(p.aux && !o.aux, CUBLAS_STATUS_INVALID_VALUE, "the epilogue needs a pointer for GELU's input");
	for (int i = A; i < POINTERS; i++)
		CK_REFUSE_IF(!ck_emu_aligned(at[i], q.algo.align[i]), CUBLAS_STATUS_NOT_SUPPORTED,
			     "%s is aligned to %u bytes, the algorithm was promised %u", names[i], ck_emu_alignment(at[i]),
			     q.algo.align[i]);
	CK_REFUSE_IF(q.workspace_bytes && !q.workspace, CUBLAS_STATUS_INVALID_VALUE, "a workspace of %zu bytes at NULL",
		     q.workspace_bytes);
	CK_REFUSE_IF(q.workspace_bytes < q.algo.workspace, CUBLAS_STATUS_INVALID_VALUE,
		     "the workspace has %zu bytes, the algorithm needs %zu", q.workspace_bytes, (size_t)q.algo.workspace);
	CK_REFUSE_IF(q.workspace_bytes && !ck_emu_aligned(q.workspace, 256), CUBLAS_STATUS_INVALID_VALUE,
		     "the workspace is not aligned to 256 bytes");
	return CUBLAS_STATUS_SUCCESS;
}

/* A, B and C may interleave with D, and are compared with it column by column; all else that is written lies apart from everything. */
static void check_memory(const product &q)
{
	const problem &p = q.p;
	const lt_operation &o = p.operation;
	extent d = {q.d, bytes_of(p.layout[D], p.type[D]), "D"};
	std::vector<extent> written,
	    matrices = {{q.a, bytes_of(p.layout[A], p.type[A]), "A"}, {q.b, bytes_of(p.layout[B], p.type[B]), "B"}};
	if (q.beta != 0)
		matrices.push_back({q.c, bytes_of(p.layout[C], p.type[C]), "C"});
	if (p.aux)
		written.push_back({o.aux, aux_bytes(p), "GELU's input"});
	if (q.workspace_bytes)
		written.push_back({q.workspace, q.workspace_bytes, "the workspace"});
	ck_emu_check_extents("cublasLtMatmul", matrices, written);
	std::vector<extent> read;
	if (p.bias)
		read.push_back({o.bias, bias_bytes(p), "the bias"});
	written.push_back(d);
	ck_emu_check_extents("cublasLtMatmul", read, written);
	check_apart(p, A, q.a, q.d);
	check_apart(p, B, q.b, q.d);
	if (q.beta != 0 && q.c != q.d)
		check_apart(p, C, q.c, q.d);
	check_batch_of_d(p, q.d);
}

/* ---- the work ------------------------------------------------------------------------------------------------------------- */

/* Matrix e of a batch as float, (k,m) or (k,n): its rows are the steps of the sum. across: a stored column is such a row. */
static std::vector<float> panel_of(const lt_layout &l, stored t, operands round, const void *at, int64_t e, bool across)
{
	int64_t rows = (int64_t)l.rows, cols = (int64_t)l.cols;
	std::vector<float> panel((size_t)(rows * cols)), column((size_t)rows);
	for (int64_t j = 0; j < cols; j++) {
		float *to = across ? panel.data() + j * rows : column.data();
		ck_emu_widen(t, at, e * l.stride + j * l.ld, rows, to);
		ck_emu_round(round, rows, to);
		if (!across)
			for (int64_t i = 0; i < rows; i++)
				panel[(size_t)(i * cols + j)] = column[(size_t)i];
	}
	return panel;
}

static float through(stored t, float v)
{
	uint32_t bits = 0;
	ck_emu_put(t, &bits, 0, v);
	return ck_emu_get(t, &bits, 0);
}

/* The sums of one matrix of the batch, (n,m), as the algorithm's splits make them. */
static std::vector<float> sums_of(const product &q, int64_t e)
{
	const problem &p = q.p;
	std::vector<float> a = panel_of(p.layout[A], p.type[A], p.round, q.a, e, p.operation.transa == CUBLAS_OP_N);
	std::vector<float> b = panel_of(p.layout[B], p.type[B], p.round, q.b, e, p.operation.transb != CUBLAS_OP_N);
	stored parts =
	    q.algo.scheme == CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE || q.algo.scheme == CUBLASLT_REDUCTION_SCHEME_INPLACE
		? p.type[D]
		: stored::f32;
	std::vector<float> sums((size_t)(p.m * p.n), 0.0f);
	for (int64_t s = 0; s < q.algo.splits; s++) {
		int64_t from = p.k * s / q.algo.splits, to = p.k * (s + 1) / q.algo.splits;
		std::vector<double> part((size_t)(p.m * p.n), 0.0);
		ck_emu_product(p.m, p.n, to - from, a.data() + from * p.m, b.data() + from * p.n, part.data());
		for (size_t i = 0; i < sums.size(); i++)
			sums[i] += through(parts, (float)part[i]);
	}
	return sums;
}

static float activation(uint32_t epilogue, float x)
{
	if (epilogue & CUBLASLT_EPILOGUE_RELU)
		return x < 0 ? 0 : x;
	if (epilogue & CUBLASLT_EPILOGUE_GELU)
		return 0.5f * x * (1 + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
	return x;
}

static void run(const product &q)
{
	const problem &p = q.p;
	const lt_operation &o = p.operation;
	const lt_layout &to = p.layout[D], &c = p.layout[C];
	if (q.algo.workspace)
		memset(q.workspace, 0xFF, q.workspace_bytes);
	for (int64_t e = 0; e < p.batch; e++) {
		std::vector<float> sums = sums_of(q, e), bias((size_t)p.m, 0.0f), added((size_t)p.m, 0.0f);
		if (p.bias)
			ck_emu_widen(p.type[D], o.bias, e * o.bias_stride, p.m, bias.data());
		for (int64_t j = 0; j < p.n; j++) {
			if (q.beta != 0)
				ck_emu_widen(p.type[C], q.c, e * c.stride + j * c.ld, p.m, added.data());
			for (int64_t i = 0; i < p.m; i++) {
				float v = q.alpha * sums[(size_t)(j * p.m + i)];
				if (q.beta != 0)
					v += q.beta * added[(size_t)i];
				v += bias[(size_t)i];
				if (p.aux)
					ck_emu_put(p.type[D], o.aux, e * o.aux_stride + j * o.aux_ld + i, v);
				ck_emu_put(p.type[D], q.d, e * to.stride + j * to.ld + i, activation(o.epilogue, v));
			}
		}
	}
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha, const void *a,
			      cublasLtMatrixLayout_t a_layout, const void *b, cublasLtMatrixLayout_t b_layout, const void *beta,
			      const void *c, cublasLtMatrixLayout_t c_layout, void *d, cublasLtMatrixLayout_t d_layout,
			      const cublasLtMatmulAlgo_t *algo, void *workspace, size_t workspace_bytes, cudaStream_t stream)
{
	product q = {};
	cublasStatus_t status = ck_emu_problem(handle, desc, {a_layout, b_layout, c_layout, d_layout}, q.p);
	if (status != CUBLAS_STATUS_SUCCESS)
		return status;
	CK_REFUSE_IF(!alpha || !beta, CUBLAS_STATUS_INVALID_VALUE, "alpha or beta is NULL");
	if (algo)
		status = ck_emu_algorithm(q.p, algo, q.algo);
	else /* the library asks its heuristics, with an unspecified outcome */
		ck_emu_fail("cublasLtMatmul: no algorithm given: which is taken is not fixed");
	if (status != CUBLAS_STATUS_SUCCESS)
		return status;
	ck_emu_check_host(alpha, sizeof q.alpha, "cublasLtMatmul: alpha");
	ck_emu_check_host(beta, sizeof q.beta, "cublasLtMatmul: beta");
	q.alpha = *static_cast<const float *>(alpha);
	q.beta = *static_cast<const float *>(beta);
	q.a = a, q.b = b, q.c = c, q.d = d, q.workspace = workspace, q.workspace_bytes = workspace_bytes;
	status = check_pointers(q);
	if (status != CUBLAS_STATUS_SUCCESS)
		return status;
	check_memory(q);
	ck_emu_enqueue(
	    stream, [q] { run(q); }, "cublasLtMatmul");
	return CUBLAS_STATUS_SUCCESS;
}
