/* The optimizers: the factors of a step in float64, then one pass over the elements. And what comes before them: gradients summed, and
 * freed of a scaler's factor. */
#include <math.h>

#include "kernels/cuda/pass.h"
#include "kernels/cuda/update.h"

static ck_adamw_step adamw_step(const ck_optimizer *o, int64_t t)
{
	double first, second;
	ck_optimizer_corrections(o, t, &first, &second);
	return (ck_adamw_step){
	    .lr = (float)(o->lr / first),
	    .decay = (float)(1 - o->lr * o->weight_decay),
	    .beta1 = (float)o->beta1,
	    .rest1 = (float)(1 - o->beta1),
	    .beta2 = (float)o->beta2,
	    .rest2 = (float)(1 - o->beta2),
	    .scale2 = (float)(1 / sqrt(second)),
	    .eps = (float)o->eps,
	};
}

void ck__cuda_update(ck_device *device, const ck_update *u)
{
	const ck_optimizer *o = u->optimizer;
	if (o->kind == CK_SGD)
		ck__cuda_sgd(device->stream, (ck_sgd_step){(float)o->lr, (float)o->weight_decay, (float)o->momentum}, u->n,
			     u->gradient, u->parameter, u->state[0]);
	else
		ck__cuda_adamw(device->stream, adamw_step(o, u->t), u->n, u->gradient, u->parameter, u->state[0], u->state[1]);
}

void ck__cuda_add_gradient(ck_device *device, int64_t n, const void *from, void *to)
{
	ck__cuda_pass(device->stream, n, CK_F32, from, CK_F32, to, true);
}

bool ck__cuda_unscale(ck_device *device, double factor, int count, const ck_gradient *gradients)
{
	int overflow = 0;
	CK_CUDA(cudaMemsetAsync(device->overflow, 0, sizeof overflow, device->stream));
	for (int i = 0; i < count; i++)
		ck__cuda_scale(device->stream, (float)factor, gradients[i].n, gradients[i].data, device->overflow);
	CK_CUDA(cudaMemcpyAsync(&overflow, device->overflow, sizeof overflow, cudaMemcpyDeviceToHost, device->stream));
	CK_CUDA(cudaStreamSynchronize(device->stream));
	return overflow;
}
