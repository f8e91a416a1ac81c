/* What programs of the emulated device share. */
#ifndef CK_SUITE_EMU_BENCH_HPP
#define CK_SUITE_EMU_BENCH_HPP

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vector>

#include "kernels/cuda/launch.cuh"
#include "suite/emu/programs.h"

/* Launches have BLOCKS blocks of CK_BLOCK threads, one for each of N elements; ODD elements end within a block, and within 256 bytes. */
enum { BLOCKS = 3, N = BLOCKS * CK_BLOCK, ODD = N - 24 };

/* A stream, two device buffers of `n` floats, x (0, 1, … modulo 5) and y (NaNs), and what comes back of y. */
struct bench {
	cudaStream_t stream;
	size_t n;
	float *x, *y;
	std::vector<float> in, out;

	explicit bench(size_t count) : n(count), in(count), out(count, -1.0f)
	{
		CK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
		CK_CUDA(cudaMalloc((void **)&x, n * sizeof *x));
		CK_CUDA(cudaMalloc((void **)&y, n * sizeof *y));
		for (size_t i = 0; i < n; i++)
			in[i] = (float)(i % 5);
		CK_CUDA(cudaMemcpyAsync(x, in.data(), n * sizeof *x, cudaMemcpyHostToDevice, stream));
	}
	bench(const bench &) = delete;
	~bench()
	{
		CK_CUDA(cudaFree(x));
		CK_CUDA(cudaFree(y));
		CK_CUDA(cudaStreamDestroy(stream));
	}
	void fetch()
	{
		CK_CUDA(cudaMemcpyAsync(out.data(), y, n * sizeof *y, cudaMemcpyDeviceToHost, stream));
		CK_CUDA(cudaStreamSynchronize(stream));
	}
	/* Whether y[i] = f(i) for the first `count`. */
	template <typename F> bool holds(size_t count, F f)
	{
		fetch();
		for (size_t i = 0; i < count; i++)
			if (out[i] != f(i))
				return false;
		return true;
	}
	/* Whether y[block] is the block's sum of x. */
	bool holds_sums()
	{
		return holds(n / CK_BLOCK, [&](size_t b) {
			float sum = 0;
			for (size_t i = 0; i < CK_BLOCK; i++)
				sum += in[b * CK_BLOCK + i];
			return sum;
		});
	}
};

#endif
