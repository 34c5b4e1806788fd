/*
 * lane_test.c - streams behind the connections of transports, and chunks on lanes.
 */
#include "engine/lane.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/rng.h"
#include "engine/lane_state.h"
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

static struct lane *lane_of(uint32_t peers, uint32_t ports, const uint8_t *port_of)
{
	struct lane_config config = {.exec = {.credits = 64, .active_chunks = 64, .slot_bytes = 8},
	                             .peers = peers,
	                             .ports = ports,
	                             .port_of = port_of};
	struct lane *lane;

	CHECK(lane_open(&config, &lane, NULL) == ESP_OK);
	return lane;
}

/* A stream of two: us, and a peer. */
static enum esp_status pair(struct lane *lane, uint16_t channel, uint32_t us, uint32_t peer)
{
	uint32_t peers[2] = {us, peer};
	struct lane_stream_config config = {.channel = channel, .node = 0, .members = 2, .peers = peers};

	return lane_stream_open(lane, &config, NULL);
}

static int32_t in[80], out[80];

static void start(struct lane *lane, uint16_t channel, const struct plan *plan)
{
	struct exec_call call = {.plan = plan, .in = in, .out = out, .type = ESP_I32, .op = ESP_SUM, .digest = 5};

	CHECK(lane_start(lane, channel, &call, NULL) == ESP_OK);
}

/* A large call on one stream does not keep a small one on another from being sent. */
static void streams_take_turns(void)
{
	struct plan *large = ring_plan(40), *small = ring_plan(2);
	struct lane *lane = lane_of(2, 1, NULL);
	void *port = lane_port(lane, 0);
	struct transport_message message;
	struct exec_call call = {.plan = small, .in = in, .out = out, .type = ESP_I32, .op = ESP_SUM};
	struct exec_wait wait;

	CHECK(pair(lane, 7, 0, 1) == ESP_OK && pair(lane, 40000, 0, 1) == ESP_OK);
	CHECK(pair(lane, 7, 0, 1) == ESP_EINVAL);
	CHECK(lane_start(lane, 2, &call, NULL) == ESP_EINVAL);
	CHECK(!lane_waits(lane, 7, &wait) && !lane_waits(lane, 2, &wait));
	start(lane, 7, large);
	start(lane, 40000, small);
	CHECK_U64(lane_unfinished(lane), 2);
	CHECK(lane_waits(lane, 7, &wait) && wait.peer == 1);
	CHECK_U64(lane_user.ready(port), 1);
	CHECK_U64(lane_user.ready(port), UINT32_MAX);
	CHECK(lane_user.next(port, 1, &message) && message.channel == 7);
	CHECK(lane_user.next(port, 1, &message) && message.channel == 40000);
	CHECK_U64(message.call, 5);
	for (unsigned i = 0; i < 19; i++)
		CHECK(lane_user.next(port, 1, &message) && message.channel == 7);
	CHECK(!lane_user.next(port, 1, &message));
	lane_close(lane);
	plan_close(large);
	plan_close(small);
}

static struct lane *twin_lane(uint32_t node, struct plan **out_plan)
{
	struct plan_spec spec = {
		.chunks = {.collective = PLAN_ALLREDUCE, .workers = 4, .bytes = 8, .chunk_bytes = 8, .align = 4}};
	struct lane_stream_config config = {
		.channel = 3, .node = node, .members = 4, .peers = (const uint32_t[]){10, 11, 12, 13}};
	struct lane *lane = lane_of(20, 1, NULL);

	CHECK(plan_open(plan_planner_find("twin"), &spec, out_plan, NULL) == ESP_OK);
	CHECK(lane_stream_open(lane, &config, NULL) == ESP_OK);
	start(lane, 3, *out_plan);
	return lane;
}

static void send_all(struct lane *lane)
{
	void *port = lane_port(lane, 0);
	struct transport_message message;

	for (uint32_t peer; (peer = lane_user.ready(port)) != UINT32_MAX;) {
		while (lane_user.next(port, peer, &message))
			lane_user.sent(port, peer, message.channel, message.cookie);
	}
}

