/* What the fake NVML tells; a test finds it by its name in the library. */
#ifndef CK_TEST_FAKE_NVML_H
#define CK_TEST_FAKE_NVML_H

#include <stdbool.h>

typedef struct fake_nvml_state {
	const char *bus; /* where its GPU is */
	int users;       /* times started and not yet shut down */
	bool fails_to_start, supports_nothing;
	unsigned long long reasons;      /* the bits of why clocks are held down */
	unsigned long long violation[2]; /* ns, of power and heat */
	unsigned long long microseconds; /* goes on by itself */
} fake_nvml_state;

extern fake_nvml_state fake_nvml;

#endif
