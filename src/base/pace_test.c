/*
 * A transfer keeps to its rate within 5 % over a second, whatever the rate, the size of its pieces and the turns of the
 * loop are, if its thread wakes up at most some milliseconds late.
 */
#define TEST_OPTIONS "--seed", "--seeds"
#include "base/pace.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/rng.h"

struct sender {
	struct pace pace;
	uint64_t now, sent, piece;
};

/* Looks at times of its own choice, or sleeps until it may send, and wakes up late. */
static void send_for(struct sender *sender, struct rng *rng, uint64_t until, uint64_t look_ns, uint64_t late_ns)
{
	while (sender->now < until) {
		while (pace_fill(&sender->pace, sender->now)) {
			sender->pace.budget -= (int64_t)sender->piece;
			sender->sent += sender->piece;
		}
		uint64_t due = pace_due(&sender->pace);
		CHECK(due > sender->now);
		if (look_ns > 0 && sender->now + look_ns < due)
			sender->now += look_ns;
		else
			sender->now = due + (late_ns > 0 ? rng_below(rng, late_ns) : 0);
	}
}

static void keeps_to_rate(struct rng *rng, uint64_t seed)
{
	uint64_t rate = (UINT64_C(100000) << rng_below(rng, 14)) + rng_below(rng, 100000); /* to about 800 MB/s */
	uint64_t piece = 1 + rng_below(rng, rate / 100 < 65536 ? rate / 100 : 65536);
	uint64_t look = rng_below(rng, 2) ? 0 : 1 + rng_below(rng, 5000), late = rng_below(rng, 2 * NS_PER_MS);
	struct sender sender = {.now = rng_below(rng, NS_PER_S), .piece = piece};
	uint64_t began = sender.now;

	pace_set(&sender.pace, rate, began);
	if (look > 0 && rate < 10000000)
		look += 20000; /* fewer turns: the test is to be short */
	send_for(&sender, rng, began + NS_PER_S, look, late);
	double share = (double)sender.sent / (double)rate / ((double)(sender.now - began) / (double)NS_PER_S);
	CHECK_MSG(share > 0.95 && share < 1.05,
	          "seed %" PRIu64 ": rate %" PRIu64 ", pieces of %" PRIu64 ", looks each %" PRIu64 " ns, late by %" PRIu64
	          " ns: %.3f", seed, rate,	          piece, look, late, share);
}

/* A loop that turns each microsecond: a part of a byte at a time. */
static void turns_often(void)
{
	struct rng rng;
	struct sender sender = {.piece = 100};

	rng_init(&rng, 1);
	pace_set(&sender.pace, 1000000, 0);
	send_for(&sender, &rng, NS_PER_S, 1900, 0);
	CHECK(sender.sent > 950000 && sender.sent < 1050000);
}

/* One that was away for long catches up by some milliseconds, not by all of it. */
static void was_away(void)
{
	struct pace pace = {0};

	pace_set(&pace, 1000000, 0);
	CHECK(pace_fill(&pace, 60 * NS_PER_S) && pace.budget < 10000);
	pace_set(&pace, 1000000, 61 * NS_PER_S); /* the same: nothing is lost */
	CHECK(pace.budget > 1);
	pace_set(&pace, 0, 61 * NS_PER_S);
	CHECK(pace_fill(&pace, 61 * NS_PER_S) && pace.budget > INT64_MAX / 4);
}

int main(int argc, char **argv)
{
	uint64_t first = test_option(argc, argv, "--seed", 1), count = test_option(argc, argv, "--seeds", 100);
	struct rng rng;

	turns_often();
	was_away();
	for (uint64_t seed = first; seed < first + count; seed++) {
		rng_init(&rng, seed);
		keeps_to_rate(&rng, seed);
	}
	return 0;
}
