/* Doubles of the CUDA runtime's streams, events, memory and copies: the real prototypes, the real errors.
 *
 * A stream is a queue of work; an event, and a wait for one, are positions in it. Nothing runs when it is queued. What waits
 * (synchronisation, cudaFree, a copy to pageable memory) runs works one by one, each from the head of a stream that the seed
 * picks among those that no event holds back, until what it waits for is done. */
#include <cuda_runtime_api.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <deque>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "kernels/emu/emu.h"
#include "kernels/emu/memory.h"

/* A place in a stream that work has come to or not yet. */
struct mark {
	bool reached;
	double seconds; /* when; the host's clock */
};
typedef std::shared_ptr<mark> mark_ref;

struct work {
	std::function<void()> run;
	std::vector<mark_ref> after;
	std::string what;
	const char *host; /* pinned memory that it reads or writes */
	size_t bytes;
};

struct CUstream_st {
	int device;
	bool blocking; /* orders with the legacy stream */
	std::deque<work> queue;
};

struct CUevent_st {
	int device;
	bool timed;
	mark_ref last; /* NULL: never recorded */
};

namespace
{

int current;
cudaError_t last_error = cudaSuccess;
std::set<CUstream_st *> streams;   /* live */
std::vector<CUstream_st *> queues; /* those, the legacy ones, and destroyed ones with work left */
std::set<CUevent_st *> events;
CUstream_st legacy[CK_EMU_DEVICES];

cudaError_t done(cudaError_t error)
{
	if (error != cudaSuccess)
		last_error = error;
	return error;
}

double seconds()
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* NULL: the handle is not valid on the current device. */
CUstream_st *find_stream(cudaStream_t s)
{
	if (s == NULL || s == cudaStreamLegacy) {
		if (queues.empty())
			for (int d = 0; d < CK_EMU_DEVICES; d++) {
				legacy[d].device = d;
				queues.push_back(&legacy[d]);
			}
		return &legacy[current];
	}
	return streams.count(s) && s->device == current ? s : NULL;
}

/* ---- queues ------------------------------------------------------------------------------------------------------------------ */

mark_ref position(CUstream_st *s)
{
	mark_ref m = std::make_shared<mark>();
	s->queue.push_back({[m] { m->reached = true, m->seconds = seconds(); }, {}, "an event", NULL, 0});
	return m;
}

void push(CUstream_st *s, work w)
{
	/* The legacy stream is ordered with all blocking ones of its device. */
	if (s == &legacy[s->device]) {
		for (CUstream_st *other : queues)
			if (other->blocking && other->device == s->device && !other->queue.empty())
				w.after.push_back(position(other));
	} else if (s->blocking && !legacy[s->device].queue.empty()) {
		w.after.push_back(position(&legacy[s->device]));
	}
	s->queue.push_back(std::move(w));
}

bool ready(const CUstream_st *s)
{
	if (s->queue.empty())
		return false;
	for (const mark_ref &m : s->queue.front().after)
		if (!m->reached)
			return false;
	return true;
}

const work *at_work;

/* Runs one work of one stream. */
void step()
{
	size_t count = queues.size(), first = count ? ck_emu_random() % count : 0;
	for (size_t i = 0; i < count; i++) {
		size_t at = (first + i) % count;
		CUstream_st *s = queues[at];
		if (!ready(s))
			continue;
		work w = std::move(s->queue.front());
		s->queue.pop_front();
		at_work = &w;
		w.run();
		ck_emu_check_canaries();
		at_work = NULL;
		if (s->queue.empty() && s != &legacy[s->device] && !streams.count(s)) {
			queues.erase(queues.begin() + (ptrdiff_t)at);
			delete s;
		}
		return;
	}
	ck_emu_fail("streams wait for each other");
}

template <typename Done> void run_until(Done is_done)
{
	if (is_done())
		return;
	ck_emu_open_memory();
	while (!is_done())
		step();
	ck_emu_close_memory();
}

bool all_idle(int device)
{
	for (const CUstream_st *s : queues)
		if ((device < 0 || s->device == device) && !s->queue.empty())
			return false;
	return true;
}

void finish(int device)
{
	run_until([=] { return all_idle(device); });
}

bool queued_work_uses(const char *host, size_t bytes)
{
	for (const CUstream_st *s : queues)
		for (const work &w : s->queue)
			if (w.host && w.host < host + bytes && host < w.host + w.bytes)
				return true;
	return false;
}

} // namespace

void ck_emu_enqueue(cudaStream_t stream, std::function<void()> run, const char *what)
{
	CUstream_st *s = find_stream(stream);
	if (!s)
		ck_emu_fail("%s: not a stream of the current device", what);
	push(s, {std::move(run), {}, what, NULL, 0});
}

