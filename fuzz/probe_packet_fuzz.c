/*
 * probe_packet_fuzz.c - datagrams from strangers, and from somebody who has the key: no bytes get in without it, and none of those who
 * have it break an echo.
 *
 * The input is a packet, or a row of packets to one echo, tags replaced by true ones.
 */
#include "fuzz.h"

#include <string.h>

#include "network/probe/echo.h"

#define HOSTS 4u

static const uint8_t key[PACKET_KEY_BYTES] = "a key that nobody guesses ......";
static const uint8_t nonce[PACKET_NONCE_BYTES] = "always the same";

/* A packet of these bytes, as one who has the key would write it. */
static void seal(const struct packet_session *session, const uint8_t *data, uint8_t out[PACKET_BYTES])
{
	struct packet packet = {.kind = (uint8_t)(1 + data[0] % 4), .from = data[1] % HOSTS, .to = data[2] % HOSTS, .round = data[3] % 4};

	packet.sequence = data[4] % 8;
	packet.before = data[5] % 8;
	memcpy(&packet.turnaround_ns, data + 6, sizeof(packet.turnaround_ns));
	probe_packet_encode(session, &packet, out);
}

static void as_insider(const struct packet_session *session, const uint8_t *data, size_t size)
{
	uint8_t bytes[PACKET_BYTES], out[PACKET_BYTES];
	struct samples samples = {0};
	struct echo echo;
	uint64_t wake, now = 1000;

	probe_echo_init(&echo, session, HOSTS, 1);
	probe_echo_begin(&echo, 1, 2, &(struct echo_pace){.asks = 5, .patience_ns = 100}, &samples);
	for (; size >= 16; data += 16, size -= 16) {
		now += data[14];
		(void)probe_echo_ask(&echo, now, now, out, &wake);
		seal(session, data, bytes);
		if (data[15] & 1)
			probe_echo_left(&echo, bytes, PACKET_BYTES, now);
		else if (probe_echo_receive(&echo, bytes, PACKET_BYTES, now, now + data[13], out))
			FUZZ_CHECK(out[4] == PACKET_REPLY);
	}
	for (uint32_t i = 0; i < samples.count; i++)
		FUZZ_CHECK(samples.at[i] > 0 && samples.at[i] < 10);
	probe_samples_fini(&samples);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct packet_session session;
	struct packet packet;
	uint8_t again[PACKET_BYTES];

	probe_packet_session_init(&session, key, nonce);
	if (probe_packet_decode(&session, data, size, HOSTS, &packet)) {
		FUZZ_CHECK(packet.from < HOSTS && packet.to < HOSTS && packet.from != packet.to);
		probe_packet_encode(&session, &packet, again);
		FUZZ_CHECK(memcmp(data, again, PACKET_BYTES) == 0);
	}
	as_insider(&session, data, size);
	return 0;
}
