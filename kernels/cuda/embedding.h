/* Launchers of embedding.cu: ids (tokens), token i at position i % length; wte (vocabulary, cols), wpe (positions, cols), y and dy
 * (tokens, cols), all of them float32. */
#ifndef CK_CUDA_EMBEDDING_H
#define CK_CUDA_EMBEDDING_H

#include "kernels/cuda/cuda.h"

/* wpe may be NULL. */
void ck__cuda_embedding_forward(cudaStream_t stream, int64_t tokens, int64_t length, int64_t cols, const int32_t *ids,
				const float *wte, const float *wpe, float *y);

/* dwte[v] (+)= the sum of dy over v's tokens, in their order. workspace: that many bytes. */
size_t ck__cuda_embedding_workspace(int64_t tokens, int64_t vocabulary);
void ck__cuda_embedding_dwte(cudaStream_t stream, int64_t tokens, int64_t vocabulary, int64_t cols, const int32_t *ids,
			     const float *dy, float *dwte, bool acc, void *workspace);
/* The same in any order, with no workspace. */
void ck__cuda_embedding_dwte_fast(cudaStream_t stream, int64_t tokens, int64_t vocabulary, int64_t cols, const int32_t *ids,
				  const float *dy, float *dwte, bool acc);
/* dwpe[s] (+)= the sum of dy over the sequences' tokens at s, in order. */
void ck__cuda_embedding_dwpe(cudaStream_t stream, int64_t tokens, int64_t length, int64_t positions, int64_t cols,
			     const float *dy, float *dwpe, bool acc);

#endif
