/* What is refused: the exit status says what kind of fault it is, one message names the thing and the remedy, and nothing is
 * left behind. */
#include "program.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/alloc.h"

typedef struct refusal {
	const char *command;
	int status;
	const char *thing, *remedy; /* parts of the message */
	const char *files;          /* NULL: nothing may be left */
} refusal;

#define MLP "mlp:layers=4,width=16,batch=4"
#define LONG "$(printf %02000d 7)" /* longer than any message */

static const refusal command_lines[] = {
    {"ck", 2, "which command", "ckbench sweep mlp", NULL},
    {"ck frobnicate", 2, "'frobnicate'", "list, parity, sweep, train, plan, dump, faults, compare, env", NULL},
    {"ck --help sweep", 2, "--help stands alone, but was given 'sweep'", "ckbench COMMAND --help", NULL},
    {"ck --version 2", 2, "--version stands alone", "'2'", NULL},
    {"ck parity", 2, "needs a MODEL", "list models", NULL},
    {"ck parity mlp cnn", 2, "'mlp' and 'cnn'", "one MODEL", NULL},
    {"ck env mlp", 2, "'mlp'", "options only", NULL},
    {"ck list models planners", 2, "'planners'", "takes one", NULL},
    {"ck list engines", 2, "'engines'", "models, planners, devices or faults", NULL},
    {"ck parity " MLP " --frobnicate", 2, "'--frobnicate'", "it takes --plans", NULL},
    {"ck parity " MLP " --seconds 3", 2, "'--seconds'", "it takes --plans", NULL},
    {"ck parity " MLP " --see 3", 2, "'--see'", "--seed", NULL},
    {"ck env --seed 3", 2, "'--seed'", "it takes --ceilings", NULL},
    {"ck list --seed 3", 2, "'--seed'", "no options", NULL},
    {"ck parity " MLP " --seed 1 --seed 1", 2, "--seed is given twice", "leave one out", NULL},
    {"ck parity " MLP " --seed", 2, "--seed needs a value", "--seed N", NULL},
    {"ck parity " MLP " --quiet=yes", 2, "--quiet", "no value", NULL},
    {"ck parity " MLP " --plans ''", 2, "--plans", "LIST", NULL},
};

