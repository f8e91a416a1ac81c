/* The doubles of cuDNN's batch normalisation, pooling and bias: right calls against plain loops, and one wrong call for each rule.
 *
 *     build/suite/emu-norm --filter 'norm/...' */
#include <cudnn.h>

#include "suite/emu/doubles.h"

#include <criterion/criterion.h>
#include <math.h>

static stored stored_of(cudnnDataType_t t)
{
	return t == CUDNN_DATA_FLOAT ? stored::f32 : t == CUDNN_DATA_HALF ? stored::f16 : stored::bf16;
}

static cudnnTensorDescriptor_t tensor(cudnnDataType_t t, int n, int c, int h, int w)
{
	cudnnTensorDescriptor_t d;
	cudnnCreateTensorDescriptor(&d);
	cr_assert(cudnnSetTensor4dDescriptor(d, CUDNN_TENSOR_NHWC, t, n, c, h, w) == CUDNN_STATUS_SUCCESS);
	return d;
}

static void expect_near(const char *what, const std::vector<float> &got, const std::vector<double> &want, double tolerance)
{
	for (size_t i = 0; i < want.size(); i++)
		cr_assert(fabs((double)got[i] - want[i]) <= tolerance * (1 + fabs(want[i])),
			  "%s: element %zu is %.9g, not %.9g", what, i, (double)got[i], want[i]);
}

/* One rounding to a stored type, in parts of the number, and float's arithmetic besides. */
static double tolerance_of(cudnnDataType_t t)
{
	return t == CUDNN_DATA_FLOAT ? 1e-5 : t == CUDNN_DATA_HALF ? 0x1p-10 : 0x1p-7;
}

/* ---- batch normalisation -------------------------------------------------------------------------------------------------- */

enum norm_pass { TRAIN, INFER, BACKWARD };

struct norm {
	norm_pass way = TRAIN;
	int n = 3, c = 4, h = 2, w = 5, more_images = 0, more_channels = 0;
	cudnnDataType_t type = CUDNN_DATA_FLOAT, y_type = CUDNN_DATA_FLOAT, s_type = CUDNN_DATA_FLOAT;
	cudnnBatchNormMode_t mode = CUDNN_BATCHNORM_SPATIAL;
	double epsilon = 1e-3, factor = 0.25;
	float alpha = 1, beta = 0, alpha_p = 1, beta_p = 0, shift = 0;
	bool running = true, saved = true;
	std::function<void(norm &)> before_call = [](norm &) {};

	cudnnHandle_t handle;
	cudnnTensorDescriptor_t xd, yd, dxd, sd;
	std::vector<float> x, y, dx, scale, bias, mean, variance, dscale, dbias; /* as they were before; y: or dy */
	char *x_at, *y_at, *dx_at, *scale_at, *bias_at, *mean_at, *variance_at, *save_mean_at, *save_rstd_at, *dscale_at,
	    *dbias_at;

	size_t rows() const
	{
		return (size_t)(n * h * w);
	}
	double mean_of(int ch) const
	{
		double sum = 0;
		for (size_t i = 0; i < rows(); i++)
			sum += (double)x[i * (size_t)c + (size_t)ch];
		return sum / (double)rows();
	}
	double variance_of(int ch) const
	{
		double sum = 0, m = mean_of(ch);
		for (size_t i = 0; i < rows(); i++)
			sum += pow((double)x[i * (size_t)c + (size_t)ch] - m, 2);
		return sum / (double)rows();
	}

