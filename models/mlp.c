/* mlp: linear layers of one width, an activation function and dropout between them.
 *
 *     x (batch, inputs) ─▶ fc1 ─▶ act ─▶ dropout ─▶ fc2 ─▶ … ─▶ fcL ─▶ logits (batch, classes)
 */
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
    {.name = NULL},
};

static ck_value build(const ck_settings *s, ck_graph *g)
{
	int64_t layers = ck__whole(s, "layers"), batch = ck__whole(s, "batch"), classes = ck__whole(s, "classes");
	int64_t width = ck__whole(s, "width");
	ck_act act = activations[ck__whole(s, "activation")];

	ck_value x = ck_input(g, "x", ck_dims(2, batch, ck__whole(s, "inputs")), s->options.input_grad);
	ck_value target = ck_input_int(g, "target", ck_dims(1, batch), classes);
	for (int i = 1; i < layers; i++) {
		x = ck__linear(g, ck__name("fc%d", i).text, x, width);
		x = ck_activation(g, ck__name("fc%d.act", i).text, x, act);
		x = ck__dropout(g, ck__name("fc%d.dropout", i).text, x, s);
	}
	x = ck__linear(g, ck__name("fc%d", (int)layers).text, x, classes);
	return ck_cross_entropy(g, "loss", x, target);
}

const ck_model ck_model_mlp = {
    .name = "mlp",
    .summary = "linear layers of one width",
    .settings = settings,
    .build = build,
};
