/* Hosts in virtual time: the network's time is measured exactly, whatever hosts, clocks and the network do. */
#include "network/probe/echo.h"

#include <math.h>

#include "base/check.h"
#include "base/rng.h"

#define FLIGHTS 64u
#define HOSTS 3u

struct flight {
	bool used;
	uint32_t to;
	uint64_t at; /* true time */
	uint8_t bytes[PACKET_BYTES];
};

struct world {
	struct rng rng;
	uint64_t now;
	struct echo hosts[HOSTS];
	uint64_t clock[HOSTS]; /* how much a host's clock is ahead */
	struct samples samples[HOSTS];
	struct flight flights[FLIGHTS];
	uint64_t one_way, jitter;
	uint32_t loss, twice; /* of 100 */
	bool kernel_stamps;
	uint32_t train;
	uint64_t gap_ns;
};

static const uint8_t key[PACKET_KEY_BYTES] = {1};
static const uint8_t nonce[PACKET_NONCE_BYTES] = {2};
static struct packet_session session;

static uint64_t stamp(const struct world *world, uint32_t host)
{
	return world->now + world->clock[host];
}

static void fly(struct world *world, uint32_t to, const uint8_t *bytes)
{
	uint32_t copies = rng_chance(&world->rng, world->loss, 100) ? 0 : rng_chance(&world->rng, world->twice, 100)
	                  ? 2 : 1;

	for (uint32_t i = 0; i < FLIGHTS && copies > 0; i++) {
		struct flight *flight = &world->flights[i];
		if (flight->used)
			continue;
		*flight = (struct flight){true, to, world->now + world->one_way, {0}};
		if (world->jitter)
			flight->at += rng_below(&world->rng, world->jitter);
		memcpy(flight->bytes, bytes, PACKET_BYTES);
		copies--;
	}
}

/* A process takes time between receiving a packet and sending one; the kernel's stamps do not include it. */
static void send_late(struct world *world, uint32_t host, uint32_t to, const uint8_t *bytes)
{
	uint64_t late = 5000 + rng_below(&world->rng, 50000);

	world->now += late;
	if (world->kernel_stamps)
		probe_echo_left(&world->hosts[host], bytes, PACKET_BYTES, stamp(world, host));
	fly(world, to, bytes);
	world->now -= late;
}

static void arrive(struct world *world, struct flight *flight)
{
	uint8_t out[PACKET_BYTES];
	uint32_t host = flight->to;
	uint64_t arrived = stamp(world, host);
	struct packet packet;

	flight->used = false;
	CHECK(probe_packet_decode(&session, flight->bytes, PACKET_BYTES, HOSTS, &packet));
	if (probe_echo_receive(&world->hosts[host], flight->bytes, PACKET_BYTES, arrived, arrived, out))
		send_late(world, host, packet.from, out);
}

/* Runs the next event; false: there is none. */
static bool run_event(struct world *world)
{
	uint8_t out[PACKET_BYTES];
	uint64_t next = ECHO_NEVER;
	struct flight *first = NULL;

	for (uint32_t h = 0; h < HOSTS; h++) {
		uint64_t wake;
		if (probe_echo_ask(&world->hosts[h], world->now, stamp(world, h), out, &wake)) {
			send_late(world, h, world->hosts[h].partner, out);
			return true;
		}
		next = wake < next ? wake : next;
	}
	for (uint32_t i = 0; i < FLIGHTS; i++)
		if (world->flights[i].used && (!first || world->flights[i].at < first->at))
			first = &world->flights[i];
	if (first && first->at <= next) {
		world->now = first->at > world->now ? first->at : world->now;
		arrive(world, first);
		return true;
	}
	world->now = next == ECHO_NEVER ? world->now : next;
	return next != ECHO_NEVER;
}

static void start(struct world *world, uint64_t seed)
{
	*world = (struct world){.now = 1000000, .one_way = 20000, .kernel_stamps = true};
	rng_init(&world->rng, seed);
	probe_packet_session_init(&session, key, nonce);
	for (uint32_t h = 0; h < HOSTS; h++) {
		probe_echo_init(&world->hosts[h], &session, HOSTS, h);
		world->clock[h] = rng_below(&world->rng, UINT64_C(1) << 50);
	}
}

