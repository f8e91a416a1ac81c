/* cuDNN's batch normalisation over each channel of a batch of images (SPATIAL and SPATIAL_PERSISTENT, which is the same here).
 *
 * x may be float, half or bfloat16, y and the gradients are as x; what there is one of per channel is float, 1xCx1x1. The running
 * statistics move by the factor towards the mean and the unbiased variance. That a result may lie over what is read is written
 * nowhere: it is an error here. */
#include "kernels/emu/cudnn_double.h"

#include <math.h>

namespace
{
struct batchnorm {
	cudnnTensorStruct x, y, dx; /* y: or dy */
	const float *scale, *bias, *mean, *variance;
	float *running_mean, *running_variance, *save_mean, *save_rstd;
	float *dscale, *dbias;
	const float *saved_mean, *saved_rstd;
	const void *in, *dy;
	void *out;
	double epsilon, factor;
	float alpha, beta, alpha_parameters, beta_parameters;

	int channels() const
	{
		return x.dim[CHANNELS];
	}
	double rows() const
	{
		return (double)x.dim[N] * x.dim[H] * x.dim[W];
	}
	template <class F> void each(F f) const /* image, row, column */
	{
		for (int n = 0; n < x.dim[N]; n++)
			for (int h = 0; h < x.dim[H]; h++)
				for (int w = 0; w < x.dim[W]; w++)
					f(n, h, w);
	}
};
} // namespace

/* ---- the work ------------------------------------------------------------------------------------------------------------- */

static void statistics(const batchnorm &b, int c, double *mean, double *variance)
{
	double sum = 0, squares = 0;
	b.each([&](int n, int h, int w) { sum += (double)ck_emu_get(b.x.type, b.in, b.x.at(n, c, h, w)); });
	*mean = sum / b.rows();
	b.each([&](int n, int h, int w) {
		double d = (double)ck_emu_get(b.x.type, b.in, b.x.at(n, c, h, w)) - *mean;
		squares += d * d;
	});
	*variance = squares / b.rows();
}

static void normalise(const batchnorm &b, int c, float mean, float rstd)
{
	b.each([&](int n, int h, int w) {
		float v = (ck_emu_get(b.x.type, b.in, b.x.at(n, c, h, w)) - mean) * rstd * b.scale[c] + b.bias[c];
		ck_emu_blend(b.y.type, b.out, b.y.at(n, c, h, w), b.alpha, v, b.beta);
	});
}

static void train(const batchnorm &b)
{
	for (int c = 0; c < b.channels(); c++) {
		double mean, variance;
		statistics(b, c, &mean, &variance);
		float rstd = (float)(1 / sqrt(variance + b.epsilon));
		normalise(b, c, (float)mean, rstd);
		if (b.running_mean) {
			double unbiased = b.rows() > 1 ? variance * b.rows() / (b.rows() - 1) : variance;
			b.running_mean[c] = (float)((1 - b.factor) * b.running_mean[c] + b.factor * mean);
			b.running_variance[c] = (float)((1 - b.factor) * b.running_variance[c] + b.factor * unbiased);
		}
		if (b.save_mean) {
			b.save_mean[c] = (float)mean;
			b.save_rstd[c] = rstd;
		}
	}
}

static void infer(const batchnorm &b)
{
	for (int c = 0; c < b.channels(); c++)
		normalise(b, c, b.mean[c], (float)(1 / sqrt(b.variance[c] + b.epsilon)));
}

static void backward(const batchnorm &b)
{
	for (int c = 0; c < b.channels(); c++) {
		float mean, rstd;
		if (b.saved_mean) {
			mean = b.saved_mean[c];
			rstd = b.saved_rstd[c];
		} else {
			double m, variance;
			statistics(b, c, &m, &variance);
			mean = (float)m;
			rstd = (float)(1 / sqrt(variance + b.epsilon));
		}
		auto xhat = [&](int n, int h, int w) { return (ck_emu_get(b.x.type, b.in, b.x.at(n, c, h, w)) - mean) * rstd; };
		auto dy = [&](int n, int h, int w) { return ck_emu_get(b.y.type, b.dy, b.y.at(n, c, h, w)); };
		double dscale = 0, dbias = 0;
		b.each([&](int n, int h, int w) {
			dscale += (double)dy(n, h, w) * (double)xhat(n, h, w);
			dbias += (double)dy(n, h, w);
		});
		float each_scale = (float)(dscale / b.rows()), each_bias = (float)(dbias / b.rows());
		b.each([&](int n, int h, int w) {
			float v = b.scale[c] * rstd * (dy(n, h, w) - each_bias - xhat(n, h, w) * each_scale);
			ck_emu_blend(b.dx.type, b.out, b.dx.at(n, c, h, w), b.alpha, v, b.beta);
		});
		ck_emu_blend(stored::f32, b.dscale, c, b.alpha_parameters, (float)dscale, b.beta_parameters);
		ck_emu_blend(stored::f32, b.dbias, c, b.alpha_parameters, (float)dbias, b.beta_parameters);
	}
}

/* ---- the calls ------------------------------------------------------------------------------------------------------------ */

