#include "wire/hub_msg.h"

#include <assert.h>
#include <string.h>

#include "espalier/types.h"
#include "wire/bytes.h"
#include "wire/crc32c.h"

#define MAGIC 0xb0e5a11fu

enum {
	AT_MAGIC = 0,
	AT_TYPE = 4,
	AT_ZEROS = 5,
	AT_BYTES = 8,
	AT_CRC = 12,
};

/* Lengths of the bodies; VARIES: TENSORS_HEAD and rows. */
#define TENSORS_HEAD 16u
#define VARIES UINT32_MAX
static const uint32_t body_bytes[HUB_MSG_TYPES] = {
	[HUB_MSG_CREATE] = HUB_JOB_NAME + 32 + HUB_OPTIMIZER_BYTES,
	[HUB_MSG_TICKET] = 8 + HUB_KEY_BYTES,
	[HUB_MSG_REMOVE] = HUB_JOB_NAME,
	[HUB_MSG_OK] = 0,
	[HUB_MSG_WHY] = 8 + HUB_WHY_TEXT,
	[HUB_MSG_JOIN] = 16 + HUB_HOST_NAME + 16,
	[HUB_MSG_WELCOME] = 24 + HUB_OPTIMIZER_BYTES,
	[HUB_MSG_TENSORS] = VARIES,
	[HUB_MSG_READY] = 32,
	[HUB_MSG_ASK] = 8,
	[HUB_MSG_MISSING] = 16 + HUB_WHY_TEXT,
	[HUB_MSG_LEAVE] = 0,
	[HUB_MSG_PING] = 0,
	[HUB_MSG_PONG] = 0,
	[HUB_MSG_OFFER] = 64,
	[HUB_MSG_GRANT] = 8,
	[HUB_MSG_RESULT] = 40,
	[HUB_MSG_SHARE] = 8,
	[HUB_MSG_SPOIL] = 8,
};

bool hub_msg_name_is_good(const char *name)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";
	size_t length = strnlen(name, HUB_JOB_NAME);

	return length > 0 && length < HUB_JOB_NAME && strspn(name, letters) == length && name[0] != '-' && name[0] != '.';
}

/* ---- texts ---- */

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

/* ---- tensors ---- */

void hub_msg_tensor_put(uint8_t out[HUB_MSG_TENSOR_BYTES], const struct hub_msg_tensor *tensor)
{
	memset(out, 0, HUB_MSG_TENSOR_BYTES);
	bytes_put64(out, tensor->name);
	bytes_put64(out + 8, tensor->elements);
	out[16] = tensor->type;
	bytes_put16(out + 18, tensor->group);
}

struct hub_msg_tensor hub_msg_tensor_at(const struct hub_msg_tensors *tensors, uint32_t index)
{
	const uint8_t *row = tensors->rows + (size_t)index * HUB_MSG_TENSOR_BYTES;

	assert(index < tensors->count);
	return (struct hub_msg_tensor){
		.name = bytes_get64(row),
		.elements = bytes_get64(row + 8),
		.type = row[16],
		.group = bytes_get16(row + 18),
	};
}

static bool get_tensors(const uint8_t *body, uint32_t bytes, struct hub_msg_tensors *out)
{
	if (bytes < TENSORS_HEAD || bytes_get32(body + 12) != 0)
		return false;
	*out = (struct hub_msg_tensors){
		.total = bytes_get32(body), .first = bytes_get32(body + 4), .count = bytes_get32(body + 8),
		.rows = body + TENSORS_HEAD};
	if (out->count > HUB_MSG_TENSORS_EACH || bytes != TENSORS_HEAD + out->count * HUB_MSG_TENSOR_BYTES ||
	    out->first > out->total || out->count > out->total - out->first)
		return false;
	for (uint32_t i = 0; i < out->count; i++) {
		const uint8_t *row = out->rows + (size_t)i * HUB_MSG_TENSOR_BYTES;

		if (row[16] >= ESP_TYPE_COUNT || row[17] != 0 || bytes_get32(row + 20) != 0)
			return false;
	}
	return true;
}

/* ---- bodies ---- */

