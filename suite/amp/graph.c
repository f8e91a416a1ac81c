/* What mixed precision makes of a graph: which op works in which dtype (the lists of PyTorch's autocast), that the stages stay, that a weight
 * is cast once a step whatever the plan, and what memory it takes. No op is run but in the last test. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/alloc.h"
#include "suite/support.h"

static const ck_dtype lows[] = {CK_BF16, CK_F16};

static const char *const models[] = {"mlp:layers=4,activation=gelu,dropout=0.1",
				     "mlp:layers=1",
				     "mlp:layers=3,inplace=1,tally=1",
				     "resnet20:dropout=0.1",
				     "resnet50",
				     "vgg11:dropout=0.1",
				     "transformer:layers=2,width=32,heads=2,seq=16,vocab=64,batch=2",
				     "transformer:layers=2,width=32,heads=2,seq=16,vocab=64,batch=2,dropout=0.1"};
enum { MODELS = sizeof models / sizeof *models };

static ck_graph *built(const char *model, ck_dtype low, bool no_fusion)
{
	ck_err err = {""};
	ck_settings s = {0};
	ck_graph *g = NULL;
	cr_assert(ck_settings_read(&s, model, &err) == CK_OK, "%s: %s", model, err.text);
	s.options = (ck_build_options){.low = low, .no_fusion = no_fusion};
	cr_assert(ck_model_build(&s, CK_F32, &g, &err) == CK_OK, "%s: %s", model, err.text);
	return g;
}

/* ---- which dtype --------------------------------------------------------------------------------------------------------- */

/* What an op must be given, and what it must give, by input. 'h': 16-bit. 'r': float32. 'i': integers. 's': as the first input.
 * '=': either. '+' (out): 16-bit if all inputs are. The lists are those of PyTorch's manual, "Autocast Op Reference", as far as we
 * have their ops: linear, conv2d, matmul (both of attention) in 16 bits; layer_norm, softmax, cross_entropy in float32; all
 * else takes what it is given, sums the wider of two. BatchNorm's own tensors are float32 there too (cudnn_batch_norm), and an
 * embedding reads the parameter itself. Biases stay float32, where PyTorch casts them too: they are added in float32. */
static const struct {
	ck_op_kind kind;
	const char *in, *out;
} lists[] = {
    {CK_LINEAR, "hhr", "h"}, {CK_CONV2D, "hhr", "h"}, {CK_BATCHNORM, "=rrrri", "s"}, {CK_LAYERNORM, "rrr", "r"},
    {CK_ACT, "=", "s"},      {CK_SCORES, "h", "h"},   {CK_SOFTMAX, "r", "r"},        {CK_WSUM, "hh", "h"},
    {CK_DROPOUT, "=", "s"},  {CK_ADD, "==", "+"},     {CK_EMBEDDING, "irr", "r"},    {CK_MAXPOOL, "=", "s"},
    {CK_AVGPOOL, "=", "s"},  {CK_FLATTEN, "=", "s"},  {CK_XENT, "ri", "r"},          {CK_TALLY, "=ii", "s"},
};

static bool fits(char want, ck_dtype t, ck_dtype low, const ck_op_desc *d)
{
	bool all_low = true;
	for (int i = 0; i < d->nin; i++)
		all_low = all_low && d->in[i].dtype == low;
	switch (want) {
	case 'h':
		return t == low;
	case 'r':
		return t == CK_F32;
	case 'i':
		return t == CK_I32;
	case 's':
		return t == d->in[0].dtype;
	case '+':
		return t == (all_low ? low : CK_F32);
	default:
		return t == CK_F32 || t == low;
	}
}

static void check_op(const char *model, const ck_graph *g, const ck_op_info *op)
{
	const ck_op_desc *d = &op->desc;
	for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
		if (lists[k].kind != d->kind)
			continue;
		for (int i = 0; i < d->nin; i++)
			cr_expect(fits(lists[k].in[i], g->values[op->in[i]].dtype, g->low, d), "%s: '%s' takes '%s' in %s",
				  model, op->name, g->values[op->in[i]].name, ck_dtype_name(g->values[op->in[i]].dtype));
		cr_expect(fits(lists[k].out[0], g->values[op->out[0]].dtype, g->low, d), "%s: '%s' gives %s", model, op->name,
			  ck_dtype_name(g->values[op->out[0]].dtype));
		return;
	}
	cr_expect(d->kind == CK_CAST, "%s: '%s' is of a kind that is in no list", model, op->name);
}

