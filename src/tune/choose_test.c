/*
 * choose_test.c - the way that is chosen on networks where it is plain which one it must be.
 */
#include "tune/choose.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/rng.h"

#define MBIT UINT64_C(1000000)
#define CHUNK (64u << 10)

static uint64_t chunk_of(void *context, const struct tune_way *way)
{
	static const char *const whole[] = {"central", "tree", "double-tree"};
	uint64_t share = (*(uint64_t *)context / 8 + 63) / 64 * 64;

	for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++) {
		if (strcmp(plan_planner_name(way->planner), whole[i]) == 0)
			return CHUNK;
	}
	return share < CHUNK ? share : CHUNK;
}

static const char *choose(const struct tune_menu *menu, uint64_t bytes, double *out_seconds)
{
	return plan_planner_name(tune_choose(menu, (struct tune_wish){0}, bytes, chunk_of, &bytes, out_seconds)->planner);
}

static struct tune_menu *menu_of(const struct topology_spec *spec, uint32_t nodes, bool interleaved,
                                 enum plan_collective collective, struct topology **out_topology)
{
	struct tune_menu *menu;
	struct error err;
	uint32_t *place = calloc(nodes, sizeof(*place));

	CHECK(place && topology_make(spec, out_topology, NULL) == ESP_OK);
	CHECK(topology_place(*out_topology, nodes, interleaved, place, NULL) == ESP_OK);
	struct tune_network network = {.nodes = nodes, .topology = *out_topology, .place = place};
	CHECK_MSG(tune_menu_open(&network, collective, &menu, &err) == ESP_OK, "%s", err.text);
	free(place);
	return menu;
}

/* Where uplinks are scarce, two levels or what sends as little over them; where they are not, rank order is as good. */
static void racks(void)
{
	for (int i = 0; i < 2; i++) {
		struct topology *topology;
		struct topology_spec spec = {.racks = 2, .hosts = 8, .rate_bits = 1000 * MBIT, .oversubscribe = 16};
		struct tune_menu *menu = menu_of(&spec, 8, i == 1, PLAN_ALLREDUCE, &topology);
		double scarce, plenty;
		const char *name = choose(menu, 100 << 20, &scarce);

		CHECK_MSG(strcmp(name, "two-level") == 0 || strcmp(name, "halving-doubling") == 0, "%s", name);
		CHECK_U64(menu->levels, 1);
		CHECK_U64(menu->group_count[0], 2);
		tune_menu_close(menu);
		topology_close(topology);
		spec.oversubscribe = 1;
		menu = menu_of(&spec, 8, i == 1, PLAN_ALLREDUCE, &topology);
		choose(menu, 100 << 20, &plenty);
		CHECK(plenty < scarce);
		name = choose(menu, 64, NULL); /* one chunk, so they are the same */
		CHECK_MSG(strcmp(name, "central") == 0 || strcmp(name, "flat") == 0, "%s", name);
		tune_menu_close(menu);
		topology_close(topology);
	}
}

/*
 * The list of compared ways begins with the chosen one, and goes on in order; ways of two wishes are sorted into each
 * other.
 */
static void comparing(void)
{
	struct topology *topology;
	struct topology_spec spec = {.racks = 2, .hosts = 8, .rate_bits = 100 * MBIT, .oversubscribe = 4};
	struct tune_menu *menu = menu_of(&spec, 8, true, PLAN_ALLREDUCE, &topology);
	const struct planner *ring = plan_planner_find("ring"), *flat = plan_planner_find("flat");
	struct tune_offer all[TUNE_WAYS_MOST], few[2];

	for (uint64_t bytes = 64; bytes <= 64 << 20; bytes *= 8) {
		double least;
		const struct tune_way *best = tune_choose(menu, (struct tune_wish){0}, bytes, chunk_of, &bytes, &least);
		uint32_t count = tune_compare(menu, (struct tune_wish){0}, bytes, chunk_of, &bytes, all, 0, TUNE_WAYS_MOST);

		CHECK_U64(count, menu->count);
		CHECK(all[0].way == best && !(all[0].seconds < least) && !(all[0].seconds > least));
		for (uint32_t i = 1; i < count; i++)
			CHECK(all[i].seconds >= all[i - 1].seconds);
		CHECK_U64(tune_compare(menu, (struct tune_wish){0}, bytes, chunk_of, &bytes, few, 0, 2), 2);
		CHECK(few[0].way == all[0].way && few[1].way == all[1].way);
		count = tune_compare(menu, (struct tune_wish){ring, NULL}, bytes, chunk_of, &bytes, few, 0, 2);
		count = tune_compare(menu, (struct tune_wish){flat, NULL}, bytes, chunk_of, &bytes, few, count, 2);
		CHECK_U64(count, 2);
		CHECK(few[0].way->planner != few[1].way->planner && few[0].seconds <= few[1].seconds);
	}
	tune_menu_close(menu);
	topology_close(topology);
}