/* The peer that the only call waits for: the transport may read from it without asking the kernel first. */
static void awaited(void)
{
	struct plan *plan, *other = ring_plan(2);
	struct lane *lane = twin_lane(2, &plan);
	void *port = lane_port(lane, 0);
	int32_t data[2] = {1, 2};
	struct transport_message message = {.channel = 3, .call = 5, .bytes = 8, .data = data};

	send_all(lane);
	CHECK_U64(lane_user.awaits(port), 10);
	CHECK(pair(lane, 8, 0, 10) == ESP_OK);
	start(lane, 8, other);
	CHECK_U64(lane_user.awaits(port), PLAN_NONE); /* of two calls none is preferred */
	lane_close(lane);
	plan_close(plan);

	lane = twin_lane(0, &plan);
	port = lane_port(lane, 0);
	CHECK_U64(lane_user.awaits(port), 12);
	CHECK(lane_user.take(port, 12, &message) == ESP_OK);
	send_all(lane);
	CHECK_U64(lane_user.awaits(port), 11);
	CHECK(lane_user.take(port, 11, &message) == ESP_OK);
	send_all(lane);
	CHECK_U64(lane_user.awaits(port), PLAN_NONE); /* it has ended */
	struct exec_done done;
	CHECK(lane_take_done(lane, &done) && done.status == ESP_OK && out[1] == in[1] + 4);
	start(lane, 3, plan);
	CHECK_U64(lane_user.awaits(port), 12);
	lane_close(lane);
	plan_close(plan);
	plan_close(other);
}

/* A lost peer is no member of new streams until it is readmitted; what failed stays failed. */
static void readmitted(void)
{
	struct lane *lane = lane_of(4, 1, NULL);
	void *port = lane_port(lane, 0);
	struct lane_failure failure;

	CHECK(pair(lane, 3, 0, 1) == ESP_OK);
	lane_user.lost(port, 1, ESP_EPEER);
	CHECK(lane_has_lost(lane, 1) && lane_take_failure(lane, &failure) && failure.channel == 3);
	CHECK(pair(lane, 4, 0, 1) == ESP_EPEER);
	lane_readmit(lane, 1);
	CHECK(!lane_has_lost(lane, 1));
	CHECK(pair(lane, 4, 0, 1) == ESP_OK);
	lane_readmit(lane, 1); /* it is there: nothing happens */
	CHECK(pair(lane, 5, 0, 1) == ESP_OK);
	lane_user.lost(port, 1, ESP_EPEER);
	CHECK(lane_take_failure(lane, &failure) && failure.channel != 3);
	lane_close(lane);
}

/* Messages on a channel that is not open, from a node that is no member, or after a failure are dropped. */
static void dropped(void)
{
	struct plan *plan = ring_plan(2);
	struct lane *lane = lane_of(4, 1, NULL);
	void *port = lane_port(lane, 0);
	struct transport_message message = {.channel = 3, .index = 77, .ack = 99},
	                         credit = {.is_credit = true, .channel = 3, .ack = 5};
	struct lane_failure failure;

	for (unsigned round = 0; round < 4; round++) {
		uint32_t from = round == 1 ? 2 : 1;

		if (round == 1)
			CHECK(pair(lane, 3, 0, 1) == ESP_OK);
		if (round == 2)
			lane_fail_stream(lane, 3, PLAN_NONE, ESP_EABORTED);
		if (round == 3)
			lane_stream_close(lane, 3);
		CHECK(lane_user.begin(port, from, &message) == ESP_PENDING);
		CHECK(lane_user.offer(port, from, &message) == ESP_PENDING);
		CHECK(lane_user.credit(port, from, &credit) == ESP_OK);
		CHECK_U64(lane_user.consumed(port, from, 3), 0);
		lane_user.sent(port, from, 3, NULL);
		CHECK(lane_user.failed(port) == ESP_OK);
	}
	CHECK(!lane_take_failure(lane, &failure)); /* closed before it was asked for */
	lane_stream_close(lane, 3);
	/* On an open one, it is the connection that is broken. */
	CHECK(pair(lane, 3, 0, 1) == ESP_OK);
	CHECK(lane_user.begin(port, 1, &message) == ESP_ECORRUPT);
	CHECK(lane_user.credit(port, 1, &credit) == ESP_ECORRUPT);
	lane_close(lane);
	plan_close(plan);
}

