/*
 * plan_cache_test.c - which plans and chunks are chosen, over random calls and groups.
 */
#include "rank/comm/plan_cache.h"

#include "base/check.h"
#include "base/rng.h"
#include "plan/check.h"

#define BUFFER (UINT64_C(8) << 20) /* small, so that some dozen members feel it */
#define CREDITS 16u
#define MEMBERS_MOST 160u

static uint32_t host_of[MEMBERS_MOST];

static struct planned *plan(const struct layout *layout, enum plan_collective collective, uint64_t bytes)
{
	struct call call = {.collective = collective, .element_bytes = 4, .block_bytes = bytes, .count = bytes / 4};
	struct planned *planned;
	struct failure failure = {0};

	enum esp_status status = comm_plan_cache_get(NULL, layout, &call, bytes, true, &planned, &failure);
	CHECK_MSG(status == ESP_OK, "%s", failure.text);
	return planned;
}

static struct layout draw_layout(struct rng *rng)
{
	uint32_t members = 1 + (uint32_t)rng_below(rng, rng_chance(rng, 1, 4) ? MEMBERS_MOST : 40);
	uint32_t each = rng_chance(rng, 1, 4) ? members : 1 + (uint32_t)rng_below(rng, 3); /* members of a host */

	for (uint32_t i = 0; i < members; i++)
		host_of[i] = i / each;
	return (struct layout){
		.members = members,
		.hosts = host_of[members - 1] + 1,
		.host_of = host_of,
		.one_machine = rng_chance(rng, 1, 2),
		.chunk_bytes = PLAN_CACHE_CHUNK,
		.slot_bytes = PLAN_CACHE_CHUNK * (1 + rng_below(rng, 4)),
		.buffer_bytes = BUFFER >> rng_below(rng, 6),
		.credits = CREDITS,
		.lanes = 1 + (uint32_t)rng_below(rng, 2),
	};
}

/* Whatever all neighbours may send ahead finds room in the memory that a process may use. */
static void room(uint64_t seed, uint64_t count)
{
	struct rng rng;

	rng_init(&rng, seed);
	for (uint64_t i = 0; i < count; i++) {
		struct layout layout = draw_layout(&rng);
		enum plan_collective collective = rng_chance(&rng, 1, 2) ? PLAN_ALLREDUCE : PLAN_ALLGATHER;
		uint64_t bytes = 4 * (1 + rng_below(&rng, UINT64_C(1) << (1 + rng_below(&rng, 20))));
		struct planned *planned = plan(&layout, collective, bytes);
		const char *name = plan_planner_name(planned->planner);
		bool is_ring = strcmp(name, "ring") == 0, is_tree = strstr(name, "tree") != NULL;
		uint64_t neighbours = is_ring || is_tree ? 0 : layout.hosts > 1 ? layout.hosts - 1 : 1; /* few */

		CHECK_MSG(planned->chunk_bytes <= PLAN_CACHE_CHUNK_MOST, "%" PRIu64, planned->chunk_bytes);
		CHECK_MSG(neighbours * CREDITS * planned->chunk_bytes <= layout.buffer_bytes || planned->chunk_bytes <= 4096,
		          "%s of %u: chunks of %" PRIu64, name, layout.members, planned->chunk_bytes);
		/* Around a ring between machines links have others to carry while a chunk is on its way to the next rank. */
		uint64_t parts = planned->chunk_bytes <= 32768 ? 2 : 4; /* of each rank's share, at least */
		if (is_ring && collective == PLAN_ALLREDUCE && !layout.one_machine)
			CHECK_MSG(parts * layout.members * (planned->chunk_bytes - 64) <= bytes || planned->chunk_bytes <= 16384,
			          "%u members, %" PRIu64 " bytes: chunks of %" PRIu64, layout.members, bytes, planned->chunk_bytes);
		/* On one machine no more is under way than it takes for all ranks to have something to do. */
		if (is_ring && collective == PLAN_ALLREDUCE)
			CHECK(plan_lap(planned->plan) <= (layout.one_machine ? 1 : 4) * layout.members);
		/* Through shared memory chunks fit into its slots, and every lane of every rank has one to sum. */
		CHECK(layout.hosts == layout.members || planned->chunk_bytes <= layout.slot_bytes);
		if (layout.hosts == 1 && layout.members <= 8 && collective == PLAN_ALLREDUCE)
			CHECK(planned->chunk_bytes * layout.members * layout.lanes <=
			      bytes + UINT64_C(64) * layout.members * layout.lanes);
		comm_plan_cache_put(planned);
	}
}

