/* The device's memory: one reserved range of addresses, in which every allocation lies between two pages that nobody may touch.
 *
 *     │ no access │ canary …┃ bytes, 256-byte aligned ┃ canary (< 256 B) │ no access │
 *
 * Fresh memory is of NaNs, in float32, bfloat16 and float16; so are the canaries. A freed range is not used again soon: a pointer
 * kept too long leads nowhere. The whole is mapped for no access but while queued work runs (ck_emu_open_memory), and then alone is
 * there a handler for SIGSEGV, which says what a kernel touched. */
#include "kernels/emu/memory.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <map>

#include "kernels/emu/emu.h"

namespace
{

const size_t PAGE = 4096, ALIGNED = 256;
const size_t MEMORY = (size_t)4 << 30;  /* of each device, bytes */
const size_t RANGE = (size_t)64 << 30;  /* of addresses, for all devices */
const size_t GRANULE = (size_t)2 << 20; /* of the device's own bookkeeping, as CUDA's */
const size_t POOLED = (size_t)1 << 20;  /* allocations up to this share granules, in pieces of 512 bytes */
const unsigned char CANARY[2] = {0xFD, 0xFF};
const unsigned char POISON = 0xFF;

struct allocation {
	char *map, *begin; /* map: without the guards */
	size_t mapped, bytes;
	int device;
};

char *range;
size_t cursor;                                   /* where the search for room begins */
std::map<const char *, allocation> live, pinned; /* by map; by begin */
bool opened;
size_t large[CK_EMU_DEVICES], small[CK_EMU_DEVICES]; /* bytes used, in granules and in pieces */

size_t round_up(size_t n, size_t unit)
{
	return (n + unit - 1) / unit * unit;
}

size_t used(int device)
{
	return large[device] + round_up(small[device], GRANULE);
}

void account(int device, size_t bytes, bool taken)
{
	size_t &sum = bytes > POOLED ? large[device] : small[device];
	size_t held = round_up(bytes, bytes > POOLED ? GRANULE : (size_t)512);
	sum = taken ? sum + held : sum - held;
}

/* The first room for `mapped` bytes and guards at or after `from`; NULL: none. */
char *room(size_t from, size_t mapped)
{
	char *at = range + from;
	for (auto i = live.lower_bound(at); i != live.end(); ++i) {
		if (at + mapped + PAGE <= i->second.map)
			return at;
		at = i->second.map + i->second.mapped + PAGE;
	}
	return at + mapped + PAGE <= range + RANGE ? at : NULL;
}

const allocation *holder(const std::map<const char *, allocation> &of, const void *pointer)
{
	auto i = of.upper_bound((const char *)pointer);
	if (i == of.begin())
		return NULL;
	const allocation &a = (--i)->second;
	return (const char *)pointer >= a.begin && (const char *)pointer < a.begin + a.bytes ? &a : NULL;
}

bool in_range(const void *pointer)
{
	return range && (const char *)pointer >= range && (const char *)pointer < range + RANGE;
}

/* The canary's byte at an address depends on its parity alone: a page of it serves all, but for the first byte. */
unsigned char canary[PAGE + 1];

void plant(char *from, const char *to)
{
	memcpy(from, canary + ((uintptr_t)from & 1), (size_t)(to - from));
}
const char *first_changed(const char *from, const char *to)
{
	const unsigned char *want = canary + ((uintptr_t)from & 1);
	if (memcmp(from, want, (size_t)(to - from)) == 0)
		return NULL;
	while ((unsigned char)*from == *want)
		from++, want++;
	return from;
}

/* ---- a kernel touches what it may not -------------------------------------------------------------------------------------- */

struct sigaction before_segv, before_bus;

void segv(int, siginfo_t *info, void *)
{
	const char *at = (const char *)info->si_addr;
	if (!in_range(at))
		ck_emu_fail("touches address %p, which is not the device's", (const void *)at);
	for (const auto &i : live) {
		const allocation &a = i.second;
		if (at >= a.map + a.mapped && at < a.map + a.mapped + PAGE)
			ck_emu_fail("touches device memory %zu bytes past the end of an allocation of %zu",
				    (size_t)(at - a.begin - a.bytes), a.bytes);
		if (at >= a.map - PAGE && at < a.map)
			ck_emu_fail("touches device memory %zu bytes before an allocation of %zu", (size_t)(a.begin - at),
				    a.bytes);
	}
	ck_emu_fail("touches device memory at %p, which lies in no allocation", (const void *)at);
}

void protect(int protection)
{
	for (const auto &i : live)
		if (mprotect(i.second.map, i.second.mapped, protection))
			ck_emu_fail("mprotect failed");
}

} // namespace

void ck_emu_open_memory()
{
	if (opened)
		return;
	protect(PROT_READ | PROT_WRITE);
	opened = true;
	struct sigaction handler = {};
	handler.sa_sigaction = segv;
	handler.sa_flags = SA_SIGINFO | SA_NODEFER;
	sigaction(SIGSEGV, &handler, &before_segv);
	sigaction(SIGBUS, &handler, &before_bus);
}

void ck_emu_close_memory()
{
	if (!opened)
		return;
	sigaction(SIGSEGV, &before_segv, NULL);
	sigaction(SIGBUS, &before_bus, NULL);
	protect(PROT_NONE);
	opened = false;
}

