#include "plan/chunks.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const char *const collective_names[PLAN_COLLECTIVE_COUNT] = {
	[PLAN_ALLREDUCE] = "allreduce", [PLAN_REDUCE_SCATTER] = "reduce-scatter", [PLAN_ALLGATHER] = "allgather",
	[PLAN_BROADCAST] = "broadcast", [PLAN_REDUCE] = "reduce",                 [PLAN_GATHER] = "gather",
	[PLAN_SCATTER] = "scatter",     [PLAN_ALLTOALL] = "alltoall",             [PLAN_BARRIER] = "barrier",
};

const char *plan_collective_name(enum plan_collective collective)
{
	return (unsigned)collective < PLAN_COLLECTIVE_COUNT ? collective_names[collective] : NULL;
}

bool plan_collective_parse(const char *name, enum plan_collective *out)
{
	for (unsigned i = 0; i < PLAN_COLLECTIVE_COUNT; i++) {
		if (strcmp(name, collective_names[i]) == 0) {
			*out = (enum plan_collective)i;
			return true;
		}
	}
	return false;
}

bool plan_collective_reduces(enum plan_collective collective)
{
	return collective == PLAN_ALLREDUCE || collective == PLAN_REDUCE_SCATTER || collective == PLAN_REDUCE;
}

bool plan_collective_has_root(enum plan_collective collective)
{
	return collective == PLAN_BROADCAST || collective == PLAN_REDUCE || collective == PLAN_GATHER ||
	       collective == PLAN_SCATTER;
}

static uint64_t blocks_of(const struct chunks_spec *spec)
{
	switch (spec->collective) {
	case PLAN_ALLREDUCE:
	case PLAN_BROADCAST:
	case PLAN_REDUCE:
	case PLAN_BARRIER:
		return 1;
	case PLAN_ALLTOALL:
		return (uint64_t)spec->workers * spec->workers;
	default:
		return spec->workers;
	}
}

static uint64_t pieces_in(const struct chunks *chunks, uint64_t bytes, uint64_t chunk_bytes)
{
	/* A barrier moves nothing but has to be heard of, so its empty block is one chunk. */
	if (bytes == 0)
		return chunks->collective == PLAN_BARRIER;
	if (chunk_bytes == 0)
		return 1;
	/* Rounded down to whole units, so that no aligned piece exceeds chunk_bytes. */
	uint64_t most = chunk_bytes / chunks->align * chunks->align;
	if (most == 0)
		most = chunks->align;
	return (bytes - 1) / most + 1;
}

/* A part of a block. */
struct part {
	uint64_t begin, bytes;
};

/* Piece `index` of `count` nearly equal, aligned pieces of a block of so many bytes. */
static struct part cut(uint64_t bytes, uint32_t align, uint64_t index, uint64_t count)
{
	if (count == 1)
		return (struct part){0, bytes};
	uint64_t units = align == 1 ? bytes : bytes / align, share = units / count, rest = units % count;
	uint64_t begin = (share * index + (index < rest ? index : rest)) * align;
	uint64_t end = (share * (index + 1) + (index + 1 < rest ? index + 1 : rest)) * align;

	if (index + 1 == count)
		end = bytes; /* a remainder of less than a unit goes with the last piece */
	return (struct part){begin, end - begin};
}

/* The contributor and receiver of a part of block number `block`; offsets are for blocks of equal_bytes. */
static struct plan_piece equal_piece(const struct chunks *chunks, uint64_t block, struct part part)
{
	uint32_t index = (uint32_t)block;
	uint64_t before = block * chunks->equal_bytes;
	struct plan_piece piece = {part.bytes, .in_at = part.begin, .out_at = part.begin, .from = PLAN_ALL, .to = PLAN_ALL};

	switch (chunks->collective) {
	case PLAN_ALLREDUCE:
	case PLAN_BARRIER:
		break;
	case PLAN_REDUCE_SCATTER:
		piece.to = index;
		piece.in_at += before;
		break;
	case PLAN_ALLGATHER:
		piece.from = index;
		piece.out_at += before;
		break;
	case PLAN_BROADCAST:
		piece.from = chunks->root;
		break;
	case PLAN_REDUCE:
		piece.to = chunks->root;
		break;
	case PLAN_GATHER:
		piece.from = index;
		piece.to = chunks->root;
		piece.out_at += before;
		break;
	case PLAN_SCATTER:
		piece.from = chunks->root;
		piece.to = index;
		piece.in_at += before;
		break;
	case PLAN_ALLTOALL:
		piece.from = (uint32_t)(block / chunks->workers);
		piece.to = (uint32_t)(block % chunks->workers);
		piece.in_at += piece.to * chunks->equal_bytes;
		piece.out_at += piece.from * chunks->equal_bytes;
		break;
	}
	return piece;
}

