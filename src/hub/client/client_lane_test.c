/*
 * Each rule of a worker's lane by hand; client_lane_seeds_test.c has the random runs.
 */
#include "base/check.h"
#include "hub/client/client_lane.h"

#define CHUNK_BYTES 256u
#define CHUNK_ELEMENTS (CHUNK_BYTES / 4)
#define USER (&client_lane_user)

/* ---- a lane by hand ---- */

struct fixture {
	struct hub_layout layout;
	struct client_lane *lane;
	uint32_t index; /* of the hub's next message */
};

/* Tensor 0 has 3 chunks, the last of 2 elements; tensor 1 has one; tensor 2 has none. */
static void open_fixture(struct fixture *f, uint32_t lanes)
{
	const struct layout_tensor tensors[] = {
		{.name = 1, .elements = 2 * CHUNK_ELEMENTS + 2, .group = 0},
		{.name = 2, .elements = 5, .group = 1},
		{.name = 3, .elements = 0, .group = 1},
	};

	*f = (struct fixture){0};
	CHECK(hub_layout_make(tensors, 3, CHUNK_BYTES, lanes, &f->layout, NULL) == ESP_OK);
	const struct client_lane_config config = {.layout = &f->layout, .lane = 0};
	CHECK(client_lane_open(&config, &f->lane, NULL) == ESP_OK);
}

static void close_fixture(struct fixture *f)
{
	client_lane_close(f->lane);
	hub_layout_fini(&f->layout);
}

static struct transport_message next(struct fixture *f)
{
	struct transport_message message;

	CHECK(USER->next(f->lane, 0, &message));
	return message;
}

static bool is_idle(struct fixture *f)
{
	struct transport_message message;
	return !USER->next(f->lane, 0, &message);
}

static void sent(struct fixture *f, const struct transport_message *message)
{
	USER->sent(f->lane, 0, message->channel, message->cookie);
}

/* An answer that the lane takes; data may be NULL where bytes is 0. */
static struct transport_message answer_of(struct fixture *f, uint16_t kind, uint32_t chunk, uint32_t ack,
                                          uint32_t bytes)
{
	return (struct transport_message){.channel = kind, .index = f->index, .ack = ack, .call = chunk, .bytes = bytes};
}

static void answer(struct fixture *f, uint16_t kind, uint32_t chunk, uint32_t ack, const void *data, uint32_t bytes)
{
	struct transport_message message = answer_of(f, kind, chunk, ack, bytes);

	message.data = data;
	CHECK(USER->take(f->lane, 0, &message) == ESP_OK);
	f->index++;
}

static void check_done(struct fixture *f, struct client_part *part, enum esp_status status)
{
	CHECK(client_lane_take_done(f->lane) == part);
	CHECK_U64(part->status, status);
}

static void check_none_done(struct fixture *f)
{
	CHECK(client_lane_take_done(f->lane) == NULL);
}

static void check_request(const struct transport_message *message, uint16_t kind, uint32_t index, uint32_t chunk,
                          uint32_t ack)
{
	CHECK_U64(message->channel, kind);
	CHECK_U64(message->index, index);
	CHECK_U64(message->call, chunk);
	CHECK_U64(message->ack, ack);
}

/* ---- requests ---- */