static void play(struct world *world, uint32_t round, uint32_t most)
{
	const struct echo_pace pace = {.asks = most, .train = world->train, .gap_ns = world->gap_ns,
	                               .patience_ns = 10000000};

	for (uint32_t h = 0; h < 2; h++)
		probe_echo_begin(&world->hosts[h], round, 1 - h, &pace, &world->samples[h]);
	for (uint32_t i = 0; run_event(world); i++)
		CHECK_MSG(i < 100000, "it never ends");
}

static void stop(struct world *world)
{
	for (uint32_t h = 0; h < HOSTS; h++)
		probe_samples_fini(&world->samples[h]);
}

/* Clocks that differ by days, and slow processes, do not affect the result. */
static void test_exact(uint64_t seed)
{
	struct world world;

	start(&world, seed);
	play(&world, 1, 50);
	for (uint32_t h = 0; h < 2; h++) {
		CHECK_U64(world.samples[h].count, 49);
		for (uint32_t i = 0; i < world.samples[h].count; i++)
			CHECK_MSG(fabs(world.samples[h].at[i] - 40e-6) < 1e-9, "%.9f", world.samples[h].at[i]);
	}
	stop(&world);
}

/* Trains are as far apart as requested, also when packets are lost; each sample is as good as without a pause. */
static void test_trains(uint64_t seed)
{
	struct world world;

	start(&world, seed);
	world.train = 4;
	world.gap_ns = 50000000;
	uint64_t begin = world.now;
	play(&world, 1, 40);
	CHECK_MSG(world.now - begin >= 9 * world.gap_ns && world.now - begin < 10 * world.gap_ns, "%llu ns",
	          (unsigned long long)(world.now - begin));
	for (uint32_t h = 0; h < 2; h++) {
		CHECK_U64(world.samples[h].count, 39);
		for (uint32_t i = 0; i < world.samples[h].count; i++)
			CHECK_MSG(fabs(world.samples[h].at[i] - 40e-6) < 1e-9, "%.9f", world.samples[h].at[i]);
	}
	world.loss = 30;
	begin = world.now;
	play(&world, 2, 40);
	CHECK(world.now - begin >= 9 * world.gap_ns && world.samples[0].count > 39);
	stop(&world);
}

/* With the process's stamps its own time is included, but no sample is less than the network's time. */
static void test_process_stamps(uint64_t seed)
{
	struct world world;

	start(&world, seed);
	world.kernel_stamps = false;
	for (uint32_t h = 0; h < HOSTS; h++)
		world.clock[h] = 0;
	play(&world, 1, 50);
	for (uint32_t h = 0; h < 2; h++)
		for (uint32_t i = 0; i < world.samples[h].count; i++)
			CHECK(world.samples[h].at[i] >= 40e-6 - 1e-9 && world.samples[h].at[i] < 200e-6);
	stop(&world);
}

/* Lost, duplicated and overtaken packets cost samples and never make a wrong one. */
static void test_rough(uint64_t seed)
{
	struct world world;

	start(&world, seed);
	world.loss = 20;
	world.twice = 20;
	world.jitter = 3000;
	play(&world, 1, 100);
	play(&world, 2, 100);
	for (uint32_t h = 0; h < 2; h++) {
		CHECK(world.samples[h].count > 20);
		CHECK(world.hosts[h].lost > 0);
		for (uint32_t i = 0; i < world.samples[h].count; i++)
			CHECK(world.samples[h].at[i] >= 40e-6 - 1e-9 && world.samples[h].at[i] <= 46e-6 + 1e-9);
	}
	stop(&world);
}

/*
 * A host with the key may claim any time for which it kept a request: no sample is 0, negative, or longer than
 * the actual wait.
 */
