/* The fibers that run kernels.
 *
 * A block's threads begin one after another on one fiber's stack, as calls. A thread that waits keeps its fiber, and another thread
 * goes on: one that may (the last of those that came free), else one that has not begun, on an idle fiber. Fibers switch by
 * the compiler's setjmp, which saves three registers; the first entry is by makecontext.
 *
 *     begin ──▶ runs ──▶ waits (barrier, warp) ──▶ free ──▶ runs ──▶ ended
 *
 * No thread free, none to begin and not all ended: the block can never end, and what it waits for is the error. */
#include "kernels/emu/simt.h"

#include <stdio.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "kernels/emu/emu.h"
#include "kernels/emu/memory.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace ck_emu
{

uint32_t epoch = 1, block_began = 1;
unsigned thread;
alignas(16) unsigned char dynamic_bytes[SHARED_MOST];
size_t dynamic_count;
touch dynamic_touches[SHARED_MOST];

enum { WARP = 32, BLOCK_MOST = 1024, WARPS_MOST = BLOCK_MOST / WARP, GUARD = 4096 };
#ifdef __SANITIZE_ADDRESS__
enum { STACK = 256 << 10 }; /* red zones */
#else
enum { STACK = 64 << 10 };
#endif

/* ---- fibers -------------------------------------------------------------------------------------------------------------- */

struct fiber {
	void *at[5];      /* __builtin_setjmp's */
	ucontext_t entry; /* until it was entered */
	bool entered;
	const void *bottom;
	size_t size;
	void *fake; /* AddressSanitizer's */
};

static fiber host; /* the stack that launches run from */
static fiber *running = &host;
static fiber *idle[BLOCK_MOST + 1];
static unsigned idle_count, fiber_count;

static void landed(fiber *f)
{
	running = f;
#ifdef __SANITIZE_ADDRESS__
	const void *bottom;
	size_t size;
	__sanitizer_finish_switch_fiber(f->fake, &bottom, &size);
	if (!host.bottom) /* the first switch comes from there */
		host.bottom = bottom, host.size = size;
#endif
}

/* Not inlined: what it returns to are two places, for the compiler as well. AddressSanitizer is told of the switch, and must not
 * take the longjmp for the end of all frames. */
static __attribute__((noinline, no_sanitize_address)) void jump(fiber *to)
{
	fiber *from = running;
	if (__builtin_setjmp(from->at) == 0) {
#ifdef __SANITIZE_ADDRESS__
		__sanitizer_start_switch_fiber(&from->fake, to->bottom, to->size);
#endif
		if (to->entered)
			__builtin_longjmp(to->at, 1);
		to->entered = true;
		setcontext(&to->entry);
	}
	landed(from);
}

static void fiber_main(unsigned low, unsigned high);

static fiber *new_fiber()
{
	char *stack =
	    (char *)mmap(NULL, STACK + GUARD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (stack == MAP_FAILED || mprotect(stack, GUARD, PROT_NONE))
		ck_emu_fail("no memory for the stack of thread %u of a block", fiber_count);
	fiber *f = new fiber();
	f->bottom = stack + GUARD;
	/* Tops at different places of their pages: else the hot ends of all stacks share a few sets of the cache. */
	f->size = STACK - (fiber_count++ * 832 % (STACK / 4) & ~63u);
	getcontext(&f->entry);
	f->entry.uc_stack.ss_sp = stack + GUARD;
	f->entry.uc_stack.ss_size = f->size;
	makecontext(&f->entry, (void (*)())fiber_main, 2, (unsigned)(uintptr_t)f, (unsigned)((uint64_t)(uintptr_t)f >> 32));
	return f;
}

static fiber *idle_fiber()
{
	return idle_count ? idle[--idle_count] : new_fiber();
}

/* ---- the launch and the block that run ------------------------------------------------------------------------------------ */

struct site {
	const char *what, *file;
	int line;
};

/* 0 to n - 1, each once, in steps that share no factor with n. */
struct walk {
	uint64_t n, at, step;

	void begin(uint64_t count)
	{
		n = count;
		at = random_below(n);
		do
			step = n > 1 ? 1 + random_below(n - 1) : 1;
		while (common(step, n) != 1);
	}
	uint64_t next()
	{
		uint64_t now = at;
		at += step;
		if (at >= n)
			at -= n;
		return now;
	}
	static uint64_t random_below(uint64_t n)
	{
		uint64_t r = (uint64_t)ck_emu_random() << 32;
		return (r | ck_emu_random()) % n;
	}
	static uint64_t common(uint64_t a, uint64_t b)
	{
		while (b) {
			uint64_t rest = a % b;
			a = b;
			b = rest;
		}
		return a;
	}
};

enum state : uint8_t { BEFORE, RUNS, AT_BARRIER, AT_WARP, ENDED };

struct warp {
	site where;
	unsigned count;
	uint16_t waits[WARP];
	uint64_t values[2][WARP]; /* in turn: those of the meeting before may still be read */
	unsigned turn;
};

static struct {
	const grid *g; /* NULL: no kernel runs */
	const std::function<void()> *body;
	uint64_t blocks_left;
	walk block_order;

	unsigned threads, begun, ended;
	bool flat;      /* a block of one dimension */
	bool scattered; /* threads begin in any order, not warp after warp: slower, as more stacks are in use at once */
	walk thread_order, warp_order, lane_order;
	unsigned warp_begun;
	size_t shared; /* static and dynamic, bytes */
	fiber *at[BLOCK_MOST];
	state states[BLOCK_MOST];
	uint16_t free[BLOCK_MOST];
	unsigned free_count;
	site barrier_where;
	uint16_t at_barrier[BLOCK_MOST];
	unsigned barrier_count;
	warp warps[WARPS_MOST];
} now;

static void set_thread(unsigned t)
{
	thread = t;
	if (now.flat) {
		threadIdx.x = t;
		return;
	}
	threadIdx.x = t % blockDim.x;
	threadIdx.y = t / blockDim.x % blockDim.y;
	threadIdx.z = t / blockDim.x / blockDim.y;
}

static bool next_block()
{
	if (now.blocks_left == 0)
		return false;
	now.blocks_left--;
	uint64_t b = now.block_order.next();
	blockIdx.x = (unsigned)(b % gridDim.x);
	blockIdx.y = (unsigned)(b / gridDim.x % gridDim.y);
	blockIdx.z = (unsigned)(b / gridDim.x / gridDim.y);
	block_began = ++epoch;
	now.begun = now.ended = 0;
	now.shared = dynamic_count;
	now.scattered = ck_emu_random() % 4 == 0;
	if (now.scattered) {
		now.thread_order.begin(now.threads);
	} else {
		now.warp_order.begin(now.threads / WARP);
		now.lane_order.begin(WARP);
	}
	memset(now.states, BEFORE, now.threads);
	return true;
}

static unsigned next_thread()
{
	if (now.scattered)
		return (unsigned)now.thread_order.next();
	if (now.begun % WARP == 0)
		now.warp_begun = (unsigned)now.warp_order.next();
	return now.warp_begun * WARP + (unsigned)now.lane_order.next();
}

/* "WHAT at FILE:LINE" for messages that name two places */
struct place {
	char text[200];
	explicit place(const site &s)
	{
		snprintf(text, sizeof text, "%s at %s:%d", s.what, s.file, s.line);
	}
};

[[noreturn]] static void stuck()
{
	unsigned waiting = 0, t = 0;
	for (unsigned i = 0; i < now.threads; i++)
		if (now.states[i] == AT_WARP)
			waiting++, t = i;
	if (waiting) {
		set_thread(t);
		const warp &w = now.warps[t / WARP];
		unsigned ended = 0;
		for (unsigned lane = 0; lane < WARP; lane++)
			ended += now.states[t / WARP * WARP + lane] == ENDED;
		ck_emu_fail("%u of the 32 lanes wait in %s; %u have ended and %u wait elsewhere", w.count, place(w.where).text,
			    ended, WARP - w.count - ended);
	}
	set_thread(now.at_barrier[0]);
	ck_emu_fail("%u threads wait in %s; the other %u have ended", now.barrier_count, place(now.barrier_where).text,
		    now.ended);
}

/* The fiber that goes on. */
static fiber *pick()
{
	if (now.free_count) {
		unsigned t = now.free[--now.free_count];
		now.states[t] = RUNS;
		set_thread(t);
		return now.at[t];
	}
	if (now.begun < now.threads)
		return idle_fiber();
	stuck();
}

static void wait()
{
	unsigned t = thread;
	fiber *next = pick();
	now.at[t] = running;
	jump(next);
}

static void fiber_main(unsigned low, unsigned high)
{
	fiber *self = (fiber *)(uintptr_t)((uint64_t)high << 32 | low);
	landed(self);
	for (;;) {
		while (now.begun < now.threads) {
			unsigned t = next_thread();
			now.begun++;
			now.states[t] = RUNS;
			set_thread(t);
			(*now.body)();
			now.states[thread] = ENDED;
			now.ended++;
		}
		if (now.ended == now.threads && next_block())
			continue;
		fiber *next = now.ended == now.threads ? &host : pick();
		idle[idle_count++] = self;
		jump(next);
	}
}

/* ---- barriers and warps ---------------------------------------------------------------------------------------------------- */

/* They may go on, beginning anywhere among them. */
static void release(const uint16_t *threads, unsigned count)
{
	unsigned first = count ? ck_emu_random() % count : 0;
	for (unsigned i = 0; i < count; i++)
		now.free[now.free_count++] = threads[i + first < count ? i + first : i + first - count];
}

static bool same_text(const site &a, const site &b)
{
	return strcmp(a.file, b.file) == 0 && strcmp(a.what, b.what) == 0;
}
static inline bool same(const site &a, const site &b)
{
	return a.line == b.line && ((a.file == b.file && a.what == b.what) || same_text(a, b));
}

void barrier(const char *file, int line)
{
	site here = {"__syncthreads", file, line};
	if (now.barrier_count == 0)
		now.barrier_where = here;
	else if (!same(here, now.barrier_where))
		ck_emu_fail("waits in %s, but thread %u of its block in %s", place(here).text, now.at_barrier[0],
			    place(now.barrier_where).text);
	if (now.barrier_count + 1 < now.threads) {
		now.states[thread] = AT_BARRIER;
		now.at_barrier[now.barrier_count++] = (uint16_t)thread;
		wait();
		return;
	}
	epoch++;
	release(now.at_barrier, now.barrier_count);
	now.barrier_count = 0;
}

const uint64_t *meet(unsigned mask, uint64_t value, const char *what, const char *file, int line)
{
	site here = {what, file, line};
	warp &w = now.warps[thread / WARP];
	if (mask != 0xFFFFFFFFu)
		ck_emu_fail("%s with mask 0x%08X; only the whole warp, 0xFFFFFFFF, is portable", place(here).text, mask);
	if (w.count == 0)
		w.where = here;
	else if (!same(here, w.where))
		ck_emu_fail("waits in %s, but thread %u of its warp in %s", place(here).text, w.waits[0], place(w.where).text);
	uint64_t *values = w.values[w.turn];
	values[thread % WARP] = value;
	if (w.count + 1 < WARP) {
		now.states[thread] = AT_WARP;
		w.waits[w.count++] = (uint16_t)thread;
		wait();
		return values;
	}
	release(w.waits, w.count);
	w.count = 0;
	w.turn ^= 1;
	return values;
}

/* ---- shared memory ---------------------------------------------------------------------------------------------------------- */

void charge(size_t bytes)
{
	now.shared += bytes;
	if (now.shared > SHARED_MOST)
		ck_emu_fail("%zu bytes of shared memory; a block has %d", now.shared, (int)SHARED_MOST);
}

void outside(const char *name, int64_t index, size_t count)
{
	ck_emu_fail("index %lld is outside of shared memory %s[%zu]", (long long)index, name, count);
}

void unwritten(const char *name, size_t index)
{
	ck_emu_fail("shared memory %s[%zu] is read before its block wrote it", name, index);
}

void race(const char *name, size_t index, bool writes, unsigned other, bool other_wrote)
{
	char who[32] = "several threads";
	if (other != MANY)
		snprintf(who, sizeof who, "thread %u", other);
	ck_emu_fail("race on shared memory %s[%zu]: %s what %s %s, with no barrier in between", name, index,
		    writes ? "writes" : "reads", who, other_wrote ? "wrote" : "read");
}

/* ---- launches --------------------------------------------------------------------------------------------------------------- */

void check_pointer(const std::string &kernel, int argument, const void *pointer)
{
	if (!pointer || ck_emu_is_device(pointer, 0))
		return;
	ck_emu_fail("%s given to kernel %s, argument %d", ck_emu_pointer_kind(pointer), kernel.c_str(), argument);
}

static void run(const grid &g, const std::function<void()> &body)
{
	gridDim = g.blocks;
	blockDim = g.threads;
	dynamic_count = g.shared;
	now.body = &body;
	now.threads = g.threads.x * g.threads.y * g.threads.z;
	now.flat = g.threads.y == 1 && g.threads.z == 1;
	threadIdx = {0, 0, 0};
	now.blocks_left = (uint64_t)g.blocks.x * g.blocks.y * g.blocks.z;
	now.block_order.begin(now.blocks_left);
	now.g = &g;
	host.entered = true;
	next_block();
	jump(idle_fiber());
	now.g = NULL;
}

static cudaError_t refuse(const grid &g, cudaError_t error, const char *why)
{
	fprintf(stderr, "emu: kernel %s: grid (%u, %u, %u), block (%u, %u, %u), %zu bytes of shared memory: %s\n",
		g.name.c_str(), g.blocks.x, g.blocks.y, g.blocks.z, g.threads.x, g.threads.y, g.threads.z, g.shared, why);
	return error;
}

cudaError_t submit(const grid &g, std::function<void()> body)
{
	if (g.blocks.x == 0 || g.blocks.y == 0 || g.blocks.z == 0 || g.threads.x == 0 || g.threads.y == 0 || g.threads.z == 0)
		return refuse(g, cudaErrorInvalidConfiguration, "nothing to launch");
	if (g.blocks.x > 0x7FFFFFFF || g.blocks.y > 65535 || g.blocks.z > 65535)
		return refuse(g, cudaErrorInvalidConfiguration, "a grid has at most (2147483647, 65535, 65535) blocks");
	uint64_t threads = (uint64_t)g.threads.x * g.threads.y * g.threads.z;
	if (g.threads.x > BLOCK_MOST || g.threads.y > BLOCK_MOST || g.threads.z > 64 || threads > BLOCK_MOST)
		return refuse(g, cudaErrorInvalidConfiguration, "a block has at most 1024 threads, 64 of them along z");
	if (threads % WARP)
		return refuse(g, cudaErrorInvalidConfiguration, "a block is a multiple of 32 threads");
	if (g.shared > SHARED_MOST)
		return refuse(g, cudaErrorInvalidValue, "a block has 49152 bytes of shared memory");
	ck_emu_enqueue(
	    g.stream, [g, body] { run(g, body); }, ("kernel " + g.name).c_str());
	return cudaSuccess;
}

} // namespace ck_emu

void ck_emu_where(char *text, size_t size)
{
	const ck_emu::grid *g = ck_emu::now.g;
	if (!g)
		snprintf(text, size, "%s%s", ck_emu_work(), *ck_emu_work() ? ": " : "");
	else
		snprintf(text, size, "kernel %s, block (%u, %u, %u), thread (%u, %u, %u): ", g->name.c_str(), blockIdx.x,
			 blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z);
}
