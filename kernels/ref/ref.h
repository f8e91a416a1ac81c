/* Inside the reference backend: float64, one thread, loops as plain as the formulas in ops.h. It is the oracle, so it is written
 * to be read and not to be fast. Every gradient element is summed in full before it is written or added, so adding gives exactly
 * the previous value plus what writing would have given. */
#ifndef CK_REF_H
#define CK_REF_H

#include "kernels/ops.h"

typedef void ck_ref_run(const ck_op_desc *d, const ck_args *a);

ck_ref_run ck__ref_linear_forward, ck__ref_linear_backward;
ck_ref_run ck__ref_conv2d_forward, ck__ref_conv2d_backward;
ck_ref_run ck__ref_batchnorm_forward, ck__ref_batchnorm_backward;
ck_ref_run ck__ref_layernorm_forward, ck__ref_layernorm_backward;
ck_ref_run ck__ref_act_forward, ck__ref_act_backward;
ck_ref_run ck__ref_scores_forward, ck__ref_scores_backward;
ck_ref_run ck__ref_softmax_forward, ck__ref_softmax_backward;
ck_ref_run ck__ref_wsum_forward, ck__ref_wsum_backward;
ck_ref_run ck__ref_dropout_forward, ck__ref_dropout_backward;
ck_ref_run ck__ref_add_forward, ck__ref_add_backward;
ck_ref_run ck__ref_embedding_forward, ck__ref_embedding_backward;
ck_ref_run ck__ref_maxpool_forward, ck__ref_maxpool_backward;
ck_ref_run ck__ref_avgpool_forward, ck__ref_avgpool_backward;
ck_ref_run ck__ref_flatten_forward, ck__ref_flatten_backward;
ck_ref_run ck__ref_tally_forward, ck__ref_tally_backward;
ck_ref_run ck__ref_xent_forward, ck__ref_xent_backward;

/* The optimizers; any device of this backend. */
void ck__ref_update(ck_device *device, const ck_update *u);

/* An activation and its derivative at z. */
double ck__ref_act(ck_act act, double z);
double ck__ref_act_slope(ck_act act, double z);

/* v * keep / (1 - p) for element e of this op in this step. */
double ck__ref_dropped(const ck_op_desc *d, const ck_args *a, int64_t e, double v);

/* A gradient element: written, or added to. */
static inline void ck__ref_put(double *at, double v, bool acc)
{
	*at = acc ? *at + v : v;
}

/* din[i] is the gradient of the output, element by element; also where the two are one buffer. */
static inline void ck__ref_pass(const ck_op_desc *d, const ck_args *a, int i)
{
	const double *dout = a->dout;
	double *din = i < 0 ? NULL : a->din[i];
	if (din)
		for (int64_t e = 0; e < ck_shape_count(d->out[0].shape); e++)
			ck__ref_put(&din[e], dout[e], a->acc[i]);
}

#endif
