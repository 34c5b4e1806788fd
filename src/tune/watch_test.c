#include "tune/watch.h"

#include "base/check.h"
#include "base/rng.h"

static void settle(struct tune_watch *watch, uint64_t cost)
{
	CHECK(tune_watch_step(watch, cost, false) == TUNE_SETTLING);
	CHECK(tune_watch_step(watch, cost, false) == TUNE_STEADY);
}

static void test_both_ways(void)
{
	struct tune_watch watch;

	tune_watch_init(&watch);
	settle(&watch, 1000);
	CHECK(tune_watch_step(&watch, 1190, false) == TUNE_STEADY);
	CHECK(tune_watch_step(&watch, 1300, false) == TUNE_DOUBT);
	CHECK(tune_watch_step(&watch, 1300, false) == TUNE_SLOWER);
	tune_watch_changed(&watch);
	settle(&watch, 1100);
	for (int i = 0; i < 16; i++)
		CHECK(tune_watch_step(&watch, 1100, false) == TUNE_STEADY);
	CHECK(tune_watch_step(&watch, 900, false) == TUNE_DOUBT);
	CHECK(tune_watch_step(&watch, 900, false) == TUNE_FASTER);
}

static void test_one_window_is_none(void)
{
	struct tune_watch watch;

	tune_watch_init(&watch);
	settle(&watch, 1000);
	for (int i = 0; i < 100; i++) {
		CHECK(tune_watch_step(&watch, 5000, false) == TUNE_DOUBT);
		CHECK(tune_watch_step(&watch, 1000, false) == TUNE_STEADY);
	}
	/* Now slower, now faster: neither lasts. */
	for (int i = 0; i < 100; i++) {
		CHECK(tune_watch_step(&watch, 2000, false) == TUNE_DOUBT);
		CHECK(tune_watch_step(&watch, 500, false) == TUNE_DOUBT);
	}
}

static void test_shift(void)
{
	struct tune_watch watch;

	tune_watch_init(&watch);
	settle(&watch, 1000);
	CHECK(tune_watch_step(&watch, 900, true) == TUNE_DOUBT);
	CHECK(tune_watch_step(&watch, 820, true) == TUNE_FASTER || watch.doubts == 0);
	tune_watch_init(&watch);
	settle(&watch, 1000);
	CHECK(tune_watch_step(&watch, 1000, true) == TUNE_DOUBT);
	CHECK(tune_watch_step(&watch, 1000, true) == TUNE_SHIFTED);
}

/* A network that changes all the time is followed less and less often, and one that was quiet for long at once. */
static void test_pause(void)
{
	struct tune_watch watch;
	uint32_t triggers = 0, first = 0, quick = 0;

	tune_watch_init(&watch);
	for (uint32_t i = 0; i < 1000; i++) {
		enum tune_verdict verdict = tune_watch_step(&watch, i / 3 % 2 ? 3000 : 1000, false);

		if (verdict == TUNE_SLOWER || verdict == TUNE_FASTER) {
			triggers++;
			first = first ? first : i;
			tune_watch_changed(&watch);
		}
	}
	CHECK(first > 0 && first < 8);
	CHECK_MSG(triggers > 5 && triggers < 50, "%u triggers", triggers);
	for (uint32_t i = 0; i < 400; i++)
		(void)tune_watch_step(&watch, 1000, false);
	while (tune_watch_step(&watch, 2000, false) != TUNE_SLOWER)
		quick++;
	CHECK_U64(quick, 1);
}

/* Scatter of 8 % either way triggers nothing. */
static void test_noise(struct rng *rng)
{
	struct tune_watch watch;

	tune_watch_init(&watch);
	for (uint32_t i = 0; i < 1000; i++) {
		enum tune_verdict verdict = tune_watch_step(&watch, 920000 + rng_below(rng, 160000), false);

		CHECK(verdict != TUNE_SLOWER && verdict != TUNE_FASTER && verdict != TUNE_SHIFTED);
	}
}

int main(int argc, char **argv)
{
	struct rng rng;

	rng_init(&rng, test_seed(argc, argv, 1));
	test_both_ways();
	test_one_window_is_none();
	test_shift();
	test_pause();
	for (int i = 0; i < 20; i++)
		test_noise(&rng);
	return 0;
}