void ck_emu_check_canaries()
{
	for (const auto &i : live) {
		const allocation &a = i.second;
		const char *p = first_changed(a.begin + a.bytes, a.map + a.mapped);
		if (p)
			ck_emu_fail("wrote device memory %zu bytes past the end of an allocation of %zu",
				    (size_t)(p - a.begin - a.bytes), a.bytes);
		p = first_changed(a.map, a.begin);
		if (p)
			ck_emu_fail("wrote device memory %zu bytes before an allocation of %zu", (size_t)(a.begin - p),
				    a.bytes);
	}
}

void *ck_emu_device_alloc(int device, size_t bytes)
{
	if (!range) {
		void *p = mmap(NULL, RANGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (p == MAP_FAILED)
			return NULL;
		range = (char *)p;
		for (size_t i = 0; i < sizeof canary; i++)
			canary[i] = CANARY[i & 1];
		cursor = PAGE;
	}
	if (bytes > MEMORY)
		return NULL;
	account(device, bytes, true);
	size_t inner = round_up(bytes, ALIGNED), mapped = round_up(inner, PAGE);
	char *map = used(device) > MEMORY ? NULL : room(cursor, mapped);
	if (!map && used(device) <= MEMORY)
		map = room(PAGE, mapped);
	if (!map || mprotect(map, mapped, PROT_READ | PROT_WRITE)) {
		account(device, bytes, false);
		return NULL;
	}
	cursor = (size_t)(map - range) + mapped + PAGE;
	char *begin = map + mapped - inner;
	memset(begin, POISON, bytes);
	plant(map, begin);
	plant(begin + bytes, map + mapped);
	if (!opened)
		mprotect(map, mapped, PROT_NONE);
	live[map] = {map, begin, mapped, bytes, device};
	return begin;
}

bool ck_emu_device_free(void *pointer)
{
	const allocation *a = holder(live, pointer);
	if (!a || a->begin != pointer)
		return false;
	account(a->device, a->bytes, false);
	mmap(a->map, a->mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	live.erase(a->map);
	return true;
}

void ck_emu_device_memory(int device, size_t *free, size_t *total)
{
	*free = MEMORY - used(device);
	*total = MEMORY;
}

void *ck_emu_pinned_alloc(size_t bytes)
{
	char *p = (char *)aligned_alloc(PAGE, round_up(bytes, PAGE));
	if (!p)
		return NULL;
	memset(p, POISON, bytes);
	pinned[p] = {p, p, round_up(bytes, PAGE), bytes, 0};
	return p;
}

bool ck_emu_pinned_free(void *pointer)
{
	if (!pinned.erase((const char *)pointer))
		return false;
	free(pointer);
	return true;
}

ck_emu_place ck_emu_find(const void *pointer, size_t bytes, int *device)
{
	const char *p = (const char *)pointer;
	const allocation *a = holder(live, p), *h = holder(pinned, p);
	if (a && bytes <= (size_t)(a->begin + a->bytes - p)) {
		*device = a->device;
		return CK_EMU_DEVICE;
	}
	if (h && bytes <= (size_t)(h->begin + h->bytes - p))
		return CK_EMU_PINNED;
	return a || h || in_range(p) || (bytes && in_range(p + bytes - 1)) ? CK_EMU_NOWHERE : CK_EMU_PAGEABLE;
}

const char *ck_emu_pointer_kind(const void *pointer)
{
	int device = 0;
	switch (ck_emu_find(pointer, 0, &device)) {
	case CK_EMU_PAGEABLE:
		return "host pointer";
	case CK_EMU_PINNED:
		return "pinned host pointer";
	case CK_EMU_DEVICE:
		return device == ck_emu_current_device() ? "device pointer" : "pointer to another device";
	case CK_EMU_NOWHERE:
		break;
	}
	return "pointer to no live allocation";
}

bool ck_emu_is_device(const void *pointer, size_t bytes)
{
	int device = 0;
	return ck_emu_find(pointer, bytes, &device) == CK_EMU_DEVICE && device == ck_emu_current_device();
}

void ck_emu_check_device(const void *pointer, size_t bytes, const char *what)
{
	if (ck_emu_is_device(pointer, bytes))
		return;
	const allocation *a = holder(live, pointer);
	if (a && a->device == ck_emu_current_device())
		ck_emu_fail("%s: %zu bytes at byte %zu of an allocation of %zu", what, bytes,
			    (size_t)((const char *)pointer - a->begin), a->bytes);
	ck_emu_fail("%s: %s", what, ck_emu_pointer_kind(pointer));
}

void ck_emu_check_host(const void *pointer, size_t bytes, const char *what)
{
	int device = 0;
	ck_emu_place place = ck_emu_find(pointer, bytes, &device);
	if (place == CK_EMU_DEVICE || place == CK_EMU_NOWHERE)
		ck_emu_fail("%s: %s, where the host needs its own", what, ck_emu_pointer_kind(pointer));
}

void ck_emu_fail(const char *format, ...)
{
	char text[512], where[256];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	ck_emu_where(where, sizeof where);
	fprintf(stderr, "emu: %s%s\n", where, text);
	fflush(stderr);
	abort();
}