/* Chunks ascend, parts follow each other; data and cookies are those of the chunk. */
static void test_order(void)
{
	struct fixture f;
	float gradient[130], weights[5] = {0};
	struct client_part push = {.kind = HUB_PUSH, .tensor = 0, .gradient = gradient};
	struct client_part pull = {.kind = HUB_PULL, .tensor = 1, .weights = weights};
	struct transport_message message[4];

	open_fixture(&f, 1);
	CHECK_U64(USER->ready(f.lane), UINT32_MAX);
	client_lane_start(f.lane, &push);
	client_lane_start(f.lane, &pull);
	CHECK_U64(USER->ready(f.lane), 0);
	CHECK_U64(USER->ready(f.lane), UINT32_MAX);
	CHECK_U64(USER->awaits(f.lane), UINT32_MAX);
	for (uint32_t i = 0; i < 4; i++) {
		message[i] = next(&f);
		check_request(&message[i], i < 3 ? HUB_PUSH : HUB_PULL, i, i, 0);
		CHECK(message[i].data == (i < 3 ? gradient + i * CHUNK_ELEMENTS : NULL));
		CHECK_U64(message[i].bytes, i < 2 ? CHUNK_BYTES : i == 2 ? 8 : 0);
	}
	CHECK(is_idle(&f));
	CHECK_U64(USER->awaits(f.lane), 0);
	for (uint32_t i = 0; i < 4; i++)
		sent(&f, &message[i]);
	answer(&f, HUB_WEIGHTS, 3, 7, (const float[]){1, 2, 3, 4, 5}, 20);
	check_done(&f, &pull, ESP_OK);
	CHECK(weights[0] == 1 && weights[4] == 5);
	CHECK_U64(client_lane_version(f.lane, 1), 7);
	answer(&f, HUB_DONE, 2, 1, NULL, 0);
	answer(&f, HUB_DONE, 0, 1, NULL, 0);
	check_none_done(&f);
	CHECK_U64(client_lane_version(f.lane, 0), 0);
	answer(&f, HUB_DONE, 1, 1, NULL, 0);
	check_done(&f, &push, ESP_OK);
	CHECK_U64(client_lane_version(f.lane, 0), 1);
	CHECK_U64(USER->awaits(f.lane), UINT32_MAX);
	close_fixture(&f);
}

/* A tensor without chunks on this lane is done at once, without a message. */
static void test_nothing_to_do(void)
{
	struct fixture f;
	struct client_part part = {.kind = HUB_PUSHPULL, .tensor = 2};

	open_fixture(&f, 1);
	client_lane_start(f.lane, &part);
	check_done(&f, &part, ESP_OK);
	CHECK(is_idle(&f));
	CHECK_U64(client_lane_version(f.lane, 2), 0);
	close_fixture(&f);
}

/* A lane sends its own chunks only; all lanes together send each once. */
static void test_lanes(void)
{
	struct fixture f;
	struct transport_message message;
	float gradient[130];
	uint32_t seen = 0;

	open_fixture(&f, 2);
	for (uint32_t number = 0; number < 2; number++) {
		const struct client_lane_config config = {.layout = &f.layout, .lane = number};
		struct client_part part = {.kind = HUB_PUSH, .tensor = 0, .gradient = gradient};
		struct client_lane *lane;
		CHECK(client_lane_open(&config, &lane, NULL) == ESP_OK);
		client_lane_start(lane, &part);
		while (USER->next(lane, 0, &message)) {
			CHECK_U64(f.layout.chunk[message.call].lane, number);
			CHECK(message.data == gradient + message.call * CHUNK_ELEMENTS);
			CHECK(!(seen & 1u << message.call));
			seen |= 1u << message.call;
		}
		client_lane_close(lane);
	}
	CHECK_U64(seen, 7);
	close_fixture(&f);
}

/* A chunk whose request is unanswered holds up the next request for it, and the requests behind that. */
static void test_hold_up(void)
{
	struct fixture f;
	float gradient[5], weights[5];
	struct client_part first = {.kind = HUB_PUSH, .tensor = 1, .gradient = gradient};
	struct client_part second = {.kind = HUB_PUSHPULL, .tensor = 1, .gradient = gradient, .weights = weights};
	struct client_part third = {.kind = HUB_PULL, .tensor = 0, .weights = (float[130]){0}};

	open_fixture(&f, 1);
	client_lane_start(f.lane, &first);
	client_lane_start(f.lane, &second);
	client_lane_start(f.lane, &third);
	struct transport_message message = next(&f);
	check_request(&message, HUB_PUSH, 0, 3, 0);
	CHECK(is_idle(&f));
	CHECK_U64(USER->ready(f.lane), 0);
	sent(&f, &message);
	CHECK(is_idle(&f));
	CHECK_U64(USER->ready(f.lane), UINT32_MAX);
	answer(&f, HUB_DONE, 3, 1, NULL, 0);
	check_done(&f, &first, ESP_OK);
	CHECK_U64(USER->ready(f.lane), 0);
	message = next(&f);
	check_request(&message, HUB_PUSHPULL, 1, 3, 1);
	message = next(&f);
	check_request(&message, HUB_PULL, 2, 0, 0);
	close_fixture(&f);
}