Test(graph, ops_are_in_autocasts_lists)
{
	for (int m = 0; m < MODELS; m++)
		for (int k = 0; k < 2; k++) {
			ck_graph *g = built(models[m], lows[k], true);
			for (int o = 0; o < g->nops; o++)
				check_op(models[m], g, &g->ops[o]);
			ck_graph_free(g);
		}
}

/* As built by default, fused. */
static const struct {
	const char *model, *value;
	ck_kind kind;
	ck_dtype dtype;
} known[] = {
    {"mlp:activation=gelu", "x", CK_INPUT, CK_F32},
    {"mlp:activation=gelu", "x:bf16", CK_ACTIVATION, CK_BF16},
    {"mlp:activation=gelu", "fc1.weight", CK_PARAM, CK_F32},
    {"mlp:activation=gelu", "fc1.weight:bf16", CK_WEIGHT_COPY, CK_BF16},
    {"mlp:activation=gelu", "fc1.bias", CK_PARAM, CK_F32},
    {"mlp:activation=gelu", "fc1", CK_ACTIVATION, CK_BF16},
    {"mlp:activation=gelu", "fc1:z", CK_STASH, CK_BF16},
    {"mlp:activation=gelu", "loss:lse", CK_STASH, CK_F32},
    {"mlp:activation=gelu", "loss", CK_LOSS, CK_F32},
    {"resnet50", "bn1", CK_ACTIVATION, CK_BF16},
    {"resnet50", "bn1:mean", CK_STASH, CK_F32},
    {"resnet50", "bn1.running_var", CK_BUFFER, CK_F32},
    {"resnet50", "bn1.weight", CK_PARAM, CK_F32},
    {"resnet50", "maxpool", CK_ACTIVATION, CK_BF16},
    {"resnet50", "maxpool:at", CK_STASH, CK_U8},
    {"resnet50", "layer4.2.bn3", CK_ACTIVATION, CK_BF16}, /* the residual stream */
    {"resnet50", "layer1.0.downsample.0.weight:bf16", CK_WEIGHT_COPY, CK_BF16},
    {"resnet50", "fc", CK_ACTIVATION, CK_BF16},
    {"gpt-tiny:dropout=0.1", "embedding", CK_ACTIVATION, CK_F32},
    {"gpt-tiny:dropout=0.1", "wte.weight:bf16", CK_WEIGHT_COPY, CK_BF16},
    {"gpt-tiny:dropout=0.1", "h.0.ln_1", CK_ACTIVATION, CK_BF16},
    {"gpt-tiny:dropout=0.1", "h.0.ln_1:xhat", CK_STASH, CK_BF16},
    {"gpt-tiny:dropout=0.1", "h.0.ln_1:rstd", CK_STASH, CK_F32},
    {"gpt-tiny:dropout=0.1", "h.0.attn.c_attn", CK_ACTIVATION, CK_BF16},
    {"gpt-tiny:dropout=0.1", "h.0.attn.scores", CK_ACTIVATION, CK_BF16},
    {"gpt-tiny:dropout=0.1", "h.0.attn.softmax", CK_ACTIVATION, CK_BF16},
    {"gpt-tiny:dropout=0.1", "h.0.attn.attn_dropout", CK_ACTIVATION, CK_BF16},
    {"gpt-tiny:dropout=0.1", "h.0.attn.c_proj", CK_ACTIVATION, CK_F32}, /* the residual stream */
    {"gpt-tiny:dropout=0.1", "h.0.mlp.c_fc:z", CK_STASH, CK_BF16},
    {"gpt-tiny:dropout=0.1", "h.1.mlp.c_proj", CK_ACTIVATION, CK_F32},
    {"gpt-tiny:dropout=0.1", "lm_head", CK_ACTIVATION, CK_BF16},
};

