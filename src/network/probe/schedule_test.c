#include "network/probe/schedule.h"

#include "base/check.h"
#include "base/rng.h"

/* No host twice in a round, and partners are mutual. */
static void check_round(const struct schedule *schedule, uint32_t round, uint32_t *met)
{
	uint32_t n = schedule->hosts;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t other = probe_schedule_partner(schedule, round, i);
		if (other == SCHEDULE_NONE)
			continue;
		CHECK_MSG(other < n && other != i, "%u hosts, round %u: host %u meets %u", n, round, i, other);
		CHECK_U64(probe_schedule_partner(schedule, round, other), i);
		met[(size_t)i * n + other]++;
	}
}

static uint32_t idle_hosts(const struct schedule *schedule, uint32_t round)
{
	uint32_t idle = 0;

	for (uint32_t i = 0; i < schedule->hosts; i++)
		idle += probe_schedule_partner(schedule, round, i) == SCHEDULE_NONE;
	return idle;
}

static void test_tournament(uint32_t hosts, uint64_t seed)
{
	struct schedule schedule;
	uint32_t *met = calloc((size_t)hosts * hosts + 1, sizeof(*met));

	CHECK(met && probe_schedule_tournament(hosts, seed, &schedule) == ESP_OK);
	CHECK_U64(schedule.rounds, hosts < 2 ? 0 : hosts % 2 ? hosts : hosts - 1);
	for (uint32_t r = 0; r < schedule.rounds; r++) {
		check_round(&schedule, r, met);
		CHECK_U64(idle_hosts(&schedule, r), hosts % 2);
	}
	for (uint32_t i = 0; i < hosts; i++)
		for (uint32_t j = 0; j < hosts; j++)
			CHECK_MSG(met[(size_t)i * hosts + j] == (i != j), "%u hosts: %u and %u meet %u times", hosts, i, j,
			          met[(size_t)i * hosts + j]);
	probe_schedule_fini(&schedule);
	free(met);
}

/* Other seeds put other pairs at the same time: otherwise passes would repeat each other. */
static void test_seeds_differ(void)
{
	struct schedule a, b;
	uint32_t different = 0;

	CHECK(probe_schedule_tournament(16, 1, &a) == ESP_OK && probe_schedule_tournament(16, 2, &b) == ESP_OK);
	for (uint32_t r = 0; r < a.rounds; r++) {
		uint32_t partner = probe_schedule_partner(&a, r, 0), other = 0;
		while (probe_schedule_partner(&b, other, 0) != partner)
			other++;
		for (uint32_t i = 0; i < 16; i++)
			different += probe_schedule_partner(&a, r, i) != probe_schedule_partner(&b, other, i);
	}
	CHECK(different > 15 * 8);
	probe_schedule_fini(&a);
	probe_schedule_fini(&b);
}

static void test_pairs(uint64_t seed)
{
	struct rng rng;
	struct schedule schedule;
	struct schedule_pair pairs[200];
	bool usable[41];

	rng_init(&rng, seed);
	uint32_t hosts = 2 + (uint32_t)rng_below(&rng, 39), count = (uint32_t)rng_below(&rng, 60),
	    times = 1 + (uint32_t)rng_below(&rng, 3);
	uint32_t *wanted = calloc((size_t)hosts * hosts, sizeof(*wanted)),
	    *met = calloc((size_t)hosts * hosts, sizeof(*met));
	CHECK(wanted && met);
	for (uint32_t i = 0; i < hosts; i++)
		usable[i] = !rng_chance(&rng, 1, 6);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t b = 1 + (uint32_t)rng_below(&rng, hosts - 1), a = (uint32_t)rng_below(&rng, b);
		pairs[i] = (struct schedule_pair){a, b};
		if (usable[a] && usable[b])
			wanted[(size_t)a * hosts + b] += times;
	}
	CHECK(probe_schedule_pairs(hosts, pairs, count, times, usable, seed, &schedule) == ESP_OK);
	for (uint32_t r = 0; r < schedule.rounds; r++) {
		uint32_t idle_usable = 0;
		check_round(&schedule, r, met);
		for (uint32_t i = 0; i < hosts; i++) {
			bool idle = probe_schedule_partner(&schedule, r, i) == SCHEDULE_NONE;
			CHECK_MSG(usable[i] || idle, "host %u cannot play", i);
			idle_usable += usable[i] && idle;
		}
		CHECK_MSG(idle_usable <= 1, "%u hosts sit out in round %u", idle_usable, r);
	}
	for (uint32_t i = 0; i < hosts * hosts; i++)
		CHECK(met[i] >= wanted[i]);
	probe_schedule_fini(&schedule);
	free(wanted);
	free(met);
}

static void test_bad_pairs(void)
{
	struct schedule schedule;

	CHECK(probe_schedule_pairs(4, &(struct schedule_pair){1, 1}, 1, 1, NULL, 0, &schedule) == ESP_EINVAL);
	CHECK(probe_schedule_pairs(4, &(struct schedule_pair){2, 4}, 1, 1, NULL, 0, &schedule) == ESP_EINVAL);
	CHECK(probe_schedule_pairs(4, NULL, 0, 1, NULL, 0, &schedule) == ESP_OK);
	CHECK_U64(schedule.rounds, 0);
	probe_schedule_fini(&schedule);
}

int main(int argc, char **argv)
{
	uint64_t seed = test_seed(argc, argv, 1);

	for (uint32_t hosts = 0; hosts <= 70; hosts++)
		test_tournament(hosts, seed + hosts);
	test_tournament(513, seed);
	test_seeds_differ();
	for (uint64_t i = 0; i < 300; i++)
		test_pairs(seed + i);
	test_bad_pairs();
	return 0;
}
