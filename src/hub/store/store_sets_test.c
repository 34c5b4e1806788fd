/*
 * Workers that push as a set: the pusher's term counts for all of them, in the order of pushers; the others only read.
 */
#include "support/store_rig.h"

static const uint64_t sets[4] = {1 << 0 | 1 << 2, 1 << 1 | 1 << 3, 0, 0};

static void open_sets(struct rig *rig)
{
	const struct optimizer optimizers[2] = {plain_sgd, plain_sgd};

	rig_open(rig, 4, &plain_sgd);
	store_lane_close(rig->lane);
	struct store_lane_config config = {.layout = &rig->layout, .model = &rig->model, .workers = 4,
	                                   .optimizers = optimizers, .sets = sets};
	CHECK(store_lane_open(&config, &rig->lane, NULL) == ESP_OK);
	set_all(rig, 10);
}

/* 10 - 0.5 * (1 + 2 + 3 + 4) / 4, from two terms. */
static void test_round(void)
{
	struct rig rig;

	open_sets(&rig);
	send(&rig, 1, HUB_PUSHPULL, 1, 0, 2 + 4);
	CHECK_U64(store_lane_missing(rig.lane, 0), 1 << 0 | 1 << 2);
	send(&rig, 0, HUB_PUSHPULL, 1, 0, 1 + 3);
	CHECK_U64(store_lane_missing(rig.lane, 0), 0);
	weights(&rig, 0, 1, 1, 8.75f);
	weights(&rig, 1, 1, 1, 8.75f);
	CHECK(!has_answer(&rig, 2) && !has_answer(&rig, 3));
	send(&rig, 3, HUB_PULL, 1, 0, 0);
	weights(&rig, 3, 1, 1, 8.75f);
	CHECK_U64(store_lane_stats(rig.lane).slots, 1);
	check_calm(&rig);
	rig_close(&rig);
}

/* One that reads again and again must not keep a round from its end. */
static void test_pull_waits(void)
{
	struct rig rig;

	open_sets(&rig);
	send(&rig, 2, HUB_PULL, 1, 0, 0);
	struct transport_message lent = answer(&rig, 2, HUB_WEIGHTS, 1, 0);
	send(&rig, 0, HUB_PUSH, 1, 0, 4);
	send(&rig, 1, HUB_PUSH, 1, 0, 6);
	CHECK(!has_answer(&rig, 0)); /* version 0 is still being sent */
	send(&rig, 3, HUB_PULL, 1, 0, 0);
	CHECK(!has_answer(&rig, 3));
	CHECK_U64(store_lane_missing(rig.lane, 0), 0);
	user->sent(rig.lane, 2, HUB_WEIGHTS, lent.cookie);
	answer(&rig, 0, HUB_DONE, 1, 1);
	answer(&rig, 1, HUB_DONE, 1, 1);
	weights(&rig, 3, 1, 1, 8.75f);
	check_calm(&rig);
	rig_close(&rig);
}

static void test_other_pushes(void)
{
	struct rig rig;

	open_sets(&rig);
	CHECK(begin(&rig, 2, HUB_PUSH, 0, 0, 256) == ESP_ECORRUPT);
	check_trouble(&rig, ESP_ECORRUPT, 2,
	              "worker 2 sent a push of chunk 0, and another worker of its host pushes for it");
	rig_close(&rig);
}

/* A worker that leaves is lacking only where its set's term is. */
static void test_leave(void)
{
	struct rig rig;

	open_sets(&rig);
	send(&rig, 1, HUB_PUSH, 1, 0, 6);
	store_lane_leave(rig.lane, 3);
	check_calm(&rig);
	store_lane_leave(rig.lane, 2);
	check_trouble(&rig, ESP_EPEER, 2, "worker 2 has left, and round 0 of tensor 0 waits for it");
	rig_close(&rig);
}

/* The gradients of a set lie in memory of its members, one model after the other; the weights are stored beside them.
 */
static void test_shared(void)
{
	struct rig rig;

	open_sets(&rig);
	uint64_t elements = rig.layout.elements, at = rig.layout.chunk[1].at, end = at + rig.layout.chunk[1].elements;
	float *gradients = calloc(2 * elements, sizeof(float)), *spread = calloc(elements, sizeof(float));
	const struct store_shared shared = {gradients, spread};
	for (uint64_t i = at; i < end; i++) {
		gradients[i] = 2;
		gradients[elements + i] = 4;
	}
	store_lane_share(rig.lane, 1, &shared);
	CHECK(begin(&rig, 1, HUB_SHARED, 1, 0, 0) == ESP_OK);
	finish(&rig, 1, HUB_SHARED, NULL, 0);
	CHECK(!has_answer(&rig, 1));
	send(&rig, 0, HUB_PUSHPULL, 1, 0, 1 + 3);
	weights(&rig, 0, 1, 1, 8.75f);
	answer(&rig, 1, HUB_DONE, 1, 1);
	for (uint64_t i = 0; i < elements; i++)
		CHECK(spread[i] == (i >= at && i < end ? 8.75f : 0));
	CHECK(begin(&rig, 0, HUB_SHARED, 1, 1, 0) == ESP_ECORRUPT);
	check_trouble(&rig, ESP_ECORRUPT, 0, "worker 0 sent a shared push of chunk 1 without shared memory");
	rig_close(&rig);
	free(gradients);
	free(spread);
}

static void check_bad_sets(const uint64_t *bad, bool is_async)
{
	struct rig rig;
	struct store_lane *lane;
	const struct optimizer optimizers[2] = {plain_sgd, plain_sgd};

	rig_open(&rig, 4, &plain_sgd);
	struct store_lane_config config = {.layout = &rig.layout,
	                                   .model = &rig.model,
	                                   .workers = 4,
	                                   .optimizers = optimizers,
	                                   .sets = bad,
	                                   .is_async = is_async};
	CHECK(store_lane_open(&config, &lane, NULL) == ESP_EINVAL);
	rig_close(&rig);
}

static void test_config(void)
{
	static const uint64_t twice[4] = {15, 2, 0, 0}, none[4] = {3, 0, 0, 8}, beyond[4] = {31, 0, 0, 0},
						  others[4] = {13, 0, 0, 2};

	check_bad_sets(twice, false);
	check_bad_sets(none, false);
	check_bad_sets(beyond, false);
	check_bad_sets(others, false);
	check_bad_sets(sets, true);
}

int main(void)
{
	test_round();
	test_pull_waits();
	test_other_pushes();
	test_leave();
	test_shared();
	test_config();
	return 0;
}
