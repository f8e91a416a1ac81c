/* CUDA's device side for a host compiler: what launch.cuh includes where nvcc is not. Each thread of a block is a fiber, and blocks
 * run one after another, both in an order that the seed shuffles anew for every block and launch. Kernels are called through
 * CK_LAUNCH, which queues them as work of the stream.
 *
 * A thread that breaks a rule ends the program with one line that names kernel, block, thread and rule:
 *   - barriers are reached by all threads of a block, shuffles and votes by all 32 of a warp, at one place in the source
 *   - an element of shared memory is written before it is read, and no two threads touch it, one of them writing, without a
 *     barrier of the block in between: shuffles order nothing
 *   - shared memory is indexed within its bounds; device memory outside of an allocation is not touched (memory.cpp)
 *   - a pointer given to a kernel is NULL or lies in a live allocation of the device */
#ifndef CK_SIMT_H
#define CK_SIMT_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <functional>
#include <string>
#include <tuple>
#include <type_traits>

#include <cuda_runtime_api.h>
#include <vector_types.h>

/* static: kernels of one name in two files are two kernels, as for nvcc */
#define CK_KERNEL static
#define CK_DEVICE inline __attribute__((always_inline))
#undef __launch_bounds__
#define __launch_bounds__(...)

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;

namespace ck_emu
{

/* ---- shared memory ------------------------------------------------------------------------------------------------------- */

/* Who touched an element last, and when: epochs count the blocks and barriers since the program began, so that nothing needs to be
 * reset. */
struct touch {
	uint32_t written, read;  /* epochs */
	uint16_t writer, reader; /* threads; reader: MANY when several read in that epoch */
};
enum { MANY = 0xFFFF, SHARED_MOST = 48 << 10 };

extern uint32_t epoch, block_began;
extern unsigned thread; /* linear, in its block */

[[noreturn]] void outside(const char *name, int64_t index, size_t count);
[[noreturn]] void unwritten(const char *name, size_t index);
[[noreturn]] void race(const char *name, size_t index, bool writes, unsigned other, bool other_wrote);

/* What shared[i] is: reads and writes are told apart by its use as a value or as a target. */
template <typename T> struct element {
	T &value;
	touch &last;
	const char *name;
	size_t index;

	element(const element &) = default;
	operator T() const
	{
		if (last.written < block_began)
			unwritten(name, index);
		if (last.written == epoch && last.writer != thread)
			race(name, index, false, last.writer, true);
		last.reader = last.read == epoch && last.reader != thread ? (uint16_t)MANY : (uint16_t)thread;
		last.read = epoch;
		return value;
	}
	T operator=(T v) const
	{
		if (last.written == epoch && last.writer != thread)
			race(name, index, true, last.writer, true);
		if (last.read == epoch && last.reader != thread)
			race(name, index, true, last.reader, false);
		last.writer = (uint16_t)thread;
		last.written = epoch;
		return value = v;
	}
	T operator=(const element &other) const
	{
		return *this = (T)other;
	}
	template <typename V> T operator+=(V v) const
	{
		return *this = (T)((T) * this + v);
	}
	template <typename V> T operator-=(V v) const
	{
		return *this = (T)((T) * this - v);
	}
	template <typename V> T operator*=(V v) const
	{
		return *this = (T)((T) * this * v);
	}
	template <typename V> T operator|=(V v) const
	{
		return *this = (T)((T) * this | v);
	}
};

/* A view of a shared array; each thread has its own. */
template <typename T> struct array {
	T *values;
	touch *touches;
	size_t count;
	const char *name;

	template <typename I> element<T> operator[](I i) const
	{
		static_assert(std::is_integral<I>::value || std::is_enum<I>::value, "an index");
		if ((size_t)i >= count)
			outside(name, (int64_t)i, count);
		return {values[i], touches[i], name, (size_t)i};
	}
};

/* Counts a static array of the block that runs; the sum is bounded. */
void charge(size_t bytes);
extern unsigned char dynamic_bytes[SHARED_MOST];
extern size_t dynamic_count; /* bytes */
extern touch dynamic_touches[SHARED_MOST];

template <typename T, size_t N> struct storage {
	T values[N];
	touch touches[N];
	uint32_t block;

	array<T> enter(const char *name)
	{
		if (block != block_began) {
			block = block_began;
			charge(sizeof values);
		}
		return {values, touches, N, name};
	}
};

template <typename T> array<T> dynamic(const char *name)
{
	static_assert(sizeof(T) <= 4, "dynamic shared memory is of 4-byte types at most");
	return {reinterpret_cast<T *>(dynamic_bytes), dynamic_touches, dynamic_count / sizeof(T), name};
}

#define CK_SHARED(type, name, count)                                                                                           \
	static ck_emu::storage<type, (count)> name##_storage;                                                                  \
	const ck_emu::array<type> name = name##_storage.enter(#name)
#define CK_DYNAMIC_SHARED(type, name) const ck_emu::array<type> name = ck_emu::dynamic<type>(#name)

/* ---- launches ------------------------------------------------------------------------------------------------------------ */

struct grid {
	std::string name;
	dim3 blocks, threads;
	size_t shared;
	cudaStream_t stream;
};

void check_pointer(const std::string &kernel, int argument, const void *pointer);
template <typename T> void check_argument(const std::string &kernel, int argument, T *const &pointer)
{
	check_pointer(kernel, argument, pointer);
}
template <typename T> void check_argument(const std::string &, int, const T &)
{
	static_assert(std::is_arithmetic<T>::value || std::is_enum<T>::value || std::is_trivially_copyable<T>::value,
		      "arguments are copied as bytes");
}

/* Queues the launch; body is one thread. The errors are those of the real launch, with a line on stderr that says why. */
cudaError_t submit(const grid &g, std::function<void()> body);

template <typename... P, typename... A>
cudaError_t launch(const char *text, void (*kernel)(P...), dim3 blocks, dim3 threads, size_t shared, cudaStream_t stream,
		   A... arguments)
{
	static_assert(sizeof...(P) == sizeof...(A), "number of arguments");
	std::tuple<P...> call(static_cast<P>(arguments)...);
	std::string name(text);
	if (name[0] == '(')
		name = name.substr(1, name.size() - 2);
	int n = 0;
	std::apply([&](const P &...p) { (check_argument(name, ++n, p), ...); }, call);
	return submit({name, blocks, threads, shared, stream}, [kernel, call] { std::apply(kernel, call); });
}

#define CK_LAUNCH(kernel, grid, block, shared, stream, ...)                                                                    \
	CK_CUDA(ck_emu::launch(#kernel, kernel, (grid), (block), (shared), (stream), __VA_ARGS__))

/* ---- barriers, shuffles, votes ------------------------------------------------------------------------------------------- */

void barrier(const char *file, int line);
/* All lanes of the warp meet, each with a value; returns the 32 values, which hold until this thread's next meeting but one. */
const uint64_t *meet(unsigned mask, uint64_t value, const char *what, const char *file, int line);

template <typename T> T exchange(unsigned mask, T value, unsigned from, const char *what, const char *file, int line)
{
	static_assert(sizeof value <= sizeof(uint64_t) && std::is_trivially_copyable<T>::value, "a value of a register or two");
	uint64_t bits = 0;
	memcpy(&bits, &value, sizeof value);
	bits = meet(mask, bits, what, file, line)[from];
	memcpy(&value, &bits, sizeof value);
	return value;
}

} // namespace ck_emu

#define CK_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

inline void __syncthreads(CK_SITE)
{
	ck_emu::barrier(file, line);
}
template <typename T> T __shfl_sync(unsigned mask, T v, int from, CK_SITE)
{
	return ck_emu::exchange(mask, v, (unsigned)from % 32, "__shfl_sync", file, line);
}
template <typename T> T __shfl_xor_sync(unsigned mask, T v, int lanes, CK_SITE)
{
	return ck_emu::exchange(mask, v, (ck_emu::thread ^ (unsigned)lanes) % 32, "__shfl_xor_sync", file, line);
}
/* The last lanes, for which none is `lanes` further, keep their own. */
template <typename T> T __shfl_down_sync(unsigned mask, T v, unsigned lanes, CK_SITE)
{
	unsigned lane = ck_emu::thread % 32;
	return ck_emu::exchange(mask, v, lane + lanes < 32 ? lane + lanes : lane, "__shfl_down_sync", file, line);
}
inline unsigned __ballot_sync(unsigned mask, int predicate, CK_SITE)
{
	const uint64_t *votes = ck_emu::meet(mask, predicate != 0, "__ballot_sync", file, line);
	unsigned ballot = 0;
	for (unsigned lane = 0; lane < 32; lane++)
		ballot |= (unsigned)votes[lane] << lane;
	return ballot;
}
inline int __any_sync(unsigned mask, int predicate, CK_SITE)
{
	const uint64_t *votes = ck_emu::meet(mask, predicate != 0, "__any_sync", file, line);
	for (unsigned lane = 0; lane < 32; lane++)
		if (votes[lane])
			return 1;
	return 0;
}
#undef CK_SITE

/* ---- atomics, on device memory: fibers switch at barriers and shuffles only ----------------------------------------------- */

template <typename T> T ck_emu_exchange_for(T *at, T value)
{
	T old = *at;
	*at = value;
	return old;
}
inline int atomicAdd(int *at, int v)
{
	return ck_emu_exchange_for(at, (int)((unsigned)*at + (unsigned)v));
}
inline unsigned atomicAdd(unsigned *at, unsigned v)
{
	return ck_emu_exchange_for(at, *at + v);
}
inline unsigned long long atomicAdd(unsigned long long *at, unsigned long long v)
{
	return ck_emu_exchange_for(at, *at + v);
}
inline float atomicAdd(float *at, float v)
{
	return ck_emu_exchange_for(at, *at + v);
}
inline int atomicOr(int *at, int v)
{
	return ck_emu_exchange_for(at, *at | v);
}
inline unsigned atomicOr(unsigned *at, unsigned v)
{
	return ck_emu_exchange_for(at, *at | v);
}
inline int atomicMax(int *at, int v)
{
	return ck_emu_exchange_for(at, *at > v ? *at : v);
}
inline unsigned atomicMax(unsigned *at, unsigned v)
{
	return ck_emu_exchange_for(at, *at > v ? *at : v);
}

/* ---- functions of the device's library that a host's has not -------------------------------------------------------------- */

CK_DEVICE float rsqrtf(float x)
{
	return 1 / sqrtf(x);
}
template <typename T> CK_DEVICE T __ldg(const T *x)
{
	return *x;
}

#endif
