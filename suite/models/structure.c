/* The models are the ones that they claim to be: parameter counts to the one, names, shapes, start values, dropout. */
#include "cases.h"

#include <math.h>
#include <string.h>

/* Counts are torchvision's (resnet, vgg11_bn) and Hugging Face's (gpt2) published ones; resnet20 and 56 have 1x1 convolutions
 * around the blocks that change the shape; the mlp's is counted by hand. */
Test(structure, parameter_counts)
{
	static const struct {
		const char *text;
		int64_t parameters;
		int stages; /* at least: blocks, layers */
	} cases[] = {
	    {"mlp:layers=1,inputs=7,classes=3", 7 * 3 + 3, 1},
	    {"mlp-wide", 7 * (1024 * 1024 + 1024) + 1024 * 1000 + 1000, 8},
	    {"resnet18", 11689512, 10},
	    {"resnet34", 21797672, 18},
	    {"resnet50", 25557032, 18},
	    {"cnn:depth=101,width=64,image=224,classes=1000", 44549160, 35},
	    {"resnet20", 272474, 11},
	    {"resnet56", 855770, 29},
	    {"vgg11", 132868840, 11},
	    {"cnn:depth=16,width=64,image=224,classes=1000", 138365992, 16},
	    {"gpt2", 124439808, 26},
	    {"gpt2:seq=1024", 124439808, 26},
	    {"gpt2-medium", 354823168, 50},
	    {"gpt-char", 256 * 384 + 256 * 384 + 6 * (12 * 384 * 384 + 13 * 384) + 2 * 384, 14},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		for (int no_fusion = 0; no_fusion < 2; no_fusion++) {
			ck_graph *g = case_graph(cases[i].text, (ck_build_options){.no_fusion = no_fusion}, CK_F32);
			cr_expect(g->parameters == cases[i].parameters, "%s: %lld parameters, not %lld", cases[i].text,
				  (long long)g->parameters, (long long)cases[i].parameters);
			cr_expect(g->nstages >= cases[i].stages, "%s: %d stages, not at least %d", cases[i].text, g->nstages,
				  cases[i].stages);
			ck_graph_free(g);
		}
}

Test(structure, names_and_shapes)
{
	static const struct {
		const char *text, *value;
		ck_kind kind;
		ck_dtype dtype;
		const char *shape;
	} cases[] = {
	    {"mlp:layers=3", "x", CK_INPUT, CK_F32, "512x64"},
	    {"mlp:layers=3", "fc3.weight", CK_PARAM, CK_F32, "10x256"},
	    {"mlp:layers=3", "fc2.act", CK_ACTIVATION, CK_F32, "512x256"},
	    {"resnet50", "conv1.weight", CK_PARAM, CK_F32, "64x7x7x3"},
	    {"resnet50", "maxpool", CK_ACTIVATION, CK_F32, "8x56x56x64"},
	    {"resnet50", "bn1.num_batches_tracked", CK_BUFFER, CK_I32, "1"},
	    {"resnet50", "layer1.0.bn3.running_var", CK_BUFFER, CK_F32, "256"},
	    {"resnet50", "layer1.0.downsample.0.weight", CK_PARAM, CK_F32, "256x1x1x64"},
	    {"resnet50", "layer2.0.conv1", CK_ACTIVATION, CK_F32, "8x56x56x128"}, /* the stride is the 3x3's */
	    {"resnet50", "layer2.0.conv2", CK_ACTIVATION, CK_F32, "8x28x28x128"},
	    {"resnet50", "layer4.2.relu3", CK_ACTIVATION, CK_F32, "8x7x7x2048"},
	    {"resnet50", "fc.bias", CK_PARAM, CK_F32, "1000"},
	    {"resnet20", "layer1.2.relu2", CK_ACTIVATION, CK_F32, "128x32x32x16"},
	    {"resnet20", "layer3.2.relu2", CK_ACTIVATION, CK_F32, "128x8x8x64"},
	    {"vgg11", "conv5_2.weight", CK_PARAM, CK_F32, "512x3x3x512"},
	    {"vgg11", "conv1_1.bias", CK_PARAM, CK_F32, "64"},
	    {"vgg11", "fc6.weight", CK_PARAM, CK_F32, "4096x25088"},
	    {"gpt2", "ids", CK_INPUT, CK_I32, "2x256"},
	    {"gpt2", "wte.weight", CK_PARAM, CK_F32, "50257x768"},
	    {"gpt2", "wpe.weight", CK_PARAM, CK_F32, "1024x768"},
	    {"gpt2", "h.11.attn.c_attn.weight", CK_PARAM, CK_F32, "2304x768"},
	    {"gpt2", "h.3.attn.scores", CK_ACTIVATION, CK_F32, "2x12x256x256"},
	    {"gpt2", "h.3.mlp.c_proj.weight", CK_PARAM, CK_F32, "768x3072"},
	    {"gpt2", "h.0.ln_1.weight", CK_PARAM, CK_F32, "768"},
	    {"gpt2", "ln_f.bias", CK_PARAM, CK_F32, "768"},
	    {"gpt2", "lm_head", CK_ACTIVATION, CK_F32, "2x256x50257"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		ck_graph *g = case_graph(cases[i].text, (ck_build_options){.no_fusion = true}, CK_F32);
		ck_value v = ck_graph_value(g, cases[i].value);
		cr_expect(v != CK_NONE, "%s: there is no value '%s'", cases[i].text, cases[i].value);
		if (v != CK_NONE) {
			const ck_value_info *info = &g->values[v];
			char shape[CK_SHAPE_TEXT];
			ck_shape_text(info->shape, shape);
			cr_expect(info->kind == cases[i].kind && info->dtype == cases[i].dtype &&
				      strcmp(shape, cases[i].shape) == 0,
				  "%s: '%s' is a %s %s of %s, not %s", cases[i].text, cases[i].value,
				  ck_dtype_name(info->dtype), ck_kind_name(info->kind), shape, cases[i].shape);
		}
		ck_graph_free(g);
	}
}

/* The token embedding is the head's weight as well: one parameter, read twice. */
Test(structure, tied_head)
{
	ck_graph *g = case_graph("gpt-tiny", (ck_build_options){0}, CK_F32);
	ck_value wte = ck_graph_value(g, "wte.weight");
	cr_assert(wte != CK_NONE);
	cr_expect(g->values[wte].nreaders == 2, "gpt-tiny: wte.weight has %d readers", g->values[wte].nreaders);
	cr_expect(g->values[wte].readers[1] == ck_graph_op(g, "lm_head"), "gpt-tiny: lm_head does not read wte.weight");
	ck_graph_free(g);
}

Test(structure, start_values)
{
	static const struct {
		const char *text, *value;
		ck_init_kind kind;
		double square; /* of the scale */
	} cases[] = {
	    {"mlp:layers=2,inputs=100", "fc1.weight", CK_INIT_UNIFORM, 1.0 / 100},
	    {"mlp:layers=2,width=50", "fc2.bias", CK_INIT_UNIFORM, 1.0 / 50},
	    {"resnet18", "conv1.weight", CK_INIT_NORMAL, 2.0 / (64 * 49)},
	    {"resnet18", "layer2.0.downsample.0.weight", CK_INIT_NORMAL, 2.0 / 128},
	    {"resnet18", "bn1.weight", CK_INIT_ONE, 0},
	    {"resnet18", "bn1.bias", CK_INIT_ZERO, 0},
	    {"resnet18", "bn1.running_mean", CK_INIT_ZERO, 0},
	    {"resnet18", "bn1.running_var", CK_INIT_ONE, 0},
	    {"resnet18", "bn1.num_batches_tracked", CK_INIT_ZERO, 0},
	    {"resnet18", "fc.weight", CK_INIT_UNIFORM, 1.0 / 512},
	    {"vgg11", "fc7.weight", CK_INIT_NORMAL, 1e-4},
	    {"gpt2", "wte.weight", CK_INIT_NORMAL, 4e-4},
	    {"gpt2", "h.5.mlp.c_fc.weight", CK_INIT_NORMAL, 4e-4},
	    {"gpt2", "h.5.mlp.c_proj.weight", CK_INIT_NORMAL, 4e-4 / 24},
	    {"gpt2", "h.5.attn.c_proj.weight", CK_INIT_NORMAL, 4e-4 / 24},
	    {"gpt2", "h.5.attn.c_attn.bias", CK_INIT_ZERO, 0},
	    {"gpt2", "ln_f.weight", CK_INIT_ONE, 0},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		ck_graph *g = case_graph(cases[i].text, (ck_build_options){0}, CK_F32);
		ck_value v = ck_graph_value(g, cases[i].value);
		cr_assert(v != CK_NONE, "%s: there is no value '%s'", cases[i].text, cases[i].value);
		ck_init init = g->values[v].init;
		double square = init.scale * init.scale;
		cr_expect(init.kind == cases[i].kind && fabs(square - cases[i].square) <= 1e-12,
			  "%s: '%s' starts with kind %d, scale^2 %.17g, not %d, %.17g", cases[i].text, cases[i].value,
			  init.kind, square, cases[i].kind, cases[i].square);
		ck_graph_free(g);
	}
}

/* Dropout stands where it should, as often as it should, fused or not; in evaluation there is none, and no op has state. */
Test(structure, dropout_and_evaluation)
{
	static const struct {
		const char *text;
		int random, state; /* ops while training */
	} cases[] = {
	    {"mlp:layers=5,dropout=0.1", 4, 0},
	    {"mlp:layers=5,activation=gelu,dropout=0.1", 4, 0},
	    {"mlp:layers=5", 0, 0},
	    {"resnet20:dropout=0.1", 1, 21},
	    {"vgg11:image=32,width=8,dropout=0.5", 2, 8},
	    {"gpt-tiny:layers=3,dropout=0.1", 1 + 3 * 3, 0},
	    {"gpt-tiny", 0, 0},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		for (int bits = 0; bits < 4; bits++) {
			ck_build_options options = {.no_fusion = bits & 1, .evaluation = bits & 2};
			ck_graph *g = case_graph(cases[i].text, options, CK_F32);
			int random = 0, state = 0;
			for (int o = 0; o < g->nops; o++) {
				random += g->ops[o].contract.random;
				state += g->ops[o].contract.state != 0;
			}
			cr_expect(random == (options.evaluation ? 0 : cases[i].random) &&
				      state == (options.evaluation ? 0 : cases[i].state),
				  "%s, fusion %d, evaluation %d: %d random ops, %d with state", cases[i].text,
				  !options.no_fusion, options.evaluation, random, state);
			ck_graph_free(g);
		}
}

/* The gradient of the input is computed on demand only; token ids have none. */
Test(structure, input_gradient)
{
	static const struct {
		const char *text, *input;
		bool can;
	} cases[] = {{"mlp", "x", true}, {"cnn", "x", true}, {"gpt-tiny", "ids", false}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		for (int wanted = 0; wanted < 2; wanted++) {
			ck_graph *g = case_graph(cases[i].text, (ck_build_options){.input_grad = wanted}, CK_F32);
			bool has = g->values[ck_graph_value(g, cases[i].input)].needs_grad;
			cr_expect(has == (wanted && cases[i].can), "%s, input gradient %d: has %d", cases[i].text, wanted, has);
			ck_graph_free(g);
		}
}

Test(structure, ten_thousand_layers)
{
	ck_graph *g = case_graph("mlp:layers=10000,width=4,inputs=4,classes=4", (ck_build_options){0}, CK_F32);
	cr_expect(g->parameters == 10000 * (4 * 4 + 4) && g->nstages == 10000, "mlp:layers=10000: %lld parameters, %d stages",
		  (long long)g->parameters, g->nstages);
	ck_graph_free(g);
}

/* Schedules and records name their graphs by these digests, so that a new op, dtype or attribute leaves those of all other graphs as
 * they are. What they tell apart: precision, and every attribute that came later. */
Test(structure, digests_stay)
{
	static const struct {
		const char *text;
		uint64_t digest; /* as of the first schedules */
	} cases[] = {
	    {"mlp", 0x985e7a03dddd464a},
	    {"resnet20", 0x5ff01208a14a7107},
	    {"vgg11", 0xbf0d21a625effd7b},
	    {"gpt-tiny:dropout=0.1", 0xb01393eebb0065b4},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		ck_graph *g = case_graph(cases[i].text, (ck_build_options){0}, CK_F32);
		cr_expect(g->digest == cases[i].digest, "%s: graph %016llx, not %016llx", cases[i].text,
			  (unsigned long long)g->digest, (unsigned long long)cases[i].digest);
		for (int low = CK_BF16; low <= CK_F16; low++) {
			ck_graph *mixed = case_graph(cases[i].text, (ck_build_options){.low = (ck_dtype)low}, CK_F32);
			cr_expect(mixed->digest != g->digest, "%s in %s: the digest of float32", cases[i].text,
				  ck_dtype_name((ck_dtype)low));
			ck_graph_free(mixed);
		}
		ck_graph_free(g);
	}
}

/* Sizes that make no model are refused where the model is built, naming the settings. */
Test(structure, refusals)
{
	static const struct {
		const char *text, *fragment;
	} cases[] = {
	    {"transformer:width=10,heads=3", "width=10 is not a multiple of heads=3; set heads to a divisor"},
	    {"transformer:width=2,heads=4", "width=2 is not a multiple of heads=4"},
	    {"gpt2:seq=1025", "seq=1025 tokens do not fit positions=1024; set positions=1025 or more"},
	    {"cnn:depth=21", "no network of depth=21; depth takes 18|34|50"},
	    {"vgg11:image=31", "image=31 is too small; set image=32 or more"},
	    {"cnn:depth=19,image=1", "image=1 is too small; set image=32 or more"},
	    {"resnet18:image=32,batch=1", "'layer4.0.downsample.1' would take its statistics over a single value per channel"},
	    {"cnn:image=1,batch=1", "BatchNorm 'bn1' would take its statistics over a single value per channel"},
	    {"resnet18:image=65536,batch=16777216", "more than 2^48 elements"},
	    {"transformer:seq=1048576,width=1048576,batch=16777216", "2^48 elements"},
	    {"mlp:layers=1000,width=1048576", "more than 1024 TiB in all; make the batch or the model smaller"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		ck_err err;
		ck_status status = case_refusal(cases[i].text, &err);
		cr_expect(status == CK_USAGE && strstr(err.text, cases[i].fragment), "%s: status %d, '%s' does not say '%s'",
			  cases[i].text, status, err.text, cases[i].fragment);
	}
	ck_err err;
	cr_expect(case_refusal("resnet18:image=33,batch=1", &err) == CK_OK, "resnet18:image=33,batch=1: %s", err.text);
}
