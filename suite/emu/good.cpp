/* Right programs, for what the emulated device must be able to do. */
#include "suite/emu/bench.hpp"

#include <math.h>

namespace
{

struct streams {
	cudaStream_t a, b;
	streams()
	{
		CK_CUDA(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
		CK_CUDA(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
	}
	streams(const streams &) = delete;
	~streams()
	{
		CK_CUDA(cudaStreamDestroy(a));
		CK_CUDA(cudaStreamDestroy(b));
	}
};

/* ---- kernels ------------------------------------------------------------------------------------------------------------------- */

template <typename T> CK_KERNEL void store(int64_t n, const float *x, T *y)
{
	for (int64_t i = ck_thread(); i < n; i += ck_threads())
		ck_put(y, i, ck_get(x, i) + 0.25f);
}
template <typename T> CK_KERNEL void load(int64_t n, const T *x, float *y)
{
	for (int64_t i = ck_thread(); i < n; i += ck_threads())
		ck_put(y, i, ck_get(x, i));
}
bool storage(ck_dtype t)
{
	bench b(ODD);
	CK_STORED(t, T, {
		T *between;
		CK_CUDA(cudaMalloc((void **)&between, ODD * sizeof(T)));
		CK_LAUNCH((store<T>), 2, CK_BLOCK, 0, b.stream, (int64_t)ODD, b.x, between);
		CK_LAUNCH((load<T>), 2, CK_BLOCK, 0, b.stream, (int64_t)ODD, between, b.y);
		CK_CUDA(cudaFree(between));
	});
	return b.holds(ODD, [&](size_t i) { return b.in[i] + 0.25f; });
}
bool storage_f32()
{
	return storage(CK_F32);
}
bool storage_bf16()
{
	return storage(CK_BF16);
}
bool storage_f16()
{
	return storage(CK_F16);
}

/* Each thread of each block runs once, in three dimensions. */
CK_KERNEL void __launch_bounds__(64) count_threads(int *counts)
{
	unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
	unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
	counts[block * blockDim.x * blockDim.y * blockDim.z + thread] += 1;
}
bool dimensions()
{
	const dim3 grid(3, 5, 7), block(8, 4, 2);
	const int threads = 3 * 5 * 7 * 64;
	bench b(threads);
	CK_CUDA(cudaMemsetAsync(b.y, 0, threads * sizeof(int), b.stream));
	CK_LAUNCH(count_threads, grid, block, 0, b.stream, (int *)b.y);
	b.fetch();
	for (int i = 0; i < threads; i++) {
		int count;
		memcpy(&count, &b.out[(size_t)i], sizeof count);
		if (count != 1)
			return false;
	}
	return true;
}

/* Sums and maxima of blocks of several sizes, shuffles of all kinds. */
CK_KERNEL void reduce(const float *x, float *y)
{
	CK_SHARED(float, part, 32);
	float v = x[ck_thread()];
	float sum = ck_block_sum(v, part);
	float warp_max = ck_warp_max(v);
	float first = __shfl_sync(CK_WARP_ALL, v, 0);
	float next = __shfl_down_sync(CK_WARP_ALL, v, 3);
	int any = __any_sync(CK_WARP_ALL, v == 4);
	unsigned zeros = __ballot_sync(CK_WARP_ALL, v == 0);
	y[ck_thread()] =
	    sum + 1000 * warp_max + 10000 * first + 100000 * next + 1000000 * (float)any + (zeros >> 7 & 1 ? 0.5f : 0);
}
bool reductions()
{
	bool right = true;
	for (unsigned threads = 32; threads <= 1024; threads *= 2) {
		bench b(4096);
		CK_LAUNCH(reduce, 4096 / threads, threads, 0, b.stream, b.x, b.y);
		right = right && b.holds(b.n, [&](size_t i) {
			size_t block = i / threads * threads, warp = i / 32 * 32;
			float sum = 0;
			for (unsigned t = 0; t < threads; t++)
				sum += b.in[block + t];
			return sum + 4000 + 10000 * b.in[warp] + 100000 * b.in[i % 32 < 29 ? i + 3 : i] + 1000000 +
			       (b.in[warp + 7] == 0 ? 0.5f : 0);
		});
	}
	return right;
}

CK_KERNEL void count_all(int *sum, unsigned *bits, int *most)
{
	atomicAdd(sum, (int)ck_thread());
	atomicOr(bits, 1u << ck_thread() % 20);
	atomicMax(most, (int)ck_thread());
}
bool whole_number_atomics()
{
	bench b(3);
	int *y = (int *)b.y, got[3];
	CK_CUDA(cudaMemsetAsync(y, 0, sizeof got, b.stream));
	CK_LAUNCH(count_all, BLOCKS, CK_BLOCK, 0, b.stream, y, (unsigned *)y + 1, y + 2);
	b.fetch();
	memcpy(got, b.out.data(), sizeof got);
	return got[0] == N * (N - 1) / 2 && got[1] == (1 << 20) - 1 && got[2] == N - 1;
}

/* On a GPU the order of float atomics differs from launch to launch; so here. */
CK_KERNEL void add_all(const float *x, float *sum)
{
	atomicAdd(sum, x[ck_thread()]);
}
bool float_atomics_differ()
{
	bench b(N);
	for (size_t i = 0; i < N; i++)
		b.in[i] = 1.0f / (float)(i + 1);
	CK_CUDA(cudaMemcpyAsync(b.x, b.in.data(), N * sizeof(float), cudaMemcpyHostToDevice, b.stream));
	float first = 0;
	bool differ = false;
	for (int i = 0; i < 8; i++) {
		CK_CUDA(cudaMemsetAsync(b.y, 0, sizeof(float), b.stream));
		CK_LAUNCH(add_all, BLOCKS, CK_BLOCK, 0, b.stream, b.x, b.y);
		b.fetch();
		if (i == 0)
			first = b.out[0];
		differ = differ || b.out[0] != first;
		if (fabsf(b.out[0] - first) > 1e-5f)
			return false;
	}
	return differ;
}

/* ---- work and memory ----------------------------------------------------------------------------------------------------------- */

/* Nothing runs before the host waits; a host that asks again and again comes to an end. */
bool queries()
{
	bench b(N);
	cudaEvent_t e;
	CK_CUDA(cudaEventCreate(&e));
	bool right = cudaEventQuery(e) == cudaSuccess; /* never recorded */
	CK_CUDA(cudaEventRecord(e, b.stream));
	right = right && cudaEventQuery(e) == cudaErrorNotReady;
	int asked = 0;
	while (cudaEventQuery(e) == cudaErrorNotReady)
		asked++;
	CK_CUDA(cudaEventDestroy(e));
	return right && asked <= 2 && cudaGetLastError() == cudaSuccess;
}

/* A wait is for what was recorded before it, whatever the event records later. */
bool event_recorded_again()
{
	bench b(N);
	streams s;
	cudaEvent_t e;
	CK_CUDA(cudaEventCreate(&e));
	CK_CUDA(cudaStreamSynchronize(b.stream));
	CK_CUDA(cudaMemsetAsync(b.y, 0, N * sizeof(float), s.a));
	CK_CUDA(cudaEventRecord(e, s.a));
	CK_CUDA(cudaStreamWaitEvent(s.b, e, 0));
	CK_CUDA(cudaMemcpyAsync(b.y, b.x, N * sizeof(float), cudaMemcpyDeviceToDevice, s.b));
	CK_CUDA(cudaEventRecord(e, s.b));
	CK_CUDA(cudaEventSynchronize(e));
	CK_CUDA(cudaEventDestroy(e));
	return b.holds(N, [&](size_t i) { return b.in[i]; });
}

/* The default stream waits for blocking streams, and they for it. */
bool default_stream_orders()
{
	bench b(N);
	cudaStream_t blocking;
	CK_CUDA(cudaStreamCreateWithFlags(&blocking, cudaStreamDefault));
	CK_CUDA(cudaStreamSynchronize(b.stream));
	CK_CUDA(cudaMemsetAsync(b.y, 0, N * sizeof(float), blocking));
	CK_CUDA(cudaMemcpyAsync(b.y, b.x, N * sizeof(float), cudaMemcpyDeviceToDevice, NULL));
	std::vector<float> out(N);
	CK_CUDA(cudaMemcpyAsync(out.data(), b.y, N * sizeof(float), cudaMemcpyDeviceToHost, blocking));
	CK_CUDA(cudaStreamDestroy(blocking));
	return out == b.in;
}

/* Two streams that nothing orders: the seed decides, and over a few rounds both orders occur. */
bool streams_run_in_any_order()
{
	streams s;
	unsigned char *p, got = 0;
	bool came[2] = {false, false};
	CK_CUDA(cudaMalloc((void **)&p, 1));
	for (int i = 0; i < 32; i++) {
		CK_CUDA(cudaMemsetAsync(p, 0, 1, s.a));
		CK_CUDA(cudaMemsetAsync(p, 1, 1, s.b));
		CK_CUDA(cudaDeviceSynchronize());
		CK_CUDA(cudaMemcpyAsync(&got, p, 1, cudaMemcpyDeviceToHost, s.a));
		came[got] = true;
	}
	CK_CUDA(cudaFree(p));
	return came[0] && came[1];
}

/* A staging buffer may be read and written by queued work in turn, without the host's waiting. */
bool pinned_buffer_used_again()
{
	bench b(N);
	float *pinned;
	CK_CUDA(cudaMallocHost((void **)&pinned, N * sizeof *pinned));
	memcpy(pinned, b.in.data(), N * sizeof *pinned);
	CK_CUDA(cudaMemcpyAsync(b.y, pinned, N * sizeof *pinned, cudaMemcpyHostToDevice, b.stream));
	CK_CUDA(cudaMemcpyAsync(pinned, b.y, N * sizeof *pinned, cudaMemcpyDeviceToHost, b.stream));
	CK_CUDA(cudaMemcpyAsync(b.x, pinned, N * sizeof *pinned, cudaMemcpyHostToDevice, b.stream));
	bool right = b.holds(N, [&](size_t i) { return b.in[i]; });
	right = right && memcmp(pinned, b.in.data(), N * sizeof *pinned) == 0;
	CK_CUDA(cudaFreeHost(pinned));
	return right;
}

/* Fresh memory is of NaNs, and aligned. */
bool fresh_memory()
{
	bench b(ODD);
	b.fetch();
	for (float v : b.out)
		if (v == v)
			return false;
	return (uintptr_t)b.x % 256 == 0 && (uintptr_t)b.y % 256 == 0;
}

/* Free memory goes by 2 MiB; small allocations share them; what does not fit is refused, and leaves no trace. */
bool free_memory_is_exact()
{
	size_t left[6], total, mib = 1 << 20;
	void *p[4], *none = NULL;
	CK_CUDA(cudaMemGetInfo(&left[0], &total));
	const size_t sizes[] = {3 * mib, 1, mib / 2, 2 * mib};
	for (int i = 0; i < 4; i++) {
		CK_CUDA(cudaMalloc(&p[i], sizes[i]));
		CK_CUDA(cudaMemGetInfo(&left[i + 1], &total));
	}
	bool right = left[0] == total && left[1] == total - 4 * mib && left[2] == total - 6 * mib && left[3] == left[2] &&
		     left[4] == total - 8 * mib;
	right = right && cudaMalloc(&none, left[4] + 1) == cudaErrorMemoryAllocation && !none &&
		cudaGetLastError() == cudaErrorMemoryAllocation && cudaGetLastError() == cudaSuccess;
	for (void *q : p)
		CK_CUDA(cudaFree(q));
	CK_CUDA(cudaMemGetInfo(&left[5], &total));
	return right && left[5] == total;
}

} // namespace

const good good_programs[] = {
    {"storage in float32", storage_f32},
    {"storage in bfloat16", storage_bf16},
    {"storage in float16", storage_f16},
    {"three dimensions", dimensions},
    {"reductions", reductions},
    {"atomics on whole numbers", whole_number_atomics},
    {"atomics on floats differ", float_atomics_differ},
    {"queries", queries},
    {"event recorded again", event_recorded_again},
    {"the default stream orders", default_stream_orders},
    {"streams run in any order", streams_run_in_any_order},
    {"pinned buffer used again", pinned_buffer_used_again},
    {"fresh memory", fresh_memory},
    {"free memory is exact", free_memory_is_exact},
    {NULL, NULL},
};
