/*
 * Sums at the gate: members end with their sum, each once; the bound holds for each; a sum that fails is offered again.
 */
#define TEST_OPTIONS "--seed", "--seeds"
#include "base/check.h"
#include "base/rng.h"
#include "fabric/gate.h"

#define WORKERS 8u
#define PATIENCE 1000u

static struct gate_offer member(uint32_t worker, uint64_t from, uint64_t position, uint32_t aggregator, uint64_t bundle)
{
	return (struct gate_offer){.worker = worker,
	                           .number = 1,
	                           .computed_from = from,
	                           .epoch = 1,
	                           .position = position,
	                           .patience_ns = PATIENCE,
	                           .bundle = bundle,
	                           .aggregator = aggregator};
}

static struct gate_offer sum(uint32_t worker, uint64_t from, uint64_t position, uint64_t bundle, uint64_t members)
{
	struct gate_offer offer = member(worker, from, position, worker, bundle);

	offer.members = members;
	return offer;
}

static void expect(struct gate *gate, uint64_t now, uint32_t worker, uint8_t why, uint64_t version, uint32_t count)
{
	struct gate_result result;

	CHECK(gate_next(gate, now, &result));
	CHECK_U64(result.worker, worker);
	CHECK_U64(result.why, why);
	CHECK_U64(result.version, version);
	CHECK_U64(result.count, count);
}

static void begin(struct gate *gate, uint32_t workers, uint32_t bound)
{
	gate_init(gate, workers, bound);
	gate_take_sums(gate);
}

/* Three updates in one sum: versions by position, in the turn of the first of them. */
static void test_applied(void)
{
	struct gate gate;
	struct gate_result result;
	struct gate_offer offers[] = {member(0, 0, 4, 1, 2), member(2, 0, 2, 1, 2), sum(1, 0, 3, 2, 7),
	                              {.worker = 3, .number = 1, .epoch = 1, .position = 1, .patience_ns = PATIENCE}};

	begin(&gate, 4, 4);
	for (uint32_t i = 0; i < 4; i++)
		CHECK(gate_offer(&gate, &offers[i], &result) == ESP_OK);
	CHECK(!gate_whole(&gate, 0, 5) && gate_whole(&gate, 1, 5) && !gate_next(&gate, 5, &result));
	CHECK(gate_whole(&gate, 3, 6));
	expect(&gate, 6, 3, GATE_APPLIED, 1, 1);
	expect(&gate, 6, 1, GATE_APPLIED, 3, 3);
	expect(&gate, 6, 0, GATE_APPLIED, 4, 0);
	expect(&gate, 6, 2, GATE_APPLIED, 2, 0);
	CHECK(!gate_next(&gate, 6, &result) && gate.version == 4 && gate.next == 5 && gate.sums == 1);
}

/* One member would have a delay above the bound: it is late, the others may come again. */
static void test_late(void)
{
	struct gate gate;
	struct gate_result result;
	struct gate_offer first = member(0, 5, 1, 1, 1), second = sum(1, 3, 2, 1, 3);

	begin(&gate, 2, 3);
	gate.version = 5;
	CHECK(gate_offer(&gate, &first, &result) == ESP_OK);
	CHECK(gate_offer(&gate, &second, &result) == ESP_ETIMEOUT && result.why == GATE_LATE && result.worker == 1);
	expect(&gate, 0, 0, GATE_BROKEN, 5, 0);
	CHECK(gate.version == 5 && gate.next == 3);

	begin(&gate, 3, 3);
	gate.version = 5;
	struct gate_offer other = {.worker = 2, .number = 1, .computed_from = 5};
	second.computed_from = 4;
	CHECK(gate_offer(&gate, &first, &result) == ESP_OK && gate_offer(&gate, &second, &result) == ESP_OK);
	CHECK(gate_offer(&gate, &other, &result) == ESP_OK && gate_whole(&gate, 2, 0) && gate_whole(&gate, 1, 0));
	expect(&gate, 0, 2, GATE_APPLIED, 6, 1);
	expect(&gate, 0, 1, GATE_LATE, 6, 1);
	expect(&gate, 0, 0, GATE_BROKEN, 6, 0);
	CHECK(gate.version == 6);
}

