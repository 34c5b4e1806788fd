#include "wire/fabric_msg.h"

#include <assert.h>
#include <string.h>

#include "wire/bytes.h"
#include "wire/crc32c.h"

#define MAGIC 0xfab51cedu

enum {
	AT_MAGIC = 0,
	AT_TYPE = 4,
	AT_ZEROS = 5,
	AT_BODY = 8,
	AT_CRC = 124,
};
#define BODY_BYTES (AT_CRC - AT_BODY)
_Static_assert(4 + FABRIC_TEXT == BODY_BYTES, "a refusal fills its message");

/* Bytes of the body that a type uses; the rest is zero. */
static const uint8_t body_bytes[FABRIC_MSG_TYPES] = {
	[FABRIC_REGISTER] = FABRIC_JOB_NAME + 40,
	[FABRIC_WELCOME] = 16,
	[FABRIC_REFUSE] = BODY_BYTES,
	[FABRIC_READY] = 48,
	[FABRIC_DECIDE] = 112,
	[FABRIC_DONE] = 40,
	[FABRIC_GIVE] = 40,
	[FABRIC_TAKEN] = 16,
	[FABRIC_WANT] = 8,
	[FABRIC_MODEL] = 56,
	[FABRIC_WAIT] = 0,
	[FABRIC_FETCH] = 32,
	[FABRIC_FETCHED] = 32,
	[FABRIC_GIVEN] = 24,
	[FABRIC_GOT] = 16,
};

static void put_text(uint8_t *out, const char *text, size_t room)
{
	size_t length = strnlen(text, room - 1);

	memcpy(out, text, length);
	memset(out + length, 0, room - length);
}

/* False: it does not end, something stands behind its end, or a character is not printable. */
static bool get_text(const uint8_t *in, char *out, size_t room)
{
	size_t length = strnlen((const char *)in, room);

	if (length == room)
		return false;
	for (size_t i = 0; i < room; i++) {
		if (i < length ? in[i] < ' ' || in[i] == 0x7f : in[i] != 0)
			return false;
	}
	memcpy(out, in, room);
	return true;
}

static bool are_zeros(const uint8_t *in, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (in[i] != 0)
			return false;
	}
	return true;
}

