#include <sched.h>

#include "base/jobs.h"

#include <stdatomic.h>

#include "base/check.h"
#include "base/cores.h"

#define PIECES 1000u

struct tally {
	_Atomic uint32_t done[PIECES];
	uint32_t bad_from; /* pieces that fail, from here on */
};

static enum esp_status count(void *user, uint32_t nth, struct error *err)
{
	struct tally *tally = user;

	atomic_fetch_add(&tally->done[nth], 1);
	return nth < tally->bad_from ? ESP_OK : error_set(err, ESP_ELIMIT, "piece %u", nth);
}

static void test_each_once(uint32_t pieces, uint32_t at_once)
{
	static struct tally tally;
	struct error err = {0};

	tally = (struct tally){.bad_from = PIECES};
	CHECK(jobs_run(pieces, at_once, count, &tally, &err) == ESP_OK && err.status == ESP_OK);
	for (uint32_t i = 0; i < PIECES; i++)
		CHECK_U64(tally.done[i], i < pieces);
}

/* The first failure by number is told, however many run. */
static void test_failure(uint32_t at_once)
{
	static struct tally tally;
	struct error err = {0};

	tally = (struct tally){.bad_from = 7};
	CHECK(jobs_run(PIECES, at_once, count, &tally, &err) == ESP_ELIMIT && err.status == ESP_ELIMIT);
	CHECK_STR(err.text, "piece 7");
	for (uint32_t i = 0; i < PIECES; i++)
		CHECK(tally.done[i] == 1 || (i > 7 && tally.done[i] == 0));
	CHECK(jobs_run(PIECES, at_once, count, &tally, NULL) == ESP_ELIMIT);
	if (at_once == 1)
		CHECK_U64(tally.done[8], 0);
}

/* The number of a set changes with it, and is the same for the same set. */
static void core_sets(void)
{
	uint64_t all = cores_digest();
	cpu_set_t before, one;

	CHECK(sched_getaffinity(0, sizeof(before), &before) == 0);
	for (size_t core = 0, seen = 0; core < CPU_SETSIZE && CPU_COUNT(&before) > 1; core++) {
		if (!CPU_ISSET(core, &before) || ++seen > 2)
			continue;
		CPU_ZERO(&one);
		CPU_SET(core, &one);
		CHECK(sched_setaffinity(0, sizeof(one), &one) == 0);
		uint64_t digest = cores_digest();
		CHECK(digest != 0 && digest != all && digest == cores_digest() && cores_allowed() == 1);
		CHECK(sched_setaffinity(0, sizeof(before), &before) == 0);
	}
	CHECK(cores_digest() == all);
}

int main(void)
{
	static const uint32_t widths[] = {1, 2, 7, 300};

	for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
		test_each_once(0, widths[i]);
		test_each_once(1, widths[i]);
		test_each_once(PIECES, widths[i]);
		for (int again = 0; again < 20; again++)
			test_failure(widths[i]);
	}
	CHECK(cores_allowed() >= 1);
	core_sets();
	return 0;
}
