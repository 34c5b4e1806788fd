#include "plan/draw_cargo.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

enum esp_status plan_cargo_init(struct draw_cargo *cargo, const struct plan *plan)
{
	*cargo = (struct draw_cargo){.plan = plan};
	cargo->nodes = calloc(plan->nodes, sizeof(*cargo->nodes));
	return cargo->nodes ? ESP_OK : ESP_ENOMEM;
}

void plan_cargo_fini(struct draw_cargo *cargo)
{
	for (uint32_t node = 0; cargo->nodes && node < cargo->plan->nodes; node++)
		plan_row_fini(&cargo->nodes[node].row);
	free(cargo->nodes);
	free(cargo->messages);
	*cargo = (struct draw_cargo){0};
}

enum esp_status plan_cargo_begin(struct draw_cargo *cargo, uint64_t chunk)
{
	const struct plan *plan = cargo->plan;
	struct plan_piece piece = plan_chunks_piece(&plan->chunks, chunk);

	cargo->count = 0;
	for (uint32_t i = 0; i < plan->nodes; i++) {
		struct cargo_node *node = &cargo->nodes[i];
		enum esp_status status = plan_row(plan, i, chunk, &node->row);

		if (status != ESP_OK)
			return status;
		node->next = 0;
		node->aliased = plan_aliases(plan, &piece, i, PLAN_IN, PLAN_OUT);
		memset(node->places, 0, sizeof(node->places));
		if (piece_gives(&plan->chunks, &piece, i))
			node->places[node->aliased ? PLAN_OUT : PLAN_IN] = (uint64_t)1 << i;
	}
	return ESP_OK;
}

static uint64_t *place_of(struct cargo_node *node, uint32_t place)
{
	return &node->places[node->aliased && place == PLAN_IN ? PLAN_OUT : place];
}

/* The oldest message that to has not taken from `from` yet. */
static uint64_t take(struct draw_cargo *cargo, uint32_t from, uint32_t to)
{
	for (uint32_t i = 0; i < cargo->count; i++) {
		struct cargo_message *message = &cargo->messages[i];

		if (message->taken || message->from != from || message->to != to)
			continue;
		message->taken = true;
		return message->carried;
	}
	return 0;
}

static void fold(struct draw_cargo *cargo, uint32_t self, const struct plan_step *step)
{
	struct cargo_node *node = &cargo->nodes[self];
	uint64_t sum = 0;

	for (uint32_t i = 1; i <= step->count; i++)
		sum |= step[i].verb == PLAN_TERM ? take(cargo, step[i].node, self) : *place_of(node, step[i].place);
	*place_of(node, step->place) = sum;
}

/* Runs the node up to its next send and returns that step; NULL if it sends no more. */
static const struct plan_step *run_to_send(struct draw_cargo *cargo, uint32_t self)
{
	struct cargo_node *node = &cargo->nodes[self];

	while (node->next < node->row.count) {
		const struct plan_step *step = &node->row.steps[node->next++];

		if (step->verb == PLAN_SEND)
			return step;
		if (step->verb == PLAN_RECV)
			*place_of(node, step->place) = take(cargo, step->node, self);
		else if (step->verb == PLAN_COPY)
			*place_of(node, step->place) = *place_of(node, step->source);
		else if (step->verb == PLAN_FOLD)
			fold(cargo, self, step);
	}
	return NULL;
}

static enum esp_status keep(struct draw_cargo *cargo, struct cargo_message message)
{
	if (!vec_reserve(&cargo->messages, &cargo->capacity, (size_t)cargo->count + 1, sizeof(*cargo->messages)))
		return ESP_ENOMEM;
	cargo->messages[cargo->count++] = message;
	return ESP_OK;
}

enum esp_status plan_cargo_send(struct draw_cargo *cargo, uint32_t from, uint32_t to, uint64_t *out)
{
	const struct plan_step *step = run_to_send(cargo, from);

	assert(step && step->node == to); /* the checker tells the messages of a row in their order */
	uint64_t carried = *place_of(&cargo->nodes[from], step->place);
	enum esp_status status = keep(cargo, (struct cargo_message){.from = from, .to = to, .carried = carried});
	if (status == ESP_OK)
		*out = carried;
	return status;
}