static void test_lies(struct rng *rng)
{
	static const uint64_t lies[] = {0, 1, 39999, 40000, 40001, UINT64_C(1) << 32, UINT64_C(1) << 63, UINT64_MAX};
	struct world world;
	uint8_t request[PACKET_BYTES], reply[PACKET_BYTES], out[PACKET_BYTES];
	const struct echo_pace pace = {.asks = 1000, .patience_ns = 1000000};
	struct packet packet;
	uint64_t wake;

	start(&world, 1);
	probe_echo_begin(&world.hosts[0], 1, 1, &pace, &world.samples[0]);
	for (uint64_t now = 1000000;; now += 50000) {
		if (!probe_echo_ask(&world.hosts[0], now, now, request, &wake)) {
			if (wake == ECHO_NEVER)
				break;
			now = wake; /* an answer with an impossible time is none */
			continue;
		}
		CHECK(probe_echo_receive(&world.hosts[1], request, PACKET_BYTES, now, now, reply));
		CHECK(probe_packet_decode(&session, reply, PACKET_BYTES, HOSTS, &packet));
		packet.turnaround_ns = rng_chance(rng, 1, 4)
		                       ? rng_next(rng) : lies[rng_below(rng, sizeof(lies) / sizeof(lies[0]))];
		if (rng_chance(rng, 1, 4))
			packet.before = (uint32_t)rng_next(rng);
		probe_packet_encode(&session, &packet, reply);
		CHECK(!probe_echo_receive(&world.hosts[0], reply, PACKET_BYTES, now + 40000, now + 40000, out));
	}
	CHECK_MSG(world.samples[0].count > 0 && world.samples[0].count < 1000, "%u samples", world.samples[0].count);
	for (uint32_t i = 0; i < world.samples[0].count; i++)
		CHECK_MSG(world.samples[0].at[i] > 0 && world.samples[0].at[i] < 40e-6 + 1e-12, "%g", world.samples[0].at[i]);
	stop(&world);
}

/* A reply after its round is over, or from a host that was not asked. */
static void test_late(void)
{
	struct world world;
	uint8_t request[PACKET_BYTES], reply[PACKET_BYTES], out[PACKET_BYTES];
	const struct echo_pace pace = {.asks = 5, .patience_ns = 1000};
	uint64_t wake;

	start(&world, 1);
	probe_echo_begin(&world.hosts[0], 1, 1, &pace, &world.samples[0]);
	CHECK(probe_echo_ask(&world.hosts[0], 10, 10, request, &wake));
	CHECK(!probe_echo_receive(&world.hosts[2], request, PACKET_BYTES, 10, 10, out)); /* for host 1 */
	CHECK(probe_echo_receive(&world.hosts[1], request, PACKET_BYTES, 10, 10, reply));
	probe_echo_begin(&world.hosts[0], 2, 2, &pace, &world.samples[0]);
	CHECK(probe_echo_ask(&world.hosts[0], 20, 20, request, &wake));
	CHECK(!probe_echo_receive(&world.hosts[0], reply, PACKET_BYTES, 30, 30, out));
	CHECK(world.hosts[0].waits && !world.hosts[0].has_half);
	stop(&world);
}

static void test_quantiles(void)
{
	struct samples samples = {0};

	CHECK(isnan(probe_samples_quantile(&samples, 0.5)));
	for (uint32_t i = 0; i < 2 * SAMPLES_MOST; i++)
		probe_samples_add(&samples, (double)((i * 7919u) % SAMPLES_MOST));
	CHECK_U64(samples.count, SAMPLES_MOST);
	CHECK(probe_samples_quantile(&samples, 0) == 0 && probe_samples_quantile(&samples, 1) == SAMPLES_MOST - 1);
	CHECK(fabs(probe_samples_quantile(&samples, 0.5) - SAMPLES_MOST / 2.0) <= 1);
	probe_samples_fini(&samples);
}

int main(int argc, char **argv)
{
	uint64_t seed = test_seed(argc, argv, 1);

	for (uint64_t i = 0; i < 50; i++) {
		test_exact(seed + i);
		test_process_stamps(seed + i);
		test_trains(seed + i);
		test_rough(seed + i);
	}
	struct rng rng;
	rng_init(&rng, seed);
	test_lies(&rng);
	test_late();
	test_quantiles();
	return 0;
}