/* A setting is obeyed in every plan. */
static void as_set(void)
{
	for (uint32_t members = 2; members <= 8; members *= 2) {
		struct layout layout = {
			.members = members,
			.hosts = members,
			.host_of = host_of,
			.one_machine = true,
			.chunk_bytes = 1000,
			.slot_bytes = 1000,
			.chunk_is_set = true,
			.buffer_bytes = BUFFER,
			.credits = CREDITS,
			.lanes = 1,
		};

		for (uint64_t bytes = 1 << 16; bytes <= 1 << 26; bytes *= 4) {
			struct planned *planned = plan(&layout, PLAN_ALLREDUCE, bytes);

			CHECK_U64(planned->chunk_bytes, 1000);
			comm_plan_cache_put(planned);
		}
	}
}

/*
 * Few hops where a hop is far; on one machine no rank has all the messages, and all send at a time if each has a core.
 */
static void small(void)
{
	for (uint32_t members = 4; members <= 16; members++) {
		struct layout layout = {
			.members = members,
			.hosts = members,
			.host_of = host_of,
			.chunk_bytes = PLAN_CACHE_CHUNK,
			.slot_bytes = PLAN_CACHE_CHUNK,
			.buffer_bytes = BUFFER,
			.credits = CREDITS,
			.lanes = 1,
		};
		struct plan_report far, crowded, roomy;
		struct plan_report *const reports[] = {&far, &crowded, &roomy};

		for (int i = 0; i < 3; i++) {
			layout.one_machine = i > 0;
			layout.has_cores = i > 1;
			struct planned *planned = plan(&layout, PLAN_ALLREDUCE, 4096);

			CHECK(plan_check(planned->plan, NULL, reports[i], NULL, NULL) == ESP_OK);
			comm_plan_cache_put(planned);
		}
		CHECK_U64(far.rounds, 2);
		CHECK_U64(crowded.messages, far.messages);
		CHECK(crowded.busiest_bytes <= far.busiest_bytes / 2 + 2 * 4096);
		CHECK(roomy.busiest_bytes <= crowded.busiest_bytes + 2 * 4096);
		CHECK(members < 8 || roomy.busiest_bytes < crowded.busiest_bytes);
	}
}

static struct planned *plan_on(struct plan_cache *plans, const struct layout *layout, const char *planner,
                               uint64_t bytes)
{
	struct call call = {
		.collective = PLAN_ALLREDUCE, .element_bytes = 4, .block_bytes = bytes, .count = bytes / 4,
		.planner = planner ? plan_planner_find(planner) : NULL,
	};
	struct planned *planned;
	struct failure failure = {0};

	CHECK_MSG(comm_plan_cache_get(plans, layout, &call, bytes, true, &planned, &failure) == ESP_OK, "%s", failure.text);
	return planned;
}

/*
 * Racks whose uplinks are scarce: the plan follows them, whatever the order of the ranks; a plan that was asked for is
 * that one.
 */
