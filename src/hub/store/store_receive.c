/*
 * store_receive.c - requests come in: each is checked when it begins, and followed once it has come whole.
 *
 * A number, length or version of a frame is used after it has been checked only. A worker that breaks the protocol is
 * trouble (ESP_ECORRUPT) and its connection is broken.
 */
#include <assert.h>
#include <inttypes.h>

#include "hub/store/store_state.h"

/* ---- checks ---- */

static const char *kind_name(uint8_t kind)
{
	if (hub_kind_is_read(kind))
		return "read";
	if (hub_kind_is_write(kind))
		return "write";
	static const char *const names[HUB_FRAME_KINDS] = {
		[HUB_PUSH] = "push", [HUB_PULL] = "pull", [HUB_PUSHPULL] = "pushpull", [HUB_SET] = "set", [HUB_HYPER] = "hyper",
		[HUB_SHARED] = "shared push",
	};

	assert(kind < HUB_FRAME_KINDS && names[kind]);
	return names[kind];
}

/* The lane's chunk that a request is for. */
static enum esp_status check_chunk(struct store_lane *lane, uint32_t worker, const struct transport_message *message,
                                   uint32_t *out)
{
	const struct hub_layout *layout = lane->config.layout;
	const char *name = kind_name((uint8_t)message->channel);
	struct error why;

	if (message->call >= layout->chunks || layout->chunk[message->call].lane != lane->config.lane) {
		error_set(&why, ESP_ECORRUPT, "worker %u sent a %s of chunk %u, which lane %u does not have", worker, name,
		          message->call, lane->config.lane);
		return store_blame(lane, worker, &why);
	}
	uint32_t chunk = layout->lane_at[message->call];
	if (store_request(lane, chunk, worker)->state != STORE_IDLE) {
		error_set(&why, ESP_ECORRUPT, "worker %u sent a %s of chunk %u while its %s of that chunk is not answered",
		          worker, name, message->call, kind_name(store_request(lane, chunk, worker)->kind));
		return store_blame(lane, worker, &why);
	}
	*out = chunk;
	return ESP_OK;
}

static enum esp_status check_bytes(struct store_lane *lane, uint32_t worker, const struct transport_message *message,
                                   uint32_t expected)
{
	struct error why;

	if (message->bytes == expected)
		return ESP_OK;
	error_set(&why, ESP_ECORRUPT, "worker %u sent a %s of %u bytes where %u were expected (chunk or group %u)", worker,
	          kind_name((uint8_t)message->channel), message->bytes, expected, message->call);
	return store_blame(lane, worker, &why);
}

static enum esp_status check_version(struct store_lane *lane, uint32_t worker, const struct transport_message *message,
                                     uint32_t chunk)
{
	uint64_t version = lane->chunks[chunk].version;
	struct error why;

	/* An asynchronous worker knows some earlier version. */
	if (message->ack == (uint32_t)version || (lane->config.is_async && (uint32_t)version - message->ack <= INT32_MAX))
		return ESP_OK;
	error_set(&why, ESP_ECORRUPT, "worker %u sent a %s of chunk %u for version %u where version %" PRIu64 " collects",
	          worker, kind_name((uint8_t)message->channel), message->call, message->ack, version);
	return store_blame(lane, worker, &why);
}

/* A worker of another one's set has no term of its own. */
static enum esp_status check_pusher(struct store_lane *lane, uint32_t worker, const struct transport_message *message)
{
	struct error why;

	if (lane->sets[worker] != 0)
		return ESP_OK;
	error_set(&why, ESP_ECORRUPT, "worker %u sent a %s of chunk %u, and another worker of its host pushes for it",
	          worker, kind_name((uint8_t)message->channel), message->call);
	return store_blame(lane, worker, &why);
}

/* ---- a message begins ---- */

static void expect(struct store_lane *lane, uint32_t worker, const struct transport_message *message, uint32_t chunk,
                   void *at)
{
	struct store_peer *peer = &lane->peers[worker];

	assert(!peer->is_busy);
	peer->is_busy = true;
	peer->kind = (uint8_t)message->channel;
	peer->chunk = chunk;
	peer->at = at;
	peer->bytes = message->bytes;
	peer->have = 0;
}

