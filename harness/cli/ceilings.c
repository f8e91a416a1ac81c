#include "harness/cli/ceilings.h"

#include "harness/cli/interrupt.h"

/* A device with memory of its own has smaller caches than this. */
static const size_t DEVICE_COPY = (size_t)256 << 20;

static size_t caches_of(const ck_machine *m)
{
	for (int i = CK_CACHES - 1; i >= 0; i--)
		if (m->processors.cache[i].count)
			return m->processors.cache[i].bytes * (size_t)m->processors.cache[i].count;
	return 0;
}

ck_ceiling_options ck_ceiling_choose(const ck_backend *b, ck_device *d, const ck_machine *m)
{
	const char *limit;
	bool own = b->free_memory != NULL;
	return (ck_ceiling_options){
	    .room = own ? b->free_memory(d) / 2 : ck_memory_available(&limit) / 4,
	    .caches = own ? DEVICE_COPY : caches_of(m),
	    .stop = ck_interrupted,
	};
}
