/* Launcher of tally.cu: x (rows, cols) stored as t. load[c] += the rows whose largest channel is c, calls[0] += 1. */
#ifndef CK_CUDA_TALLY_H
#define CK_CUDA_TALLY_H

#include "kernels/cuda/cuda.h"

void ck__cuda_tally_count(cudaStream_t stream, ck_dtype t, int64_t rows, int64_t cols, const void *x, int32_t *load,
			  int32_t *calls);

#endif
