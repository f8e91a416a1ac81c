/* A wrong program differs from the right one in what its name says and in nothing else: kernels by their template's argument WRONG. */
#include "suite/emu/bench.hpp"

extern "C" void ck__cuda_must(int error, const char *call, const char *file, int line)
{
	if (error) {
		fprintf(stderr, "%s:%d: %s gives %s\n", file, line, call, cudaGetErrorName((cudaError_t)error));
		abort();
	}
}

namespace
{

/* Launches the right instance of a kernel template or the wrong one. */
#define LAUNCH(wrong, kernel, ...)                                                                                             \
	do {                                                                                                                   \
		if (wrong)                                                                                                     \
			CK_LAUNCH((kernel<true>), __VA_ARGS__);                                                                \
		else                                                                                                           \
			CK_LAUNCH((kernel<false>), __VA_ARGS__);                                                               \
	} while (0)

/* ---- barriers and shared memory ---------------------------------------------------------------------------------------------- */

template <bool WRONG> CK_KERNEL void tree_sum(const float *x, float *y)
{
	CK_SHARED(float, part, CK_BLOCK);
	unsigned t = threadIdx.x;
	part[t] = x[ck_thread()];
	__syncthreads();
	for (unsigned half_of = CK_BLOCK / 2; half_of; half_of /= 2) {
		if (t < half_of)
			part[t] += part[t + half_of];
		if (!WRONG || half_of != 32)
			__syncthreads();
	}
	if (t == 0)
		y[blockIdx.x] = part[0];
}
bool barrier_removed(bool wrong)
{
	bench b(N);
	LAUNCH(wrong, tree_sum, BLOCKS, CK_BLOCK, 0, b.stream, b.x, b.y);
	return b.holds_sums();
}

/* In a block of one warp the shuffles let all read before one writes. */
template <bool WRONG> CK_KERNEL void reused(const float *x, float *y)
{
	CK_SHARED(float, first, 1);
	if (threadIdx.x == 0)
		first[0] = x[ck_thread()];
	__syncthreads();
	float sum = ck_warp_sum(x[ck_thread()] - first[0]);
	if (!WRONG)
		__syncthreads();
	if (threadIdx.x == 0) {
		first[0] = sum;
		y[blockIdx.x] = first[0];
	}
}
bool reused_without_barrier(bool wrong)
{
	bench b(N);
	LAUNCH(wrong, reused, N / CK_WARP, CK_WARP, 0, b.stream, b.x, b.y);
	return b.holds(N / CK_WARP, [&](size_t block) {
		float sum = 0;
		for (size_t i = 0; i < CK_WARP; i++)
			sum += b.in[block * CK_WARP + i] - b.in[block * CK_WARP];
		return sum;
	});
}

template <bool WRONG> CK_KERNEL void one_writer(const float *x, float *y)
{
	CK_SHARED(float, part, CK_BLOCK);
	part[WRONG ? threadIdx.x / 2 : threadIdx.x] = x[ck_thread()];
	__syncthreads();
	y[ck_thread()] = part[threadIdx.x];
}
bool two_writers(bool wrong)
{
	bench b(N);
	LAUNCH(wrong, one_writer, BLOCKS, CK_BLOCK, 0, b.stream, b.x, b.y);
	return b.holds(N, [&](size_t i) { return b.in[i]; });
}

/* Neighbours by shared memory; a shuffle comes in between, which orders nothing there. */
template <bool WRONG> CK_KERNEL void neighbour(const float *x, float *y)
{
	CK_SHARED(float, part, CK_BLOCK);
	part[threadIdx.x] = x[ck_thread()];
	float other = __shfl_xor_sync(CK_WARP_ALL, x[ck_thread()], 1);
	if (!WRONG)
		__syncthreads();
	y[ck_thread()] = part[threadIdx.x ^ 1u] + other;
}
bool shuffle_for_barrier(bool wrong)
{
	bench b(N);
	LAUNCH(wrong, neighbour, BLOCKS, CK_BLOCK, 0, b.stream, b.x, b.y);
	return b.holds(N, [&](size_t i) { return 2 * b.in[i ^ 1]; });
}

template <bool WRONG> CK_KERNEL void rotate(const float *x, float *y)
{
	CK_SHARED(float, part, CK_BLOCK);
	part[threadIdx.x] = x[ck_thread()];
	__syncthreads();
	y[ck_thread()] = part[WRONG ? threadIdx.x + 1 : (threadIdx.x + 1) % CK_BLOCK];
}
bool shared_index_off_by_one(bool wrong)
{
	bench b(N);
	LAUNCH(wrong, rotate, BLOCKS, CK_BLOCK, 0, b.stream, b.x, b.y);
	return b.holds(N, [&](size_t i) { return b.in[i % CK_BLOCK == CK_BLOCK - 1 ? i + 1 - CK_BLOCK : i + 1]; });
}

CK_KERNEL void reverse(const float *x, float *y)
{
	CK_DYNAMIC_SHARED(float, part);
	part[threadIdx.x] = x[ck_thread()];
	__syncthreads();
	y[ck_thread()] = part[blockDim.x - 1 - threadIdx.x];
}
bool dynamic_shared_too_small(bool wrong)
{
	bench b(N);
	CK_LAUNCH(reverse, BLOCKS, CK_BLOCK, (CK_BLOCK - wrong) * sizeof(float), b.stream, b.x, b.y);
	return b.holds(N, [&](size_t i) { return b.in[i / CK_BLOCK * CK_BLOCK + CK_BLOCK - 1 - i % CK_BLOCK]; });
}

/* Shared memory keeps nothing from one block to the next. */
template <bool WRONG> CK_KERNEL void count_up(float *y)
{
	CK_SHARED(int, count, 1);
	if (threadIdx.x == 0) {
		if (!WRONG)
			count[0] = 0;
		count[0] += 1;
		y[blockIdx.x] = (float)count[0];
	}
}
bool read_before_written(bool wrong)
{
	bench b(N);
	LAUNCH(wrong, count_up, BLOCKS, CK_BLOCK, 0, b.stream, b.y);
	return b.holds(BLOCKS, [](size_t) { return 1.0f; });
}

template <bool WRONG> CK_KERNEL void much_shared(float *y)
{
	CK_SHARED(float, part, 12288 - (WRONG ? 0 : 256)); /* and 1 KiB of dynamic shared memory */
	CK_DYNAMIC_SHARED(float, more);
	part[threadIdx.x] = more[threadIdx.x] = (float)threadIdx.x;
	y[ck_thread()] = part[threadIdx.x] + more[threadIdx.x];
}
bool too_much_shared(bool wrong)
{
	bench b(N);
	LAUNCH(wrong, much_shared, BLOCKS, CK_BLOCK, 1024, b.stream, b.y);
	return b.holds(N, [](size_t i) { return 2 * (float)(i % CK_BLOCK); });
}

template <bool WRONG> CK_KERNEL void some_at_barrier(const float *x, float *y)
{
	if (!WRONG || threadIdx.x < CK_BLOCK / 2)
		__syncthreads();
	y[ck_thread()] = x[ck_thread()];
}
bool barrier_in_divergent_code(bool wrong)
{
	bench b(N);
	LAUNCH(wrong, some_at_barrier, BLOCKS, CK_BLOCK, 0, b.stream, b.x, b.y);
	return b.holds(N, [&](size_t i) { return b.in[i]; });
}

template <bool WRONG> CK_KERNEL void either_barrier(const float *x, float *y)
{
	if (WRONG && threadIdx.x < CK_BLOCK / 2)
		__syncthreads();
	else
		__syncthreads();
	y[ck_thread()] = x[ck_thread()];
}
bool barrier_in_either_branch(bool wrong)
{
	bench b(N);
	LAUNCH(wrong, either_barrier, BLOCKS, CK_BLOCK, 0, b.stream, b.x, b.y);
	return b.holds(N, [&](size_t i) { return b.in[i]; });
}

/* ---- shuffles ---------------------------------------------------------------------------------------------------------------- */

template <bool WRONG> CK_KERNEL void swapped(const float *x, float *y)
{
	float v = x[ck_thread()];
	if (!WRONG || threadIdx.x % CK_WARP < 16)
		v = __shfl_xor_sync(CK_WARP_ALL, v, 1);
	y[ck_thread()] = v;
}
bool shuffle_in_divergent_code(bool wrong)
{
	bench b(N);
	LAUNCH(wrong, swapped, BLOCKS, CK_BLOCK, 0, b.stream, b.x, b.y);
	return b.holds(N, [&](size_t i) { return b.in[i ^ 1]; });
}

template <bool WRONG> CK_KERNEL void ahead(const float *x, float *y)
{
	float v = x[ck_thread()];
	if (WRONG && threadIdx.x % 2)
		v = __shfl_sync(CK_WARP_ALL, v, (int)threadIdx.x + 1);
	else
		v = __shfl_down_sync(CK_WARP_ALL, v, 1);
	y[ck_thread()] = v;
}
bool two_shuffles_in_one_warp(bool wrong)
{
	bench b(N);
	LAUNCH(wrong, ahead, BLOCKS, CK_BLOCK, 0, b.stream, b.x, b.y);
	return b.holds(N, [&](size_t i) { return b.in[i % 32 == 31 ? i : i + 1]; });
}

template <bool WRONG> CK_KERNEL void half_barrier(const float *x, float *y)
{
	float v = x[ck_thread()];
	if (WRONG && threadIdx.x % 2)
		__syncthreads();
	v = __shfl_xor_sync(CK_WARP_ALL, v, 1);
	if (!WRONG || threadIdx.x % 2 == 0)
		__syncthreads();
	y[ck_thread()] = v;
}
bool shuffle_against_barrier(bool wrong)
{
	bench b(N);
	LAUNCH(wrong, half_barrier, BLOCKS, CK_BLOCK, 0, b.stream, b.x, b.y);
	return b.holds(N, [&](size_t i) { return b.in[i ^ 1]; });
}

template <bool WRONG> CK_KERNEL void masked(const float *x, float *y)
{
	int zeros = __any_sync(WRONG ? 0xFFFFu : CK_WARP_ALL, x[ck_thread()] == 0);
	unsigned ones = __ballot_sync(CK_WARP_ALL, x[ck_thread()] == 1);
	y[ck_thread()] = (float)(zeros + (int)(ones >> threadIdx.x % CK_WARP & 1u));
}
bool shuffle_of_half_a_warp(bool wrong)
{
	bench b(N);
	LAUNCH(wrong, masked, BLOCKS, CK_BLOCK, 0, b.stream, b.x, b.y);
	return b.holds(N, [&](size_t i) { return 1 + (float)(b.in[i] == 1); });
}

/* ---- device memory ----------------------------------------------------------------------------------------------------------- */

/* FROM: added to the index that is read, TO: to the one that is written. */
template <int FROM, int TO, bool BOUND> CK_KERNEL void shifted(int64_t n, const float *x, float *y)
{
	int64_t i = ck_thread();
	if (BOUND && i >= n)
		return;
	y[i + TO] = FROM ? x[i + FROM] : 1.0f;
}
template <int FROM, int TO, bool BOUND> bool shifts(size_t n, bool wrong)
{
	bench b(n);
	if (wrong)
		CK_LAUNCH((shifted<FROM, TO, BOUND>), BLOCKS, CK_BLOCK, 0, b.stream, (int64_t)n, b.x, b.y);
	else
		CK_LAUNCH((shifted<0, 0, true>), BLOCKS, CK_BLOCK, 0, b.stream, (int64_t)n, b.x, b.y);
	return b.holds(n, [](size_t) { return 1.0f; });
}
bool bound_missing(bool wrong)
{
	return shifts<0, 0, false>(ODD, wrong);
}
bool write_past_end(bool wrong)
{
	return shifts<0, 1, true>(ODD, wrong);
}
bool write_past_last_page(bool wrong)
{
	return shifts<0, 256, true>(N, wrong);
}
bool read_past_end(bool wrong)
{
	return shifts<1, 0, true>(N, wrong);
}
bool write_before_begin(bool wrong)
{
	return shifts<0, -1, true>(N, wrong);
}
bool read_of_null(bool wrong)
{
	bench b(N);
	CK_LAUNCH((shifted<1, 0, true>), BLOCKS, CK_BLOCK, 0, b.stream, (int64_t)N - 1, wrong ? (const float *)NULL : b.x, b.y);
	return b.holds(N - 1, [&](size_t i) { return b.in[i + 1]; });
}

template <typename T> CK_KERNEL void doubled(int64_t n, const T *x, T *y)
{
	for (int64_t i = ck_thread(); i < n; i += ck_threads())
		ck_put(y, i, 2 * ck_get(x, i));
}
bool host_pointer(bool wrong)
{
	bench b(N);
	CK_LAUNCH((doubled<float>), BLOCKS, CK_BLOCK, 0, b.stream, (int64_t)N, wrong ? b.in.data() : b.x, b.y);
	return b.holds(N, [&](size_t i) { return 2 * b.in[i]; });
}
bool pinned_pointer(bool wrong)
{
	bench b(N);
	float *pinned;
	CK_CUDA(cudaMallocHost((void **)&pinned, N * sizeof *pinned));
	CK_LAUNCH((doubled<float>), BLOCKS, CK_BLOCK, 0, b.stream, (int64_t)N, b.x, wrong ? pinned : b.y);
	CK_CUDA(cudaFreeHost(pinned));
	return b.holds(N, [&](size_t i) { return 2 * b.in[i]; });
}
bool freed_pointer(bool wrong)
{
	bench b(N);
	float *old = NULL;
	CK_CUDA(cudaMalloc((void **)&old, N * sizeof *old));
	CK_CUDA(cudaFree(old));
	CK_LAUNCH((doubled<float>), BLOCKS, CK_BLOCK, 0, b.stream, (int64_t)N, b.x, wrong ? old : b.y);
	return b.holds(N, [&](size_t i) { return 2 * b.in[i]; });
}
bool pointer_of_another_device(bool wrong)
{
	bench b(N);
	float *there;
	CK_CUDA(cudaSetDevice(1));
	CK_CUDA(cudaMalloc((void **)&there, N * sizeof *there));
	CK_CUDA(cudaSetDevice(0));
	CK_LAUNCH((doubled<float>), BLOCKS, CK_BLOCK, 0, b.stream, (int64_t)N, b.x, wrong ? there : b.y);
	CK_CUDA(cudaFree(there));
	return b.holds(N, [&](size_t i) { return 2 * b.in[i]; });
}
bool host_reads_device(bool wrong)
{
	bench b(N);
	b.fetch();
	return (wrong ? b.x : b.in.data())[1] == 1;
}

/* ---- launches ---------------------------------------------------------------------------------------------------------------- */

bool launches(dim3 grid, dim3 block, size_t shared)
{
	bench b(N);
	CK_LAUNCH((doubled<float>), grid, block, shared, b.stream, (int64_t)N, b.x, b.y);
	return b.holds(N, [&](size_t i) { return 2 * b.in[i]; });
}
bool block_too_large(bool wrong)
{
	return launches(1, wrong ? 1056 : 1024, 0);
}
bool block_of_part_of_a_warp(bool wrong)
{
	return launches(8, wrong ? 48 : 64, 0);
}
bool block_too_deep(bool wrong)
{
	return launches(8, wrong ? dim3(1, 1, 96) : dim3(96, 1, 1), 0);
}
bool grid_empty(bool wrong)
{
	return launches(wrong ? 0 : 1, 128, 0);
}
bool grid_too_high(bool wrong)
{
	return launches(dim3(1, wrong ? 65536 : 65535), 32, 0);
}
bool dynamic_shared_too_large(bool wrong)
{
	return launches(4, 128, (48 << 10) + wrong);
}

/* ---- the order of work --------------------------------------------------------------------------------------------------------- */

/* What the host does between the copy back and the wait. */
bool read_before_sync(bool wrong)
{
	bench b(N);
	float *pinned;
	CK_CUDA(cudaMallocHost((void **)&pinned, N * sizeof *pinned));
	memset(pinned, 0, N * sizeof *pinned); /* so that x[0] and pinned[0] are alike */
	CK_CUDA(cudaMemcpyAsync(pinned, b.x, N * sizeof *pinned, cudaMemcpyDeviceToHost, b.stream));
	if (!wrong)
		CK_CUDA(cudaStreamSynchronize(b.stream));
	bool right = pinned[0] == b.in[0];
	CK_CUDA(cudaFreeHost(pinned));
	return right;
}
bool pinned_source_changed_early(bool wrong)
{
	bench b(N);
	float *pinned;
	CK_CUDA(cudaMallocHost((void **)&pinned, N * sizeof *pinned));
	memcpy(pinned, b.in.data(), N * sizeof *pinned);
	CK_CUDA(cudaMemcpyAsync(b.y, pinned, N * sizeof *pinned, cudaMemcpyHostToDevice, b.stream));
	if (!wrong)
		CK_CUDA(cudaStreamSynchronize(b.stream));
	memset(pinned, 0, N * sizeof *pinned);
	bool right = b.holds(N, [&](size_t i) { return b.in[i]; });
	CK_CUDA(cudaFreeHost(pinned));
	return right;
}
/* cudaMemcpyAsync may have read it, or not. */
bool pageable_source_changed_early(bool wrong)
{
	bench b(N);
	std::vector<float> source = b.in;
	CK_CUDA(cudaMemcpyAsync(b.y, source.data(), N * sizeof(float), cudaMemcpyHostToDevice, b.stream));
	if (!wrong)
		CK_CUDA(cudaStreamSynchronize(b.stream));
	memset(source.data(), 0, N * sizeof(float));
	return b.holds(N, [&](size_t i) { return b.in[i]; });
}
bool copy_before_its_event(bool wrong)
{
	bench b(N);
	cudaStream_t copies;
	cudaEvent_t computed;
	CK_CUDA(cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking));
	CK_CUDA(cudaEventCreateWithFlags(&computed, cudaEventDisableTiming));
	CK_LAUNCH((doubled<float>), BLOCKS, CK_BLOCK, 0, b.stream, (int64_t)N, b.x, b.y);
	CK_CUDA(cudaEventRecord(computed, b.stream));
	if (!wrong)
		CK_CUDA(cudaStreamWaitEvent(copies, computed, 0));
	std::vector<float> out(N);
	CK_CUDA(cudaMemcpyAsync(out.data(), b.y, N * sizeof(float), cudaMemcpyDeviceToHost, copies));
	CK_CUDA(cudaEventDestroy(computed));
	CK_CUDA(cudaStreamDestroy(copies));
	bool right = true;
	for (size_t i = 0; i < N; i++)
		right = right && out[i] == 2 * b.in[i];
	return right;
}
bool overwritten_before_the_copy(bool wrong)
{
	bench b(N);
	cudaStream_t copies;
	cudaEvent_t copied;
	float *pinned;
	CK_CUDA(cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking));
	CK_CUDA(cudaEventCreate(&copied));
	CK_CUDA(cudaMallocHost((void **)&pinned, N * sizeof *pinned));
	CK_CUDA(cudaStreamSynchronize(b.stream));
	CK_CUDA(cudaMemcpyAsync(pinned, b.x, N * sizeof *pinned, cudaMemcpyDeviceToHost, copies));
	CK_CUDA(cudaEventRecord(copied, copies));
	if (!wrong)
		CK_CUDA(cudaStreamWaitEvent(b.stream, copied, 0));
	CK_CUDA(cudaMemsetAsync(b.x, 0, N * sizeof *pinned, b.stream));
	CK_CUDA(cudaDeviceSynchronize());
	bool right = memcmp(pinned, b.in.data(), N * sizeof *pinned) == 0;
	CK_CUDA(cudaFreeHost(pinned));
	CK_CUDA(cudaEventDestroy(copied));
	CK_CUDA(cudaStreamDestroy(copies));
	return right;
}
bool elapsed_before_sync(bool wrong)
{
	bench b(N);
	cudaEvent_t events[2];
	for (cudaEvent_t &e : events)
		CK_CUDA(cudaEventCreate(&e));
	CK_CUDA(cudaEventRecord(events[0], b.stream));
	CK_CUDA(cudaEventRecord(events[1], b.stream));
	if (!wrong)
		CK_CUDA(cudaEventSynchronize(events[1]));
	float milliseconds = -1;
	CK_CUDA(cudaEventElapsedTime(&milliseconds, events[0], events[1]));
	for (cudaEvent_t e : events)
		CK_CUDA(cudaEventDestroy(e));
	return milliseconds >= 0;
}
bool elapsed_of_unrecorded(bool wrong)
{
	bench b(N);
	cudaEvent_t events[2];
	for (cudaEvent_t &e : events)
		CK_CUDA(cudaEventCreate(&e));
	if (!wrong)
		CK_CUDA(cudaEventRecord(events[0], b.stream));
	CK_CUDA(cudaEventRecord(events[1], b.stream));
	CK_CUDA(cudaEventSynchronize(events[1]));
	float milliseconds = -1;
	CK_CUDA(cudaEventElapsedTime(&milliseconds, events[0], events[1]));
	for (cudaEvent_t e : events)
		CK_CUDA(cudaEventDestroy(e));
	return milliseconds >= 0;
}

