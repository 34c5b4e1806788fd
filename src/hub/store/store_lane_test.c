/*
 * The answers of a lane, their order, and the end of a worker or a job.
 */
#include <malloc.h>
#include <math.h>

#include "support/store_rig.h"

/* ---- rounds ---- */

static void test_answers(void)
{
	struct rig rig;

	rig_open(&rig, WORKERS, &plain_sgd);
	set_all(&rig, 10);
	send(&rig, 2, HUB_PUSHPULL, 1, 0, 3);
	send(&rig, 1, HUB_PULL, 1, 0, 0);
	CHECK(user->ready(rig.lane) == 1 && user->ready(rig.lane) == UINT32_MAX);
	weights(&rig, 1, 1, 0, 10);
	send(&rig, 0, HUB_PUSH, 1, 0, 1);
	CHECK(!has_answer(&rig, 0) && !has_answer(&rig, 2));
	send(&rig, 1, HUB_PUSHPULL, 1, 0, 2);
	CHECK(user->ready(rig.lane) == 0 && user->ready(rig.lane) == 1 && user->ready(rig.lane) == 2);
	answer(&rig, 0, HUB_DONE, 1, 1);
	weights(&rig, 1, 1, 1, 9); /* 10 - 0.5 * (1 + 2 + 3) / 3 */
	weights(&rig, 2, 1, 1, 9);
	CHECK(!has_answer(&rig, 0) && !has_answer(&rig, 1) && !has_answer(&rig, 2));
	struct store_lane_stats stats = store_lane_stats(rig.lane);
	CHECK(stats.rounds == 1 && stats.pushed_bytes == 3 * 36 * 4 && stats.pulled_bytes == 3 * 36 * 4);
	CHECK(stats.parked == 1 && stats.slots == 2); /* worker 1's did not wait */
	check_calm(&rig);
	rig_close(&rig);
}

/* Weights that are asked for before they are set, and terms that come before. */
static void test_before_set(void)
{
	struct rig rig;

	rig_open(&rig, WORKERS, &plain_sgd);
	send(&rig, 1, HUB_PULL, 0, 0, 0);
	send(&rig, 2, HUB_PUSH, 0, 0, 6);
	CHECK(!has_answer(&rig, 1) && user->ready(rig.lane) == UINT32_MAX);
	CHECK_U64(store_lane_missing(rig.lane, 0), 1 | 2);
	send(&rig, 0, HUB_SET, 0, 0, 4);
	answer(&rig, 0, HUB_DONE, 0, 0);
	weights(&rig, 1, 0, 0, 4);
	CHECK(!has_answer(&rig, 2));
	send(&rig, 0, HUB_PULL, 0, 0, 0);
	weights(&rig, 0, 0, 0, 4);
	send(&rig, 0, HUB_PUSH, 0, 0, 6);
	send(&rig, 1, HUB_PUSH, 0, 0, 6);
	for (uint32_t worker = 0; worker < WORKERS; worker++)
		answer(&rig, worker, HUB_DONE, 0, 1);
	check_calm(&rig);
	rig_close(&rig);
}

/* An answer that is being sent borrows the weights: the update waits. */
static void test_borrowed(void)
{
	struct rig rig;

	rig_open(&rig, WORKERS, &plain_sgd);
	set_all(&rig, 10);
	send(&rig, 1, HUB_PULL, 0, 0, 0);
	send(&rig, 2, HUB_PULL, 0, 0, 0);
	struct transport_message first = answer(&rig, 1, HUB_WEIGHTS, 0, 0), second = answer(&rig, 2, HUB_WEIGHTS, 0, 0);
	CHECK(first.content == second.content && first.content != 0);
	for (uint32_t worker = 0; worker < WORKERS; worker++)
		send(&rig, worker, HUB_PUSHPULL, 0, 0, 2);
	user->sent(rig.lane, 2, HUB_WEIGHTS, second.cookie);
	CHECK(!has_answer(&rig, 0) && *(const float *)first.data == 10);
	CHECK_U64(store_lane_missing(rig.lane, 0), 0);
	user->sent(rig.lane, 1, HUB_WEIGHTS, first.cookie);
	struct transport_message third = answer(&rig, 1, HUB_WEIGHTS, 0, 1);
	CHECK(third.content != first.content && *(const float *)third.data == 9);
	check_calm(&rig);
	rig_close(&rig);
}

