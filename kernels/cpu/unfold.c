#include "kernels/cpu/unfold.h"

#include <string.h>

/* One row: the window at output place (oy, ox) of image x (H,W,C). */
static void unfold_window(const ck_op_desc *desc, const char *x, int64_t oy, int64_t ox, char *row)
{
	const ck_attr *a = &desc->attr;
	const int64_t *d = desc->in[0].shape.d, h = d[1], w = d[2],
		      c = d[3] * (int64_t)ck_dtype_size(desc->in[0].dtype); /* bytes */
	for (int i = 0; i < a->kh; i++)
		for (int j = 0; j < a->kw; j++, row += c) {
			int64_t y = oy * a->stride + i - a->pad, z = ox * a->stride + j - a->pad;
			if (y >= 0 && y < h && z >= 0 && z < w)
				memcpy(row, x + (y * w + z) * c, (size_t)c);
			else
				memset(row, 0, (size_t)c);
		}
}

void ck__unfold(const ck_device *d, const ck_op_desc *desc, const ck_stored *x, ck_stored *windows)
{
	const int64_t *in = desc->in[0].shape.d, *out = desc->out[0].shape.d;
	ck_dtype t = desc->in[0].dtype;
	int64_t rows = ck_shape_rows(desc->out[0].shape), width = in[3] * desc->attr.kh * desc->attr.kw;
	int team = ck__team(d, rows * width);
	CK_PARTS(team, part)
	{
		ck_span s = ck__span(rows, team, part, 1);
		for (int64_t row = s.from; row < s.to; row++) {
			int64_t image = row / (out[1] * out[2]), place = row % (out[1] * out[2]);
			unfold_window(desc, ck__at(t, x, image * in[1] * in[2] * in[3]), place / out[2], place % out[2],
				      ck__at(t, windows, row * width));
		}
	}
}
