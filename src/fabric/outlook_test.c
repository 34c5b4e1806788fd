/*
 * The outlook of a link: by transfers alone, by reports alone, and by reports that transfers contradict.
 */
#define TEST_OPTIONS "--seed", "--seeds"
#include "fabric/outlook.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/rng.h"

#define MB UINT64_C(1000000)

/* A transfer of 10 MB that was given all that is believed, on a link that has another rate. */
static void send_over(struct outlook *outlook, uint64_t truth)
{
	uint64_t granted = outlook->rate, rate = granted < truth ? granted : truth;

	(void)outlook_transfer(outlook, granted, 10 * MB, 10 * MB * NS_PER_S / rate);
}

static void test_transfers(void)
{
	struct outlook outlook;

	outlook_init(&outlook, 100 * MB, 100 * MB);
	for (uint32_t i = 0; i < 30; i++)
		send_over(&outlook, 10 * MB);
	CHECK(outlook.rate > 9 * MB && outlook.rate < 14 * MB && outlook.is_measured);
	for (uint32_t i = 0; i < 30; i++)
		send_over(&outlook, 400 * MB);
	CHECK_U64(outlook.rate, 100 * MB); /* no more than can be booked */
	/* another link was the bottleneck */
	CHECK(!outlook_transfer(&outlook, 10 * MB, 10 * MB, NS_PER_S * 10 / 8));
	CHECK(outlook_transfer(&outlook, 10 * MB, 10 * MB, 4 * NS_PER_S) && outlook.rate == 51250000);
	/* it says nothing */
	CHECK(!outlook_transfer(&outlook, 50 * MB, 1000, NS_PER_MS) && !outlook_transfer(&outlook, 50 * MB, MB, 0));
	/* a rate never becomes 0 */
	for (uint32_t i = 0; i < 200; i++)
		(void)outlook_transfer(&outlook, outlook.rate, 1, 3600 * NS_PER_S);
	CHECK(outlook.rate >= OUTLOOK_RATE_LEAST);
}

static void test_reports(void)
{
	struct outlook outlook;

	outlook_init(&outlook, 100 * MB, 100 * MB);
	for (uint32_t i = 0; i < 20; i++) { /* the truth, however it jumps */
		uint64_t truth = i % 2 ? 80 * MB : 5 * MB;

		CHECK(outlook_report(&outlook, truth) && outlook.rate == truth);
		send_over(&outlook, truth);
	}
	CHECK_U64(outlook.doubted, 0);
}

/* A monitor that reports four times too much: after three such reports the next ones count half. */
static void test_wrong(void)
{
	struct outlook outlook;

	outlook_init(&outlook, 100 * MB, 100 * MB);
	for (uint32_t i = 0; i < 10; i++) {
		(void)outlook_report(&outlook, 80 * MB);
		CHECK_MSG((outlook.rate < 80 * MB) == (i >= 3), "report %u: %" PRIu64, i, outlook.rate);
		for (uint32_t j = 0; j < 6; j++)
			send_over(&outlook, 20 * MB);
	}
	CHECK_U64(outlook.doubted, 7);
	/* without a transfer in between there is nothing better */
	(void)outlook_report(&outlook, 80 * MB);
	CHECK(outlook_report(&outlook, 80 * MB) && outlook.rate == 80 * MB);
	/* once it is right for long enough it is believed again */
	for (uint32_t i = 0; i < 10; i++) {
		(void)outlook_report(&outlook, 20 * MB);
		send_over(&outlook, 20 * MB);
	}
	CHECK(outlook_report(&outlook, 90 * MB) && outlook.rate == 90 * MB);
}

/*
 * Random links with a monitor that is wrong by three times in most reports: the outlook is nearer to the truth
 * than the reports are.
 */
static void play(uint64_t seed, double *by_reports, double *by_outlook)
{
	struct outlook outlook;
	struct rng rng;

	rng_init(&rng, seed);
	outlook_init(&outlook, 100 * MB, 100 * MB);
	for (uint32_t i = 0; i < 200; i++) {
		uint64_t truth = (5 + rng_below(&rng, 4)) * 10 * MB / 2, report = truth;

		if (rng_chance(&rng, 2, 3))
			report = rng_chance(&rng, 1, 2) ? truth / 3 : truth * 3;
		(void)outlook_report(&outlook, report < 100 * MB ? report : 100 * MB);
		double at_report = (double)(report > truth ? report - truth : truth - report) / (double)truth;
		*by_reports += at_report;
		double by_rate = (double)(outlook.rate > truth ? outlook.rate - truth : truth - outlook.rate);
		*by_outlook += by_rate / (double)truth;
		for (uint32_t j = 0; j < 5; j++)
			send_over(&outlook, truth);
	}
	CHECK_MSG(outlook.doubted > 0, "seed %" PRIu64, seed);
}

int main(int argc, char **argv)
{
	uint64_t first = test_option(argc, argv, "--seed", 1), count = test_option(argc, argv, "--seeds", 100);
	double by_reports = 0, by_outlook = 0;

	test_transfers();
	test_reports();
	test_wrong();
	for (uint64_t seed = first; seed < first + count; seed++)
		play(seed, &by_reports, &by_outlook);
	printf("mean error of reports %.2f of the rate, of what is believed right after them %.2f\n",
	       by_reports / (double)count / 200, by_outlook / (double)count / 200);
	CHECK(by_outlook < 0.8 * by_reports);
	return 0;
}
