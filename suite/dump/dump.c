/* `ckbench dump`: the tensors that the file promises, in the usual order of axes; the same for every plan; what it wrote it takes
 * back; and what it cannot take it refuses. Whether the numbers are right is for suite/peers/check_dump.py. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/record/file.h"
#include "harness/record/safetensors.h"
#include "kernels/alloc.h"
#include "suite/cli/program.h"
#include "suite/support.h"

#define MLP "mlp:layers=3,width=12,inputs=8,classes=5,batch=6,dropout=0.4"
#define MLP_WITH(settings) "mlp:width=12,inputs=8,classes=5," settings
#define RESNET18 "resnet18:width=8,image=64,batch=2,classes=10"
#define RESNET50 "resnet50:width=4,image=32,batch=2,classes=10,dropout=0.2"
#define GPT2 "gpt2:layers=2,width=24,heads=3,seq=7,positions=16,vocab=50,batch=2,dropout=0.1"

static outcome run_well(const char *command)
{
	outcome o = run(command);
	cr_assert(o.status == 0, "%s: exit status %d: %s", command, o.status, o.err);
	return o;
}

static ck_safetensors read_file(const outcome *o, const char *name)
{
	ck_safetensors f;
	ck_err err = {""};
	char *path = ck_text("%s/%s", o->folder, name);
	cr_assert(ck_safetensors_read(&f, path, &err) == CK_OK, "%s", err.text);
	free(path);
	return f;
}

static void write_file(const outcome *o, const char *name, const ck_safetensors *f)
{
	ck_err err = {""};
	char *path = ck_text("%s/%s", o->folder, name);
	cr_assert(ck_file_write(path, f->file, f->bytes, true, &err) == CK_OK, "%s", err.text);
	free(path);
}

static const ck_safetensor *tensor(const ck_safetensors *f, const char *name)
{
	const ck_safetensor *t = ck_safetensors_find(f, name);
	cr_assert(t, "there is no tensor '%s'", name);
	return t;
}

static void *data(const ck_safetensors *f, const char *name)
{
	return ck_safetensors_data(f, tensor(f, name));
}

/* Tensors of the same names, forms and bits; nothing of metadata. */
static void expect_same(const ck_safetensors *a, const ck_safetensors *b, const char *what)
{
	cr_assert(a->n == b->n, "%s: %d and %d tensors", what, a->n, b->n);
	for (int i = 0; i < a->n; i++) {
		const ck_safetensor *s = &a->tensors[i], *t = tensor(b, s->name);
		cr_expect(s->bytes == t->bytes && s->nd == t->nd && memcmp(s->d, t->d, sizeof s->d) == 0, "%s: %s", what,
			  s->name);
		cr_expect(memcmp(ck_safetensors_data(a, s), ck_safetensors_data(b, t), s->bytes) == 0, "%s: '%s' differs", what,
			  s->name);
	}
}

/* ---- structure ----------------------------------------------------------------------------------------------------------- */