static const refusal values[] = {
    {"ck parity " MLP " --seed -1", 2, "'-1'", "0 to 9007199254740991", NULL},
    {"ck parity " MLP " --seed 9007199254740992", 2, "'9007199254740992'", "0 to 9007199254740991", NULL},
    {"ck parity " MLP " --seed 1e3", 2, "'1e3'", "whole number", NULL},
    {"ck parity " MLP " --seed 0x10", 2, "'0x10'", "whole number", NULL},
    {"ck parity " MLP " --seed +1", 2, "'+1'", "whole number", NULL},
    {"ck parity " MLP " --seed ' 1'", 2, "' 1'", "whole number", NULL},
    {"ck parity " MLP " --seed '1 '", 2, "'1 '", "whole number", NULL},
    {"ck parity " MLP " --threads 0", 2, "--threads '0'", "1 to 1024", NULL},
    {"ck parity " MLP " --threads -1", 2, "'-1'", "1 to 1024", NULL},
    {"ck parity " MLP " --threads 1025", 2, "'1025'", "1 to 1024", NULL},
    {"ck parity " MLP " --threads 99999999999999999999", 2, "'99999999999999999999'", "1 to 1024", NULL},
    {"ck parity " MLP " --threads two", 2, "'two'", "1 to 1024", NULL},
    {"ck parity " MLP " --dropout nan", 2, "'nan'", "0 to 0.99", NULL},
    {"ck parity " MLP " --dropout -0.1", 2, "'-0.1'", "0 to 0.99", NULL},
    {"ck parity " MLP " --dropout 1", 2, "'1'", "0 to 0.99", NULL},
    {"ck sweep " MLP " --seconds 0", 2, "--seconds '0'", "0.01 to 86400", NULL},
    {"ck sweep " MLP " --seconds inf", 2, "'inf'", "0.01 to 86400", NULL},
    {"ck sweep " MLP " --seconds 0x10", 2, "'0x10'", "0.01 to 86400", NULL},
    {"ck sweep " MLP " --seconds ' 1'", 2, "' 1'", "0.01 to 86400", NULL},
    {"ck sweep " MLP " --seconds +1", 2, "'+1'", "0.01 to 86400", NULL},
    {"ck sweep " MLP " --seconds 1e", 2, "'1e'", "0.01 to 86400", NULL},
    {"ck sweep " MLP " --seconds .", 2, "'.'", "0.01 to 86400", NULL},
    {"ck parity " MLP " --dropout +0.1", 2, "'+0.1'", "0 to 0.99", NULL},
    {"ck sweep " MLP " --rounds 0", 2, "--rounds '0'", "1 to", NULL},
    {"ck parity " MLP " --device gpu", 2, "gpu", "cpu, ref", NULL},
    {"ck parity " MLP " --device ref:7", 3, "ref:7", "ref", NULL},
    {"ck parity " MLP " --device " LONG, 2, "unknown device", "cpu, ref", NULL},
    {"ulimit -v 600000; ck parity " MLP " --threads 1024", 3, "1024 thread(s) need", "fewer threads", NULL},
    {"OMP_THREAD_LIMIT=3 ck parity " MLP " --threads 4", 3, "4 threads are more than the 3", "take fewer threads", NULL},
    {"ck parity " MLP " --tf32", 2, "device cpu has no TF32", "leave it out", NULL},
    {"ck parity " MLP " --fast", 2, "device cpu has no other order of sums", "leave it out", NULL},
    {"ck sweep " MLP " --device ref --tf32", 2, "device ref has no TF32", "leave it out", NULL},
    {"ck plan " MLP " --device ref --fast", 2, "device ref has no other order of sums", "leave it out", NULL},
    {"ck parity " MLP " --fast=1", 2, "--fast takes no value", "--fast", NULL},
    {"ck train " MLP " --fast", 2, "train with --fast", "ckbench parity --fast", NULL},
    {"ck faults " MLP " --fast", 2, "faults with --fast", "leave --fast out", NULL},
    {"ck parity " MLP " --amp fp8", 2, "--amp 'fp8'", "off, bf16 or fp16", NULL},
    {"ck parity " MLP " --amp " LONG, 2, "--amp '0000", "off, bf16 or fp16", NULL},
    {"ck parity " MLP " --rng maybe", 2, "--rng 'maybe'", "counter, stateful", NULL},
    {"ck parity " MLP " --data nothing", 2, "nothing", "digits", NULL},
    {"ck parity " MLP " --data idx:" LONG ",l", 2, "cannot open", "check the name", NULL},
    {"mkfifo p; ck parity gpt-tiny --data text:p", 2, "'p' is not a regular file, but a pipe", "check the name", "p "},
    {"ck parity perceptron", 2, "perceptron", "mlp, cnn, transformer", NULL},
    {"ck parity mlp:batch=0", 2, "batch=0", "from 1 to", NULL},
    {"ck parity mlp:depth=3", 2, "depth", "layers", NULL},
    {"ck parity mlp:width=1000000,batch=10000000", 2, "mlp", "smaller", NULL},
    {"ck parity mlp:layers=1,tally=1", 2, "layers=1 has none", "set layers=2 or more", NULL},
    {"ck parity mlp:inplace=1,activation=gelu", 2, "inplace=1 is for ReLU", "set activation=relu", NULL},
    {"ck parity mlp:inplace=2", 2, "inplace=2 is out of range", "from 0 to 1", NULL},
    {"ck parity mlp:layers=4,freeze=4", 2, "freeze=4 leaves none of the 4 layers", "set freeze=3 or less", NULL},
    {"ck parity gpt-tiny:inplace=1", 2, "transformer has no setting 'inplace'", "it has layers", NULL},
    {"ck plan " MLP " --emit music --plans none", 2, "'music'", "schedule", NULL},
    {"ck plan " MLP " --emit schedule", 2, "one plan", "--plans", NULL},
    {"ck plan " MLP " --emit schedule --segments 2,3", 2, "one plan", "--plans", NULL},
    {"ck plan " MLP " --emit schedule --segments 2 >/dev/full", 3, "No space left", "elsewhere", NULL},
};

