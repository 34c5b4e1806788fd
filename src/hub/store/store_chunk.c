/*
 * store_chunk.c - the rounds of a chunk: terms are added in order, and the finished sum updates the weights.
 */
#include <assert.h>
#include <string.h>

#include "hub/store/store_state.h"
#include "math/math.h"

#define HALF_BYTES 2u
#define HALF_BLOCK 512u /* elements that are widened at a time */

static bool is_push(const struct store_request *request)
{
	return request->kind == HUB_PUSH || request->kind == HUB_PUSHPULL || request->kind == HUB_SHARED;
}

static bool is_pull(const struct store_request *request)
{
	return request->kind == HUB_PULL || hub_kind_is_read(request->kind);
}

/* ---- terms ---- */

/* Frees the slots of the terms of pushers [from, to), which are in the sum. */
static void free_slots(struct store_lane *lane, uint32_t chunk, uint32_t from, uint32_t to)
{
	for (uint32_t worker = from; worker < to; worker = store_next_pusher(lane, worker + 1)) {
		struct store_request *request = store_request(lane, chunk, worker);

		store_values_release(&lane->values, lane->pool.slots[request->link].value);
		store_pool_put(&lane->pool, request->link);
		request->link = STORE_NO_SLOT;
	}
}

/* The next term in order: where it lies, if it has come and has the round's hyper-parameters. */
static const void *next_term(struct store_lane *lane, uint32_t number, uint32_t worker)
{
	const struct store_chunk *chunk = &lane->chunks[number];

	if (worker == lane->config.workers || !(chunk->terms >> worker & 1))
		return NULL;
	uint32_t slot = store_request(lane, number, worker)->link;
	if (lane->pool.slots[slot].value != chunk->value) {
		store_blame_value(lane, number, worker, lane->pool.slots[slot].value);
		return NULL;
	}
	return store_pool_at(&lane->pool, slot);
}

/* Worker 0's term of 16 bits lies in the upper half of the sum's memory, and becomes the sum. */
static void widen_first(struct store_lane *lane, uint32_t number)
{
	enum esp_type type = store_type(lane, number);
	uint32_t elements = store_cut(lane, number)->elements;
	float *sum = lane->config.model->sums + store_cut(lane, number)->at, wide[HALF_BLOCK];
	const uint8_t *term = (const uint8_t *)sum + elements * HALF_BYTES;

	for (uint32_t at = 0; at < elements; at += HALF_BLOCK) {
		uint32_t count = elements - at < HALF_BLOCK ? elements - at : HALF_BLOCK;

		/* 4 (at + count) <= 2 elements + 2 (at + count): the store ends before the first term that is not read yet. */
		math_widen(type, wide, term + at * HALF_BYTES, count);
		memcpy(sum + at, wide, count * sizeof(float));
	}
}

/* Each in float32, one after the other. */
static void add_halves(enum esp_type type, float *sum, const void *const *terms, uint32_t count, uint32_t elements)
{
	math_fold_fn *add = math_fold(ESP_F32, ESP_SUM);
	float wide[HALF_BLOCK];

	for (uint32_t at = 0; at < elements; at += HALF_BLOCK) {
		uint32_t some = elements - at < HALF_BLOCK ? elements - at : HALF_BLOCK;

		for (uint32_t i = 0; i < count; i++) {
			math_widen(type, wide, (const uint8_t *)terms[i] + at * HALF_BYTES, some);
			add(sum + at, sum + at, wide, some);
		}
	}
}

