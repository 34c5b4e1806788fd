/*
 * draw_scene.h - the content of a picture: the messages of a plan by round, and the contributions that each node holds
 * after each. Private to src/plan.
 */
#ifndef PLAN_DRAW_SCENE_H
#define PLAN_DRAW_SCENE_H

#include "plan/check.h"
#include "plan/draw.h"
#include "plan/draw_cargo.h"

struct draw_message {
	uint32_t round; /* from 1 */
	uint32_t chunk; /* index into the picture, not the plan */
	uint32_t from, to;
	uint64_t carried; /* a bit per contributor */
	bool final;       /* the chunk is complete: on its way down */
};

struct draw_scene {
	const struct plan *plan;
	uint64_t first_chunk;
	uint32_t chunk_count;
	struct plan_report report;     /* of these chunks */
	struct draw_message *messages; /* by round, chunk, sender, receiver */
	uint32_t message_count;
	size_t message_capacity;
	uint64_t *held;          /* by round, chunk and node: a bit per contributor that has arrived there */
	struct draw_cargo cargo; /* while messages come in */
	uint64_t cargo_chunk;    /* the chunk that it follows, UINT64_MAX before the first */
	bool failed;             /* out of memory while messages came in */
};

ESP_CHECKED enum esp_status plan_draw_scene_init(struct draw_scene *scene, const struct plan *plan, uint64_t chunk,
                                                 struct error *err);
void plan_draw_scene_fini(struct draw_scene *scene);

struct plan_piece plan_draw_scene_piece(const struct draw_scene *scene, uint32_t chunk);

/* The contributions to the chunk that node holds after the round; round 0 is the start. */
uint64_t plan_draw_scene_held(const struct draw_scene *scene, uint32_t round, uint32_t chunk, uint32_t node);
/* All contributors of the chunk. */
uint64_t plan_draw_scene_whole(const struct draw_scene *scene, uint32_t chunk);

#endif
