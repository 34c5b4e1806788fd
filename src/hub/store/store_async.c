/*
 * store_async.c - updates of asynchronous jobs: collected in slots, applied or dropped as a whole.
 */
#include <assert.h>
#include <string.h>

#include "hub/store/store_state.h"
#include "math/math.h"

static uint64_t bit(uint32_t worker)
{
	return UINT64_C(1) << worker;
}

/* ---- collecting ---- */

void store_async_term(struct store_lane *lane, uint32_t number, uint32_t worker)
{
	struct store_peer *peer = &lane->peers[worker];

	assert(store_request(lane, number, worker)->link != STORE_NO_SLOT && !(lane->whole & bit(worker)));
	if (++peer->collected < lane->chunk_count)
		return;
	lane->whole |= bit(worker);
	lane->news_whole |= bit(worker);
}

static bool take_news(uint64_t *news, uint32_t *out_worker)
{
	if (*news == 0)
		return false;
	*out_worker = (uint32_t)__builtin_ctzll(*news);
	*news &= *news - 1;
	return true;
}

bool store_lane_take_whole(struct store_lane *lane, uint32_t *out_worker)
{
	return take_news(&lane->news_whole, out_worker);
}

bool store_lane_take_lost(struct store_lane *lane, uint32_t *out_worker)
{
	return take_news(&lane->news_lost, out_worker);
}

/* ---- the end of an update ---- */

/* A term of 16 bits is widened into the sum's memory, which is free. */
static void apply_term(struct store_lane *lane, uint32_t number, const void *term, uint32_t count)
{
	struct store_chunk *chunk = &lane->chunks[number];
	const struct layout_chunk *cut = store_cut(lane, number);
	float *wide = lane->config.model->sums + cut->at;
	bool is_wide = store_type(lane, number) == ESP_F32;

	if (!is_wide)
		math_widen(store_type(lane, number), wide, term, cut->elements);
	store_chunk_optimize(lane, number, &lane->optimizers[lane->config.layout->tensor[cut->tensor].group], 1,
	                     is_wide ? term : wide);
	chunk->version += count;
	lane->stats.rounds += count;
	store_chunk_count(lane, chunk->version - count, chunk->version);
}

/* Frees the slot of a worker's term, and answers if the worker can be answered. */
static void end_term(struct store_lane *lane, uint32_t number, uint32_t worker)
{
	struct store_request *request = store_request(lane, number, worker);

	store_pool_put(&lane->pool, request->link);
	request->link = STORE_NO_SLOT;
	if (lane->lost & bit(worker))
		request->state = STORE_IDLE;
	else
		store_send_due(lane, number, worker);
}

static bool is_collected(const struct store_request *request)
{
	return request->kind == HUB_PUSH && request->state == STORE_WAITING;
}

static void forget_update(struct store_lane *lane, uint32_t worker)
{
	lane->peers[worker].collected = 0;
	lane->whole &= ~bit(worker);
	lane->news_whole &= ~bit(worker);
}

void store_lane_apply(struct store_lane *lane, uint32_t worker, uint32_t count)
{
	assert(lane->config.is_async && worker < lane->config.workers && count > 0);
	if (lane->failure != ESP_OK)
		return;
	assert(lane->chunk_count == 0 || lane->whole & bit(worker));
	for (uint32_t number = 0; number < lane->chunk_count; number++) {
		const struct store_request *request = store_request(lane, number, worker);

		assert(is_collected(request));
		apply_term(lane, number, store_pool_at(&lane->pool, request->link), count);
		end_term(lane, number, worker);
	}
	forget_update(lane, worker);
}

void store_lane_drop(struct store_lane *lane, uint32_t worker)
{
	assert(lane->config.is_async && worker < lane->config.workers);
	if (lane->failure != ESP_OK)
		return;
	for (uint32_t number = 0; number < lane->chunk_count; number++) {
		if (is_collected(store_request(lane, number, worker)))
			end_term(lane, number, worker);
	}
	forget_update(lane, worker);
}

/* ---- a worker is lost ---- */

/* Its update stays if it is whole: another lane may have applied it already. */
static void forget_request(struct store_lane *lane, uint32_t number, uint32_t worker)
{
	struct store_request *request = store_request(lane, number, worker);
	bool waits = request->kind == HUB_PULL && request->state == STORE_WAITING;

	if (is_collected(request) && lane->whole & bit(worker))
		return;
	if (request->state != STORE_DUE && request->state != STORE_IDLE && request->link != STORE_NO_SLOT)
		store_pool_put(&lane->pool, request->link);
	lane->chunks[number].pulls -= waits;
	request->link = STORE_NO_SLOT;
	request->state = STORE_IDLE;
}

static bool lacks_weights(const struct store_lane *lane)
{
	for (uint32_t number = 0; number < lane->chunk_count; number++) {
		if (!lane->chunks[number].has_weights)
			return true;
	}
	return false;
}

void store_async_lost(struct store_lane *lane, uint32_t worker, enum esp_status why)
{
	struct store_peer *peer = &lane->peers[worker];
	struct error err = {.status = why};

	if (worker == 0 && lacks_weights(lane))
		store_blame(lane, worker, &err);
	lane->lost |= bit(worker);
	lane->ready &= ~bit(worker);
	peer->first_due = peer->last_due = STORE_NO_CHUNK;
	peer->is_busy = false;
	for (uint32_t number = 0; number < lane->chunk_count; number++)
		forget_request(lane, number, worker);
	if (!(lane->whole & bit(worker)))
		peer->collected = 0;
	if (!(lane->left & bit(worker)))
		lane->news_lost |= bit(worker);
}

/* ---- answers ---- */

void store_async_lend(struct store_lane *lane, uint32_t number, uint32_t worker, struct transport_message *out)
{
	struct store_request *request = store_request(lane, number, worker);
	uint32_t bytes = store_bytes(lane, number);

	assert(request->state == STORE_IDLE);
	request->state = STORE_SENDING;
	request->link = store_pool_get(&lane->pool, 0);
	lane->stats.slots = lane->pool.made;
	memcpy(store_pool_at(&lane->pool, request->link), store_weights(lane, number), bytes);
	out->channel = HUB_WEIGHTS;
	out->bytes = bytes;
	out->data = store_pool_at(&lane->pool, request->link);
	out->cookie = &lane->chunks[number];
	lane->stats.pulled_bytes += bytes;
}

void store_async_sent(struct store_lane *lane, uint32_t number, uint32_t worker)
{
	struct store_request *request = store_request(lane, number, worker);

	assert(request->state == STORE_SENDING);
	store_pool_put(&lane->pool, request->link);
	request->link = STORE_NO_SLOT;
	request->state = STORE_IDLE;
}