static const refusal plans[] = {
    {"ck sweep " MLP " --segments 0", 2, "--segments: plan 'uniform:0'", "from 1 to 4", NULL},
    {"ck sweep " MLP " --segments +1", 2, "'+1'", "1,2,4", NULL},
    {"ck sweep " MLP " --segments '1, 2'", 2, "'1, 2'", "1,2,4", NULL},
    {"ck sweep " MLP " --segments -1", 2, "uniform:-1", "from 1 to 4", NULL},
    {"ck sweep " MLP " --segments 5", 2, "uniform:5", "from 1 to 4", NULL},
    {"ck sweep " MLP " --segments 1..5", 2, "uniform:5", "from 1 to 4", NULL},
    {"ck sweep " MLP " --segments two", 2, "'two'", "1,2,4", NULL},
    {"ck sweep " MLP " --segments 1,", 2, "'1,'", "1,2,4", NULL},
    {"ck sweep " MLP " --segments 1..2..3", 2, "'1..2..3'", "1..12", NULL},
    {"ck sweep " MLP " --segments 1..4*1", 2, "'1..4*1'", "1..64*2", NULL},
    {"ck sweep " MLP " --segments 4..1", 2, "4..1", "lower end first", NULL},
    {"ck sweep " MLP " --segments 1..9223372036854775807", 2, "10000", "1..64*2", NULL},
    {"ck sweep " MLP " --segments 99999999999999999999", 2, "'99999999999999999999'", "1,2,4", NULL},
    {"ck parity " MLP " --plans magic", 2, "'magic'", "uniform:K", NULL},
    {"ck parity " MLP " --plans none,,stages", 2, "'none,,stages'", "between two commas", NULL},
    {"ck parity " MLP " --plans stages:3", 2, "stages:3", "nothing after its name", NULL},
    {"ck parity " MLP " --plans uniform:x", 2, "uniform:x", "from 1 to 4", NULL},
    {"ck parity " MLP " --plans uniform:+4", 2, "uniform:+4", "from 1 to 4", NULL},
    {"ck parity " MLP " --plans uniform:1,2,5", 2, "--plans: plan 'uniform:5'", "from 1 to 4", NULL},
    {"ck parity " MLP " --plans uniform:1,,2", 2, "'uniform:1,,2'", "between two commas", NULL},
    {"ck parity " MLP " --plans stages,4", 2, "'4'", "uniform:K", NULL},
    {"ck parity " MLP " --plans schedule:", 2, "'schedule:' names no file", "schedule:FILE", NULL},
};

/* A schedule of plan uniform:2, spoiled in several ways. */
#define SPOIL(how) "ck plan " MLP " --plans uniform:2 --emit schedule | " how " >s; ck parity " MLP " --schedule s"

static const refusal schedules[] = {
    {"ck parity " MLP " --schedule missing", 2, "missing", "check the name", NULL},
    {"ck parity " MLP " --schedule .", 2, "'.' is not a regular file, but a folder", "check the name", NULL},
    {"ck parity " MLP " --schedule /dev/zero", 2, "'/dev/zero' is not a regular file, but a device", "check the name", NULL},
    {"mkfifo p; ck parity " MLP " --schedule p", 2, "'p' is not a regular file, but a pipe", "check the name", "p "},
    {"true | ck parity " MLP " --schedule /dev/stdin", 2, "not a regular file, but a pipe", "into a file first", NULL},
    {"ck parity " MLP " --schedule " LONG, 2, "cannot open", "check the name", NULL},
    {"ck parity " MLP " --schedule \"$(printf 'a\\nb\\033c\\303\\244')\"", 2, "a\\x0ab\\x1bc\303\244", "check the name", NULL},
    {SPOIL("head -n 5"), 2, "schedule:s", "never runs", "s "},
    {SPOIL("head -c 12"), 2, "s: schedule line 1", "ckbench-schedule/1", "s "},
    {SPOIL("sed '1s/graph ..../graph 0000/'"), 2, "s: schedule line 1", "made for", "s "},
    {SPOIL("sed '1s/graph ./graph +/'"), 2, "s: schedule line 1", "16 hex digits", "s "},
    {SPOIL("sed 's/^F fc2/F fc9/'"), 2, "fc9", "line 3", "s "},
    {SPOIL("sed 's/^D .*/&\\n&/'"), 2, "schedule:s", "D fc1", "s "},
    {SPOIL("sed '/^B fc3/d'"), 2, "schedule:s", "fc3", "s "},
    {"echo '{}' >s; ck parity " MLP " --schedule s", 2, "s: schedule line 1", "ckbench-schedule/1", "s "},
};

