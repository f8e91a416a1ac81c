/* How far runs of one step lie apart, tensor by tensor (noise.h). */
#include "harness/run/noise.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/run/program.h"
#include "kernels/alloc.h"

const char *const ck_norm_names[] = {"l2", "max", NULL};

/* A tensor: what is kept of it, and how far others lie from that. Absolute, not divided by the norm. */
typedef struct slot {
	char *kept;             /* as the baseline's first run left it; NULL: the case has no such tensor */
	double norm[CK_NORMS];  /* of that */
	double floor[CK_NORMS]; /* the largest difference of a further run of the baseline */
	double now[CK_NORMS];   /* of the run under way, L2 still squared */
} slot;

struct ck_noise {
	const ck_graph *graph;
	double roundoff;
	int runs;
	slot *slots;         /* (2, nvalues): after the step, after its forward alone */
	ck_value not_finite; /* where a further run of the baseline has an infinity or a NaN; CK_NONE */
};

/* ---- taking --------------------------------------------------------------------------------------------------------------- */

static double roundoff(const ck_graph *g, bool tf32)
{
	return g->low == CK_BF16 ? 0x1p-8 : g->low == CK_F16 || tf32 ? 0x1p-11 : g->real == CK_F32 ? 0x1p-24 : 0x1p-53;
}

ck_noise *ck_noise_open(const ck_graph *g, bool tf32)
{
	ck_noise *n = ck_alloc(1, sizeof *n);
	*n = (ck_noise){.graph = g, .roundoff = roundoff(g, tf32), .not_finite = CK_NONE};
	n->slots = ck_alloc(2 * (size_t)g->nvalues, sizeof *n->slots);
	return n;
}

void ck_noise_close(ck_noise *n)
{
	if (!n)
		return;
	for (int i = 0; i < 2 * n->graph->nvalues; i++)
		free(n->slots[i].kept);
	free(n->slots);
	free(n);
}

static slot *slot_of(const ck_noise *n, ck_value v, bool forward)
{
	return &n->slots[(forward ? n->graph->nvalues : 0) + v];
}

static void measure(double norm[CK_NORMS], double x)
{
	norm[CK_NORM_L2] += x * x;
	if (!(fabs(x) <= norm[CK_NORM_MAX]) && !isnan(norm[CK_NORM_MAX])) /* a NaN stays; fmax would pass over it */
		norm[CK_NORM_MAX] = fabs(x);
}

void ck__noise_see(ck_noise *n, ck_value v, bool forward, size_t at, const void *data, size_t bytes)
{
	slot *s = slot_of(n, v, forward);
	ck_dtype t = n->graph->values[v].dtype;
	bool first = n->runs == 0;
	if (!ck_dtype_real(t))
		return;
	if (first && !s->kept)
		s->kept = ck_alloc(1, n->graph->values[v].bytes);
	if (!s->kept)
		return;
	double *norm = first ? s->norm : s->now;
	if (at == 0)
		norm[CK_NORM_L2] = norm[CK_NORM_MAX] = 0;
	if (first)
		memcpy(s->kept + at, data, bytes);
	for (int64_t i = 0; i < (int64_t)(bytes / ck_dtype_size(t)); i++)
		measure(norm, ck_element_get(t, data, i) - (first ? 0 : ck_element_get(t, s->kept + at, i)));
}

static double difference(const slot *s, int norm)
{
	return norm == CK_NORM_L2 ? sqrt(s->now[norm]) : s->now[norm];
}

void ck_noise_add(ck_noise *n, const ck_outcome *o)
{
	if (o->not_finite != CK_NONE && n->not_finite == CK_NONE)
		n->not_finite = o->not_finite;
	for (int i = 0; i < 2 * n->graph->nvalues; i++) {
		slot *s = &n->slots[i];
		if (!s->kept)
			continue;
		if (n->runs == 0)
			s->norm[CK_NORM_L2] = sqrt(s->norm[CK_NORM_L2]);
		for (int k = 0; k < CK_NORMS && n->runs > 0; k++)
			s->floor[k] = fmax(s->floor[k], difference(s, k));
		if (n->runs > 0 && !isfinite(s->now[CK_NORM_MAX]) && n->not_finite == CK_NONE)
			n->not_finite = i % n->graph->nvalues;
	}
	n->runs++;
}

int ck_noise_runs(const ck_noise *n)
{
	return n->runs;
}

/* ---- comparing ------------------------------------------------------------------------------------------------------------ */

static double allowed(const ck_noise *n, const slot *s, int norm)
{
	return CK_NOISE_FLOORS * s->floor[norm] + CK_NOISE_ROUNDINGS * n->roundoff * s->norm[norm];
}

/* What a tensor uses of what it is allowed; a NaN uses more than any. */
static double share(double difference, double most)
{
	double part = difference == 0 ? 0 : difference / most;
	return isnan(part) ? INFINITY : part;
}

static bool is_gradient(const ck_graph *g, int v)
{
	return g->values[v].kind != CK_BUFFER && v != g->loss;
}

/* Whether there is a gradient that the allowance is smaller than: else zeros in its place would pass. */
static bool tells(const ck_noise *n)
{
	for (int v = 0; v < n->graph->nvalues; v++) {
		const slot *s = &n->slots[v];
		if (s->kept && is_gradient(n->graph, v) && allowed(n, s, CK_NORM_L2) < s->norm[CK_NORM_L2])
			return true;
	}
	return false;
}