static void test_broken(void)
{
	struct gate gate;
	struct gate_result result;
	struct gate_offer first = member(0, 0, 1, 1, 1), second = member(2, 0, 3, 1, 1), part = sum(1, 0, 2, 1, 3);

	/* the aggregator leaves one out */
	begin(&gate, 3, 9);
	CHECK(gate_offer(&gate, &first, &result) == ESP_OK && gate_offer(&gate, &second, &result) == ESP_OK);
	CHECK(gate_offer(&gate, &part, &result) == ESP_OK && gate_whole(&gate, 1, 0));
	expect(&gate, 0, 2, GATE_BROKEN, 0, 0);
	expect(&gate, 0, 1, GATE_APPLIED, 2, 2);
	expect(&gate, 0, 0, GATE_APPLIED, 1, 0);
	CHECK(gate.next == 4);
	/* the sum has one that the gate does not hold */
	begin(&gate, 3, 9);
	CHECK(gate_offer(&gate, &part, &result) == ESP_ETIMEOUT && result.why == GATE_BROKEN && gate.next == 1);
	/* the aggregator is lost before its offer, and while it sends */
	begin(&gate, 3, 9);
	CHECK(gate_offer(&gate, &first, &result) == ESP_OK && !gate_gone(&gate, 1, &result));
	expect(&gate, 0, 0, GATE_BROKEN, 0, 0);
	begin(&gate, 3, 9);
	CHECK(gate_offer(&gate, &first, &result) == ESP_OK && gate_offer(&gate, &part, &result) == ESP_OK);
	CHECK(!gate_gone(&gate, 0, &result)); /* a member of a sum that is offered stays */
	CHECK(gate_gone(&gate, 1, &result) && result.why == GATE_GONE);
	expect(&gate, 0, 0, GATE_BROKEN, 0, 0);
	/* it takes the sum back: the others hear it at once, and what comes of it is dropped; no position waits for it */
	begin(&gate, 3, 9);
	struct gate_offer alone = {.worker = 2, .number = 1, .epoch = 1, .position = 3, .patience_ns = PATIENCE};
	CHECK(gate_offer(&gate, &first, &result) == ESP_OK && gate_offer(&gate, &part, &result) == ESP_OK);
	CHECK(!gate_spoil(&gate, 0) && !gate_spoil(&gate, 2) && gate_spoil(&gate, 1) && gate_spoil(&gate, 1));
	expect(&gate, 0, 0, GATE_BROKEN, 0, 0);
	CHECK(gate_offer(&gate, &alone, &result) == ESP_OK && gate_whole(&gate, 2, 0));
	expect(&gate, 0, 2, GATE_APPLIED, 1, 1);
	CHECK(gate_whole(&gate, 1, 0) && !gate_spoil(&gate, 1));
	expect(&gate, 0, 1, GATE_BROKEN, 1, 1);
	CHECK(!gate_next(&gate, 0, &result) && gate.version == 1);
	/* it never comes */
	begin(&gate, 3, 9);
	first.at_ns = 7;
	CHECK(gate_offer(&gate, &first, &result) == ESP_OK && gate_due(&gate) == 7 + PATIENCE);
	CHECK(!gate_next(&gate, 6 + PATIENCE, &result));
	expect(&gate, 7 + PATIENCE, 0, GATE_BROKEN, 0, 0);
	CHECK(gate_due(&gate) == UINT64_MAX);
}

/* Offers that contradict themselves, or are for a job whose optimizer is not linear, are refused. */
static void test_refused(void)
{
	struct gate gate;
	struct gate_result result;
	struct gate_offer good = sum(1, 0, 2, 1, 3), bad;

	gate_init(&gate, 3, 9);
	CHECK(gate_offer(&gate, &good, &result) == ESP_ECORRUPT);
	gate_take_sums(&gate);
	bad = good, bad.members = 1; /* without its own */
	CHECK(gate_offer(&gate, &bad, &result) == ESP_ECORRUPT);
	bad = good, bad.members = 8 | 2; /* no such worker */
	CHECK(gate_offer(&gate, &bad, &result) == ESP_ECORRUPT);
	bad = good, bad.position = 0;
	CHECK(gate_offer(&gate, &bad, &result) == ESP_ECORRUPT);
	bad = good, bad.bundle = 0;
	CHECK(gate_offer(&gate, &bad, &result) == ESP_ECORRUPT);
	bad = good, bad.aggregator = 0; /* a member that brings others */
	CHECK(gate_offer(&gate, &bad, &result) == ESP_ECORRUPT);
	bad = good, bad.aggregator = 3;
	CHECK(gate_offer(&gate, &bad, &result) == ESP_ECORRUPT);
}

/* ---- by seeds ---- */