static struct store_request *expect_request(struct store_lane *lane, uint32_t worker,
                                            const struct transport_message *message, uint32_t chunk, void *at)
{
	struct store_request *request = store_request(lane, chunk, worker);

	expect(lane, worker, message, chunk, at);
	*request = (struct store_request){.kind = (uint8_t)message->channel, .state = STORE_COMING, .link = STORE_NO_SLOT};
	return request;
}

/* The hyper-parameters that belong to the worker's term. */
static enum esp_status take_value(struct store_lane *lane, uint32_t worker, uint32_t chunk)
{
	uint32_t group = lane->config.layout->tensor[store_cut(lane, chunk)->tensor].group;
	uint64_t version = lane->chunks[chunk].version;
	struct error why;

	lane->peers[worker].value = store_values_use(&lane->values, worker, group, version);
	if (lane->peers[worker].value != STORE_NO_VALUE)
		return ESP_OK;
	error_set(&why, ESP_ECORRUPT,
	          "worker %u sent a term of version %" PRIu64 " for parameter group %u, of which the %u "
	          "latest values hold from version %" PRIu64 " on: a tensor that is pushed seldom needs a group of its own",
	          worker, version, group, STORE_VALUES_PAST, store_values_oldest(&lane->values, worker, group));
	return store_blame(lane, worker, &why);
}

/* The term of worker 0 goes straight into the sum, of 16 bits to its end, any other one into a slot. */
static void place_term(struct store_lane *lane, uint32_t worker, const struct transport_message *message,
                       uint32_t chunk)
{
	if (worker == 0 && !lane->config.is_async) {
		uint32_t before = store_cut(lane, chunk)->elements * (uint32_t)sizeof(float) - store_bytes(lane, chunk);

		expect_request(lane, worker, message, chunk,
		               (uint8_t *)(lane->config.model->sums + store_cut(lane, chunk)->at) + before);
		return;
	}
	uint32_t slot = store_pool_get(&lane->pool, message->shift % TRANSPORT_SHIFTS);
	lane->stats.slots = lane->pool.made;
	expect_request(lane, worker, message, chunk, store_pool_at(&lane->pool, slot))->link = slot;
}

static enum esp_status begin_push(struct store_lane *lane, uint32_t worker, const struct transport_message *message)
{
	uint32_t chunk;
	struct error why;
	enum esp_status status = check_pusher(lane, worker, message);

	if (status == ESP_OK)
		status = check_chunk(lane, worker, message, &chunk);
	if (status == ESP_OK)
		status = check_bytes(lane, worker, message, store_bytes(lane, chunk));
	if (status == ESP_OK)
		status = check_version(lane, worker, message, chunk);
	if (status != ESP_OK)
		return status;
	/* No round can end before worker 0 has set them; of an asynchronous job no worker has computed anything before. */
	if ((worker == 0 || lane->config.is_async) && !lane->chunks[chunk].has_weights) {
		error_set(&why, ESP_ECORRUPT, "worker %u sent a %s of chunk %u, whose first weights %s has not set", worker,
		          kind_name((uint8_t)message->channel), message->call, worker == 0 ? "it" : "worker 0");
		return store_blame(lane, worker, &why);
	}
	status = lane->config.is_async ? ESP_OK : take_value(lane, worker, chunk);
	if (status == ESP_OK)
		place_term(lane, worker, message, chunk);
	return status;
}

/* The set's gradients are added when the message has ended. */
static enum esp_status begin_shared(struct store_lane *lane, uint32_t worker, const struct transport_message *message)
{
	uint32_t chunk;
	struct error why;
	enum esp_status status = check_pusher(lane, worker, message);

