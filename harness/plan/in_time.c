/* Placement in the order of time: a list of free gaps, sorted by offset; the last one has no end. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "harness/plan/buffer.h"
#include "kernels/alloc.h"

typedef struct gap {
	size_t from, to;
} gap;

typedef struct gaps {
	gap *at;
	int n, capacity;
} gaps;

/* The first gap that begins at or after `offset`. */
static int find(const gaps *g, size_t offset)
{
	int low = 0, high = g->n;
	while (low < high) {
		int middle = (low + high) / 2;
		if (g->at[middle].from < offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void delete_gap(gaps *g, int i)
{
	memmove(g->at + i, g->at + i + 1, (size_t)(g->n - i - 1) * sizeof *g->at);
	g->n--;
}

static size_t take(gaps *g, size_t bytes)
{
	int best = g->n - 1;
	for (int i = 0; i < g->n - 1; i++) {
		size_t size = g->at[i].to - g->at[i].from;
		if (size >= bytes && size < g->at[best].to - g->at[best].from)
			best = i;
	}
	size_t offset = g->at[best].from;
	g->at[best].from += bytes;
	if (g->at[best].from == g->at[best].to)
		delete_gap(g, best);
	return offset;
}

static void give_back(gaps *g, size_t from, size_t to)
{
	int i = find(g, from);
	bool joins_next = i < g->n && g->at[i].from == to, joins_last = i > 0 && g->at[i - 1].to == from;
	if (joins_next && joins_last) {
		g->at[i - 1].to = g->at[i].to;
		delete_gap(g, i);
	} else if (joins_next) {
		g->at[i].from = from;
	} else if (joins_last) {
		g->at[i - 1].to = to;
	} else {
		g->at = ck_grow(g->at, &g->capacity, g->n + 1, sizeof *g->at);
		memmove(g->at + i + 1, g->at + i, (size_t)(g->n - i) * sizeof *g->at);
		g->at[i] = (gap){from, to};
		g->n++;
	}
}

/* Buffers by an instruction: lists threaded through next[], from first[i]. */
typedef struct lists {
	int *first, *next;
} lists;

/* By the instruction at which each begins, or at which it ends. */
static lists list_buffers(const buffer *b, int n, int instructions, bool by_end)
{
	lists l = {ck_alloc((size_t)instructions, sizeof *l.first), ck_alloc((size_t)n, sizeof *l.next)};
	memset(l.first, 0xff, (size_t)instructions * sizeof *l.first); /* -1 */
	for (int i = n - 1; i >= 0; i--) {
		int at = by_end ? b[i].to : b[i].from;
		l.next[i] = l.first[at];
		l.first[at] = i;
	}
	return l;
}

static void free_lists(lists l)
{
	free(l.first);
	free(l.next);
}

size_t ck__place_in_time(buffer *b, int n, int instructions, bool backwards)
{
	gaps free_gaps = {0};
	size_t top = 0;
	lists come = list_buffers(b, n, instructions, backwards), go = list_buffers(b, n, instructions, !backwards);
	free_gaps.at = ck_grow(NULL, &free_gaps.capacity, 1, sizeof *free_gaps.at);
	free_gaps.at[free_gaps.n++] = (gap){0, SIZE_MAX};
	for (int k = 0; k < instructions; k++) {
		int at = backwards ? instructions - 1 - k : k;
		for (int i = come.first[at]; i >= 0; i = come.next[i]) {
			b[i].offset = take(&free_gaps, b[i].bytes);
			top = b[i].offset + b[i].bytes > top ? b[i].offset + b[i].bytes : top;
		}
		for (int i = go.first[at]; i >= 0; i = go.next[i])
			give_back(&free_gaps, b[i].offset, b[i].offset + b[i].bytes);
	}
	free(free_gaps.at);
	free_lists(come);
	free_lists(go);
	return top;
}