/* Terms are added in the order of the workers, in any order of arrival: in float32, (2^24 + 1) + -2^24 is 0, not 1. */
static void test_order(void)
{
	const float terms[WORKERS] = {0x1p24f, 1, -0x1p24f};
	const uint32_t orders[6][WORKERS] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
	const struct optimizer avg = {.kind = OPTIMIZER_AVG};

	for (int i = 0; i < 6; i++) {
		struct rig rig;

		rig_open(&rig, WORKERS, &avg);
		set_all(&rig, 10);
		for (uint32_t j = 0; j < WORKERS; j++)
			send(&rig, orders[i][j], HUB_PUSHPULL, 3, 0, terms[orders[i][j]]);
		weights(&rig, 1, 3, 1, 0);
		rig_close(&rig);
	}
}

/* Nothing follows from a term that has not come whole. */
static void test_unfinished(void)
{
	float data[64] = {0};
	struct rig rig;

	rig_open(&rig, 2, &plain_sgd);
	set_all(&rig, 10);
	send(&rig, 1, HUB_PUSHPULL, 0, 0, 8);
	CHECK(begin(&rig, 0, HUB_PUSHPULL, 0, 0, 256) == ESP_OK);
	struct transport_room room = user->room(rig.lane, 0, HUB_PUSHPULL);
	memcpy(room.at, data, 256);
	user->arrived(rig.lane, 0, HUB_PUSHPULL, 256);
	CHECK(!has_answer(&rig, 1));
	CHECK_U64(store_lane_missing(rig.lane, 0), 1);
	user->ended(rig.lane, 0, HUB_PUSHPULL);
	weights(&rig, 1, 0, 1, 8);
	rig_close(&rig);
}

/* A term that waits lies within a cache line as the worker's memory does, one that does not lies in the sum. */
static void test_places(void)
{
	struct transport_message message = {.channel = HUB_PUSH, .bytes = 256, .shift = 20};
	struct rig rig;

	rig_open(&rig, 2, &plain_sgd);
	set_all(&rig, 10);
	CHECK(user->begin(rig.lane, 1, &message) == ESP_OK);
	CHECK_U64((uintptr_t)user->room(rig.lane, 1, HUB_PUSH).at % TRANSPORT_SHIFTS, 20);
	message.index = rig.sent[0];
	CHECK(user->begin(rig.lane, 0, &message) == ESP_OK);
	CHECK(user->room(rig.lane, 0, HUB_PUSH).at == (void *)rig.model.sums);
	rig_close(&rig);
}

static void test_nan(void)
{
	float data[7] = {1, NAN, INFINITY, -INFINITY, 1, 1, 1};
	struct rig rig;

	rig_open(&rig, 2, &plain_sgd);
	set_all(&rig, 10);
	CHECK(begin(&rig, 1, HUB_PUSH, 3, 0, 28) == ESP_OK);
	finish(&rig, 1, HUB_PUSH, data, 28);
	data[1] = 1;
	CHECK(begin(&rig, 0, HUB_PUSHPULL, 3, 0, 28) == ESP_OK);
	finish(&rig, 0, HUB_PUSHPULL, data, 28);
	const float *got = answer(&rig, 0, HUB_WEIGHTS, 3, 1).data;
	CHECK(got[0] == 9.5f && isnan(got[1]) && got[2] == -INFINITY && got[3] == INFINITY && got[6] == 9.5f);
	check_calm(&rig);
	rig_close(&rig);
}

/* Answers leave in the order in which they became due. */
static void test_due_order(void)
{
	struct rig rig;

	rig_open(&rig, 1, &plain_sgd);
	set_all(&rig, 10);
	send(&rig, 0, HUB_PULL, 2, 0, 0);
	send(&rig, 0, HUB_PUSH, 3, 0, 2);
	send(&rig, 0, HUB_PUSHPULL, 0, 0, 2);
	weights(&rig, 0, 2, 0, 10);
	answer(&rig, 0, HUB_DONE, 3, 1);
	weights(&rig, 0, 0, 1, 9);
	CHECK(!has_answer(&rig, 0));
	rig_close(&rig);
}