/* An answer may come before the transport says that the request is sent: the part, and the chunk, wait for both. */
static void test_answer_before_sent(void)
{
	struct fixture f;
	float gradient[5] = {0};
	struct client_part first = {.kind = HUB_PUSHPULL, .tensor = 1, .gradient = gradient, .weights = gradient};
	struct client_part second = first;

	open_fixture(&f, 1);
	client_lane_start(f.lane, &first);
	client_lane_start(f.lane, &second);
	struct transport_message message = next(&f);
	answer(&f, HUB_WEIGHTS, 3, 1, (const float[]){9, 8, 7, 6, 5}, 20);
	check_none_done(&f);
	CHECK(is_idle(&f));
	struct transport_message again = answer_of(&f, HUB_WEIGHTS, 3, 2, 20);
	CHECK(USER->begin(f.lane, 0, &again) == ESP_ECORRUPT);
	sent(&f, &message);
	check_done(&f, &first, ESP_OK);
	CHECK(gradient[0] == 9 && gradient[4] == 5);
	message = next(&f);
	check_request(&message, HUB_PUSHPULL, 1, 3, 1);
	close_fixture(&f);
}

/* Weights come in pieces, straight to their place. */
static void test_pieces(void)
{
	struct fixture f;
	float weights[130] = {0};
	struct client_part part = {.kind = HUB_PULL, .tensor = 0, .weights = weights};
	struct transport_message message;

	open_fixture(&f, 1);
	client_lane_start(f.lane, &part);
	for (uint32_t i = 0; i < 3; i++) {
		message = next(&f);
		sent(&f, &message);
	}
	message = answer_of(&f, HUB_WEIGHTS, 1, 0, CHUNK_BYTES);
	CHECK(USER->begin(f.lane, 0, &message) == ESP_OK);
	struct transport_room room = USER->room(f.lane, 0, HUB_WEIGHTS);
	CHECK(room.at == weights + CHUNK_ELEMENTS && room.bytes == CHUNK_BYTES);
	USER->arrived(f.lane, 0, HUB_WEIGHTS, 100);
	room = USER->room(f.lane, 0, HUB_WEIGHTS);
	CHECK(room.at == weights + CHUNK_ELEMENTS + 25 && room.bytes == CHUNK_BYTES - 100);
	USER->arrived(f.lane, 0, HUB_WEIGHTS, CHUNK_BYTES - 100);
	USER->ended(f.lane, 0, HUB_WEIGHTS);
	f.index++;
	message = answer_of(&f, HUB_WEIGHTS, 1, 0, CHUNK_BYTES); /* a second answer */
	CHECK(USER->begin(f.lane, 0, &message) == ESP_ECORRUPT);
	close_fixture(&f);
}

/* ---- versions and bad answers ---- */

/* The lane has one unanswered request of this kind for chunk 3 (20 bytes), and knows this version of it. */
static void open_waiting(struct fixture *f, uint8_t kind, uint32_t known, struct client_part *part, float *memory)
{
	open_fixture(f, 1);
	if (known > 0) {
		*part = (struct client_part){.kind = HUB_PULL, .tensor = 1, .weights = memory};
		client_lane_start(f->lane, part);
		struct transport_message message = next(f);
		sent(f, &message);
		answer(f, HUB_WEIGHTS, 3, known, memory, 20);
		check_done(f, part, ESP_OK);
	}
	*part = (struct client_part){.kind = kind, .tensor = 1, .gradient = memory, .weights = memory};
	client_lane_start(f->lane, part);
	struct transport_message message = next(f);
	check_request(&message, kind, known > 0, 3, known);
	sent(f, &message);
}

