#include "wire/verdict_msg.h"

#include <string.h>

#include "wire/bytes.h"

enum {
	AT_TYPE = 0,
	AT_FLAGS = 1,
	AT_ACCEPTED_FLAGS = 2,
	AT_ZERO = 3,
	AT_SIZE = 4,
	AT_CHANNEL = 8,
	AT_ACCEPTED_CHANNEL = 12,
	AT_NUMBERS = 16,
	AT_ACCEPTED_NUMBERS = 40,
};
_Static_assert(AT_ACCEPTED_NUMBERS + 24 == VERDICT_HEAD_BYTES, "the layout in verdict_msg.h");

/* bitmaps of the longest message; a type has the last maps_of() of: gone, left, accused or behind, members */
#define MAPS 4u

static unsigned maps_of(uint8_t type)
{
	switch (type) {
	case VERDICT_JOIN:
		return 4;
	case VERDICT_DECIDED:
		return 3;
	case VERDICT_PROPOSE:
		return 1;
	default:
		return 0;
	}
}

size_t verdict_msg_most(uint32_t size)
{
	return VERDICT_HEAD_BYTES + MAPS * verdict_map_bytes(size);
}

static void put_numbers(const struct verdict_terms *terms, uint8_t *out)
{
	bytes_put64(out, terms->ballot);
	bytes_put64(out + 8, terms->everywhere);
	bytes_put64(out + 16, terms->somewhere);
}

static struct verdict_terms get_terms(const uint8_t *numbers, uint32_t channel, uint8_t flags)
{
	return (struct verdict_terms){
		.ballot = bytes_get64(numbers),
		.everywhere = bytes_get64(numbers + 8),
		.somewhere = bytes_get64(numbers + 16),
		.channel = channel,
		.flags = flags,
	};
}

size_t verdict_msg_encode(const struct verdict_msg *msg, uint8_t *out)
{
	size_t map = verdict_map_bytes(msg->size), at = VERDICT_HEAD_BYTES;
	const uint8_t *maps[MAPS] = {msg->gone, msg->left, msg->type == VERDICT_DECIDED ? msg->behind : msg->accused,
	                             msg->members};
	unsigned count = maps_of(msg->type);

	memset(out, 0, VERDICT_HEAD_BYTES);
	out[AT_TYPE] = msg->type;
	out[AT_FLAGS] = msg->terms.flags;
	out[AT_ACCEPTED_FLAGS] = msg->accepted.flags;
	bytes_put32(out + AT_SIZE, msg->size);
	bytes_put32(out + AT_CHANNEL, msg->terms.channel);
	bytes_put32(out + AT_ACCEPTED_CHANNEL, msg->accepted.channel);
	put_numbers(&msg->terms, out + AT_NUMBERS);
	put_numbers(&msg->accepted, out + AT_ACCEPTED_NUMBERS);
	for (unsigned i = MAPS - count; i < MAPS; i++, at += map) {
		if (maps[i])
			memcpy(out + at, maps[i], map);
		else
			memset(out + at, 0, map);
	}
	return at;
}

/* False if a bit beyond the last member is set. */
static bool map_is_good(const uint8_t *map, uint32_t size)
{
	return size % 8 == 0 || map[size / 8] >> size % 8 == 0;
}

bool verdict_msg_decode(const uint8_t *in, size_t n, uint32_t size, struct verdict_msg *out)
{
	size_t map = verdict_map_bytes(size);

	if (n < VERDICT_HEAD_BYTES || in[AT_TYPE] == 0 || in[AT_TYPE] > VERDICT_LEFT || in[AT_ZERO] != 0 ||
	    bytes_get32(in + AT_SIZE) != size)
		return false;
	if (in[AT_FLAGS] > VERDICT_FLAGS || in[AT_ACCEPTED_FLAGS] > VERDICT_FLAGS)
		return false;
	unsigned count = maps_of(in[AT_TYPE]);
	if (n != VERDICT_HEAD_BYTES + count * map)
		return false;
	for (unsigned i = 0; i < count; i++) {
		if (!map_is_good(in + VERDICT_HEAD_BYTES + i * map, size))
			return false;
	}
	const uint8_t *maps[MAPS] = {0};
	for (unsigned i = 0; i < count; i++)
		maps[MAPS - count + i] = in + VERDICT_HEAD_BYTES + i * map;
	*out = (struct verdict_msg){
		.type = in[AT_TYPE],
		.size = size,
		.terms = get_terms(in + AT_NUMBERS, bytes_get32(in + AT_CHANNEL), in[AT_FLAGS]),
		.accepted = get_terms(in + AT_ACCEPTED_NUMBERS, bytes_get32(in + AT_ACCEPTED_CHANNEL), in[AT_ACCEPTED_FLAGS]),
		.gone = maps[0],
		.left = maps[1],
		.accused = in[AT_TYPE] == VERDICT_JOIN ? maps[2] : NULL,
		.behind = in[AT_TYPE] == VERDICT_DECIDED ? maps[2] : NULL,
		.members = maps[3],
	};
	return true;
}

bool verdict_msg_asks(const uint8_t *in, size_t n, uint32_t *out_size)
{
	if (n < VERDICT_HEAD_BYTES ||
	    (in[AT_TYPE] != VERDICT_CALL && in[AT_TYPE] != VERDICT_JOIN && in[AT_TYPE] != VERDICT_PROPOSE))
		return false;
	*out_size = bytes_get32(in + AT_SIZE);
	return true;
}