Test(graph, names_and_dtypes)
{
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		ck_graph *g = built(known[i].model, CK_BF16, false);
		ck_value v = ck_graph_value(g, known[i].value);
		cr_expect(v != CK_NONE, "%s: there is no value '%s'", known[i].model, known[i].value);
		if (v != CK_NONE)
			cr_expect(g->values[v].kind == known[i].kind && g->values[v].dtype == known[i].dtype,
				  "%s: '%s' is a %s %s", known[i].model, known[i].value, ck_dtype_name(g->values[v].dtype),
				  ck_kind_name(g->values[v].kind));
		ck_graph_free(g);
	}
}

/* Fused, an op whose result only it would round before has no cast left; and none casts what is of that dtype already. */
Test(graph, casts_that_are_left)
{
	for (int m = 0; m < MODELS; m++) {
		ck_graph *g = built(models[m], CK_BF16, false);
		for (int o = 0; o < g->nops; o++) {
			const ck_op_info *op = &g->ops[o];
			if (op->desc.kind != CK_CAST)
				continue;
			ck_kind from = g->values[op->in[0]].kind;
			cr_expect(from == CK_PARAM || from == CK_INPUT, "%s: cast '%s', of a %s, is left", models[m], op->name,
				  ck_kind_name(from));
			cr_expect(op->desc.attr.weight == (from == CK_PARAM) && op->desc.in[0].dtype == CK_F32, "%s: cast '%s'",
				  models[m], op->name);
		}
		ck_graph_free(g);
	}
}

/* ---- stages -------------------------------------------------------------------------------------------------------------- */

static void expect_same_stages(const char *model, bool no_fusion)
{
	ck_graph *plain = built(model, CK_DTYPE_NONE, no_fusion);
	for (int k = 0; k < 2; k++) {
		ck_graph *g = built(model, lows[k], no_fusion);
		cr_assert(g->nstages == plain->nstages, "%s%s: %d stages, %d with mixed precision", model,
			  no_fusion ? " --no-fusion" : "", plain->nstages, g->nstages);
		for (int s = 0; s < g->nstages; s++)
			cr_expect(!strcmp(g->values[g->cut[s]].name, plain->values[plain->cut[s]].name),
				  "%s%s: stage %d begins with '%s', with mixed precision with '%s'", model,
				  no_fusion ? " --no-fusion" : "", s, plain->values[plain->cut[s]].name,
				  g->values[g->cut[s]].name);
		ck_graph_free(g);
	}
	ck_graph_free(plain);
}

Test(graph, stages_stay)
{
	for (int no_fusion = 0; no_fusion < 2; no_fusion++) {
		for (const ck_preset *p = ck_presets; p->name; p++)
			expect_same_stages(p->name, no_fusion);
		for (int m = 0; m < MODELS; m++)
			expect_same_stages(models[m], no_fusion);
		char **cases = read_list("parity.txt");
		for (int i = 0; cases[i]; i++)
			expect_same_stages(cases[i], no_fusion);
		free_list(cases);
	}
}

/* ---- copies of weights --------------------------------------------------------------------------------------------------- */

/* A weight that two linears share, and an input that two of them read, have one copy each. */
Test(graph, what_is_read_twice_is_cast_once)
{
	ck_graph *g = ck_graph_new(CK_F32);
	ck_graph_mix(g, CK_BF16);
	ck_value x = ck_input(g, "x", ck_dims(2, (int64_t)4, (int64_t)8), true),
		 target = ck_input_int(g, "t", ck_dims(1, (int64_t)4), 8);
	ck_value w = ck_param(g, "w", ck_dims(2, (int64_t)8, (int64_t)8), (ck_init){CK_INIT_NORMAL, 1});
	ck_value a = ck_linear(g, "a", x, w, CK_NONE), b = ck_linear(g, "b", x, w, CK_NONE),
		 c = ck_linear(g, "c", b, w, CK_NONE);
	ck_value loss = ck_cross_entropy(g, "loss", ck_add(g, "sum", a, c), target);
	ck_err err = {""};
	cr_assert(ck_graph_finish(g, loss, true, &err) == CK_OK, "%s", err.text);
	int casts = 0;
	for (int o = 0; o < g->nops; o++)
		casts += g->ops[o].desc.kind == CK_CAST;
	ck_value x_copy = ck_graph_value(g, "x:bf16"), w_copy = ck_graph_value(g, "w:bf16");
	cr_assert(casts == 2 && x_copy != CK_NONE && w_copy != CK_NONE, "%d casts", casts);
	cr_expect(g->values[x_copy].nreaders == 2 && g->values[w_copy].nreaders == 3, "%d read x's copy, %d that of w",
		  g->values[x_copy].nreaders, g->values[w_copy].nreaders);
	cr_expect(g->values[w].nreaders == 1 && g->values[w_copy].gradient_bytes == 2 * g->values[w_copy].bytes);
	ck_graph_free(g);
}