static void check_answer(uint8_t request, uint32_t known, struct transport_message bad, enum esp_status expected)
{
	struct fixture f;
	struct client_part part;
	float memory[5] = {0};

	open_waiting(&f, request, known, &part, memory);
	bad.index += f.index;
	bad.data = memory;
	CHECK_MSG(USER->begin(f.lane, 0, &bad) == expected,
	          "request %u with version %u, answer %u of chunk %u, version %u, %u bytes", request, known, bad.channel,
	          bad.call, bad.ack, bad.bytes);
	close_fixture(&f);
}

#define ANSWER(kind, version, size) \
	(struct transport_message){.channel = (kind), .call = 3, .ack = (version), .bytes = (size)}

static void test_answers(void)
{
	struct transport_message message;

	for (uint32_t known = 0; known <= 5; known += 5) {
		check_answer(HUB_PUSH, known, ANSWER(HUB_DONE, known + 1, 0), ESP_OK);
		check_answer(HUB_PUSH, known, ANSWER(HUB_DONE, known, 0), ESP_ECORRUPT);
		check_answer(HUB_PUSH, known, ANSWER(HUB_DONE, known + 2, 0), ESP_ECORRUPT);
		check_answer(HUB_PUSH, known, ANSWER(HUB_WEIGHTS, known + 1, 20), ESP_ECORRUPT);
		check_answer(HUB_PUSH, known, ANSWER(HUB_DONE, known + 1, 4), ESP_ECORRUPT);
		check_answer(HUB_PUSHPULL, known, ANSWER(HUB_WEIGHTS, known + 1, 20), ESP_OK);
		check_answer(HUB_PUSHPULL, known, ANSWER(HUB_WEIGHTS, known, 20), ESP_ECORRUPT);
		check_answer(HUB_PUSHPULL, known, ANSWER(HUB_DONE, known + 1, 0), ESP_ECORRUPT);
		check_answer(HUB_PUSHPULL, known, ANSWER(HUB_WEIGHTS, known + 1, 16), ESP_ECORRUPT);
		check_answer(HUB_PULL, known, ANSWER(HUB_WEIGHTS, known, 20), ESP_OK);
		check_answer(HUB_PULL, known, ANSWER(HUB_WEIGHTS, known + 1000, 20), ESP_OK);
		check_answer(HUB_PULL, known, ANSWER(HUB_WEIGHTS, known - 1, 20), ESP_ECORRUPT);
		check_answer(HUB_PULL, known, ANSWER(HUB_WEIGHTS, known, 24), ESP_ECORRUPT);
	}
	check_answer(HUB_SET, 0, ANSWER(HUB_DONE, 0, 0), ESP_OK);
	check_answer(HUB_SET, 0, ANSWER(HUB_DONE, 1, 0), ESP_ECORRUPT);
	check_answer(HUB_SET, 0, ANSWER(HUB_WEIGHTS, 0, 20), ESP_ECORRUPT);
	check_answer(HUB_PUSH, UINT32_MAX / 2, ANSWER(HUB_DONE, UINT32_MAX / 2 + 1, 0), ESP_OK);
	for (uint16_t kind = 0; kind < 300; kind++)
		check_answer(HUB_PUSH, 0, ANSWER(kind, 1, 0), kind == HUB_DONE ? ESP_OK : ESP_ECORRUPT);
	message = ANSWER(HUB_DONE, 1, 0);
	message.call = 0; /* not requested */
	check_answer(HUB_PUSH, 0, message, ESP_ECORRUPT);
	message.call = 4; /* no chunk */
	check_answer(HUB_PUSH, 0, message, ESP_ECORRUPT);
	message.call = UINT32_MAX;
	check_answer(HUB_PUSH, 0, message, ESP_ECORRUPT);
	message = ANSWER(HUB_DONE, 1, 0);
	message.index = 1; /* one is missing */
	check_answer(HUB_PUSH, 0, message, ESP_ECORRUPT);
}

