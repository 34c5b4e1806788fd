#include "wire/hub_msg.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/rng.h"
#include "espalier/types.h"
#include "wire/bytes.h"
#include "wire/crc32c.h"

#define TENSORS 5u

static void draw_text(struct rng *rng, char *text, size_t room)
{
	size_t length = (size_t)rng_below(rng, room);

	memset(text, 0, room);
	for (size_t i = 0; i < length; i++)
		text[i] = (char)(' ' + rng_below(rng, 0x5f));
}

static void draw_bytes(struct rng *rng, uint8_t *out, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		out[i] = (uint8_t)rng_next(rng);
}

static void draw_tensors(struct rng *rng, struct hub_msg_tensors *out, uint8_t *rows)
{
	out->count = (uint32_t)rng_below(rng, TENSORS + 1);
	out->first = (uint32_t)rng_below(rng, 1000);
	out->total = out->first + out->count + (uint32_t)rng_below(rng, 3);
	for (uint32_t i = 0; i < out->count; i++) {
		struct hub_msg_tensor tensor = {
			.name = rng_next(rng), .elements = rng_next(rng), .group = (uint16_t)rng_next(rng)};

		tensor.type = (uint8_t)rng_below(rng, ESP_TYPE_COUNT);
		hub_msg_tensor_put(rows + (size_t)i * HUB_MSG_TENSOR_BYTES, &tensor);
	}
	out->rows = rows;
}

/* Every field of the type has a random value that it may have. */
static void draw(struct rng *rng, uint8_t type, struct hub_msg *out, uint8_t *rows)
{
	memset(out, 0, sizeof(*out));
	out->type = type;
	switch ((enum hub_msg_type)type) {
	case HUB_MSG_CREATE:
		draw_text(rng, out->create.name, HUB_JOB_NAME);
		out->create.workers = (uint32_t)rng_next(rng);
		out->create.chunk_bytes = (uint32_t)rng_next(rng);
		out->create.weight = (uint32_t)rng_next(rng);
		out->create.replaces = rng_chance(rng, 1, 2);
		out->create.delay_bound = (uint16_t)rng_next(rng);
		out->create.job = rng_next(rng);
		out->create.hubs = (uint16_t)(rng_below(rng, UINT16_MAX) + 1);
		out->create.own = (uint16_t)rng_below(rng, out->create.hubs);
		draw_bytes(rng, out->create.optimizer, HUB_OPTIMIZER_BYTES);
		break;
	case HUB_MSG_TICKET:
		out->ticket.job = rng_next(rng);
		draw_bytes(rng, out->ticket.key, HUB_KEY_BYTES);
		break;
	case HUB_MSG_REMOVE:
		draw_text(rng, out->remove.name, HUB_JOB_NAME);
		break;
	case HUB_MSG_WHY:
		out->why.status = -1 - (int32_t)rng_below(rng, 41);
		out->why.worker = (uint32_t)rng_next(rng);
		draw_text(rng, out->why.text, HUB_WHY_TEXT);
		break;
	case HUB_MSG_JOIN:
		out->join.worker = (uint32_t)rng_next(rng);
		out->join.workers = (uint32_t)rng_next(rng);
		out->join.pid = (uint32_t)rng_next(rng);
		out->join.memory = rng_next(rng);
		out->join.meeting = rng_next(rng);
		draw_text(rng, out->join.host, HUB_HOST_NAME);
		break;
	case HUB_MSG_WELCOME:
		out->welcome.session = rng_next(rng);
		out->welcome.lanes = (uint32_t)rng_next(rng);
		out->welcome.chunk_bytes = (uint32_t)rng_next(rng);
		out->welcome.delay_bound = (uint32_t)rng_next(rng);
		out->welcome.hubs = (uint16_t)(rng_below(rng, UINT16_MAX) + 1);
		out->welcome.own = (uint16_t)rng_below(rng, out->welcome.hubs);
		draw_bytes(rng, out->welcome.optimizer, HUB_OPTIMIZER_BYTES);
		break;
	case HUB_MSG_TENSORS:
		draw_tensors(rng, &out->tensors, rows);
		break;
	case HUB_MSG_READY:
		out->ready = (struct hub_msg_ready){rng_next(rng), rng_next(rng), rng_next(rng), (uint8_t)rng_below(rng, 2)};
		break;
	case HUB_MSG_ASK:
		out->ask = (uint32_t)rng_next(rng);
		break;
	case HUB_MSG_MISSING:
		out->missing.tensor = (uint32_t)rng_next(rng);
		out->missing.workers = rng_next(rng);
		draw_text(rng, out->missing.text, HUB_WHY_TEXT);
		break;
	case HUB_MSG_OFFER:
		out->offer = (struct hub_msg_offer){rng_next(rng), rng_next(rng), rng_next(rng), rng_next(rng), rng_next(rng),
		                                    rng_next(rng), rng_next(rng), (uint32_t)rng_next(rng)};
		break;
	case HUB_MSG_GRANT:
		out->grant = rng_next(rng);
		break;
	case HUB_MSG_SPOIL:
		out->spoil = rng_next(rng);
		break;
	case HUB_MSG_RESULT:
		out->result = (struct hub_msg_result){.number = rng_next(rng), .version = rng_next(rng), .delay = rng_next(rng),
		                                      .took_ns = rng_next(rng), .why = (uint8_t)rng_next(rng)};
		break;
	case HUB_MSG_SHARE:
		out->share = (uint32_t)rng_next(rng);
		break;
	case HUB_MSG_OK:
	case HUB_MSG_LEAVE:
	case HUB_MSG_PING:
	case HUB_MSG_PONG:
		break;
	}
}