/* Ranks in any order cost what ranks rack by rack do. */
static void any_placement(void)
{
	for (uint64_t bytes = 64; bytes <= 64 << 20; bytes *= 8) {
		struct topology *topologies[2];
		struct topology_spec spec = {.racks = 4, .hosts = 16, .rate_bits = 200 * MBIT, .oversubscribe = 4};
		struct tune_menu *near = menu_of(&spec, 16, false, PLAN_ALLREDUCE, &topologies[0]);
		struct tune_menu *far = menu_of(&spec, 16, true, PLAN_ALLREDUCE, &topologies[1]);
		double contiguous, interleaved;

		CHECK(strcmp(choose(near, bytes, &contiguous), choose(far, bytes, &interleaved)) == 0);
		CHECK(contiguous > interleaved * 0.999 && contiguous < interleaved * 1.001);
		tune_menu_close(near);
		tune_menu_close(far);
		topology_close(topologies[0]);
		topology_close(topologies[1]);
	}
}

/* Several ranks on a host: hosts are the finest groups. */
static void shared_hosts(void)
{
	struct topology *topology;
	struct topology_spec spec = {.racks = 2, .hosts = 4, .rate_bits = 1000 * MBIT, .oversubscribe = 4};
	struct tune_menu *menu = menu_of(&spec, 16, false, PLAN_ALLREDUCE, &topology);

	CHECK_U64(menu->levels, 2);
	CHECK_U64(menu->group_count[0], 4);
	CHECK_U64(menu->group_count[1], 2);
	uint64_t bytes = 100 << 20;
	const struct tune_way *two =
		tune_choose(menu, (struct tune_wish){plan_planner_find("two-level"), NULL}, bytes, chunk_of, &bytes, NULL);
	const struct tune_way *three =
		tune_choose(menu, (struct tune_wish){plan_planner_find("three-level"), NULL}, bytes, chunk_of, &bytes, NULL);
	CHECK(two && three && three->groups == 4 && three->zone_of);
	/* An uplink has half of a host's rate. The buffer leaves each rack once, and not once for each of its two hosts. */
	CHECK(three->load.overlapped * 125e6 < 2.01 && three->load.overlapped * 125e6 > 1.99);
	CHECK(two->load.overlapped * 125e6 > 3.99);
	tune_menu_close(menu);
	topology_close(topology);
}

/* Every collective has a menu or none, and the order is one of all nodes. */
static void collectives(void)
{
	for (int i = 0; i < PLAN_COLLECTIVE_COUNT; i++) {
		enum plan_collective collective = (enum plan_collective)i;
		bool pairwise = collective == PLAN_GATHER || collective == PLAN_SCATTER || collective == PLAN_ALLTOALL;
		struct topology *topology;
		struct topology_spec spec = {.racks = 3, .hosts = 7, .rate_bits = 1000 * MBIT, .oversubscribe = 4};
		struct tune_menu *menu = menu_of(&spec, 7, true, collective, &topology);
		uint64_t bytes = 1 << 20, seen = 0;

		CHECK((menu->count == 0) == pairwise);
		CHECK((tune_choose(menu, (struct tune_wish){0}, bytes, chunk_of, &bytes, NULL) == NULL) == pairwise);
		for (uint32_t k = 0; k < 7; k++)
			seen |= 1u << menu->order[k];
		CHECK_U64(seen, 127);
		tune_menu_close(menu);
		topology_close(topology);
	}
}

int main(void)
{
	struct rng rng;

	rng_init(&rng, 11);
	racks();
	comparing();
	any_placement();
	shared_hosts();
	collectives();
	return 0;
}
