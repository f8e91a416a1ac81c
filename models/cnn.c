/* cnn: convolutional networks with BatchNorm, told apart by their depth.
 *
 *     18, 34            residual, basic blocks, ImageNet form      He et al., "Deep residual learning" (CVPR 2016)
 *     50, 101, 152      residual, bottlenecks, ImageNet form       the same; stride on the 3x3 convolution
 *     20, 32, 44, 56, 110   residual, basic blocks, three groups, for small images; the same, section 4.2
 *     11, 13, 16, 19    plain, no residuals: VGG with BatchNorm    Simonyan and Zisserman (ICLR 2015)
 *
 *     basic:       x ─┬─▶ conv1 ─▶ bn1 ─▶ relu ─▶ conv2 ─▶ bn2 ─▶ + ─▶ relu ─▶
 *                     └─▶ (downsample: 1x1 conv ─▶ bn) ───────────┘
 *     bottleneck:  the same with conv1 1x1, conv2 3x3, conv3 1x1 to four times the width
 *
 * Residual networks bear torchvision's names (layer1.0.conv1.weight). The plain ones bear those of the VGG release (conv1_1,
 * fc6) and end in its classic classifier of three linear layers over whatever map the five poolings leave; at image=224 that
 * is torchvision's vgg11_bn to the parameter. Activations are NHWC; fc6's columns are ordered accordingly. */
#include <inttypes.h>
#include <string.h>

#include "models/layers.h"

static const ck_setting settings[] = {
    {.name = "depth", .help = "18|34|50|101|152, 20|32|44|56|110, plain 11|13|16|19", .preset = "20", .least = 11, .most = 152},
    {.name = "width", .help = "channels of the first group", .preset = "16", .least = 1, .most = 1 << 16},
    {.name = "image", .help = "height and width of an image", .preset = "32", .least = 1, .most = 1 << 16},
    {.name = "channels", .help = "channels of an image", .preset = "3", .least = 1, .most = 1 << 16},
    {.name = "classes", .help = "outputs of the last layer", .preset = "10", .least = 1, .most = 1 << 24},
    {.name = "dropout", .help = "drop probability in the classifier", .preset = "0", .most = 0.99, .fraction = true},
    {.name = "batch", .help = "images of a step", .preset = "16", .least = 1, .most = 1 << 24},
    CK__SETTING_INPLACE,
    CK__SETTING_FREEZE,
    {.name = NULL},
};

enum { MAX_GROUPS = 5 };

typedef struct form {
	int depth;
	enum { BASIC, BOTTLENECK, PLAIN } block;
	bool small; /* for small images: a 3x3 stem and no pooling after it */
	int groups; /* width doubles and the image halves from one to the next */
	int blocks[MAX_GROUPS];
} form;

static const form forms[] = {
    {18, BASIC, false, 4, {2, 2, 2, 2}},
    {34, BASIC, false, 4, {3, 4, 6, 3}},
    {50, BOTTLENECK, false, 4, {3, 4, 6, 3}},
    {101, BOTTLENECK, false, 4, {3, 4, 23, 3}},
    {152, BOTTLENECK, false, 4, {3, 8, 36, 3}},
    {20, BASIC, true, 3, {3, 3, 3}},
    {32, BASIC, true, 3, {5, 5, 5}},
    {44, BASIC, true, 3, {7, 7, 7}},
    {56, BASIC, true, 3, {9, 9, 9}},
    {110, BASIC, true, 3, {18, 18, 18}},
    {11, PLAIN, true, 5, {1, 1, 2, 2, 2}},
    {13, PLAIN, true, 5, {2, 2, 2, 2, 2}},
    {16, PLAIN, true, 5, {2, 2, 3, 3, 3}},
    {19, PLAIN, true, 5, {2, 2, 4, 4, 4}},
};

/* NULL, with the error on the graph, when there is no network of this depth. */
static const form *find_form(const ck_settings *s, ck_graph *g)
{
	int64_t depth = ck__whole(s, "depth");
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
		if (forms[i].depth == depth)
			return &forms[i];
	ck_graph_error(g, "cnn: there is no network of depth=%" PRId64 "; depth takes %s", depth, settings[0].help);
	return NULL;
}

/* Convolution and BatchNorm; the latter's name is the former's with "bn" for "conv". */
static ck_value conv_bn(const ck_settings *s, ck_graph *g, const char *prefix, int i, ck_value x, int64_t out, int k,
			int stride)
{
	x = ck__conv(g, ck__name("%sconv%d", prefix, i).text, x, out, k, stride, false);
	return ck__batchnorm(g, ck__name("%sbn%d", prefix, i).text, x, s);
}

static ck_value conv_bn_relu(const ck_settings *s, ck_graph *g, const char *prefix, int i, ck_value x, int64_t out, int k,
			     int stride)
{
	x = conv_bn(s, g, prefix, i, x, out, k, stride);
	return ck__relu(g, ck__name("%srelu%d", prefix, i).text, x, s);
}

/* ---- residual ----------------------------------------------------------------------------------------------------------- */

/* What x becomes on its way around a block: itself where the shapes agree, else a 1x1 convolution and a BatchNorm. */
static ck_value shortcut(const ck_settings *s, ck_graph *g, const char *prefix, ck_value x, int64_t out, int stride)
{
	if (stride == 1 && ck_shape_of(g, x).d[3] == out)
		return x;
	x = ck__conv(g, ck__name("%sdownsample.0", prefix).text, x, out, 1, stride, false);
	return ck__batchnorm(g, ck__name("%sdownsample.1", prefix).text, x, s);
}

