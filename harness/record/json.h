/* What all records have in common, as JSON. */
#ifndef CK_JSON_H
#define CK_JSON_H

#include <cjson/cJSON.h>

#include "harness/record/result.h"

/* A record's root with schema, room for its digest, and tool in it; and with machine and device as well. */
cJSON *ck__json_root(const char *schema, const ck_result *r);
cJSON *ck__json_begin(const char *schema, const ck_result *r);
cJSON *ck__json_case(const ck_result *r);
/* The text with its digest, ending with a newline, in fresh memory; frees the root. */
char *ck__json_end(cJSON *root);

#endif
