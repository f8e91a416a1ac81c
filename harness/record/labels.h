/* Where the names of points stand in a plot, so that none covers a point or another name. */
#ifndef CK_LABELS_H
#define CK_LABELS_H

/* A point and, perhaps, a name for it. Lengths are in pixels of the plot's area, y upward. */
typedef struct ck_mark {
	double x, y, low, high; /* the point, and the ends of its interval's bar */
	const char *text;       /* NULL: needs no name */
	/* out: where the text goes, relative to the point, and which of its ends that is: 'l', 'r' or 'c' (its middle). */
	double dx, dy;
	char side; /* 0: there was no room, or no text */
} ck_mark;

/* Names the marks in the order given, each at the first of eight places around its point that is free. */
void ck_labels_place(ck_mark *marks, int n, double width, double height);

#endif
