/* The loss scaler: small gradients do not vanish in a narrow type where the loss's own gradient, from which all follow, is
 * large.
 *
 *     backward from the scale ──▶ gradients / scale ──▶ all finite? ──yes──▶ optimizer step; tracker + 1,
 *                                                           │                at the interval scale *= growth, tracker = 0
 *                                                           └──no──▶ no optimizer step; scale *= backoff, tracker = 0
 *
 * Rules and presets are those of torch.amp.GradScaler (its documentation, "Gradient Scaling"; torch/amp/grad_scaler.py and
 * aten/src/ATen/native/cpu/AmpGradScalerKernels.cpp of PyTorch 2):
 *   - unscaling multiplies by the reciprocal, which is formed in float64 and rounded to float32; an overflow is an infinity or
 *     NaN in any gradient before that; it is done once a step, after the last of accumulated micro-batches;
 *   - a step with an overflow is skipped: parameters, optimizer state and the optimizer's count of steps stay as they are;
 *   - the scale is float32 and does not grow beyond it; it may fall below 1. */
#ifndef CK_SCALER_H
#define CK_SCALER_H

#include <stdbool.h>
#include <stdint.h>

struct ck_program;
struct ck_memory;
struct ck_hook;

typedef struct ck_scaler_options {
	double scale;           /* at the start */
	double growth, backoff; /* factors of the scale */
	int64_t interval;       /* steps without an overflow in a row after which it grows */
} ck_scaler_options;

/* 65536, 2, 0.5, 2000 */
ck_scaler_options ck_scaler_preset(void);

/* What goes on from step to step, and what plans are compared by; no padding. */
typedef struct ck_scaler_state {
	float scale;
	int32_t tracker;  /* steps without an overflow since the scale last changed */
	int32_t overflow; /* whether the last step had one */
	int32_t taken;    /* optimizer steps so far; the next one's t is taken + 1 */
} ck_scaler_state;

typedef struct ck_scaler {
	bool on; /* false: the scale is 1 for ever, and no step is skipped */
	ck_scaler_options o;
	ck_scaler_state now;
	float inverse; /* what gradients are multiplied by in this step */
} ck_scaler;

/* Where a step has got to, for what meddles (program.h). */
typedef enum ck_scaler_moment { CK_BEFORE_FORWARD, CK_BEFORE_UNSCALE, CK_AFTER_UNSCALE, CK_AFTER_UPDATE } ck_scaler_moment;

/* o NULL: off. */
ck_scaler ck_scaler_new(const ck_scaler_options *o);
/* Unscales every gradient that stays after a run, and finds whether there was an overflow. Nothing when it is off. hook: may be
 * NULL. */
void ck_scaler_unscale(ck_scaler *s, const struct ck_program *p, struct ck_memory *m, const struct ck_hook *hook);
/* Multiplies these gradients by s->inverse; true when any was not finite before. */
bool ck__scaler_multiply(const ck_scaler *s, const struct ck_program *p, struct ck_memory *m);
/* Ends the step: the scale for the next one. */
void ck_scaler_update(ck_scaler *s);

#endif