/* Adds the terms whose turn it is: ((t0 + t1) + t2) + ... */
static void add_terms(struct store_lane *lane, uint32_t number)
{
	struct store_chunk *chunk = &lane->chunks[number];
	const struct layout_chunk *cut = store_cut(lane, number);
	float *sum = lane->config.model->sums + cut->at;
	const void *sources[STORE_WORKERS_MOST] = {sum};
	uint32_t count = 1, next = chunk->added;
	const void *term;

	assert(chunk->added > 0);
	for (; (term = next_term(lane, number, next)) != NULL; next = store_next_pusher(lane, next + 1))
		sources[count++] = term;
	if (count == 1)
		return;
	if (store_type(lane, number) == ESP_F32)
		math_fold_many(ESP_F32, ESP_SUM, sum, sources, count, cut->elements);
	else
		add_halves(store_type(lane, number), sum, sources + 1, count - 1, cut->elements);
	free_slots(lane, number, chunk->added, next);
	chunk->added = next;
}

/* The term of a set whose gradients lie in shared memory: ((g0 + g1) + g2) + ... */
static void add_set(struct store_lane *lane, uint32_t number, uint32_t pusher, uint32_t slot)
{
	const struct layout_chunk *cut = store_cut(lane, number);
	const float *gradients = lane->shared[pusher].gradients + cut->at;
	uint32_t members = (uint32_t)__builtin_popcountll(lane->sets[pusher]);
	const void *sources[STORE_WORKERS_MOST];

	for (uint32_t i = 0; i < members; i++)
		sources[i] = gradients + i * lane->config.layout->elements;
	math_fold_many(ESP_F32, ESP_SUM, pusher == 0 ? (void *)(lane->config.model->sums + cut->at) : store_pool_at(&lane->pool, slot),
	               sources, members, cut->elements);
}

/* The weights of sets that have shared memory: they are told once these lie there. */
static void spread_shared(struct store_lane *lane, uint32_t number)
{
	const struct layout_chunk *cut = store_cut(lane, number);

	for (uint32_t worker = 0; worker < lane->config.workers; worker = store_next_pusher(lane, worker + 1)) {
		if (store_request(lane, number, worker)->kind == HUB_SHARED)
			math_copy_streaming(lane->shared[worker].weights + cut->at, lane->config.model->weights + cut->at,
			                    cut->elements * sizeof(float));
	}
}

void store_chunk_term(struct store_lane *lane, uint32_t number, uint32_t worker, uint32_t value)
{
	struct store_chunk *chunk = &lane->chunks[number];
	struct store_request *request = store_request(lane, number, worker);

	assert(is_push(request) && request->state == STORE_COMING && !(chunk->terms >> worker & 1));
	request->state = STORE_WAITING;
	chunk->terms |= lane->config.is_async ? 0 : UINT64_C(1) << worker;
	lane->stats.pushed_bytes += store_bytes(lane, number);
	if (lane->config.is_async) {
		store_async_term(lane, number, worker);
		return;
	}
	if (request->kind == HUB_SHARED)
		add_set(lane, number, worker, request->link);
	if (worker == 0) {
		assert(chunk->added == 0 && chunk->has_weights && request->link == STORE_NO_SLOT);
		chunk->value = value;
		chunk->added = store_next_pusher(lane, 1);
		if (store_type(lane, number) != ESP_F32)
			widen_first(lane, number);
	} else {
		lane->pool.slots[request->link].value = value;
		lane->stats.parked += chunk->added != worker;
	}
	if (chunk->added > 0)
		add_terms(lane, number);
	if (lane->left & ~store_contributors(lane, chunk->terms))
		store_blame_left(lane, number);
	store_chunk_try_update(lane, number);
}

/* ---- the update ---- */

void store_chunk_optimize(struct store_lane *lane, uint32_t number, const struct optimizer *optimizer,
                          uint32_t contributors, const float *sum)
{
	const struct store_chunk *chunk = &lane->chunks[number];
	const struct layout_chunk *cut = store_cut(lane, number);
	const struct store_model *model = lane->config.model;
	struct optimizer_step step = {
		.optimizer = optimizer,
		.step = chunk->before + chunk->version + 1,
		.contributors = contributors,
		.weights = model->weights + cut->at,
		.sum = sum,
	};

	for (uint32_t i = 0; i < lane->states; i++)
		step.states[i] = model->states[i] + cut->at;
	optimizer_run(&step, cut->elements);
	if (store_type(lane, number) != ESP_F32)
		math_narrow(store_type(lane, number), store_weights(lane, number), step.weights, cut->elements);
}