static const struct {
	const char *model;
	int n;
	struct {
		const char *name, *form;
	} has[16];
} structures[] = {
    /* torchvision: 62 parameters, 60 buffers; each parameter once more as its gradient, each buffer as it is after the step */
    {RESNET18,
     2 * 62 + 2 * 60 + 4,
     {{"conv1.weight", "F32 8x3x7x7"},
      {"grad/conv1.weight", "F32 8x3x7x7"},
      {"bn1.num_batches_tracked", "I64"},
      {"after/bn1.num_batches_tracked", "I64"},
      {"bn1.running_mean", "F32 8"},
      {"after/layer4.1.bn2.running_var", "F32 64"},
      {"layer2.0.downsample.0.weight", "F32 16x8x1x1"},
      {"layer2.0.downsample.1.bias", "F32 16"},
      {"fc.weight", "F32 10x64"},
      {"grad/fc.bias", "F32 10"},
      {"input", "F32 2x3x64x64"},
      {"target", "I64 2"},
      {"logits", "F32 2x10"},
      {"loss", "F32"}}},
    {RESNET50,
     2 * 161 + 2 * 159 + 5,
     {{"layer1.0.conv3.weight", "F32 16x4x1x1"},
      {"grad/layer4.2.conv2.weight", "F32 32x32x3x3"},
      {"after/layer3.5.bn3.running_mean", "F32 64"},
      {"mask/dropout", "U8 2x128"}}},
    /* Hugging Face: 28 parameters with the head tied; masks of embedding, and of attention and two branches per block */
    {GPT2,
     2 * 28 + 4 + 7,
     {{"transformer.wte.weight", "F32 50x24"},
      {"transformer.wpe.weight", "F32 16x24"},
      {"transformer.h.0.attn.c_attn.weight", "F32 24x72"},
      {"grad/transformer.h.1.mlp.c_fc.weight", "F32 24x96"},
      {"transformer.h.1.mlp.c_proj.weight", "F32 96x24"},
      {"transformer.h.1.mlp.c_proj.bias", "F32 24"},
      {"transformer.ln_f.weight", "F32 24"},
      {"input", "I64 2x7"},
      {"target", "I64 2x7"},
      {"logits", "F32 2x7x50"},
      {"mask/drop", "U8 2x7x24"},
      {"mask/h.0.attn.attn_dropout", "U8 2x3x7x7"},
      {"mask/h.1.mlp.c_proj", "U8 2x7x24"}}},
    {MLP, 2 * 6 + 4 + 2, {{"fc1.weight", "F32 12x8"}, {"mask/fc2", "U8 6x12"}, {"logits", "F32 6x5"}}},
    /* Mixed precision: master weights and their gradients, BatchNorm and the loss as without; logits as the loss takes them */
    {RESNET18 " --amp bf16",
     2 * 62 + 2 * 60 + 4,
     {{"conv1.weight", "F32 8x3x7x7"},
      {"grad/conv1.weight", "F32 8x3x7x7"},
      {"after/layer4.1.bn2.running_var", "F32 64"},
      {"input", "F32 2x3x64x64"},
      {"logits", "BF16 2x10"},
      {"loss", "F32"}}},
    {GPT2 " --amp fp16",
     2 * 28 + 4 + 7,
     {{"transformer.wte.weight", "F32 50x24"},
      {"grad/transformer.h.1.mlp.c_fc.weight", "F32 24x96"},
      {"mask/h.0.attn.attn_dropout", "U8 2x3x7x7"},
      {"logits", "F16 2x7x50"}}},
    {MLP " --amp bf16 --no-fusion", 2 * 6 + 4 + 2, {{"grad/fc1.weight", "F32 12x8"}, {"logits", "F32 6x5"}}},
    {MLP " --amp fp16 --device ref", 2 * 6 + 4 + 2, {{"fc1.weight", "F64 12x8"}, {"logits", "F16 6x5"}, {"loss", "F64"}}},
};

Test(dump, structure)
{
	for (size_t i = 0; i < sizeof structures / sizeof *structures; i++) {
		char *command = ck_text("ck dump %s --out a --quiet", structures[i].model);
		outcome o = run_well(command);
		ck_safetensors f = read_file(&o, "a");
		cr_expect(f.n == structures[i].n, "%s: %d tensors, not %d", command, f.n, structures[i].n);
		cr_expect(f.data % 64 == 0 && !*o.out, "%s: %s", command, o.out);
		const char *amp = strstr(command, " --amp ");
		char *says = ck_text("\"amp\":\"%.*s\"", amp ? 4 : 3, amp ? amp + strlen(" --amp ") : "off");
		cr_expect(strstr(f.file + 8, "\"schema\":\"ckbench-step/1\"") && strstr(f.file + 8, "\"plan\":\"none\"") &&
			      strstr(f.file + 8, says),
			  "%s", command);
		free(says);
		for (int k = 0; structures[i].has[k].name; k++) {
			const ck_safetensor *t = tensor(&f, structures[i].has[k].name);
			char *form = ck_safetensor_text(t->dtype, t->nd, t->d);
			cr_expect_str_eq(form, structures[i].has[k].form, "%s: %s is %s", command, t->name, form);
			cr_expect(t->at % t->each == 0);
			free(form);
		}
		ck_safetensors_free(&f);
		outcome_free(&o);
		free(command);
	}
}

/* Our own tensor (d0, d1, d2, d3) against the file's, whose extent i is ours axis[i]. */
static void expect_moved(const float *ours, ck_shape d, const int axis[4], const ck_safetensors *f, const char *name)
{
	const float *theirs = data(f, name);
	int64_t at[4], stride[4] = {0};
	for (int i = d.nd - 1, n = 1; i >= 0; n *= (int)d.d[axis[i--]])
		stride[axis[i]] = n;
	for (at[0] = 0; at[0] < d.d[0]; at[0]++)
		for (at[1] = 0; at[1] < d.d[1]; at[1]++)
			for (at[2] = 0; at[2] < (d.nd > 2 ? d.d[2] : 1); at[2]++)
				for (at[3] = 0; at[3] < (d.nd > 3 ? d.d[3] : 1); at[3]++, ours++) {
					int64_t e = 0;
					for (int i = 0; i < d.nd; i++)
						e += at[i] * stride[i];
					cr_assert(memcmp(ours, &theirs[e], sizeof *ours) == 0,
						  "'%s': element %lld is %g, not %g", name, (long long)e, (double)theirs[e],
						  (double)*ours);
				}
}

