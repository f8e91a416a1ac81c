/* mlp: linear layers of one width, an activation function and dropout between them.
 *
 *     x (batch, inputs) ─▶ fc1 ─▶ act ─▶ (tally) ─▶ dropout ─▶ fc2 ─▶ … ─▶ fcL ─▶ logits (batch, classes)
 */
#include <inttypes.h>

#include "models/layers.h"

/* In the order of the words of the setting `activation`. */
static const ck_act activations[] = {CK_ACT_RELU, CK_ACT_GELU_TANH, CK_ACT_GELU_ERF};

static const ck_setting settings[] = {
    {.name = "layers", .help = "linear layers", .preset = "16", .least = 1, .most = 100000},
    {.name = "width", .help = "outputs of every layer but the last", .preset = "256", .least = 1, .most = 1 << 20},
    {.name = "inputs", .help = "features of an example", .preset = "64", .least = 1, .most = 1 << 24},
    {.name = "classes", .help = "outputs of the last layer", .preset = "10", .least = 1, .most = 1 << 24},
    {.name = "activation", .help = "function between the layers", .preset = "relu", .words = "relu|gelu|gelu-erf"},
    {.name = "dropout",
     .help = "drop probability after every activation function",
     .preset = "0",
     .most = 0.99,
     .fraction = true},
    {.name = "batch", .help = "examples of a step", .preset = "512", .least = 1, .most = 1 << 24},
    {.name = "tally",
     .help = "1: a counter of the largest feature, after the first activation",
     .preset = "0",
     .most = 1,
     .rare = true},
    CK__SETTING_INPLACE,
    CK__SETTING_FREEZE,
    {.name = NULL},
};

/* Settings that would do nothing, or cannot be. */
static void check(const ck_settings *s, ck_graph *g, ck_act act)
{
	int64_t layers = ck__whole(s, "layers");
	if (ck__whole(s, "tally") && layers < 2)
		ck_graph_error(
		    g, "mlp: tally=1 counts after the first activation, and layers=%" PRId64 " has none; set layers=2 or more",
		    layers);
	if (ck__whole(s, "inplace") && act != CK_ACT_RELU)
		ck_graph_error(g, "mlp: inplace=1 is for ReLU, since GELU's backward reads its input; set activation=relu");
}

static ck_value hidden(const ck_settings *s, ck_graph *g, int i, ck_value x, ck_act act)
{
	x = ck__linear(g, ck__name("fc%d", i).text, x, ck__whole(s, "width"));
	ck__layer_name name = ck__name("fc%d.act", i);
	x = act == CK_ACT_RELU ? ck__relu(g, name.text, x, s) : ck_activation(g, name.text, x, act);
	if (i == 1)
		x = ck__tally(g, "fc1.tally", x, s);
	return ck__dropout(g, ck__name("fc%d.dropout", i).text, x, s);
}

static ck_value build(const ck_settings *s, ck_graph *g)
{
	int64_t layers = ck__whole(s, "layers"), batch = ck__whole(s, "batch"), classes = ck__whole(s, "classes");
	ck_act act = activations[ck__whole(s, "activation")];

	check(s, g, act);
	ck_value x = ck_input(g, "x", ck_dims(2, batch, ck__whole(s, "inputs")), s->options.input_grad);
	ck_value target = ck_input_int(g, "target", ck_dims(1, batch), classes);
	for (int i = 1; i < layers; i++)
		x = hidden(s, g, i, x, act);
	x = ck__linear(g, ck__name("fc%d", (int)layers).text, x, classes);
	return ck_cross_entropy(g, "loss", x, target);
}

const ck_model ck_model_mlp = {
    .name = "mlp",
    .summary = "linear layers of one width",
    .settings = settings,
    .build = build,
};
