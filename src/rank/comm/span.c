#include "rank/comm/span.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "transport/shm/annex.h"

static bool is_vector(const struct call *call)
{
	return call->collective == PLAN_ALLREDUCE || call->collective == PLAN_REDUCE || call->collective == PLAN_BROADCAST;
}

/* Copies between staging memory and the parts, from byte `at` of all of them on. */
static void copy_parts(const struct memory_part *parts, uint32_t count, uint64_t at, uint8_t *staging, uint64_t bytes,
                       bool into_parts)
{
	for (uint32_t i = 0; i < count && bytes > 0; i++) {
		if (at >= parts[i].bytes) {
			at -= parts[i].bytes;
			continue;
		}
		uint64_t n = parts[i].bytes - at < bytes ? parts[i].bytes - at : bytes;

		if (into_parts)
			memcpy(parts[i].data + at, staging, n);
		else
			memcpy(staging, parts[i].data + at, n);
		staging += n;
		bytes -= n;
		at = 0;
	}
}

static void copy_in(const struct span *span, const struct call *call)
{
	if (call->in_parts)
		copy_parts(call->in_parts, call->in_part_count, span->in_at, span->staging, span->in_bytes, false);
	else if (span->in_bytes > 0)
		memcpy(span->staging, (const uint8_t *)call->in + span->in_at, span->in_bytes);
}

void comm_span_gather(const struct span *span, const struct call *call)
{
	if (span->staging)
		copy_in(span, call);
	if (span->in_annex)
		shm_annex_fetch_ends(span->in_annex, span->own_in, span->in_bytes);
	/* Not all of it may be written to. */
	if (span->out_annex)
		shm_annex_fetch_ends(span->out_annex, span->own_out, span->out_bytes);
}

void comm_span_scatter(const struct span *span, const struct call *call)
{
	if (span->out_annex)
		shm_annex_store_ends(span->out_annex, span->own_out, span->out_bytes);
	if (!span->staging || span->out_bytes == 0)
		return;
	if (call->out_parts)
		copy_parts(call->out_parts, call->out_part_count, span->out_at, span->out, span->out_bytes, true);
	else
		memcpy((uint8_t *)call->out + span->out_at, span->out, span->out_bytes);
}

/* ---- memory that the caller shares ---- */

static struct annex *find_in(const struct span *span, struct segment *segment, uint8_t **out_place)
{
	return span->in_bytes > 0 ? shm_annex_get(segment, span->in, span->in_bytes, out_place) : NULL;
}

static struct annex *find_out(const struct span *span, struct segment *segment, uint8_t **out_place)
{
	return span->out_bytes > 0 ? shm_annex_get(segment, span->out, span->out_bytes, out_place) : NULL;
}

void comm_span_set_out(struct span *span, struct segment *segment)
{
	uint8_t *in = NULL, *out = NULL;

	if (span->staging || !segment)
		return;
	span->own_in = span->in;
	span->own_out = span->out;
	/*
	 * In place one is a part of the other: if not all of that is shared, neither is, as they must stay where they are
	 * to each other.
	 */
	bool in_first = span->in_bytes >= span->out_bytes;
	if (in_first)
		span->in_annex = find_in(span, segment, &in);
	if (!in_first || !span->in_place || span->in_annex)
		span->out_annex = find_out(span, segment, &out);
	if (!in_first && (!span->in_place || span->out_annex))
		span->in_annex = find_in(span, segment, &in);
	if (span->in_annex)
		span->in = in;
	if (span->out_annex)
		span->out = out;
}

void comm_span_land(struct span *span)
{
	if (span->in_annex) {
		shm_annex_put(span->in_annex);
		span->in = span->own_in;
	}
	if (span->out_annex) {
		shm_annex_put(span->out_annex);
		span->out = span->own_out;
	}
	span->in_annex = span->out_annex = NULL;
}

/* ---- making ---- */

struct maker {
	const struct call *call;
	struct span *list;
	uint32_t count;
	size_t capacity;
	uint64_t at;      /* bytes that are in spans                         */
	uint64_t pending; /* bytes behind them that are to be staged             */
};

static struct span *add(struct maker *maker)
{
	if (!vec_reserve(&maker->list, &maker->capacity, (size_t)maker->count + 1, sizeof(*maker->list)))
		return NULL;
	struct span *span = &maker->list[maker->count++];
	*span = (struct span){0};
	return span;
}

