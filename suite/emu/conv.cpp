/* The double of cuDNN's convolutions: right ones against plain loops, and one wrong call for each rule, told by its status and its
 * reason.
 *
 *     build/suite/emu-conv --filter 'conv/...' */
#include <cudnn.h>

#include "suite/emu/doubles.h"

#include <criterion/criterion.h>
#include <math.h>

enum conv_pass { FORWARD, DATA, FILTER };

static stored stored_of(cudnnDataType_t t)
{
	return t == CUDNN_DATA_FLOAT ? stored::f32 : t == CUDNN_DATA_HALF ? stored::f16 : stored::bf16;
}

/* A call, right as it stands: each test changes what it is about. */
struct conv {
	const char *name = "a right call";
	conv_pass way = FORWARD;
	int n = 2, h = 7, w = 6, groups = 2, c = 4, k = 6, r = 3, s = 3, pad = 1, stride = 2, dilation = 1;
	cudnnDataType_t x_type = CUDNN_DATA_FLOAT, w_type = CUDNN_DATA_FLOAT, y_type = CUDNN_DATA_FLOAT,
			compute = CUDNN_DATA_FLOAT;
	cudnnMathType_t math = CUDNN_FMA_MATH;
	cudnnTensorFormat_t x_format = CUDNN_TENSOR_NHWC, w_format = CUDNN_TENSOR_NHWC;
	int algo = 1, more_images = 0, more_outputs = 0, more_height = 0, more_groups = 0,
	    offset = 0; /* of y; of the descriptor; bytes of what is read first */
	float alpha = 1, beta = 0;
	std::function<void(conv &)> before_call = [](conv &) {};

	cudnnHandle_t handle;
	cudnnTensorDescriptor_t xd, yd;
	cudnnFilterDescriptor_t wd;
	cudnnConvolutionDescriptor_t cd;
	std::vector<float> x, y, f; /* as they were before */
	char *x_at, *y_at, *f_at;
	const void *alpha_at;
	void *workspace;
	size_t bytes;

	int p() const
	{
		return (h + 2 * pad - dilation * (r - 1) - 1) / stride + 1;
	}
	int q() const
	{
		return (w + 2 * pad - dilation * (s - 1) - 1) / stride + 1;
	}

	cudnnStatus_t ask()
	{
		switch (way) {
		case FORWARD:
			return cudnnGetConvolutionForwardWorkspaceSize(handle, xd, wd, cd, yd, (cudnnConvolutionFwdAlgo_t)algo,
								       &bytes);
		case DATA:
			return cudnnGetConvolutionBackwardDataWorkspaceSize(handle, wd, yd, cd, xd,
									    (cudnnConvolutionBwdDataAlgo_t)algo, &bytes);
		default:
			return cudnnGetConvolutionBackwardFilterWorkspaceSize(handle, xd, yd, cd, wd,
									      (cudnnConvolutionBwdFilterAlgo_t)algo, &bytes);
		}
	}

	cudnnStatus_t call()
	{
		switch (way) {
		case FORWARD:
			return cudnnConvolutionForward(handle, alpha_at, xd, x_at, wd, f_at, cd,
						       (cudnnConvolutionFwdAlgo_t)algo, workspace, bytes, &beta, yd, y_at);
		case DATA:
			return cudnnConvolutionBackwardData(handle, alpha_at, wd, f_at, yd, y_at, cd,
							    (cudnnConvolutionBwdDataAlgo_t)algo, workspace, bytes, &beta, xd,
							    x_at);
		default:
			return cudnnConvolutionBackwardFilter(handle, alpha_at, xd, x_at, yd, y_at, cd,
							      (cudnnConvolutionBwdFilterAlgo_t)algo, workspace, bytes, &beta,
							      wd, f_at);
		}
	}

	void make()
	{
		cr_assert(cudnnCreate(&handle) == CUDNN_STATUS_SUCCESS);
		cudnnCreateTensorDescriptor(&xd);
		cudnnCreateTensorDescriptor(&yd);
		cudnnCreateFilterDescriptor(&wd);
		cudnnCreateConvolutionDescriptor(&cd);
		cudnnSetTensor4dDescriptor(xd, x_format, x_type, n, c, h, w);
		cudnnSetTensor4dDescriptor(yd, CUDNN_TENSOR_NHWC, y_type, n + more_images, k + more_outputs, p() + more_height,
					   q());
		cudnnSetFilter4dDescriptor(wd, w_type, w_format, k, c / groups, r, s);
		cudnnSetConvolution2dDescriptor(cd, pad, pad, stride, stride, dilation, dilation, CUDNN_CROSS_CORRELATION,
						compute);
		cudnnSetConvolutionGroupCount(cd, groups + more_groups);
		cudnnSetConvolutionMathType(cd, math);
		x = eighths((size_t)(n * h * w * c), 1);
		y = eighths((size_t)(n * p() * q() * k), 2);
		f = eighths((size_t)(k * r * s * c / groups), 3);
		x_at = upload(stored_of(x_type), x, (size_t)offset);
		y_at = upload(stored_of(y_type), y);
		f_at = upload(stored_of(w_type), f);
	}

