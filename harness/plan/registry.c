/* The planners, in the order of tables, and how a plan's name is read. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "harness/plan/planner.h"
#include "harness/plan/planners.h"
#include "kernels/alloc.h"
#include "kernels/number.h"

/* CK_PLANNERS(X) is X(none) X(uniform) …, made from the list in meson.build. */
#define X(name) extern const ck_planner ck_planner_##name;
CK_PLANNERS(X)
#undef X

const ck_planner *const ck_planners[] = {
#define X(name) &ck_planner_##name,
    CK_PLANNERS(X)
#undef X
	NULL,
};

static ck_status unknown(const char *name, int length, ck_err *err)
{
	char known[400] = "";
	for (int i = 0; ck_planners[i]; i++) {
		size_t used = strlen(known);
		snprintf(known + used, sizeof known - used, "%s%s%s%s", i ? ", " : "", ck_planners[i]->name,
			 ck_planners[i]->knob ? ":" : "", ck_planners[i]->knob ? ck_planners[i]->knob : "");
	}
	return ck_fail(err, CK_USAGE, "no planner is named '%.*s'; the planners are %s", length > 60 ? 60 : length, name,
		       known);
}

static ck_status read_knob(const ck_graph *g, const char *text, const ck_planner *planner, int64_t *knob, ck_err *err)
{
	int64_t least, most;
	planner->range(g, &least, &most);
	if (!ck_whole(text, knob) || *knob < least || *knob > most)
		return ck_fail(err, CK_USAGE,
			       "plan '%s:%.40s': %s must be a whole number from %" PRId64 " to %" PRId64
			       " for this model, which has %d stages",
			       planner->name, text, planner->knob, least, most, g->nstages);
	return CK_OK;
}

ck_status ck_plan_read(const ck_graph *g, const char *text, ck_plan *p, ck_err *err)
{
	const char *colon = strchr(text, ':');
	size_t length = colon ? (size_t)(colon - text) : strlen(text);
	*p = (ck_plan){0};
	for (int i = 0; ck_planners[i]; i++)
		if (strlen(ck_planners[i]->name) == length && strncmp(ck_planners[i]->name, text, length) == 0)
			p->planner = ck_planners[i];
	if (!p->planner)
		return unknown(text, (int)length, err);
	const ck_planner *planner = p->planner;
	if (!planner->knob && colon)
		return ck_fail(err, CK_USAGE, "plan '%.60s': planner %s takes nothing after its name", text, planner->name);
	if (!planner->knob) {
		snprintf(p->name, sizeof p->name, "%s", planner->name);
	} else {
		if (read_knob(g, colon ? colon + 1 : "", planner, &p->knob, err) != CK_OK)
			return CK_USAGE;
		snprintf(p->name, sizeof p->name, "%s:%" PRId64, planner->name, p->knob);
	}
	p->segments = planner->segments(g, p->knob);
	return CK_OK;
}

ck_status ck_plan_make(const ck_graph *g, const ck_plan *p, ck_schedule *s, ck_err *err)
{
	return p->planner->make(g, p->knob, s, err);
}

void ck_knob_up_to_stages(const ck_graph *g, int64_t *least, int64_t *most)
{
	*least = 1;
	*most = g->nstages;
}
