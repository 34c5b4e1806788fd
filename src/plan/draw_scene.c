#include "plan/draw_scene.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

static_assert(DRAW_WORKERS_MAX <= 64, "contributors are bits of a word");

/* ---- what the checker tells ---- */

/* The checker walks chunk after chunk. */
static enum esp_status follow(struct draw_scene *scene, uint64_t chunk)
{
	if (scene->cargo_chunk == chunk)
		return ESP_OK;
	scene->cargo_chunk = chunk;
	return plan_cargo_begin(&scene->cargo, chunk);
}

static void on_message(void *context, uint64_t chunk, uint32_t from, uint32_t to, uint32_t round, uint64_t bytes,
                       bool reduced)
{
	struct draw_scene *scene = context;
	uint64_t carried;
	(void)bytes;

	if (scene->failed)
		return;
	scene->failed = !vec_reserve(&scene->messages, &scene->message_capacity, (size_t)scene->message_count + 1,
	                             sizeof(*scene->messages)) ||
	                follow(scene, chunk) != ESP_OK ||
	                plan_cargo_send(&scene->cargo, from, to, &carried) != ESP_OK;
	if (scene->failed)
		return;
	scene->messages[scene->message_count++] = (struct draw_message){
		.round = round,
		.chunk = (uint32_t)(chunk - scene->first_chunk),
		.from = from,
		.to = to,
		.carried = carried,
		.final = reduced,
	};
}

static int message_order(const void *a, const void *b)
{
	const struct draw_message *x = a, *y = b;
	const uint32_t left[] = {x->round, x->chunk, x->from, x->to};
	const uint32_t right[] = {y->round, y->chunk, y->from, y->to};

	for (unsigned i = 0; i < 4; i++) {
		if (left[i] != right[i])
			return left[i] < right[i] ? -1 : 1;
	}
	return 0;
}

/* ---- contributions by node ---- */

static uint64_t *held_at(const struct draw_scene *scene, uint32_t round, uint32_t chunk, uint32_t node)
{
	return &scene->held[((uint64_t)round * scene->chunk_count + chunk) * scene->plan->nodes + node];
}

uint64_t plan_draw_scene_held(const struct draw_scene *scene, uint32_t round, uint32_t chunk, uint32_t node)
{
	return *held_at(scene, round, chunk, node);
}

struct plan_piece plan_draw_scene_piece(const struct draw_scene *scene, uint32_t chunk)
{
	return plan_chunks_piece(&scene->plan->chunks, scene->first_chunk + chunk);
}

uint64_t plan_draw_scene_whole(const struct draw_scene *scene, uint32_t chunk)
{
	struct plan_piece piece = plan_draw_scene_piece(scene, chunk);
	uint64_t whole = 0;

	for (uint32_t node = 0; node < scene->plan->workers; node++)
		whole |= (uint64_t)piece_gives(&scene->plan->chunks, &piece, node) << node;
	return whole;
}

/* Each contributor starts with its own contribution, and keeps those that arrive. */
static enum esp_status fill_held(struct draw_scene *scene, struct error *err)
{
	uint64_t per_round = (uint64_t)scene->chunk_count * scene->plan->nodes;

	scene->held = calloc((scene->report.rounds + 1) * per_round + 1, sizeof(*scene->held));
	if (!scene->held)
		return error_set(err, ESP_ENOMEM, "no memory to draw %u rounds", scene->report.rounds);
	for (uint32_t c = 0; c < scene->chunk_count; c++) {
		uint64_t whole = plan_draw_scene_whole(scene, c);

		for (uint32_t node = 0; node < scene->plan->workers; node++)
			*held_at(scene, 0, c, node) = whole & (uint64_t)1 << node;
	}
	const struct draw_message *message = scene->messages, *end = message + scene->message_count;
	for (uint32_t round = 1; round <= scene->report.rounds; round++) {
		memcpy(held_at(scene, round, 0, 0), held_at(scene, round - 1, 0, 0), per_round * sizeof(*scene->held));
		for (; message < end && message->round == round; message++)
			*held_at(scene, round, message->chunk, message->to) |= message->carried;
	}
	return ESP_OK;
}

/* ---- the scene ---- */

static enum esp_status check_limits(const struct draw_scene *scene, struct error *err)
{
	const struct plan *plan = scene->plan;

	if (plan->workers > DRAW_WORKERS_MAX || plan->nodes > DRAW_NODES_MAX)
		return error_set(err, ESP_ELIMIT,
		                 "%u nodes are too many for a picture: draw the plan for at most %u, which "
		                 "shows the same pattern",
		                 plan->nodes, DRAW_WORKERS_MAX);
	if (scene->chunk_count > DRAW_CHUNKS_MAX)
		return error_set(err, ESP_ELIMIT,
		                 "%llu chunks are too many for a picture of at most %u: draw one of them, "
		                 "with --chunk, or cut the buffer into fewer",
		                 (unsigned long long)plan->chunks.chunk_count, DRAW_CHUNKS_MAX);
	return ESP_OK;
}

static enum esp_status choose_chunks(struct draw_scene *scene, uint64_t chunk, struct error *err)
{
	uint64_t count = scene->plan->chunks.chunk_count;

	if (chunk == DRAW_ALL_CHUNKS) {
		scene->chunk_count = count > UINT32_MAX ? UINT32_MAX : (uint32_t)count;
		return check_limits(scene, err);
	}
	if (chunk >= count)
		return error_set(err, ESP_EINVAL, "there is no chunk %llu: the plan has %llu, numbered from 0",
		                 (unsigned long long)chunk, (unsigned long long)count);
	scene->first_chunk = chunk;
	scene->chunk_count = 1;
	return check_limits(scene, err);
}

static enum esp_status collect(struct draw_scene *scene, struct error *err)
{
	const struct plan_observer observer = {.message = on_message, .context = scene};

	if (plan_cargo_init(&scene->cargo, scene->plan) != ESP_OK)
		return error_set(err, ESP_ENOMEM, "no memory to draw %u nodes", scene->plan->nodes);
	scene->cargo_chunk = UINT64_MAX;
	enum esp_status status =
		plan_check_range(scene->plan, scene->first_chunk, scene->chunk_count, &observer, &scene->report, NULL, err);

	if (status != ESP_OK)
		return status;
	if (scene->failed)
		return error_set(err, ESP_ENOMEM, "no memory for the messages of the picture");
	if (scene->report.rounds > DRAW_ROUNDS_MAX)
		return error_set(err, ESP_ELIMIT,
		                 "%u rounds are too many for a picture of at most %u: draw a plan for fewer nodes",
		                 scene->report.rounds, DRAW_ROUNDS_MAX);
	if (scene->message_count)
		qsort(scene->messages, scene->message_count, sizeof(*scene->messages), message_order);
	return fill_held(scene, err);
}

enum esp_status plan_draw_scene_init(struct draw_scene *scene, const struct plan *plan, uint64_t chunk,
                                     struct error *err)
{
	*scene = (struct draw_scene){.plan = plan};
	enum esp_status status = choose_chunks(scene, chunk, err);

	if (status == ESP_OK)
		status = collect(scene, err);
	if (status != ESP_OK)
		plan_draw_scene_fini(scene);
	return status;
}

void plan_draw_scene_fini(struct draw_scene *scene)
{
	plan_cargo_fini(&scene->cargo);
	free(scene->messages);
	free(scene->held);
	*scene = (struct draw_scene){0};
}
