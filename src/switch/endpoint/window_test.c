#include "switch/endpoint/window.h"

#include "base/check.h"

static const struct window_config config = {.packet_bytes = 1500, .start_bytes = 60000, .ceiling_bytes = 1500000};

static void test_growth(void)
{
	struct window window;

	window_init(&window, &config);
	for (uint32_t i = 0; i < 40; i++)
		window_result(&window, i, 40, 1500, false, true);
	CHECK_U64(window.bytes, 60000 + 40 * 1500);
	window_result(&window, 40, 80, 1500, false, false);
	CHECK_U64(window.bytes, 120000);
	/* A mark halves it, once for all numbers that were sent before. */
	window_result(&window, 41, 80, 1500, true, true);
	CHECK_U64(window.bytes, 60000);
	for (uint32_t i = 42; i < 80; i++)
		window_result(&window, i, 100, 1500, true, true);
	CHECK_U64(window.bytes, 60000);
	CHECK_U64(window.threshold, 60000);
	CHECK_U64(window.marks, 39);
	/* Then a packet per window. */
	for (uint32_t i = 80; i < 120; i++)
		window_result(&window, i, 120, 1500, false, true);
	CHECK_MSG(window.bytes > 61300 && window.bytes <= 61500, "%" PRIu64, window.bytes);
	window_result(&window, 120, 121, 1500, true, true);
	CHECK_U64(window.halvings, 2);
}

static void test_bounds(void)
{
	struct window window;

	window_init(&window, &config);
	for (uint32_t i = 0; i < 5000; i++)
		window_result(&window, i, i + 1, 1500, false, true);
	CHECK_U64(window.bytes, config.ceiling_bytes);
	for (uint32_t i = 5000; i < 5100; i++)
		window_result(&window, i, i + 1, 1500, true, true);
	CHECK_U64(window.bytes, 4 * config.packet_bytes);
}

static void test_fixed(void)
{
	struct window_config fixed = config;
	struct window window;

	fixed.is_fixed = true;
	window_init(&window, &fixed);
	for (uint32_t i = 0; i < 100; i++) {
		window_result(&window, i, i + 1, 1500, i % 2, true);
		window_lost(&window, i, i + 1);
	}
	CHECK_U64(window.bytes, fixed.ceiling_bytes);
}

static void test_losses(void)
{
	for (int loss = WINDOW_LOSS_MANY; loss <= WINDOW_LOSS_IGNORED; loss++) {
		struct window_config some = config;
		struct window window;
		some.loss = (enum window_loss)loss;
		window_init(&window, &some);
		window_result(&window, 0, 40, 1500, false, false);
		uint64_t before = window.bytes;
		for (uint32_t lost = 1; lost <= 20; lost++) {
			window_lost(&window, lost, 40);
			bool counts = loss == WINDOW_LOSS_EACH || (loss == WINDOW_LOSS_MANY && lost > 10);
			CHECK_U64(window.bytes, counts ? before / 2 : before);
		}
	}
}

int main(void)
{
	test_growth();
	test_bounds();
	test_fixed();
	test_losses();
	return 0;
}
