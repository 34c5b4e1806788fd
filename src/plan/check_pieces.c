/*
 * check_pieces.c - do the pieces that a plan lists make up its collective?
 *
 * Pieces that planners cut need no such check; a file may list anything.
 */
#include <stdio.h>
#include <stdlib.h>

#include "plan/check_run.h"

static enum esp_status fail(struct plan_fault *fault, uint64_t chunk, struct error *err, const char *why)
{
	fault->chunk = chunk;
	return error_set(err, ESP_EPLAN, "chunk %llu: %s", (unsigned long long)chunk, why);
}

static enum esp_status out_of_memory(struct error *err, uint64_t chunks)
{
	return error_set(err, ESP_ENOMEM, "no memory to check %llu chunks", (unsigned long long)chunks);
}

/* ---- contributors and receivers ---- */

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

static enum esp_status check_sides(const struct plan *plan, struct plan_fault *fault, struct error *err)
{
	const struct chunks *chunks = &plan->chunks;

	if (chunks->collective == PLAN_BARRIER && chunks->chunk_count != 1)
		return error_set(err, ESP_EPLAN, "a barrier has one chunk, in which all hear of all, not %llu",
		                 (unsigned long long)chunks->chunk_count);
	for (uint64_t c = 0; c < chunks->chunk_count; c++) {
		struct plan_piece piece = plan_chunks_piece(chunks, c);

		if (!sides_fit(chunks, &piece))
			return fail(fault, c, err, "its two sides are not those of the collective");
	}
	return ESP_OK;
}

/* ---- where the pieces lie: sorted by one thing or another, and compared with their neighbours ---- */

struct span {
	uint64_t owner;  /* the owner of the buffer: a worker, or PLAN_ALL; or the block */
	uint64_t begin, end;
	int64_t distance; /* between the places in output and input */
	uint64_t chunk;
};

static int span_order(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	if (x->owner != y->owner)
		return x->owner < y->owner ? -1 : 1;
	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	return x->chunk < y->chunk ? -1 : x->chunk > y->chunk;
}

enum side { INPUT, OUTPUT, BLOCK };

static uint64_t list_spans(const struct plan *plan, enum side side, struct span *spans)
{
	uint64_t used = 0;

	for (uint64_t c = 0; c < plan->chunks.chunk_count; c++) {
		struct plan_piece piece = plan_chunks_piece(&plan->chunks, c);
		uint64_t at = side == OUTPUT ? piece.out_at : piece.in_at;
		uint64_t owner = side == INPUT ? piece.from : side == OUTPUT ? piece.to : (uint64_t)piece.from << 32 | piece.to;

		if (piece.bytes > 0)
			spans[used++] =
				(struct span){owner, at, at + piece.bytes, (int64_t)(piece.out_at - piece.in_at), c};
	}
	qsort(spans, used, sizeof(*spans), span_order);
	return used;
}

/* A block moves as a whole. One that is the whole buffer does not move at all. */
static enum esp_status check_blocks(const struct plan *plan, const struct span *spans, uint64_t count,
                                    struct plan_fault *fault, struct error *err)
{
	enum plan_collective collective = plan->chunks.collective;
	bool is_whole = collective == PLAN_ALLREDUCE || collective == PLAN_BROADCAST || collective == PLAN_REDUCE;

	for (uint64_t i = 0; i < count; i++) {
		bool goes_on = i > 0 && spans[i - 1].owner == spans[i].owner;

		if (is_whole ? spans[i].distance != 0 : goes_on && spans[i].distance != spans[i - 1].distance)
			return fail(fault, spans[i].chunk, err, "it does not lie at the same place in input and output");
	}
	return ESP_OK;
}

/* Blocks lie one behind the other in the order of their workers, on the side that has several. */
static enum esp_status check_order(const struct plan *plan, enum side side, const struct span *spans, uint64_t count,
                                   struct plan_fault *fault, struct error *err)
{
	uint64_t last = 0;