static uint32_t put_body(const struct hub_msg *msg, uint8_t *body)
{
	uint32_t bytes = body_bytes[msg->type];

	if (bytes != VARIES)
		memset(body, 0, bytes);
	switch ((enum hub_msg_type)msg->type) {
	case HUB_MSG_CREATE:
		put_text(body, msg->create.name, HUB_JOB_NAME);
		bytes_put32(body + HUB_JOB_NAME, msg->create.workers);
		bytes_put32(body + HUB_JOB_NAME + 4, msg->create.chunk_bytes);
		bytes_put32(body + HUB_JOB_NAME + 8, msg->create.weight);
		body[HUB_JOB_NAME + 12] = msg->create.replaces;
		bytes_put16(body + HUB_JOB_NAME + 14, msg->create.delay_bound);
		bytes_put64(body + HUB_JOB_NAME + 16, msg->create.job);
		bytes_put16(body + HUB_JOB_NAME + 24, msg->create.hubs);
		bytes_put16(body + HUB_JOB_NAME + 26, msg->create.own);
		memcpy(body + HUB_JOB_NAME + 32, msg->create.optimizer, HUB_OPTIMIZER_BYTES);
		break;
	case HUB_MSG_TICKET:
		bytes_put64(body, msg->ticket.job);
		memcpy(body + 8, msg->ticket.key, HUB_KEY_BYTES);
		break;
	case HUB_MSG_REMOVE:
		put_text(body, msg->remove.name, HUB_JOB_NAME);
		break;
	case HUB_MSG_WHY:
		bytes_put32(body, (uint32_t)msg->why.status);
		bytes_put32(body + 4, msg->why.worker);
		put_text(body + 8, msg->why.text, HUB_WHY_TEXT);
		break;
	case HUB_MSG_JOIN:
		bytes_put32(body, msg->join.worker);
		bytes_put32(body + 4, msg->join.workers);
		bytes_put32(body + 8, msg->join.pid);
		put_text(body + 16, msg->join.host, HUB_HOST_NAME);
		bytes_put64(body + 16 + HUB_HOST_NAME, msg->join.memory);
		bytes_put64(body + 24 + HUB_HOST_NAME, msg->join.meeting);
		break;
	case HUB_MSG_WELCOME:
		bytes_put64(body, msg->welcome.session);
		bytes_put32(body + 8, msg->welcome.lanes);
		bytes_put32(body + 12, msg->welcome.chunk_bytes);
		bytes_put32(body + 16, msg->welcome.delay_bound);
		bytes_put16(body + 20, msg->welcome.hubs);
		bytes_put16(body + 22, msg->welcome.own);
		memcpy(body + 24, msg->welcome.optimizer, HUB_OPTIMIZER_BYTES);
		break;
	case HUB_MSG_TENSORS:
		assert(msg->tensors.count <= HUB_MSG_TENSORS_EACH);
		bytes = TENSORS_HEAD + msg->tensors.count * HUB_MSG_TENSOR_BYTES;
		bytes_put32(body, msg->tensors.total);
		bytes_put32(body + 4, msg->tensors.first);
		bytes_put32(body + 8, msg->tensors.count);
		bytes_put32(body + 12, 0);
		memcpy(body + TENSORS_HEAD, msg->tensors.rows, bytes - TENSORS_HEAD);
		break;
	case HUB_MSG_READY:
		bytes_put64(body, msg->ready.digest);
		bytes_put64(body + 8, msg->ready.set);
		bytes_put64(body + 16, msg->ready.meeting);
		body[24] = msg->ready.reads;
		break;
	case HUB_MSG_ASK:
		bytes_put32(body, msg->ask);
		break;
	case HUB_MSG_MISSING:
		bytes_put32(body, msg->missing.tensor);
		bytes_put64(body + 8, msg->missing.workers);
		put_text(body + 16, msg->missing.text, HUB_WHY_TEXT);
		break;
	case HUB_MSG_OFFER:
		bytes_put64(body, msg->offer.number);
		bytes_put64(body + 8, msg->offer.computed_from);
		bytes_put64(body + 16, msg->offer.epoch);
		bytes_put64(body + 24, msg->offer.position);
		bytes_put64(body + 32, msg->offer.patience_ns);
		bytes_put64(body + 40, msg->offer.bundle);
		bytes_put64(body + 48, msg->offer.members);
		bytes_put32(body + 56, msg->offer.aggregator);
		bytes_put32(body + 60, 0);
		break;
	case HUB_MSG_GRANT:
		bytes_put64(body, msg->grant);
		break;
	case HUB_MSG_SPOIL:
		bytes_put64(body, msg->spoil);
		break;
	case HUB_MSG_RESULT:
		bytes_put64(body, msg->result.number);
		bytes_put64(body + 8, msg->result.version);
		bytes_put64(body + 16, msg->result.delay);
		body[24] = msg->result.why;
		bytes_put64(body + 32, msg->result.took_ns);
		break;
	case HUB_MSG_SHARE:
		bytes_put32(body, msg->share);
		break;
	case HUB_MSG_OK:
	case HUB_MSG_LEAVE:
	case HUB_MSG_PING:
	case HUB_MSG_PONG:
		break;
	}
	return bytes;
}