	void make()
	{
		cr_assert(cudnnCreate(&handle) == CUDNN_STATUS_SUCCESS);
		xd = tensor(type, n, c, h, w);
		yd = tensor(y_type, n + more_images, c, h, w);
		dxd = tensor(type, n, c, h, w);
		sd = tensor(s_type, 1, c + more_channels, 1, 1);
		x = eighths(rows() * (size_t)c, 1);
		for (float &v : x)
			v += shift;
		y = eighths(x.size(), 2);
		dx = eighths(x.size(), 3);
		scale = eighths((size_t)c, 4), bias = eighths((size_t)c, 5), mean = eighths((size_t)c, 6);
		dscale = eighths((size_t)c, 8), dbias = eighths((size_t)c, 9);
		variance.assign((size_t)c, 2.0f);
		x_at = upload(stored_of(type), x);
		y_at = upload(stored_of(y_type), y);
		dx_at = upload(stored_of(type), dx);
		scale_at = upload(stored::f32, scale), bias_at = upload(stored::f32, bias);
		mean_at = running ? upload(stored::f32, mean) : nullptr;
		variance_at = running ? upload(stored::f32, variance) : nullptr;
		dscale_at = upload(stored::f32, dscale), dbias_at = upload(stored::f32, dbias);
		std::vector<float> m((size_t)c), rstd((size_t)c);
		for (int ch = 0; ch < c; ch++) {
			m[(size_t)ch] = (float)mean_of(ch);
			rstd[(size_t)ch] = (float)(1 / sqrt(variance_of(ch) + epsilon));
		}
		save_mean_at = saved ? upload(stored::f32, m) : nullptr;
		save_rstd_at = saved ? upload(stored::f32, rstd) : nullptr;
	}

	cudnnStatus_t run()
	{
		make();
		before_call(*this);
		cudnnStatus_t status;
		if (way == TRAIN)
			status = cudnnBatchNormalizationForwardTraining(handle, mode, &alpha, &beta, xd, x_at, yd, y_at, sd,
									scale_at, bias_at, factor, mean_at, variance_at,
									epsilon, save_mean_at, save_rstd_at);
		else if (way == INFER)
			status = cudnnBatchNormalizationForwardInference(handle, mode, &alpha, &beta, xd, x_at, yd, y_at, sd,
									 scale_at, bias_at, mean_at, variance_at, epsilon);
		else
			status = cudnnBatchNormalizationBackward(handle, mode, &alpha, &beta, &alpha_p, &beta_p, xd, x_at, yd,
								 y_at, dxd, dx_at, sd, scale_at, dscale_at, dbias_at, epsilon,
								 save_mean_at, save_rstd_at);
		cr_assert(cudaDeviceSynchronize() == cudaSuccess);
		return status;
	}
};

struct norm_variant {
	const char *name;
	void (*change)(norm &);
};

static void types(norm &b, cudnnDataType_t t)
{
	b.type = b.y_type = t;
}

static const norm_variant right_norms[] = {
    {"float32", [](norm &) {}},
    {"bfloat16", [](norm &b) { types(b, CUDNN_DATA_BFLOAT16); }},
    {"float16", [](norm &b) { types(b, CUDNN_DATA_HALF); }},
    {"persistent", [](norm &b) { b.mode = CUDNN_BATCHNORM_SPATIAL_PERSISTENT; }},
    {"alpha and beta", [](norm &b) { b.alpha = 0.5f, b.beta = 2, b.alpha_p = 2, b.beta_p = 1; }},
    {"no statistics kept", [](norm &b) { b.saved = false; }},
    {"far from zero", [](norm &b) { b.shift = 30; }},
    {"one image of one place", [](norm &b) { b.n = b.h = b.w = 1; }},
};

Test(norm, training)
{
	for (const norm_variant &v : right_norms) {
		norm b;
		v.change(b);
		cr_assert(b.run() == CUDNN_STATUS_SUCCESS, "%s: %s", v.name, ck_emu_refusal());
		std::vector<double> y(b.x.size()), mean((size_t)b.c), variance((size_t)b.c), save_mean((size_t)b.c),
		    rstd((size_t)b.c);
		for (int ch = 0; ch < b.c; ch++) {
			size_t k = (size_t)ch;
			double rows = (double)b.rows(), m = b.mean_of(ch), s = b.variance_of(ch);
			save_mean[k] = m;
			rstd[k] = 1 / sqrt(s + b.epsilon);
			mean[k] = 0.75 * (double)b.mean[k] + 0.25 * m;
			variance[k] = 0.75 * 2 + 0.25 * (rows > 1 ? s * rows / (rows - 1) : s);
			for (size_t i = 0; i < b.rows(); i++) {
				size_t at = i * (size_t)b.c + k;
				double out = ((double)b.x[at] - m) * rstd[k] * (double)b.scale[k] + (double)b.bias[k];
				y[at] = (double)b.alpha * out + (b.beta != 0 ? (double)b.beta * (double)b.y[at] : 0);
			}
		}
		expect_near(v.name, download(stored_of(b.type), b.y_at, y.size()), y, tolerance_of(b.type));
		expect_near("running mean", download(stored::f32, b.mean_at, mean.size()), mean, 1e-6);
		expect_near("running variance", download(stored::f32, b.variance_at, mean.size()), variance, 1e-6);
		if (b.saved) {
			expect_near("saved mean", download(stored::f32, b.save_mean_at, mean.size()), save_mean, 1e-6);
			expect_near("saved rstd", download(stored::f32, b.save_rstd_at, mean.size()), rstd, 1e-6);
		}
	}
}