	cudnnStatus_t run()
	{
		make();
		cudnnStatus_t status = ask();
		if (status != CUDNN_STATUS_SUCCESS)
			return status;
		workspace = bytes ? device_memory(bytes) : nullptr;
		alpha_at = &alpha;
		before_call(*this);
		status = call();
		cr_assert(cudaDeviceSynchronize() == cudaSuccess);
		return status;
	}

	size_t x_index(int i, int row, int column, int channel) const
	{
		return (size_t)(((i * h + row) * w + column) * c + channel);
	}

	/* What is computed, in double, from what was there before: y's, x's or w's sums. */
	std::vector<double> sums() const
	{
		std::vector<double> sum(way == FORWARD ? y.size() : way == DATA ? x.size() : f.size(), 0.0);
		for (int i = 0; i < n; i++)
			for (int a = 0; a < p(); a++)
				for (int b = 0; b < q(); b++)
					for (int o = 0; o < k; o++)
						for (int t = 0; t < r * s; t++)
							for (int e = 0; e < c / groups; e++) {
								int row = a * stride + t / s * dilation - pad;
								int column = b * stride + t % s * dilation - pad;
								if (row < 0 || row >= h || column < 0 || column >= w)
									continue;
								int group = o / (k / groups);
								size_t xi = x_index(i, row, column, group * (c / groups) + e);
								size_t yi = (size_t)(((i * p() + a) * q() + b) * k + o);
								size_t fi = (size_t)((o * r * s + t) * (c / groups) + e);
								if (way == FORWARD)
									sum[yi] += (double)x[xi] * (double)f[fi];
								else if (way == DATA)
									sum[xi] += (double)y[yi] * (double)f[fi];
								else
									sum[fi] += (double)x[xi] * (double)y[yi];
							}
		return sum;
	}
	const std::vector<float> &before() const
	{
		return way == FORWARD ? y : way == DATA ? x : f;
	}
	std::vector<float> after() const
	{
		const char *at = way == FORWARD ? y_at : way == DATA ? x_at : f_at;
		return download(stored_of(x_type), at, before().size());
	}
};

struct conv_variant {
	const char *name;
	void (*change)(conv &);
};

static void types(conv &v, cudnnDataType_t t)
{
	v.x_type = v.w_type = v.y_type = t;
	v.math = CUDNN_TENSOR_OP_MATH;
}

static const conv_variant right[] = {
    {"groups, stride, padding", [](conv &) {}},
    {"one by one", [](conv &v) { v.r = v.s = v.stride = 1, v.pad = 0, v.groups = 1; }},
    {"5x1, dilated", [](conv &v) { v.r = 3, v.s = 1, v.dilation = 2, v.pad = 2, v.stride = 1; }},
    {"alpha and beta", [](conv &v) { v.alpha = 0.5f, v.beta = 2; }},
    {"bfloat16", [](conv &v) { types(v, CUDNN_DATA_BFLOAT16); }},
    {"float16", [](conv &v) { types(v, CUDNN_DATA_HALF); }},
    {"algorithm 0", [](conv &v) { v.algo = 0; }},
};

/* Exact, whatever the order of the sums. */
Test(conv, right_convolutions)
{
	for (conv_pass way : {FORWARD, DATA, FILTER})
		for (const conv_variant &each : right) {
			conv v;
			v.way = way;
			each.change(v);
			cr_assert(v.run() == CUDNN_STATUS_SUCCESS, "%s, pass %d: %s", each.name, way, ck_emu_refusal());
			std::vector<double> sums = v.sums();
			std::vector<float> got = v.after();
			for (size_t i = 0; i < got.size(); i++) {
				double want = (double)v.alpha * sums[i];
				want += v.beta != 0 ? (double)v.beta * (double)v.before()[i] : 0;
				float want_stored = rounded(stored_of(v.x_type), want);
				cr_assert(got[i] == want_stored, "%s, pass %d: element %zu is %.9g, not %.9g", each.name, way,
					  i, (double)got[i], (double)want_stored);
			}
		}
}

