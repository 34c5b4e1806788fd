#include "sim/stand.h"

#include <string.h>

#include "base/check.h"
#include "base/rng.h"

#define MOST 64u

static struct plan *open_plan(const char *planner, const uint32_t *group_of, uint32_t workers, uint32_t servers)
{
	struct plan_spec spec = {
		.chunks = {.collective = PLAN_ALLREDUCE, .workers = workers, .bytes = 1000},
		.group_of = group_of,
		.servers = servers,
	};
	struct plan *plan;

	CHECK(plan_open(plan_planner_find(planner), &spec, &plan, NULL) == ESP_OK);
	return plan;
}

/*
 * A topology made for a plan: a rack for each group, a host for each machine, switches where they belong, servers with
 * their own rates.
 */
static void test_made(uint64_t seed)
{
	static const char *const planners[] = {"ring",       "central",     "hub",      "switch",
	                                       "switch-sum", "ring-switch", "two-level"};
	uint32_t group_of[MOST], place[MOST];
	struct topology_spec links = {.rate_bits = 8000, .server_bits = 16000};
	struct topology *topology;
	struct rng rng;

	rng_init(&rng, seed);
	uint32_t workers = 1 + (uint32_t)rng_below(&rng, 20), groups = 1 + (uint32_t)rng_below(&rng, workers);
	for (uint32_t i = 0; i < workers; i++)
		group_of[i] = i < groups ? i : (uint32_t)rng_below(&rng, groups);
	struct plan *plan = open_plan(planners[rng_below(&rng, 7)], group_of, workers, (uint32_t)rng_below(&rng, 4));
	uint32_t machines = plan->nodes - plan->switches;

	CHECK(sim_stand_topology(plan, &links, &topology, NULL) == ESP_OK);
	CHECK(topology->host_count == machines);
	CHECK(sim_stand_nodes(plan, topology, NULL, place, NULL) == ESP_OK);
	for (uint32_t i = 0; i < plan->nodes; i++) {
		const struct topology_vertex *vertex = &topology->vertices[place[i]];

		CHECK(vertex->is_host == (i < machines));
		if (vertex->is_host)
			CHECK(topology->links[vertex->first_link].rate == (i < workers ? 1000 : 2000));
		for (uint32_t k = 0; k < i; k++) {
			bool is_top = plan->switches > 1 && i + 1 == plan->nodes;

			CHECK(i >= machines || place[k] != place[i]); /* a host each */
			if (!is_top) /* in one rack if and only if in one group */
				CHECK((topology_rack(topology, place[i]) == topology_rack(topology, place[k])) ==
				      (plan->group_of[i] == plan->group_of[k]));
		}
	}
	if (plan->switches > 1)
		CHECK(place[plan->nodes - 1] == topology_root(topology));
	topology_close(topology);
	plan_close(plan);
}

/* On a topology that is given, servers take the hosts that are left, and share when there are none. */
static void test_given(void)
{
	static const char text[] = "topology 1\nswitch s\nhosts 5 under s rate 1gbit\n";
	struct plan *plan = open_plan("switch", NULL, 4, 3);
	uint32_t workers[4], place[8];
	struct topology *topology;

	CHECK(topology_parse(text, strlen(text), &topology, NULL) == ESP_OK);
	CHECK(topology_place(topology, 4, false, workers, NULL) == ESP_OK);
	CHECK(sim_stand_nodes(plan, topology, workers, place, NULL) == ESP_OK);
	CHECK(memcmp(place, workers, sizeof(workers)) == 0);
	CHECK(place[4] == topology->hosts[4] && place[5] == topology->hosts[0] && place[6] == topology->hosts[1]);
	CHECK(place[7] == topology_root(topology));
	topology_close(topology);
	plan_close(plan);
}

int main(void)
{
	for (uint64_t seed = 1; seed <= 300; seed++)
		test_made(seed);
	test_given();
	return 0;
}