/* Streams fail one by one. */
static void one_by_one(void)
{
	struct plan *plan = ring_plan(2);
	struct lane *lane = lane_of(4, 1, NULL);
	void *port = lane_port(lane, 0);
	struct exec_call call = {.plan = plan, .in = in, .out = out, .type = ESP_I32, .op = ESP_SUM};
	struct lane_failure failure;
	struct exec_done done;

	for (uint32_t peer = 1; peer < 4; peer++) {
		CHECK(pair(lane, (uint16_t)peer, 0, peer) == ESP_OK);
		start(lane, (uint16_t)peer, plan);
	}
	CHECK(!lane_take_failure(lane, &failure));
	/* Another call: the peer, and the number of ours. The connection goes on. */
	struct transport_message message = {.channel = 3, .call = 6, .bytes = 8};
	CHECK(lane_user.begin(port, 3, &message) == ESP_PENDING);
	CHECK(lane_take_failure(lane, &failure));
	CHECK(failure.channel == 3 && failure.why.status == ESP_EMISMATCH && failure.why.node == 3 &&
	      failure.why.call == 0);
	CHECK(lane_take_done(lane, &done) && done.status == ESP_EMISMATCH && !lane_take_done(lane, &done));
	CHECK_U64(lane_unfinished(lane), 2);
	/* A lost peer takes its streams along, and no others. */
	lane_user.lost(port, 2, ESP_ELINK);
	CHECK(lane_has_lost(lane, 2) && !lane_has_lost(lane, 3));
	CHECK(lane_take_failure(lane, &failure));
	CHECK(failure.channel == 2 && failure.why.status == ESP_ELINK && failure.why.node == 2);
	CHECK(failure.why.waited && failure.why.wait.peer == 2);
	CHECK(!lane_take_failure(lane, &failure));
	CHECK(lane_start(lane, 2, &call, NULL) == ESP_ELINK);
	CHECK(pair(lane, 100, 0, 2) == ESP_EPEER && pair(lane, 100, 0, 3) == ESP_OK);
	CHECK(lane_user.failed(port) == ESP_OK);
	lane_stream_close(lane, 2); /* with a result that was not taken */
	CHECK_U64(lane_unfinished(lane), 1);
	/* The lane as a whole. */
	lane_fail(lane, 1, ESP_EJOB);
	CHECK(lane_user.failed(port) == ESP_EJOB);
	CHECK(lane_take_failure(lane, &failure) && lane_take_failure(lane, &failure) && !lane_take_failure(lane, &failure));
	CHECK(pair(lane, 101, 0, 3) == ESP_EJOB);
	CHECK(lane_take_done(lane, &done) && done.status == ESP_EJOB && lane_unfinished(lane) == 0);
	CHECK_U64(lane_stats(lane).calls, 3);
	lane_close(lane);
	plan_close(plan);
}

/* A stream that cannot run a call says so, and keeps no other from it. */
static void own_failure(void)
{
	struct lane_config config = {.exec = {.credits = 4, .active_chunks = 4, .slot_bytes = 4}, .peers = 2, .ports = 1};
	struct plan *plan = ring_plan(2); /* its chunks are longer than a slot */
	struct lane_failure failure;
	struct exec_done done;
	struct lane *lane;

	CHECK(lane_open(&config, &lane, NULL) == ESP_OK);
	CHECK(pair(lane, 0, 0, 1) == ESP_OK && pair(lane, 1, 0, 1) == ESP_OK);
	start(lane, 1, plan);
	CHECK(lane_take_failure(lane, &failure) && failure.channel == 1 && failure.why.status == ESP_ELIMIT);
	CHECK(failure.why.node == PLAN_NONE);
	CHECK(lane_take_done(lane, &done) && done.status == ESP_ELIMIT);
	start(lane, 0, plan);
	CHECK(lane_take_failure(lane, &failure) && failure.channel == 0);
	lane_close(lane);
	plan_close(plan);
}