const char *ck_emu_work()
{
	return at_work ? at_work->what.c_str() : "";
}

int ck_emu_current_device()
{
	return current;
}

uint32_t ck_emu_random()
{
	static uint64_t state;
	if (!state) {
		const char *seed = getenv("CKBENCH_EMU_SEED");
		state = (seed ? strtoull(seed, NULL, 10) : 1) * 0x9E3779B97F4A7C15u | 1;
	}
	/* xorshift64*, Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled" (2016) */
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (uint32_t)(state * 0x2545F4914F6CDD1Du >> 32);
}

extern "C" {

/* ---- memory ------------------------------------------------------------------------------------------------------------------ */

cudaError_t CUDARTAPI cudaMalloc(void **pointer, size_t bytes)
{
	if (!pointer)
		return done(cudaErrorInvalidValue);
	*pointer = bytes ? ck_emu_device_alloc(current, bytes) : NULL;
	return done(bytes && !*pointer ? cudaErrorMemoryAllocation : cudaSuccess);
}

cudaError_t CUDARTAPI cudaFree(void *pointer)
{
	if (!pointer)
		return cudaSuccess;
	finish(-1);
	return done(ck_emu_device_free(pointer) ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t CUDARTAPI cudaMallocHost(void **pointer, size_t bytes)
{
	if (!pointer)
		return done(cudaErrorInvalidValue);
	*pointer = bytes ? ck_emu_pinned_alloc(bytes) : NULL;
	return done(bytes && !*pointer ? cudaErrorMemoryAllocation : cudaSuccess);
}

cudaError_t CUDARTAPI cudaFreeHost(void *pointer)
{
	if (!pointer)
		return cudaSuccess;
	finish(-1);
	return done(ck_emu_pinned_free(pointer) ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t CUDARTAPI cudaMemGetInfo(size_t *free, size_t *total)
{
	if (!free || !total)
		return done(cudaErrorInvalidValue);
	ck_emu_device_memory(current, free, total);
	return cudaSuccess;
}

/* ---- copies ------------------------------------------------------------------------------------------------------------------ */

cudaError_t CUDARTAPI cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream)
{
	CUstream_st *s = find_stream(stream);
	if (!s)
		return done(cudaErrorInvalidResourceHandle);
	if (bytes == 0)
		return cudaSuccess;
	int to_device = current, from_device = current;
	ck_emu_place target = ck_emu_find(to, bytes, &to_device), source = ck_emu_find(from, bytes, &from_device);
	bool up = target == CK_EMU_DEVICE, down = source == CK_EMU_DEVICE;
	bool asked[] = {up, down};
	switch (kind) {
	case cudaMemcpyHostToHost:
		asked[0] = asked[1] = false;
		break;
	case cudaMemcpyHostToDevice:
		asked[0] = true, asked[1] = false;
		break;
	case cudaMemcpyDeviceToHost:
		asked[0] = false, asked[1] = true;
		break;
	case cudaMemcpyDeviceToDevice:
		asked[0] = asked[1] = true;
		break;
	case cudaMemcpyDefault:
		break;
	default:
		return done(cudaErrorInvalidMemcpyDirection);
	}
	if (!to || !from || target == CK_EMU_NOWHERE || source == CK_EMU_NOWHERE || asked[0] != up || asked[1] != down ||
	    to_device != current || from_device != current)
		return done(cudaErrorInvalidValue);

	/* Host memory is read by the copy. Pageable memory may have been staged by the call, but nothing says so: it might be. */
	const char *host = source == CK_EMU_PINNED ? (const char *)from : target == CK_EMU_PINNED ? (const char *)to : NULL;
	/* Who reads the result too early reads NaNs. */
	if (target == CK_EMU_PINNED && !queued_work_uses((const char *)to, bytes))
		memset(to, 0xFF, bytes);
	push(s, {[=] { memmove(to, from, bytes); }, {}, "cudaMemcpyAsync", host, bytes});
	/* The call returns when pageable memory was written. */
	if (target == CK_EMU_PAGEABLE)
		run_until([=] { return s->queue.empty(); });
	return cudaSuccess;
}

cudaError_t CUDARTAPI cudaMemsetAsync(void *pointer, int value, size_t bytes, cudaStream_t stream)
{
	CUstream_st *s = find_stream(stream);
	if (!s)
		return done(cudaErrorInvalidResourceHandle);
	if (bytes == 0)
		return cudaSuccess;
	if (!ck_emu_is_device(pointer, bytes))
		return done(cudaErrorInvalidValue);
	push(s, {[=] { memset(pointer, value, bytes); }, {}, "cudaMemsetAsync", NULL, 0});
	return cudaSuccess;
}

/* ---- streams ----------------------------------------------------------------------------------------------------------------- */

cudaError_t CUDARTAPI cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
	if (!stream || (flags != cudaStreamDefault && flags != cudaStreamNonBlocking))
		return done(cudaErrorInvalidValue);
	find_stream(NULL);
	*stream = new CUstream_st{current, flags == cudaStreamDefault, {}};
	streams.insert(*stream);
	queues.push_back(*stream);
	return cudaSuccess;
}

/* Returns at once; what is queued still runs. */
cudaError_t CUDARTAPI cudaStreamDestroy(cudaStream_t stream)
{
	if (!streams.erase(stream))
		return done(cudaErrorInvalidResourceHandle);
	if (stream->queue.empty()) {
		for (size_t i = 0; i < queues.size(); i++)
			if (queues[i] == stream) {
				queues.erase(queues.begin() + (ptrdiff_t)i);
				break;
			}
		delete stream;
	}
	return cudaSuccess;
}

cudaError_t CUDARTAPI cudaStreamSynchronize(cudaStream_t stream)
{
	CUstream_st *s = find_stream(stream);
	if (!s)
		return done(cudaErrorInvalidResourceHandle);
	run_until([=] { return s->queue.empty(); });
	return cudaSuccess;
}

cudaError_t CUDARTAPI cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
	CUstream_st *s = find_stream(stream);
	if (!s || !events.count(event))
		return done(cudaErrorInvalidResourceHandle);
	if (flags != cudaEventWaitDefault)
		return done(cudaErrorInvalidValue);
	if (event->last && !event->last->reached)
		push(s, {[] {}, {event->last}, "cudaStreamWaitEvent", NULL, 0});
	return cudaSuccess;
}

cudaError_t CUDARTAPI cudaDeviceSynchronize(void)
{
	finish(current);
	return cudaSuccess;
}

/* ---- events ------------------------------------------------------------------------------------------------------------------ */

cudaError_t CUDARTAPI cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
	if (!event || flags & ~(unsigned)(cudaEventBlockingSync | cudaEventDisableTiming))
		return done(cudaErrorInvalidValue);
	*event = new CUevent_st{current, !(flags & cudaEventDisableTiming), nullptr};
	events.insert(*event);
	return cudaSuccess;
}

cudaError_t CUDARTAPI cudaEventCreate(cudaEvent_t *event)
{
	return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t CUDARTAPI cudaEventDestroy(cudaEvent_t event)
{
	if (!events.erase(event))
		return done(cudaErrorInvalidResourceHandle);
	delete event;
	return cudaSuccess;
}

cudaError_t CUDARTAPI cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	CUstream_st *s = find_stream(stream);
	if (!s || !events.count(event) || event->device != s->device)
		return done(cudaErrorInvalidResourceHandle);
	event->last = std::make_shared<mark>();
	mark_ref m = event->last;
	push(s, {[m] { m->reached = true, m->seconds = seconds(); }, {}, "cudaEventRecord", NULL, 0});
	return cudaSuccess;
}

cudaError_t CUDARTAPI cudaEventSynchronize(cudaEvent_t event)
{
	if (!events.count(event))
		return done(cudaErrorInvalidResourceHandle);
	mark_ref m = event->last;
	run_until([=] { return !m || m->reached; });
	return cudaSuccess;
}

/* The device works on while the host asks again and again: one work a question. */
cudaError_t CUDARTAPI cudaEventQuery(cudaEvent_t event)
{
	if (!events.count(event))
		return done(cudaErrorInvalidResourceHandle);
	if (!event->last || event->last->reached)
		return cudaSuccess;
	ck_emu_open_memory();
	step();
	ck_emu_close_memory();
	return cudaErrorNotReady;
}

/* Waits for nothing: events that were not reached are cudaErrorNotReady. */
cudaError_t CUDARTAPI cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to)
{
	if (!milliseconds)
		return done(cudaErrorInvalidValue);
	if (!events.count(from) || !events.count(to) || from->device != to->device || !from->timed || !to->timed ||
	    !from->last || !to->last)
		return done(cudaErrorInvalidResourceHandle);
	if (!from->last->reached || !to->last->reached)
		return done(cudaErrorNotReady);
	*milliseconds = (float)((to->last->seconds - from->last->seconds) * 1e3);
	return cudaSuccess;
}

/* ---- devices and errors ------------------------------------------------------------------------------------------------------ */

cudaError_t CUDARTAPI cudaSetDevice(int device)
{
	if (device < 0 || device >= CK_EMU_DEVICES)
		return done(cudaErrorInvalidDevice);
	current = device;
	return cudaSuccess;
}

cudaError_t CUDARTAPI cudaGetLastError(void)
{
	cudaError_t error = last_error;
	last_error = cudaSuccess;
	return error;
}

cudaError_t CUDARTAPI cudaPeekAtLastError(void)
{
	return last_error;
}

} /* extern "C" */
