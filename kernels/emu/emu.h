/* Inside the emulated device: what its parts, and the doubles of cuBLASLt and cuDNN, take from the double of the CUDA runtime
 * (runtime.cpp, memory.cpp) and from the fibers that run kernels (simt.cpp).
 *
 * Asynchrony is real, by laziness: work on a stream is queued, and runs only when the host waits for something. Streams that no
 * event orders run in an order drawn from the seed. So a host that reads too early reads what was there before.
 *
 * Device memory is mapped for no access except while queued work runs: host code that follows a device pointer ends with SIGSEGV,
 * and the emulation installs no handler against that. Work alone may touch it: a closure given to ck_emu_enqueue, never the call
 * that enqueues. One host thread uses the device. */
#ifndef CK_EMU_H
#define CK_EMU_H

#include <functional>
#include <stddef.h>
#include <stdint.h>

#include <cuda_runtime_api.h>

/* Queues work on a live stream (NULL: the legacy default stream). The closure holds its arguments by value; host scalars (alpha,
 * beta) are read by the call, before. what: for messages. */
void ck_emu_enqueue(cudaStream_t stream, std::function<void()> work, const char *what = "a library call");

/* Whether [pointer, pointer + bytes) lies in one live allocation of the current device. */
bool ck_emu_is_device(const void *pointer, size_t bytes);
/* Fails unless it does: "WHAT: host pointer", "WHAT: 512 bytes at byte 0 of an allocation of 256". */
void ck_emu_check_device(const void *pointer, size_t bytes, const char *what);
/* Fails where the range touches device memory: WHAT is read or written by the host. */
void ck_emu_check_host(const void *pointer, size_t bytes, const char *what);

/* One line on stderr, with the kernel, block and thread that run, if any, or the work; then abort(). */
[[noreturn]] void ck_emu_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Small random numbers, the same each run for one seed (CKBENCH_EMU_SEED, default 1). */
uint32_t ck_emu_random();

#endif
