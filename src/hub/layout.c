#include "hub/layout.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/fnv.h"
#include "plan/partition.h"
#include "wire/bytes.h"

#define SHARE_BYTES (sizeof(uint64_t) + 3 * sizeof(uint32_t)) /* of a chunk, while chunks are shared out */
#define CHUNK_STEP 64u /* bytes: chunks of a tensor begin at cache lines, as the tensor does */

static uint64_t aligned(uint64_t elements)
{
	return (elements + LAYOUT_ALIGN - 1) / LAYOUT_ALIGN * LAYOUT_ALIGN;
}

static uint64_t chunks_of(uint64_t elements, uint32_t chunk_elements)
{
	return elements / chunk_elements + (elements % chunk_elements != 0);
}

/* ---- checks ---- */

static enum esp_status check_split(const struct layout_split *split, struct error *err)
{
	if (split->hubs < 1 || split->hubs > LAYOUT_HUBS_MOST)
		return error_set(err, ESP_EINVAL, "%u hubs: expected 1 to %u", split->hubs, LAYOUT_HUBS_MOST);
	for (uint32_t hub = 0; hub < split->hubs; hub++) {
		bool counts = split->own == LAYOUT_ALL_HUBS || split->own == hub;

		if (counts && (split->lanes[hub] < 1 || split->lanes[hub] > LAYOUT_LANES_MOST))
			return error_set(err, ESP_EINVAL, "%u lanes: expected 1 to %u", split->lanes[hub], LAYOUT_LANES_MOST);
	}
	return ESP_OK;
}

static enum esp_status check_cut(uint32_t count, uint32_t chunk_bytes, struct error *err)
{
	if (count > LAYOUT_TENSORS_MOST)
		return error_set(err, ESP_ELIMIT, "%u tensors, where a job has %u at the most", count, LAYOUT_TENSORS_MOST);
	if (chunk_bytes < LAYOUT_CHUNK_LEAST || chunk_bytes > LAYOUT_CHUNK_MOST || chunk_bytes % CHUNK_STEP)
		return error_set(err, ESP_EINVAL, "chunks of %u bytes: expected a multiple of %u from %u to %u", chunk_bytes,
		                 CHUNK_STEP, LAYOUT_CHUNK_LEAST, LAYOUT_CHUNK_MOST);
	return ESP_OK;
}

/* Adds up what the tensors take, and how many chunks they are cut into. */
static enum esp_status measure(const struct layout_tensor *tensors, struct hub_layout *layout, struct error *err)
{
	uint64_t elements = 0, chunks = 0;

	for (uint32_t t = 0; t < layout->tensors; t++) {
		const struct layout_tensor *tensor = &tensors[t];

		if (tensor->type != ESP_F32 && tensor->type != ESP_F16 && tensor->type != ESP_BF16)
			return error_set(err, ESP_EINVAL, "tensor %u has type %u: a hub takes f32, f16 and bf16", t, tensor->type);
		layout->has_halves |= tensor->type != ESP_F32;
		if (tensor->elements > LAYOUT_ELEMENTS_MOST - elements)
			return error_set(err, ESP_ELIMIT, "tensor %u of %" PRIu64 " elements: a job has %" PRIu64 " at the most", t,
			                 tensor->elements, LAYOUT_ELEMENTS_MOST);
		elements += aligned(tensor->elements);
		chunks += chunks_of(tensor->elements, layout->chunk_elements);
		if (chunks > LAYOUT_CHUNKS_MOST)
			return error_set(err, ESP_ELIMIT, "more than %u chunks at tensor %u: chunks of %u elements are too small",
			                 LAYOUT_CHUNKS_MOST, t, layout->chunk_elements);
		if (tensor->group >= layout->groups)
			layout->groups = tensor->group + 1u;
	}
	assert(elements <= LAYOUT_ELEMENTS_MOST); /* which is a multiple of LAYOUT_ALIGN */
	layout->elements = elements;
	layout->chunks = (uint32_t)chunks;
	return ESP_OK;
}

static int name_order(const void *left, const void *right)
{
	const struct layout_tensor *a = left, *b = right;

	return a->name < b->name ? -1 : a->name > b->name;
}

