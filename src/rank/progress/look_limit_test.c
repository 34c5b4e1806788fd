/*
 * look_limit_test.c - who looks in vain looks more and more rarely, and as ever once it was in time.
 */
#include "rank/progress/look_limit.h"

#include "base/check.h"

/* A wait in which what is looked for comes after so many looks: how many were made. */
static uint32_t wait_for(struct look_limit *looks, uint32_t comes_after)
{
	uint32_t made = 0;

	for (uint32_t turn = 0; turn < comes_after; turn++)
		made += look_limit_again(looks);
	look_limit_end(looks);
	return made;
}

int main(void)
{
	struct look_limit looks = {0};

	/* In time, over and over. */
	for (int i = 0; i < 1000; i++)
		CHECK_U64(wait_for(&looks, 5), 5);
	CHECK_U64(wait_for(&looks, LOOK_LIMIT_MOST), LOOK_LIMIT_MOST);
	CHECK_U64(looks.vain, 0);
	/* There at once: no look, and no opinion. */
	CHECK_U64(wait_for(&looks, 0), 0);

	/* Never in time: the more it was in vain, the more rarely; the turns of one wait count once. */
	uint32_t looked = 0, waits = 64 * 64;
	for (uint32_t i = 0; i < waits; i++) {
		uint32_t made = wait_for(&looks, 1000);

		CHECK(made == 0 || made == LOOK_LIMIT_MOST);
		looked += made > 0;
	}
	CHECK_U64(looks.vain, LOOK_LIMIT_VAIN_MOST);
	CHECK(looked >= waits / 64 && looked <= waits / 64 + 2 * LOOK_LIMIT_VAIN_MOST);

	/* In time again: noticed by the next wait that looks, and all look from then on. */
	for (uint32_t i = 0; i < 64; i++)
		wait_for(&looks, 3);
	CHECK_U64(looks.vain, 0);
	CHECK_U64(wait_for(&looks, 3), 3);
	return 0;
}
