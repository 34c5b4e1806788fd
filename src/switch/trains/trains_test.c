/*
 * Packets between two sockets of this machine: trains of equal and unequal packets, several destinations, all in order.
 */
#include "switch/trains/trains.h"

#include <poll.h>

#include "base/check.h"
#include "base/rng.h"

#define PACKETS 3000u
#define BYTES_MOST 1400u

static union trains_address loopback(void)
{
	union trains_address address = {.v4 = {.sin_family = AF_INET}};

	address.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return address;
}

static struct trains *open_one(struct trains_peer *out)
{
	union trains_address address = loopback();
	struct trains *udp;
	struct error err;

	CHECK_MSG(trains_open(&address, &udp, &err) == ESP_OK, "%s", err.text);
	*out = (struct trains_peer){0};
	trains_bound(udp, &out->address);
	return udp;
}

struct heard {
	uint32_t count, lengths[PACKETS];
	const union trains_address *from;
};

static void hear(void *context, const struct trains_datagram *datagram)
{
	struct heard *heard = context;
	uint32_t number;

	memcpy(&number, datagram->bytes, sizeof(number));
	CHECK_U64(number, heard->count);
	CHECK_U64(datagram->length, heard->lengths[number]);
	for (uint32_t i = 4; i < datagram->length; i++)
		CHECK(datagram->bytes[i] == (uint8_t)(number + i));
	CHECK(trains_address_equal(datagram->from, heard->from, false) && !datagram->is_marked);
	heard->count++;
}

static void drain(struct trains *udp, struct heard *heard, uint32_t until)
{
	struct pollfd wait = {.fd = trains_fd(udp), .events = POLLIN};

	while (heard->count < until)
		if (!trains_receive(udp, hear, heard))
			CHECK_MSG(poll(&wait, 1, 10000) == 1, "%u of %u packets came", heard->count, until);
	CHECK(!trains_receive(udp, hear, heard));
}

/* The sender puts each packet once, and two receivers get it. */
static void test_trains(uint64_t seed)
{
	struct trains_peer own, peers[2];
	struct trains *from = open_one(&own), *to[2] = {open_one(&peers[0]), open_one(&peers[1])};
	struct heard heard[2] = {{.from = &own.address}, {.from = &own.address}};
	uint8_t packet[BYTES_MOST];
	struct rng rng;

	rng_init(&rng, seed);
	uint32_t length = BYTES_MOST;
	for (uint32_t i = 0; i < PACKETS; i++) {
		if (rng_chance(&rng, 1, 10))
			length = 8 + (uint32_t)rng_below(&rng, BYTES_MOST - 8);
		memcpy(packet, &i, 4);
		for (uint32_t at = 4; at < length; at++)
			packet[at] = (uint8_t)(i + at);
		trains_put(from, packet, 4, packet + 4, length - 4);
		for (int who = 0; who < 2; who++) {
			heard[who].lengths[i] = length;
			trains_to(from, &peers[who]);
		}
		if (i % 100 == 99) {
			trains_flush(from);
			for (int who = 0; who < 2; who++)
				drain(to[who], &heard[who], i + 1);
		}
	}
	CHECK_U64(trains_counters(from)->sent, 2 * PACKETS);
	CHECK_U64(trains_counters(from)->unsent, 0);
	CHECK_U64(trains_counters(to[0])->received, PACKETS);
	trains_close(from);
	trains_close(to[0]);
	trains_close(to[1]);
}

static void test_addresses(void)
{
	struct trains_peer own;
	struct trains *udp = open_one(&own), *second;
	union trains_address local, other = own.address;
	uint32_t mtu;
	struct error err;

	CHECK(trains_local_address(&own.address, &local, &mtu, &err) == ESP_OK && mtu >= 1500);
	CHECK(trains_address_equal(&local, &own.address, true) && !trains_address_equal(&local, &own.address, false));
	CHECK(trains_open(&other, &second, &err) == ESP_ELINK);
	trains_close(udp);
	trains_close(NULL);
}

int main(int argc, char **argv)
{
	test_trains(test_seed(argc, argv, 1));
	test_addresses();
	return 0;
}