static const refusal places[] = {
    {"ck sweep " MLP " --out /proc/a/b", 3, "/proc/a/b: /proc takes no new files", "choose another place", NULL},
    {"ln -s nowhere l; ck sweep " MLP " --out l", 3, "l takes no new files", "choose another place", "l "},
    {"mkdir d; cd d; rmdir ../d; ck sweep " MLP, 3, ". takes no new files", "choose another place", NULL},
    {"ck sweep " MLP " --out " LONG, 3, "File name too long", "choose another place", NULL},
    {"touch f; ck sweep " MLP " --out f", 3, "f: Not a directory", "choose another place", "f "},
    {"touch f; ck sweep " MLP " --out f/g", 3, "f/g", "choose another place", "f "},
    {"touch f; ck parity " MLP " --json f", 2, "f exists already", "--force", "f "},
    {"ck parity " MLP " --json no/f", 3, "no/f", "make its folder first", NULL},
    {"ln -s nowhere l; ck sweep " MLP " --json l", 2, "l is a link to nothing", "choose another name", "l "},
    {"ln -s nowhere l; ck sweep " MLP " --json l --force", 2, "l is a link to nothing", "choose another name", "l "},
    {"mkfifo p; ck parity " MLP " --json p", 2, "p is not a regular file, but a pipe", "- for the standard output", "p "},
    {"ck parity " MLP " --json " LONG, 3, "File name too long", "choose another place", NULL},
    {"mkdir d; ck parity " MLP " --json d", 3, "d: Is a directory", "choose another place", "d "},
    {"ck parity " MLP " --json /dev/full", 3, "/dev/full: No space left", "free some space", NULL},
    {"ck parity " MLP " --json - >/dev/full", 3, "standard output: No space left", "elsewhere", NULL},
    {"ck list >/dev/full", 3, "standard output: No space left", "elsewhere", NULL},
    {"ck --help >/dev/full", 3, "standard output: No space left", "elsewhere", NULL},
    {"ck parity " MLP " --plans stages <&- >&-", 3, "standard output: Bad file descriptor", "elsewhere", NULL},
    /* A disk that fills up while the record is written: nothing half-written stays. */
    {"ulimit -f 1; ck sweep " MLP " --plans stages --seconds 0.1", 3, "sweep-mlp-1.json: File too large",
     "choose another place", "ckbench-out "},
};

/* A program of one's own with a module beside it. */
#define MODULE(make)                                                                                                           \
	"mkdir -p p/kernels/cuda; cp \"$CKBENCH\" p/ck; (cd p/kernels/cuda; m=ckbench-cuda.so; " make                          \
	"); timeout 20 p/ck parity " MLP " --device cuda"
#define BESIDE "p p/ck p/kernels p/kernels/cuda p/kernels/cuda/ckbench-cuda.so "

static const refusal modules[] = {
    {MODULE(": >$m"), 3, "ckbench-cuda.so is no library, or cut short", "build it again", BESIDE},
    {MODULE("echo hello >$m"), 3, "ckbench-cuda.so is no library, or cut short", "build it again", BESIDE},
    {MODULE("head -c 5000 \"$CKBENCH\" >$m"), 3, "ckbench-cuda.so is no library, or cut short", "build it again", BESIDE},
    {MODULE("head -c -1 \"$CKBENCH\" >$m"), 3, "ckbench-cuda.so is no library, or cut short", "build it again", BESIDE},
    {MODULE("mkfifo $m"), 3, "ckbench-cuda.so is no library, or cut short", "build it again", BESIDE},
    {MODULE("mkdir $m"), 3, "ckbench-cuda.so is no library, or cut short", "build it again", BESIDE},
    {MODULE("cp \"$CKBENCH\" $m"), 3, "ckbench-cuda.so: cannot dynamically load", "build ckbench again", BESIDE},
};

/* Where emu is built. A module made for another device: its records would bear a wrong name. */
static const refusal emulated[] = {
    {"ck parity " MLP " --device emu:2", 3, "device emu:2 does not exist", "from emu:0 on", NULL},
    {MODULE("cp \"${CKBENCH%/*}\"/kernels/emu/ckbench-emu.so $m"), 3, "for another device", "build it again", BESIDE},
};

static void expect_refused(const refusal *table, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const refusal *r = &table[i];
		outcome o = run(r->command);
		cr_expect(o.status == r->status, "%s: exit status %d, not %d\n%s", r->command, o.status, r->status, o.err);
		cr_expect(strstr(o.err, r->thing) && strstr(o.err, r->remedy), "%s: no '%s' or no '%s' in: %s", r->command,
			  r->thing, r->remedy, o.err);
		const char *message = strstr(o.err, "ckbench: "), *end = message ? strchr(message, '\n') : NULL;
		cr_expect(end && !end[1], "%s: not one line: %s", r->command, o.err);
		cr_expect_str_eq(o.files, r->files ? r->files : "", "%s: left behind: %s", r->command, o.files);
		outcome_free(&o);
	}
}

#define COUNT(table) sizeof table / sizeof *table

Test(refusals, command_lines)
{
	expect_refused(command_lines, COUNT(command_lines));
}

Test(refusals, values)
{
	expect_refused(values, COUNT(values));
}

Test(refusals, plans)
{
	expect_refused(plans, COUNT(plans));
}

Test(refusals, schedules)
{
	expect_refused(schedules, COUNT(schedules));
}

Test(refusals, places)
{
	expect_refused(places, COUNT(places));
}

Test(refusals, modules)
{
	expect_refused(modules, COUNT(modules));
	outcome o = run("test -e \"${CKBENCH%/*}\"/kernels/emu/ckbench-emu.so");
	if (o.status == 0)
		expect_refused(emulated, COUNT(emulated));
	outcome_free(&o);
}