/* What all three calls check first. y: or dy. */
static cudnnStatus_t check(batchnorm &b, cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnTensorDescriptor_t xd,
			   cudnnTensorDescriptor_t yd, cudnnTensorDescriptor_t parameters, double epsilon)
{
	const cudnnTensorStruct *x = ck_emu_tensor(xd), *y = ck_emu_tensor(yd), *s = ck_emu_tensor(parameters);
	CK_REFUSE_IF(!ck_emu_dnn(handle) || !x || !y || !s, CUDNN_STATUS_BAD_PARAM,
		     "the handle or a descriptor is NULL or not set");
	CK_REFUSE_IF(mode < CUDNN_BATCHNORM_PER_ACTIVATION || mode > CUDNN_BATCHNORM_SPATIAL_PERSISTENT, CUDNN_STATUS_BAD_PARAM,
		     "%d is no mode", mode);
	if (mode == CUDNN_BATCHNORM_PER_ACTIVATION)
		ck_emu_fail("cuDNN: CUDNN_BATCHNORM_PER_ACTIVATION is not modelled");
	CK_REFUSE_IF(!x->same_dims(*y) || x->type != y->type, CUDNN_STATUS_BAD_PARAM,
		     "x and y or dy differ in extents or type");
	CK_REFUSE_IF(s->type != stored::f32, CUDNN_STATUS_BAD_PARAM, "scale and bias are %s, not float32",
		     ck_emu_name(s->type));
	CK_REFUSE_IF(s->dim[N] != 1 || s->dim[CHANNELS] != x->dim[CHANNELS] || s->dim[H] != 1 || s->dim[W] != 1,
		     CUDNN_STATUS_BAD_PARAM, "scale and bias are not 1xCx1x1");
	CK_REFUSE_IF(!x->positive_strides() || !y->positive_strides(), CUDNN_STATUS_NOT_SUPPORTED, "a stride is not positive");
	CK_REFUSE_IF(epsilon < CUDNN_BN_MIN_EPSILON, CUDNN_STATUS_BAD_PARAM, "epsilon %g", epsilon);
	b.x = *x, b.y = *y, b.epsilon = epsilon;
	return CUDNN_STATUS_SUCCESS;
}

static extent of(const cudnnTensorStruct &t, const void *at, const char *what)
{
	return {at, t.bytes(), what, ck_emu_size(t.type)};
}

static extent per_channel(const batchnorm &b, const void *at, const char *what)
{
	return {at, (size_t)b.channels() * sizeof(float), what, sizeof(float)};
}

cudnnStatus_t cudnnDeriveBNTensorDescriptor(cudnnTensorDescriptor_t derived, const cudnnTensorDescriptor_t xd,
					    cudnnBatchNormMode_t mode)
{
	const cudnnTensorStruct *x = ck_emu_tensor(xd);
	CK_REFUSE_IF(!derived || !x, CUDNN_STATUS_BAD_PARAM, "a descriptor is NULL or not set");
	if (mode == CUDNN_BATCHNORM_PER_ACTIVATION)
		ck_emu_fail("cuDNN: CUDNN_BATCHNORM_PER_ACTIVATION is not modelled");
	return cudnnSetTensor4dDescriptor(derived, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, x->dim[CHANNELS], 1, 1);
}

