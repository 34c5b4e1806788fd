#include "base/vec.h"

#include "base/check.h"
#include "base/rng.h"

#define ITEMS 5000u

struct item {
	uint64_t number;
	char rest[13];
};

/* Items keep their values, the room at least doubles, and a call for room that is there changes nothing. */
static void test_growing(struct rng *rng)
{
	struct item *items = NULL;
	size_t room = 0, count = 0, steps = 0;

	CHECK(vec_reserve(&items, &room, 0, sizeof(*items)) && !items && room == 0);
	while (count < ITEMS) {
		const struct item *before = items;
		size_t old = room, more = 1 + rng_below(rng, 3);

		CHECK(vec_reserve(&items, &room, count + more, sizeof(*items)));
		CHECK(room >= count + more);
		CHECK(room == old ? items == before : room >= 2 * old);
		steps += room != old;
		for (; more > 0; more--, count++)
			items[count] = (struct item){.number = count * count};
	}
	for (size_t i = 0; i < count; i++)
		CHECK_U64(items[i].number, i * i);
	CHECK(steps <= 13); /* 2^13 > ITEMS */
	free(items);
}

/* One call may need more than twice the room. */
static void test_leap(void)
{
	char *text = NULL;
	size_t room = 0;

	CHECK(vec_reserve(&text, &room, 1000, sizeof(*text)) && room >= 1000);
	memset(text, 'a', room);
	CHECK(vec_reserve(&text, &room, 1000000, sizeof(*text)) && room >= 1000000);
	memset(text + 1000, 'b', room - 1000);
	CHECK(text[0] == 'a' && text[999] == 'a');
	free(text);
}

/* Arrays of other items that are grown alike have the same room. */
static void test_alike(struct rng *rng)
{
	struct item *items = NULL;
	char *letters = NULL;
	size_t item_room = 0, letter_room = 0;

	for (size_t needed = 0; needed < ITEMS; needed += rng_below(rng, 40)) {
		CHECK(vec_reserve(&items, &item_room, needed, sizeof(*items)));
		CHECK(vec_reserve(&letters, &letter_room, needed, sizeof(*letters)));
		CHECK_U64(letter_room, item_room);
	}
	free(items);
	free(letters);
}

static void expect_refused(uint64_t **items, size_t *room, size_t needed)
{
	const uint64_t *before = *items;
	size_t old = *room;

	CHECK(!vec_reserve(items, room, needed, sizeof(**items)));
	CHECK(*items == before && *room == old);
}

/* Sizes that no memory has, and those whose bytes size_t does not count: the array stays as it was. */
static void test_refused(void)
{
	uint64_t *items = NULL;
	size_t room = 0;

	expect_refused(&items, &room, SIZE_MAX);
	CHECK(vec_reserve(&items, &room, 3, sizeof(*items)));
	items[2] = 7;
	expect_refused(&items, &room, SIZE_MAX);
	expect_refused(&items, &room, SIZE_MAX / sizeof(*items) + 1); /* the product wraps to 0 */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* they end the process instead */
	expect_refused(&items, &room, SIZE_MAX / sizeof(*items));     /* more than malloc() gives */
#endif
	CHECK_U64(items[2], 7);
	free(items);
}

int main(int argc, char **argv)
{
	struct rng rng;

	rng_init(&rng, test_seed(argc, argv, 1));
	test_growing(&rng);
	test_leap();
	test_alike(&rng);
	test_refused();
	return 0;
}