static bool baseline_proves(const ck_noise *n, ck_err *why)
{
	if (n->not_finite != CK_NONE)
		ck_fail(
		    why, CK_FAILED,
		    "in one of %d runs of the baseline '%.200s' has what is not finite, so that a comparison proves nothing; "
		    "try another seed, or fewer layers",
		    n->runs, n->graph->values[n->not_finite].name);
	else if (!tells(n))
		ck_fail(why, CK_FAILED,
			"%d runs of the baseline differ among themselves by as much as its gradients are large, so that a "
			"comparison proves nothing; leave --fast out",
			n->runs);
	else
		return true;
	return false;
}

/* "the gradient of 'fc1.weight' after …" */
static char *tensor_text(const ck_graph *g, ck_value v, bool forward)
{
	const char *what = v == g->loss ? "the loss," : g->values[v].kind == CK_BUFFER ? "buffer" : "the gradient of";
	return ck_text("%s%s '%.200s'", forward ? "after the forward alone, " : "", what, g->values[v].name);
}

/* What must be equal in every bit. */
static bool exact_parts_agree(const ck_noise *n, const ck_outcome *a, const ck_outcome *b, bool forward_only, ck_err *why)
{
	const ck_graph *g = n->graph;
	char cause[CK_RNG_ORDER_TEXT];
	for (int v = 0; v < g->nvalues; v++) {
		if (g->values[v].kind != CK_BUFFER || ck_dtype_real(g->values[v].dtype))
			continue;
		bool after = !forward_only && memcmp(&a->value[v], &b->value[v], sizeof *a->value) != 0;
		if (!after && memcmp(&a->forward[v], &b->forward[v], sizeof *a->forward) == 0)
			continue;
		char *text = tensor_text(g, v, !after);
		ck_fail(why, CK_FAILED, "%s, which is of whole numbers, differs from plan none's%s", text,
			ck__outcome_cause(g, a, b, cause));
		free(text);
		return false;
	}
	static const struct {
		ck_digest_kind kind;
		const char *text;
	} exact[] = {{CK_DIGEST_RANDOM, "what was drawn from the random stream"}, {CK_DIGEST_SCALER, "the scaler's state"}};
	for (size_t i = 0; i < (forward_only ? 1 : sizeof exact / sizeof *exact); i++) {
		int k = exact[i].kind;
		bool compared = !forward_only || !a->skipped; /* else that is of several steps */
		if (compared && (a->has[k] != b->has[k] || memcmp(&a->kind[k], &b->kind[k], sizeof a->kind[k]) != 0)) {
			ck_fail(why, CK_FAILED, "%s differs from plan none's%s", exact[i].text,
				ck__outcome_cause(g, a, b, cause));
			return false;
		}
	}
	return true;
}

/* The worst of the tensors from slot `first` on; returns how many are beyond what they are allowed. */
static int find_worst(const ck_noise *n, int first, ck_noise_found *found)
{
	int nvalues = n->graph->nvalues, beyond = 0;
	double worst = 0;
	*found = (ck_noise_found){.tensor = CK_NONE};
	for (int i = first; i < 2 * nvalues; i++) {
		const slot *s = &n->slots[i];
		bool over = false;
		for (int k = 0; s->kept && k < CK_NORMS; k++) {
			double d = difference(s, k), most = allowed(n, s, k), part = share(d, most);
			double unit = s->norm[k] > 0 ? s->norm[k] : 1;
			over |= !(d <= most);
			if (part > worst)
				*found = (ck_noise_found){i % nvalues, i >= nvalues,       (ck_norm)k,
							  d / unit,    s->floor[k] / unit, most / unit};
			worst = fmax(worst, part);
		}
		beyond += over;
	}
	return beyond;
}

static ck_verdict judge(const ck_noise *n, int first, const ck_outcome *baseline, const ck_outcome *o, ck_noise_found *found,
			ck_err *why)
{
	static const char *const norms[] = {"of its L2 norm", "of its largest element, in one element"};
	int beyond = find_worst(n, first, found);
	if (beyond == 0)
		return CK_WITHIN_NOISE;
	char *text = tensor_text(n->graph, found->tensor, found->forward), cause[CK_RNG_ORDER_TEXT];
	ck_fail(
	    why, CK_FAILED,
	    "%s differs from plan none's by %.3g %s; its %d runs differ by at most %.3g, so that %.3g is allowed; %d tensor%s "
	    "beyond that in all%s",
	    text, found->difference, norms[found->norm], n->runs, found->floor, found->allowed, beyond,
	    beyond == 1 ? " is" : "s are", ck__outcome_cause(n->graph, baseline, o, cause));
	free(text);
	return CK_PARITY_FAILED;
}

ck_verdict ck_noise_compare(const ck_noise *n, const ck_outcome *baseline, const ck_outcome *o, ck_noise_found *found,
			    ck_err *why)
{
	ck_err bits = {""};
	ck_verdict verdict = ck_outcome_compare(n->graph, baseline, o, &bits);
	*found = (ck_noise_found){.tensor = CK_NONE};
	if (verdict == CK_BITWISE)
		return verdict;
	if (verdict == CK_PROVES_NOTHING) {
		ck_fail(why, CK_FAILED, "%s", bits.text);
		return verdict;
	}
	if (!baseline_proves(n, why))
		return CK_PROVES_NOTHING;
	if (!exact_parts_agree(n, baseline, o, false, why))
		return CK_PARITY_FAILED;
	return judge(n, 0, baseline, o, found, why);
}

ck_verdict ck_noise_compare_forward(const ck_noise *n, const ck_outcome *baseline, const ck_outcome *o, ck_err *why)
{
	ck_noise_found found;
	ck_err bits = {""};
	if (ck_outcome_compare_forward(n->graph, baseline, o, &bits) == CK_BITWISE)
		return CK_BITWISE;
	if (!exact_parts_agree(n, baseline, o, true, why))
		return CK_PARITY_FAILED;
	return judge(n, n->graph->nvalues, baseline, o, &found, why);
}