Test(norm, inference)
{
	norm b;
	b.way = INFER;
	cr_assert(b.run() == CUDNN_STATUS_SUCCESS);
	std::vector<double> y(b.x.size());
	for (size_t i = 0; i < y.size(); i++) {
		size_t k = i % (size_t)b.c;
		y[i] = ((double)b.x[i] - (double)b.mean[k]) / sqrt(2 + b.epsilon) * (double)b.scale[k] + (double)b.bias[k];
	}
	expect_near("y", download(stored::f32, b.y_at, y.size()), y, 1e-5);
}

Test(norm, gradients)
{
	for (const norm_variant &v : right_norms) {
		norm b;
		b.way = BACKWARD;
		v.change(b);
		cr_assert(b.run() == CUDNN_STATUS_SUCCESS, "%s: %s", v.name, ck_emu_refusal());
		std::vector<double> dx(b.x.size()), dscale((size_t)b.c), dbias((size_t)b.c);
		for (int ch = 0; ch < b.c; ch++) {
			size_t k = (size_t)ch;
			double m = b.mean_of(ch), rstd = 1 / sqrt(b.variance_of(ch) + b.epsilon), rows = (double)b.rows();
			double ds = 0, db = 0;
			for (size_t i = 0; i < b.rows(); i++) {
				size_t at = i * (size_t)b.c + k;
				ds += (double)b.y[at] * ((double)b.x[at] - m) * rstd;
				db += (double)b.y[at];
			}
			for (size_t i = 0; i < b.rows(); i++) {
				size_t at = i * (size_t)b.c + k;
				double xhat = ((double)b.x[at] - m) * rstd;
				double d = (double)b.scale[k] * rstd * ((double)b.y[at] - db / rows - xhat * ds / rows);
				dx[at] = (double)b.alpha * d + (b.beta != 0 ? (double)b.beta * (double)b.dx[at] : 0);
			}
			dscale[k] = (double)b.alpha_p * ds + (b.beta_p != 0 ? (double)b.dscale[k] : 0);
			dbias[k] = (double)b.alpha_p * db + (b.beta_p != 0 ? (double)b.dbias[k] : 0);
		}
		expect_near(v.name, download(stored_of(b.type), b.dx_at, dx.size()), dx, tolerance_of(b.type) * 4);
		expect_near("scale's gradient", download(stored::f32, b.dscale_at, dscale.size()), dscale, 1e-5);
		expect_near("bias's gradient", download(stored::f32, b.dbias_at, dbias.size()), dbias, 1e-6);
	}
}

struct wrong_norm {
	const char *name;
	int status;
	const char *reason;
	void (*change)(norm &);
};

#define BEFORE(...) b.before_call = [](norm &t) { __VA_ARGS__; }