typedef struct copies {
	const ck_graph *g;
	const char *model;
	int plans;
} copies;

/* Each weight's copy is made once, counted as what it is, and held to its last use. */
static void check_copies(void *user, const char *plan)
{
	copies *c = user;
	const ck_graph *g = c->g;
	ck_err err = {""};
	ck_plan p;
	ck_schedule s;
	ck_trace t;
	cr_assert(ck_plan_read(g, plan, &p, &err) == CK_OK && ck_plan_make(g, &p, &s, &err) == CK_OK, "%s", err.text);
	cr_assert(ck_schedule_check(g, &s, (ck_workspaces){0}, &t, &err) == CK_OK, "%s %s: %s", c->model, plan, err.text);
	c->plans++;
	int *made = ck_alloc((size_t)g->nvalues, sizeof *made), *lives = ck_alloc((size_t)g->nvalues, sizeof *lives);
	for (int i = 0; i < s.n; i++)
		made[s.at[i].code == 'F' ? g->ops[s.at[i].id].out[0] : 0] += s.at[i].code == 'F';
	for (int i = 0; i < t.nlives; i++) {
		const ck_lifetime *l = &t.lives[i];
		bool copy = l->slot < g->nvalues && g->values[l->slot].kind == CK_WEIGHT_COPY;
		cr_expect(copy == (l->category == CK_MEM_WEIGHT_COPIES), "%s %s: a lifetime is counted as %s", c->model, plan,
			  ck_category_names[l->category]);
		lives[copy ? l->slot : 0] += copy;
		cr_expect(!copy || l->bytes == 2 * (size_t)ck_shape_count(g->values[l->slot].shape), "%s %s", c->model, plan);
	}
	for (int v = 0; v < g->nvalues; v++)
		if (g->values[v].kind == CK_WEIGHT_COPY)
			cr_expect(made[v] == 1 && lives[v] == 1, "%s %s: '%s' is made %d times, lives %d times", c->model, plan,
				  g->values[v].name, made[v], lives[v]);
	free(made);
	free(lives);
	ck_trace_free(&t);
	ck_schedule_free(&s);
}

Test(graph, weights_are_cast_once_a_step)
{
	for (int m = 0; m < MODELS; m++)
		for (int no_fusion = 0; no_fusion < 2; no_fusion++) {
			ck_graph *g = built(models[m], CK_BF16, no_fusion);
			copies c = {.g = g, .model = models[m]};
			bench_each_plan(g, check_copies, &c);
			cr_expect(c.plans > 1);
			ck_graph_free(g);
		}
}

/* ---- memory -------------------------------------------------------------------------------------------------------------- */

static ck_trace trace_of(const ck_graph *g, const char *plan)
{
	ck_err err = {""};
	ck_plan p;
	ck_schedule s;
	ck_trace t;
	cr_assert(ck_plan_read(g, plan, &p, &err) == CK_OK && ck_plan_make(g, &p, &s, &err) == CK_OK, "%s", err.text);
	cr_assert(ck_schedule_check(g, &s, (ck_workspaces){0}, &t, &err) == CK_OK, "%s", err.text);
	ck_schedule_free(&s);
	return t;
}

/* Activations and stashes at the peak of plan none, at most so many per cent of what float32 needs. Half would be all of it in 16
 * bits; the residual streams of gpt, the statistics and the places of max-pools stay as they are, while a real layer norm's input need
 * not be kept. */
