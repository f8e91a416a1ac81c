#include "harness/cli/device.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/cli/ceilings.h"
#include "harness/record/datasheet.h"
#include "harness/record/units.h"
#include "kernels/alloc.h"

/* ---- a line of what is known ---------------------------------------------------------------------------------------------- */

typedef struct listing {
	char text[512];
	size_t at;
} listing;

/* Adds to the line, a comma before it. */
__attribute__((format(printf, 2, 3))) static void add(listing *l, const char *format, ...)
{
	char part[256];
	va_list args;
	va_start(args, format);
	vsnprintf(part, sizeof part, format, args);
	va_end(args);
	if (l->at < sizeof l->text)
		l->at += (size_t)snprintf(l->text + l->at, sizeof l->text - l->at, "%s%s", l->at ? ", " : "", part);
}

/* What follows is added where its figure is known. */
static void add_text(listing *l, const char *before, const char *text)
{
	if (*text)
		add(l, "%s%s", before, text);
}

static void add_clock(listing *l, const char *name, double hertz)
{
	if (hertz > 0)
		add(l, "%s %.0f MHz", name, 1e-6 * hertz);
}

static void add_rate(listing *l, const char *name, double rate, const char *unit)
{
	char text[CK_UNIT_TEXT];
	if (rate > 0)
		add(l, "%s %s%s/s", name, ck_count_text(rate, text), unit);
}

static void add_rates(listing *l, const double *matmul, const char *memory, double bandwidth)
{
	for (int p = 0; p < CK_PRECISIONS; p++)
		add_rate(l, ck_precision_names[p], matmul[p], "FLOP");
	add_rate(l, memory, bandwidth, "B");
}

/* Name, capability and libraries stand in the device's own words. */
static void make(const ck_device_facts *f, listing *l)
{
	char memory[CK_UNIT_TEXT];
	if (f->multiprocessors)
		add(l, "%d multiprocessors", f->multiprocessors);
	if (f->memory)
		add(l, "%s", ck_bytes_text(f->memory, memory));
	add_text(l, "driver ", f->driver);
}

static void stand(const ck_device_facts *f, listing *l)
{
	add_clock(l, "clock", f->clock);
	add_clock(l, "at most", f->clock_most);
	add_clock(l, "memory clock", f->memory_clock);
	if (f->power_limit > 0)
		add(l, "power limit %.0f W", f->power_limit);
	if (f->ecc >= 0)
		add(l, "ECC %s", f->ecc ? "on" : "off");
	add_text(l, "throttled now: ", f->power_state);
}

static void promise(const ck_device_facts *f, listing *l)
{
	const ck_datasheet *sheet = ck_datasheet_find(f->name);
	if (!sheet)
		return;
	add(l, "data sheet: dense");
	add_rates(l, sheet->matmul, "memory", sheet->bandwidth);
}

/* ---- devices -------------------------------------------------------------------------------------------------------------- */

/* A device opened without TF32 has every precision but that one; one opened with it, that alone. */
static void measure(const ck_backend *b, ck_device *d, int index, const ck_machine *machine, listing *l)
{
	ck_ceiling_options o = ck_ceiling_choose(b, d, machine);
	ck_ceilings c, with;
	ck_device *other;
	ck_err why = {""};
	o.precisions = 1u << ck_precision_of(b->real, CK_DTYPE_NONE, false) | 1u << CK_PRECISION_BF16 | 1u << CK_PRECISION_F16;
	ck_ceilings_take(b, d, &o, &c);
	if (b->real == CK_F32 && b->open(&(ck_open_options){.index = index, .tf32 = true}, &other, &why) == CK_OK) {
		o.precisions = 1u << CK_PRECISION_TF32;
		ck_ceilings_take(b, other, &o, &with);
		ck_ceilings_raise(&c, &with);
		b->close(other);
	}
	add_rates(l, c.matmul, "copy", c.copy);
}

/* false: there is no such device. */
static bool tell(const ck_backend *b, int index, const ck_machine *machine,
		 void (*line)(void *user, const char *name, const char *text), void *user)
{
	ck_device *d;
	ck_err why = {""};
	ck_status status = b->open(&(ck_open_options){.index = index}, &d, &why);
	if (status != CK_OK && index > 0)
		return false;
	char *name = index > 0 ? ck_text("%s:%d", b->name, index) : ck_text("%s", b->name);
	size_t said = strlen("device ") + strlen(name) + strlen(": "); /* a refusal begins with "device NAME: " */
	bool names_it = strncmp(why.text, "device ", strlen("device ")) == 0 && strlen(why.text) > said;
	char *text =
	    status == CK_OK ? ck_text("%s", b->describe(d)) : ck_text("not there: %s", why.text + (names_it ? said : 0));
	line(user, name, text);
	free(name);
	free(text);
	if (status != CK_OK)
		return false;
	const ck_device_facts facts = ck_backend_facts(b, d);
	listing lines[4] = {{.at = 0}, {.at = 0}, {.at = 0}, {.at = 0}};
	make(&facts, &lines[0]);
	stand(&facts, &lines[1]);
	promise(&facts, &lines[2]);
	if (machine)
		measure(b, d, index, machine, &lines[3]);
	for (int i = 0; i < 4; i++)
		if (lines[i].at)
			line(user, "", lines[i].text);
	b->close(d);
	return true;
}

void ck_devices_tell(const ck_backend *b, const ck_machine *machine,
		     void (*line)(void *user, const char *name, const char *text), void *user)
{
	for (int index = 0; tell(b, index, machine, line, user); index++)
		continue;
}