/* 1 + 2^-11 is no TF32: only FMA keeps it. */
Test(conv, float32_is_rounded_but_for_fma)
{
	for (cudnnMathType_t math :
	     {CUDNN_DEFAULT_MATH, CUDNN_TENSOR_OP_MATH, CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION, CUDNN_FMA_MATH})
		for (conv_pass way : {FORWARD, DATA, FILTER}) {
			conv v;
			v.way = way, v.math = math;
			v.n = v.h = v.w = v.r = v.s = v.c = v.k = v.groups = v.stride = 1, v.pad = 0;
			v.before_call = [](conv &t) {
				char *number = upload(stored::f32, {1 + 0x1p-11f}),
				     *again = upload(stored::f32, {1 + 0x1p-11f});
				t.x_at = t.way == DATA ? t.x_at : number;
				t.f_at = t.way == FILTER ? t.f_at : t.way == FORWARD ? again : number;
				t.y_at = t.way == FORWARD ? t.y_at : again;
			};
			cr_assert(v.run() == CUDNN_STATUS_SUCCESS);
			float want = math == CUDNN_FMA_MATH ? (1 + 0x1p-11f) * (1 + 0x1p-11f) : 1, got = v.after()[0];
			cr_expect(got == want, "math type %d, pass %d: %.9g, not %.9g", math, way, (double)got, (double)want);
		}
}

/* The algorithms that add by atomics differ in bits from one call to the next, the others do not. */
Test(conv, algorithm_0_adds_in_any_order)
{
	for (conv_pass way : {FORWARD, DATA, FILTER})
		for (int algo : {0, 1}) {
			conv v;
			v.way = way, v.algo = algo;
			v.n = 4, v.h = v.w = 12, v.c = v.k = 16;
			v.make();
			for (std::vector<float> *values : {&v.x, &v.y, &v.f})
				for (float &value : *values)
					value = value / 3; /* sums are not exact any more */
			v.x_at = upload(stored::f32, v.x);
			v.y_at = upload(stored::f32, v.y);
			v.f_at = upload(stored::f32, v.f);
			cr_assert(v.ask() == CUDNN_STATUS_SUCCESS);
			v.workspace = v.bytes ? device_memory(v.bytes) : nullptr;
			v.alpha_at = &v.alpha;
			cr_assert(v.call() == CUDNN_STATUS_SUCCESS);
			std::vector<float> first = v.after();
			cr_assert(v.call() == CUDNN_STATUS_SUCCESS);
			bool differ = v.after() != first;
			cr_expect(differ == (way != FORWARD && algo == 0), "pass %d, algorithm %d: the calls %s", way, algo,
				  differ ? "differ" : "are the same");
			std::vector<double> sums = v.sums();
			for (size_t i = 0; i < first.size(); i++)
				cr_assert(fabs((double)first[i] - sums[i]) < 1e-3, "pass %d, algorithm %d: %g, not %g", way,
					  algo, (double)first[i], sums[i]);
		}
}

Test(conv, the_workspace_is_spoiled)
{
	for (conv_pass way : {FORWARD, DATA, FILTER}) {
		conv v;
		v.way = way;
		v.before_call = [](conv &t) { t.workspace = upload(stored::f32, std::vector<float>(t.bytes / 4, 1.0f)); };
		cr_assert(v.run() == CUDNN_STATUS_SUCCESS);
		cr_assert(v.bytes > 0, "pass %d needs no workspace", way);
		for (float left : download(stored::f32, v.workspace, v.bytes / 4))
			cr_assert(isnan(left), "pass %d: the workspace keeps what lay there", way);
	}
}

/* ---- wrong calls ---------------------------------------------------------------------------------------------------------- */

struct wrong_conv {
	const char *name;
	int status;
	const char *reason;
	void (*change)(conv &);
};

#define BEFORE(...) v.before_call = [](conv &t) { __VA_ARGS__; }