/* ---- calls of the runtime ------------------------------------------------------------------------------------------------------ */

bool freed_twice(bool wrong)
{
	float *p;
	CK_CUDA(cudaMalloc((void **)&p, 4));
	CK_CUDA(cudaFree(p));
	CK_CUDA(cudaFree(wrong ? p : NULL));
	return true;
}
bool destroyed_stream(bool wrong)
{
	cudaStream_t s;
	CK_CUDA(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	if (wrong)
		CK_CUDA(cudaStreamDestroy(s));
	CK_CUDA(cudaStreamSynchronize(s));
	if (!wrong)
		CK_CUDA(cudaStreamDestroy(s));
	return true;
}
bool destroyed_event(bool wrong)
{
	cudaEvent_t e;
	CK_CUDA(cudaEventCreate(&e));
	if (wrong)
		CK_CUDA(cudaEventDestroy(e));
	CK_CUDA(cudaEventSynchronize(e));
	if (!wrong)
		CK_CUDA(cudaEventDestroy(e));
	return true;
}
bool copies(size_t bytes, cudaMemcpyKind kind)
{
	bench b(N);
	b.out.resize(2 * N);
	CK_CUDA(cudaMemcpyAsync(b.out.data(), b.x, bytes, kind, b.stream));
	return b.out[1] == 1;
}
bool copy_the_wrong_way(bool wrong)
{
	return copies(N * sizeof(float), wrong ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost);
}
bool copy_too_long(bool wrong)
{
	return copies(N * sizeof(float) + wrong, cudaMemcpyDeviceToHost);
}
bool memset_too_long(bool wrong)
{
	bench b(N);
	CK_CUDA(cudaMemsetAsync(b.y, 0, N * sizeof(float) + wrong, b.stream));
	return b.holds(N, [](size_t) { return 0.0f; });
}

} // namespace