static void by_topology(uint32_t each)
{
	struct topology_spec spec = {.racks = 2, .hosts = 8, .rate_bits = 1000000000, .oversubscribe = 16};
	struct topology *topology;
	uint32_t place[32], members = 8 * each;

	CHECK(topology_make(&spec, &topology, NULL) == ESP_OK);
	for (uint32_t i = 0; i < members; i++) {
		host_of[i] = i % 8;
		place[i] = topology->hosts[i % 8 / 2 + i % 2 * 4]; /* even ranks in one rack, odd ones in the other */
	}
	struct layout layout = {
		.members = members, .hosts = 8, .host_of = host_of, .chunk_bytes = PLAN_CACHE_CHUNK, .buffer_bytes = BUFFER,
		.credits = CREDITS, .lanes = 1, .topology = topology, .place = place,
	};
	for (uint64_t bytes = 64; bytes <= 64 << 20; bytes *= 4) {
		struct plan_cache plans = {0};
		struct planned *chosen = plan_on(&plans, &layout, NULL, bytes), *again = plan_on(&plans, &layout, NULL, bytes);
		struct planned *two = plan_on(&plans, &layout, "two-level", bytes);
		struct planned *blind = plan_on(&plans, &layout, "flat", bytes);
		struct plan_report report;

		CHECK(chosen == again); /* kept */
		CHECK(strcmp(plan_planner_name(two->planner), "two-level") == 0 &&
		      strcmp(plan_planner_name(blind->planner), "flat") == 0);
		if (each == 1)
			for (uint32_t i = 0; i < members; i++)
				CHECK_U64(two->plan->group_of[i], i % 2);
		else
			CHECK_MSG(strstr(plan_planner_name(chosen->planner), "-level"), "%s", plan_planner_name(chosen->planner));
		if (bytes >= 4 << 20) { /* as little as can be passes between the racks */
			CHECK_MSG(strcmp(plan_planner_name(chosen->planner), each > 1 ? "three-level" : "two-level") == 0, "%s",
			          plan_planner_name(chosen->planner));
			CHECK(plan_check(chosen->plan, NULL, &report, NULL, NULL) == ESP_OK);
		}
		comm_plan_cache_put(chosen);
		comm_plan_cache_put(again);
		comm_plan_cache_put(two);
		comm_plan_cache_put(blind);
		comm_plan_cache_fini(&plans);
	}
	/* On one machine, however its ranks are told apart, there is no network. */
	layout.one_machine = true;
	struct plan_cache plans = {0};
	struct planned *planned = plan_on(&plans, &layout, NULL, 64 << 20);
	CHECK(!planned->way);
	comm_plan_cache_put(planned);
	comm_plan_cache_fini(&plans);
	topology_close(topology);
}

/*
 * Around a ring, ranks that share a core are neighbours, where cores are shared; in other plans they would only wait.
 */
static void by_cores(void)
{
	enum { MEMBERS = 8 };
	static const uint32_t order[MEMBERS] = {0, 2, 4, 6, 1, 3, 5, 7};
	struct layout layout = {
		.members = MEMBERS,
		.hosts = MEMBERS,
		.host_of = host_of,
		.one_machine = true,
		.core_order = order,
		.chunk_bytes = PLAN_CACHE_CHUNK,
		.slot_bytes = PLAN_CACHE_CHUNK,
		.buffer_bytes = BUFFER,
		.credits = CREDITS,
		.lanes = 1,
	};
	uint32_t rings = 0, others = 0;

	for (uint64_t bytes = 4; bytes <= 64 << 20; bytes *= 4) {
		struct planned *planned = plan(&layout, PLAN_ALLREDUCE, bytes);
		bool is_ring = strcmp(plan_planner_name(planned->planner), "ring") == 0;
		struct plan_report report;
		char text[PLANNED_TEXT];

		CHECK((planned->plan->order != NULL) == is_ring);
		CHECK((strstr(comm_planned_describe(planned, text), "in the order of the cores") != NULL) == is_ring);
		for (uint32_t i = 0; is_ring && i < MEMBERS; i++)
			CHECK_U64(planned->plan->order[i], order[i]);
		CHECK(plan_check(planned->plan, NULL, &report, NULL, NULL) == ESP_OK);
		rings += is_ring;
		others += !is_ring;
		comm_plan_cache_put(planned);
	}
	CHECK(rings > 0 && others > 0);
}

int main(int argc, char **argv)
{
	uint64_t seed = test_seed(argc, argv, 1);

	room(seed, 400);
	as_set();
	small();
	by_cores();
	by_topology(1);
	by_topology(4);
	return 0;
}
