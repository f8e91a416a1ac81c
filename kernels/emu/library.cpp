#include "kernels/emu/library.h"

#include <algorithm>
#include <numeric>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/half.h"

/* ---- refusals ------------------------------------------------------------------------------------------------------------ */

static char refusal[512];

const char *ck_emu_refusal(void)
{
	return refusal;
}

void ck_emu_refuse(const char *format, ...)
{
	va_list list;
	va_start(list, format);
	vsnprintf(refusal, sizeof refusal, format, list);
	va_end(list);
	const char *log = getenv("CKBENCH_EMU_LOG");
	if (log && *log == '1')
		fprintf(stderr, "refused: %s\n", refusal);
}

/* ---- elements ------------------------------------------------------------------------------------------------------------ */

size_t ck_emu_size(stored t)
{
	return t == stored::f32 ? 4 : 2;
}

const char *ck_emu_name(stored t)
{
	return t == stored::f32 ? "float32" : t == stored::f16 ? "float16" : t == stored::bf16 ? "bfloat16" : "another type";
}

void ck_emu_widen(stored t, const void *x, int64_t first, int64_t n, float *to)
{
	const uint16_t *h = static_cast<const uint16_t *>(x) + first;
	if (t == stored::f32)
		memcpy(to, static_cast<const float *>(x) + first, (size_t)n * sizeof *to);
	else if (t == stored::f16)
		for (int64_t i = 0; i < n; i++)
			to[i] = ck_f16_get(h[i]);
	else
		for (int64_t i = 0; i < n; i++)
			to[i] = ck_bf16_get(h[i]);
}

float ck_emu_get(stored t, const void *x, int64_t i)
{
	float v;
	ck_emu_widen(t, x, i, 1, &v);
	return v;
}

void ck_emu_put(stored t, void *x, int64_t i, float v)
{
	if (t == stored::f32)
		static_cast<float *>(x)[i] = v;
	else
		static_cast<uint16_t *>(x)[i] = t == stored::f16 ? ck_f16_put(v) : ck_bf16_put(v);
}

/* TF32 keeps float's exponent and 10 bits of its fraction; to nearest even. Infinities and NaNs stay. */
static float to_tf32(float x)
{
	uint32_t bits = ck_bits_of_float(x);
	if ((bits & 0x7F800000) == 0x7F800000)
		return x;
	return ck_float_of_bits((bits + 0xFFF + (bits >> 13 & 1)) & ~0x1FFFu);
}

void ck_emu_round(operands how, int64_t n, float *x)
{
	if (how == operands::tf32)
		for (int64_t i = 0; i < n; i++)
			x[i] = to_tf32(x[i]);
	else if (how == operands::f16)
		for (int64_t i = 0; i < n; i++)
			x[i] = ck_f16_get(ck_f16_put(x[i]));
	else if (how == operands::bf16)
		for (int64_t i = 0; i < n; i++)
			x[i] = ck_bf16_get(ck_bf16_put(x[i]));
}

/* ---- products ------------------------------------------------------------------------------------------------------------ */

void ck_emu_product(int64_t m, int64_t n, int64_t k, const float *a, const float *b, double *s)
{
	enum { I = 32, J = 4 }; /* sums held at once */
	for (int64_t j = 0; j < n; j += J)
		for (int64_t i = 0; i < m; i += I) {
			double sum[J][I] = {};
			int64_t rows = std::min<int64_t>(I, m - i), columns = std::min<int64_t>(J, n - j);
			for (int64_t l = 0; l < k; l++) {
				const float *x = a + l * m + i, *y = b + l * n + j;
				if (rows == I && columns == J)
					for (int c = 0; c < J; c++)
						for (int r = 0; r < I; r++)
							sum[c][r] += (double)x[r] * (double)y[c];
				else
					for (int64_t c = 0; c < columns; c++)
						for (int64_t r = 0; r < rows; r++)
							sum[c][r] += (double)x[r] * (double)y[c];
			}
			for (int64_t c = 0; c < columns; c++)
				for (int64_t r = 0; r < rows; r++)
					s[(j + c) * m + i + r] += sum[c][r];
		}
}

void ck_emu_product_any_order(int64_t m, int64_t n, int64_t k, const float *a, const float *b, double *s)
{
	std::vector<int64_t> order((size_t)k);
	std::iota(order.begin(), order.end(), 0);
	for (int64_t l = k - 1; l > 0; l--)
		std::swap(order[(size_t)l], order[ck_emu_random() % (uint32_t)(l + 1)]);
	std::vector<float> x, y;
	for (int64_t first = 0; first < k;) {
		int64_t part = std::min<int64_t>(k - first, 1 + ck_emu_random() % 16);
		x.clear(), y.clear();
		for (int64_t l = first; l < first + part; l++) {
			int64_t at = order[(size_t)l];
			x.insert(x.end(), a + at * m, a + (at + 1) * m);
			y.insert(y.end(), b + at * n, b + (at + 1) * n);
		}
		ck_emu_product(m, n, part, x.data(), y.data(), s);
		for (int64_t e = 0; e < m * n; e++)
			s[e] = (double)(float)s[e];
		first += part;
	}
}

/* ---- memory -------------------------------------------------------------------------------------------------------------- */

bool ck_emu_overlap(const extent &a, const extent &b)
{
	uintptr_t x = (uintptr_t)a.at, y = (uintptr_t)b.at;
	return a.bytes && b.bytes && x < y + b.bytes && y < x + a.bytes;
}

void ck_emu_check_extents(const char *call, const std::vector<extent> &read, const std::vector<extent> &written,
			  const void *inplace)
{
	auto check = [call](const extent &e) {
		char what[128];
		snprintf(what, sizeof what, "%s: %s", call, e.what);
		ck_emu_check_device(e.at, e.bytes, what);
		if (!ck_emu_aligned(e.at, e.align))
			ck_emu_fail("%s is not aligned to %zu bytes", what, e.align);
	};
	for (const extent &e : read)
		check(e);
	for (const extent &w : written) {
		check(w);
		for (const extent &r : read)
			if (ck_emu_overlap(w, r) && !(w.at == inplace && r.at == inplace && w.bytes == r.bytes))
				ck_emu_fail("%s: %s overlaps %s", call, w.what, r.what);
		for (const extent &other : written)
			if (&other < &w && ck_emu_overlap(w, other))
				ck_emu_fail("%s: %s overlaps %s", call, w.what, other.what);
	}
}

uint32_t ck_emu_alignment(const void *p)
{
	uintptr_t all = (uintptr_t)p | 256;
	return (uint32_t)(all & (~all + 1));
}

bool ck_emu_aligned(const void *p, size_t bytes)
{
	return (uintptr_t)p % bytes == 0;
}
