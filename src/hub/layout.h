/*
 * layout.h - the tensors of a job, cut into chunks, and the lane of each chunk.
 *
 * Computed alike by the hub and by every worker from what was declared. Chunks are numbered tensor by tensor. A chunk
 * belongs to one hub of the job, and to one lane of that hub (longest first at each level, plan/partition.h), one
 * connection per worker, for the job's whole life. A worker's layout has the lanes of all hubs, in a row; a hub's has
 * its own lanes and memory for its own chunks. Pure; immutable once made, so any thread may read it.
 */
#ifndef HUB_LAYOUT_H
#define HUB_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "math/math.h"

#define LAYOUT_TENSORS_MOST 65536u
#define LAYOUT_CHUNKS_MOST (1u << 24)
#define LAYOUT_HUBS_MOST 64u
#define LAYOUT_LANES_MOST 64u          /* of a hub */
#define LAYOUT_CHUNK_BYTES 32768u      /* the paper's best; of float32 */
#define LAYOUT_CHUNK_LEAST 256u        /* bytes; a multiple of 64 */
#define LAYOUT_CHUNK_MOST (4u << 20)
#define LAYOUT_ELEMENTS_MOST (UINT64_C(1) << 40) /* of a job */
#define LAYOUT_ALIGN 16u               /* elements: tensors begin at multiples, a cache line of floats */

/* As it is declared. */
struct layout_tensor {
	uint64_t name;     /* digest of its name: differs between the tensors of a job */
	uint64_t elements; /* may be 0 */
	uint8_t type;      /* enum esp_type of gradients and answers: ESP_F32, ESP_F16, ESP_BF16 */
	uint16_t group;    /* parameter group, whose optimizer it has */
};

struct layout_place {
	uint64_t at;          /* the tensor's first element in the arrays of the whole model */
	uint32_t first_chunk;
	uint32_t chunks;      /* 0: no elements */
};

struct layout_chunk {
	uint64_t at;       /* first element in the model's arrays; not valid if the chunk is another hub's */
	uint32_t elements;
	uint32_t tensor;
	uint16_t lane;     /* LAYOUT_NO_LANE: it is another hub's */
};
#define LAYOUT_NO_LANE UINT16_MAX

/* How chunks are shared out. */
struct layout_split {
	uint32_t hubs;         /* of the job: at least 1 */
	uint32_t own;          /* the hub that this layout is for; LAYOUT_ALL_HUBS: a worker's, for all */
	const uint32_t *lanes; /* by hub; those of other hubs than `own` are not read */
};
#define LAYOUT_ALL_HUBS UINT32_MAX

struct hub_layout {
	uint32_t tensors, chunks, lanes, groups;
	uint32_t hubs, own;        /* as of struct layout_split */
	bool has_halves;           /* a tensor is not of float32 */
	uint32_t chunk_elements;   /* most of a chunk */
	uint64_t elements;         /* of the model's arrays, with what aligns tensors; a hub's: of its own chunks */
	struct layout_tensor *tensor; /* by tensor */
	struct layout_place *place;   /* by tensor */
	struct layout_chunk *chunk;   /* by chunk */
	uint32_t *hub_first;          /* by hub: its first lane, in a worker's layout; one more than there are hubs */
	uint32_t *lane_first;         /* by lane, and one more */
	uint32_t *lane_chunks;        /* in ascending order: those of lane l are [lane_first[l], lane_first[l + 1]) */
	uint32_t *lane_at;            /* by chunk: its place among its lane's chunks */
};

/* ESP_EINVAL: a bad tensor, chunk size or count of lanes; ESP_ELIMIT: more than the bounds above; ESP_ENOMEM. */
ESP_CHECKED enum esp_status hub_layout_split(const struct layout_tensor *tensors, uint32_t count, uint32_t chunk_bytes,
                                             const struct layout_split *split, struct hub_layout *out,
                                             struct error *err);
/* Of a job that has one hub. */
ESP_CHECKED enum esp_status hub_layout_make(const struct layout_tensor *tensors, uint32_t count, uint32_t chunk_bytes,
                                            uint32_t lanes, struct hub_layout *out, struct error *err);
/* Of the model's arrays, and bytes of memory while a layout of it is made: before it is. The same errors. */
ESP_CHECKED enum esp_status hub_layout_measure(const struct layout_tensor *tensors, uint32_t count,
                                               uint32_t chunk_bytes, uint64_t *out_elements, uint64_t *out_bytes,
                                               struct error *err);
void hub_layout_fini(struct hub_layout *layout); /* accepts a zeroed struct */
static inline enum esp_type hub_layout_chunk_type(const struct hub_layout *layout, uint32_t chunk)
{
	return (enum esp_type)layout->tensor[layout->chunk[chunk].tensor].type;
}
/* Bytes of the chunk's gradients, and of its weights as they are answered. */
static inline uint32_t hub_layout_chunk_bytes(const struct hub_layout *layout, uint32_t chunk)
{
	return layout->chunk[chunk].elements * (uint32_t)math_type_bytes(hub_layout_chunk_type(layout, chunk));
}
/* Of everything that the worker and this hub must have alike. */
uint64_t hub_layout_digest(const struct hub_layout *layout, uint32_t hub);

#endif
