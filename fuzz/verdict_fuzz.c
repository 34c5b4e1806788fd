/*
 * verdict_fuzz.c - what members tell each other to agree: what decodes encodes to the same bytes, and a whole agreement
 * survives any sequence of such messages. The first byte is the size of the group; then each message has its sender, its
 * length and its bytes.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "rank/member/agreement.h"

#define SIZE_MOST 24u

static void ignore_send(void *context, uint32_t place, const uint8_t *bytes, size_t n)
{
	struct verdict_msg msg;

	(void)place;
	FUZZ_CHECK(verdict_msg_decode(bytes, n, *(uint32_t *)context, &msg));
}

static bool prepare(void *context, const struct verdict_terms *terms, const uint8_t *members, uint32_t *out_channel)
{
	(void)context;
	(void)members;
	*out_channel = terms->channel + 1;
	return terms->channel % 3 != 0;
}

static void ignore_accuse(void *context, uint32_t place)
{
	(void)context;
	(void)place;
}

static const struct agreement_events events = {.send = ignore_send, .prepare = prepare, .accuse = ignore_accuse};

static void check_round_trip(const uint8_t *bytes, size_t n, uint32_t size)
{
	struct verdict_msg msg;
	uint8_t again[VERDICT_HEAD_BYTES + 4 * (SIZE_MOST / 8)];

	uint32_t asked_size;

	(void)verdict_msg_asks(bytes, n, &asked_size);
	if (!verdict_msg_decode(bytes, n, size, &msg))
		return;
	FUZZ_CHECK(n <= verdict_msg_most(size) && verdict_msg_encode(&msg, again) == n && memcmp(again, bytes, n) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct agreement agreement;
	uint64_t now = 1000000000;

	if (size < 2)
		return 0;
	uint32_t members = 1 + data[0] % SIZE_MOST;
	struct agreement_config config = {
		.self = data[1] % members,
		.size = members,
		.interval_ns = 1000000000,
		.quorum = data[1] > 127,
		.events = &events,
		.context = &members,
	};
	if (agreement_init(&agreement, &config) != ESP_OK)
		return 0;
	for (size_t at = 2; at + 2 <= size;) {
		uint32_t from = data[at] % members;
		size_t n = data[at + 1];

		at += 2;
		n = n < size - at ? n : size - at;
		check_round_trip(data + at, n, members);
		if (n == 0)
			agreement_start(&agreement, 3, 4, 8, now);
		else
			agreement_message(&agreement, from, data + at, n, now);
		now += 50000000;
		agreement_turn(&agreement, now);
		at += n;
	}
	agreement_fini(&agreement);
	return 0;
}
