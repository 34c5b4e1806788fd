#include "hub/client/client_lane.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define HUB 0u             /* the only peer */
#define NO_PEER UINT32_MAX
#define HYPERS_LEAST 64u   /* unsent ones; two for each parameter group more */

/* A chunk of this lane. At most one request of it is under way. */
struct chunk_state {
	uint64_t version;         /* that this worker has, from answers */
	struct client_part *part; /* whose request is under way; NULL: none */
	bool is_unsent;           /* the transport may still read the gradient */
	bool is_unanswered;
};

struct hyper {
	uint64_t version, after; /* after: parts that are requested before it */
	uint16_t group;
	uint8_t bytes[OPTIMIZER_BYTES];
};

/* The answer that is being received. */
struct incoming {
	struct chunk_state *chunk; /* NULL: none */
	uint64_t version;
	uint8_t *at;               /* where its next bytes go */
	uint32_t left;
};

struct part_list {
	struct client_part *first, *last;
};

struct client_lane {
	const struct hub_layout *layout;
	uint32_t lane;
	bool is_async;
	int64_t *push_budget, *pull_budget;
	const _Atomic uint32_t *ready;
	enum esp_status failure; /* ESP_OK: none yet */
	bool is_ready;           /* the transport has to be told that there is something to send */

	struct chunk_state *chunks; /* by place among the lane's chunks */
	uint32_t *tensor_first;     /* by tensor, and one more: its first place */

	struct part_list waiting; /* parts not all of whose chunks are requested */
	struct part_list held;    /* ended by a failure, while the transport may still use their memory */
	struct part_list done;
	uint64_t started, requested; /* parts with chunks so far: all, and those that have left `waiting` */

	struct hyper *hypers; /* a ring */
	uint32_t hyper_room, hyper_first, hyper_count;
	uint32_t hyper_taken; /* of hyper_count: the transport has them */

	uint32_t index_out, index_in; /* messages so far */
	uint32_t unanswered;          /* requests */
	struct incoming incoming;
};

static void list_add(struct part_list *list, struct client_part *part)
{
	part->next = NULL;
	if (list->first)
		list->last->next = part;
	else
		list->first = part;
	list->last = part;
}

static struct client_part *list_take(struct part_list *list)
{
	struct client_part *part = list->first;

	if (part)
		list->first = part->next;
	return part;
}

/* ---- chunks and kinds ---- */

static bool kind_is_request(uint8_t kind)
{
	return kind == HUB_PUSH || kind == HUB_PULL || kind == HUB_PUSHPULL || kind == HUB_SET || kind == HUB_SHARED ||
	       hub_kind_is_read(kind) || hub_kind_is_write(kind);
}

static bool kind_has_gradient(uint8_t kind)
{
	return kind != HUB_PULL && kind != HUB_SHARED && !hub_kind_is_read(kind);
}

static bool kind_has_weights(uint8_t kind)
{
	return kind == HUB_PULL || kind == HUB_PUSHPULL || hub_kind_is_read(kind);
}

static uint32_t chunk_count(const struct client_lane *lane)
{
	const uint32_t *first = lane->layout->lane_first;

	return first[lane->lane + 1] - first[lane->lane];
}

/* Number of the chunk in the layout. */
static uint32_t chunk_number(const struct client_lane *lane, const struct chunk_state *chunk)
{
	const uint32_t place = (uint32_t)(chunk - lane->chunks);

	assert(place < chunk_count(lane));
	return lane->layout->lane_chunks[lane->layout->lane_first[lane->lane] + place];
}

/* Of an element of the chunk in a message of its request. */
static uint32_t element_bytes(const struct client_lane *lane, const struct chunk_state *chunk)
{
	uint8_t kind = chunk->part->kind;

	if (hub_kind_is_read(kind) || hub_kind_is_write(kind))
		return sizeof(float);
	return (uint32_t)math_type_bytes(hub_layout_chunk_type(lane->layout, chunk_number(lane, chunk)));
}

static uint32_t chunk_bytes(const struct client_lane *lane, const struct chunk_state *chunk)
{
	return lane->layout->chunk[chunk_number(lane, chunk)].elements * element_bytes(lane, chunk);
}