/* Unequal blocks lie packed one behind the other on each side. */
static void place_blocks(struct chunks *chunks, const uint64_t *counts)
{
	uint32_t n = chunks->workers;

	for (uint64_t b = 0; b < chunks->block_count; b++) {
		struct plan_piece *block = &chunks->blocks[b];

		*block = equal_piece(chunks, b, (struct part){0, counts[b]});
		block->in_at = 0;
		block->out_at = 0;
		if (chunks->collective == PLAN_ALLTOALL) {
			if (block->to > 0)
				block->in_at = block[-1].in_at + counts[b - 1];
			if (block->from > 0)
				block->out_at = chunks->blocks[b - n].out_at + counts[b - n];
			continue;
		}
		uint64_t before = b > 0 ? block[-1].in_at + block[-1].out_at + counts[b - 1] : 0;
		if (chunks->collective == PLAN_REDUCE_SCATTER || chunks->collective == PLAN_SCATTER)
			block->in_at = before;
		else
			block->out_at = before;
	}
}

static enum esp_status too_many(struct error *err)
{
	return error_set(err, ESP_EINVAL, "more than %llu chunks are too many: raise the chunk size",
	                 (unsigned long long)PLAN_CHUNKS_MAX);
}

static enum esp_status list_blocks(struct chunks *chunks, const struct chunks_spec *spec, struct error *err)
{
	uint64_t total = 0;

	chunks->blocks = calloc(chunks->block_count, sizeof(*chunks->blocks));
	chunks->first_chunk = calloc(chunks->block_count + 1, sizeof(*chunks->first_chunk));
	if (!chunks->blocks || !chunks->first_chunk) {
		plan_chunks_fini(chunks);
		return error_set(err, ESP_ENOMEM, "no memory for a list of %llu blocks",
		                 (unsigned long long)chunks->block_count);
	}
	for (uint64_t b = 0; b < chunks->block_count; b++) {
		if (spec->counts[b] > INT64_MAX - total) {
			plan_chunks_fini(chunks);
			return error_set(err, ESP_EINVAL, "the counts add up to more than 2^63 bytes");
		}
		total += spec->counts[b];
		uint64_t pieces = pieces_in(chunks, spec->counts[b], spec->chunk_bytes);
		if (pieces > PLAN_CHUNKS_MAX - chunks->first_chunk[b]) {
			plan_chunks_fini(chunks);
			return too_many(err);
		}
		chunks->first_chunk[b + 1] = chunks->first_chunk[b] + pieces;
	}
	chunks->chunk_count = chunks->first_chunk[chunks->block_count];
	place_blocks(chunks, spec->counts);
	return ESP_OK;
}

static enum esp_status spec_check(const struct chunks_spec *spec, struct error *err)
{
	if (!plan_collective_name(spec->collective))
		return error_set(err, ESP_EINVAL, "collective number %d does not exist", (int)spec->collective);
	if (spec->workers == 0 || spec->workers > (1u << 24))
		return error_set(err, ESP_EINVAL, "%u nodes: there must be 1 to %u", spec->workers, 1u << 24);
	if (spec->root >= spec->workers)
		return error_set(err, ESP_EINVAL, "root %u is not among the %u nodes", spec->root, spec->workers);
	if (spec->collective == PLAN_BARRIER && (spec->bytes || spec->counts))
		return error_set(err, ESP_EINVAL, "a barrier moves no bytes");
	if (!spec->counts && spec->bytes > (uint64_t)INT64_MAX / spec->workers)
		return error_set(err, ESP_EINVAL, "%llu bytes per block are too many", (unsigned long long)spec->bytes);
	return ESP_OK;
}

enum esp_status plan_chunks_init(struct chunks *chunks, const struct chunks_spec *spec, struct error *err)
{
	enum esp_status status = spec_check(spec, err);

	if (status != ESP_OK)
		return status;
	*chunks = (struct chunks){
		.collective = spec->collective,
		.workers = spec->workers,
		.root = spec->root,
		.align = spec->align ? spec->align : 1,
		.block_count = blocks_of(spec),
		.equal_bytes = spec->bytes,
	};
	if (spec->counts)
		return list_blocks(chunks, spec, err);
	chunks->equal_pieces = pieces_in(chunks, spec->bytes, spec->chunk_bytes);
	if (chunks->equal_pieces > PLAN_CHUNKS_MAX / chunks->block_count)
		return too_many(err);
	chunks->chunk_count = chunks->equal_pieces * chunks->block_count;
	return ESP_OK;
}