static bool get_why(const uint8_t *body, struct hub_msg_why *out)
{
	*out = (struct hub_msg_why){.status = (int32_t)bytes_get32(body), .worker = bytes_get32(body + 4)};
	return out->status < 0 && out->status >= ESP_EABORTED && get_text(body + 8, out->text, HUB_WHY_TEXT);
}

static bool get_create(const uint8_t *body, struct hub_msg_create *out)
{
	const uint8_t *rest = body + HUB_JOB_NAME;

	*out = (struct hub_msg_create){.workers = bytes_get32(rest), .chunk_bytes = bytes_get32(rest + 4),
	                               .weight = bytes_get32(rest + 8), .replaces = rest[12],
	                               .delay_bound = bytes_get16(rest + 14), .job = bytes_get64(rest + 16),
	                               .hubs = bytes_get16(rest + 24), .own = bytes_get16(rest + 26)};
	memcpy(out->optimizer, rest + 32, HUB_OPTIMIZER_BYTES);
	return get_text(body, out->name, HUB_JOB_NAME) && out->replaces <= 1 && rest[13] == 0 && out->own < out->hubs &&
	       bytes_get32(rest + 28) == 0;
}

static bool get_result(const uint8_t *body, struct hub_msg_result *out)
{
	*out = (struct hub_msg_result){.number = bytes_get64(body), .version = bytes_get64(body + 8),
	                               .delay = bytes_get64(body + 16), .took_ns = bytes_get64(body + 32),
	                               .why = body[24]};
	return body[25] == 0 && bytes_get16(body + 26) == 0 && bytes_get32(body + 28) == 0;
}