/* Each transport is told of its own peers, and streams are closed with what waits in them. */
static void ports(void)
{
	static const uint8_t port_of[] = {0, 0, 1, 1};
	struct plan *plan = ring_plan(2);
	struct lane *lane = lane_of(4, 2, port_of);
	struct transport_message message;

	CHECK(lane_port(lane, 2) == NULL);
	for (uint32_t peer = 1; peer < 4; peer++) {
		CHECK(pair(lane, (uint16_t)peer, 0, peer) == ESP_OK && pair(lane, (uint16_t)(peer + 8), 0, peer) == ESP_OK);
		start(lane, (uint16_t)peer, plan);
		start(lane, (uint16_t)(peer + 8), plan);
	}
	CHECK_U64(lane_user.ready(lane_port(lane, 0)), 1);
	CHECK_U64(lane_user.ready(lane_port(lane, 0)), UINT32_MAX);
	lane_fail_stream(lane, 2, 9999, ESP_EABORTED);
	lane_stream_close(lane, 2);
	lane_stream_close(lane, 10);
	CHECK_U64(lane_user.ready(lane_port(lane, 1)), 3); /* nothing is left for 2 */
	CHECK_U64(lane_user.ready(lane_port(lane, 1)), UINT32_MAX);
	lane_stream_close(lane, 3);
	CHECK(lane_user.next(lane_port(lane, 1), 3, &message) && message.channel == 11);
	lane_close(lane);
	plan_close(plan);
}

static void refusals(void)
{
	struct lane_config config = {.exec = {.credits = 4, .active_chunks = 4, .slot_bytes = 4}, .peers = 2};
	struct lane *lane;
	struct error err;

	CHECK(lane_open(&config, &lane, &err) == ESP_EINVAL && strstr(err.text, "transports"));
	config.ports = 1;
	config.port_of = (const uint8_t[]){0, 1};
	CHECK(lane_open(&config, &lane, &err) == ESP_EINVAL);
	lane = lane_of(5, 1, NULL);
	static const uint32_t twice[] = {4, 1, 4}, beyond[] = {1, 5};
	struct lane_stream_config stream = {.members = 3, .peers = twice};
	CHECK(lane_stream_open(lane, &stream, &err) == ESP_EINVAL && strstr(err.text, "twice"));
	stream = (struct lane_stream_config){.members = 2, .peers = beyond};
	CHECK(lane_stream_open(lane, &stream, &err) == ESP_EINVAL);
	stream = (struct lane_stream_config){.members = 2, .node = 2};
	CHECK(lane_stream_open(lane, &stream, &err) == ESP_EINVAL);
	stream = (struct lane_stream_config){.members = 6};
	CHECK(lane_stream_open(lane, &stream, &err) == ESP_EINVAL);
	stream.members = 0;
	CHECK(lane_stream_open(lane, &stream, &err) == ESP_EINVAL);
	lane_close(lane);
	lane_close(NULL);
}

/* Thousands of streams of many members, opened and closed in any order: only those that were stirred are asked. */
static void many_streams(struct rng *rng)
{
	static bool is_open[65536];
	struct plan *plan = ring_plan(2);
	struct lane *lane = lane_of(1000, 1, NULL);
	void *port = lane_port(lane, 0);
	struct transport_message message;
	uint32_t streams = 0;

	for (unsigned i = 0; i < 20000; i++) {
		uint16_t channel = (uint16_t)rng_below(rng, 65536);
		struct lane_stream_config config = {.channel = channel, .members = 1000};

		CHECK(lane_stream_open(lane, &config, NULL) == (is_open[channel] ? ESP_EINVAL : ESP_OK));
		streams += !is_open[channel];
		is_open[channel] = true;
		if (rng_chance(rng, 1, 3)) {
			channel = (uint16_t)rng_below(rng, 65536);
			streams -= is_open[channel];
			is_open[channel] = false;
			lane_stream_close(lane, channel);
		}
		CHECK(!lane->first_in[STIRRED] && lane_user.ready(port) == UINT32_MAX);
	}
	CHECK(streams > 5000);
	for (unsigned i = 0; i < 1000; i++) {
		uint16_t channel = (uint16_t)rng_below(rng, 65536);

		if (!is_open[channel])
			continue;
		start(lane, channel, plan);
		CHECK(lane->first_in[STIRRED] && !lane->first_in[STIRRED]->next_in[STIRRED]);
		CHECK_U64(lane_user.ready(port), 1);
		CHECK(lane_user.next(port, 1, &message) && message.channel == channel);
		lane_stream_close(lane, channel); /* with what is under way */
		is_open[channel] = false;
		CHECK(!lane_user.next(port, 1, &message));
	}
	lane_close(lane);
	plan_close(plan);
}