	if (status == ESP_OK)
		status = check_chunk(lane, worker, message, &chunk);
	if (status == ESP_OK)
		status = check_bytes(lane, worker, message, 0);
	if (status == ESP_OK)
		status = check_version(lane, worker, message, chunk);
	if (status != ESP_OK)
		return status;
	if (!lane->shared[worker].gradients || !lane->chunks[chunk].has_weights) {
		error_set(&why, ESP_ECORRUPT, "worker %u sent a shared push of chunk %u without %s", worker, message->call,
		          lane->chunks[chunk].has_weights ? "shared memory" : "first weights");
		return store_blame(lane, worker, &why);
	}
	status = take_value(lane, worker, chunk);
	if (status != ESP_OK)
		return status;
	struct store_request *request = expect_request(lane, worker, message, chunk, NULL);
	request->link = worker == 0 ? STORE_NO_SLOT : store_pool_get(&lane->pool, 0);
	lane->stats.slots = lane->pool.made;
	return ESP_OK;
}

static enum esp_status begin_pull(struct store_lane *lane, uint32_t worker, const struct transport_message *message)
{
	uint32_t chunk;
	enum esp_status status = check_chunk(lane, worker, message, &chunk);

	if (status == ESP_OK)
		status = check_bytes(lane, worker, message, 0);
	if (status == ESP_OK)
		expect_request(lane, worker, message, chunk, NULL);
	return status;
}

static enum esp_status begin_set(struct store_lane *lane, uint32_t worker, const struct transport_message *message)
{
	uint32_t chunk;
	struct error why;
	enum esp_status status = check_chunk(lane, worker, message, &chunk);

	if (status == ESP_OK)
		status = check_bytes(lane, worker, message, store_bytes(lane, chunk));
	if (status != ESP_OK)
		return status;
	if (worker != 0 || lane->chunks[chunk].has_weights || message->ack != 0) {
		error_set(&why, ESP_ECORRUPT,
		          "worker %u set the weights of chunk %u as version %u: worker 0 sets them once, as "
		          "version 0 (the chunk %s, version %" PRIu64 ")", worker, message->call, message->ack,
		          lane->chunks[chunk].has_weights ? "has weights" : "has none", lane->chunks[chunk].version);
		return store_blame(lane, worker, &why);
	}
	expect_request(lane, worker, message, chunk, store_weights(lane, chunk));
	return ESP_OK;
}

/* ---- arrays of the optimizer ---- */

static enum esp_status check_array(struct store_lane *lane, uint32_t worker, const struct transport_message *message,
                                   uint32_t array, uint32_t *out)
{
	struct error why;
	enum esp_status status = check_chunk(lane, worker, message, out);

	if (status != ESP_OK || array <= lane->states)
		return status;
	error_set(&why, ESP_ECORRUPT, "worker %u sent a %s of array %u of the optimizer, which has %u", worker,
	          kind_name((uint8_t)message->channel), array, lane->states + 1);
	return store_blame(lane, worker, &why);
}

static enum esp_status blame_overlap(struct store_lane *lane, uint32_t worker, uint32_t number)
{
	struct error why;

	error_set(&why, ESP_EMISMATCH, "worker %u sent a request for the optimizer's state of chunk %u while the state is "
	          "read and written by two workers: load it on all workers, then read it", worker, number);
	return store_blame(lane, worker, &why);
}

static enum esp_status begin_read(struct store_lane *lane, uint32_t worker, const struct transport_message *message)
{
	uint32_t chunk;
	enum esp_status status = check_array(lane, worker, message, message->channel - HUB_READ, &chunk);

	if (status == ESP_OK)
		status = check_bytes(lane, worker, message, 0);
	if (status != ESP_OK)
		return status;
	const struct store_request *first = store_request(lane, chunk, 0);
	if (first->state == STORE_COMING && hub_kind_is_write(first->kind))
		return blame_overlap(lane, worker, message->call);
	lane->chunks[chunk].reads++;
	expect_request(lane, worker, message, chunk, NULL);
	return ESP_OK;
}

static enum esp_status begin_write(struct store_lane *lane, uint32_t worker, const struct transport_message *message)
{
	uint32_t chunk, array = message->channel - HUB_WRITE;
	struct error why;
	enum esp_status status = check_array(lane, worker, message, array, &chunk);