static void test_versions(void)
{
	struct rig rig;
	uint64_t least = 9, most = 9;

	rig_open(&rig, 1, &plain_sgd);
	set_all(&rig, 10);
	for (uint32_t version = 0; version < 3; version++) {
		for (uint32_t chunk = 0; chunk < CHUNKS; chunk++) {
			CHECK(store_lane_versions(rig.lane, &least, &most));
			CHECK(least == version && most == version + (chunk > 0));
			send(&rig, 0, HUB_PUSH, chunk, version, 0);
			answer(&rig, 0, HUB_DONE, chunk, version + 1);
		}
	}
	rig_close(&rig);
}

static void test_missing(void)
{
	struct rig rig;

	rig_open(&rig, WORKERS, &plain_sgd);
	set_all(&rig, 10);
	for (uint32_t tensor = 0; tensor < 4; tensor++)
		CHECK_U64(store_lane_missing(rig.lane, tensor), 0);
	for (uint32_t worker = 0; worker < WORKERS; worker++)
		send(&rig, worker, HUB_PUSH, 0, 0, 0);
	for (uint32_t worker = 0; worker < WORKERS; worker++)
		answer(&rig, worker, HUB_DONE, 0, 1);
	send(&rig, 0, HUB_PUSH, 0, 1, 0);
	CHECK_U64(store_lane_missing(rig.lane, 0), 2 | 4);
	send(&rig, 1, HUB_PUSH, 1, 0, 0); /* the older round counts */
	CHECK_U64(store_lane_missing(rig.lane, 0), 1 | 4);
	CHECK_U64(store_lane_missing(rig.lane, 2), 0);
	rig_close(&rig);
}

/* ---- the end ---- */

static void test_lost(void)
{
	struct rig rig;

	rig_open(&rig, WORKERS, &plain_sgd);
	user->lost(rig.lane, 2, ESP_ELINK);
	user->lost(rig.lane, 1, ESP_EPEER);
	check_trouble(&rig, ESP_ELINK, 2, "");
	rig_close(&rig);
}

static void test_failed(void)
{
	struct rig rig;

	rig_open(&rig, 1, &plain_sgd);
	set_all(&rig, 10);
	send(&rig, 0, HUB_PULL, 0, 0, 0);
	struct transport_message lent = answer(&rig, 0, HUB_WEIGHTS, 0, 0);
	send(&rig, 0, HUB_PUSHPULL, 0, 0, 2); /* whole, but the update waits */
	send(&rig, 0, HUB_PULL, 1, 0, 0);
	CHECK(begin(&rig, 0, HUB_PUSH, 2, 0, 20) == ESP_OK);
	store_lane_fail(rig.lane, ESP_ETIMEOUT);
	store_lane_fail(rig.lane, ESP_EPEER);
	CHECK(user->failed(rig.lane) == ESP_ETIMEOUT);
	CHECK(!has_answer(&rig, 0) && user->ready(rig.lane) == UINT32_MAX);
	CHECK(user->room(rig.lane, 0, HUB_PUSH).at == NULL);
	user->arrived(rig.lane, 0, HUB_PUSH, 20);
	user->ended(rig.lane, 0, HUB_PUSH);
	user->sent(rig.lane, 0, HUB_WEIGHTS, lent.cookie);
	CHECK(begin(&rig, 0, HUB_PULL, 3, 0, 0) == ESP_PENDING);
	CHECK(store_lane_stats(rig.lane).rounds == 0 && rig.model.weights[0] == 10);
	rig_close(&rig);
}

static void leave_rig(struct rig *rig)
{
	rig_open(rig, WORKERS, &plain_sgd);
	set_all(rig, 10);
}