struct play {
	struct rng rng;
	struct gate gate;
	uint64_t now, position, bundle, applied;
	uint64_t numbers[WORKERS], from[WORKERS];
	bool open[WORKERS];
	bool seen[4096]; /* by version */
	uint64_t offered, ended;
};

static void end(struct play *play, const struct gate_result *result)
{
	uint32_t worker = result->worker;

	CHECK(play->open[worker] && result->number == play->numbers[worker]);
	play->open[worker] = false;
	play->ended++;
	if (result->why != GATE_APPLIED)
		return;
	play->applied++;
	CHECK(result->version < 4096 && !play->seen[result->version]);
	play->seen[result->version] = true;
	CHECK_U64(result->delay, result->version - play->from[worker]);
	CHECK(result->delay >= 1 && result->delay <= play->gate.bound);
}

static void drain(struct play *play)
{
	struct gate_result result;

	while (gate_next(&play->gate, play->now, &result))
		end(play, &result);
	CHECK_U64(play->gate.version, play->applied);
}

static void give(struct play *play, struct gate_offer *one)
{
	struct gate_result result;

	one->number = ++play->numbers[one->worker];
	one->epoch = 1;
	one->position = ++play->position;
	one->patience_ns = rng_below(&play->rng, PATIENCE);
	one->at_ns = play->now;
	one->computed_from =
		play->gate.version - rng_below(&play->rng, (play->gate.version < 6 ? play->gate.version : 6) + 1);
	play->from[one->worker] = one->computed_from;
	play->open[one->worker] = true;
	play->offered++;
	enum esp_status status = gate_offer(&play->gate, one, &result);
	CHECK(status == ESP_OK || status == ESP_ETIMEOUT);
	if (status == ESP_ETIMEOUT)
		end(play, &result);
}

/* A bundle of those that are idle; some members never offer, and some aggregators neither. */
static void play_bundle(struct play *play)
{
	uint32_t aggregator = (uint32_t)rng_below(&play->rng, WORKERS);
	uint64_t members = UINT64_C(1) << aggregator;

	if (play->open[aggregator])
		return;
	play->bundle++;
	for (uint32_t worker = 0; worker < WORKERS; worker++) {
		struct gate_offer one = {.worker = worker, .bundle = play->bundle, .aggregator = aggregator};

		if (worker == aggregator || play->open[worker] || rng_chance(&play->rng, 1, 2))
			continue;
		if (rng_chance(&play->rng, 9, 10)) {
			give(play, &one);
			drain(play);
		}
		if (rng_chance(&play->rng, 9, 10))
			members |= UINT64_C(1) << worker;
	}
	struct gate_offer all = {
		.worker = aggregator, .bundle = play->bundle, .aggregator = aggregator, .members = members};
	if (rng_chance(&play->rng, 9, 10))
		give(play, &all);
}

static void play_one(uint64_t seed)
{
	struct play play = {0};
	struct gate_result result;

	rng_init(&play.rng, seed);
	begin(&play.gate, WORKERS, (uint32_t)rng_below(&play.rng, 10) + 1);
	for (uint32_t step = 0; step < 300; step++) {
		uint32_t worker = (uint32_t)rng_below(&play.rng, WORKERS);
		struct gate_offer one = {.worker = worker};

		play.now += rng_below(&play.rng, 50);
		if (rng_chance(&play.rng, 1, 4))
			play_bundle(&play);
		else if (!play.open[worker])
			give(&play, &one);
		else if (rng_chance(&play.rng, 1, 10) && gate_gone(&play.gate, worker, &result))
			end(&play, &result);
		else
			(void)gate_whole(&play.gate, worker, play.now);
		drain(&play);
	}
	for (uint32_t worker = 0; worker < WORKERS; worker++)
		(void)gate_whole(&play.gate, worker, play.now);
	drain(&play);
	while (gate_due(&play.gate) != UINT64_MAX) {
		CHECK(gate_due(&play.gate) > play.now);
		play.now = gate_due(&play.gate);
		drain(&play);
		for (uint32_t worker = 0; worker < WORKERS; worker++)
			(void)gate_whole(&play.gate, worker, play.now);
		drain(&play);
	}
	CHECK_U64(play.ended, play.offered);
}

int main(int argc, char **argv)
{
	uint64_t first = test_option(argc, argv, "--seed", 1), count = test_option(argc, argv, "--seeds", 3000);

	test_applied();
	test_late();
	test_broken();
	test_refused();
	for (uint64_t seed = first; seed < first + count; seed++)
		play_one(seed);
	return 0;
}