/* Where the chunk begins in the memory of its tensor: bytes. */
static uint64_t chunk_offset(const struct client_lane *lane, const struct chunk_state *chunk)
{
	const struct layout_chunk *cut = &lane->layout->chunk[chunk_number(lane, chunk)];

	return (cut->at - lane->layout->place[cut->tensor].at) * element_bytes(lane, chunk);
}

static uint32_t part_chunks(const struct client_lane *lane, uint32_t tensor)
{
	return lane->tensor_first[tensor + 1] - lane->tensor_first[tensor];
}

/* The chunk that the first waiting part requests next; NULL: no part waits. */
static struct chunk_state *chunk_next(const struct client_lane *lane)
{
	const struct client_part *part = lane->waiting.first;

	if (!part)
		return NULL;
	assert(part->sent < part_chunks(lane, part->tensor));
	return &lane->chunks[lane->tensor_first[part->tensor] + part->sent];
}

/* ---- sending ---- */

static bool hyper_is_due(const struct client_lane *lane)
{
	if (lane->hyper_taken == lane->hyper_count)
		return false;
	const struct hyper *hyper = &lane->hypers[(lane->hyper_first + lane->hyper_taken) % lane->hyper_room];
	assert(hyper->after >= lane->requested);
	return hyper->after == lane->requested;
}

/* Of which requests of the kind take their bytes; NULL: they take none. A chunk may leave it below nothing. */
static int64_t *budget_of(const struct client_lane *lane, uint8_t kind)
{
	return kind == HUB_PUSH ? lane->push_budget : kind == HUB_PULL ? lane->pull_budget : NULL;
}

static bool has_budget(const struct client_lane *lane)
{
	const int64_t *budget = budget_of(lane, lane->waiting.first->kind);

	return !budget || *budget > 0;
}

static bool is_filled(const struct client_lane *lane, const struct chunk_state *chunk)
{
	return !lane->ready || lane->waiting.first->kind != HUB_PUSH ||
	       chunk_number(lane, chunk) < atomic_load_explicit(lane->ready, memory_order_acquire);
}

static bool can_send(const struct client_lane *lane)
{
	if (lane->failure)
		return false;
	const struct chunk_state *chunk = chunk_next(lane);
	return hyper_is_due(lane) || (chunk && !chunk->part && has_budget(lane) && is_filled(lane, chunk));
}

static void note_ready(struct client_lane *lane)
{
	lane->is_ready |= can_send(lane);
}

static void send_hyper(struct client_lane *lane, struct transport_message *out)
{
	struct hyper *hyper = &lane->hypers[(lane->hyper_first + lane->hyper_taken) % lane->hyper_room];

	lane->hyper_taken++;
	*out = (struct transport_message){
		.channel = HUB_HYPER,
		.index = lane->index_out++,
		.ack = (uint32_t)hyper->version,
		.call = hyper->group,
		.bytes = OPTIMIZER_BYTES,
		.data = hyper->bytes,
		.cookie = hyper,
	};
}

static uint32_t request_version(const struct client_part *part, const struct chunk_state *chunk)
{
	if (part->kind == HUB_SET)
		return 0;
	return hub_kind_is_write(part->kind) ? part->before : (uint32_t)chunk->version;
}

/* Of the answer to a request of this kind. */
static uint16_t answer_kind(uint8_t kind)
{
	if (hub_kind_is_read(kind))
		return HUB_ARRAY;
	return kind_has_weights(kind) ? HUB_WEIGHTS : HUB_DONE;
}

static void send_request(struct client_lane *lane, struct chunk_state *chunk, struct transport_message *out)
{
	struct client_part *part = lane->waiting.first;

	assert(!chunk->part && !chunk->is_unsent && !chunk->is_unanswered);
	*chunk = (struct chunk_state){
		.version = chunk->version, .part = part, .is_unsent = true, .is_unanswered = true};
	lane->unanswered++;
	*out = (struct transport_message){
		.channel = part->kind,
		.index = lane->index_out++,
		.ack = request_version(part, chunk),
		.call = chunk_number(lane, chunk),
		.cookie = chunk,
	};
	if (kind_has_gradient(part->kind)) {
		out->data = (const uint8_t *)part->gradient + chunk_offset(lane, chunk);
		out->bytes = chunk_bytes(lane, chunk);
	}
	int64_t *budget = budget_of(lane, part->kind);
	if (budget)
		*budget -= chunk_bytes(lane, chunk);
	part->sent++;
	if (part->sent == part_chunks(lane, part->tensor)) {
		list_take(&lane->waiting);
		lane->requested++;
	}
}

