#include "network/topo/grouping.h"

#include <string.h>

#include "base/check.h"
#include "base/rng.h"

static void test_from(void)
{
	struct grouping grouping, same;
	struct error err;
	uint32_t sizes[3];

	CHECK(grouping_from(&grouping, (uint32_t[]){7, 9, 7, 0, 9, 7}, 6, &err) == ESP_OK);
	CHECK(grouping.nodes == 6 && grouping.count == 3);
	CHECK(memcmp(grouping.group_of, (uint32_t[]){0, 1, 0, 2, 1, 0}, sizeof(uint32_t[6])) == 0);
	grouping_sizes(&grouping, sizes);
	CHECK(sizes[0] == 3 && sizes[1] == 2 && sizes[2] == 1);
	CHECK_U64(grouping_diversity(&grouping), 3 * (9 + 4 + 1) - 36);
	CHECK(grouping_from(&same, (uint32_t[]){3, 2, 3, UINT32_MAX, 2, 3}, 6, &err) == ESP_OK);
	CHECK(grouping_equal(&grouping, &same));
	same.group_of[5] = 1;
	CHECK(!grouping_equal(&grouping, &same));
	grouping_fini(&grouping);
	grouping_fini(&grouping);
	grouping_fini(&same);
	CHECK(grouping_init(&grouping, 4, &err) == ESP_OK && grouping.count == 1 && grouping_diversity(&grouping) == 0);
	grouping_fini(&grouping);
}

/* Sizes differ by at most one, one seed gives one grouping, and every node is in each group about equally often. */
static void test_random(uint64_t seed)
{
	struct grouping one, two;
	struct error err;
	uint32_t sizes[16], together = 0;

	for (uint32_t nodes = 1; nodes <= 16; nodes++) {
		for (uint32_t count = 1; count <= nodes; count++) {
			CHECK(grouping_random(&one, nodes, count, seed, &err) == ESP_OK &&
			      grouping_random(&two, nodes, count, seed, &err) == ESP_OK);
			CHECK(grouping_equal(&one, &two) && one.count == count && one.group_of[0] == 0);
			grouping_sizes(&one, sizes);
			for (uint32_t group = 0; group < count; group++)
				CHECK(sizes[group] == nodes / count || sizes[group] == nodes / count + 1);
			grouping_fini(&one);
			grouping_fini(&two);
		}
	}
	for (uint64_t i = 0; i < 1000; i++) {
		CHECK(grouping_random(&one, 8, 2, seed + i, &err) == ESP_OK);
		together += one.group_of[2] == one.group_of[7];
		grouping_fini(&one);
	}
	CHECK_MSG(together > 350 && together < 500, "%u of 1000, 3/7 expected", together);
	CHECK(grouping_random(&one, 4, 0, seed, &err) == ESP_EINVAL &&
	      grouping_random(&one, 4, 5, seed, &err) == ESP_EINVAL);
}

int main(int argc, char **argv)
{
	test_from();
	test_random(test_seed(argc, argv, 1));
	return 0;
}
