/* Lists of whole numbers as the command line takes them: `1,2,4`, `1..12`, `1..64*2` (1, 2, 4, … 64). */
#ifndef CK_NUMBERS_H
#define CK_NUMBERS_H

#include <stdint.h>

#include "kernels/status.h"

typedef struct ck_numbers { /* owned; free(at) */
	int64_t *at;
	int n, capacity;
} ck_numbers;

/* `what` is the option or plan that the list belongs to, for messages. CK_USAGE: malformed, running downward, or longer than
 * any sweep could be (10,000). */
ck_status ck_numbers_read(const char *what, const char *text, ck_numbers *list, ck_err *err);

#endif
