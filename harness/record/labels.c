#include "harness/record/labels.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/alloc.h"

/* Of the plots' theme: half a point's size, and a name's letters at its font size. */
static const double POINT = 6, LETTER = 7.5, LINE = 14;

typedef struct box {
	double left, right, bottom, top;
} box;

static bool overlap(box a, box b)
{
	return a.left < b.right && b.left < a.right && a.bottom < b.top && b.bottom < a.top;
}

static box text_box(const ck_mark *m, double dx, double dy, char side)
{
	double width = LETTER * (double)strlen(m->text);
	double left = m->x + dx - (side == 'l' ? 0 : side == 'r' ? width : width / 2);
	return (box){left, left + width, m->y + dy - LINE / 2, m->y + dy + LINE / 2};
}

static bool is_free(box b, const box *taken, int n, double width, double height)
{
	if (b.left < 0 || b.right > width || b.bottom < 0 || b.top > height)
		return false;
	for (int i = 0; i < n; i++)
		if (overlap(b, taken[i]))
			return false;
	return true;
}

void ck_labels_place(ck_mark *marks, int n, double width, double height)
{
	static const struct {
		double dx, dy;
		char side;
	} places[] = {{8, 10, 'l'}, {-8, 10, 'r'}, {8, -11, 'l'}, {-8, -11, 'r'},
		      {0, 15, 'c'}, {0, -16, 'c'}, {11, 0, 'l'},  {-11, 0, 'r'}};
	box *taken = ck_alloc(3 * (size_t)n, sizeof *taken); /* each point, its bar, its name */
	int used = 0;
	for (int i = 0; i < n; i++) {
		const ck_mark *m = &marks[i];
		taken[used++] = (box){m->x - POINT, m->x + POINT, m->y - POINT, m->y + POINT};
		taken[used++] = (box){m->x - 1, m->x + 1, m->low, m->high};
	}
	for (int i = 0; i < n; i++) {
		ck_mark *m = &marks[i];
		m->side = 0;
		for (size_t p = 0; m->text && !m->side && p < sizeof places / sizeof *places; p++) {
			box b = text_box(m, places[p].dx, places[p].dy, places[p].side);
			if (!is_free(b, taken, used, width, height))
				continue;
			taken[used++] = b;
			m->dx = places[p].dx, m->dy = places[p].dy, m->side = places[p].side;
		}
	}
	free(taken);
}
