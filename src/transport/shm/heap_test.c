/*
 * heap_test.c - the heap beside a plain map of its pages.
 *
 *     heap_test [--seed FIRST] [--count N]
 */
#include "transport/shm/heap.h"

#include "base/check.h"
#include "base/rng.h"

#define PAGES 200u
#define HELD 64u

struct model {
	bool taken[PAGES];
	uint64_t first[HELD], pages[HELD];
	uint32_t held;
};

/* Where first fit must put it; PAGES: nowhere. */
static uint64_t first_fit(const struct model *model, uint64_t pages, uint64_t align, uint64_t after)
{
	for (uint64_t first = after; first + pages <= PAGES; first += align) {
		uint64_t run = 0;

		while (run < pages && !model->taken[first + run])
			run++;
		if (run == pages)
			return first;
	}
	return PAGES;
}

static void mark(struct model *model, uint64_t first, uint64_t pages, bool taken)
{
	for (uint64_t i = first; i < first + pages; i++) {
		CHECK(model->taken[i] != taken);
		model->taken[i] = taken;
	}
}

static void take(struct heap *heap, struct model *model, uint64_t pages, uint64_t align, uint64_t after)
{
	uint64_t expected = first_fit(model, pages, align, after), first = PAGES;
	bool fits = shm_heap_take(heap, pages, align, after, &first);

	CHECK(fits == (expected < PAGES));
	CHECK_U64(first, expected);
	if (!fits)
		return;
	mark(model, first, pages, true);
	model->first[model->held] = first;
	model->pages[model->held++] = pages;
}

static void give(struct heap *heap, struct model *model, uint32_t which, uint64_t back)
{
	uint64_t first = model->first[which], pages = model->pages[which];

	CHECK_U64(shm_heap_taken(heap, first), pages);
	for (uint64_t i = 0; i < back && first > 0 && !model->taken[first - 1]; i++, pages++)
		mark(model, --first, 1, true);
	CHECK_U64(shm_heap_reach_back(heap, model->first[which], back), first);
	CHECK_U64(shm_heap_taken(heap, first), pages);
	shm_heap_give(heap, first);
	CHECK_U64(shm_heap_taken(heap, first), 0);
	mark(model, first, pages, false);
	model->held--;
	model->first[which] = model->first[model->held];
	model->pages[which] = model->pages[model->held];
}

static void run_seed(uint64_t seed)
{
	struct heap heap;
	struct model model = {0};
	struct rng rng;

	rng_init(&rng, seed);
	shm_heap_init(&heap, PAGES);
	uint64_t most = 1 + rng_below(&rng, PAGES + 5);
	for (int step = 0; step < 500; step++) {
		uint64_t align = UINT64_C(1) << rng_below(&rng, 4);

		if (model.held < HELD && rng_chance(&rng, 3, 5))
			take(&heap, &model, 1 + rng_below(&rng, 1 + rng_below(&rng, most)), align, rng_below(&rng, align));
		else if (model.held > 0)
			give(&heap, &model, (uint32_t)rng_below(&rng, model.held), rng_chance(&rng, 1, 2) ? rng_below(&rng, 9) : 0);
	}
	for (uint64_t i = 0; i < PAGES; i++) {
		bool begins = false;

		for (uint32_t k = 0; k < model.held; k++)
			begins |= model.first[k] == i;
		CHECK((shm_heap_taken(&heap, i) > 0) == begins);
	}
	while (model.held > 0)
		give(&heap, &model, 0, 0);
	take(&heap, &model, PAGES, 1, 0); /* all of it has grown together again */
	shm_heap_fini(&heap);
}

static void at_the_limits(void)
{
	struct heap heap;
	uint64_t first;

	shm_heap_init(&heap, 0);
	CHECK(!shm_heap_take(&heap, 1, 1, 0, &first));
	shm_heap_fini(&heap);
	shm_heap_init(&heap, 4);
	CHECK(!shm_heap_take(&heap, UINT64_MAX, 1, 0, &first) && !shm_heap_take(&heap, 5, 1, 0, &first));
	CHECK(shm_heap_take(&heap, 4, 1, 0, &first) && first == 0);
	CHECK(!shm_heap_take(&heap, 1, 1, 0, &first));
	shm_heap_fini(&heap);
	shm_heap_fini(&heap);
}

int main(int argc, char **argv)
{
	uint64_t first = test_option(argc, argv, "--seed", 1), count = test_option(argc, argv, "--count", 200);

	at_the_limits();
	for (uint64_t seed = first; seed - first < count; seed++) {
		printf("seed %" PRIu64 "\n", seed);
		run_seed(seed);
	}
	return 0;
}