/* Weights, batch and gradients of a step that the library makes, element by element at their places in the file. */
Test(dump, layout)
{
	static const struct {
		const char *model, *value, *name;
		bool gradient;
		int axis[4];
	} cases[] = {
	    {RESNET18, "x", "input", false, {0, 3, 1, 2}},
	    {RESNET18, "layer1.0.conv1.weight", "layer1.0.conv1.weight", false, {0, 3, 1, 2}},
	    {RESNET18, "conv1.weight", "grad/conv1.weight", true, {0, 3, 1, 2}},
	    {RESNET18, "fc.weight", "grad/fc.weight", true, {0, 1}},
	    {GPT2, "h.0.attn.c_attn.weight", "transformer.h.0.attn.c_attn.weight", false, {1, 0}},
	    {GPT2, "h.1.mlp.c_proj.weight", "grad/transformer.h.1.mlp.c_proj.weight", true, {1, 0}},
	    {GPT2, "wte.weight", "grad/transformer.wte.weight", true, {0, 1}},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char *command = ck_text("ck dump %s --threads 1 --seed 5 --out a", cases[i].model);
		outcome o = run_well(command);
		ck_safetensors f = read_file(&o, "a");
		bench b = bench_open_model(cases[i].model, "cpu", 1, 5);
		ck_schedule s = bench_plan(&b, "none");
		ck_program *p = bench_program(&b, &s);
		ck_outcome done = bench_outcome(&b, p);
		ck_value v = ck_graph_value(b.graph, cases[i].value);
		expect_moved(cases[i].gradient ? ck_program_gradient(p, &b.memory, v) : ck_program_value(p, &b.memory, v),
			     b.graph->values[v].shape, cases[i].axis, &f, cases[i].name);
		ck_outcome_free(&done);
		ck_program_free(p);
		ck_schedule_free(&s);
		bench_close(&b);
		ck_safetensors_free(&f);
		outcome_free(&o);
		free(command);
	}
}

/* The loss is the cross-entropy of the logits, and BatchNorm has counted one step. */
static void check_one_step(const char *amp, ck_dtype t)
{
	char *command = ck_text("ck dump " RESNET18 " --amp %s --out a", amp);
	outcome o = run_well(command);
	ck_safetensors f = read_file(&o, "a");
	const void *logits = data(&f, "logits");
	const int64_t *target = data(&f, "target");
	double loss = 0;
	for (int n = 0; n < 2; n++) {
		double sum = 0;
		for (int c = 0; c < 10; c++)
			sum += exp(ck_element_get(t, logits, 10 * n + c));
		loss += (log(sum) - ck_element_get(t, logits, 10 * n + target[n])) / 2;
	}
	double said = (double)*(float *)data(&f, "loss");
	cr_expect(fabs(loss - said) < 1e-6 * said, "%s: loss %.9g, of the logits %.9g", command, said, loss);
	cr_expect(*(int64_t *)data(&f, "bn1.num_batches_tracked") == 0);
	cr_expect(*(int64_t *)data(&f, "after/bn1.num_batches_tracked") == 1);
	cr_expect(*(float *)data(&f, "bn1.running_var") == 1 && *(float *)data(&f, "after/bn1.running_var") != 1);
	ck_safetensors_free(&f);
	outcome_free(&o);
	free(command);
}

Test(dump, is_one_step)
{
	check_one_step("off", CK_F32);
	check_one_step("bf16", CK_BF16);
	check_one_step("fp16", CK_F16);
}

/* ---- sameness ------------------------------------------------------------------------------------------------------------ */

static const char *const models[] = {
    MLP,
    RESNET50,
    GPT2,
    "mlp:layers=3,width=12,inputs=8,activation=gelu,batch=6,dropout=0.4",
    GPT2 " --no-fusion",
    MLP " --device ref",
    GPT2 " --device ref",
    "cnn:depth=11,width=4,image=32,batch=2,dropout=0.3",
    MLP " --amp bf16",
    RESNET50 " --amp fp16",
    GPT2 " --amp bf16",
    GPT2 " --amp fp16 --device ref",
};
enum { MODELS = sizeof models / sizeof *models };

