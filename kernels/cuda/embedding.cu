/* EMBEDDING. Forward: a block a token.
 *
 * dwte sums over each id's tokens, few or thousands of them, in an order that must not change from run to run. So tokens are brought
 * together by id first:
 *
 *     place     each token draws the next number of its id, in any order, which also counts the id's tokens
 *     begin     one token of each id takes a stretch for all of them, as many places as it has tokens, wherever the stretch comes to lie
 *     gather    tokens go to their places, in any order within the stretch
 *     order     each finds how many of its stretch are smaller, and so its place in order
 *     sum       at the begin of each stretch: 8 warps take the tokens in turn, and their sums are added in order
 *
 * Atomics are on whole numbers only, and what they leave open the last steps do not see. Rows of ids that were not drawn are zeroed
 * before, or left alone. Bound by memory, by dwte's zeroing above all. */
#include "kernels/cuda/pack.cuh"

extern "C" {
#include "kernels/cuda/embedding.h"
}

enum { WARPS = CK_BLOCK / CK_WARP };

template <int N>
CK_KERNEL void embedding_forward(int64_t tokens, int64_t length, int64_t cols, const int *ids, const float *wte,
				 const float *wpe, float *y)
{
	for (int64_t token = blockIdx.x; token < tokens; token += gridDim.x) {
		int64_t from = ids[token] * cols, position = token % length * cols, to = token * cols;
		for (int64_t c = (int64_t)threadIdx.x * N; c < cols; c += (int64_t)blockDim.x * N) {
			ck_floats<N> v = ck_load<N>(wte, from + c);
			if (wpe) {
				ck_floats<N> w = ck_load<N>(wpe, position + c);
#pragma unroll
				for (int k = 0; k < N; k++)
					v.v[k] += w.v[k];
			}
			ck_store(y, to + c, v);
		}
	}
}

/* ---- bringing tokens together -------------------------------------------------------------------------------------------- */

CK_KERNEL void embedding_place(int64_t tokens, const int *ids, int *count, int *number)
{
	for (int64_t t = ck_thread(); t < tokens; t += ck_threads())
		number[t] = atomicAdd(&count[ids[t]], 1);
}

CK_KERNEL void embedding_begin(int64_t tokens, const int *ids, const int *count, const int *number, int *taken, int *begin)
{
	for (int64_t t = ck_thread(); t < tokens; t += ck_threads())
		if (number[t] == 0)
			begin[ids[t]] = atomicAdd(taken, count[ids[t]]);
}

CK_KERNEL void embedding_gather(int64_t tokens, const int *ids, const int *begin, const int *number, int *gathered)
{
	for (int64_t t = ck_thread(); t < tokens; t += ck_threads())
		gathered[begin[ids[t]] + number[t]] = (int)t;
}

CK_KERNEL void embedding_order(int64_t tokens, const int *ids, const int *count, const int *begin, const int *gathered,
			       int *ordered)
{
	for (int64_t i = ck_thread(); i < tokens; i += ck_threads()) {
		int token = gathered[i], first = begin[ids[token]], n = count[ids[token]], before = 0;
#pragma unroll 8
		for (int k = 0; k < n; k++)
			before += gathered[first + k] < token;
		ordered[first + before] = token;
	}
}

/* ---- gradients ----------------------------------------------------------------------------------------------------------- */

/* Block: a place among the ordered tokens, which works if it is the first of its stretch, and a tile of 32 N columns. */
template <int N>
CK_KERNEL void embedding_sum(int64_t tiles, int64_t cols, bool acc, const int *ids, const int *count, const int *begin,
			     const int *ordered, const float *dy, float *dwte)
{
	CK_SHARED(float, shared, CK_BLOCK *N);
	int64_t place = blockIdx.x / tiles, lane = threadIdx.x % CK_WARP, warp = threadIdx.x / CK_WARP;
	int64_t c = blockIdx.x % tiles * CK_WARP * N + lane * N, id = ids[ordered[place]];
	if (place != begin[id])
		return;
	ck_floats<N> sum = {};
	if (c < cols)
#pragma unroll 8
		for (int64_t i = warp; i < count[id]; i += WARPS) {
			ck_floats<N> v = ck_load<N>(dy, ordered[place + i] * cols + c);
#pragma unroll
			for (int k = 0; k < N; k++)
				sum.v[k] += v.v[k];
		}
#pragma unroll
	for (int k = 0; k < N; k++)
		shared[k * CK_BLOCK + threadIdx.x] = sum.v[k];
	__syncthreads();
	if (warp != 0 || c >= cols)
		return;
	for (int other = 1; other < WARPS; other++)
#pragma unroll
		for (int k = 0; k < N; k++)
			sum.v[k] += (float)shared[k * CK_BLOCK + other * CK_WARP + lane];
	ck_store_gradient(dwte, id * cols + c, sum, acc);
}