Test(graph, memory_of_plan_none)
{
	static const struct {
		const char *model;
		double most;
	} cases[] = {{"gpt-char", 0.55}, {"gpt-char:dropout=0.1", 0.55}, {"gpt2", 0.55}, {"resnet50", 0.51}, {"vgg11", 0.54},
		     {"mlp", 0.51}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		size_t kept[2], copied[2];
		for (int k = 0; k < 2; k++) {
			ck_graph *g = built(cases[i].model, k ? CK_BF16 : CK_DTYPE_NONE, false);
			ck_trace t = trace_of(g, "none");
			kept[k] = t.peak_by_category[CK_MEM_ACTIVATIONS] + t.peak_by_category[CK_MEM_STASHES];
			copied[k] = t.peak_by_category[CK_MEM_WEIGHT_COPIES];
			ck_trace_free(&t);
			ck_graph_free(g);
		}
		double part = (double)kept[1] / (double)kept[0];
		if (getenv("CK_VERBOSE"))
			fprintf(stderr, "%s: activations and stashes %zu bytes, in float32 %zu: %.3f; copies %zu\n",
				cases[i].model, kept[1], kept[0], part, copied[1]);
		cr_expect(part <= cases[i].most && part > 0.3,
			  "ckbench sweep %s --amp bf16: activations and stashes are %.3f of float32's", cases[i].model, part);
		cr_expect(copied[0] == 0 && copied[1] > 0, "%s: %zu and %zu bytes of copies", cases[i].model, copied[0],
			  copied[1]);
	}
}

/* ---- fusion -------------------------------------------------------------------------------------------------------------- */

/* On the reference backend, which rounds where results are stored and nowhere else, fusion leaves the bits alone where the stored result is
 * a function of the rounded one that it takes the place of: ReLU keeps the order, so relu(round(x)) = round(relu(x)), and a cast to
 * float32 loses nothing. All else that is fused (GELU, dropout's scale, a residual) is then rounded once and not twice or three
 * times, and a layer norm's backward reads its rounded xhat: other bits, as close as rounding. */
static const struct {
	const char *model;
	bool same_loss, same_gradients;
} fused[] = {
    {"mlp:layers=4,width=17,inputs=5,classes=3,batch=5", true, true},
    {"vgg11:image=32,batch=2,classes=10,width=2", true, true},
    {"mlp:layers=4,width=17,inputs=5,classes=3,batch=5,activation=gelu", false, false},
    {"mlp:layers=4,width=17,inputs=5,classes=3,batch=5,dropout=0.1", false, false},
    {"resnet20:image=8,batch=4,width=4", false, false},
    {"transformer:layers=2,width=12,heads=3,seq=6,vocab=11,batch=2", false, false},
};

Test(graph, fusion_on_the_reference)
{
	for (size_t i = 0; i < sizeof fused / sizeof *fused; i++)
		for (int k = 0; k < 2; k++) {
			ck_outcome o[2];
			for (int no_fusion = 0; no_fusion < 2; no_fusion++) {
				bench b = bench_open_as(
				    fused[i].model, (ck_build_options){.low = lows[k], .no_fusion = no_fusion}, "ref", 1, 1);
				ck_schedule s = bench_plan(&b, "none");
				ck_program *p = bench_program(&b, &s);
				o[no_fusion] = bench_outcome(&b, p);
				ck_program_free(p);
				ck_schedule_free(&s);
				bench_close(&b);
			}
			const ck_digest *a = o[0].kind, *b = o[1].kind;
			bool gradients = !memcmp(&a[CK_DIGEST_GRADIENTS], &b[CK_DIGEST_GRADIENTS], sizeof *a);
			cr_expect((o[0].loss == o[1].loss) == fused[i].same_loss && gradients == fused[i].same_gradients,
				  "%s --device ref --amp %s: loss fused %.17g, not fused %.17g; gradients %s", fused[i].model,
				  k ? "fp16" : "bf16", o[0].loss, o[1].loss, gradients ? "the same" : "differ");
			cr_expect(o[0].loss - o[1].loss < 0.02 * o[0].loss && o[1].loss - o[0].loss < 0.02 * o[0].loss,
				  "%s: loss fused %.9g, not fused %.9g", fused[i].model, o[0].loss, o[1].loss);
			ck_outcome_free(&o[0]);
			ck_outcome_free(&o[1]);
		}
}
