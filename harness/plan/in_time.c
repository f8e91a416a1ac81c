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

size_t ck__place_in_time(buffer *b, int n, int instructions)
{
	gaps free_gaps = {0};
	size_t top = 0;
	/* the buffers that end at instruction i: a list threaded through next[], from last[i] */
	int *last = ck_alloc((size_t)instructions, sizeof *last), *next = ck_alloc((size_t)n, sizeof *next);
	memset(last, 0xff, (size_t)instructions * sizeof *last); /* -1 */
	for (int i = 0; i < n; i++) {
		next[i] = last[b[i].to];
		last[b[i].to] = i;
	}
	free_gaps.at = ck_grow(NULL, &free_gaps.capacity, 1, sizeof *free_gaps.at);
	free_gaps.at[free_gaps.n++] = (gap){0, SIZE_MAX};
	int born = 0;
	for (int at = 0; at < instructions; at++) {
		for (; born < n && b[born].from == at; born++) {
			b[born].offset = take(&free_gaps, b[born].bytes);
			top = b[born].offset + b[born].bytes > top ? b[born].offset + b[born].bytes : top;
		}
		for (int i = last[at]; i >= 0; i = next[i])
			give_back(&free_gaps, b[i].offset, b[i].offset + b[i].bytes);
	}
	free(free_gaps.at);
	free(last);
	free(next);
	return top;
}
