/* Layers: an op together with the parameters that it owns, named and started as the usual frameworks do. What every model
 * is put together from; a parameter goes by its layer's name and its own ("fc.weight", "fc.bias").
 *
 * Shapes: linear weights are (out, in), convolution weights (out, k, k, in), all row-major. */
#ifndef CK_LAYERS_H
#define CK_LAYERS_H

#include "models/models.h"

/* A name, made as by printf; lives as long as the full expression that it stands in: ck__name("h.%d.ln_1", i).text */
typedef struct ck__layer_name {
	char text[64];
} ck__layer_name;
ck__layer_name ck__name(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* x(.., in) -> (.., out). Weight and bias uniform in +-1/sqrt(in), as torch.nn.Linear starts them. */
ck_value ck__linear(ck_graph *g, const char *name, ck_value x, int64_t out);
/* The same with a normal weight of the given standard deviation and a zero bias, as GPT-2 and VGG start them. */
ck_value ck__linear_normal(ck_graph *g, const char *name, ck_value x, int64_t out, double deviation);

/* x(N, H, W, in) -> (N, H', W', out), k odd, padded by k / 2. Weight normal with deviation sqrt(2 / (out k k)): He et al.,
 * "Delving deep into rectifiers" (ICCV 2015), fan-out. A bias, if any, starts at 0. */
ck_value ck__conv(ck_graph *g, const char *name, ck_value x, int64_t out, int k, int stride, bool bias);

/* BatchNorm over the last extent, from the batch's statistics while training, eps 1e-5, momentum 0.1. */
ck_value ck__batchnorm(ck_graph *g, const char *name, ck_value x, const ck_settings *s);

/* LayerNorm over the last extent, eps 1e-5. */
ck_value ck__layernorm(ck_graph *g, const char *name, ck_value x);

/* Dropout by the setting of that name; no op at all in evaluation or when it is 0. */
ck_value ck__dropout(ck_graph *g, const char *name, ck_value x, const ck_settings *s);

/* ReLU, over x itself by the setting "inplace", which the model's table must have. */
ck_value ck__relu(ck_graph *g, const char *name, ck_value x, const ck_settings *s);

/* A counter of each row's largest channel, with its buffers "load" (C) and "calls" (1); no op at all in evaluation or when the
 * setting "tally" is 0. */
ck_value ck__tally(ck_graph *g, const char *name, ck_value x, const ck_settings *s);

/* Rows of the models' tables that are the same in each. */
#define CK__SETTING_INPLACE                                                                                                    \
	{                                                                                                                      \
		.name = "inplace", .help = "1: every ReLU works in place, unfused", .preset = "0", .most = 1, .rare = true     \
	}
#define CK__SETTING_FREEZE                                                                                                     \
	{                                                                                                                      \
		.name = "freeze", .help = "layers, from the first on, whose parameters are not trained", .preset = "0",        \
		.most = 100000, .rare = true                                                                                   \
	}

/* A setting that is a whole number. */
int64_t ck__whole(const ck_settings *s, const char *name);

#endif