/* sorted: a copy of the tensors, which is put in another order. */
static enum esp_status check_names(struct layout_tensor *sorted, uint32_t count, struct error *err)
{
	if (count > 1)
		qsort(sorted, count, sizeof(*sorted), name_order);
	for (uint32_t t = 1; t < count; t++) {
		if (sorted[t].name == sorted[t - 1].name)
			return error_set(err, ESP_EINVAL, "two tensors have the name with the digest %016" PRIx64, sorted[t].name);
	}
	return ESP_OK;
}

/* ---- cutting ---- */

static enum esp_status allocate(struct hub_layout *layout)
{
	uint64_t tensors = layout->tensors ? layout->tensors : 1, chunks = layout->chunks ? layout->chunks : 1;

	layout->tensor = calloc(tensors, sizeof(*layout->tensor));
	layout->place = calloc(tensors, sizeof(*layout->place));
	layout->chunk = calloc(chunks, sizeof(*layout->chunk));
	layout->lane_first = calloc(layout->lanes + UINT64_C(1), sizeof(*layout->lane_first));
	layout->lane_chunks = calloc(chunks, sizeof(*layout->lane_chunks));
	layout->lane_at = calloc(chunks, sizeof(*layout->lane_at));
	bool is_whole = layout->tensor && layout->place && layout->chunk && layout->lane_first && layout->lane_chunks &&
	                layout->lane_at;
	return is_whole ? ESP_OK : ESP_ENOMEM;
}

static void cut_tensor(struct hub_layout *layout, uint32_t t)
{
	const struct layout_place *place = &layout->place[t];
	uint64_t left = layout->tensor[t].elements;

	for (uint32_t i = 0; i < place->chunks; i++) {
		uint32_t elements = left < layout->chunk_elements ? (uint32_t)left : layout->chunk_elements;

		layout->chunk[place->first_chunk + i] = (struct layout_chunk){
			.at = place->at + (uint64_t)i * layout->chunk_elements, .elements = elements, .tensor = t,
		};
		left -= elements;
	}
	assert(left == 0);
}

static void cut(struct hub_layout *layout)
{
	uint64_t at = 0;
	uint32_t chunk = 0;

	for (uint32_t t = 0; t < layout->tensors; t++) {
		uint32_t chunks = (uint32_t)chunks_of(layout->tensor[t].elements, layout->chunk_elements);

		layout->place[t] = (struct layout_place){.at = at, .first_chunk = chunk, .chunks = chunks};
		cut_tensor(layout, t);
		at += aligned(layout->tensor[t].elements);
		chunk += chunks;
	}
	assert(at == layout->elements && chunk == layout->chunks);
}

enum esp_status hub_layout_measure(const struct layout_tensor *tensors, uint32_t count, uint32_t chunk_bytes,
                                   uint64_t *out_elements, uint64_t *out_bytes, struct error *err)
{
	struct hub_layout layout = {.tensors = count, .chunk_elements = chunk_bytes / (uint32_t)sizeof(float)};
	uint64_t each = sizeof(*layout.chunk) + sizeof(*layout.lane_chunks) + sizeof(*layout.lane_at) + SHARE_BYTES;
	enum esp_status status = check_cut(count, chunk_bytes, err);

	if (status == ESP_OK)
		status = measure(tensors, &layout, err);
	*out_elements = layout.elements;
	*out_bytes = layout.chunks * each + count * (sizeof(*layout.tensor) + sizeof(*layout.place));
	return status;
}

/* ---- hubs and lanes ---- */

/* Memory for a partition: of a size and a bin for each chunk, and the chunk. */
struct share {
	uint64_t *sizes;
	uint32_t *bins, *numbers, *hub; /* hub: by chunk */
};

static enum esp_status share_init(struct share *share, uint32_t chunks)
{
	size_t count = chunks ? chunks : 1;

	share->sizes = calloc(count, sizeof(*share->sizes));
	share->bins = calloc(count, sizeof(*share->bins));
	share->numbers = calloc(count, sizeof(*share->numbers));
	share->hub = calloc(count, sizeof(*share->hub));
	return share->sizes && share->bins && share->numbers && share->hub ? ESP_OK : ESP_ENOMEM;
}

