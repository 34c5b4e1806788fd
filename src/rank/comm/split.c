#include "rank/comm/split.h"

#include <stdlib.h>
#include <string.h>

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

static void copy_in(const struct stretch *stretch, const struct call *call)
{
	if (call->in_parts)
		copy_parts(call->in_parts, call->in_part_count, stretch->in_at, stretch->staging, stretch->in_bytes, false);
	else if (stretch->in_bytes > 0)
		memcpy(stretch->staging, (const uint8_t *)call->in + stretch->in_at, stretch->in_bytes);
}

void stretch_gather(const struct stretch *stretch, const struct call *call)
{
	if (stretch->staging)
		copy_in(stretch, call);
	if (stretch->in_annex)
		annex_fetch_ends(stretch->in_annex, stretch->own_in, stretch->in_bytes);
	/* Not all of it may be written to. */
	if (stretch->out_annex)
		annex_fetch_ends(stretch->out_annex, stretch->own_out, stretch->out_bytes);
}

void stretch_scatter(const struct stretch *stretch, const struct call *call)
{
	if (stretch->out_annex)
		annex_store_ends(stretch->out_annex, stretch->own_out, stretch->out_bytes);
	if (!stretch->staging || stretch->out_bytes == 0)
		return;
	if (call->out_parts)
		copy_parts(call->out_parts, call->out_part_count, stretch->out_at, stretch->out, stretch->out_bytes, true);
	else
		memcpy((uint8_t *)call->out + stretch->out_at, stretch->out, stretch->out_bytes);
}

/* ---- memory that the caller shares ---- */

static struct annex *find_in(const struct stretch *stretch, struct segment *segment, uint8_t **out_place)
{
	return stretch->in_bytes > 0 ? annex_get(segment, stretch->in, stretch->in_bytes, out_place) : NULL;
}

static struct annex *find_out(const struct stretch *stretch, struct segment *segment, uint8_t **out_place)
{
	return stretch->out_bytes > 0 ? annex_get(segment, stretch->out, stretch->out_bytes, out_place) : NULL;
}

void stretch_set_out(struct stretch *stretch, struct segment *segment)
{
	uint8_t *in = NULL, *out = NULL;

	if (stretch->staging || !segment)
		return;
	stretch->own_in = stretch->in;
	stretch->own_out = stretch->out;
	/* In place one is a part of the other: if not all of that is shared, neither is, as they must stay where they are to each other. */
	bool in_first = stretch->in_bytes >= stretch->out_bytes;
	if (in_first)
		stretch->in_annex = find_in(stretch, segment, &in);
	if (!in_first || !stretch->in_place || stretch->in_annex)
		stretch->out_annex = find_out(stretch, segment, &out);
	if (!in_first && (!stretch->in_place || stretch->out_annex))
		stretch->in_annex = find_in(stretch, segment, &in);
	if (stretch->in_annex)
		stretch->in = in;
	if (stretch->out_annex)
		stretch->out = out;
}

void stretch_land(struct stretch *stretch)
{
	if (stretch->in_annex) {
		annex_put(stretch->in_annex);
		stretch->in = stretch->own_in;
	}
	if (stretch->out_annex) {
		annex_put(stretch->out_annex);
		stretch->out = stretch->own_out;
	}
	stretch->in_annex = stretch->out_annex = NULL;
}

/* ---- making ---- */

struct maker {
	const struct call *call;
	struct stretch *list;
	uint32_t count, capacity;
	uint64_t at;      /* bytes that are in stretches                         */
	uint64_t pending; /* bytes behind them that are to be staged             */
};

static struct stretch *add(struct maker *maker)
{
	if (maker->count == maker->capacity) {
		uint32_t capacity = maker->capacity ? 2 * maker->capacity : 4;
		struct stretch *list = realloc(maker->list, capacity * sizeof(*list));

		if (!list)
			return NULL;
		maker->list = list;
		maker->capacity = capacity;
	}
	struct stretch *stretch = &maker->list[maker->count++];
	*stretch = (struct stretch){0};
	return stretch;
}

/* What is pending becomes a staged stretch of a vector. */
static bool flush(struct maker *maker)
{
	const struct call *call = maker->call;
	struct stretch *stretch;

	if (maker->pending == 0)
		return true;
	stretch = add(maker);
	if (!stretch)
		return false;
	stretch->staging = malloc(maker->pending);
	if (!stretch->staging)
		return false;
	stretch->in = stretch->out = stretch->staging;
	stretch->in_place = true;
	stretch->block_bytes = maker->pending;
	stretch->in_at = stretch->out_at = maker->at;
	stretch->in_bytes = call->in_bytes ? maker->pending : 0;
	stretch->out_bytes = call->out_bytes ? maker->pending : 0;
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
	struct stretch *stretch = add(maker);

	if (!stretch)
		return false;
	stretch->in = place(in, call->in, maker->at, call->in_bytes > 0);
	stretch->out = place(out, call->out, maker->at, call->out_bytes > 0);
	stretch->block_bytes = bytes;
	stretch->in_bytes = stretch->in ? bytes : 0;
	stretch->out_bytes = stretch->out ? bytes : 0;
	stretch->in_place = stretch->in == stretch->out;
	maker->at += bytes;
	return true;
}

/* Every rank has to come to the same stretches, from the sizes of the parts alone. */
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
		if (!add_direct(maker, call->in_parts ? &call->in_parts[i] : NULL, call->out_parts ? &call->out_parts[i] : NULL, bytes))
			return false;
	}
	return flush(maker);
}

static bool stage_blocks(struct maker *maker)
{
	const struct call *call = maker->call;
	struct stretch *stretch = add(maker);
	uint64_t bytes = call->in_bytes + call->out_bytes;

	if (!stretch)
		return false;
	stretch->staging = malloc(bytes ? bytes : 1);
	stretch->in = stretch->staging;
	stretch->out = stretch->staging + call->in_bytes;
	stretch->block_bytes = call->block_bytes;
	stretch->in_bytes = call->in_bytes;
	stretch->out_bytes = call->out_bytes;
	return stretch->staging != NULL;
}

static bool one_stretch(struct maker *maker)
{
	const struct call *call = maker->call;
	struct stretch *stretch = add(maker);

	if (!stretch)
		return false;
	stretch->in = call->in;
	stretch->out = call->out;
	stretch->in_bytes = call->in_bytes;
	stretch->out_bytes = call->out_bytes;
	stretch->block_bytes = call->block_bytes;
	stretch->in_place = call->in_place;
	return true;
}

enum esp_status stretches_make(const struct call *call, uint64_t chunk_bytes, bool at_once, struct stretch **out,
                               uint32_t *out_count)
{
	struct maker maker = {.call = call};
	bool made;

	if (!call->in_parts && !call->out_parts)
		made = one_stretch(&maker);
	else if (is_vector(call) && !at_once)
		made = cut_vector(&maker, chunk_bytes);
	else
		made = stage_blocks(&maker);
	if (!made) {
		stretches_fini(maker.list, maker.count);
		return ESP_ENOMEM;
	}
	*out = maker.list;
	*out_count = maker.count;
	return ESP_OK;
}

void stretches_fini(struct stretch *stretches, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		free(stretches[i].staging);
	free(stretches);
}
