/*
 * draw_cargo.h - the contributions that the messages of a chunk carry. Private to src/plan.
 *
 * The checker tells sender and receiver; this follows the rows along, with a bit per contributor in place of data, and
 * says which were in the message. It trusts the plan: the checker has passed it, or is about to say why not.
 */
#ifndef PLAN_DRAW_CARGO_H
#define PLAN_DRAW_CARGO_H

#include "plan/plan.h"

struct cargo_node {
	struct plan_row row;
	uint32_t next; /* step */
	bool aliased;  /* input and output are one place */
	uint64_t places[PLAN_PLACE_COUNT];
};

struct cargo_message {
	uint32_t from, to;
	uint64_t carried;
	bool taken;
};

struct draw_cargo {
	const struct plan *plan;
	struct cargo_node *nodes;
	struct cargo_message *messages; /* of this chunk, in the order in which they were sent */
	uint32_t count;
	size_t capacity;
};

ESP_CHECKED enum esp_status plan_cargo_init(struct draw_cargo *cargo, const struct plan *plan);
void plan_cargo_fini(struct draw_cargo *cargo);

/* Begins a chunk: each contributor has its own contribution. */
ESP_CHECKED enum esp_status plan_cargo_begin(struct draw_cargo *cargo, uint64_t chunk);

/* The next message of node `from`, which goes to `to`: what it carries, into *out. */
ESP_CHECKED enum esp_status plan_cargo_send(struct draw_cargo *cargo, uint32_t from, uint32_t to, uint64_t *out);

#endif