static void test_leave(void)
{
	struct rig rig;

	leave_rig(&rig);
	store_lane_leave(rig.lane, 1);
	user->lost(rig.lane, 1, ESP_EPEER);
	send(&rig, 0, HUB_PULL, 0, 0, 0);
	weights(&rig, 0, 0, 0, 10);
	CHECK(begin(&rig, 1, HUB_HYPER, 0, 0, OPTIMIZER_BYTES) == ESP_PENDING);
	check_calm(&rig);
	send(&rig, 2, HUB_PUSH, 3, 0, 1);
	check_trouble(&rig, ESP_EPEER, 1, "worker 1 has left, and round 0 of tensor 3 waits for it");
	rig_close(&rig);

	leave_rig(&rig);
	send(&rig, 0, HUB_PUSH, 0, 0, 1);
	store_lane_leave(rig.lane, 2);
	check_trouble(&rig, ESP_EPEER, 2, "round 0 of tensor 0");
	rig_close(&rig);

	leave_rig(&rig);
	send(&rig, 1, HUB_PUSH, 0, 0, 1);
	store_lane_leave(rig.lane, 1);
	check_trouble(&rig, ESP_ECORRUPT, 1, "before its requests were answered");
	rig_close(&rig);

	leave_rig(&rig);
	store_lane_leave(rig.lane, 1);
	CHECK(begin(&rig, 1, HUB_PULL, 0, 0, 0) == ESP_ECORRUPT);
	check_trouble(&rig, ESP_ECORRUPT, 1, "worker 1 sent a frame of kind 2 after it had left");
	rig_close(&rig);
}

/* ---- opening ---- */

static void check_not_opened(struct store_lane_config config, const char *words)
{
	struct store_lane *lane;
	struct error err;

	CHECK(store_lane_open(&config, &lane, &err) == ESP_EINVAL);
	CHECK_MSG(strstr(err.text, words), "\"%s\" does not say \"%s\"", err.text, words);
}

static void test_config(void)
{
	struct rig rig;
	struct optimizer optimizers[2] = {plain_sgd, plain_sgd};

	rig_open(&rig, 1, &plain_sgd);
	struct store_lane_config config = {
		.layout = &rig.layout, .model = &rig.model, .workers = 1, .optimizers = optimizers};
	config.workers = 0;
	check_not_opened(config, "0 workers");
	config.workers = STORE_WORKERS_MOST + 1;
	check_not_opened(config, "65 workers");
	config.workers = 1;
	config.lane = 1;
	check_not_opened(config, "lane 1");
	config.lane = 0;
	optimizers[1].momentum = 0.9;
	check_not_opened(config, "parameter group 1 needs 1 arrays");
	optimizers[1] = (struct optimizer){.kind = OPTIMIZER_AVG};
	check_not_opened(config, "groups 0 and 1 have different kinds");
	optimizers[1] = plain_sgd;
	optimizers[0].lr = -1;
	check_not_opened(config, "lr");
	CHECK_U64(store_model_bytes(&rig.layout, &plain_sgd), 8 * rig.layout.elements);
	optimizers[1].momentum = 0.9;
	CHECK_U64(store_model_bytes(&rig.layout, &optimizers[1]), 12 * rig.layout.elements);
	rig_close(&rig);
}

static uint64_t allocated(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

/* The bound holds, and is no more than a little too high. Opening allocates all. */
static void test_bytes(uint32_t elements, uint32_t workers)
{
	const struct layout_tensor tensors[2] = {{1, elements, ESP_F32, 0}, {2, elements / 3, ESP_F32, 1}};
	const struct optimizer optimizers[2] = {plain_sgd, plain_sgd};
	struct hub_layout layout;
	struct store_lane *lane;
	float nothing;
	struct store_model model = {.weights = &nothing, .sums = &nothing};

	CHECK(hub_layout_make(tensors, 2, 4096, 2, &layout, NULL) == ESP_OK);
	struct store_lane_config config = {.layout = &layout, .model = &model, .lane = 1, .workers = workers,
	                                   .optimizers = optimizers};
	uint64_t before = allocated(), bound = store_lane_bytes(&layout, 1, workers, workers);
	CHECK(store_lane_open(&config, &lane, NULL) == ESP_OK);
	uint64_t taken = allocated() - before;
	if (before != 0) /* sanitizers keep no account */
		CHECK_MSG(taken <= bound && bound <= taken + 64 * 1024, "%" PRIu64 " bytes, bound %" PRIu64, taken, bound);
	store_lane_close(lane);
	hub_layout_fini(&layout);
}

int main(void)
{
	test_answers();
	test_before_set();
	test_borrowed();
	test_order();
	test_unfinished();
	test_places();
	test_nan();
	test_due_order();
	test_versions();
	test_missing();
	test_lost();
	test_failed();
	test_leave();
	test_config();
	test_bytes(0, 3);
	test_bytes(100, 1);
	test_bytes(100, 64);
	test_bytes(500000, 8);
	return 0;
}