/* The least version has risen, if this was the last chunk that had it. */
void store_chunk_count(struct store_lane *lane, uint64_t before, uint64_t version)
{
	lane->most = version > lane->most ? version : lane->most;
	if (before != lane->least || --lane->at_least > 0)
		return;
	lane->least = UINT64_MAX;
	for (uint32_t i = 0; i < lane->chunk_count; i++) {
		if (lane->chunks[i].version < lane->least) {
			lane->least = lane->chunks[i].version;
			lane->at_least = 0;
		}
		lane->at_least += lane->chunks[i].version == lane->least;
	}
}

static bool is_complete(const struct store_lane *lane, const struct store_chunk *chunk)
{
	return chunk->added == lane->config.workers;
}

/* Pulls that wait: for the first weights, or for the end of a round whose terms are all there. */
static void answer_pulls(struct store_lane *lane, uint32_t number)
{
	struct store_chunk *chunk = &lane->chunks[number];

	for (uint32_t worker = 0; worker < lane->config.workers && chunk->pulls > 0; worker++) {
		const struct store_request *request = store_request(lane, number, worker);

		if (is_pull(request) && request->state == STORE_WAITING) {
			chunk->pulls--;
			store_send_due(lane, number, worker);
		}
	}
	assert(chunk->pulls == 0);
}

static void answer_all(struct store_lane *lane, uint32_t number)
{
	for (uint32_t worker = 0; worker < lane->config.workers; worker = store_next_pusher(lane, worker + 1)) {
		assert(is_push(store_request(lane, number, worker)));
		store_send_due(lane, number, worker);
	}
}

void store_chunk_try_update(struct store_lane *lane, uint32_t number)
{
	struct store_chunk *chunk = &lane->chunks[number];

	if (!is_complete(lane, chunk) || chunk->sending > 0)
		return;
	assert(chunk->has_weights && chunk->terms == lane->pushers);
	store_chunk_optimize(lane, number, store_values_get(&lane->values, chunk->value), lane->config.workers,
	                     lane->config.model->sums + store_cut(lane, number)->at);
	store_values_release(&lane->values, chunk->value);
	chunk->version++;
	chunk->terms = 0;
	chunk->added = 0;
	lane->stats.rounds++;
	store_chunk_count(lane, chunk->version - 1, chunk->version);
	spread_shared(lane, number);
	answer_all(lane, number);
	answer_pulls(lane, number);
}

/* ---- weights ---- */

void store_chunk_set(struct store_lane *lane, uint32_t number)
{
	struct store_chunk *chunk = &lane->chunks[number];

	assert(!chunk->has_weights && chunk->version == 0);
	chunk->has_weights = true;
	if (store_type(lane, number) != ESP_F32)
		math_widen(store_type(lane, number), store_array(lane, number, 0), store_weights(lane, number),
		           store_cut(lane, number)->elements);
	store_request(lane, number, 0)->state = STORE_WAITING;
	store_send_due(lane, number, 0);
	answer_pulls(lane, number);
}

void store_chunk_written(struct store_lane *lane, uint32_t number)
{
	store_request(lane, number, 0)->state = STORE_WAITING;
	store_send_due(lane, number, 0);
}

void store_chunk_pull(struct store_lane *lane, uint32_t number, uint32_t worker)
{
	struct store_chunk *chunk = &lane->chunks[number];

	store_request(lane, number, worker)->state = STORE_WAITING;
	if (chunk->has_weights && !is_complete(lane, chunk)) /* pulls must not hold up an update again and again */
		store_send_due(lane, number, worker);
	else
		chunk->pulls++;
}