	if (status == ESP_OK)
		status = check_bytes(lane, worker, message, store_cut(lane, chunk)->elements * (uint32_t)sizeof(float));
	if (status != ESP_OK)
		return status;
	struct store_chunk *to = &lane->chunks[chunk];
	if (worker != 0 || !to->has_weights || to->version != 0 || (array == 0 && store_type(lane, chunk) == ESP_F32)) {
		error_set(&why, ESP_ECORRUPT,
		          "worker %u wrote array %u of the optimizer's state of chunk %u at version %" PRIu64
		          ": worker 0 writes it between the first weights and its first push", worker, array, message->call,
		          to->version);
		return store_blame(lane, worker, &why);
	}
	if (to->reads > 0)
		return blame_overlap(lane, worker, message->call);
	to->before = message->ack;
	expect_request(lane, worker, message, chunk, store_array(lane, chunk, array));
	return ESP_OK;
}

/* ---- hyper-parameters ---- */

/* The version of 64 bits that is nearest to the lane's newest one. */
static uint64_t whole_version(const struct store_lane *lane, uint32_t version)
{
	int64_t beyond = (int32_t)(version - (uint32_t)lane->most);

	return beyond < 0 && (uint64_t)-beyond > lane->most ? 0 : lane->most + (uint64_t)beyond;
}

static enum esp_status begin_hyper(struct store_lane *lane, uint32_t worker, const struct transport_message *message)
{
	enum esp_status status = check_bytes(lane, worker, message, OPTIMIZER_BYTES);
	struct error why;

	if (status != ESP_OK)
		return status;
	if (message->call >= lane->config.layout->groups) {
		error_set(&why, ESP_ECORRUPT, "worker %u sent values of parameter group %u, where there are %u", worker,
		          message->call, lane->config.layout->groups);
		return store_blame(lane, worker, &why);
	}
	expect(lane, worker, message, message->call, lane->peers[worker].hyper);
	lane->peers[worker].from = whole_version(lane, message->ack);
	return ESP_OK;
}

static enum esp_status begin_known(struct store_lane *lane, uint32_t worker, const struct transport_message *message)
{
	bool is_round = !lane->config.is_async;

	switch (is_round || message->channel == HUB_PUSH || message->channel == HUB_PULL || message->channel == HUB_SET
	            ? message->channel
	            : 0) {
	case HUB_PUSH:
	case HUB_PUSHPULL:
		return begin_push(lane, worker, message);
	case HUB_SHARED:
		return begin_shared(lane, worker, message);
	case HUB_PULL:
		return begin_pull(lane, worker, message);
	case HUB_SET:
		return begin_set(lane, worker, message);
	case HUB_HYPER:
		return begin_hyper(lane, worker, message);
	}
	if (is_round && hub_kind_is_read(message->channel))
		return begin_read(lane, worker, message);
	if (is_round && hub_kind_is_write(message->channel))
		return begin_write(lane, worker, message);
	struct error why;
	error_set(&why, ESP_ECORRUPT, "worker %u sent a frame of kind %u, which is no request%s", worker, message->channel,
	          is_round ? "" : " of an asynchronous job");
	return store_blame(lane, worker, &why);
}

/* Nothing new is begun once the job is bound to fail. */
static enum esp_status receive_begin(void *user, uint32_t worker, const struct transport_message *message)
{
	struct store_lane *lane = user;
	struct store_peer *peer = &lane->peers[worker];
	struct error why;

	assert(worker < lane->config.workers && !message->is_credit);
	if (lane->failure != ESP_OK || lane->has_trouble)
		return ESP_PENDING;
	if (message->index != peer->messages_in) {
		error_set(&why, ESP_ECORRUPT, "worker %u sent message %u where %u was expected", worker, message->index,
		          peer->messages_in);
		return store_blame(lane, worker, &why);
	}
	peer->messages_in++;
	if (lane->left >> worker & 1) {
		if (message->channel == HUB_HYPER) /* needs no answer, so it may come after the news that the worker has left */
			return ESP_PENDING;
		error_set(&why, ESP_ECORRUPT, "worker %u sent a frame of kind %u after it had left", worker, message->channel);
		return store_blame(lane, worker, &why);
	}
	return begin_known(lane, worker, message);
}

/* ---- its data ---- */