static void compare_after(const char *command)
{
	outcome o = run_well(command);
	ck_safetensors a = read_file(&o, "a"), b = read_file(&o, "b");
	expect_same(&a, &b, command);
	ck_safetensors_free(&a);
	ck_safetensors_free(&b);
	outcome_free(&o);
}

Test(dump, plans_leave_the_same)
{
	for (int i = 0; i < MODELS; i++) {
		char *command = ck_text("ck dump %s --out a && ck dump %s --plans uniform:2 --out b", models[i], models[i]);
		compare_after(command);
		free(command);
	}
}

/* Another seed draws other weights, batch and masks, so that what is the same came from the file. */
Test(dump, takes_back_what_it_wrote)
{
	for (int i = 0; i < MODELS; i++) {
		char *command = ck_text("ck dump %s --out a && ck dump %s --seed 9 --load a --plans uniform:2 --out b",
					models[i], models[i]);
		compare_after(command);
		free(command);
	}
}

/* Masks are written as a running generator drew them: taken as given, by the counter, they give the same step. */
Test(dump, takes_back_the_masks_of_a_running_generator)
{
	compare_after("ck dump " GPT2 " --rng stateful --plans uniform:2 --out a && ck dump " GPT2 " --load a --out b");
	compare_after("ck dump " MLP " --rng stateful --device ref --out a && ck dump " MLP " --device ref --load a --out b");
}

/* A step starts from the file of any precision: there and back again through another's file, it is as it was. */
Test(dump, takes_the_file_of_another_precision)
{
	static const char *const mixed[] = {MLP, RESNET50, GPT2, GPT2 " --device ref"};
	static const char *const amps[] = {"bf16", "fp16"};
	for (size_t i = 0; i < sizeof mixed / sizeof *mixed; i++)
		for (size_t k = 0; k < sizeof amps / sizeof *amps; k++) {
			const char *m = mixed[i];
			char *command = ck_text("ck dump %s --out a && ck dump %s --amp %s --load a --out c && "
						"ck dump %s --seed 9 --load c --out b && ! cmp -s a c",
						m, m, amps[k], m);
			compare_after(command);
			free(command);
			command = ck_text("ck dump %s --amp %s --out a && ck dump %s --load a --out c && "
					  "ck dump %s --seed 9 --amp %s --load c --out b",
					  m, amps[k], m, m, amps[k]);
			compare_after(command);
			free(command);
		}
}

/* With every unit of the last hidden layer dropped, the logits are the last bias and nothing before it has a gradient. */
static void check_all_dropped(const char *device, size_t real)
{
	char *command = ck_text("ck dump " MLP " --device %s --out a", device);
	outcome o = run_well(command);
	ck_safetensors f = read_file(&o, "a");
	memset(data(&f, "mask/fc2"), 0, tensor(&f, "mask/fc2")->bytes);
	write_file(&o, "a", &f);
	ck_safetensors_free(&f);
	free(command);
	command = ck_text("ck dump " MLP " --device %s --load a --out b", device);
	run_again(&o, command);
	cr_assert(o.status == 0, "%s: %s", command, o.err);
	f = read_file(&o, "b");
	const char *bias = data(&f, "fc3.bias"), *gradient = data(&f, "grad/fc1.weight");
	for (size_t n = 0; n < 6; n++)
		cr_expect(memcmp((char *)data(&f, "logits") + n * 5 * real, bias, 5 * real) == 0, "%s: row %zu", command, n);
	for (size_t i = 0; i < tensor(&f, "grad/fc1.weight")->bytes; i++)
		cr_assert((gradient[i] & 0x7f) == 0, "%s: a gradient came through", command); /* -0 is 0 */
	ck_safetensors_free(&f);
	outcome_free(&o);
	free(command);
}

Test(dump, masks_are_taken)
{
	check_all_dropped("cpu", sizeof(float));
	check_all_dropped("ref", sizeof(double));
}

/* ---- refusals ------------------------------------------------------------------------------------------------------------ */

#define LOADS(model) "; ck dump " model " --load a --out b"

