/*
 * tag_queue_test.c - against a plain list that is searched from its beginning; and how many steps many things take.
 */
#include "rank/comm/tag_queue.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/rng.h"

enum { MANY = 10000 };

struct thing {
	struct tag_queue_node node;
	uint64_t age; /* 0: in no queue */
	struct tag_queue_key key;
};

static struct thing *of(struct tag_queue_node *node)
{
	return (struct thing *)(void *)node;
}

static const struct thing *oldest(const struct thing *things, uint32_t count, struct tag_queue_key key)
{
	const struct thing *found = NULL;

	for (uint32_t i = 0; i < count; i++) {
		bool fits = things[i].age > 0 && things[i].key.tag == key.tag && things[i].key.peer == key.peer;

		if (fits && (!found || things[i].age < found->age))
			found = &things[i];
	}
	return found;
}

static void test_like_a_list(uint64_t seed)
{
	struct thing things[200] = {0};
	struct tag_queue queue = {0};
	struct rng rng;
	uint32_t in = 0;

	rng_init(&rng, seed);
	uint64_t tags = 1 + rng_below(&rng, 60);
	for (uint64_t age = 1; age <= 2000; age++) {
		struct thing *thing = &things[rng_below(&rng, 200)];
		struct tag_queue_key key = {rng_below(&rng, tags), (uint32_t)rng_below(&rng, 3)};

		if (thing->age == 0) {
			thing->key = key;
			thing->age = age;
			comm_tag_queue_put(&queue, &thing->node, key);
			in++;
		} else if (rng_chance(&rng, 1, 2)) {
			comm_tag_queue_take(&queue, &thing->node);
			comm_tag_queue_take(&queue, &thing->node); /* once more does nothing */
			thing->age = 0;
			in--;
		}
		CHECK_U64(queue.count, in);
		CHECK(of(comm_tag_queue_find(&queue, key)) == oldest(things, 200, key));
	}
	comm_tag_queue_fini(&queue);
}

/* Every order and every kind of key: found in a few steps each, however many there are. */
static void test_steps(void)
{
	struct thing *things = calloc(MANY, sizeof(*things));

	for (unsigned kind = 0; kind < 4; kind++) {
		struct tag_queue queue = {0};

		for (uint64_t i = 0; i < MANY; i++) {
			/* Numbers, far apart; one tag of many ranks; all alike. */
			things[i].key = (struct tag_queue_key){kind == 0   ? i
			                                       : kind == 1 ? i << 40
			                                                   : 7,
			                                       kind == 2 ? (uint32_t)i : 0};
			comm_tag_queue_put(&queue, &things[i].node, things[i].key);
		}
		for (uint32_t i = MANY; i-- > 0;) { /* the last first */
			struct tag_queue_node *node = comm_tag_queue_find(&queue, things[i].key);

			CHECK(of(node) == &things[kind == 3 ? MANY - 1 - i : i]);
			comm_tag_queue_take(&queue, node);
		}
		CHECK_U64(queue.count, 0);
		CHECK_MSG(queue.steps < 4 * MANY, "%llu steps for %d things", (unsigned long long)queue.steps, MANY);
		comm_tag_queue_fini(&queue);
	}
	free(things);
}

int main(int argc, char **argv)
{
	uint64_t seed = test_option(argc, argv, "--seed", 1);

	for (uint64_t i = 0; i < 50; i++)
		test_like_a_list(seed + i);
	test_steps();
	return 0;
}
