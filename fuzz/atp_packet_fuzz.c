/*
 * atp_packet_fuzz.c - datagrams of in-network aggregation: a decoded one is valid, and has the bytes that its encoder
 * writes.
 */
#include "fuzz.h"

#include <string.h>

#include "wire/atp_packet.h"

static void as_greeting(const uint8_t *body)
{
	uint8_t again[ATP_GREETING_BYTES];
	struct atp_greeting greeting;

	if (!atp_greeting_decode(body, &greeting))
		return;
	atp_greeting_encode(&greeting, again);
	FUZZ_CHECK(memcmp(body, again, sizeof(again)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t again[ATP_HEADER_BYTES];
	struct atp_packet packet;

	if (atp_packet_decode(data, size, &packet) != ATP_DECODED)
		return 0;
	FUZZ_CHECK(atp_packet_valid(&packet) && size == ATP_HEADER_BYTES + 4 * (size_t)packet.words);
	FUZZ_CHECK(packet.type != ATP_GRADIENT || (packet.bitmap & ~atp_children(packet.fan_in[packet.hop])) == 0);
	atp_header_put(&packet, again);
	FUZZ_CHECK(memcmp(data, again, sizeof(again)) == 0);
	if (packet.type >= ATP_HELLO && packet.words >= ATP_GREETING_WORDS)
		as_greeting(data + ATP_HEADER_BYTES);
	return 0;
}