static const wrong_conv wrongs[] = {
    {"w of another type than x", CUDNN_STATUS_BAD_PARAM, "types of x, w, y", [](conv &v) { v.w_type = CUDNN_DATA_HALF; }},
    {"dw in float32 for bfloat16", CUDNN_STATUS_BAD_PARAM, "bfloat16, float32, bfloat16",
     [](conv &v) { types(v, CUDNN_DATA_BFLOAT16), v.w_type = CUDNN_DATA_FLOAT, v.way = FILTER; }},
    {"y of another type than x", CUDNN_STATUS_BAD_PARAM, "types of x, w, y", [](conv &v) { v.y_type = CUDNN_DATA_BFLOAT16; }},
    {"bfloat16 computed in half", CUDNN_STATUS_NOT_SUPPORTED, "computed in data type",
     [](conv &v) { types(v, CUDNN_DATA_BFLOAT16), v.compute = CUDNN_DATA_HALF; }},
    {"dw of half computed in half", CUDNN_STATUS_NOT_SUPPORTED, "computed in data type",
     [](conv &v) { types(v, CUDNN_DATA_HALF), v.compute = CUDNN_DATA_HALF, v.way = FILTER; }},
    {"half computed in half", ENDS, "not modelled", [](conv &v) { types(v, CUDNN_DATA_HALF), v.compute = CUDNN_DATA_HALF; }},
    {"bfloat16 by FMA", CUDNN_STATUS_NOT_SUPPORTED, "no algorithm for FMA",
     [](conv &v) { types(v, CUDNN_DATA_BFLOAT16), v.math = CUDNN_FMA_MATH; }},
    {"a channel a group", CUDNN_STATUS_NOT_SUPPORTED, "a channel a group", [](conv &v) { v.groups = 4, v.k = 4; }},
    {"groups that do not divide", CUDNN_STATUS_BAD_PARAM, "4 channels", [](conv &v) { v.more_groups = 1; }},
    {"an image of y too many", CUDNN_STATUS_NOT_SUPPORTED, "x has 2 images, y 3", [](conv &v) { v.more_images = 1; }},
    {"an output of y too many", CUDNN_STATUS_BAD_PARAM, "y 7 channels", [](conv &v) { v.more_outputs = 1; }},
    {"a row of y too many", CUDNN_STATUS_NOT_SUPPORTED, "y is 5 along axis 0, not 4", [](conv &v) { v.more_height = 1; }},
    {"x in NCHW with an NHWC filter", CUDNN_STATUS_NOT_SUPPORTED, "not NHWC without gaps",
     [](conv &v) { v.x_format = CUDNN_TENSOR_NCHW; }},
    {"an NCHW filter", ENDS, "NCHW filters are not modelled", [](conv &v) { v.w_format = CUDNN_TENSOR_NCHW; }},
    {"forward by GEMM", CUDNN_STATUS_NOT_SUPPORTED, "no NHWC filters",
     [](conv &v) { v.algo = CUDNN_CONVOLUTION_FWD_ALGO_GEMM; }},
    {"data by Winograd", CUDNN_STATUS_NOT_SUPPORTED, "no NHWC filters",
     [](conv &v) { v.way = DATA, v.algo = CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD; }},
    {"filter by ALGO_3", CUDNN_STATUS_NOT_SUPPORTED, "no NHWC filters",
     [](conv &v) { v.way = FILTER, v.algo = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3; }},
    {"an algorithm with less workspace than it needs", CUDNN_STATUS_BAD_PARAM, "the algorithm needs",
     [](conv &v) { BEFORE(t.bytes--); }},
    {"no workspace", CUDNN_STATUS_BAD_PARAM, "no workspace", [](conv &v) { v.way = DATA, BEFORE(t.workspace = nullptr); }},
    {"the size asked for one algorithm, the call with another", CUDNN_STATUS_BAD_PARAM, "the algorithm needs",
     [](conv &v) { v.way = FILTER, v.algo = 0, BEFORE(t.algo = 1); }},
    {"alpha is NULL", CUDNN_STATUS_BAD_PARAM, "a pointer is NULL", [](conv &v) { BEFORE(t.alpha_at = nullptr); }},
    {"x is NULL", CUDNN_STATUS_BAD_PARAM, "a pointer is NULL", [](conv &v) { BEFORE(t.x_at = nullptr); }},
    {"a descriptor that was never set", CUDNN_STATUS_BAD_PARAM, "not set",
     [](conv &v) { BEFORE(cudnnCreateTensorDescriptor(&t.yd)); }},
    {"alpha on the device", ENDS, "cudnnConvolutionForward", [](conv &v) { BEFORE(t.alpha_at = t.f_at); }},
    {"x on the host", ENDS, "cudnnConvolutionForward: x",
     [](conv &v) { BEFORE(t.x_at = reinterpret_cast<char *>(t.x.data())); }},
    {"x between elements", ENDS, "x is not aligned to 4 bytes", [](conv &v) { v.offset = 2; }},
    {"w an element too short", ENDS, "cudnnConvolutionForward: w", [](conv &v) { BEFORE(t.f_at += 4); }},
    {"y over x", ENDS, "y overlaps x", [](conv &v) { v.k = 4, v.stride = 1, BEFORE(t.y_at = t.x_at); }},
    {"dw over the workspace", ENDS, "the workspace overlaps dw",
     [](conv &v) { v.way = FILTER, v.k = 64, v.c = 8, BEFORE(t.f_at = static_cast<char *>(t.workspace)); }},
    {"a handle that is gone", ENDS, "was destroyed", [](conv &v) { BEFORE(cudnnDestroy(t.handle)); }},
    {"a descriptor that is gone", ENDS, "was destroyed", [](conv &v) { BEFORE(cudnnDestroyFilterDescriptor(t.wd)); }},
};