/* The request is sent and answered: the chunk is free, and perhaps the part is done. */
static void finish_request(struct client_lane *lane, struct chunk_state *chunk)
{
	struct client_part *part = chunk->part;

	assert(part && part->left > 0);
	if (chunk->is_unsent || chunk->is_unanswered)
		return;
	chunk->part = NULL;
	part->left--;
	if (part->left == 0) {
		assert(part->sent == part_chunks(lane, part->tensor));
		part->status = ESP_OK;
		list_add(&lane->done, part);
	}
	note_ready(lane);
}

/* ---- answers ---- */

/* The chunk whose request this may answer; NULL: none. */
static struct chunk_state *answered_chunk(const struct client_lane *lane, const struct transport_message *message)
{
	const struct hub_layout *layout = lane->layout;

	if (message->call >= layout->chunks || layout->chunk[message->call].lane != lane->lane)
		return NULL;
	struct chunk_state *chunk = &lane->chunks[layout->lane_at[message->call]];
	return chunk->part && chunk->is_unanswered ? chunk : NULL;
}

/* The version that an answer to a request of this kind brings; false: it cannot have this one. */
static bool answered_version(bool is_async, uint8_t kind, uint64_t known, uint32_t ack, uint64_t *out)
{
	const uint32_t newer = ack - (uint32_t)known;

	*out = known + newer;
	if (kind == HUB_PULL || hub_kind_is_read(kind) || (is_async && kind == HUB_PUSH))
		return newer <= INT32_MAX;
	if (kind == HUB_SET || hub_kind_is_write(kind))
		return ack == 0 && known == 0;
	return newer == 1;
}

static void finish_answer(struct client_lane *lane)
{
	struct chunk_state *chunk = lane->incoming.chunk;

	assert(chunk && chunk->is_unanswered && lane->incoming.left == 0);
	chunk->version = lane->incoming.version;
	if (chunk->version < chunk->part->version)
		chunk->part->version = chunk->version;
	if (chunk->part->arrived)
		chunk->part->arrived(chunk->part->context, chunk_number(lane, chunk));
	chunk->is_unanswered = false;
	lane->unanswered--;
	lane->incoming = (struct incoming){0};
	finish_request(lane, chunk);
}

/* ---- what a transport calls ---- */

static bool user_next(void *user, uint32_t peer, struct transport_message *out)
{
	struct client_lane *lane = user;

	assert(peer == HUB);
	if (!can_send(lane))
		return false;
	if (hyper_is_due(lane))
		send_hyper(lane, out);
	else
		send_request(lane, chunk_next(lane), out);
	return true;
}

static uint32_t user_ready(void *user)
{
	struct client_lane *lane = user;
	const bool is_ready = lane->is_ready;

	lane->is_ready = false;
	return is_ready ? HUB : NO_PEER;
}

static void user_sent(void *user, uint32_t peer, uint16_t channel, void *cookie)
{
	struct client_lane *lane = user;

	assert(peer == HUB);
	if (lane->failure)
		return;
	if (channel == HUB_HYPER) {
		assert(lane->hyper_taken > 0 && cookie == &lane->hypers[lane->hyper_first]);
		lane->hyper_first = (lane->hyper_first + 1) % lane->hyper_room;
		lane->hyper_count--;
		lane->hyper_taken--;
		return;
	}
	struct chunk_state *chunk = cookie;
	assert(chunk->is_unsent && chunk->part && chunk->part->kind == channel);
	chunk->is_unsent = false;
	finish_request(lane, chunk);
}

static uint32_t user_awaits(void *user)
{
	const struct client_lane *lane = user;

	return lane->unanswered > 0 && !lane->failure ? HUB : NO_PEER;
}

static enum esp_status user_begin(void *user, uint32_t peer, const struct transport_message *message)
{
	struct client_lane *lane = user;
	uint64_t version;

