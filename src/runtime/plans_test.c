/*
 * plans_test.c - which plans and chunks are chosen, over random calls and groups.
 */
#include "runtime/plans.h"

#include "base/check.h"
#include "base/rng.h"

#define BUFFER (UINT64_C(8) << 20) /* small, so that some dozen members feel it */
#define CREDITS 16u
#define MEMBERS_MOST 160u

static uint32_t host_of[MEMBERS_MOST];

static struct planned *plan(const struct layout *layout, enum plan_collective collective, uint64_t bytes)
{
	struct call call = {.collective = collective, .element_bytes = 4, .block_bytes = bytes, .count = bytes / 4};
	struct planned *planned;
	struct failure failure = {0};

	enum esp_status status = plans_get(NULL, layout, &call, bytes, true, &planned, &failure);
	CHECK_MSG(status == ESP_OK, "%s", failure.text);
	return planned;
}

static struct layout draw_layout(struct rng *rng)
{
	uint32_t members = 1 + (uint32_t)rng_below(rng, rng_chance(rng, 1, 4) ? MEMBERS_MOST : 40);
	uint32_t each = 1 + (uint32_t)rng_below(rng, 3); /* members of a host */

	for (uint32_t i = 0; i < members; i++)
		host_of[i] = i / each;
	return (struct layout){
		.members = members,
		.hosts = (members + each - 1) / each,
		.host_of = host_of,
		.one_machine = rng_chance(rng, 1, 2),
		.chunk_bytes = PLANS_CHUNK,
		.buffer_bytes = BUFFER,
		.credits = CREDITS,
		.lanes = 1,
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
		const char *name = planner_name(planned->planner);
		bool is_ring = strcmp(name, "ring") == 0, is_tree = strstr(name, "tree") != NULL;
		uint64_t neighbours = is_ring || is_tree ? 0 : layout.hosts - 1; /* few */

		CHECK_MSG(planned->chunk_bytes <= PLANS_CHUNK_MOST, "%" PRIu64, planned->chunk_bytes);
		CHECK_MSG(neighbours * CREDITS * planned->chunk_bytes <= BUFFER || planned->chunk_bytes <= 4096,
		          "%s of %u: chunks of %" PRIu64, name, layout.members, planned->chunk_bytes);
		/* Around a ring between machines links have others to carry while a chunk is on its way to the next rank. */
		if (is_ring && collective == PLAN_ALLREDUCE && !layout.one_machine)
			CHECK_MSG(4 * layout.members * (planned->chunk_bytes - 64) <= bytes || planned->chunk_bytes <= 16384,
			          "%u members, %" PRIu64 " bytes: chunks of %" PRIu64, layout.members, bytes, planned->chunk_bytes);
		/* On one machine no more is under way than it takes for all ranks to have something to do. */
		if (is_ring && collective == PLAN_ALLREDUCE)
			CHECK(plan_lap(planned->plan) <= (layout.one_machine ? 1 : 4) * layout.members);
		/* Slots of shared memory have the usual size. */
		CHECK(layout.hosts == layout.members || planned->chunk_bytes <= PLANS_CHUNK);
		plans_put(planned);
	}
}

/* A setting is obeyed in every plan. */
static void as_set(void)
{
	for (uint32_t members = 2; members <= 8; members *= 2) {
		struct layout layout = {
			.members = members, .hosts = members, .host_of = host_of, .one_machine = true,
			.chunk_bytes = 1000, .chunk_is_set = true, .buffer_bytes = BUFFER, .credits = CREDITS, .lanes = 1,
		};

		for (uint64_t bytes = 1 << 16; bytes <= 1 << 26; bytes *= 4) {
			struct planned *planned = plan(&layout, PLAN_ALLREDUCE, bytes);

			CHECK_U64(planned->chunk_bytes, 1000);
			plans_put(planned);
		}
	}
}

int main(int argc, char **argv)
{
	uint64_t seed = test_seed(argc, argv, 1);

	room(seed, 400);
	as_set();
	return 0;
}
