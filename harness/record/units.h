/* Figures as people read them: three or four digits and a unit. */
#ifndef CK_UNITS_H
#define CK_UNITS_H

#include <stddef.h>

enum { CK_UNIT_TEXT = 32 };

const char *ck_bytes_text(size_t bytes, char text[CK_UNIT_TEXT]);     /* "512.0 MiB" */
const char *ck_seconds_text(double seconds, char text[CK_UNIT_TEXT]); /* "51.2 ms"; "-" for NAN */
/* Without a unit, to stand beside `seconds`: in the unit that is told of that. */
const char *ck_seconds_range(double low, double high, double seconds, char text[CK_UNIT_TEXT]); /* "50.9 .. 51.4" */
const char *ck_count_text(double count, char text[CK_UNIT_TEXT]);                               /* "12.3 G" */

#endif