	assert(peer == HUB && !lane->incoming.chunk);
	if (lane->failure)
		return ESP_PENDING;
	if (message->index != lane->index_in)
		return ESP_ECORRUPT;
	struct chunk_state *chunk = answered_chunk(lane, message);
	if (!chunk)
		return ESP_ECORRUPT;
	const struct client_part *part = chunk->part;
	const bool has_weights = kind_has_weights(part->kind);
	if (message->channel != answer_kind(part->kind) ||
	    message->bytes != (has_weights ? chunk_bytes(lane, chunk) : 0) ||
	    !answered_version(lane->is_async, part->kind, chunk->version, message->ack, &version))
		return ESP_ECORRUPT;
	lane->index_in++;
	lane->incoming = (struct incoming){.chunk = chunk, .version = version, .left = message->bytes};
	if (has_weights)
		lane->incoming.at = (uint8_t *)part->weights + chunk_offset(lane, chunk);
	return ESP_OK;
}

/* After a failure the bytes are counted, but not stored. */
static struct transport_room user_room(void *user, uint32_t peer, uint16_t channel)
{
	const struct client_lane *lane = user;

	assert(peer == HUB && lane->incoming.left > 0);
	(void)channel;
	return (struct transport_room){lane->failure ? NULL : lane->incoming.at, lane->incoming.left};
}

static void user_arrived(void *user, uint32_t peer, uint16_t channel, uint32_t bytes)
{
	struct client_lane *lane = user;

	assert(peer == HUB && bytes <= lane->incoming.left);
	(void)channel;
	lane->incoming.at += bytes;
	lane->incoming.left -= bytes;
}

static void user_ended(void *user, uint32_t peer, uint16_t channel)
{
	struct client_lane *lane = user;

	assert(peer == HUB);
	(void)channel;
	if (lane->failure)
		lane->incoming = (struct incoming){0};
	else
		finish_answer(lane);
}

static enum esp_status user_take(void *user, uint32_t peer, const struct transport_message *message)
{
	struct client_lane *lane = user;
	enum esp_status status = user_begin(user, peer, message);

	if (status)
		return status;
	if (message->bytes > 0)
		memcpy(lane->incoming.at, message->data, message->bytes);
	lane->incoming.left = 0;
	finish_answer(lane);
	return ESP_OK;
}

/* A hub and its workers share no memory. */
static enum esp_status user_offer(void *user, uint32_t peer, const struct transport_message *message)
{
	(void)user, (void)peer, (void)message;
	return ESP_EUNSUPPORTED;
}

static uint32_t user_consumed(void *user, uint32_t peer, uint16_t channel)
{
	(void)user, (void)peer, (void)channel;
	return 0;
}

/* The protocol has no credits: an answer is the credit of its chunk. */
static enum esp_status user_credit(void *user, uint32_t peer, const struct transport_message *message)
{
	(void)user, (void)peer, (void)message;
	return ESP_ECORRUPT;
}

static void user_lost(void *user, uint32_t peer, enum esp_status why)
{
	assert(peer == HUB);
	client_lane_fail(user, why);
}

/* The transport lets go of all memory once it is told of a failure. */
static enum esp_status user_failed(void *user)
{
	struct client_lane *lane = user;
	struct client_part *part;

	while (lane->failure && (part = list_take(&lane->held)) != NULL)
		list_add(&lane->done, part);
	return lane->failure;
}

const struct transport_user client_lane_user = {
	.next = user_next,
	.ready = user_ready,
	.sent = user_sent,
	.awaits = user_awaits,
	.begin = user_begin,
	.room = user_room,
	.arrived = user_arrived,
	.ended = user_ended,
	.take = user_take,
	.offer = user_offer,
	.consumed = user_consumed,
	.credit = user_credit,
	.lost = user_lost,
	.failed = user_failed,
};

/* ---- the worker's side ---- */

/* The chunks of a tensor follow each other, in the layout and so on a lane. */
static void find_tensors(struct client_lane *lane)
{
	const struct hub_layout *layout = lane->layout;
	const uint32_t *numbers = layout->lane_chunks + layout->lane_first[lane->lane];
	uint32_t place = 0;

	for (uint32_t tensor = 0; tensor < layout->tensors; tensor++) {
		lane->tensor_first[tensor] = place;
		while (place < chunk_count(lane) && layout->chunk[numbers[place]].tensor == tensor)
			place++;
	}
	lane->tensor_first[layout->tensors] = place;
	assert(place == chunk_count(lane));
}

enum esp_status client_lane_open(const struct client_lane_config *config, struct client_lane **out, struct error *err)
{
	const struct hub_layout *layout = config->layout;
	struct client_lane *lane = calloc(1, sizeof(*lane));

