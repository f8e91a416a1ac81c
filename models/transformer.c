/* transformer: GPT-2 (Radford et al., "Language models are unsupervised multitask learners", 2019): pre-norm blocks, learned
 * positions, the head's weight tied to the token embedding.
 *
 *     ids (B, T) ─▶ wte + wpe ─▶ dropout ─▶ block × layers ─▶ ln_f ─▶ lm_head ─▶ logits (B, T, vocab)
 *
 *     block:  x ─┬─▶ ln_1 ─▶ (tally) ─▶ attn ─▶ dropout ─▶ + ─┬─▶ ln_2 ─▶ mlp ─▶ dropout ─▶ + ─▶
 *                └────────────────────────────────────────┘  └──────────────────────────┘
 *
 * Names are those of Hugging Face's GPT2LMHeadModel without the leading "transformer.". Weights of linear layers are (out, in)
 * here and (in, out) there (its Conv1D); attn.c_attn holds q, k, v side by side in both. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "models/layers.h"

static const ck_setting settings[] = {
    {.name = "layers", .help = "blocks", .preset = "6", .least = 1, .most = 100000},
    {.name = "width", .help = "features of a token", .preset = "128", .least = 1, .most = 1 << 20},
    {.name = "heads", .help = "attention heads; divides width", .preset = "4", .least = 1, .most = 1 << 20},
    {.name = "seq", .help = "tokens of an example", .preset = "64", .least = 1, .most = 1 << 20},
    {.name = "positions", .help = "rows of the position table; 0: as many as seq", .preset = "0", .most = 1 << 20},
    {.name = "vocab", .alias = "classes", .help = "distinct tokens", .preset = "256", .least = 1, .most = 1 << 24},
    {.name = "dropout",
     .help = "drop probability: embeddings, attention, branches",
     .preset = "0",
     .most = 0.99,
     .fraction = true},
    {.name = "batch", .help = "examples of a step", .preset = "8", .least = 1, .most = 1 << 24},
    {.name = "tally",
     .help = "1: a counter of the largest feature, after each block's first norm",
     .preset = "0",
     .most = 1,
     .rare = true},
    CK__SETTING_FREEZE,
    {.name = NULL},
};

/* GPT-2 starts weights with this deviation; projections back into the residual stream are scaled down by the square root of
 * how many of them add up there, so that the stream's variance does not grow with depth. */
static const double deviation = 0.02;

static double residual_deviation(const ck_settings *s)
{
	return deviation / sqrt(2 * ck_setting_number(s, "layers"));
}

/* x (B, T, C) -> (B, T, C) */
static ck_value attention(const ck_settings *s, ck_graph *g, int i, ck_value x)
{
	int heads = (int)ck__whole(s, "heads");
	int64_t width = ck__whole(s, "width");
	ck_value qkv = ck__linear_normal(g, ck__name("h.%d.attn.c_attn", i).text, x, 3 * width, deviation); /* (B, T, 3C) */
	ck_value p = ck_scores(g, ck__name("h.%d.attn.scores", i).text, qkv, heads);                        /* (B, H, T, T) */
	p = ck_softmax(g, ck__name("h.%d.attn.softmax", i).text, p, true);
	p = ck__dropout(g, ck__name("h.%d.attn.attn_dropout", i).text, p, s);
	x = ck_weighted_sum(g, ck__name("h.%d.attn.weighted_sum", i).text, p, qkv, heads); /* (B, T, C) */
	x = ck__linear_normal(g, ck__name("h.%d.attn.c_proj", i).text, x, width, residual_deviation(s));
	return ck__dropout(g, ck__name("h.%d.attn.resid_dropout", i).text, x, s);
}

/* x (B, T, C) -> (B, T, C), through (B, T, 4C) */
static ck_value feed_forward(const ck_settings *s, ck_graph *g, int i, ck_value x)
{
	int64_t width = ck__whole(s, "width");
	x = ck__linear_normal(g, ck__name("h.%d.mlp.c_fc", i).text, x, 4 * width, deviation);
	x = ck_activation(g, ck__name("h.%d.mlp.act", i).text, x, CK_ACT_GELU_TANH);
	x = ck__linear_normal(g, ck__name("h.%d.mlp.c_proj", i).text, x, width, residual_deviation(s));
	return ck__dropout(g, ck__name("h.%d.mlp.dropout", i).text, x, s);
}

static ck_value block(const ck_settings *s, ck_graph *g, int i, ck_value x)
{
	ck_value branch = ck__layernorm(g, ck__name("h.%d.ln_1", i).text, x);
	branch = attention(s, g, i, ck__tally(g, ck__name("h.%d.tally", i).text, branch, s));
	x = ck_add(g, ck__name("h.%d.attn.add", i).text, x, branch);
	branch = feed_forward(s, g, i, ck__layernorm(g, ck__name("h.%d.ln_2", i).text, x));
	return ck_add(g, ck__name("h.%d.mlp.add", i).text, x, branch);
}

/* What no single op can see; a message once, in terms of the settings. */
static void check(const ck_settings *s, ck_graph *g)
{
	int64_t width = ck__whole(s, "width"), heads = ck__whole(s, "heads");
	int64_t seq = ck__whole(s, "seq"), positions = ck__whole(s, "positions");
	if (width % heads)
		ck_graph_error(
		    g, "transformer: width=%" PRId64 " is not a multiple of heads=%" PRId64 "; set heads to a divisor of width",
		    width, heads);
	if (positions && seq > positions)
		ck_graph_error(g,
			       "transformer: seq=%" PRId64 " tokens do not fit positions=%" PRId64 "; set positions=%" PRId64
			       " or more, or positions=0 for as many as needed",
			       seq, positions, seq);
}

static ck_value build(const ck_settings *s, ck_graph *g)
{
	check(s, g);
	int64_t batch = ck__whole(s, "batch"), seq = ck__whole(s, "seq"), width = ck__whole(s, "width");
	int64_t vocab = ck__whole(s, "vocab"), positions = ck__whole(s, "positions");
	int layers = (int)ck__whole(s, "layers");
	const ck_init normal = {CK_INIT_NORMAL, deviation};

	ck_value ids = ck_input_int(g, "ids", ck_dims(2, batch, seq), vocab);
	ck_value target = ck_input_int(g, "target", ck_dims(2, batch, seq), vocab);
	ck_value wte = ck_param(g, "wte.weight", ck_dims(2, vocab, width), normal);
	ck_value wpe = ck_param(g, "wpe.weight", ck_dims(2, positions ? positions : seq, width), normal);

	ck_value x = ck_embedding(g, "embedding", ids, wte, wpe); /* (B, T, C) */
	x = ck__dropout(g, "drop", x, s);
	for (int i = 0; i < layers; i++)
		x = block(s, g, i, x);
	x = ck__layernorm(g, "ln_f", x);
	x = ck_linear(g, "lm_head", x, wte, CK_NONE); /* (B, T, vocab) */
	return ck_cross_entropy(g, "loss", x, target);
}

/* Hugging Face's Conv1D, which all linear layers of a block are there, has weights (in, out). The tied head is not named twice. */
static void usual(const ck_value_info *v, ck_usual *u)
{
	if (v->kind == CK_INPUT)
		return;
	snprintf(u->name, sizeof u->name, "transformer.%s", v->name);
	if (v->shape.nd == 2 && strstr(v->name, ".c_")) {
		u->axis[0] = 1;
		u->axis[1] = 0;
	}
}

const ck_model ck_model_transformer = {
    .name = "transformer",
    .summary = "GPT-2",
    .settings = settings,
    .build = build,
    .usual = usual,
};
