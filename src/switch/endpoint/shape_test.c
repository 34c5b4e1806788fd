/*
 * Shapes of all sorts against the definition: contributors of an owner, counted one by one.
 */
#include "switch/endpoint/shape.h"

#include "base/check.h"
#include "base/rng.h"

struct drawn {
	uint16_t group_of[200];
	uint32_t members, levels;
};

static void draw(struct drawn *drawn, struct rng *rng)
{
	uint64_t groups = 1 + rng_below(rng, 12);

	drawn->members = 1 + (uint32_t)rng_below(rng, 60);
	drawn->levels = 1 + (uint32_t)rng_below(rng, 2);
	for (uint32_t i = 0; i < drawn->members; i++)
		drawn->group_of[i] = (uint16_t)(rng_below(rng, groups) * 5);
}

/* Walks over groups and members as the header says, and compares what it counts. */
static void check_owner(const struct drawn *drawn, const struct shape *shape, uint16_t owner)
{
	uint32_t order = 0, groups = 0;

	for (uint16_t given = 0; given < ATP_CHILDREN_MAX; given++) {
		uint32_t child = 0, first = order;
		for (uint16_t member = 0; member < drawn->members; member++) {
			uint16_t back = UINT16_MAX;
			if (drawn->group_of[member] != given || member == owner)
				continue;
			struct shape_place place = shape_place(shape, owner, member);
			CHECK_U64(place.group, groups);
			CHECK_U64(place.child, child);
			CHECK_U64(place.order, order);
			CHECK(shape_member(shape, owner, (uint16_t)groups, (uint8_t)child, &back) && back == member);
			child++, order++;
		}
		if (child == 0)
			continue;
		struct shape_group group = shape_group(shape, owner, (uint16_t)groups++);
		CHECK_U64(group.fan_in, child);
		CHECK_U64(group.order, first);
	}
	uint16_t none;
	CHECK(shape_group(shape, owner, (uint16_t)groups).fan_in == 0 &&
	      !shape_member(shape, owner, (uint16_t)groups, 0, &none));
	for (uint16_t member = 0; member < drawn->members; member++)
		if (member != owner) {
			struct shape_place place = shape_place(shape, owner, member);
			CHECK_U64(place.fan_in[1], drawn->levels == 2 ? groups : 0);
			CHECK_U64(place.fan_in[0], shape_group(shape, owner, place.group).fan_in);
			CHECK(!shape_member(shape, owner, place.group, place.fan_in[0], &none));
		}
}

static void test_drawn(struct rng *rng)
{
	struct drawn drawn;
	struct shape *shape;
	struct error err;

	for (int i = 0; i < 300; i++) {
		draw(&drawn, rng);
		CHECK(shape_open(drawn.group_of, drawn.members, drawn.levels, &shape, &err) == ESP_OK);
		CHECK_U64(shape_members(shape), drawn.members);
		for (uint16_t owner = 0; owner <= drawn.members; owner++)
			check_owner(&drawn, shape, owner);
		shape_close(shape);
	}
}

static void test_fits(void)
{
	static const uint16_t groups[] = {0, 0, 1, 1, 1};
	struct atp_packet packet = {.type = ATP_GRADIENT, .fan_in = {1, 2}, .bitmap = 1, .owner = 1};
	struct shape *shape;
	struct error err;

	CHECK(shape_open(groups, 5, 2, &shape, &err) == ESP_OK);
	CHECK(shape_fits(shape, &packet));
	packet.group = 1;
	CHECK(!shape_fits(shape, &packet));
	packet.fan_in[0] = 3;
	CHECK(shape_fits(shape, &packet));
	packet.owner = 2;
	CHECK(!shape_fits(shape, &packet));
	packet.fan_in[1] = 0;
	CHECK(!shape_fits(shape, &packet));
	packet = (struct atp_packet){.type = ATP_GRADIENT, .hop = 1, .fan_in = {0, 2}, .bitmap = 3, .owner = 9};
	CHECK(shape_fits(shape, &packet));
	shape_close(shape);
}

static void test_refused(void)
{
	uint16_t groups[65] = {0};
	struct shape *shape = NULL;
	struct error err;

	CHECK(shape_open(groups, 65, 1, &shape, &err) == ESP_EINVAL);
	CHECK(shape_open(groups, 0, 1, &shape, &err) == ESP_EINVAL);
	CHECK(shape_open(groups, 2, 3, &shape, &err) == ESP_EINVAL);
	groups[1] = 64;
	CHECK(shape_open(groups, 2, 1, &shape, &err) == ESP_EINVAL && shape == NULL);
}

int main(int argc, char **argv)
{
	struct rng rng;

	rng_init(&rng, test_seed(argc, argv, 1));
	test_drawn(&rng);
	test_fits();
	test_refused();
	return 0;
}
