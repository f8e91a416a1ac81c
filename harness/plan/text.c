/* The text form of schedules, both ways. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "harness/plan/schedule.h"
#include "kernels/alloc.h"
#include "kernels/number.h"

static const char magic[] = "ckbench-schedule/1 graph ";

ck_status ck_schedule_write(const ck_graph *g, const ck_schedule *s, FILE *to, ck_err *err)
{
	fprintf(to, "%s%016" PRIx64 "\n", magic, g->digest);
	for (int i = 0; i < s->n; i++) {
		const ck_instr *in = &s->at[i];
		fprintf(to, "%c %s\n", in->code, in->code == 'D' ? g->values[in->id].name : g->ops[in->id].name);
	}
	if (fflush(to) || ferror(to))
		return ck_fail(err, CK_MISSING, "cannot write the schedule: %s; send it elsewhere", strerror(errno));
	return CK_OK;
}

typedef struct line {
	const char *text; /* not terminated */
	int length, number;
} line;

/* Takes the next line that holds more than a comment, trimmed. */
static bool next_line(const char **at, const char *end, line *l)
{
	while (*at < end) {
		const char *stop = memchr(*at, '\n', (size_t)(end - *at));
		const char *next = stop ? stop + 1 : end;
		const char *from = *at, *to = stop ? stop : end;
		const char *comment = memchr(from, '#', (size_t)(to - from));
		if (comment)
			to = comment;
		while (from < to && (*from == ' ' || *from == '\t' || *from == '\r'))
			from++;
		while (from < to && (to[-1] == ' ' || to[-1] == '\t' || to[-1] == '\r'))
			to--;
		*at = next;
		l->number++;
		if (from < to) {
			l->text = from;
			l->length = to - from > 4096 ? 4096 : (int)(to - from);
			return true;
		}
	}
	return false;
}

static ck_status parse_header(const ck_graph *g, const line *l, ck_err *err)
{
	const int prefix = (int)sizeof magic - 1;
	uint64_t digest = 0;
	bool fits = l->length == prefix + 16 && memcmp(l->text, magic, sizeof magic - 1) == 0;
	if (!fits || !ck_hex64(l->text + prefix, &digest))
		return ck_fail(
		    err, CK_USAGE,
		    "schedule line %d: a schedule starts with '%s' and the graph's 16 hex digits; this starts with '%.*s'",
		    l->number, magic, l->length > 60 ? 60 : l->length, l->text);
	if (digest != g->digest)
		return ck_fail(err, CK_USAGE,
			       "schedule line %d: this schedule is for graph %016" PRIx64
			       ", the model given is graph %016" PRIx64 "; give the model and settings that it was made for",
			       l->number, digest, g->digest);
	return CK_OK;
}

static ck_status parse_instruction(const ck_graph *g, const line *l, ck_schedule *s, ck_err *err)
{
	char code = l->text[0];
	bool known = code == 'F' || code == 'B' || code == 'D';
	if (!known || l->length < 3 || l->text[1] != ' ' || memchr(l->text, 0, (size_t)l->length))
		return ck_fail(err, CK_USAGE, "schedule line %d: '%.*s' is no instruction; write 'F op', 'B op' or 'D value'",
			       l->number, l->length > 60 ? 60 : l->length, l->text);
	char *name = ck_text("%.*s", l->length - 2, l->text + 2);
	int id = code == 'D' ? ck_graph_value(g, name) : ck_graph_op(g, name);
	ck_status status = CK_OK;
	if (id == CK_NONE)
		status = ck_fail(err, CK_USAGE, "schedule line %d: this graph has no %s '%.200s'", l->number,
				 code == 'D' ? "value" : "op", name);
	else if (code == 'D' && !ck_value_managed(&g->values[id]))
		status = ck_fail(
		    err, CK_USAGE, "schedule line %d: '%.200s' is %s %s, which persists; only activations and stashes drop",
		    l->number, name, g->values[id].kind == CK_INPUT ? "an" : "a", ck_kind_name(g->values[id].kind));
	else
		ck_schedule_add(s, code, id);
	free(name);
	return status;
}

ck_status ck_schedule_parse(const ck_graph *g, const char *text, size_t length, ck_schedule *s, ck_err *err)
{
	static const char mark[] = "\xef\xbb\xbf"; /* the byte order mark that some editors put before UTF-8 */
	bool marked = length >= 3 && memcmp(text, mark, 3) == 0;
	const char *at = text + (marked ? 3 : 0), *end = text + length;
	line l = {0};
	*s = (ck_schedule){0};
	if (!next_line(&at, end, &l))
		return ck_fail(err, CK_USAGE, "the schedule is empty; its first line should be '%s' and 16 hex digits", magic);
	ck_status status = parse_header(g, &l, err);
	while (status == CK_OK && next_line(&at, end, &l))
		status = parse_instruction(g, &l, s, err);
	if (status != CK_OK)
		ck_schedule_free(s);
	return status;
}