/* A message decodes to what was encoded; a part of it is too short, bytes behind it belong to the next message. */
static void round_trips(struct rng *rng)
{
	static uint8_t bytes[HUB_MSG_MOST], again[HUB_MSG_MOST], rows[TENSORS * HUB_MSG_TENSOR_BYTES];

	for (unsigned i = 0; i < 7000; i++) {
		struct hub_msg msg, back;
		size_t used = 0;

		draw(rng, (uint8_t)(1 + i % (HUB_MSG_TYPES - 1)), &msg, rows);
		size_t n = hub_msg_encode(&msg, bytes);
		CHECK(hub_msg_decode(bytes, rng_below(rng, n), &back, &used) == HUB_MSG_SHORT);
		CHECK(hub_msg_decode(bytes, n + 1, &back, &used) == HUB_MSG_WHOLE && used == n && back.type == msg.type);
		CHECK(hub_msg_encode(&back, again) == n && memcmp(bytes, again, n) == 0);
		if (msg.type == HUB_MSG_TENSORS)
			for (uint32_t k = 0; k < msg.tensors.count; k++)
				CHECK_U64(hub_msg_tensor_at(&back.tensors, k).elements, hub_msg_tensor_at(&msg.tensors, k).elements);
		if (msg.type == HUB_MSG_JOIN)
			CHECK(memcmp(&back.join, &msg.join, sizeof(msg.join)) == 0);
		if (msg.type == HUB_MSG_READY)
			CHECK(back.ready.digest == msg.ready.digest && back.ready.set == msg.ready.set &&
			      back.ready.meeting == msg.ready.meeting && back.ready.reads == msg.ready.reads);
		if (msg.type == HUB_MSG_WHY)
			CHECK(memcmp(&back.why, &msg.why, sizeof(msg.why)) == 0);
		if (msg.type == HUB_MSG_OFFER)
			CHECK(back.offer.number == msg.offer.number && back.offer.members == msg.offer.members &&
			      back.offer.aggregator == msg.offer.aggregator);
	}
}

/* A message of which one bit was turned over is never taken. */
static void flipped_bits(struct rng *rng)
{
	static uint8_t bytes[HUB_MSG_MOST], rows[TENSORS * HUB_MSG_TENSOR_BYTES];

	for (uint8_t type = 1; type < HUB_MSG_TYPES; type++) {
		struct hub_msg msg, back;
		size_t used;

		draw(rng, type, &msg, rows);
		size_t n = hub_msg_encode(&msg, bytes);
		for (size_t bit = 0; bit < 8 * n; bit++) {
			bytes[bit / 8] = (uint8_t)(bytes[bit / 8] ^ 1u << bit % 8);
			CHECK(hub_msg_decode(bytes, n, &back, &used) != HUB_MSG_WHOLE);
			bytes[bit / 8] = (uint8_t)(bytes[bit / 8] ^ 1u << bit % 8);
		}
	}
}

/* With a good checksum, contents that no encoder makes are refused. */
static void seal(uint8_t *bytes, size_t n)
{
	bytes_put32(bytes + 12, crc32c(crc32c(0, bytes, 12), bytes + HUB_MSG_HEAD_BYTES, (uint32_t)n - HUB_MSG_HEAD_BYTES));
}

static void refuse(const struct hub_msg *msg, size_t at, uint8_t value)
{
	static uint8_t bytes[HUB_MSG_MOST];
	struct hub_msg back;
	size_t used, n = hub_msg_encode(msg, bytes);

	bytes[HUB_MSG_HEAD_BYTES + at] = value;
	seal(bytes, n);
	CHECK(hub_msg_decode(bytes, n, &back, &used) == HUB_MSG_DAMAGED);
}

