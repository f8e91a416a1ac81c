/* What the tests of the doubles share: memory of the emulated device, and the verdict on a wrong call. */
#ifndef CK_SUITE_EMU_DOUBLES_H
#define CK_SUITE_EMU_DOUBLES_H

#include <functional>
#include <vector>

#include "kernels/emu/library.h"

/* Memory of `bytes`, poisoned, `offset` bytes behind an allocation's begin. Never freed: a test is a process. */
char *device_memory(size_t bytes, size_t offset = 0);
char *upload(stored t, const std::vector<float> &x, size_t offset = 0);
std::vector<float> download(stored t, const void *from, size_t n); /* waits */

/* n eighths between -4 and 4: sums of their products are exact in float. */
std::vector<float> eighths(size_t n, uint32_t seed);
float rounded(stored t, double v);

enum { ENDS = -1 }; /* instead of a status: the call ends the program */

/* Whether the call, which was broken on purpose, is refused with this status, or ends the program, for this reason. Checked in a child
 * process. Tells what it did instead. */
void expect_refused(const char *name, int status, const char *reason, const std::function<int()> &call);

#endif
