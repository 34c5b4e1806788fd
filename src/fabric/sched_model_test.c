/*
 * Models at the scheduler: one tree for all that wait, short ones at once, the rates that they teach, and slack.
 */
#include "base/check.h"
#include "base/clock.h"
#include "fabric/sched.h"

#define MB UINT64_C(1000000)
#define BATCH (100 * NS_PER_MS)

static struct sched *open_sched(uint32_t workers, uint32_t bound)
{
	const struct sched_config config = {
		.workers = workers, .bound = bound, .batch_ns = BATCH, .hub_rate = 100 * MB, .worker_rate = 100 * MB};
	struct sched *sched;

	CHECK(sched_open(&config, &sched, NULL) == ESP_OK);
	return sched;
}

static void ready(struct sched *sched, uint32_t worker, uint64_t number, uint64_t from, uint64_t bytes, uint64_t now)
{
	const struct ledger_update update = {.number = number, .computed_from = from, .bytes = bytes, .norm = 1};

	CHECK(sched_ready(sched, worker, &update, now, NULL) == ESP_OK);
}

static struct sched_decision next(struct sched *sched)
{
	struct sched_decision decision;

	CHECK(sched_next(sched, &decision));
	return decision;
}

/* A short model is read at once while the hub's link is free; one that would be behind another waits for a tree. */
static void test_short_model(struct sched *sched)
{
	struct sched_model model;
	uint64_t now = 10 * BATCH + NS_PER_MS;

	CHECK(sched_wants(sched, 0, MB, now, NULL) == ESP_OK);
	CHECK_U64(sched_due(sched), now);
	sched_tick(sched, now);
	CHECK(sched_next_model(sched, &model) && model.worker == 0 && model.source == SCHED_HUB && model.start_ns == 0);
	CHECK(sched_wants(sched, 1, MB, now, NULL) == ESP_OK && sched_wants(sched, 2, MB, now, NULL) == ESP_OK);
	CHECK_U64(sched_due(sched), 11 * BATCH);
	sched_set_forwarder(sched, 2, false); /* then there is no tree */
	sched_tick(sched, 11 * BATCH);
	CHECK(sched_next_model(sched, &model) && model.source == SCHED_HUB);
	CHECK(sched_next_model(sched, &model) && model.source == SCHED_HUB && !sched_next_model(sched, &model));
	sched_tick(sched, 20 * BATCH);
	CHECK_U64(sched_due(sched), UINT64_MAX);
}

static bool gets_model(struct sched *sched, uint64_t now)
{
	struct sched_model model;

	sched_tick(sched, now);
	bool gets = sched_next_model(sched, &model);
	while (sched_next_model(sched, &model))
		continue;
	return gets;
}

static void take_step(struct sched *sched, uint32_t worker, uint64_t number, uint64_t now)
{
	struct sched_done done = {.number = number, .end = LEDGER_APPLIED, .version = 9, .delay = 1};

	ready(sched, worker, number, 0, MB, now);
	sched_tick(sched, now + BATCH);
	CHECK(next(sched).worker == worker);
	CHECK(sched_done(sched, worker, &done, now + BATCH, NULL) == ESP_OK);
}

/*
 * With slack 1 a worker that is two updates ahead waits for the slowest one: until that one has caught up, is gone, or
 * is stuck for as long as it may be.
 */
static void test_slack(void)
{
	const struct sched_config config = {.workers = 3, .bound = 99, .batch_ns = BATCH, .hub_rate = 100 * MB,
	                                    .worker_rate = 100 * MB, .has_slack = true, .slack = 1,
	                                    .slack_wait_ns = 60 * BATCH};
	struct sched *sched;

	CHECK(sched_open(&config, &sched, NULL) == ESP_OK);
	for (uint32_t worker = 0; worker < 2; worker++)
		CHECK(sched_join(sched, worker, 0, 0, NULL) == ESP_OK);
	take_step(sched, 0, 1, 0);
	CHECK(sched_wants(sched, 0, 60 * MB, 2 * BATCH, NULL) == ESP_OK && gets_model(sched, 3 * BATCH));
	take_step(sched, 0, 2, 10 * BATCH);
	CHECK(sched_wants(sched, 0, 60 * MB, 20 * BATCH, NULL) == ESP_OK && !gets_model(sched, 21 * BATCH));
	take_step(sched, 1, 1, 22 * BATCH);
	CHECK(gets_model(sched, 24 * BATCH));
	take_step(sched, 0, 3, 30 * BATCH);
	CHECK(sched_wants(sched, 0, 60 * MB, 40 * BATCH, NULL) == ESP_OK && !gets_model(sched, 41 * BATCH));
	CHECK(sched_join(sched, 2, 0, 42 * BATCH, NULL) == ESP_OK); /* it begins where the slowest one is */
	CHECK_U64(sched_worker(sched, 2)->steps, 1);
	sched_gone(sched, 1, 43 * BATCH);
	CHECK(!gets_model(sched, 44 * BATCH)); /* it is not slower than the new one */
	CHECK(gets_model(sched, 100 * BATCH));
	sched_close(sched);
}