/* 2^32 rounds are possible: known versions count on where the wire's start again. */
static void test_version_wraps(void)
{
	struct fixture f;
	float memory[5] = {0};
	const uint32_t acks[] = {0x7fffffffu, 0xfffffffeu, 3};
	const uint64_t versions[] = {0x7fffffffu, 0xfffffffeu, UINT64_C(0x100000003)};

	open_fixture(&f, 1);
	for (uint32_t i = 0; i < 3; i++) {
		struct client_part part = {.kind = HUB_PULL, .tensor = 1, .weights = memory};
		client_lane_start(f.lane, &part);
		struct transport_message message = next(&f);
		sent(&f, &message);
		answer(&f, HUB_WEIGHTS, 3, acks[i], memory, 20);
		check_done(&f, &part, ESP_OK);
		CHECK_U64(client_lane_version(f.lane, 1), versions[i]);
	}
	close_fixture(&f);
}

/* A request of another lane's chunk cannot be answered here; credits and offers do not exist. */
static void test_strange_messages(void)
{
	struct fixture f;
	float gradient[130];
	struct client_part part = {.kind = HUB_PUSH, .tensor = 0, .gradient = gradient};
	struct transport_message message = {.is_credit = true};

	open_fixture(&f, 2);
	client_lane_start(f.lane, &part);
	while (!is_idle(&f))
		continue;
	CHECK(USER->credit(f.lane, 0, &message) == ESP_ECORRUPT);
	CHECK(USER->offer(f.lane, 0, &message) != ESP_OK && USER->consumed(f.lane, 0, HUB_DONE) == 0);
	for (uint32_t chunk = 0; chunk < f.layout.chunks; chunk++) {
		message = answer_of(&f, HUB_DONE, chunk, 1, 0);
		if (f.layout.chunk[chunk].lane == 1)
			CHECK(USER->begin(f.lane, 0, &message) == ESP_ECORRUPT);
	}
	close_fixture(&f);
}

/* ---- hyper-parameters ---- */

static void test_hyper(void)
{
	struct fixture f;
	float gradient[130];
	struct client_part first = {.kind = HUB_PUSH, .tensor = 1, .gradient = gradient}, second = first;
	const struct optimizer sgd = {.kind = OPTIMIZER_SGD, .lr = 0.25}, avg = {.kind = OPTIMIZER_AVG};
	struct optimizer got;

	open_fixture(&f, 1);
	CHECK(client_lane_hyper(f.lane, 0, 0, &avg) == ESP_OK);
	client_lane_start(f.lane, &first);
	CHECK(client_lane_hyper(f.lane, 1, 5, &sgd) == ESP_OK);
	client_lane_start(f.lane, &second);
	CHECK_U64(USER->ready(f.lane), 0);
	struct transport_message message[3] = {next(&f), next(&f), next(&f)};
	check_request(&message[0], HUB_HYPER, 0, 0, 0);
	check_request(&message[1], HUB_PUSH, 1, 3, 0);
	check_request(&message[2], HUB_HYPER, 2, 1, 5);
	CHECK_U64(message[2].bytes, OPTIMIZER_BYTES);
	CHECK(optimizer_decode(message[2].data, &got) && optimizer_equal(&got, &sgd));
	CHECK(is_idle(&f)); /* the chunk is not answered */
	for (uint32_t i = 0; i < 3; i++)
		sent(&f, &message[i]);
	answer(&f, HUB_DONE, 3, 1, NULL, 0);
	check_done(&f, &first, ESP_OK);
	message[0] = next(&f);
	check_request(&message[0], HUB_PUSH, 3, 3, 1);
	close_fixture(&f);
}