static bool get_body(uint8_t type, const uint8_t *body, uint32_t bytes, struct hub_msg *out)
{
	switch ((enum hub_msg_type)type) {
	case HUB_MSG_CREATE:
		return get_create(body, &out->create);
	case HUB_MSG_TICKET:
		out->ticket.job = bytes_get64(body);
		memcpy(out->ticket.key, body + 8, HUB_KEY_BYTES);
		return true;
	case HUB_MSG_REMOVE:
		return get_text(body, out->remove.name, HUB_JOB_NAME);
	case HUB_MSG_WHY:
		return get_why(body, &out->why);
	case HUB_MSG_JOIN:
		out->join = (struct hub_msg_join){
			.worker = bytes_get32(body), .workers = bytes_get32(body + 4), .pid = bytes_get32(body + 8),
			.memory = bytes_get64(body + 16 + HUB_HOST_NAME), .meeting = bytes_get64(body + 24 + HUB_HOST_NAME)};
		return bytes_get32(body + 12) == 0 && get_text(body + 16, out->join.host, HUB_HOST_NAME);
	case HUB_MSG_WELCOME:
		out->welcome = (struct hub_msg_welcome){
			.session = bytes_get64(body), .lanes = bytes_get32(body + 8), .chunk_bytes = bytes_get32(body + 12),
			.delay_bound = bytes_get32(body + 16), .hubs = bytes_get16(body + 20), .own = bytes_get16(body + 22)};
		memcpy(out->welcome.optimizer, body + 24, HUB_OPTIMIZER_BYTES);
		return out->welcome.own < out->welcome.hubs;
	case HUB_MSG_TENSORS:
		return get_tensors(body, bytes, &out->tensors);
	case HUB_MSG_READY:
		out->ready = (struct hub_msg_ready){bytes_get64(body), bytes_get64(body + 8), bytes_get64(body + 16), body[24]};
		return body[24] <= 1 && body[25] == 0 && bytes_get16(body + 26) == 0 && bytes_get32(body + 28) == 0;
	case HUB_MSG_ASK:
		out->ask = bytes_get32(body);
		return bytes_get32(body + 4) == 0;
	case HUB_MSG_MISSING:
		out->missing = (struct hub_msg_missing){.tensor = bytes_get32(body), .workers = bytes_get64(body + 8)};
		return bytes_get32(body + 4) == 0 && get_text(body + 16, out->missing.text, HUB_WHY_TEXT);
	case HUB_MSG_OFFER:
		out->offer = (struct hub_msg_offer){bytes_get64(body),      bytes_get64(body + 8),  bytes_get64(body + 16),
		                                    bytes_get64(body + 24), bytes_get64(body + 32), bytes_get64(body + 40),
		                                    bytes_get64(body + 48), bytes_get32(body + 56)};
		return bytes_get32(body + 60) == 0;
	case HUB_MSG_GRANT:
		out->grant = bytes_get64(body);
		return true;
	case HUB_MSG_SPOIL:
		out->spoil = bytes_get64(body);
		return true;
	case HUB_MSG_RESULT:
		return get_result(body, &out->result);
	case HUB_MSG_SHARE:
		out->share = bytes_get32(body);
		return bytes_get32(body + 4) == 0;
	case HUB_MSG_OK:
	case HUB_MSG_LEAVE:
	case HUB_MSG_PING:
	case HUB_MSG_PONG:
		return true;
	}
	return false;
}

/* ---- messages ---- */

/* Of the head before it and of the body. */
static uint32_t sum_of(const uint8_t *message, uint32_t bytes)
{
	return crc32c(crc32c(0, message, AT_CRC), message + HUB_MSG_HEAD_BYTES, bytes);
}

size_t hub_msg_encode(const struct hub_msg *msg, uint8_t out[HUB_MSG_MOST])
{
	assert(msg->type > 0 && msg->type < HUB_MSG_TYPES);
	uint32_t bytes = put_body(msg, out + HUB_MSG_HEAD_BYTES);

	memset(out, 0, HUB_MSG_HEAD_BYTES);
	bytes_put32(out + AT_MAGIC, MAGIC);
	out[AT_TYPE] = msg->type;
	bytes_put32(out + AT_BYTES, bytes);
	bytes_put32(out + AT_CRC, sum_of(out, bytes));
	return HUB_MSG_HEAD_BYTES + bytes;
}

/* The length is not to be trusted yet, but it is one that the type may have. */
static bool head_is_good(const uint8_t *in)
{
	uint8_t type = in[AT_TYPE];
	uint32_t bytes = bytes_get32(in + AT_BYTES);

	if (bytes_get32(in + AT_MAGIC) != MAGIC || type == 0 || type >= HUB_MSG_TYPES || in[AT_ZEROS] || in[AT_ZEROS + 1] ||
	    in[AT_ZEROS + 2])
		return false;
	return body_bytes[type] == VARIES ? bytes <= HUB_MSG_BODY_MOST : bytes == body_bytes[type];
}

enum hub_msg_verdict hub_msg_decode(const uint8_t *in, size_t n, struct hub_msg *out, size_t *out_used)
{
	if (n < HUB_MSG_HEAD_BYTES)
		return HUB_MSG_SHORT;
	if (!head_is_good(in))
		return HUB_MSG_DAMAGED;
	uint32_t bytes = bytes_get32(in + AT_BYTES);
	if (n - HUB_MSG_HEAD_BYTES < bytes)
		return HUB_MSG_SHORT;
	memset(out, 0, sizeof(*out));
	if (sum_of(in, bytes) != bytes_get32(in + AT_CRC) || !get_body(in[AT_TYPE], in + HUB_MSG_HEAD_BYTES, bytes, out))
		return HUB_MSG_DAMAGED;
	out->type = in[AT_TYPE];
	*out_used = HUB_MSG_HEAD_BYTES + bytes;
	return HUB_MSG_WHOLE;
}
