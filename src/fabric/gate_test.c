/*
 * The gate: updates in the decided order, each once; the bound holds by a count of its own; every update ends.
 */
#define TEST_OPTIONS "--seed", "--seeds"
#include "base/check.h"
#include "base/rng.h"
#include "fabric/gate.h"

#define WORKERS 8u
#define PATIENCE 1000u

static struct gate_offer offer(uint32_t worker, uint64_t number, uint64_t from, uint64_t position)
{
	return (struct gate_offer){worker, number, from, position > 0, position, PATIENCE};
}

static void expect(struct gate *gate, uint64_t now, uint32_t worker, uint8_t why, uint64_t delay)
{
	struct gate_result result;

	CHECK(gate_next(gate, now, &result));
	CHECK_U64(result.worker, worker);
	CHECK_U64(result.why, why);
	CHECK_U64(result.delay, delay);
}

static void test_decided_order(void)
{
	struct gate gate;
	struct gate_result result;
	struct gate_offer offers[] = {offer(0, 1, 0, 2), offer(1, 1, 0, 1), offer(2, 1, 0, 0)};

	gate_init(&gate, 3, 3);
	for (uint32_t i = 0; i < 3; i++)
		CHECK(gate_offer(&gate, &offers[i], &result) == ESP_OK);
	CHECK(gate_whole(&gate, 0, 10) && !gate_whole(&gate, 0, 10));
	CHECK(!gate_next(&gate, 10, &result)); /* position 1 is not there */
	CHECK_U64(gate_due(&gate), 10 + PATIENCE);
	CHECK(gate_whole(&gate, 2, 20));
	expect(&gate, 20, 2, GATE_APPLIED, 1); /* no scheduler has ordered it */
	CHECK(gate_whole(&gate, 1, 30));
	expect(&gate, 30, 1, GATE_APPLIED, 2);
	expect(&gate, 30, 0, GATE_APPLIED, 3);
	CHECK(!gate_next(&gate, 30, &result) && gate.version == 3 && gate.waited == 1);
}

static void test_bound(void)
{
	struct gate gate;
	struct gate_result result;
	struct gate_offer first = offer(0, 1, 0, 0), second = offer(1, 1, 0, 0), third = offer(0, 2, 0, 0);

	gate_init(&gate, 2, 1);
	CHECK(gate_offer(&gate, &first, &result) == ESP_OK && gate_offer(&gate, &second, &result) == ESP_OK);
	CHECK(gate_whole(&gate, 0, 0) && gate_whole(&gate, 1, 0));
	expect(&gate, 0, 0, GATE_APPLIED, 1);
	expect(&gate, 0, 1, GATE_LATE, 2);
	CHECK_U64(gate.version, 1);
	CHECK(gate_offer(&gate, &third, &result) == ESP_ETIMEOUT && result.why == GATE_LATE_OFFER && result.delay == 2);
}

/* A position that does not come holds up none behind it. */
static void test_given_up(void)
{
	struct gate gate;
	struct gate_result result;
	struct gate_offer offers[] = {offer(0, 1, 5, 1), offer(1, 1, 0, 2), offer(2, 1, 5, 3), offer(3, 1, 5, 4)};

	gate_init(&gate, 4, 3);
	gate.version = 5;
	CHECK(gate_offer(&gate, &offers[0], &result) == ESP_OK && gate_offer(&gate, &offers[1], &result) == ESP_ETIMEOUT);
	CHECK(gate_offer(&gate, &offers[2], &result) == ESP_OK && gate_offer(&gate, &offers[3], &result) == ESP_OK);
	CHECK(gate_whole(&gate, 3, 0) && gate_gone(&gate, 2, &result) && !gate_next(&gate, 0, &result));
	CHECK(gate_whole(&gate, 0, 0));
	expect(&gate, 0, 0, GATE_APPLIED, 1);
	expect(&gate, 0, 3, GATE_APPLIED, 2);
}

static void test_patience(void)
{
	struct gate gate;
	struct gate_result result;
	struct gate_offer early = offer(0, 1, 0, 4), later = offer(1, 1, 0, 6), lost = offer(2, 1, 0, 2);

	gate_init(&gate, 3, 9);
	CHECK(gate_offer(&gate, &later, &result) == ESP_OK && gate_offer(&gate, &early, &result) == ESP_OK);
	CHECK(gate_offer(&gate, &lost, &result) == ESP_OK);
	CHECK(gate_whole(&gate, 1, 0) && gate_whole(&gate, 0, 500));
	CHECK(!gate_next(&gate, PATIENCE - 1, &result));
	expect(&gate, PATIENCE, 0, GATE_APPLIED, 1); /* the earlier one of two that wait */
	expect(&gate, PATIENCE, 1, GATE_APPLIED, 2);
	CHECK(gate_whole(&gate, 2, PATIENCE));       /* its turn has passed: at once */
	expect(&gate, PATIENCE, 2, GATE_APPLIED, 3);
	CHECK_U64(gate.overtaken, 1);
}