/* Place to rank and back, for groups of any shape. */
static void members(struct rng *rng)
{
	for (unsigned round = 0; round < 2000; round++) {
		uint32_t ranks = 1 + (uint32_t)rng_below(rng, 60), all[60], count = 0;
		uint32_t stride = 1 + (uint32_t)rng_below(rng, 5), kind = (uint32_t)rng_below(rng, 3);
		struct members group;

		for (uint32_t i = (uint32_t)rng_below(rng, ranks); i < ranks; i += kind == 0 ? stride : 1) {
			if (kind == 0 || rng_chance(rng, 2, 3))
				all[count++] = i;
		}
		for (uint32_t i = count; kind == 2 && i-- > 1;) {
			uint32_t j = (uint32_t)rng_below(rng, i + 1), other = all[j];

			all[j] = all[i];
			all[i] = other;
		}
		if (count == 0)
			continue;
		CHECK(lane_members_init(&group, all, count, ranks, NULL) == ESP_OK);
		CHECK(kind != 0 || !group.peers);
		uint32_t found = 0;
		for (uint32_t peer = 0; peer < ranks + 10; peer++) {
			uint32_t place = lane_members_place(&group, peer);

			CHECK(place == PLAN_NONE || (place < count && all[place] == peer && members_peer(&group, place) == peer));
			found += place != PLAN_NONE;
		}
		CHECK_U64(found, count);
		CHECK(lane_members_place(&group, PLAN_NONE) == PLAN_NONE);
		lane_members_fini(&group);
	}
}

static void chunks_are_spread(void)
{
	struct plan *plan = ring_plan(41);
	uint8_t lane_of_chunk[41];
	uint32_t load[4] = {0};

	CHECK(lanes_assign(plan, 0, NULL, lane_of_chunk) == ESP_EINVAL);
	CHECK(lanes_assign(plan, 256, NULL, lane_of_chunk) == ESP_EINVAL);
	CHECK(lanes_assign(plan, 4, NULL, lane_of_chunk) == ESP_OK);
	for (unsigned i = 0; i < 41; i++) {
		CHECK(lane_of_chunk[i] < 4);
		load[lane_of_chunk[i]]++;
	}
	for (unsigned i = 0; i < 4; i++)
		CHECK(load[i] == 10 || load[i] == 11);
	memset(load, 0, sizeof(load));
	CHECK(lanes_assign(plan, 4, (uint64_t[]){5, 0, 1, 2}, lane_of_chunk) == ESP_OK);
	for (unsigned i = 0; i < 41; i++)
		load[lane_of_chunk[i]]++;
	CHECK(load[0] >= 25 && load[0] <= 26 && load[1] == 0 && load[2] >= 5 && load[2] <= 6 && load[3] >= 10 &&
	      load[3] <= 11);
	plan_close(plan);
}

int main(int argc, char **argv)
{
	struct rng rng;

	rng_init(&rng, test_seed(argc, argv, 1));
	streams_take_turns();
	awaited();
	readmitted();
	dropped();
	one_by_one();
	own_failure();
	ports();
	refusals();
	members(&rng);
	many_streams(&rng);
	chunks_are_spread();
	return 0;
}