const planted planted_programs[] = {
    {"barrier removed", barrier_removed, PLANTED_SAYS, false, "race on shared memory part["},
    {"shared memory used again without a barrier", reused_without_barrier, PLANTED_SAYS, false,
     "race on shared memory first[0]: writes what several threads read"},
    {"two threads write one element", two_writers, PLANTED_SAYS, false, "what thread "},
    {"shuffle in place of a barrier", shuffle_for_barrier, PLANTED_SAYS, false, "race on shared memory part["},
    {"shared index off by one", shared_index_off_by_one, PLANTED_SAYS, false,
     "index 256 is outside of shared memory part[256]"},
    {"dynamic shared memory too small", dynamic_shared_too_small, PLANTED_SAYS, false,
     "index 255 is outside of shared memory part[255]"},
    {"shared memory read before written", read_before_written, PLANTED_SAYS, false,
     "shared memory count[0] is read before its block wrote it"},
    {"too much shared memory", too_much_shared, PLANTED_SAYS, false, "50176 bytes of shared memory; a block has 49152"},
    {"barrier in divergent code", barrier_in_divergent_code, PLANTED_SAYS, false, "128 threads wait in __syncthreads at "},
    {"barrier in either branch", barrier_in_either_branch, PLANTED_SAYS, false, "waits in __syncthreads at "},
    {"shuffle in divergent code", shuffle_in_divergent_code, PLANTED_SAYS, false,
     "16 of the 32 lanes wait in __shfl_xor_sync at "},
    {"two shuffles in one warp", two_shuffles_in_one_warp, PLANTED_SAYS, false, "of its warp in __shfl_"},
    {"shuffle against barrier", shuffle_against_barrier, PLANTED_SAYS, false, "have ended and 16 wait elsewhere"},
    {"shuffle of half a warp", shuffle_of_half_a_warp, PLANTED_SAYS, false, "with mask 0x0000FFFF"},
    {"bound missing", bound_missing, PLANTED_SAYS, false, "bytes past the end of an allocation of 2976"},
    {"write past the end", write_past_end, PLANTED_SAYS, false,
     "wrote device memory 0 bytes past the end of an allocation of 2976"},
    {"write past the last page", write_past_last_page, PLANTED_SAYS, false, "touches device memory "},
    {"read past the end", read_past_end, PLANTED_SAYS, false,
     "touches device memory 0 bytes past the end of an allocation of 3072"},
    {"write before the beginning", write_before_begin, PLANTED_SAYS, false,
     "wrote device memory 4 bytes before an allocation of 3072"},
    {"read of NULL", read_of_null, PLANTED_SAYS, false, "which is not the device's"},
    {"host pointer", host_pointer, PLANTED_SAYS, false, "host pointer given to kernel doubled<float>, argument 2"},
    {"pinned host pointer", pinned_pointer, PLANTED_SAYS, false,
     "pinned host pointer given to kernel doubled<float>, argument 3"},
    {"freed pointer", freed_pointer, PLANTED_SAYS, false, "pointer to no live allocation given to kernel"},
    {"pointer of another device", pointer_of_another_device, PLANTED_SAYS, false, "pointer to another device given to kernel"},
    {"host reads device memory", host_reads_device, PLANTED_DIES, false, NULL},
    {"block too large", block_too_large, PLANTED_SAYS, false, "a block has at most 1024 threads"},
    {"block of part of a warp", block_of_part_of_a_warp, PLANTED_SAYS, false, "a block is a multiple of 32 threads"},
    {"block too deep", block_too_deep, PLANTED_SAYS, false, "64 of them along z"},
    {"grid empty", grid_empty, PLANTED_SAYS, false, "nothing to launch"},
    {"grid too high", grid_too_high, PLANTED_SAYS, false, "a grid has at most"},
    {"dynamic shared memory too large", dynamic_shared_too_large, PLANTED_SAYS, false,
     "a block has 49152 bytes of shared memory"},
    {"read before synchronisation", read_before_sync, PLANTED_WRONG, false, NULL},
    {"pinned source changed early", pinned_source_changed_early, PLANTED_WRONG, false, NULL},
    {"pageable source changed early", pageable_source_changed_early, PLANTED_WRONG, false, NULL},
    {"copy before its event", copy_before_its_event, PLANTED_WRONG, true, NULL},
    {"overwritten before the copy", overwritten_before_the_copy, PLANTED_WRONG, true, NULL},
    {"elapsed time before synchronisation", elapsed_before_sync, PLANTED_SAYS, false, "cudaErrorNotReady"},
    {"elapsed time of an event never recorded", elapsed_of_unrecorded, PLANTED_SAYS, false, "cudaErrorInvalidResourceHandle"},
    {"freed twice", freed_twice, PLANTED_SAYS, false, "cudaErrorInvalidValue"},
    {"stream destroyed", destroyed_stream, PLANTED_SAYS, false, "cudaErrorInvalidResourceHandle"},
    {"event destroyed", destroyed_event, PLANTED_SAYS, false, "cudaErrorInvalidResourceHandle"},
    {"copy the wrong way", copy_the_wrong_way, PLANTED_SAYS, false, "cudaErrorInvalidValue"},
    {"copy too long", copy_too_long, PLANTED_SAYS, false, "cudaErrorInvalidValue"},
    {"memset too long", memset_too_long, PLANTED_SAYS, false, "cudaErrorInvalidValue"},
    {NULL, NULL, PLANTED_SAYS, false, NULL},
};