static void test_gone_and_bad(void)
{
	struct gate gate;
	struct gate_result result;
	struct gate_offer first = offer(0, 7, 0, 1), second = offer(1, 1, 0, 2), future = offer(1, 2, 5, 0),
					  again = offer(0, 7, 0, 0);

	gate_init(&gate, 2, 4);
	CHECK(gate_offer(&gate, &first, &result) == ESP_OK && gate_offer(&gate, &second, &result) == ESP_OK);
	CHECK(gate_offer(&gate, &future, &result) == ESP_ECORRUPT); /* its former one is under way */
	CHECK(gate_whole(&gate, 1, 0) && !gate_next(&gate, 0, &result));
	CHECK(gate_gone(&gate, 0, &result) && result.why == GATE_GONE && !gate_gone(&gate, 0, &result));
	CHECK(!gate_gone(&gate, 1, &result)); /* it is whole, and stays */
	expect(&gate, 0, 1, GATE_APPLIED, 1);
	CHECK(gate_offer(&gate, &future, &result) == ESP_ECORRUPT && gate_offer(&gate, &again, &result) == ESP_ECORRUPT);
}

/* ---- by seeds ---- */

struct play {
	struct rng rng;
	struct gate gate;
	uint64_t version, now, position, epoch;
	uint64_t numbers[WORKERS], from[WORKERS];
	bool open[WORKERS];
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
	play->version++;
	CHECK_U64(result->version, play->version);
	CHECK_U64(result->delay, play->version - play->from[worker]);
	CHECK(result->delay <= play->gate.bound);
}

static void play_offer(struct play *play, uint32_t worker)
{
	struct gate_result result;
	struct gate_offer one = {
		.worker = worker, .number = ++play->numbers[worker], .patience_ns = rng_below(&play->rng, PATIENCE)};

	if (rng_chance(&play->rng, 1, 50)) {
		play->epoch++;
		play->position = 0;
	}
	one.computed_from = play->version - rng_below(&play->rng, (play->version < 9 ? play->version : 9) + 1);
	one.epoch = rng_chance(&play->rng, 1, 20) ? play->epoch / 2 : play->epoch;
	play->position += rng_below(&play->rng, 2) + 1; /* some decided updates never come */
	one.position = rng_chance(&play->rng, 1, 5) ? 0 : play->position;
	play->from[worker] = one.computed_from;
	play->open[worker] = true;
	play->offered++;
	if (gate_offer(&play->gate, &one, &result) == ESP_ETIMEOUT)
		end(play, &result);
}

static void play_one(uint64_t seed)
{
	struct play play = {.epoch = 1};
	struct gate_result result;

	rng_init(&play.rng, seed);
	gate_init(&play.gate, WORKERS, (uint32_t)rng_below(&play.rng, 10) + 1);
	for (uint32_t step = 0; step < 300; step++) {
		uint32_t worker = (uint32_t)rng_below(&play.rng, WORKERS);

		play.now += rng_below(&play.rng, 50);
		if (!play.open[worker])
			play_offer(&play, worker);
		else if (rng_chance(&play.rng, 1, 10) && gate_gone(&play.gate, worker, &result))
			end(&play, &result);
		else
			(void)gate_whole(&play.gate, worker, play.now);
		while (gate_next(&play.gate, play.now, &result))
			end(&play, &result);
	}
	for (uint32_t worker = 0; worker < WORKERS; worker++)
		(void)gate_whole(&play.gate, worker, play.now);
	for (;;) {
		if (!gate_next(&play.gate, play.now, &result)) {
			if (gate_due(&play.gate) == UINT64_MAX)
				break;
			CHECK(gate_due(&play.gate) > play.now);
			play.now = gate_due(&play.gate);
			CHECK(gate_next(&play.gate, play.now, &result));
		}
		end(&play, &result);
	}
	CHECK_U64(play.ended, play.offered);
	CHECK_U64(play.gate.version, play.version);
}

int main(int argc, char **argv)
{
	uint64_t first = test_option(argc, argv, "--seed", 1), count = test_option(argc, argv, "--seeds", 5000);

	test_decided_order();
	test_bound();
	test_given_up();
	test_patience();
	test_gone_and_bad();
	for (uint64_t seed = first; seed < first + count; seed++)
		play_one(seed);
	return 0;
}
