/*
 * chunks.h - the data that a collective moves: the buffer cut into blocks and chunks.
 *
 * A block is a part of the buffer with one set of contributors and one set of receivers; a chunk is a piece of a block
 * small enough to stream. All collectives are made of the same piece: "the sum over `from`, wanted by `to`", where each
 * side is one worker or all of them. Pure, immutable once made, any thread may read it.
 *
 *     collective      blocks          from   to     in_at         out_at
 *     allreduce       1               all    all    0             0
 *     reduce-scatter  i = 0..N-1      all    i      before i      0
 *     allgather       i = 0..N-1      i      all    0             before i
 *     broadcast       1               root   all    0             0
 *     reduce          1               all    root   0             0
 *     gather          i = 0..N-1      i      root   0             before i
 *     scatter         i = 0..N-1      root   i      before i      0
 *     alltoall        (i, j)          i      j      before j in   before i in
 *                                                   row i         column j
 *     barrier         1, zero bytes   all    all    0             0
 */
#ifndef PLAN_CHUNKS_H
#define PLAN_CHUNKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum plan_collective {
	PLAN_ALLREDUCE,
	PLAN_REDUCE_SCATTER,
	PLAN_ALLGATHER,
	PLAN_BROADCAST,
	PLAN_REDUCE,
	PLAN_GATHER,
	PLAN_SCATTER,
	PLAN_ALLTOALL,
	PLAN_BARRIER,
};
#define PLAN_COLLECTIVE_COUNT 9

const char *plan_collective_name(enum plan_collective collective);
bool plan_collective_parse(const char *name, enum plan_collective *out);

/* Do all workers contribute to every chunk, so that a sum is taken? */
bool plan_collective_reduces(enum plan_collective collective);
/* Does one worker stand apart: broadcast, reduce, gather, scatter? */
bool plan_collective_has_root(enum plan_collective collective);

/* More chunks than this are refused: code that lists them can multiply without overflow. */
#define PLAN_CHUNKS_MAX (UINT64_C(1) << 36)

#define PLAN_ALL UINT32_MAX /* every worker, as one side of a piece */

struct plan_piece {
	uint64_t bytes;
	uint64_t in_at;  /* offset in the input of every contributor */
	uint64_t out_at; /* offset in the output of every receiver   */
	uint32_t from;   /* a worker, or PLAN_ALL                    */
	uint32_t to;     /* a worker, or PLAN_ALL                    */
};

struct chunks_spec {
	enum plan_collective collective;
	uint32_t workers;
	uint32_t root;        /* broadcast, reduce, gather, scatter */
	uint64_t bytes;       /* of one block, where counts is NULL */
	/* bytes per block (N, or N x N by sender for alltoall); NULL: all `bytes`. Borrowed while making */
	const uint64_t *counts;
	uint64_t chunk_bytes; /* most bytes in a chunk, but at least align; 0: one chunk per block */
	uint32_t align;       /* chunks begin at multiples of this within their block; 0: 1 */
};

struct chunks {
	enum plan_collective collective;
	uint32_t workers;
	uint32_t root;
	uint32_t align;
	uint64_t block_count;
	uint64_t chunk_count;
	/* Equal blocks are computed, never listed: an all-to-all of 16,384 nodes has 2^28 of them. */
	uint64_t equal_bytes;
	uint64_t equal_pieces; /* chunks per equal block */
	/* Unequal blocks, and the pieces of a plan read from a file, are listed. */
	struct plan_piece *blocks;
	uint64_t *first_chunk; /* block_count + 1 entries; NULL with blocks set: one chunk per block */
	/* A plan read from a file says how long the buffers of each worker are; otherwise NULL. */
	uint64_t *declared_in, *declared_out;
};

ESP_CHECKED enum esp_status plan_chunks_init(struct chunks *chunks, const struct chunks_spec *spec, struct error *err);
/* Takes a list of ready-made chunks (from malloc), as a plan file holds them. */
void plan_chunks_init_list(struct chunks *chunks, const struct chunks_spec *spec, struct plan_piece *pieces,
                           uint64_t count);
void plan_chunks_fini(struct chunks *chunks);

/* The piece of chunk number `chunk`, which is below chunk_count. */
struct plan_piece plan_chunks_piece(const struct chunks *chunks, uint64_t chunk);

/* Does every chunk consist of whole elements of so many bytes? */
bool plan_chunks_are_whole(const struct chunks *chunks, uint64_t element_bytes);

/* Bytes of a node's input and output buffers: as declared, or the end of the last piece it reads or is given. */
uint64_t plan_chunks_input_bytes(const struct chunks *chunks, uint32_t node);
uint64_t plan_chunks_output_bytes(const struct chunks *chunks, uint32_t node);

/* Does this node give to, or want, the piece? Nodes from `workers` up hold no data. */
static inline bool piece_gives(const struct chunks *chunks, const struct plan_piece *piece, uint32_t node)
{
	return piece->from == PLAN_ALL ? node < chunks->workers : node == piece->from;
}

static inline bool piece_wants(const struct chunks *chunks, const struct plan_piece *piece, uint32_t node)
{
	return piece->to == PLAN_ALL ? node < chunks->workers : node == piece->to;
}

#endif