	assert(layout && config->lane < layout->lanes);
	if (!lane)
		return error_set(err, ESP_ENOMEM, "no memory for lane %u of a hub's worker", config->lane);
	lane->layout = layout;
	lane->lane = config->lane;
	lane->is_async = config->is_async;
	lane->ready = config->ready;
	lane->push_budget = config->push_budget;
	lane->pull_budget = config->pull_budget;
	lane->hyper_room = HYPERS_LEAST + 2 * layout->groups;
	lane->chunks = calloc(chunk_count(lane) + UINT64_C(1), sizeof(*lane->chunks));
	lane->tensor_first = calloc(layout->tensors + UINT64_C(1), sizeof(*lane->tensor_first));
	lane->hypers = calloc(lane->hyper_room, sizeof(*lane->hypers));
	if (!lane->chunks || !lane->tensor_first || !lane->hypers) {
		client_lane_close(lane);
		return error_set(err, ESP_ENOMEM, "no memory for lane %u of a hub's worker", config->lane);
	}
	find_tensors(lane);
	*out = lane;
	return ESP_OK;
}

void client_lane_close(struct client_lane *lane)
{
	if (!lane)
		return;
	free(lane->chunks);
	free(lane->tensor_first);
	free(lane->hypers);
	free(lane);
}

void client_lane_start(struct client_lane *lane, struct client_part *part)
{
	assert(kind_is_request(part->kind) && part->tensor < lane->layout->tensors);
	part->sent = 0;
	part->version = UINT64_MAX;
	part->left = part_chunks(lane, part->tensor);
	part->status = lane->failure;
	if (lane->failure || part->left == 0) {
		list_add(&lane->done, part);
		return;
	}
	assert(!kind_has_gradient(part->kind) || part->gradient);
	assert(!kind_has_weights(part->kind) || part->weights);
	part->status = ESP_PENDING;
	lane->started++;
	list_add(&lane->waiting, part);
	note_ready(lane);
}

void client_lane_refill(struct client_lane *lane)
{
	note_ready(lane);
}

enum esp_status client_lane_hyper(struct client_lane *lane, uint16_t group, uint64_t version,
                                  const struct optimizer *optimizer)
{
	assert(group < lane->layout->groups);
	if (lane->failure)
		return lane->failure;
	if (lane->hyper_count == lane->hyper_room)
		return ESP_ELIMIT;
	struct hyper *hyper = &lane->hypers[(lane->hyper_first + lane->hyper_count) % lane->hyper_room];
	*hyper = (struct hyper){.version = version, .after = lane->started, .group = group};
	optimizer_encode(optimizer, hyper->bytes);
	lane->hyper_count++;
	note_ready(lane);
	return ESP_OK;
}

struct client_part *client_lane_take_done(struct client_lane *lane)
{
	struct client_part *part = list_take(&lane->done);

	if (part)
		part->next = NULL;
	return part;
}

/* The transport may still send from its memory, or receive into it. */
static void hold_part(struct client_lane *lane, struct client_part *part)
{
	part->left = 0;
	part->status = lane->failure;
	list_add(&lane->held, part);
}

void client_lane_fail(struct client_lane *lane, enum esp_status status)
{
	struct client_part *part;

	assert(status != ESP_OK && status != ESP_PENDING);
	if (lane->failure)
		return;
	lane->failure = status;
	while ((part = list_take(&lane->waiting)) != NULL)
		hold_part(lane, part);
	for (uint32_t place = 0; place < chunk_count(lane); place++) {
		part = lane->chunks[place].part;
		if (part && part->left > 0)
			hold_part(lane, part);
		lane->chunks[place].part = NULL;
	}
	lane->is_ready = false;
}

enum esp_status client_lane_failure(const struct client_lane *lane)
{
	return lane->failure;
}

uint64_t client_lane_version(const struct client_lane *lane, uint32_t tensor)
{
	uint64_t least = UINT64_MAX;

	assert(tensor < lane->layout->tensors);
	for (uint32_t place = lane->tensor_first[tensor]; place < lane->tensor_first[tensor + 1]; place++)
		if (lane->chunks[place].version < least)
			least = lane->chunks[place].version;
	return least == UINT64_MAX ? 0 : least;
}
