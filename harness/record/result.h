/* The record of one run: `ckbench-result/1`, one JSON object (results/SCHEMA.md says every field). Tables, TSV and plots are
 * made from it and from nothing else, so a record read back later gives the same ones.
 *
 *     ck_result ──▶ json ──▶ file ──▶ read ──▶ ck_result
 *         │
 *         ├──▶ table (for people)      ├──▶ tsv (for other programs)      └──▶ plot (SVG, PNG)
 */
#ifndef CK_RESULT_H
#define CK_RESULT_H

#include <stdio.h>

#include "harness/record/datasheet.h"
#include "harness/record/machine.h"
#include "harness/run/measure.h"
#include "harness/run/noise.h"

#define CK_RESULT_SCHEMA "ckbench-result/1"

typedef enum ck_point_status {
	CK_POINT_OK,
	CK_POINT_PARITY_FAILED, /* other bits than the baseline, or bits that prove nothing */
	CK_POINT_OOM,           /* the memory was refused while running */
	CK_POINT_SKIPPED,       /* not run: told beforehand that it does not fit, or interrupted before its turn */
	CK_POINT_ERROR,         /* the run itself broke a check */
} ck_point_status;
extern const char *const ck_point_status_names[]; /* "ok", "parity-failed", "oom", "skipped", "error"; ends with NULL */

/* One plan's outcome. Sizes in bytes, 0: not known; times in seconds. */
typedef struct ck_point {
	char *plan;   /* "uniform:4" */
	int segments; /* 0: the plan has none */
	ck_point_status status;
	char *reason; /* why it is not ok; NULL when it is */

	bool checked; /* verdict, loss and digests are there */
	ck_verdict verdict;
	char **zero_gradients; /* names of the values whose gradient is zero in every element: their equality proves nothing */
	int nzero_gradients, zero_capacity;
	struct {
		int runs;     /* of the baseline that were compared with; 0: bits were */
		char *tensor; /* that came closest to what it is allowed, or is farthest beyond; NULL: none differs */
		ck_norm norm;
		double floor, worst, allowed; /* of that tensor, parts of its norm: the runs', this plan's, the most */
	} noise;
	double loss;
	bool scaled;  /* there was a scaler: */
	double scale; /* of the last step's loss gradient */
	int skipped;  /* steps that overflowed before that one */
	bool has_digest[CK_DIGEST_KINDS];
	ck_digest digest[CK_DIGEST_KINDS];

	size_t predicted_peak; /* live bytes, from the schedule */
	size_t live_peak;      /* live bytes, as the executor found them */
	size_t arena;          /* with fragmentation: what was allocated */
	size_t device_peak;    /* peak resident bytes of a fresh process that ran only this plan */
	size_t by_category[CK_MEM_CATEGORIES];

	ck_samples time; /* n = 0: not measured */
	double executed_flops;
	int recomputed_ops;
	ck_rng_cost rng;
	bool pareto; /* set by ck_result_front */
} ck_point;

/* A setting of the model: a number, or a word. */
typedef struct ck_fact {
	char *name, *word; /* word: NULL for a number */
	double number;
} ck_fact;

typedef struct ck_result {
	struct {
		char *version, *git, *compiler, *flags, *argv;
	} tool;
	ck_machine machine;
	struct {
		char *name, *description;
		int threads;
		ck_device_facts facts;
	} device;
	struct {
		char *model, *data, *amp, *rng,
		    *line;       /* rng: NULL: not known. line: the case as a command that runs it again */
		bool tf32, fast; /* how the device was opened */
		ck_fact *settings;
		int nsettings, capacity;
		int64_t seed, parameters;
		int stages, ops;
		uint64_t graph; /* digest of the graph, as schedules name it */
		double model_flops;
	} c;
	struct {
		bool known;         /* it ran; else nothing else is there */
		ck_verdict verdict; /* against the baseline's forward */
		size_t predicted_peak, live_peak, arena;
		int recomputed_ops;
		ck_digest digest; /* of kind "forward" */
	} forward_only;           /* a pass without any backward, as validation runs it */
	bool sealed;              /* read from a text that has its own digest; older ones have none */
	ck_digest digest;         /* if so */
	char *baseline;           /* the plan that parity and overhead refer to: none, or the first that fits in memory */
	struct {
		int rounds; /* 0: nothing was timed */
		double seconds;
		char *end; /* why it ended: a name of ck_measure_end_names; NULL when nothing was timed */
	} measuring;
	struct {
		bool known;             /* it was tried to measure them */
		ck_precision precision; /* of the case's products */
		ck_ceilings at;
	} ceilings;
	ck_point *points;
	int npoints, capacity;
} ck_result;

/* Owns all texts. `argv` fills the tool's facts together with this build's and machine's. */
ck_result *ck_result_new(int argc, char *const *argv);
void ck_result_free(ck_result *r); /* NULL is fine */
/* A zeroed point at the end; valid until the next one is added. */
ck_point *ck_result_add(ck_result *r, const char *plan);
/* The same, with all that is known of a plan before it runs. */
ck_point *ck_result_add_plan(ck_result *r, const char *plan, int segments, const ck_program *p);
ck_fact *ck_result_add_setting(ck_result *r, const char *name);
void ck_point_add_zero_gradient(ck_point *p, const char *name);
/* Sets status and reason; takes over `reason`. */
void ck_point_fail(ck_point *p, ck_point_status status, char *reason);

/* ---- what follows from a record ------------------------------------------------------------------------------------------ */

const ck_point *ck_result_find(const ck_result *r, const char *plan); /* NULL when it is not among the points */
/* NAN where one side is not known. */
double ck_overhead_time(const ck_result *r, const ck_point *p);  /* step time over the baseline's */
double ck_overhead_flops(const ck_result *r, const ck_point *p); /* executed FLOPs over the model's own */
double ck_saving(const ck_result *r, const ck_point *p); /* 1 - live peak over that of plan none (predicted, if not run) */

/* FLOPs a second over what the device can do at most in the case's precision: as it was measured, and as its data sheet has it.
 * The model's own FLOPs, without recomputes, and all that were executed. NAN where a side is not known. */
typedef struct ck_utilisation {
	double model, hardware;
	double model_datasheet, hardware_datasheet;
} ck_utilisation;
ck_utilisation ck_point_utilisation(const ck_result *r, const ck_point *p);

/* Marks the points on the front: ok, measured, and no other such point has both a live peak and a median that are at most as
 * high, one of them lower. */
void ck_result_front(ck_result *r);

/* ---- forms --------------------------------------------------------------------------------------------------------------- */

char *ck_result_json(const ck_result *r); /* fresh text, ends with a newline */
/* Reads the text of a record, which a 0 ends after `bytes`. Refuses what is no such record, or only a part of one, or was changed
 * since, naming `source` and the field (CK_USAGE). Derived figures (overheads, saving, front) are worked out anew. */
ck_status ck_result_read(const char *text, size_t bytes, const char *source, ck_result **r, ck_err *err);

char *ck_result_tsv(const ck_result *r);             /* fresh text: a head line, then a line per point */
void ck_result_table(const ck_result *r, FILE *to);  /* memory against time, for people */
void ck_result_parity(const ck_result *r, FILE *to); /* kind by kind */

#endif