static const wrong_norm wrong_norms[] = {
    {"epsilon below 0", CUDNN_STATUS_BAD_PARAM, "epsilon -1", [](norm &b) { b.epsilon = -1; }},
    {"a running mean and no variance", CUDNN_STATUS_BAD_PARAM, "one of the running",
     [](norm &b) { BEFORE(t.variance_at = nullptr); }},
    {"a saved mean and no deviation", CUDNN_STATUS_BAD_PARAM, "one of the saved",
     [](norm &b) { BEFORE(t.save_rstd_at = nullptr); }},
    {"a saved mean and no deviation, backward", CUDNN_STATUS_BAD_PARAM, "one of the saved",
     [](norm &b) { b.way = BACKWARD, BEFORE(t.save_rstd_at = nullptr); }},
    {"scale in bfloat16", CUDNN_STATUS_BAD_PARAM, "scale and bias are bfloat16",
     [](norm &b) { types(b, CUDNN_DATA_BFLOAT16), b.s_type = CUDNN_DATA_BFLOAT16; }},
    {"scale of a channel too many", CUDNN_STATUS_BAD_PARAM, "not 1xCx1x1", [](norm &b) { b.more_channels = 1; }},
    {"y of another type", CUDNN_STATUS_BAD_PARAM, "x and y or dy differ", [](norm &b) { b.y_type = CUDNN_DATA_HALF; }},
    {"y of an image too many", CUDNN_STATUS_BAD_PARAM, "x and y or dy differ", [](norm &b) { b.more_images = 1; }},
    {"dx of other extents", CUDNN_STATUS_BAD_PARAM, "x and dx differ",
     [](norm &b) { b.way = BACKWARD, BEFORE(t.dxd = tensor(t.type, t.n, t.c, t.w, t.h)); }},
    {"65536 images in inference", CUDNN_STATUS_NOT_SUPPORTED, "65535 images",
     [](norm &b) { b.way = INFER, b.n = 65536, b.c = b.h = b.w = 1; }},
    {"no such mode", CUDNN_STATUS_BAD_PARAM, "3 is no mode", [](norm &b) { b.mode = (cudnnBatchNormMode_t)3; }},
    {"statistics for each activation", ENDS, "not modelled", [](norm &b) { b.mode = CUDNN_BATCHNORM_PER_ACTIVATION; }},
    {"scale is NULL", CUDNN_STATUS_BAD_PARAM, "a pointer is NULL", [](norm &b) { BEFORE(t.scale_at = nullptr); }},
    {"no descriptor of scale", CUDNN_STATUS_BAD_PARAM, "NULL or not set", [](norm &b) { BEFORE(t.sd = nullptr); }},
    {"y over x", ENDS, "y overlaps x", [](norm &b) { BEFORE(t.y_at = t.x_at); }},
    {"dx over dy", ENDS, "dx overlaps dy", [](norm &b) { b.way = BACKWARD, BEFORE(t.dx_at = t.y_at); }},
    {"the running mean on the host", ENDS, "the running mean",
     [](norm &b) { BEFORE(t.mean_at = reinterpret_cast<char *>(t.mean.data())); }},
    {"one buffer for both gradients", ENDS, "bias's gradient overlaps scale's gradient",
     [](norm &b) { b.way = BACKWARD, BEFORE(t.dbias_at = t.dscale_at); }},
};

Test(norm, wrong_calls_are_refused)
{
	for (const wrong_norm &w : wrong_norms)
		expect_refused(w.name, w.status, w.reason, [&w]() -> int {
			norm b;
			w.change(b);
			return b.run();
		});
}

/* ---- pooling -------------------------------------------------------------------------------------------------------------- */

struct pool {
	bool forward = true;
	int n = 2, c = 3, h = 8, w = 6, window = 3, pad = 1, stride = 2, more_channels = 0, more_height = 0;
	cudnnPoolingMode_t mode = CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING;
	cudnnDataType_t type = CUDNN_DATA_FLOAT;
	float alpha = 1, beta = 0;
	std::function<void(pool &)> before_call = [](pool &) {};

	cudnnHandle_t handle;
	cudnnPoolingDescriptor_t pd;
	cudnnTensorDescriptor_t xd, yd, yd_read, xd_read; /* of y and x, which averages do not read */
	int p, q;
	std::vector<float> x, y;
	char *x_at, *y_at;

	cudnnStatus_t run()
	{
		cr_assert(cudnnCreate(&handle) == CUDNN_STATUS_SUCCESS);
		cudnnCreatePoolingDescriptor(&pd);
		cudnnStatus_t status =
		    cudnnSetPooling2dDescriptor(pd, mode, CUDNN_PROPAGATE_NAN, window, window, pad, pad, stride, stride);
		if (status != CUDNN_STATUS_SUCCESS)
			return status;
		xd = tensor(type, n, c, h, w);
		int images, channels;
		cr_assert(cudnnGetPooling2dForwardOutputDim(pd, xd, &images, &channels, &p, &q) == CUDNN_STATUS_SUCCESS);
		cr_assert(images == n && channels == c);
		yd = tensor(type, n, c + more_channels, p + more_height, q);
		yd_read = xd_read = nullptr;
		x = eighths((size_t)(n * h * w * c), 1), y = eighths((size_t)(n * p * q * c), 2);
		x_at = upload(stored_of(type), x), y_at = upload(stored_of(type), y);
		before_call(*this);
		status = forward ? cudnnPoolingForward(handle, pd, &alpha, xd, x_at, &beta, yd, y_at)
				 : cudnnPoolingBackward(handle, pd, &alpha, yd_read, nullptr, yd, y_at, xd_read, nullptr, &beta,
							xd, x_at);
		cr_assert(cudaDeviceSynchronize() == cudaSuccess);
		return status;
	}