static void share_fini(struct share *share)
{
	free(share->sizes);
	free(share->bins);
	free(share->numbers);
	free(share->hub);
}

static enum esp_status share_over_hubs(const struct hub_layout *layout, struct share *share)
{
	if (layout->hubs == 1)
		return ESP_OK; /* zeros */
	for (uint32_t c = 0; c < layout->chunks; c++)
		share->sizes[c] = layout->chunk[c].elements;
	return plan_partition_lpt(share->sizes, layout->chunks, NULL, layout->hubs, share->hub);
}

/* The chunks of a hub over its lanes. */
static enum esp_status share_over_lanes(struct hub_layout *layout, uint32_t hub, struct share *share)
{
	uint32_t first = layout->hub_first[hub], count = 0;

	for (uint32_t c = 0; c < layout->chunks; c++) {
		if (share->hub[c] != hub)
			continue;
		share->numbers[count] = c;
		share->sizes[count++] = layout->chunk[c].elements;
	}
	enum esp_status status =
		plan_partition_lpt(share->sizes, count, NULL, layout->hub_first[hub + 1] - first, share->bins);
	for (uint32_t i = 0; status == ESP_OK && i < count; i++)
		layout->chunk[share->numbers[i]].lane = (uint16_t)(first + share->bins[i]);
	return status;
}

static enum esp_status spread(struct hub_layout *layout)
{
	struct share share = {0};
	enum esp_status status = share_init(&share, layout->chunks);

	for (uint32_t c = 0; c < layout->chunks; c++)
		layout->chunk[c].lane = LAYOUT_NO_LANE;
	if (status == ESP_OK)
		status = share_over_hubs(layout, &share);
	for (uint32_t hub = 0; status == ESP_OK && hub < layout->hubs; hub++) {
		if (layout->hub_first[hub + 1] > layout->hub_first[hub])
			status = share_over_lanes(layout, hub, &share);
	}
	share_fini(&share);
	return status;
}

/* A hub of several has no memory for the chunks of the others. */
static void pack(struct hub_layout *layout)
{
	uint64_t at = 0;

	if (layout->own == LAYOUT_ALL_HUBS)
		return;
	for (uint32_t c = 0; c < layout->chunks; c++) {
		if (layout->chunk[c].lane == LAYOUT_NO_LANE)
			continue;
		layout->chunk[c].at = at;
		at += aligned(layout->chunk[c].elements);
	}
	assert(at <= layout->elements);
	layout->elements = at;
}

/* Lists the chunks of each lane. */
static void list(struct hub_layout *layout)
{
	uint32_t *first = layout->lane_first;

	for (uint32_t c = 0; c < layout->chunks; c++) {
		if (layout->chunk[c].lane != LAYOUT_NO_LANE)
			layout->lane_at[c] = first[layout->chunk[c].lane + 1]++;
	}
	for (uint32_t lane = 0; lane < layout->lanes; lane++)
		first[lane + 1] += first[lane];
	for (uint32_t c = 0; c < layout->chunks; c++) {
		if (layout->chunk[c].lane != LAYOUT_NO_LANE)
			layout->lane_chunks[first[layout->chunk[c].lane] + layout->lane_at[c]] = c;
	}
	assert(layout->own != LAYOUT_ALL_HUBS || first[layout->lanes] == layout->chunks);
}

static void copy(struct hub_layout *layout, const struct layout_tensor *tensors)
{
	if (layout->tensors > 0)
		memcpy(layout->tensor, tensors, layout->tensors * sizeof(*tensors));
}

static enum esp_status fill(struct hub_layout *layout, const struct layout_tensor *tensors, struct error *err)
{
	enum esp_status status = allocate(layout);

	if (status != ESP_OK)
		return error_set(err, status, "no memory for %u chunks", layout->chunks);
	copy(layout, tensors);
	status = check_names(layout->tensor, layout->tensors, err);
	if (status != ESP_OK)
		return status;
	copy(layout, tensors);
	cut(layout);
	status = spread(layout);
	if (status != ESP_OK)
		return error_set(err, status, "no memory for %u chunks", layout->chunks);
	pack(layout);
	list(layout);
	return ESP_OK;
}

