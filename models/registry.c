/* What can be named on the command line: models, one word each in meson.build, and presets, one line each here. */
#include <stddef.h>

#include "models/list.h"
#include "models/models.h"

/* CK_MODELS(X) is X(mlp) X(cnn) …, made from the list in meson.build. */
#define X(name) extern const ck_model ck_model_##name;
CK_MODELS(X)
#undef X

const ck_model *const ck_models[] = {
#define X(name) &ck_model_##name,
    CK_MODELS(X)
#undef X
	NULL,
};

const ck_preset ck_presets[] = {
    {"mlp-wide", "mlp:layers=8,width=1024,inputs=1024,classes=1000,batch=256", "eight layers of 1024"},
    {"resnet18", "cnn:depth=18,width=64,image=224,classes=1000,batch=8", "ImageNet form, 11.7 M parameters"},
    {"resnet34", "cnn:depth=34,width=64,image=224,classes=1000,batch=8", "ImageNet form, 21.8 M parameters"},
    {"resnet50", "cnn:depth=50,width=64,image=224,classes=1000,batch=8", "ImageNet form, 25.6 M parameters"},
    {"resnet20", "cnn:depth=20,width=16,image=32,classes=10,batch=128", "for 32x32 images, 0.27 M parameters"},
    {"resnet56", "cnn:depth=56,width=16,image=32,classes=10,batch=128", "for 32x32 images, 0.86 M parameters"},
    {"vgg11", "cnn:depth=11,width=64,image=224,classes=1000,batch=8", "plain, with BatchNorm, 132.9 M parameters"},
    {"gpt-tiny", "transformer:layers=2,width=32,heads=2,seq=16,vocab=256,batch=2", "for checks"},
    {"gpt-char", "transformer:layers=6,width=384,heads=6,seq=256,vocab=256,batch=8", "bytes as tokens"},
    {"gpt-mini", "transformer:layers=6,width=384,heads=6,seq=256,vocab=50257,batch=4", "GPT-2's vocabulary, small body"},
    {"gpt2", "transformer:layers=12,width=768,heads=12,seq=256,positions=1024,vocab=50257,batch=2", "124 M parameters"},
    {"gpt2-medium", "transformer:layers=24,width=1024,heads=16,seq=256,positions=1024,vocab=50257,batch=1", "355 M parameters"},
    {NULL, NULL, NULL},
};