static uint64_t bits_of(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static double of_bits(uint64_t bits)
{
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static void put_numbers(uint8_t *out, const uint64_t *numbers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		bytes_put64(out + 8 * i, numbers[i]);
}

static void put_register(const struct fabric_msg_register *reg, uint8_t *body)
{
	put_text(body, reg->name, FABRIC_JOB_NAME);
	bytes_put32(body + FABRIC_JOB_NAME, reg->worker);
	bytes_put32(body + FABRIC_JOB_NAME + 4, reg->workers);
	bytes_put32(body + FABRIC_JOB_NAME + 8, reg->delay_bound);
	bytes_put32(body + FABRIC_JOB_NAME + 12, reg->pid);
	bytes_put64(body + FABRIC_JOB_NAME + 16, reg->rate);
	bytes_put64(body + FABRIC_JOB_NAME + 24, reg->session);
	bytes_put64(body + FABRIC_JOB_NAME + 32, (uint64_t)reg->takes_sums << 16 | reg->port);
}

static void put_decide(const struct fabric_msg_decide *decide, uint8_t *body)
{
	const uint64_t numbers[] = {decide->number, decide->position, decide->start_ns, decide->rate, decide->patience_ns,
	                            decide->delay, decide->end, decide->bundle, decide->members, decide->wait_ns,
	                            (uint64_t)decide->port << 32 | decide->aggregator};

	put_numbers(body, numbers, 11);
	memcpy(body + 88, decide->host, FABRIC_HOST);
	body[49] = decide->is_chain;
	body[50] = decide->inputs;
	bytes_put32(body + 104, decide->next_hop);
}

static void put_model(const struct fabric_msg_model *model, uint8_t *body)
{
	const uint64_t numbers[] = {model->tree, model->start_ns, model->rate,
	                            (uint64_t)model->outputs << 32 | model->source, model->port};

	put_numbers(body, numbers, 5);
	memcpy(body + 40, model->host, FABRIC_HOST);
}

static void put_body(const struct fabric_msg *msg, uint8_t *body)
{
	switch ((enum fabric_msg_type)msg->type) {
	case FABRIC_REGISTER:
		put_register(&msg->reg, body);
		return;
	case FABRIC_WELCOME:
		put_numbers(body, (const uint64_t[]){msg->welcome.epoch, msg->welcome.batch_ns}, 2);
		return;
	case FABRIC_REFUSE:
		bytes_put32(body, (uint32_t)msg->refuse.status);
		put_text(body + 4, msg->refuse.text, FABRIC_TEXT);
		return;
	case FABRIC_READY:
		put_numbers(body, (const uint64_t[]){msg->ready.number, msg->ready.computed_from, msg->ready.bytes,
		                                     bits_of(msg->ready.norm), msg->ready.attempts, msg->ready.leaves_ns}, 6);
		return;
	case FABRIC_DECIDE:
		put_decide(&msg->decide, body);
		return;
	case FABRIC_DONE:
		put_numbers(body, (const uint64_t[]){msg->done.number, msg->done.version, msg->done.delay, msg->done.took_ns,
		                                     msg->done.end}, 5);
		return;
	case FABRIC_GIVE:
		put_numbers(body, (const uint64_t[]){msg->give.epoch, msg->give.bundle, msg->give.bytes, msg->give.crc,
		                                     msg->give.members}, 5);
		return;
	case FABRIC_TAKEN:
		put_numbers(body, (const uint64_t[]){msg->taken.epoch, msg->taken.bundle}, 2);
		return;
	case FABRIC_GIVEN:
		put_numbers(body, (const uint64_t[]){msg->given.epoch, msg->given.bundle, msg->given.crc}, 3);
		return;
	case FABRIC_GOT:
		put_numbers(body, (const uint64_t[]){msg->got.tree, msg->got.took_ns}, 2);
		return;
	case FABRIC_WANT:
		put_numbers(body, &msg->want.bytes, 1);
		return;
	case FABRIC_MODEL:
		put_model(&msg->model, body);
		return;
	case FABRIC_WAIT:
		return;
	case FABRIC_FETCH:
		put_numbers(body, (const uint64_t[]){msg->fetch.epoch, msg->fetch.tree, msg->fetch.bytes, msg->fetch.rate}, 4);
		return;
	case FABRIC_FETCHED:
		put_numbers(body, (const uint64_t[]){msg->fetched.epoch, msg->fetched.tree, msg->fetched.version,
		                                     msg->fetched.crc}, 4);
		return;
	}
}

static bool get_register(const uint8_t *body, struct fabric_msg_register *out)
{
	const uint8_t *rest = body + FABRIC_JOB_NAME;

	out->worker = bytes_get32(rest);
	out->workers = bytes_get32(rest + 4);
	out->delay_bound = bytes_get32(rest + 8);
	out->pid = bytes_get32(rest + 12);
	out->rate = bytes_get64(rest + 16);
	out->session = bytes_get64(rest + 24);
	out->port = bytes_get16(rest + 32);
	out->takes_sums = rest[34] == 1;
	return rest[34] <= 1 && are_zeros(rest + 35, 5) && get_text(body, out->name, FABRIC_JOB_NAME);
}

static bool get_decide(const uint8_t *body, struct fabric_msg_decide *out)
{
	*out = (struct fabric_msg_decide){.number = bytes_get64(body),
	                                  .position = bytes_get64(body + 8),
	                                  .start_ns = bytes_get64(body + 16),
	                                  .rate = bytes_get64(body + 24),
	                                  .patience_ns = bytes_get64(body + 32),
	                                  .delay = bytes_get64(body + 40),
	                                  .end = body[48],
	                                  .bundle = bytes_get64(body + 56),
	                                  .members = bytes_get64(body + 64),
	                                  .wait_ns = bytes_get64(body + 72),
	                                  .aggregator = bytes_get32(body + 80),
	                                  .port = bytes_get16(body + 84),
	                                  .is_chain = body[49] == 1,
	                                  .inputs = body[50],
	                                  .next_hop = bytes_get32(body + 104)};
	memcpy(out->host, body + 88, FABRIC_HOST);
	return body[49] <= 1 && are_zeros(body + 51, 5) && are_zeros(body + 86, 2) && are_zeros(body + 108, 4);
}

static bool get_model(const uint8_t *body, struct fabric_msg_model *out)
{
	*out = (struct fabric_msg_model){.tree = bytes_get64(body),
	                                 .start_ns = bytes_get64(body + 8),
	                                 .rate = bytes_get64(body + 16),
	                                 .source = bytes_get32(body + 24),
	                                 .outputs = bytes_get32(body + 28),
	                                 .port = bytes_get16(body + 32)};
	memcpy(out->host, body + 40, FABRIC_HOST);
	return are_zeros(body + 34, 6);
}

static bool get_body(uint8_t type, const uint8_t *body, struct fabric_msg *out)
{
	switch ((enum fabric_msg_type)type) {
	case FABRIC_REGISTER:
		return get_register(body, &out->reg);
	case FABRIC_WELCOME:
		out->welcome = (struct fabric_msg_welcome){bytes_get64(body), bytes_get64(body + 8)};
		return true;
	case FABRIC_REFUSE:
		out->refuse.status = (int32_t)bytes_get32(body);
		return out->refuse.status < 0 && get_text(body + 4, out->refuse.text, FABRIC_TEXT);
	case FABRIC_READY:
		out->ready = (struct fabric_msg_ready){bytes_get64(body), bytes_get64(body + 8), bytes_get64(body + 16),
		                                       of_bits(bytes_get64(body + 24)), bytes_get32(body + 32),
		                                       bytes_get64(body + 40)};
		return are_zeros(body + 36, 4);
	case FABRIC_DECIDE:
		return get_decide(body, &out->decide);
	case FABRIC_DONE:
		out->done = (struct fabric_msg_done){.number = bytes_get64(body), .version = bytes_get64(body + 8),
		                                     .delay = bytes_get64(body + 16), .took_ns = bytes_get64(body + 24),
		                                     .end = body[32]};
		return are_zeros(body + 33, 7);
	case FABRIC_GIVE:
		out->give = (struct fabric_msg_give){bytes_get64(body), bytes_get64(body + 8), bytes_get64(body + 16),
		                                     bytes_get32(body + 24), bytes_get64(body + 32)};
		return are_zeros(body + 28, 4);
	case FABRIC_TAKEN:
		out->taken = (struct fabric_msg_taken){bytes_get64(body), bytes_get64(body + 8)};
		return true;
	case FABRIC_GIVEN:
		out->given = (struct fabric_msg_given){bytes_get64(body), bytes_get64(body + 8), bytes_get32(body + 16)};
		return are_zeros(body + 20, 4);
	case FABRIC_GOT:
		out->got = (struct fabric_msg_got){bytes_get64(body), bytes_get64(body + 8)};
		return true;
	case FABRIC_WANT:
		out->want.bytes = bytes_get64(body);
		return true;
	case FABRIC_MODEL:
		return get_model(body, &out->model);
	case FABRIC_WAIT:
		return true;
	case FABRIC_FETCH:
		out->fetch = (struct fabric_msg_fetch){bytes_get64(body), bytes_get64(body + 8), bytes_get64(body + 16),
		                                       bytes_get64(body + 24)};
		return true;
	case FABRIC_FETCHED:
		out->fetched = (struct fabric_msg_fetched){bytes_get64(body), bytes_get64(body + 8), bytes_get64(body + 16),
		                                           bytes_get32(body + 24)};
		return are_zeros(body + 28, 4);
	}
	return false;
}

void fabric_msg_encode(const struct fabric_msg *msg, uint8_t out[FABRIC_MSG_BYTES])
{
	assert(msg->type > 0 && msg->type < FABRIC_MSG_TYPES);
	memset(out, 0, FABRIC_MSG_BYTES);
	bytes_put32(out + AT_MAGIC, MAGIC);
	out[AT_TYPE] = msg->type;
	put_body(msg, out + AT_BODY);
	bytes_put32(out + AT_CRC, crc32c(0, out, AT_CRC));
}

bool fabric_msg_decode(const uint8_t in[FABRIC_MSG_BYTES], struct fabric_msg *out)
{
	uint8_t type = in[AT_TYPE];

	if (bytes_get32(in + AT_MAGIC) != MAGIC || type == 0 || type >= FABRIC_MSG_TYPES || !are_zeros(in + AT_ZEROS, 3) ||
	    bytes_get32(in + AT_CRC) != crc32c(0, in, AT_CRC) ||
	    !are_zeros(in + AT_BODY + body_bytes[type], BODY_BYTES - body_bytes[type]))
		return false;
	memset(out, 0, sizeof(*out));
	out->type = type;
	return get_body(type, in + AT_BODY, out);
}