/* The lanes of the hubs that this layout is for, in a row. */
static enum esp_status count_lanes(struct hub_layout *layout, const struct layout_split *split, struct error *err)
{
	layout->hub_first = calloc(split->hubs + 1u, sizeof(*layout->hub_first));
	if (!layout->hub_first)
		return error_set(err, ESP_ENOMEM, "no memory for %u hubs", split->hubs);
	for (uint32_t hub = 0; hub < split->hubs; hub++) {
		layout->hub_first[hub] = layout->lanes;
		if (split->own == LAYOUT_ALL_HUBS || split->own == hub)
			layout->lanes += split->lanes[hub];
	}
	layout->hub_first[split->hubs] = layout->lanes;
	return ESP_OK;
}

enum esp_status hub_layout_split(const struct layout_tensor *tensors, uint32_t count, uint32_t chunk_bytes,
                                 const struct layout_split *split, struct hub_layout *out, struct error *err)
{
	assert(out && (tensors || count == 0) && (split->own < split->hubs || split->own == LAYOUT_ALL_HUBS));
	struct hub_layout layout = {.tensors = count,
	                            .hubs = split->hubs,
	                            .own = split->own,
	                            .chunk_elements = chunk_bytes / (uint32_t)sizeof(float)};
	enum esp_status status = check_split(split, err);

	if (status == ESP_OK)
		status = check_cut(count, chunk_bytes, err);
	if (status == ESP_OK)
		status = count_lanes(&layout, split, err);
	if (status == ESP_OK)
		status = measure(tensors, &layout, err);
	if (status == ESP_OK)
		status = fill(&layout, tensors, err);
	if (status == ESP_OK)
		*out = layout;
	else
		hub_layout_fini(&layout);
	return status;
}

enum esp_status hub_layout_make(const struct layout_tensor *tensors, uint32_t count, uint32_t chunk_bytes,
                                uint32_t lanes, struct hub_layout *out, struct error *err)
{
	const struct layout_split one = {.hubs = 1, .own = LAYOUT_ALL_HUBS, .lanes = &lanes};

	return hub_layout_split(tensors, count, chunk_bytes, &one, out, err);
}

void hub_layout_fini(struct hub_layout *layout)
{
	free(layout->tensor);
	free(layout->place);
	free(layout->chunk);
	free(layout->hub_first);
	free(layout->lane_first);
	free(layout->lane_chunks);
	free(layout->lane_at);
	*layout = (struct hub_layout){0};
}

/* ---- the digest ---- */

static uint64_t digest_add(uint64_t digest, uint64_t value)
{
	uint8_t bytes[8];

	bytes_put64(bytes, value);
	return fnv_add(digest, bytes, sizeof(bytes));
}

static uint64_t digest_tensor(uint64_t digest, const struct hub_layout *layout, uint32_t t)
{
	const struct layout_tensor *tensor = &layout->tensor[t];

	digest = digest_add(digest, tensor->name);
	digest = digest_add(digest, tensor->elements);
	digest = digest_add(digest, (uint64_t)tensor->type << 16 | tensor->group);
	digest = digest_add(digest, layout->place[t].at);
	return digest_add(digest, layout->place[t].first_chunk);
}

uint64_t hub_layout_digest(const struct hub_layout *layout, uint32_t hub)
{
	assert(hub < layout->hubs && (layout->own == LAYOUT_ALL_HUBS || layout->own == hub));
	uint32_t first = layout->hub_first[hub], lanes = layout->hub_first[hub + 1] - first;
	uint64_t digest = FNV_START;

	digest = digest_add(digest, (uint64_t)layout->tensors << 32 | layout->chunks);
	digest = digest_add(digest, (uint64_t)lanes << 32 | layout->chunk_elements);
	digest = digest_add(digest, (uint64_t)layout->hubs << 32 | hub);
	for (uint32_t t = 0; t < layout->tensors; t++)
		digest = digest_tensor(digest, layout, t);
	for (uint32_t c = 0; c < layout->chunks; c++) {
		uint32_t lane = (uint32_t)layout->chunk[c].lane - first;
		uint8_t byte = lane < lanes ? (uint8_t)lane : UINT8_MAX;

		digest = fnv_add(digest, &byte, 1);
	}
	return digest;
}
