#include "network/probe/packet.h"

#include <assert.h>
#include <sodium.h>
#include <string.h>

#include "wire/bytes.h"

#define TAG_AT 48u
#define TAG_BYTES 16u
#define TURNAROUND_MAX UINT64_C(60000000000) /* a minute; a longer time is invalid */

static const uint8_t magic[4] = {0x9e, 'E', 'P', 0x01};

void probe_packet_session_init(struct packet_session *session, const uint8_t *job_key,
                               const uint8_t nonce[PACKET_NONCE_BYTES])
{
	static const char purpose[] = "espalier probe 1";
	uint8_t number[16];
	crypto_generichash_state state;

	crypto_generichash_init(&state, job_key, PACKET_KEY_BYTES, PACKET_KEY_BYTES);
	crypto_generichash_update(&state, (const uint8_t *)purpose, sizeof(purpose));
	crypto_generichash_update(&state, nonce, PACKET_NONCE_BYTES);
	crypto_generichash_final(&state, session->key, PACKET_KEY_BYTES);
	/* The number is public: it only spares other receivers a hash. */
	crypto_generichash(number, sizeof(number), nonce, PACKET_NONCE_BYTES, NULL, 0);
	session->number = bytes_get64(number);
	sodium_memzero(&state, sizeof(state));
}

void probe_packet_session_wipe(struct packet_session *session)
{
	sodium_memzero(session, sizeof(*session));
}

static void make_tag(const struct packet_session *session, const uint8_t *bytes, uint8_t tag[TAG_BYTES])
{
	crypto_generichash(tag, TAG_BYTES, bytes, TAG_AT, session->key, PACKET_KEY_BYTES);
}

void probe_packet_encode(const struct packet_session *session, const struct packet *packet, uint8_t out[PACKET_BYTES])
{
	assert(packet->kind >= PACKET_REQUEST && packet->kind <= PACKET_WELCOME);
	memset(out, 0, PACKET_BYTES);
	memcpy(out, magic, sizeof(magic));
	out[4] = packet->kind;
	bytes_put64(out + 8, session->number);
	bytes_put32(out + 16, packet->from);
	bytes_put32(out + 20, packet->to);
	bytes_put32(out + 24, packet->round);
	bytes_put32(out + 28, packet->sequence);
	bytes_put32(out + 32, packet->before);
	bytes_put64(out + 40, packet->turnaround_ns);
	make_tag(session, out, out + TAG_AT);
}

static bool is_ours(const struct packet_session *session, const uint8_t *bytes, size_t length)
{
	uint8_t tag[TAG_BYTES];

	if (length != PACKET_BYTES || memcmp(bytes, magic, sizeof(magic)) != 0 || bytes_get64(bytes + 8) != session->number)
		return false;
	make_tag(session, bytes, tag);
	return sodium_memcmp(tag, bytes + TAG_AT, TAG_BYTES) == 0;
}

bool probe_packet_decode(const struct packet_session *session, const uint8_t *bytes, size_t length, uint32_t hosts,
                         struct packet *out)
{
	if (!is_ours(session, bytes, length))
		return false;
	struct packet packet = {
		.kind = bytes[4],
		.from = bytes_get32(bytes + 16),
		.to = bytes_get32(bytes + 20),
		.round = bytes_get32(bytes + 24),
		.sequence = bytes_get32(bytes + 28),
		.before = bytes_get32(bytes + 32),
		.turnaround_ns = bytes_get64(bytes + 40),
	};
	if (packet.kind < PACKET_REQUEST || packet.kind > PACKET_WELCOME || bytes[5] || bytes[6] || bytes[7] ||
	    bytes_get32(bytes + 36))
		return false;
	if (packet.from >= hosts || packet.to >= hosts || packet.from == packet.to || packet.turnaround_ns > TURNAROUND_MAX)
		return false;
	*out = packet;
	return true;
}
