/* The command line's options: one row each. Reading, checking and the help text all come from the row.
 *
 *   X(name, value, kind, least, most, preset, help)
 *     value    what stands for the value in the help; NULL: the option takes none
 *     kind     FLAG, WHOLE (a whole number from least to most), REAL (a number from least to most) or TEXT
 *     preset   what it is when not given, as text; NULL: nothing */
#ifndef CK_OPTIONS_H
#define CK_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/status.h"

/* Seeds end where JSON numbers stop being exact: 2^53 - 1. */
#define CK_OPTION_ROWS(X)                                                                                                      \
	X(plans, "LIST", TEXT, 0, 0, NULL,                                                                                     \
	  "plans by name, with numbers as one, a list or a range: stages,uniform:4 or uniform:1,2,4 or uniform:1..12 or "      \
	  "uniform:1..8*2; see 'ckbench list planners'. Where plans are compared, none is always there, first; dump and "      \
	  "--emit take one")                                                                                                   \
	X(segments, "LIST", TEXT, 0, 0, NULL, "segment counts K, e.g. 1,2,4 or 1..12 or 1..64*2: uniform:K for each")          \
	X(schedule, "FILE", TEXT, 0, 0, NULL, "also run the schedule in FILE, a regular file, as plan schedule:FILE")          \
	X(emit, "WHAT", TEXT, 0, 0, NULL, "schedule: write the one plan's schedule, as --schedule takes it")                   \
	X(device, "NAME", TEXT, 0, 0, "cpu", "where to run; see 'ckbench list devices'")                                       \
	X(threads, "N", WHOLE, 1, 1024, NULL, "CPU threads, 1 to 1024; all that may be used when not given")                   \
	X(seed, "N", WHOLE, 0, 9007199254740991, "1", "start of all random numbers: weights, batch, dropout")                  \
	X(amp, "TYPE", TEXT, 0, 0, "off", "mixed precision: off, bf16 or fp16. faults: all three when not given")              \
	X(rng, "KIND", TEXT, 0, 0, "counter",                                                                                  \
	  "how dropout draws: counter, where a recompute draws the same numbers without a saved state, or stateful, a "        \
	  "running generator whose state a plan saves and restores")                                                           \
	X(dropout, "P", REAL, 0, 0.99, NULL, "the model's dropout, 0 to 0.99")                                                 \
	X(data, "SET", TEXT, 0, 0, NULL, "digits, idx:IMAGES,LABELS or text:FILE instead of a batch of random numbers")        \
	X(tf32, NULL, FLAG, 0, 0, NULL, "float32 products may round their operands to TF32, where the device has it")          \
	X(fast, NULL, FLAG, 0, 0, NULL,                                                                                        \
	  "sums in any order, where the device is faster so; parity is then judged against the noise floor (not train, "       \
	  "faults)")                                                                                                           \
	X(no_fusion, NULL, FLAG, 0, 0, NULL, "build the graph of plain ops, none fused")                                       \
	X(seconds, "S", REAL, 0.01, 86400, "20", "time limit for measuring")                                                   \
	X(rounds, "N", WHOLE, 1, 1000000, "3", "rounds that are measured in any case, each one step of every plan")            \
	X(steps, "N", WHOLE, 1, 1000000, "100", "training steps of every plan")                                                \
	X(optimizer, "NAME", TEXT, 0, 0, "adamw", "sgd or adamw, with PyTorch's rules and presets")                            \
	X(lr, "X", REAL, 0, 1000, NULL, "learning rate [0.001]")                                                               \
	X(momentum, "X", REAL, 0, 0.9999, NULL, "momentum of sgd [0]")                                                         \
	X(weight_decay, "X", REAL, 0, 100, NULL, "weight decay [0 for sgd, 0.01 for adamw]")                                   \
	X(accumulate, "N", WHOLE, 1, 4096, "1",                                                                                \
	  "micro-batches a step: their gradients are summed, each one's loss divided by N")                                    \
	X(scaler, "WHAT", TEXT, 0, 0, NULL,                                                                                    \
	  "loss scaler with PyTorch's rules and presets: off, on (65536 at first) or the first scale [on with --amp fp16, "    \
	  "else off]")                                                                                                         \
	X(growth_interval, "N", WHOLE, 1, 2000000000, "2000", "steps in a row without overflow after which the scale doubles") \
	X(load, "FILE", TEXT, 0, 0, NULL, "weights, buffers, batch and dropout masks from a file that dump wrote")             \
	X(out, "PATH", TEXT, 0, 0, NULL,                                                                                       \
	  "folder for the record, its TSV and the plots; ckbench-out for sweep and train when not given. faults: for the "     \
	  "record. dump: the file")                                                                                            \
	X(json, "FILE", TEXT, 0, 0, NULL, "write the record to FILE; - is the standard output")                                \
	X(force, NULL, FLAG, 0, 0, NULL, "replace a file that is there")                                                       \
	X(ceilings, NULL, FLAG, 0, 0, NULL, "measure what each device can do at most: products in each precision, and a copy") \
	X(quiet, NULL, FLAG, 0, 0, NULL, "no progress and no remarks, only results and errors")

typedef enum ck_option {
#define X(name, value, kind, least, most, preset, help) CK_OPTION_##name,
	CK_OPTION_ROWS(X)
#undef X
	    CK_OPTIONS
} ck_option;

_Static_assert(CK_OPTIONS <= 32, "an option is a bit of an unsigned");

/* A set of options, as a command lists those that it takes: CK_TAKES(plans) | CK_TAKES(seed). */
#define CK_TAKES(name) (1u << CK_OPTION_##name)
/* What makes a case, for all commands that build a graph. */
#define CK_TAKES_CASE                                                                                                          \
	(CK_TAKES(device) | CK_TAKES(threads) | CK_TAKES(seed) | CK_TAKES(amp) | CK_TAKES(rng) | CK_TAKES(dropout) |           \
	 CK_TAKES(data) | CK_TAKES(tf32) | CK_TAKES(fast) | CK_TAKES(no_fusion))

typedef struct ck_options {
	bool given[CK_OPTIONS];
	const char *text[CK_OPTIONS]; /* as given, or the preset; NULL: nothing. Borrowed from argv */
	int64_t whole[CK_OPTIONS];    /* WHOLE; 0 when there is nothing */
	double real[CK_OPTIONS];      /* REAL; 0 when there is nothing */
} ck_options;

void ck_options_preset(ck_options *o);
/* Reads the option at argv[*i] (it starts with '-'), and steps over its value. `takes`: the options that command `command`
 * knows. CK_USAGE: unknown, given twice, no value, or out of range. */
ck_status ck_options_read(ck_options *o, unsigned takes, const char *command, char *const *argv, int argc, int *i, ck_err *err);
/* "  --seed N   start of …", a line or more per option. */
void ck_options_help(unsigned takes);
/* The option as given, "--seed 7", to run the same again; "" when it was not given. Fresh memory. */
char *ck_option_line(const ck_options *o, ck_option which);
const char *ck_option_name(ck_option which); /* "--no-fusion"; valid until the program ends */

#endif
