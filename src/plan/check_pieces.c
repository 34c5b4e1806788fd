/*
 * check_pieces.c - do the pieces that a plan lists make up its collective?
 *
 * What planners cut needs no such check; a file may list anything.
 */
#include <stdlib.h>

#include "plan/check_run.h"

static enum esp_status fail(struct plan_fault *fault, uint64_t chunk, struct error *err, const char *why)
{
	fault->chunk = chunk;
	return error_set(err, ESP_EPLAN, "chunk %llu: %s", (unsigned long long)chunk, why);
}

/* ---- who gives, who wants, and how the offsets on the two sides go together ---- */

static bool sides_fit(const struct chunks *chunks, const struct plan_piece *piece)
{
	bool from_all = piece->from == PLAN_ALL, to_all = piece->to == PLAN_ALL;

	switch (chunks->collective) {
	case PLAN_ALLREDUCE:
		return from_all && to_all;
	case PLAN_BARRIER:
		return from_all && to_all && piece->bytes == 0;
	case PLAN_REDUCE_SCATTER:
		return from_all && !to_all;
	case PLAN_ALLGATHER:
		return !from_all && to_all;
	case PLAN_BROADCAST:
		return piece->from == chunks->root && to_all;
	case PLAN_REDUCE:
		return from_all && piece->to == chunks->root;
	case PLAN_GATHER:
		return !from_all && piece->to == chunks->root;
	case PLAN_SCATTER:
		return piece->from == chunks->root && !to_all;
	case PLAN_ALLTOALL:
		return !from_all && !to_all;
	}
	return false;
}

static bool is_one_block(enum plan_collective collective)
{
	return collective == PLAN_ALLREDUCE || collective == PLAN_BROADCAST || collective == PLAN_REDUCE ||
	       collective == PLAN_BARRIER;
}

/* A block moves as a whole: the pieces of one have one distance between their two offsets. */
static enum esp_status check_blocks(const struct plan *plan, struct plan_fault *fault, struct error *err)
{
	const struct chunks *chunks = &plan->chunks;
	int64_t distance = 0;

	for (uint64_t c = 0; c < chunks->chunk_count; c++) {
		struct plan_piece piece = chunks_piece(chunks, c);
		int64_t between = (int64_t)(piece.out_at - piece.in_at);
		bool goes_on = false;

		if (!sides_fit(chunks, &piece))
			return fail(fault, c, err, "its two sides are not those of the collective");
		if (c > 0) {
			struct plan_piece before = chunks_piece(chunks, c - 1);

			goes_on = before.from == piece.from && before.to == piece.to;
		}
		if (is_one_block(chunks->collective) ? between != 0 : goes_on && between != distance)
			return fail(fault, c, err, "it does not lie at the same place in input and output");
		distance = between;
	}
	return ESP_OK;
}

/* ---- is every output filled once? ---- */

struct span {
	uint64_t begin, end, chunk;
	uint32_t to;
};

static int span_order(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	return x->chunk < y->chunk ? -1 : x->chunk > y->chunk;
}

/* Spans by rising offset: each begins where what its receiver has so far ends. Sides do not mix (sides_fit). */
static enum esp_status scan_spans(const struct span *spans, uint64_t count, uint64_t *end_of, struct plan_fault *fault,
                                  struct error *err)
{
	uint64_t end_of_all = 0;

	for (uint64_t i = 0; i < count; i++) {
		uint64_t *end = spans[i].to == PLAN_ALL ? &end_of_all : &end_of[spans[i].to];

		if (spans[i].begin != *end)
			return fail(fault, spans[i].chunk, err,
			            spans[i].begin < *end ? "it overlaps another in the output"
			                                  : "there is a gap before it in the output");
		*end = spans[i].end;
	}
	return ESP_OK;
}

static enum esp_status check_cover(const struct plan *plan, struct plan_fault *fault, struct error *err)
{
	uint64_t count = plan->chunks.chunk_count, used = 0;
	struct span *spans = malloc(count * sizeof(*spans));
	uint64_t *end_of = calloc(plan->workers, sizeof(*end_of));
	enum esp_status status = ESP_ENOMEM;

	if (spans && end_of) {
		for (uint64_t c = 0; c < count; c++) {
			struct plan_piece piece = chunks_piece(&plan->chunks, c);

			if (piece.bytes > 0)
				spans[used++] = (struct span){piece.out_at, piece.out_at + piece.bytes, c, piece.to};
		}
		qsort(spans, used, sizeof(*spans), span_order);
		status = scan_spans(spans, used, end_of, fault, err);
	} else {
		error_set(err, ESP_ENOMEM, "no memory to check %llu chunks", (unsigned long long)count);
	}
	free(spans);
	free(end_of);
	return status;
}

enum esp_status check_pieces(const struct plan *plan, struct plan_fault *fault, struct error *err)
{
	if (!plan->row_first || plan->chunks.chunk_count == 0)
		return ESP_OK;
	enum esp_status status = check_blocks(plan, fault, err);
	return status == ESP_OK ? check_cover(plan, fault, err) : status;
}
