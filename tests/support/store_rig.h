/*
 * store_rig.h - a lane of a parameter hub (hub/store/store_lane.h) and workers that a test moves by hand.
 */
#ifndef TESTS_SUPPORT_STORE_RIG_H
#define TESTS_SUPPORT_STORE_RIG_H

#include "base/check.h"
#include "hub/store/store_lane.h"

#define WORKERS 3u
#define ELEMENTS 100u /* of tensor 0: two chunks of 64 and 36 */
#define CHUNKS 4u     /* of all tensors */

/* A lane, and counts of the messages of its workers. Tensor 0 has chunks 0 and 1, tensor 1 none, tensors 2 and 3 one each. */
struct rig {
	struct hub_layout layout;
	struct store_model model;
	struct store_lane *lane;
	uint32_t sent[STORE_WORKERS_MOST], got[STORE_WORKERS_MOST]; /* messages */
};

static const struct transport_user *const user = &store_lane_user;
static const struct optimizer plain_sgd __attribute__((unused)) = {.kind = OPTIMIZER_SGD, .lr = 0.5};

/* Lane 0 of so many. */
static inline void rig_open_of(struct rig *rig, uint32_t lanes, uint32_t workers, const struct optimizer *optimizer)
{
	const struct layout_tensor tensors[] = {
		{1, ELEMENTS, ESP_F32, 0}, {2, 0, ESP_F32, 0}, {3, 5, ESP_F32, 1}, {4, 7, ESP_F32, 0},
	};
	const struct optimizer optimizers[2] = {*optimizer, *optimizer};

	*rig = (struct rig){0};
	CHECK(hub_layout_make(tensors, 4, LAYOUT_CHUNK_LEAST, lanes, &rig->layout, NULL) == ESP_OK);
	CHECK(rig->layout.chunks == CHUNKS && rig->layout.chunk[1].elements == 36);
	rig->model.weights = calloc(rig->layout.elements, sizeof(float));
	rig->model.sums = calloc(rig->layout.elements, sizeof(float));
	for (uint32_t i = 0; i < optimizer_states(optimizer); i++)
		rig->model.states[i] = calloc(rig->layout.elements, sizeof(float));
	struct store_lane_config config = {.layout = &rig->layout, .model = &rig->model, .workers = workers,
	                                   .optimizers = optimizers};
	CHECK(store_lane_open(&config, &rig->lane, NULL) == ESP_OK);
}

static inline void rig_open(struct rig *rig, uint32_t workers, const struct optimizer *optimizer)
{
	rig_open_of(rig, 1, workers, optimizer);
}

static inline void rig_close(struct rig *rig)
{
	store_lane_close(rig->lane);
	free(rig->model.weights);
	free(rig->model.sums);
	for (uint32_t i = 0; i < OPTIMIZER_STATES; i++)
		free(rig->model.states[i]);
	hub_layout_fini(&rig->layout);
}

/* ---- requests ---- */

static inline enum esp_status begin(struct rig *rig, uint32_t worker, uint8_t kind, uint32_t chunk, uint32_t version,
                             uint32_t bytes)
{
	struct transport_message message = {.channel = kind, .index = rig->sent[worker]++, .call = chunk, .ack = version,
	                                    .bytes = bytes};

	return user->begin(rig->lane, worker, &message);
}

/* The rest of a message, in two pieces. */
static inline void finish(struct rig *rig, uint32_t worker, uint8_t kind, const void *data, uint32_t bytes)
{
	const uint8_t *from = data;

	for (uint32_t done = 0; done < bytes;) {
		struct transport_room room = user->room(rig->lane, worker, kind);
		uint32_t piece = done == 0 && bytes > 1 ? bytes / 2 : bytes - done;

		CHECK(room.at && room.bytes == bytes - done);
		memcpy(room.at, from + done, piece);
		user->arrived(rig->lane, worker, kind, piece);
		done += piece;
	}
	user->ended(rig->lane, worker, kind);
}

static inline void send(struct rig *rig, uint32_t worker, uint8_t kind, uint32_t chunk, uint32_t version, float value)
{
	float data[64];
	uint32_t elements = rig->layout.chunk[chunk].elements, bytes = kind == HUB_PULL ? 0 : elements * 4;

	for (uint32_t i = 0; i < elements; i++)
		data[i] = value;
	CHECK(begin(rig, worker, kind, chunk, version, bytes) == ESP_OK);
	finish(rig, worker, kind, data, bytes);
}

static inline void hyper(struct rig *rig, uint32_t worker, uint32_t group, uint32_t version, const struct optimizer *optimizer)
{
	uint8_t bytes[OPTIMIZER_BYTES];

	optimizer_encode(optimizer, bytes);
	CHECK(begin(rig, worker, HUB_HYPER, group, version, OPTIMIZER_BYTES) == ESP_OK);
	finish(rig, worker, HUB_HYPER, bytes, OPTIMIZER_BYTES);
}

static inline void set_all(struct rig *rig, float value)
{
	struct transport_message message;

	for (uint32_t chunk = 0; chunk < CHUNKS; chunk++) {
		send(rig, 0, HUB_SET, chunk, 0, value);
		CHECK(user->next(rig->lane, 0, &message) && message.channel == HUB_DONE && message.call == chunk);
		rig->got[0]++;
	}
	while (user->ready(rig->lane) != UINT32_MAX) {
	}
}

/* ---- answers ---- */

static inline struct transport_message answer(struct rig *rig, uint32_t worker, uint8_t kind, uint32_t chunk, uint32_t version)
{
	struct transport_message message;

	CHECK(user->next(rig->lane, worker, &message));
	CHECK_U64(message.channel, kind);
	CHECK_U64(message.index, rig->got[worker]++);
	CHECK_U64(message.call, chunk);
	CHECK_U64(message.ack, version);
	CHECK_U64(message.bytes, kind == HUB_DONE ? 0 : rig->layout.chunk[chunk].elements * 4);
	CHECK(!message.is_credit);
	return message;
}

/* Weights that are all the same. */
static inline void weights(struct rig *rig, uint32_t worker, uint32_t chunk, uint32_t version, float value)
{
	struct transport_message message = answer(rig, worker, HUB_WEIGHTS, chunk, version);
	const float *data = message.data;

	for (uint32_t i = 0; i < rig->layout.chunk[chunk].elements; i++)
		CHECK_MSG(data[i] == value, "weight %u is %g, expected %g", i, (double)data[i], (double)value);
	user->sent(rig->lane, worker, HUB_WEIGHTS, message.cookie);
}

static inline bool has_answer(struct rig *rig, uint32_t worker)
{
	struct transport_message message;

	return user->next(rig->lane, worker, &message);
}

static inline void check_calm(struct rig *rig)
{
	struct store_trouble trouble;

	CHECK(!store_lane_take_trouble(rig->lane, &trouble));
	CHECK(user->failed(rig->lane) == ESP_OK);
}

/* One trouble and no other, whose sentence has these words. */
static inline void check_trouble(struct rig *rig, enum esp_status status, uint32_t worker, const char *words)
{
	struct store_trouble trouble = {0};

	CHECK(store_lane_take_trouble(rig->lane, &trouble));
	CHECK_MSG(trouble.status == status && trouble.worker == worker, "status %d, worker %u: %s", trouble.status,
	          trouble.worker, trouble.why.text);
	CHECK_MSG(strstr(trouble.why.text, words), "\"%s\" does not say \"%s\"", trouble.why.text, words);
	CHECK(words[0] != '\0' || trouble.why.text[0] == '\0');
	CHECK(!store_lane_take_trouble(rig->lane, &trouble));
}

#endif