/* `a` is a good file of MLP before each command. */
static const struct {
	const char *command;
	int status;
	const char *thing, *remedy;
} refusals[] = {
    {"ck dump " MLP, 2, "needs a file", "--out"},
    {"ck dump " MLP " --out a", 2, "a exists already", "--force"},
    {"ck dump " MLP " --out no/b", 3, "no/b", "make its folder first"},
    {"ck dump " MLP " --out /dev/full", 3, "/dev/full: No space left", "free some space"},
    {"ck dump " MLP " --out b --plans uniform:1,uniform:2", 2, "one plan", "uniform:4"},
    {"ck dump " MLP " --out b --plans magic", 2, "'magic'", "uniform:K"},
    {"ck dump " MLP " --out b --load a --data digits", 2, "--load and --data", "leave one out"},
    {"ck dump " MLP " --out b --load c", 2, "'c'", "check the name"},
    {"echo hello, all of you >a" LOADS(MLP), 2, "'a' is no safetensors file", "get it anew"},
    {"head -c 200 a >c; mv c a" LOADS(MLP), 2, "cut short", "get it anew"},
    {"head -c -1 a >c; mv c a" LOADS(MLP), 2, "cut short", "get it anew"},
    {"echo >>a" LOADS(MLP), 2, "1 bytes at its end", "get it anew"},
    {"sed -i s/fc3/fc4/ a" LOADS(MLP), 2, "lacks the tensor 'fc3.", "the same model"},
    {":" LOADS(MLP_WITH("layers=4,batch=6,dropout=0.4")), 2, "'fc3.weight' is F32 5x12, but this case needs F32 12x12",
     "the same model"},
    {":" LOADS(MLP_WITH("layers=2,batch=6,dropout=0.4")), 2, "fc2.weight' is F32 12x12, but this case needs F32 5x12",
     "the same model"},
    {":" LOADS(MLP_WITH("layers=3,batch=6")), 2, "'mask/fc1', which this case has not", "the same model"},
    {":" LOADS(MLP_WITH("layers=3,batch=7,dropout=0.4")), 2, "'input' is F32 6x8", "F32 7x8"},
    {":" LOADS(MLP " --device ref"), 2, "is F32 6x8, but this case needs F64 6x8", "device"},
    {":" LOADS("gpt-tiny"), 2, "'input' is F32 6x8, but this case needs I64 2x16", "the same model"},
};

Test(dump, refusals)
{
	for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
		outcome o = run_well("ck dump " MLP " --out a");
		run_again(&o, refusals[i].command);
		const char *command = refusals[i].command;
		cr_expect(o.status == refusals[i].status, "%s: exit status %d: %s", command, o.status, o.err);
		cr_expect(strstr(o.err, refusals[i].thing) && strstr(o.err, refusals[i].remedy),
			  "%s: no '%s' or no '%s' in: %s", command, refusals[i].thing, refusals[i].remedy, o.err);
		cr_expect_str_eq(o.files, "a ", "%s: left behind: %s", command, o.files);
		outcome_free(&o);
	}
}

/* Numbers that would lead astray: a class or a token that there is not, a mask that is neither kept nor dropped. */
Test(dump, refuses_numbers_out_of_range)
{
	static const struct {
		const char *model, *tensor;
		int64_t number;
		const char *says;
	} cases[] = {
	    {MLP, "target", 5, "'target' holds 5 where 0 to 4"},
	    {MLP, "target", -1, "'target' holds -1"},
	    {GPT2, "input", INT64_C(1) << 32, "'input' holds 4294967296 where 0 to 49"},
	    {MLP, "mask/fc1", 2, "'mask/fc1' holds 2 where 0 to 1"},
	    {RESNET18, "bn1.num_batches_tracked", INT32_MAX, "'bn1.num_batches_tracked' holds 2147483647"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char *command = ck_text("ck dump %s --out a", cases[i].model);
		outcome o = run_well(command);
		ck_safetensors f = read_file(&o, "a");
		const ck_safetensor *t = tensor(&f, cases[i].tensor);
		memcpy((char *)ck_safetensors_data(&f, t) + t->bytes - t->each, &cases[i].number, t->each);
		write_file(&o, "a", &f);
		free(command);
		command = ck_text("ck dump %s --load a --out b", cases[i].model);
		run_again(&o, command);
		cr_expect(o.status == 2 && strstr(o.err, cases[i].says), "%s: %d, no '%s' in: %s", command, o.status,
			  cases[i].says, o.err);
		cr_expect_str_eq(o.files, "a ", "%s: left behind: %s", command, o.files);
		ck_safetensors_free(&f);
		outcome_free(&o);
		free(command);
	}
}