/* x (N, H, W, C) -> (N, H / stride, W / stride, width or 4 width). The shortcut comes first, so that the block's last BatchNorm
 * can add it in its own pass over memory. */
static ck_value residual_block(const ck_settings *s, ck_graph *g, const form *f, const char *prefix, ck_value x, int64_t width,
			       int stride)
{
	int last = f->block == BASIC ? 2 : 3;
	ck_value around = shortcut(s, g, prefix, x, f->block == BASIC ? width : 4 * width, stride);
	if (f->block == BASIC) {
		x = conv_bn_relu(s, g, prefix, 1, x, width, 3, stride);
		x = conv_bn(s, g, prefix, last, x, width, 3, 1);
	} else {
		x = conv_bn_relu(s, g, prefix, 1, x, width, 1, 1);
		x = conv_bn_relu(s, g, prefix, 2, x, width, 3, stride);
		x = conv_bn(s, g, prefix, last, x, 4 * width, 1, 1);
	}
	x = ck_add(g, ck__name("%sadd", prefix).text, x, around);
	return ck__relu(g, ck__name("%srelu%d", prefix, last).text, x, s);
}

/* x (N, H, W, C) -> logits (N, classes) */
static ck_value residual(const ck_settings *s, ck_graph *g, const form *f, ck_value x)
{
	int64_t width = ck__whole(s, "width");
	x = conv_bn_relu(s, g, "", 1, x, width, f->small ? 3 : 7, f->small ? 1 : 2);
	if (!f->small)
		x = ck_maxpool(g, "maxpool", x, 3, 2, 1);
	for (int i = 0; i < f->groups; i++)
		for (int k = 0; k < f->blocks[i]; k++) {
			ck__layer_name prefix = ck__name("layer%d.%d.", i + 1, k);
			x = residual_block(s, g, f, prefix.text, x, width << i, k == 0 && i > 0 ? 2 : 1);
		}
	ck_shape map = ck_shape_of(g, x);
	x = ck_avgpool(g, "avgpool", x, (int)map.d[1], (int)map.d[2], 1, 0); /* (N, 1, 1, C) */
	x = ck__dropout(g, "dropout", ck_flatten(g, "flatten", x), s);
	return ck__linear(g, "fc", x, ck__whole(s, "classes"));
}

/* ---- plain -------------------------------------------------------------------------------------------------------------- */

/* One of the two hidden layers of VGG's classifier. */
static ck_value hidden(const ck_settings *s, ck_graph *g, int i, ck_value x, int64_t out)
{
	x = ck__linear_normal(g, ck__name("fc%d", i).text, x, out, 0.01);
	x = ck__relu(g, ck__name("relu%d", i).text, x, s);
	return ck__dropout(g, ck__name("drop%d", i).text, x, s);
}

/* x (N, H, W, C) -> logits (N, classes) */
static ck_value plain(const ck_settings *s, ck_graph *g, const form *f, ck_value x)
{
	int64_t width = ck__whole(s, "width");
	if (ck__whole(s, "image") >> f->groups == 0)
		ck_graph_error(g,
			       "cnn: depth=%d halves the image %d times, image=%" PRId64 " is too small; set image=%d or more",
			       f->depth, f->groups, ck__whole(s, "image"), 1 << f->groups);
	for (int i = 1; i <= f->groups; i++) {
		for (int k = 1; k <= f->blocks[i - 1]; k++) {
			x = ck__conv(g, ck__name("conv%d_%d", i, k).text, x, width << (i < 4 ? i - 1 : 3), 3, 1, true);
			x = ck__batchnorm(g, ck__name("bn%d_%d", i, k).text, x, s);
			x = ck__relu(g, ck__name("relu%d_%d", i, k).text, x, s);
		}
		x = ck_maxpool(g, ck__name("pool%d", i).text, x, 2, 2, 0);
	}
	x = ck_flatten(g, "flatten", x);
	x = hidden(s, g, 6, x, 64 * width);
	x = hidden(s, g, 7, x, 64 * width);
	return ck__linear_normal(g, "fc8", x, ck__whole(s, "classes"), 0.01);
}

static ck_value build(const ck_settings *s, ck_graph *g)
{
	int64_t batch = ck__whole(s, "batch"), image = ck__whole(s, "image"), classes = ck__whole(s, "classes");
	const form *f = find_form(s, g);
	if (!f)
		return CK_NONE;
	ck_value x = ck_input(g, "x", ck_dims(4, batch, image, image, ck__whole(s, "channels")), s->options.input_grad);
	ck_value target = ck_input_int(g, "target", ck_dims(1, batch), classes);
	x = f->block == PLAIN ? plain(s, g, f, x) : residual(s, g, f, x);
	return ck_cross_entropy(g, "loss", x, target);
}

/* PyTorch: images (N, C, H, W), convolution weights (out, in, k, k). fc6's columns stay in the order of our map, (H, W, C). */
static void usual(const ck_value_info *v, ck_usual *u)
{
	static const int channels_first[CK_MAX_DIMS] = {0, 3, 1, 2};
	if (v->shape.nd == 4)
		memcpy(u->axis, channels_first, sizeof u->axis);
}

const ck_model ck_model_cnn = {
    .name = "cnn",
    .summary = "residual networks and VGG, with BatchNorm",
    .settings = settings,
    .build = build,
    .usual = usual,
};