cudnnStatus_t cudnnBatchNormalizationForwardTraining(cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void *alpha,
						     const void *beta, const cudnnTensorDescriptor_t xd, const void *x,
						     const cudnnTensorDescriptor_t yd, void *y,
						     const cudnnTensorDescriptor_t sd, const void *scale, const void *bias,
						     double factor, void *running_mean, void *running_variance, double epsilon,
						     void *save_mean, void *save_rstd)
{
	static const char call[] = "cudnnBatchNormalizationForwardTraining";
	batchnorm b = {};
	CK_REFUSE_IF(!alpha || !beta || !x || !y || !scale || !bias, CUDNN_STATUS_BAD_PARAM, "%s: a pointer is NULL", call);
	cudnnStatus_t status = check(b, handle, mode, xd, yd, sd, epsilon);
	if (status != CUDNN_STATUS_SUCCESS)
		return status;
	CK_REFUSE_IF(!running_mean != !running_variance, CUDNN_STATUS_BAD_PARAM, "one of the running statistics is NULL");
	CK_REFUSE_IF(!save_mean != !save_rstd, CUDNN_STATUS_BAD_PARAM, "one of the saved statistics is NULL");
	std::vector<extent> written = {of(b.y, y, "y")};
	if (running_mean) {
		written.push_back(per_channel(b, running_mean, "the running mean"));
		written.push_back(per_channel(b, running_variance, "the running variance"));
	}
	if (save_mean) {
		written.push_back(per_channel(b, save_mean, "the saved mean"));
		written.push_back(per_channel(b, save_rstd, "the saved inverse deviation"));
	}
	ck_emu_check_extents(call, {of(b.x, x, "x"), per_channel(b, scale, "scale"), per_channel(b, bias, "bias")}, written);
	b.in = x, b.out = y, b.factor = factor;
	b.scale = static_cast<const float *>(scale);
	b.bias = static_cast<const float *>(bias);
	b.running_mean = static_cast<float *>(running_mean);
	b.running_variance = static_cast<float *>(running_variance);
	b.save_mean = static_cast<float *>(save_mean);
	b.save_rstd = static_cast<float *>(save_rstd);
	b.alpha = ck_emu_factor(alpha, call);
	b.beta = ck_emu_factor(beta, call);
	ck_emu_enqueue(
	    handle->stream, [b] { train(b); }, call);
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBatchNormalizationForwardInference(cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void *alpha,
						      const void *beta, const cudnnTensorDescriptor_t xd, const void *x,
						      const cudnnTensorDescriptor_t yd, void *y,
						      const cudnnTensorDescriptor_t sd, const void *scale, const void *bias,
						      const void *mean, const void *variance, double epsilon)
{
	static const char call[] = "cudnnBatchNormalizationForwardInference";
	batchnorm b = {};
	CK_REFUSE_IF(!alpha || !beta || !x || !y || !scale || !bias || !mean || !variance, CUDNN_STATUS_BAD_PARAM,
		     "%s: a pointer is NULL", call);
	cudnnStatus_t status = check(b, handle, mode, xd, yd, sd, epsilon);
	if (status != CUDNN_STATUS_SUCCESS)
		return status;
	CK_REFUSE_IF(b.x.dim[N] > 65535, CUDNN_STATUS_NOT_SUPPORTED, "more than 65535 images");
	ck_emu_check_extents(call,
			     {of(b.x, x, "x"), per_channel(b, scale, "scale"), per_channel(b, bias, "bias"),
			      per_channel(b, mean, "the mean"), per_channel(b, variance, "the variance")},
			     {of(b.y, y, "y")});
	b.in = x, b.out = y;
	b.scale = static_cast<const float *>(scale);
	b.bias = static_cast<const float *>(bias);
	b.mean = static_cast<const float *>(mean);
	b.variance = static_cast<const float *>(variance);
	b.alpha = ck_emu_factor(alpha, call);
	b.beta = ck_emu_factor(beta, call);
	ck_emu_enqueue(
	    handle->stream, [b] { infer(b); }, call);
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBatchNormalizationBackward(cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void *alpha,
					      const void *beta, const void *alpha_parameters, const void *beta_parameters,
					      const cudnnTensorDescriptor_t xd, const void *x,
					      const cudnnTensorDescriptor_t dyd, const void *dy,
					      const cudnnTensorDescriptor_t dxd, void *dx, const cudnnTensorDescriptor_t sd,
					      const void *scale, void *dscale, void *dbias, double epsilon,
					      const void *saved_mean, const void *saved_rstd)
{
	static const char call[] = "cudnnBatchNormalizationBackward";
	batchnorm b = {};
	CK_REFUSE_IF(!alpha || !beta || !alpha_parameters || !beta_parameters || !x || !dy || !dx || !scale || !dscale ||
			 !dbias,
		     CUDNN_STATUS_BAD_PARAM, "%s: a pointer is NULL", call);
	cudnnStatus_t status = check(b, handle, mode, xd, dyd, sd, epsilon);
	if (status != CUDNN_STATUS_SUCCESS)
		return status;
	const cudnnTensorStruct *of_dx = ck_emu_tensor(dxd);
	CK_REFUSE_IF(!of_dx || !of_dx->same_dims(b.x) || of_dx->type != b.x.type, CUDNN_STATUS_BAD_PARAM,
		     "x and dx differ in extents or type");
	CK_REFUSE_IF(!of_dx->positive_strides(), CUDNN_STATUS_NOT_SUPPORTED, "a stride is not positive");
	CK_REFUSE_IF(!saved_mean != !saved_rstd, CUDNN_STATUS_BAD_PARAM, "one of the saved statistics is NULL");
	b.dx = *of_dx;
	std::vector<extent> read = {of(b.x, x, "x"), of(b.y, dy, "dy"), per_channel(b, scale, "scale")};
	if (saved_mean) {
		read.push_back(per_channel(b, saved_mean, "the saved mean"));
		read.push_back(per_channel(b, saved_rstd, "the saved inverse deviation"));
	}
	ck_emu_check_extents(
	    call, read,
	    {of(b.dx, dx, "dx"), per_channel(b, dscale, "scale's gradient"), per_channel(b, dbias, "bias's gradient")});
	b.in = x, b.dy = dy, b.out = dx;
	b.scale = static_cast<const float *>(scale);
	b.dscale = static_cast<float *>(dscale);
	b.dbias = static_cast<float *>(dbias);
	b.saved_mean = static_cast<const float *>(saved_mean);
	b.saved_rstd = static_cast<const float *>(saved_rstd);
	b.alpha = ck_emu_factor(alpha, call);
	b.beta = ck_emu_factor(beta, call);
	b.alpha_parameters = ck_emu_factor(alpha_parameters, call);
	b.beta_parameters = ck_emu_factor(beta_parameters, call);
	ck_emu_enqueue(
	    handle->stream, [b] { backward(b); }, call);
	return CUDNN_STATUS_SUCCESS;
}