/* A model teaches the rate of a worker's link in, and an update that of its link out. */
static void test_ways(void)
{
	struct sched *sched = open_sched(1, 9);
	struct sched_got got = {.took_ns = 10 * NS_PER_S};
	struct sched_model model;

	CHECK(sched_got(sched, 0, &got, 0, NULL) == ESP_EINVAL && sched_join(sched, 0, 0, 0, NULL) == ESP_OK);
	CHECK(sched_wants(sched, 0, 100 * MB, 0, NULL) == ESP_OK);
	sched_tick(sched, BATCH);
	CHECK(sched_next_model(sched, &model));
	CHECK(sched_got(sched, 0, &got, 2 * BATCH, NULL) == ESP_OK); /* another one */
	CHECK_U64(sched_worker(sched, 0)->rate_in, 100 * MB);
	got.tree = model.tree;
	CHECK(sched_got(sched, 0, &got, 2 * BATCH, NULL) == ESP_OK);
	CHECK_U64(sched_worker(sched, 0)->rate_in, 55 * MB); /* of 100 MB/s it had 10 */
	CHECK_U64(sched_worker(sched, 0)->rate, 100 * MB);
	CHECK(sched_got(sched, 0, &got, 2 * BATCH, NULL) == ESP_OK); /* it has been told */
	CHECK_U64(sched_worker(sched, 0)->rate_in, 55 * MB);
	CHECK(sched_got(sched, 9, &got, 2 * BATCH, NULL) == ESP_EINVAL);
	sched_close(sched);
}

/* All that wait get the model by one tree, when the hub's link is free. */
static void test_models(void)
{
	const struct sched_config config = {
		.workers = 3, .bound = 9, .batch_ns = BATCH, .hub_rate = 100 * MB, .worker_rate = 100 * MB};
	struct sched *sched;
	struct sched_model model;
	uint32_t from_hub = 0, outputs = 0, count = 0;

	CHECK(sched_open(&config, &sched, NULL) == ESP_OK);
	CHECK(sched_wants(sched, 0, MB, 0, NULL) == ESP_EINVAL); /* it is not here */
	for (uint32_t worker = 0; worker < 3; worker++) {
		CHECK(sched_join(sched, worker, 0, 0, NULL) == ESP_OK);
		sched_set_forwarder(sched, worker, true);
	}
	CHECK(sched_wants(sched, 0, 0, 0, NULL) == ESP_EINVAL && sched_wants(sched, 9, MB, 0, NULL) == ESP_EINVAL);
	for (uint32_t worker = 0; worker < 3; worker++)
		CHECK(sched_wants(sched, worker, 10 * MB, 0, NULL) == ESP_OK);
	CHECK(sched_wants(sched, 0, 10 * MB, 0, NULL) == ESP_EINVAL); /* it has asked */
	CHECK_U64(sched_due(sched), BATCH);
	sched_tick(sched, BATCH);
	for (; sched_next_model(sched, &model); count++) {
		CHECK(model.tree == 1 && model.rate == 100 * MB && model.start_ns == 0);
		from_hub += model.source == SCHED_HUB;
		outputs += model.outputs;
	}
	CHECK(count == 3 && from_hub == 1 && outputs == 2);
	CHECK_U64(sched_due(sched), UINT64_MAX);
	test_short_model(sched);
	CHECK(sched_wants(sched, 1, 10 * MB, 20 * BATCH, NULL) == ESP_OK);
	sched_gone(sched, 1, 20 * BATCH);
	sched_tick(sched, 23 * BATCH);
	CHECK(!sched_next_model(sched, &model));
	sched_close(sched);
}

int main(void)
{
	test_models();
	test_ways();
	test_slack();
	return 0;
}