CK_KERNEL void embedding_any_order(int64_t n, int64_t cols, const int *ids, const float *dy, float *dwte)
{
	for (int64_t e = ck_thread(); e < n; e += ck_threads())
		atomicAdd(&dwte[ids[e / cols] * cols + e % cols], dy[e]);
}

/* n elements of dwpe; those of positions beyond the sequences' length have no tokens. */
CK_KERNEL void embedding_dwpe(int64_t tokens, int64_t length, int64_t n, int64_t cols, bool acc, const float *dy, float *dwpe)
{
	for (int64_t e = ck_thread(); e < n; e += ck_threads()) {
		float sum = 0;
		if (e < length * cols)
#pragma unroll 4
			for (int64_t at = e; at < tokens * cols; at += length * cols)
				sum += dy[at];
		dwpe[e] = acc ? dwpe[e] + sum : sum;
	}
}

/* ---- launchers ----------------------------------------------------------------------------------------------------------- */

/* Columns go four at a time where each row begins on their border. */
#define COLUMN_PACK(cols, N, ...)                                                                                              \
	do {                                                                                                                   \
		if ((cols) % 4 == 0) {                                                                                         \
			constexpr int N = 4;                                                                                   \
			__VA_ARGS__;                                                                                           \
		} else {                                                                                                       \
			constexpr int N = 1;                                                                                   \
			__VA_ARGS__;                                                                                           \
		}                                                                                                              \
	} while (0)

void ck__cuda_embedding_forward(cudaStream_t stream, int64_t tokens, int64_t length, int64_t cols, const int32_t *ids,
				const float *wte, const float *wpe, float *y)
{
	unsigned blocks = (unsigned)(tokens < CK_MAX_BLOCKS ? tokens : (int64_t)CK_MAX_BLOCKS);
	COLUMN_PACK(cols, N,
		    CK_LAUNCH((embedding_forward<N>), blocks, CK_BLOCK, 0, stream, tokens, length, cols, ids, wte, wpe, y));
}

/* begin (vocabulary), count (vocabulary), taken (1), number, gathered, ordered (tokens each) */
size_t ck__cuda_embedding_workspace(int64_t tokens, int64_t vocabulary)
{
	return (size_t)(2 * vocabulary + 1 + 3 * tokens) * sizeof(int);
}

void ck__cuda_embedding_dwte(cudaStream_t stream, int64_t tokens, int64_t vocabulary, int64_t cols, const int32_t *ids,
			     const float *dy, float *dwte, bool acc, void *workspace)
{
	int *begin = (int *)workspace, *count = begin + vocabulary, *taken = count + vocabulary;
	int *number = taken + 1, *gathered = number + tokens, *ordered = gathered + tokens;
	unsigned blocks = ck_blocks(tokens);
	if (!acc)
		CK_CUDA(cudaMemsetAsync(dwte, 0, (size_t)(vocabulary * cols) * sizeof(float), stream));
	CK_CUDA(cudaMemsetAsync(count, 0, (size_t)(vocabulary + 1) * sizeof(int), stream));
	CK_LAUNCH(embedding_place, blocks, CK_BLOCK, 0, stream, tokens, ids, count, number);
	CK_LAUNCH(embedding_begin, blocks, CK_BLOCK, 0, stream, tokens, ids, (const int *)count, (const int *)number, taken,
		  begin);
	CK_LAUNCH(embedding_gather, blocks, CK_BLOCK, 0, stream, tokens, ids, (const int *)begin, (const int *)number,
		  gathered);
	CK_LAUNCH(embedding_order, blocks, CK_BLOCK, 0, stream, tokens, ids, (const int *)count, (const int *)begin,
		  (const int *)gathered, ordered);
	COLUMN_PACK(cols, N, int64_t tiles = (cols + CK_WARP * N - 1) / (CK_WARP * N);
		    CK_LAUNCH((embedding_sum<N>), (unsigned)(tokens * tiles), CK_BLOCK, 0, stream, tiles, cols, acc, ids,
			      (const int *)count, (const int *)begin, (const int *)ordered, dy, dwte));
}

void ck__cuda_embedding_dwte_fast(cudaStream_t stream, int64_t tokens, int64_t vocabulary, int64_t cols, const int32_t *ids,
				  const float *dy, float *dwte, bool acc)
{
	if (!acc)
		CK_CUDA(cudaMemsetAsync(dwte, 0, (size_t)(vocabulary * cols) * sizeof(float), stream));
	CK_LAUNCH(embedding_any_order, ck_blocks(tokens * cols), CK_BLOCK, 0, stream, tokens * cols, cols, ids, dy, dwte);
}

void ck__cuda_embedding_dwpe(cudaStream_t stream, int64_t tokens, int64_t length, int64_t positions, int64_t cols,
			     const float *dy, float *dwpe, bool acc)
{
	int64_t n = positions * cols;
	CK_LAUNCH(embedding_dwpe, ck_blocks(n), CK_BLOCK, 0, stream, tokens, length, n, cols, acc, dy, dwpe);
}
