/*
 * lane_test.c - streams behind one connection, and chunks on lanes.
 */
#include "engine/lane.h"

#include <stdlib.h>

#include "base/check.h"
#include "plan/check.h"

static struct plan *ring_plan(uint64_t chunks)
{
	struct plan_spec spec = {
		.chunks = {.collective = PLAN_ALLREDUCE, .workers = 2, .bytes = chunks * 8, .chunk_bytes = 8, .align = 4},
	};
	struct plan *plan;

	struct plan_report report;

	CHECK(plan_open(plan_planner_find("ring"), &spec, &plan, NULL) == ESP_OK);
	CHECK(plan_check(plan, NULL, &report, NULL, NULL) == ESP_OK);
	return plan;
}

/* A large call on stream 0 does not keep a small one on stream 1 from being sent. */
static void streams_take_turns(void)
{
	struct lane_config config = {
		.streams = 2, .exec = {.node = 0, .credits = 64, .active_chunks = 64, .slot_bytes = 8}};
	struct plan *large = ring_plan(40), *small = ring_plan(2);
	static int32_t in[80], out[80];
	struct exec_call call = {.plan = large, .in = in, .out = out, .type = ESP_I32, .op = ESP_SUM};
	struct transport_message message;
	struct lane *lane;
	struct error err;

	CHECK(lane_open(&config, &lane, NULL) == ESP_OK);
	CHECK(lane_start(lane, 0, &call, NULL) == ESP_OK);
	call.plan = small;
	CHECK(lane_start(lane, 1, &call, NULL) == ESP_OK);
	CHECK(lane_start(lane, 2, &call, &err) == ESP_EINVAL);
	CHECK(lane_user.next(lane, 1, &message));
	CHECK_U64(message.channel, 0);
	CHECK(lane_user.next(lane, 1, &message));
	CHECK_U64(message.channel, 1);
	message = (struct transport_message){.channel = 2};
	CHECK(lane_user.begin(lane, 1, &message) == ESP_ECORRUPT);
	CHECK(lane_user.offer(lane, 1, &message) == ESP_ECORRUPT);
	CHECK(lane_user.credit(lane, 1, &message) == ESP_ECORRUPT);
	lane_user.lost(lane, 1, ESP_EPEER);
	struct exec_failure failure = lane_failure(lane);
	CHECK(failure.status == ESP_EPEER && failure.node == 1 && failure.waited && failure.wait.peer == 1);
	CHECK(lane_user.failed(lane) == ESP_EPEER);
	lane_close(lane);
	plan_close(large);
	plan_close(small);
}

/* A stream that fails by itself takes the lane with it, so that the transport tells the peers. */
static void one_fails_all(void)
{
	struct lane_config config = {
		.streams = 2, .exec = {.node = 0, .credits = 4, .active_chunks = 4, .slot_bytes = 4}};
	struct plan *plan = ring_plan(2); /* its chunks are longer than a slot */
	static int32_t in[4], out[4];
	struct exec_call call = {.plan = plan, .in = in, .out = out, .type = ESP_I32, .op = ESP_SUM};
	struct lane *lane;

	CHECK(lane_open(&config, &lane, NULL) == ESP_OK);
	CHECK(lane_user.failed(lane) == ESP_OK);
	CHECK(lane_start(lane, 1, &call, NULL) == ESP_OK);
	CHECK(lane_user.failed(lane) == ESP_ELIMIT);
	CHECK(lane_start(lane, 0, &call, NULL) == ESP_ELIMIT);
	lane_close(lane);
	plan_close(plan);
}

static void chunks_are_spread(void)
{
	struct plan *plan = ring_plan(41);
	uint8_t lane_of[41];
	uint32_t load[4] = {0};

	CHECK(lanes_assign(plan, 0, lane_of) == ESP_EINVAL);
	CHECK(lanes_assign(plan, 256, lane_of) == ESP_EINVAL);
	CHECK(lanes_assign(plan, 4, lane_of) == ESP_OK);
	for (unsigned i = 0; i < 41; i++) {
		CHECK(lane_of[i] < 4);
		load[lane_of[i]]++;
	}
	for (unsigned i = 0; i < 4; i++)
		CHECK(load[i] == 10 || load[i] == 11);
	plan_close(plan);
}

int main(void)
{
	streams_take_turns();
	one_fails_all();
	chunks_are_spread();
	return 0;
}