	for (uint64_t i = 0; i < count; i++) {
		struct plan_piece piece = plan_chunks_piece(&plan->chunks, spans[i].chunk);
		uint32_t other = side == INPUT ? piece.to : piece.from;
		bool goes_on = i > 0 && spans[i - 1].owner == spans[i].owner;

		if (other != PLAN_ALL && goes_on && other < last)
			return fail(fault, spans[i].chunk, err, "its block does not lie in the order of the nodes");
		last = other;
	}
	return ESP_OK;
}

/* Bytes of the buffer of a span's owner, on this side: with many owners, those of any. */
static uint64_t declared(const struct plan *plan, enum side side, uint64_t owner)
{
	uint32_t node = owner == PLAN_ALL ? 0 : (uint32_t)owner;

	return side == INPUT ? plan_chunks_input_bytes(&plan->chunks, node) : plan_chunks_output_bytes(&plan->chunks, node);
}

/* Each span begins where the one before it in the same buffer ends, the first at 0, the last ends with the buffer. */
static enum esp_status check_cover(const struct plan *plan, enum side side, const struct span *spans, uint64_t count,
                                   struct plan_fault *fault, struct error *err)
{
	const char *name = side == INPUT ? "input" : "output";
	char why[96];

	for (uint64_t i = 0; i < count; i++) {
		bool is_first = i == 0 || spans[i - 1].owner != spans[i].owner;
		bool is_last = i + 1 == count || spans[i + 1].owner != spans[i].owner;
		uint64_t end = is_first ? 0 : spans[i - 1].end, all = declared(plan, side, spans[i].owner);

		if (spans[i].begin != end) {
			snprintf(why, sizeof(why), "%s in the %s",
			         spans[i].begin < end ? "it overlaps another" : "there is a gap before it", name);
			return fail(fault, spans[i].chunk, err, why);
		}
		if (is_last && spans[i].end != all) {
			snprintf(why, sizeof(why), "bytes %llu to %llu of the %s are in no chunk",
			         (unsigned long long)spans[i].end, (unsigned long long)all - 1, name);
			return fail(fault, spans[i].chunk, err, why);
		}
	}
	return ESP_OK;
}

/* A buffer that no piece touches must be empty; those of all workers are alike where a piece is of all. */
static enum esp_status check_untouched(const struct plan *plan, enum side side, const struct span *spans,
                                       uint64_t count, struct error *err)
{
	bool of_all = count > 0 && spans[0].owner == PLAN_ALL;
	const char *name = side == INPUT ? "input" : "output";

	for (uint64_t node = 0, i = 0; node < plan->workers; node++) {
		uint64_t bytes = declared(plan, side, node), expected = of_all ? spans[count - 1].end : 0;

		for (; !of_all && i < count && spans[i].owner == node; i++)
			expected = spans[i].end;
		if (bytes != expected)
			return error_set(err, ESP_EPLAN, "the %s of node %llu has %llu bytes, of which chunks use %llu", name,
			                 (unsigned long long)node, (unsigned long long)bytes, (unsigned long long)expected);
	}
	return ESP_OK;
}

static enum esp_status check_places(const struct plan *plan, struct span *spans, struct plan_fault *fault,
                                    struct error *err)
{
	uint64_t count = list_spans(plan, BLOCK, spans);
	enum esp_status status = check_blocks(plan, spans, count, fault, err);

	for (enum side side = INPUT; status == ESP_OK && side <= OUTPUT; side++) {
		count = list_spans(plan, side, spans);
		status = check_cover(plan, side, spans, count, fault, err);
		if (status == ESP_OK)
			status = check_order(plan, side, spans, count, fault, err);
		if (status == ESP_OK)
			status = check_untouched(plan, side, spans, count, err);
	}
	return status;
}

enum esp_status plan_check_pieces(const struct plan *plan, struct plan_fault *fault, struct error *err)
{
	uint64_t count = plan->chunks.chunk_count;

	if (!plan->row_at)
		return ESP_OK;
	enum esp_status status = check_sides(plan, fault, err);
	if (status != ESP_OK)
		return status;
	struct span *spans = malloc((count + 1) * sizeof(*spans));
	if (!spans)
		return out_of_memory(err, count);
	status = check_places(plan, spans, fault, err);
	free(spans);
	return status;
}
