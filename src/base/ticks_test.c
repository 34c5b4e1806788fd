#include "base/ticks.h"

#include "base/check.h"

/* Moments that were taken between two looks at the clock lie between them, but for what a look takes. */
static void test(bool by_clock)
{
	struct ticks ticks;
	uint64_t before[100], at[100], after[100];
	ticks_open(&ticks, by_clock);
	uint64_t begin = clock_now_ns();
	while (clock_now_ns() < begin + 10 * NS_PER_MS) /* something to measure them by */
		;
	for (int i = 0; i < 100; i++) {
		before[i] = clock_now_ns();
		at[i] = ticks_now(&ticks);
		after[i] = clock_now_ns();
	}
	struct ticks_scale scale = ticks_scale(&ticks);
	for (int i = 0; i < 100; i++) {
		uint64_t ns = ticks_to_ns(&scale, at[i]),
		         slack = by_clock ? 0 : 20 * NS_PER_US + (scale.now_ns - before[i]) / 1000;
		/* Another process may take the core between two reads of two clocks for long: then nothing is known. */
		bool is_disturbed = !by_clock && scale.now_ns - ticks.first_ns > 100 * NS_PER_MS;
		CHECK_MSG(is_disturbed || (ns + slack >= before[i] && ns <= after[i] + slack),
		          "%" PRIu64 " is not in %" PRIu64 " .. %" PRIu64, ns, before[i], after[i]);
	}
	CHECK_U64(ticks_to_ns(&scale, scale.now), scale.now_ns);
	CHECK_U64(ticks_to_ns(&scale, scale.now + 1000), scale.now_ns); /* from another core, perhaps */
	CHECK(by_clock ? ticks.are_ns : true);
}

int main(void)
{
	test(true);
	test(false);
	return 0;
}