static void bad_contents(void)
{
	static uint8_t row[HUB_MSG_TENSOR_BYTES], bytes[HUB_MSG_MOST];
	struct hub_msg tensors = {.type = HUB_MSG_TENSORS, .tensors = {.total = 1, .count = 1, .rows = row}}, back;
	size_t used;

	hub_msg_tensor_put(row, &(struct hub_msg_tensor){.elements = 1});
	refuse(&tensors, 0, 0);                    /* fewer in all than here */
	refuse(&tensors, 4, 1);                    /* beyond the last */
	refuse(&tensors, 8, 2);                    /* another count than there are rows */
	refuse(&tensors, 12, 1);
	refuse(&tensors, 16 + 16, ESP_TYPE_COUNT); /* no type */
	refuse(&tensors, 16 + 20, 1);
	refuse(&(struct hub_msg){.type = HUB_MSG_WHY, .why = {.status = ESP_EINVAL}}, 3, 0); /* not negative */
	refuse(&(struct hub_msg){.type = HUB_MSG_WHY, .why = {.status = ESP_EINVAL}}, 8, '\n');
	refuse(&(struct hub_msg){.type = HUB_MSG_WHY, .why = {.status = ESP_EINVAL}}, 9, 'x'); /* behind the end */
	refuse(&(struct hub_msg){.type = HUB_MSG_WHY, .why = {.status = ESP_EINVAL}}, 8 + HUB_WHY_TEXT - 1, 'x');
	const struct hub_msg create = {.type = HUB_MSG_CREATE, .create = {.hubs = 1}};
	refuse(&create, HUB_JOB_NAME + 12, 2);
	refuse(&create, HUB_JOB_NAME + 13, 1);
	refuse(&create, HUB_JOB_NAME + 24, 0); /* no hubs */
	refuse(&create, HUB_JOB_NAME + 26, 1); /* a hub beyond the last */
	refuse(&create, HUB_JOB_NAME + 28, 1);
	refuse(&(struct hub_msg){.type = HUB_MSG_JOIN}, 12, 1);
	const struct hub_msg welcome = {.type = HUB_MSG_WELCOME, .welcome = {.hubs = 1}};
	refuse(&welcome, 20, 0);
	refuse(&welcome, 22, 1);
	refuse(&(struct hub_msg){.type = HUB_MSG_RESULT}, 25, 1);
	refuse(&(struct hub_msg){.type = HUB_MSG_RESULT}, 31, 1);
	refuse(&(struct hub_msg){.type = HUB_MSG_ASK}, 4, 1);
	refuse(&(struct hub_msg){.type = HUB_MSG_SHARE}, 4, 1);
	refuse(&(struct hub_msg){.type = HUB_MSG_READY}, 24, 2);
	refuse(&(struct hub_msg){.type = HUB_MSG_READY}, 25, 1);
	refuse(&(struct hub_msg){.type = HUB_MSG_READY}, 31, 1);
	/* A length beyond the type's is refused before its bytes are waited for. */
	memset(bytes, 0, sizeof(bytes));
	hub_msg_encode(&(struct hub_msg){.type = HUB_MSG_PING}, bytes);
	bytes_put32(bytes + 8, 1);
	CHECK(hub_msg_decode(bytes, HUB_MSG_HEAD_BYTES, &back, &used) == HUB_MSG_DAMAGED);
	bytes[4] = HUB_MSG_TENSORS;
	bytes_put32(bytes + 8, HUB_MSG_BODY_MOST + 1);
	CHECK(hub_msg_decode(bytes, HUB_MSG_HEAD_BYTES, &back, &used) == HUB_MSG_DAMAGED);
	bytes_put32(bytes + 8, HUB_MSG_BODY_MOST);
	CHECK(hub_msg_decode(bytes, HUB_MSG_HEAD_BYTES, &back, &used) == HUB_MSG_SHORT);
}

static void names(void)
{
	char longest[HUB_JOB_NAME + 1];

	memset(longest, 'a', sizeof(longest));
	longest[HUB_JOB_NAME] = '\0';
	CHECK(!hub_msg_name_is_good(longest));
	longest[HUB_JOB_NAME - 1] = '\0';
	CHECK(hub_msg_name_is_good(longest));
	CHECK(hub_msg_name_is_good("resnet-50_v1.5") && hub_msg_name_is_good("7"));
	CHECK(!hub_msg_name_is_good("") && !hub_msg_name_is_good("a b") && !hub_msg_name_is_good("../x") &&
	      !hub_msg_name_is_good("-h") && !hub_msg_name_is_good("a/b") && !hub_msg_name_is_good("\xc3\xa4"));
}

int main(void)
{
	struct rng rng;

	rng_init(&rng, 1);
	round_trips(&rng);
	flipped_bits(&rng);
	bad_contents();
	names();
	return 0;
}