void plan_chunks_init_list(struct chunks *chunks, const struct chunks_spec *spec, struct plan_piece *pieces,
                           uint64_t count)
{
	*chunks = (struct chunks){
		.collective = spec->collective,
		.workers = spec->workers,
		.root = spec->root,
		.align = 1,
		.block_count = count,
		.chunk_count = count,
		.blocks = pieces,
	};
}

void plan_chunks_fini(struct chunks *chunks)
{
	free(chunks->blocks);
	free(chunks->first_chunk);
	free(chunks->declared_in);
	free(chunks->declared_out);
	*chunks = (struct chunks){0};
}

static uint64_t find_block(const struct chunks *chunks, uint64_t chunk)
{
	uint64_t low = 0, high = chunks->block_count;

	while (high - low > 1) {
		uint64_t middle = low + (high - low) / 2;

		if (chunks->first_chunk[middle] <= chunk)
			low = middle;
		else
			high = middle;
	}
	return low;
}

struct plan_piece plan_chunks_piece(const struct chunks *chunks, uint64_t chunk)
{
	assert(chunk < chunks->chunk_count);
	if (!chunks->blocks) {
		uint64_t block = chunks->block_count == 1 ? 0 : chunk / chunks->equal_pieces;

		return equal_piece(
			chunks, block,
			cut(chunks->equal_bytes, chunks->align, chunk - block * chunks->equal_pieces, chunks->equal_pieces));
	}
	if (!chunks->first_chunk)
		return chunks->blocks[chunk];
	uint64_t block = find_block(chunks, chunk), first = chunks->first_chunk[block];
	struct plan_piece piece = chunks->blocks[block];
	struct part part = cut(piece.bytes, chunks->align, chunk - first, chunks->first_chunk[block + 1] - first);
	piece.in_at += part.begin;
	piece.out_at += part.begin;
	piece.bytes = part.bytes;
	return piece;
}

bool plan_chunks_are_whole(const struct chunks *chunks, uint64_t element_bytes)
{
	if (element_bytes == 1)
		return true;
	bool cuts_whole = chunks->align % element_bytes == 0;

	if (!chunks->blocks)
		return chunks->equal_bytes % element_bytes == 0 && (cuts_whole || chunks->equal_pieces <= 1);
	for (uint64_t b = 0; b < chunks->block_count; b++) {
		bool is_cut = chunks->first_chunk && chunks->first_chunk[b + 1] - chunks->first_chunk[b] > 1;

		if (chunks->blocks[b].bytes % element_bytes != 0 || (is_cut && !cuts_whole))
			return false;
	}
	return true;
}

/* The one or two blocks that reach furthest on one side of a node, where blocks are equal. */
static uint64_t equal_side_bytes(const struct chunks *chunks, uint32_t node, bool input)
{
	uint64_t all = chunks->equal_bytes * chunks->workers;
	bool is_root = node == chunks->root;

	switch (chunks->collective) {
	case PLAN_ALLREDUCE:
	case PLAN_BARRIER:
		return chunks->equal_bytes;
	case PLAN_REDUCE_SCATTER:
		return input ? all : chunks->equal_bytes;
	case PLAN_ALLGATHER:
		return input ? chunks->equal_bytes : all;
	case PLAN_BROADCAST:
		return !input || is_root ? chunks->equal_bytes : 0;
	case PLAN_REDUCE:
		return input || is_root ? chunks->equal_bytes : 0;
	case PLAN_GATHER:
		return input ? chunks->equal_bytes : is_root ? all : 0;
	case PLAN_SCATTER:
		return !input ? chunks->equal_bytes : is_root ? all : 0;
	case PLAN_ALLTOALL:
		return all;
	}
	return 0;
}

static uint64_t side_bytes(const struct chunks *chunks, uint32_t node, bool input)
{
	uint64_t most = 0;

	if (node >= chunks->workers)
		return 0;
	if (chunks->declared_in)
		return input ? chunks->declared_in[node] : chunks->declared_out[node];
	if (!chunks->blocks)
		return equal_side_bytes(chunks, node, input);
	for (uint64_t b = 0; b < chunks->block_count; b++) {
		const struct plan_piece *block = &chunks->blocks[b];
		bool mine = input ? piece_gives(chunks, block, node) : piece_wants(chunks, block, node);
		uint64_t end = (input ? block->in_at : block->out_at) + block->bytes;

		if (mine && end > most)
			most = end;
	}
	return most;
}

uint64_t plan_chunks_input_bytes(const struct chunks *chunks, uint32_t node)
{
	return side_bytes(chunks, node, true);
}

uint64_t plan_chunks_output_bytes(const struct chunks *chunks, uint32_t node)
{
	return side_bytes(chunks, node, false);
}