/* The pending parts become a staged span of a vector. */
static bool flush(struct maker *maker)
{
	const struct call *call = maker->call;
	struct span *span;

	if (maker->pending == 0)
		return true;
	span = add(maker);
	if (!span)
		return false;
	span->staging = malloc(maker->pending);
	if (!span->staging)
		return false;
	span->in = span->out = span->staging;
	span->in_place = true;
	span->block_bytes = maker->pending;
	span->in_at = span->out_at = maker->at;
	span->in_bytes = call->in_bytes ? maker->pending : 0;
	span->out_bytes = call->out_bytes ? maker->pending : 0;
	maker->at += maker->pending;
	maker->pending = 0;
	return true;
}

/* The byte `at` of a buffer that is whole, or cut where the parts of the other one are. */
static uint8_t *place(const struct memory_part *part, const void *whole, uint64_t at, bool is_used)
{
	if (!is_used)
		return NULL;
	return part ? part->data : (uint8_t *)(uintptr_t)whole + at;
}

static bool add_direct(struct maker *maker, const struct memory_part *in, const struct memory_part *out, uint64_t bytes)
{
	const struct call *call = maker->call;
	struct span *span = add(maker);

	if (!span)
		return false;
	span->in = place(in, call->in, maker->at, call->in_bytes > 0);
	span->out = place(out, call->out, maker->at, call->out_bytes > 0);
	span->block_bytes = bytes;
	span->in_bytes = span->in ? bytes : 0;
	span->out_bytes = span->out ? bytes : 0;
	span->in_place = span->in == span->out;
	maker->at += bytes;
	return true;
}

/* Every rank has to come to the same spans, from the sizes of the parts alone. */
static bool cut_vector(struct maker *maker, uint64_t chunk_bytes)
{
	const struct call *call = maker->call;
	bool by_out = call->out_parts != NULL;
	const struct memory_part *parts = by_out ? call->out_parts : call->in_parts;
	uint32_t count = by_out ? call->out_part_count : call->in_part_count;

	for (uint32_t i = 0; i < count; i++) {
		uint64_t bytes = parts[i].bytes;
		bool is_large = bytes >= chunk_bytes;

		if (!is_large) {
			maker->pending += bytes;
			if (maker->pending >= 16 * chunk_bytes && !flush(maker))
				return false;
			continue;
		}
		if (!flush(maker))
			return false;
		if (!add_direct(maker, call->in_parts ? &call->in_parts[i] : NULL, call->out_parts ? &call->out_parts[i] : NULL,
		                bytes))
			return false;
	}
	return flush(maker);
}

static bool stage_blocks(struct maker *maker)
{
	const struct call *call = maker->call;
	struct span *span = add(maker);
	uint64_t bytes = call->in_bytes + call->out_bytes;

	if (!span)
		return false;
	span->staging = malloc(bytes ? bytes : 1);
	span->in = span->staging;
	span->out = span->staging + call->in_bytes;
	span->block_bytes = call->block_bytes;
	span->in_bytes = call->in_bytes;
	span->out_bytes = call->out_bytes;
	return span->staging != NULL;
}

static bool one_span(struct maker *maker)
{
	const struct call *call = maker->call;
	struct span *span = add(maker);

	if (!span)
		return false;
	span->in = call->in;
	span->out = call->out;
	span->in_bytes = call->in_bytes;
	span->out_bytes = call->out_bytes;
	span->block_bytes = call->block_bytes;
	span->in_place = call->in_place;
	return true;
}

enum esp_status comm_spans_make(const struct call *call, uint64_t chunk_bytes, bool at_once, struct span **out,
                                uint32_t *out_count)
{
	struct maker maker = {.call = call};
	bool made;

	if (!call->in_parts && !call->out_parts)
		made = one_span(&maker);
	else if (is_vector(call) && !at_once)
		made = cut_vector(&maker, chunk_bytes);
	else
		made = stage_blocks(&maker);
	if (!made) {
		comm_spans_fini(maker.list, maker.count);
		return ESP_ENOMEM;
	}
	*out = maker.list;
	*out_count = maker.count;
	return ESP_OK;
}

void comm_spans_fini(struct span *spans, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		free(spans[i].staging);
	free(spans);
}
