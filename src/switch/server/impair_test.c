/*
 * Faults by a seed: the same again from the same seed, in the shares that were asked for, and each packet once or
 * twice.
 */
#include "switch/server/impair.h"

#include "base/check.h"

#define PACKETS 20000u
#define MS UINT64_C(1000000)

struct heard {
	uint32_t times[PACKETS];
	uint32_t total, changed, backwards, last;
};

static void hear(void *context, const struct trains_datagram *datagram)
{
	struct heard *heard = context;
	uint32_t number, copy;

	CHECK(datagram->length == 8);
	memcpy(&number, datagram->bytes, 4);
	memcpy(&copy, datagram->bytes + 4, 4);
	heard->total++;
	if (number != copy) {
		heard->changed++;
		return;
	}
	CHECK(number < PACKETS);
	heard->times[number]++;
	heard->backwards += number < heard->last;
	heard->last = number;
}

static void run(const struct impair_config *config, struct heard *heard)
{
	union trains_address from = {.v4 = {.sin_family = AF_INET}};
	struct impair impair;

	*heard = (struct heard){0};
	switch_impair_init(&impair, config);
	for (uint32_t i = 0; i < PACKETS; i++) {
		uint8_t bytes[8];
		memcpy(bytes, &i, 4);
		memcpy(bytes + 4, &i, 4);
		switch_impair_release(&impair, i * MS, hear, heard);
		switch_impair_arrival(&impair, &(struct trains_datagram){.bytes = bytes, .length = 8, .from = &from}, i * MS,
		                      hear, heard);
	}
	switch_impair_release(&impair, UINT64_MAX - 1, hear, heard);
	CHECK(switch_impair_due_ns(&impair) == UINT64_MAX);
	CHECK(heard->total == PACKETS - impair.lost + impair.repeated);
	CHECK(heard->changed >= impair.corrupted && heard->changed <= 2 * impair.corrupted);
	switch_impair_fini(&impair);
}

static void check_share(uint32_t count, double share)
{
	CHECK_MSG(count > 0.8 * share * PACKETS && count < 1.2 * share * PACKETS, "%u of %u, not %g", count, PACKETS,
	          share);
}

int main(int argc, char **argv)
{
	static struct heard heard, again;
	uint64_t seed = test_seed(argc, argv, 1);
	uint32_t lost = 0, twice = 0;

	run(&(struct impair_config){.seed = seed}, &heard);
	CHECK(heard.total == PACKETS && heard.backwards == 0);
	run(&(struct impair_config){.seed = seed, .delay_ns = 3 * MS}, &heard);
	CHECK(heard.total == PACKETS && heard.backwards == 0); /* later, and in order */
	run(&(struct impair_config){.seed = seed, .reorder = 0.2}, &heard);
	CHECK(heard.total == PACKETS && heard.backwards > PACKETS / 50);
	run(&(struct impair_config){.seed = seed, .loss = 0.1, .repeat = 0.1, .corrupt = 0.1}, &heard);
	for (uint32_t i = 0; i < PACKETS; i++) {
		lost += heard.times[i] == 0;
		twice += heard.times[i] == 2;
	}
	check_share(heard.changed, 0.1 * 0.9 * 1.1);
	check_share(twice, 0.1 * 0.9 * 0.9);
	check_share(lost, 0.1 + 0.9 * 0.1);
	run(&(struct impair_config){.seed = seed, .loss = 0.1, .repeat = 0.1, .corrupt = 0.1}, &again);
	CHECK(memcmp(&heard, &again, sizeof(heard)) == 0);
	return 0;
}