	/* What is averaged, or spread, in double. */
	std::vector<double> result() const
	{
		std::vector<double> sums(forward ? y.size() : x.size(), 0.0), counts(y.size(), 0.0);
		for (int again = 0; again < 2; again++)
			for (size_t o = 0; o < y.size(); o++) {
				int ch = (int)o % c, b = (int)o / c % q, a = (int)o / c / q % p, i = (int)o / c / q / p;
				for (int t = 0; t < window * window; t++) {
					int row = a * stride + t / window - pad, column = b * stride + t % window - pad;
					bool inside = row >= 0 && row < h && column >= 0 && column < w;
					size_t at = inside ? (size_t)(((i * h + row) * w + column) * c + ch) : 0;
					if (!again)
						counts[o] += inside || mode == CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING;
					else if (inside && forward)
						sums[o] += (double)x[at] / counts[o];
					else if (inside)
						sums[at] += (double)y[o] / counts[o];
				}
			}
		const std::vector<float> &before = forward ? y : x;
		for (size_t i = 0; i < sums.size(); i++)
			sums[i] = (double)alpha * sums[i] + (beta != 0 ? (double)beta * (double)before[i] : 0);
		return sums;
	}
};

struct pool_variant {
	const char *name;
	void (*change)(pool &);
};

static const pool_variant right_pools[] = {
    {"windows overlap, padding counts", [](pool &) {}},
    {"padding does not count", [](pool &v) { v.mode = CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING; }},
    {"bfloat16", [](pool &v) { v.type = CUDNN_DATA_BFLOAT16; }},
    {"float16", [](pool &v) { v.type = CUDNN_DATA_HALF; }},
    {"alpha and beta", [](pool &v) { v.alpha = 0.5f, v.beta = 2; }},
    {"one window", [](pool &v) { v.h = v.w = v.window = v.stride = 4, v.pad = 0; }},
    {"windows all padding", [](pool &v) { v.window = v.pad = 2, v.stride = 1; }},
};

Test(norm, right_pools)
{
	for (bool forward : {true, false})
		for (const pool_variant &each : right_pools) {
			pool v;
			v.forward = forward;
			each.change(v);
			cr_assert(v.run() == CUDNN_STATUS_SUCCESS, "%s: %s", each.name, ck_emu_refusal());
			std::vector<double> want = v.result();
			expect_near(each.name, download(stored_of(v.type), forward ? v.y_at : v.x_at, want.size()), want,
				    tolerance_of(v.type));
		}
}

struct wrong_pool {
	const char *name;
	int status;
	const char *reason;
	void (*change)(pool &);
};

#undef BEFORE
#define BEFORE(...) v.before_call = [](pool &t) { __VA_ARGS__; }

static const wrong_pool wrong_pools[] = {
    {"a window of 0", CUDNN_STATUS_BAD_PARAM, "window 0x0", [](pool &v) { v.window = 0; }},
    {"a stride of 0", CUDNN_STATUS_BAD_PARAM, "stride 0,0", [](pool &v) { v.stride = 0; }},
    {"by maxima", ENDS, "not modelled", [](pool &v) { v.mode = CUDNN_POOLING_MAX; }},
    {"averages of nothing", ENDS, "padding 3,3",
     [](pool &v) { v.mode = CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING, v.pad = 3; }},
    {"y of a channel too many", CUDNN_STATUS_BAD_PARAM, "differ in images, channels", [](pool &v) { v.more_channels = 1; }},
    {"y of a row too many", ENDS, "the pool gives 4", [](pool &v) { v.more_height = 1; }},
    {"y and dy differ", CUDNN_STATUS_BAD_PARAM, "y and dy differ",
     [](pool &v) { v.forward = false, BEFORE(t.yd_read = tensor(t.type, t.n, t.c, t.q, t.p)); }},
    {"x and dx differ", CUDNN_STATUS_BAD_PARAM, "x and dx differ",
     [](pool &v) { v.forward = false, BEFORE(t.xd_read = tensor(t.type, t.n, t.c, t.w, t.h)); }},
    {"x is NULL", CUDNN_STATUS_BAD_PARAM, "a pointer is NULL", [](pool &v) { BEFORE(t.x_at = nullptr); }},
    {"x on the host", ENDS, "cudnnPoolingForward: x", [](pool &v) { BEFORE(t.x_at = reinterpret_cast<char *>(t.x.data())); }},
    {"dx over dy", ENDS, "dx overlaps dy", [](pool &v) { v.forward = false, BEFORE(t.y_at = t.x_at); }},
};

