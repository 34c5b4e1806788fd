#include "network/probe/packet.h"

#include "base/check.h"
#include "base/rng.h"

static const uint8_t key[PACKET_KEY_BYTES] = "a key of a job ................";
static const uint8_t nonce[PACKET_NONCE_BYTES] = "drawn just now.";

static struct packet draw(struct rng *rng, uint32_t hosts)
{
	struct packet packet = {
		.kind = (uint8_t)(1 + rng_below(rng, 4)),
		.from = (uint32_t)rng_below(rng, hosts),
		.round = (uint32_t)rng_next(rng),
		.sequence = (uint32_t)rng_next(rng),
		.before = (uint32_t)rng_next(rng),
		.turnaround_ns = rng_below(rng, 1000000000),
	};
	packet.to = (packet.from + 1 + (uint32_t)rng_below(rng, hosts - 1)) % hosts;
	return packet;
}

static bool equal(const struct packet *a, const struct packet *b)
{
	return a->kind == b->kind && a->from == b->from && a->to == b->to && a->round == b->round &&
	       a->sequence == b->sequence &&
	       a->before == b->before && a->turnaround_ns == b->turnaround_ns;
}

static void test_round_trip(struct rng *rng)
{
	struct packet_session session;
	uint8_t bytes[PACKET_BYTES];

	probe_packet_session_init(&session, key, nonce);
	for (int i = 0; i < 2000; i++) {
		struct packet packet = draw(rng, 20), back;
		probe_packet_encode(&session, &packet, bytes);
		CHECK(probe_packet_decode(&session, bytes, sizeof(bytes), 20, &back) && equal(&packet, &back));
	}
}

/* One wrong bit, too short, another key, another session, numbers without a host: each is refused. */
static void test_strangers(struct rng *rng)
{
	struct packet_session session, other_job, other_time;
	uint8_t bytes[PACKET_BYTES], key2[PACKET_KEY_BYTES] = {7}, nonce2[PACKET_NONCE_BYTES] = {7};
	struct packet packet = draw(rng, 20), back;

	probe_packet_session_init(&session, key, nonce);
	probe_packet_session_init(&other_job, key2, nonce);
	probe_packet_session_init(&other_time, key, nonce2);
	probe_packet_encode(&session, &packet, bytes);
	for (uint32_t bit = 0; bit < PACKET_BYTES * 8; bit++) {
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		CHECK_MSG(!probe_packet_decode(&session, bytes, sizeof(bytes), 20, &back), "bit %u is not looked at", bit);
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	for (size_t length = 0; length < PACKET_BYTES; length++)
		CHECK(!probe_packet_decode(&session, bytes, length, 20, &back));
	CHECK(!probe_packet_decode(&other_job, bytes, sizeof(bytes), 20, &back));
	CHECK(!probe_packet_decode(&other_time, bytes, sizeof(bytes), 20, &back));
	CHECK(
		!probe_packet_decode(&session, bytes, sizeof(bytes), packet.from > packet.to ? packet.from : packet.to, &back));
	packet.to = packet.from;
	probe_packet_encode(&session, &packet, bytes);
	CHECK(!probe_packet_decode(&session, bytes, sizeof(bytes), 20, &back));
}

int main(int argc, char **argv)
{
	struct rng rng;

	rng_init(&rng, test_seed(argc, argv, 1));
	test_round_trip(&rng);
	test_strangers(&rng);
	return 0;
}