/* The queue is bounded, and a place is free again once a message is sent. */
static void test_hyper_limit(void)
{
	struct fixture f;
	const struct optimizer avg = {.kind = OPTIMIZER_AVG};
	uint32_t room = 0;

	open_fixture(&f, 1);
	while (client_lane_hyper(f.lane, 0, room, &avg) == ESP_OK)
		room++;
	CHECK_MSG(room >= 16 && room < 1000, "%u", room);
	for (uint32_t i = 0; i < 3 * room; i++) {
		struct transport_message message = next(&f);
		check_request(&message, HUB_HYPER, i, 0, i);
		CHECK(client_lane_hyper(f.lane, 0, 0, &avg) == ESP_ELIMIT);
		sent(&f, &message);
		CHECK(client_lane_hyper(f.lane, 0, room + i, &avg) == ESP_OK);
	}
	close_fixture(&f);
}

/* ---- failure ---- */

/* Parts end with the first status: those under way once the transport has asked, later ones at once. */
static void test_failure(void)
{
	struct fixture f;
	float gradient[130], weights[130];
	struct client_part done = {.kind = HUB_PUSH, .tensor = 1, .gradient = gradient};
	struct client_part first = {.kind = HUB_PUSHPULL, .tensor = 0, .gradient = gradient, .weights = weights};
	struct client_part second = {.kind = HUB_PULL, .tensor = 0, .weights = weights}, late = second;
	const struct optimizer avg = {.kind = OPTIMIZER_AVG};

	open_fixture(&f, 1);
	CHECK(USER->failed(f.lane) == ESP_OK);
	client_lane_start(f.lane, &done);
	struct transport_message message = next(&f);
	sent(&f, &message);
	answer(&f, HUB_DONE, 3, 1, NULL, 0);
	client_lane_start(f.lane, &first);
	client_lane_start(f.lane, &second);
	message = next(&f);
	sent(&f, &message);
	struct transport_message under_way = answer_of(&f, HUB_WEIGHTS, 0, 1, CHUNK_BYTES);
	CHECK(USER->begin(f.lane, 0, &under_way) == ESP_OK);
	message = next(&f);
	USER->lost(f.lane, 0, ESP_ELINK);
	client_lane_fail(f.lane, ESP_EABORTED);
	CHECK(client_lane_failure(f.lane) == ESP_ELINK);
	CHECK_U64(USER->ready(f.lane), UINT32_MAX);
	CHECK_U64(USER->awaits(f.lane), UINT32_MAX);
	CHECK(is_idle(&f));
	CHECK(USER->room(f.lane, 0, HUB_WEIGHTS).at == NULL);
	USER->arrived(f.lane, 0, HUB_WEIGHTS, CHUNK_BYTES);
	USER->ended(f.lane, 0, HUB_WEIGHTS);
	under_way = answer_of(&f, HUB_WEIGHTS, 1, 1, CHUNK_BYTES);
	CHECK(USER->begin(f.lane, 0, &under_way) == ESP_PENDING);
	CHECK(client_lane_hyper(f.lane, 0, 0, &avg) == ESP_ELINK);
	check_done(&f, &done, ESP_OK);
	client_lane_start(f.lane, &late);
	check_done(&f, &late, ESP_ELINK);
	check_none_done(&f);
	sent(&f, &message);
	CHECK(USER->failed(f.lane) == ESP_ELINK);
	check_done(&f, &first, ESP_ELINK);
	check_done(&f, &second, ESP_ELINK);
	check_none_done(&f);
	CHECK(USER->failed(f.lane) == ESP_ELINK);
	check_none_done(&f);
	close_fixture(&f);
}

int main(void)
{
	test_order();
	test_nothing_to_do();
	test_lanes();
	test_hold_up();
	test_answer_before_sent();
	test_pieces();
	test_answers();
	test_version_wraps();
	test_strange_messages();
	test_hyper();
	test_hyper_limit();
	test_failure();
	return 0;
}