Test(norm, wrong_pools_are_refused)
{
	for (const wrong_pool &w : wrong_pools)
		expect_refused(w.name, w.status, w.reason, [&w]() -> int {
			pool v;
			w.change(v);
			return v.run();
		});
}

/* ---- bias ----------------------------------------------------------------------------------------------------------------- */

struct biased {
	bool add = true;
	int n = 2, c = 3, h = 4, w = 5, more_channels = 0;
	cudnnDataType_t type = CUDNN_DATA_FLOAT, bias_type = CUDNN_DATA_FLOAT;
	float alpha = 2, beta = 0.5f;
	std::vector<float> all, bias;
	char *all_at, *bias_at;

	cudnnStatus_t run()
	{
		cudnnHandle_t handle;
		cr_assert(cudnnCreate(&handle) == CUDNN_STATUS_SUCCESS);
		cudnnTensorDescriptor_t each = tensor(bias_type, 1, c + more_channels, 1, 1), every = tensor(type, n, c, h, w);
		all = eighths((size_t)(n * c * h * w), 1), bias = eighths((size_t)(c + more_channels), 2);
		all_at = upload(stored_of(type), all), bias_at = upload(stored_of(bias_type), bias);
		cudnnStatus_t status = add ? cudnnAddTensor(handle, &alpha, each, bias_at, &beta, every, all_at)
					   : cudnnConvolutionBackwardBias(handle, &alpha, every, all_at, &beta, each, bias_at);
		cr_assert(cudaDeviceSynchronize() == cudaSuccess);
		return status;
	}
};

Test(norm, right_biases)
{
	for (cudnnDataType_t type : {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF}) {
		biased a, g;
		a.type = a.bias_type = g.type = g.bias_type = type;
		g.add = false;
		cr_assert(a.run() == CUDNN_STATUS_SUCCESS && g.run() == CUDNN_STATUS_SUCCESS);
		std::vector<double> sum(a.all.size()), gradient(g.bias.size());
		for (size_t i = 0; i < sum.size(); i++) {
			sum[i] = 2 * (double)a.bias[i % 3] + 0.5 * (double)a.all[i];
			gradient[i % 3] += 2 * (double)g.all[i];
		}
		for (size_t k = 0; k < 3; k++)
			gradient[k] += 0.5 * (double)g.bias[k];
		expect_near("sum", download(stored_of(type), a.all_at, sum.size()), sum, tolerance_of(type));
		expect_near("gradient", download(stored_of(type), g.bias_at, 3), gradient, tolerance_of(type));
	}
}

static const struct {
	const char *name;
	int status;
	const char *reason;
	void (*change)(biased &);
} wrong_biases[] = {
    {"a bias of another type", CUDNN_STATUS_BAD_PARAM, "the types differ", [](biased &b) { b.type = CUDNN_DATA_BFLOAT16; }},
    {"a channel too many", CUDNN_STATUS_BAD_PARAM, "A is 4 along dimension 1", [](biased &b) { b.more_channels = 1; }},
    {"a gradient in bfloat16", CUDNN_STATUS_NOT_SUPPORTED, "bfloat16",
     [](biased &b) { b.type = b.bias_type = CUDNN_DATA_BFLOAT16, b.add = false; }},
    {"a gradient of a channel too many", CUDNN_STATUS_BAD_PARAM, "not 1xCx1x1",
     [](biased &b) { b.add = false, b.more_channels = 1; }},
};

Test(norm, wrong_biases_are_refused)
{
	for (const auto &w : wrong_biases)
		expect_refused(w.name, w.status, w.reason, [&w]() -> int {
			biased b;
			w.change(b);
			return b.run();
		});
}
