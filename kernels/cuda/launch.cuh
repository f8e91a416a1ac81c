/* What kernels are written with, for nvcc and for the host compiler alike (kernels/emu/simt.h). A kernel is
 *
 *     template <typename T> CK_KERNEL void scale(int64_t n, float factor, const T *x, T *y)
 *     {
 *             for (int64_t i = ck_thread(); i < n; i += ck_threads())
 *                     ck_put(y, i, factor * ck_get(x, i));
 *     }
 *     CK_STORED(t, T, CK_LAUNCH((scale<T>), ck_blocks(n), CK_BLOCK, 0, stream, n, factor, (const T *)x, (T *)y));
 *
 * The rules that let it run on the host, where each thread is a fiber:
 *   - launched by CK_LAUNCH only; shared memory by CK_SHARED or CK_DYNAMIC_SHARED only, one-dimensional and indexed directly: no
 *     pointer into it is formed. A function that takes a shared array takes it as `template <class S> … (S &shared)`
 *   - __syncthreads() is reached by all threads of a block; shuffles and votes by all 32 of a warp, with the mask CK_WARP_ALL; a
 *     block is a multiple of 32 threads
 *   - pointers are parameters of their own, none inside a struct, so that each can be checked
 *   - no inline assembly; of the warp's functions __shfl_sync, __shfl_xor_sync, __shfl_down_sync, __any_sync, __ballot_sync; atomics on
 *     whole numbers, and on floats only where the device is `fast`
 *
 * The order of every sum is fixed by the shapes. Storage types: float, __nv_bfloat16, __half; arithmetic is in float. */
#ifndef CK_LAUNCH_CUH
#define CK_LAUNCH_CUH

#include <stdint.h>

#ifdef __CUDACC__
#include <cuda_runtime.h>
#define CK_KERNEL __global__
#define CK_DEVICE __device__ __forceinline__
#define CK_SHARED(type, name, count) __shared__ type name[count]
/* One per kernel; `type` is 4 bytes or less. */
#define CK_DYNAMIC_SHARED(type, name)                                                                                          \
	extern __shared__ __align__(16) unsigned char ck_dynamic_shared[];                                                     \
	type *name = reinterpret_cast<type *>(ck_dynamic_shared)
/* shared: bytes of dynamic shared memory, at most 48 KiB */
#define CK_LAUNCH(kernel, grid, block, shared, stream, ...)                                                                    \
	do {                                                                                                                   \
		kernel<<<(grid), (block), (shared), (stream)>>>(__VA_ARGS__);                                                  \
		CK_CUDA(cudaGetLastError());                                                                                   \
	} while (0)
#else
#include "kernels/emu/simt.h"
#endif

#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" {
#include "kernels/cuda/cuda.h"
#include "kernels/philox.h"
}

/* ---- storage ------------------------------------------------------------------------------------------------------------- */

/* Element i of a tensor. put rounds to nearest even. */
CK_DEVICE float ck_get(const float *x, int64_t i)
{
	return x[i];
}
CK_DEVICE float ck_get(const __nv_bfloat16 *x, int64_t i)
{
	return __bfloat162float(x[i]);
}
CK_DEVICE float ck_get(const __half *x, int64_t i)
{
	return __half2float(x[i]);
}
CK_DEVICE void ck_put(float *x, int64_t i, float v)
{
	x[i] = v;
}
CK_DEVICE void ck_put(__nv_bfloat16 *x, int64_t i, float v)
{
	x[i] = __float2bfloat16_rn(v);
}
CK_DEVICE void ck_put(__half *x, int64_t i, float v)
{
	x[i] = __float2half_rn(v);
}

/* Runs the statement with T the storage type of dtype t. */
#define CK_STORED(t, T, ...)                                                                                                   \
	do {                                                                                                                   \
		if ((t) == CK_BF16) {                                                                                          \
			typedef __nv_bfloat16 T;                                                                               \
			__VA_ARGS__;                                                                                           \
		} else if ((t) == CK_F16) {                                                                                    \
			typedef __half T;                                                                                      \
			__VA_ARGS__;                                                                                           \
		} else {                                                                                                       \
			typedef float T;                                                                                       \
			__VA_ARGS__;                                                                                           \
		}                                                                                                              \
	} while (0)

/* ---- shapes of launches -------------------------------------------------------------------------------------------------- */

enum { CK_BLOCK = 256, CK_WARP = 32, CK_MAX_BLOCKS = 65535 };
#define CK_WARP_ALL 0xFFFFFFFFu

/* Blocks of CK_BLOCK threads for n elements; beyond CK_MAX_BLOCKS threads take several each. */
static inline unsigned ck_blocks(int64_t n)
{
	int64_t blocks = (n + CK_BLOCK - 1) / CK_BLOCK;
	return (unsigned)(blocks < 1 ? 1 : blocks > CK_MAX_BLOCKS ? (int64_t)CK_MAX_BLOCKS : blocks);
}

CK_DEVICE int64_t ck_thread()
{
	return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}
CK_DEVICE int64_t ck_threads()
{
	return (int64_t)gridDim.x * blockDim.x;
}

/* ---- reductions ---------------------------------------------------------------------------------------------------------- */

/* The sum (the largest) over a warp, in every lane: a butterfly, whose order is fixed. */
CK_DEVICE float ck_warp_sum(float v)
{
	for (int lane = CK_WARP / 2; lane; lane /= 2)
		v += __shfl_xor_sync(CK_WARP_ALL, v, lane);
	return v;
}
CK_DEVICE float ck_warp_max(float v)
{
	for (int lane = CK_WARP / 2; lane; lane /= 2)
		v = fmaxf(v, __shfl_xor_sync(CK_WARP_ALL, v, lane));
	return v;
}

/* Over a block of at most 1024 threads, in every thread. part: shared, 32 floats; free again when all have returned from the next
 * barrier. */
template <class S> CK_DEVICE float ck_block_sum(float v, S &part)
{
	unsigned lane = threadIdx.x % CK_WARP, warp = threadIdx.x / CK_WARP;
	v = ck_warp_sum(v);
	__syncthreads();
	if (lane == 0)
		part[warp] = v;
	__syncthreads();
	return ck_warp_sum(lane < blockDim.x / CK_WARP ? (float)part[lane] : 0.0f);
}

#endif
