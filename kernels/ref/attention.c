/* Causal multi-head attention, as its three ops. qkv (B, T, 3C) holds q, k and v side by side, each of H heads of C/H. */
#include "kernels/ref/ref.h"

#include <math.h>

typedef struct heads {
	int64_t b, t, h, size; /* batch, sequence, heads, width of a head */
} heads;

static heads heads_of(const ck_op_desc *d, int qkv)
{
	const int64_t *s = d->in[qkv].shape.d;
	return (heads){s[0], s[1], d->attr.heads, s[2] / 3 / d->attr.heads};
}

enum part { Q, K, V };

/* Where the vector of q, k or v at (b, i, h) starts in qkv. */
static int64_t qkv_index(const heads *n, enum part part, int64_t b, int64_t i, int64_t h)
{
	return (((b * n->t + i) * 3 + part) * n->h + h) * n->size;
}

/* Row (b, h, i) of scores and probabilities: T elements. */
static int64_t row_index(const heads *n, int64_t b, int64_t h, int64_t i)
{
	return ((b * n->h + h) * n->t + i) * n->t;
}

static double dot(const double *a, const double *b, int64_t n)
{
	double sum = 0;
	for (int64_t i = 0; i < n; i++)
		sum += a[i] * b[i];
	return sum;
}

/* sum over j of weight[j * step] * (vector `part` at (b, j, h))[c] */
static double mix(const heads *n, const double *weight, int64_t step, const double *qkv, enum part part, int64_t b, int64_t h,
		  int64_t c)
{
	double sum = 0;
	for (int64_t j = 0; j < n->t; j++)
		sum += weight[j * step] * qkv[qkv_index(n, part, b, j, h) + c];
	return sum;
}

void ck__ref_scores_forward(const ck_op_desc *d, const ck_args *a)
{
	heads n = heads_of(d, 0);
	const double *qkv = a->in[0]; // (B, T, 3C)
	double *s = a->out[0];        // (B, H, T, T)
	for (int64_t b = 0; b < n.b; b++)
		for (int64_t h = 0; h < n.h; h++)
			for (int64_t i = 0; i < n.t; i++)
				for (int64_t j = 0; j < n.t; j++)
					s[row_index(&n, b, h, i) + j] =
					    d->attr.scale *
					    dot(qkv + qkv_index(&n, Q, b, i, h), qkv + qkv_index(&n, K, b, j, h), n.size);
}

/* dq_i = scale sum_j ds_ij k_j,  dk_j = scale sum_i ds_ij q_i; the part of v is another op's. */
void ck__ref_scores_backward(const ck_op_desc *d, const ck_args *a)
{
	heads n = heads_of(d, 0);
	const double *qkv = a->in[0], *ds = a->dout;
	double *dqkv = a->din[0];
	for (int64_t b = 0; b < n.b; b++)
		for (int64_t h = 0; h < n.h; h++)
			for (int64_t i = 0; i < n.t; i++)
				for (int64_t c = 0; c < n.size; c++) {
					double dq = mix(&n, ds + row_index(&n, b, h, i), 1, qkv, K, b, h, c);
					double dk = mix(&n, ds + row_index(&n, b, h, 0) + i, n.t, qkv, Q, b, h, c);
					ck__ref_put(&dqkv[qkv_index(&n, Q, b, i, h) + c], d->attr.scale * dq, a->acc[0]);
					ck__ref_put(&dqkv[qkv_index(&n, K, b, i, h) + c], d->attr.scale * dk, a->acc[0]);
				}
}

/* How many leading elements of a row are not masked. */
static int64_t visible(const ck_op_desc *d, int64_t row, int64_t width)
{
	return d->attr.causal ? row % width + 1 : width;
}

void ck__ref_softmax_forward(const ck_op_desc *d, const ck_args *a)
{
	int64_t rows = ck_shape_rows(d->in[0].shape), width = ck_shape_last(d->in[0].shape);
	for (int64_t row = 0; row < rows; row++) {
		const double *s = (const double *)a->in[0] + row * width; /* may be p itself */
		double *p = (double *)a->out[0] + row * width, max = s[0], sum = 0;
		int64_t n = visible(d, row, width);
		for (int64_t j = 1; j < n; j++)
			max = s[j] > max ? s[j] : max;
		for (int64_t j = 0; j < n; j++)
			sum += p[j] = exp(s[j] - max);
		for (int64_t j = 0; j < width; j++)
			p[j] = j < n ? p[j] / sum : 0;
	}
}

/* ds = p (dp - <p, dp>); what is masked gets zero, and its dp is not read. */
void ck__ref_softmax_backward(const ck_op_desc *d, const ck_args *a)
{
	int64_t rows = ck_shape_rows(d->in[0].shape), width = ck_shape_last(d->in[0].shape);
	for (int64_t row = 0; row < rows; row++) {
		const double *p = (const double *)a->out[0] + row * width;
		const double *dp = (const double *)a->dout + row * width; /* may be ds itself */
		double *ds = (double *)a->din[0] + row * width;
		int64_t n = visible(d, row, width);
		double sum = dot(p, dp, n);
		for (int64_t j = 0; j < width; j++)
			ck__ref_put(&ds[j], j < n ? p[j] * (dp[j] - sum) : 0, a->acc[0]);
	}
}

void ck__ref_wsum_forward(const ck_op_desc *d, const ck_args *a)
{
	heads n = heads_of(d, 1);
	const double *p = a->in[0], *qkv = a->in[1]; // (B, H, T, T), (B, T, 3C)
	double *y = a->out[0];                       // (B, T, C)
	for (int64_t b = 0; b < n.b; b++)
		for (int64_t i = 0; i < n.t; i++)
			for (int64_t h = 0; h < n.h; h++)
				for (int64_t c = 0; c < n.size; c++)
					y[((b * n.t + i) * n.h + h) * n.size + c] =
					    mix(&n, p + row_index(&n, b, h, i), 1, qkv, V, b, h, c);
}

/* dp_ij = <dy_i, v_j>,  dv_j = sum_i p_ij dy_i; the parts of q and k are another op's. */
void ck__ref_wsum_backward(const ck_op_desc *d, const ck_args *a)
{
	heads n = heads_of(d, 1);
	const double *p = a->in[0], *qkv = a->in[1], *dy = a->dout;
	double *dp = a->din[0], *dqkv = a->din[1];
	for (int64_t b = 0; b < n.b; b++)
		for (int64_t h = 0; h < n.h; h++)
			for (int64_t j = 0; j < n.t; j++) {
				int64_t v = qkv_index(&n, V, b, j, h);
				for (int64_t i = 0; dp && i < n.t; i++)
					ck__ref_put(&dp[row_index(&n, b, h, i) + j],
						    dot(dy + ((b * n.t + i) * n.h + h) * n.size, qkv + v, n.size), a->acc[0]);
				for (int64_t c = 0; dqkv && c < n.size; c++) {
					double sum = 0;
					for (int64_t i = 0; i < n.t; i++)
						sum +=
						    p[row_index(&n, b, h, i) + j] * dy[((b * n.t + i) * n.h + h) * n.size + c];
					ck__ref_put(&dqkv[v + c], sum, a->acc[1]);
				}
			}
}
