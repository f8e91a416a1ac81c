#include "models/layers.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

static const ck_init zero = {CK_INIT_ZERO, 0}, one = {CK_INIT_ONE, 0};

ck__layer_name ck__name(const char *format, ...)
{
	ck__layer_name name;
	va_list args;
	va_start(args, format);
	vsnprintf(name.text, sizeof name.text, format, args);
	va_end(args);
	return name;
}

static ck_value param(ck_graph *g, const char *layer, const char *what, ck_shape shape, ck_init init)
{
	return ck_param(g, ck__name("%s.%s", layer, what).text, shape, init);
}

/* The last extent of x; 1 once an error stands, when all further building is moot. */
static int64_t features(const ck_graph *g, ck_value x)
{
	ck_shape s = ck_shape_of(g, x);
	return s.nd > 0 ? ck_shape_last(s) : 1;
}

static ck_value linear(ck_graph *g, const char *name, ck_value x, int64_t out, ck_init weight, ck_init bias)
{
	ck_value w = param(g, name, "weight", ck_dims(2, out, features(g, x)), weight); /* (out, in) */
	ck_value b = param(g, name, "bias", ck_dims(1, out), bias);                     /* (out) */
	return ck_linear(g, name, x, w, b);
}

ck_value ck__linear(ck_graph *g, const char *name, ck_value x, int64_t out)
{
	ck_init uniform = {CK_INIT_UNIFORM, 1 / sqrt((double)features(g, x))};
	return linear(g, name, x, out, uniform, uniform);
}

ck_value ck__linear_normal(ck_graph *g, const char *name, ck_value x, int64_t out, double deviation)
{
	return linear(g, name, x, out, (ck_init){CK_INIT_NORMAL, deviation}, zero);
}

ck_value ck__conv(ck_graph *g, const char *name, ck_value x, int64_t out, int k, int stride, bool bias)
{
	ck_init he = {CK_INIT_NORMAL, sqrt(2.0 / ((double)out * k * k))};
	ck_value w = param(g, name, "weight", ck_dims(4, out, (int64_t)k, (int64_t)k, features(g, x)), he);
	ck_value b = bias ? param(g, name, "bias", ck_dims(1, out), zero) : CK_NONE;
	return ck_conv2d(g, name, x, w, b, stride, k / 2, 1);
}

ck_value ck__batchnorm(ck_graph *g, const char *name, ck_value x, const ck_settings *s)
{
	bool training = !s->options.evaluation;
	if (training && x != CK_NONE && ck_shape_rows(ck_shape_of(g, x)) < 2)
		ck_graph_error(
		    g,
		    "%s: BatchNorm '%s' would take its statistics over a single value per channel, whose variance says "
		    "nothing; set batch=2 or more, or a larger image",
		    s->model->name, name);
	ck_shape channels = ck_dims(1, features(g, x)); /* (C) */
	ck_batchnorm_values v = {
	    .gamma = param(g, name, "weight", channels, one),
	    .beta = param(g, name, "bias", channels, zero),
	    .mean = ck_buffer(g, ck__name("%s.running_mean", name).text, g->real, channels, zero),
	    .var = ck_buffer(g, ck__name("%s.running_var", name).text, g->real, channels, one),
	    .count = ck_buffer(g, ck__name("%s.num_batches_tracked", name).text, CK_I32, ck_dims(1, INT64_C(1)), zero),
	};
	return ck_batchnorm(g, name, x, v, 1e-5, 0.1, training);
}

ck_value ck__layernorm(ck_graph *g, const char *name, ck_value x)
{
	ck_shape width = ck_dims(1, features(g, x)); /* (C) */
	return ck_layernorm(g, name, x, param(g, name, "weight", width, one), param(g, name, "bias", width, zero), 1e-5);
}

ck_value ck__dropout(ck_graph *g, const char *name, ck_value x, const ck_settings *s)
{
	return s->options.evaluation ? x : ck_dropout(g, name, x, ck_setting_number(s, "dropout"));
}

ck_value ck__relu(ck_graph *g, const char *name, ck_value x, const ck_settings *s)
{
	return ck__whole(s, "inplace") ? ck_activation_inplace(g, name, x, CK_ACT_RELU)
				       : ck_activation(g, name, x, CK_ACT_RELU);
}

ck_value ck__tally(ck_graph *g, const char *name, ck_value x, const ck_settings *s)
{
	if (s->options.evaluation || !ck__whole(s, "tally"))
		return x;
	ck_value load = ck_buffer(g, ck__name("%s.load", name).text, CK_I32, ck_dims(1, features(g, x)), zero);
	ck_value calls = ck_buffer(g, ck__name("%s.calls", name).text, CK_I32, ck_dims(1, INT64_C(1)), zero);
	return ck_tally(g, name, x, load, calls);
}

int64_t ck__whole(const ck_settings *s, const char *name)
{
	return (int64_t)ck_setting_number(s, name);
}