static struct transport_room receive_room(void *user, uint32_t worker, uint16_t channel)
{
	struct store_lane *lane = user;
	const struct store_peer *peer = &lane->peers[worker];

	assert(worker < lane->config.workers);
	if (lane->failure != ESP_OK) /* the arrays may be gone */
		return (struct transport_room){NULL, UINT32_MAX};
	assert(peer->is_busy && peer->kind == channel && peer->have < peer->bytes);
	return (struct transport_room){peer->at + peer->have, peer->bytes - peer->have};
}

static void receive_arrived(void *user, uint32_t worker, uint16_t channel, uint32_t bytes)
{
	struct store_lane *lane = user;
	struct store_peer *peer = &lane->peers[worker];

	assert(worker < lane->config.workers);
	if (lane->failure != ESP_OK)
		return;
	assert(peer->is_busy && peer->kind == channel && bytes <= peer->bytes - peer->have);
	peer->have += bytes;
}

/* ---- it has come whole ---- */

static void end_hyper(struct store_lane *lane, uint32_t worker)
{
	const struct store_peer *peer = &lane->peers[worker];
	const struct optimizer *first = &lane->config.optimizers[peer->chunk];
	struct optimizer optimizer;
	struct error why;

	if (!optimizer_decode(peer->hyper, &optimizer))
		error_set(&why, ESP_ECORRUPT, "worker %u sent values of parameter group %u that are out of range", worker,
		          peer->chunk);
	else if (optimizer.kind != first->kind)
		error_set(&why, ESP_EMISMATCH, "worker %u uses optimizer %u for parameter group %u where the job uses %u",
		          worker, optimizer.kind, peer->chunk, first->kind);
	else if (optimizer_states(&optimizer) > lane->states)
		error_set(&why, ESP_EMISMATCH, "worker %u uses momentum for parameter group %u: the job was made without",
		          worker, peer->chunk);
	else if (store_values_set(&lane->values, worker, peer->chunk, peer->from, &optimizer) != ESP_OK)
		error_set(&why, ESP_ELIMIT, "parameter group %u has %u different values at a time: worker %u sent one more",
		          peer->chunk, lane->values.group_values, worker);
	else
		return;
	store_blame(lane, worker, &why);
}

static void receive_ended(void *user, uint32_t worker, uint16_t channel)
{
	struct store_lane *lane = user;
	struct store_peer *peer = &lane->peers[worker];

	assert(worker < lane->config.workers);
	if (lane->failure != ESP_OK)
		return;
	assert(peer->is_busy && peer->kind == channel && peer->have == peer->bytes);
	peer->is_busy = false;
	if (channel == HUB_HYPER)
		end_hyper(lane, worker);
	else if (channel == HUB_SET)
		store_chunk_set(lane, peer->chunk);
	else if (hub_kind_is_write(channel))
		store_chunk_written(lane, peer->chunk);
	else if (channel == HUB_PULL || hub_kind_is_read(channel))
		store_chunk_pull(lane, peer->chunk, worker);
	else
		store_chunk_term(lane, peer->chunk, worker, peer->value);
}

/* A worker grants no credits: it has room for the answer to each of its requests. */
static enum esp_status receive_credit(void *user, uint32_t worker, const struct transport_message *message)
{
	struct store_lane *lane = user;

	assert(worker < lane->config.workers && message->is_credit);
	return ESP_OK;
}

static void receive_lost(void *user, uint32_t worker, enum esp_status why)
{
	struct store_lane *lane = user;
	struct error err = {.status = why};

	assert(worker < lane->config.workers && why < 0);
	if (lane->config.is_async)
		store_async_lost(lane, worker, why);
	else if (!(lane->left >> worker & 1))
		store_blame(lane, worker, &err);
}

static enum esp_status lane_failed(void *user)
{
	return ((struct store_lane *)user)->failure;
}

const struct transport_user store_lane_user = {
	.next = store_send_next,
	.ready = store_send_ready,
	.sent = store_send_sent,
	.begin = receive_begin,
	.room = receive_room,
	.arrived = receive_arrived,
	.ended = receive_ended,
	.credit = receive_credit,
	.lost = receive_lost,
	.failed = lane_failed,
};