Test(conv, wrong_calls_are_refused)
{
	for (const wrong_conv &w : wrongs)
		expect_refused(w.name, w.status, w.reason, [&w]() -> int {
			conv v;
			w.change(v);
			return v.run();
		});
}

/* What the real library, too, said to these. */
Test(conv, descriptors)
{
	cudnnTensorDescriptor_t x;
	cudnnFilterDescriptor_t w;
	cudnnConvolutionDescriptor_t c;
	cudnnCreateTensorDescriptor(&x);
	cudnnCreateFilterDescriptor(&w);
	cudnnCreateConvolutionDescriptor(&c);
	const cudnnTensorFormat_t nhwc = CUDNN_TENSOR_NHWC;
	const cudnnDataType_t f = CUDNN_DATA_FLOAT;
	const cudnnConvolutionMode_t cross = CUDNN_CROSS_CORRELATION;
	const struct {
		const char *call;
		cudnnStatus_t want, got;
	} calls[] = {
#define CALL(want, call) {#call, want, call}
	    CALL(CUDNN_STATUS_SUCCESS, cudnnSetTensor4dDescriptor(x, nhwc, f, 2, 3, 4, 5)),
	    CALL(CUDNN_STATUS_BAD_PARAM, cudnnSetTensor4dDescriptor(x, nhwc, f, 0, 3, 4, 5)),
	    CALL(CUDNN_STATUS_BAD_PARAM, cudnnSetTensor4dDescriptor(x, nhwc, (cudnnDataType_t)31, 2, 3, 4, 5)),
	    CALL(CUDNN_STATUS_BAD_PARAM, cudnnSetTensor4dDescriptor(x, (cudnnTensorFormat_t)3, f, 2, 3, 4, 5)),
	    CALL(CUDNN_STATUS_BAD_PARAM, cudnnSetTensor4dDescriptor(NULL, nhwc, f, 2, 3, 4, 5)),
	    CALL(CUDNN_STATUS_NOT_SUPPORTED, cudnnSetTensor4dDescriptor(x, nhwc, f, 70000, 3000, 400, 500)),
	    CALL(CUDNN_STATUS_BAD_PARAM, cudnnSetTensor4dDescriptorEx(x, f, 2, 3, 4, 5, 60, 0, 15, 3)),
	    CALL(CUDNN_STATUS_SUCCESS, cudnnSetTensor4dDescriptorEx(x, f, 2, 1, 4, 5, 60, 0, 15, 3)),
	    CALL(CUDNN_STATUS_SUCCESS, cudnnSetFilter4dDescriptor(w, f, nhwc, 6, 3, 3, 3)),
	    CALL(CUDNN_STATUS_BAD_PARAM, cudnnSetFilter4dDescriptor(w, f, nhwc, 0, 3, 3, 3)),
	    CALL(CUDNN_STATUS_SUCCESS, cudnnSetConvolution2dDescriptor(c, 1, 1, 1, 1, 1, 1, cross, f)),
	    CALL(CUDNN_STATUS_BAD_PARAM, cudnnSetConvolution2dDescriptor(c, -1, 1, 1, 1, 1, 1, cross, f)),
	    CALL(CUDNN_STATUS_BAD_PARAM, cudnnSetConvolution2dDescriptor(c, 1, 1, 0, 1, 1, 1, cross, f)),
	    CALL(CUDNN_STATUS_BAD_PARAM, cudnnSetConvolution2dDescriptor(c, 1, 1, 1, 1, 0, 1, cross, f)),
	    CALL(CUDNN_STATUS_BAD_PARAM, cudnnSetConvolution2dDescriptor(c, 1, 1, 1, 1, 1, 1, cross, CUDNN_DATA_BFLOAT16)),
	    CALL(CUDNN_STATUS_BAD_PARAM, cudnnSetConvolutionGroupCount(c, 0)),
#undef CALL
	};
	for (const auto &call : calls)
		cr_expect(call.got == call.want, "%s: %s, not %s", call.call, cudnnGetErrorString(call.got),
			  cudnnGetErrorString(call.want));
}
