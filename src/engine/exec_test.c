/*
 * exec_test.c - one executor, its peers played by hand: the protocol, and peers that break it.
 *
 * That whole clusters compute the right thing is shown in tests/cluster.
 */
#include "engine/exec.h"

#include <math.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/rng.h"
#include "plan/check.h"

#define NODES 3u
#define CHUNK 16u
#define CHUNKS 8u
#define DIGEST 0x12345678u

static struct plan *flat_plan(void)
{
	struct plan_spec spec = {
		.chunks = {
			.collective = PLAN_ALLREDUCE, .workers = NODES, .bytes = CHUNK * CHUNKS, .chunk_bytes = CHUNK, .align = 4},
	};
	struct plan *plan;

	struct plan_report report;

	CHECK(plan_open(plan_planner_find("flat"), &spec, &plan, NULL) == ESP_OK);
	CHECK(plan_check(plan, NULL, &report, NULL, NULL) == ESP_OK);
	return plan;
}

static struct exec *open_node(uint32_t node, uint32_t credits)
{
	struct exec_config config = {.node = node, .credits = credits, .active_chunks = 4, .slot_bytes = 64};
	struct exec *exec;

	CHECK(exec_open(&config, &exec, NULL) == ESP_OK);
	return exec;
}

static int32_t input[CHUNK * CHUNKS / 4], output[CHUNK * CHUNKS / 4];

static void start(struct exec *exec, const struct plan *plan)
{
	struct exec_call call = {
		.plan = plan, .in = input, .out = output, .type = ESP_I32, .op = ESP_SUM, .digest = DIGEST, .cookie = output};

	CHECK(exec_start(exec, &call, NULL) == ESP_OK);
}

static struct transport_message message(uint32_t index, uint32_t bytes)
{
	return (struct transport_message){.index = index, .call = DIGEST, .bytes = bytes};
}

static bool takes; /* messages come in one call */

/* A message of one value in all elements, whole. */
static enum esp_status feed(struct exec *exec, uint32_t from, uint32_t index, int32_t value)
{
	int32_t data[CHUNK / 4];
	struct transport_message head = message(index, CHUNK);
	uint32_t done = 0;

	for (unsigned i = 0; i < CHUNK / 4; i++)
		data[i] = value;
	head.data = data;
	if (takes)
		return exec_take(exec, from, &head);
	enum esp_status status = exec_begin(exec, from, &head);
	while (status == ESP_OK && done < CHUNK) {
		struct transport_room room = exec_room(exec, from);
		uint32_t bytes = room.bytes < 5 ? room.bytes : 5; /* elements are split */

		if (bytes > CHUNK - done)
			bytes = CHUNK - done;
		/* However it is cut, it keeps its place within a cache line, unless its place is the caller's. */
		bool is_callers = (uintptr_t)room.at - (uintptr_t)output < sizeof(output);
		CHECK(is_callers || (uintptr_t)room.at % 64 == done);
		memcpy(room.at, (uint8_t *)data + done, bytes);
		exec_arrived(exec, from, bytes);
		done += bytes;
	}
	if (status == ESP_OK)
		exec_ended(exec, from);
	return status;
}

/* Errors of a peer, each on a fresh executor of node 0, which owns chunks 0, 3 and 6. */
static void violations(void)
{
	struct plan *plan = flat_plan();
	struct transport_message head;
	struct exec *exec = open_node(0, 2);

	start(exec, plan);
	head = message(2, CHUNK); /* beyond the window */
	CHECK(exec_begin(exec, 1, &head) == ESP_ECORRUPT);
	head = message(UINT32_MAX, CHUNK); /* before it */
	CHECK(exec_begin(exec, 1, &head) == ESP_ECORRUPT);
	head = message(0, 65); /* longer than any chunk */
	CHECK(exec_begin(exec, 1, &head) == ESP_ECORRUPT);
	head = message(0, CHUNK);
	head.ack = 1000; /* of what was never sent */
	CHECK(exec_begin(exec, 1, &head) == ESP_ECORRUPT);
	CHECK(exec_credit(exec, 1, &head) == ESP_ECORRUPT);
	/* Node 2's contribution to chunk 0 waits for node 1's; it must not come twice. */
	CHECK(feed(exec, 2, 0, 1) == ESP_OK);
	CHECK(feed(exec, 2, 0, 1) == ESP_ECORRUPT);
	/* Node 1's is consumed at once: then its number is below the window. */
	CHECK(feed(exec, 1, 0, 1) == ESP_OK);
	CHECK(feed(exec, 1, 0, 1) == ESP_ECORRUPT);
	CHECK(exec_failure(exec).status == ESP_OK); /* the connection is to blame, not the call */
	exec_close(exec);
	plan_close(plan);
}

/* A peer that runs another call: found out by its digest, or by the size of a message. The first call is done. */
static void other_call(struct transport_message head, bool early, bool offered)
{
	struct plan *plan = flat_plan();
	struct exec *exec = open_node(0, 64);
	struct exec_done done;

	if (early)
		CHECK((offered ? exec_offer(exec, 1, &head) : exec_begin(exec, 1, &head)) == ESP_OK);
	start(exec, plan);
	if (!early)
		CHECK((offered ? exec_offer(exec, 1, &head) : exec_begin(exec, 1, &head)) == ESP_EMISMATCH);
	struct exec_failure failure = exec_failure(exec);
	CHECK(failure.status == ESP_EMISMATCH && failure.node == 1 && failure.call == 0);
	CHECK(exec_take_done(exec, &done) && done.status == ESP_EMISMATCH && done.cookie == output);
	CHECK(exec_begin(exec, 1, &head) == ESP_EMISMATCH);
	if (early && !offered) { /* messages under way go nowhere */
		exec_arrived(exec, 1, exec_room(exec, 1).bytes);
		exec_ended(exec, 1);
	}
	exec_close(exec);
	plan_close(plan);
}

static void other_calls(void)
{
	int32_t data[CHUNK / 4] = {0};

	for (unsigned i = 0; i < 8; i++) {
		struct transport_message head = message(0, i & 1 ? CHUNK - 4 : CHUNK);

		head.call = i & 1 ? DIGEST : DIGEST + 1;
		head.data = data;
		other_call(head, i & 2, i & 4);
	}
}

/* Which call it is in place of is counted from the first. */
static void later_call(void)
{
	struct plan *plan = flat_plan();
	struct exec_config config = {.node = 1, .credits = 64, .active_chunks = 64, .slot_bytes = 64};
	struct exec *exec;

	CHECK(exec_open(&config, &exec, NULL) == ESP_OK);
	start(exec, plan);
	start(exec, plan);
	/* A call has six messages from node 0: the sums of its chunks 0, 3 and 6, its parts of 1, 4, 7. */
	struct transport_message head = message(6, CHUNK);
	head.call++;
	CHECK(exec_begin(exec, 0, &head) == ESP_EMISMATCH);
	CHECK_U64(exec_failure(exec).call, 1);
	CHECK_U64(exec_failure(exec).node, 0);
	exec_close(exec);
	plan_close(plan);
}

/* Sends of the same bytes have the same number, others do not. */
static void contents(void)
{
	struct plan *plan = flat_plan();
	struct exec *exec = open_node(0, 64);
	struct transport_message out[2][4];

	start(exec, plan);
	CHECK(exec_next(exec, 1, &out[0][0]) && exec_next(exec, 2, &out[1][0])); /* parts of chunks 1 and 2 */
	CHECK(out[0][0].content != 0 && out[1][0].content != 0 && out[0][0].content != out[1][0].content);
	CHECK_U64(out[0][0].call, DIGEST);
	while (exec_next(exec, 1, &out[0][1]) || exec_next(exec, 2, &out[0][1]))
		CHECK(out[0][1].content != out[0][0].content && out[0][1].content != out[1][0].content);
	/* chunk 0 is complete: its sum goes to both */
	CHECK(feed(exec, 1, 0, 1) == ESP_OK && feed(exec, 2, 0, 1) == ESP_OK);
	CHECK(exec_next(exec, 1, &out[0][2]) && exec_next(exec, 2, &out[1][2]));
	CHECK(out[0][2].data == out[1][2].data && out[0][2].data == output);
	CHECK(out[0][2].content != 0 && out[0][2].content == out[1][2].content);
	exec_close(exec);
	plan_close(plan);
}

/* A message of a call that was not started here waits; one of another size is found out then. */
static void early(void)
{
	struct plan *plan = flat_plan();
	struct exec *exec = open_node(0, 4);
	struct exec_done done;
	struct transport_message head;

	CHECK(feed(exec, 1, 0, 10) == ESP_OK);
	CHECK(feed(exec, 1, 0, 10) == ESP_ECORRUPT);
	CHECK(exec_stats(exec).parked == 1);
	head = message(0, CHUNK);
	CHECK(exec_begin(exec, 2, &head) == ESP_OK); /* half of it is there when the call is started */
	memset(exec_room(exec, 2).at, 0, 4);
	exec_arrived(exec, 2, 4);
	start(exec, plan);
	int32_t rest[3] = {0, 0, 5};
	memcpy(exec_room(exec, 2).at, rest, sizeof(rest));
	exec_arrived(exec, 2, sizeof(rest));
	struct exec_wait wait;
	CHECK(exec_waits(exec, &wait) && wait.chunk == 0); /* nothing follows until the bytes are known to be good */
	exec_ended(exec, 2);
	CHECK_U64(output[0], 10 + input[0]);
	CHECK_U64(output[3], 15 + input[3]);
	CHECK(!exec_take_done(exec, &done));
	exec_close(exec);
	plan_close(plan);
}

/*
 * Without credit nothing is sent. Node 2 sends node 0 its parts of chunks 0 and 3 (numbers 0
 * and 2) and the sum of chunk 2, which it owns, between them (number 1): a number that is
 * not ready does not hold up a higher one within the window.
 */
static void credits(void)
{
	struct plan *plan = flat_plan();
	struct exec *exec = open_node(2, 2);
	struct transport_message out, credit = {.is_credit = true};

	start(exec, plan);
	CHECK_U64(exec_ready(exec), 0);
	CHECK(exec_next(exec, 0, &out));
	CHECK_U64(out.index, 0);
	CHECK_U64(out.bytes, CHUNK);
	CHECK(out.data == input);
	CHECK(!exec_next(exec, 0, &out));
	CHECK(exec_next(exec, 1, &out));
	CHECK(out.data == (uint8_t *)input + CHUNK);
	credit.ack = 1;
	CHECK(exec_credit(exec, 0, &credit) == ESP_OK);
	CHECK(exec_next(exec, 0, &out));
	CHECK_U64(out.index, 2);
	CHECK(out.data == (uint8_t *)input + 3 * CHUNK);
	CHECK(!exec_next(exec, 7, &out));
	exec_close(exec);
	plan_close(plan);
}

#define CIRCLE 32u

/*
 * Around a ring all nodes have something to send at once, with as little as one credit and one chunk in flight; and
 * again as soon as a message was consumed: its own chunks of the same lap, then those from before.
 */
static void around(void)
{
	struct plan_spec spec = {
		.chunks = {
			.collective = PLAN_ALLREDUCE, .workers = CIRCLE, .bytes = 4 * 2 * CIRCLE, .chunk_bytes = 4, .align = 4}};
	static int32_t in[2 * CIRCLE], out[2 * CIRCLE];
	struct plan *plan;

	CHECK(plan_open(plan_planner_find("ring"), &spec, &plan, NULL) == ESP_OK);
	CHECK_U64(plan_lap(plan), 2 * CIRCLE);
	for (uint32_t node = 0; node < CIRCLE; node++) {
		struct exec_config config = {.node = node, .credits = 1, .active_chunks = 1, .slot_bytes = 64};
		struct exec_call call = {.plan = plan, .in = in, .out = out, .type = ESP_I32, .op = ESP_SUM, .digest = DIGEST};
		uint32_t before = (node + CIRCLE - 1) % CIRCLE, after = (node + 1) % CIRCLE;
		struct transport_message sent, credit = {.is_credit = true};
		struct exec *exec;

		CHECK(exec_open(&config, &exec, NULL) == ESP_OK);
		CHECK(exec_start(exec, &call, NULL) == ESP_OK);
		for (uint32_t i = 0; i < 2; i++) { /* two chunks that belong to the one before it begin here */
			CHECK(exec_next(exec, after, &sent));
			CHECK_U64(sent.index, i);
			CHECK(plan->owner[(const int32_t *)sent.data - in] == before);
			exec_sent(exec, sent.cookie);
			CHECK(!exec_next(exec, after, &sent)); /* no credit is left */
			credit.ack = i + 1;
			CHECK(exec_credit(exec, after, &credit) == ESP_OK);
		}
		CHECK(!exec_next(exec, after, &sent)); /* nothing is left that does not wait */
		for (uint32_t i = 0; i < 2; i++) {
			struct transport_message head = message(i, 4);

			CHECK(exec_begin(exec, before, &head) == ESP_OK);
			exec_arrived(exec, before, 4);
			exec_ended(exec, before);
			CHECK(exec_next(exec, after, &sent));
			CHECK_U64(sent.index, 2 + i);
			exec_sent(exec, sent.cookie);
			credit.ack = 3 + i;
			CHECK(exec_credit(exec, after, &credit) == ESP_OK);
		}
		exec_close(exec);
	}
	plan_close(plan);
}

/* A chunk whose messages have not left waits for those that are to take them, one after the other. */
static void waiting_to_send(void)
{
	struct plan *plan = flat_plan();
	struct exec *exec = open_node(0, 4);
	struct transport_message sent[NODES];
	struct exec_wait wait, next;

	start(exec, plan);
	CHECK(exec_waits(exec, &wait) && !wait.sends);
	for (uint32_t node = 1; node < NODES; node++)
		CHECK(feed(exec, node, 0, 1) == ESP_OK);
	/* they were not asked for yet */
	CHECK(exec_waits(exec, &wait) && wait.sends && wait.chunk == 0 && wait.peer == 1);
	for (uint32_t node = 1; node < NODES; node++)
		CHECK(exec_next(exec, node, &sent[node]) && sent[node].index == 0);
	CHECK(exec_waits(exec, &wait) && wait.sends && wait.peer == 1);
	exec_sent(exec, sent[1].cookie);
	CHECK(exec_waits(exec, &next) && next.sends && next.chunk == 0 && next.peer == 2 && next.step == wait.step + 1);
	exec_sent(exec, sent[2].cookie);
	CHECK(exec_waits(exec, &wait) && !wait.sends && wait.chunk == 1 && wait.peer == 1);
	exec_close(exec);
	plan_close(plan);
}

/* The executor says what it waits for, and after a failure touches nothing. */
static void waiting_and_failing(void)
{
	struct plan *plan = flat_plan();
	struct exec *exec = open_node(0, 4);
	struct exec_call call = {.plan = plan, .in = input, .out = output, .type = ESP_I32, .op = ESP_SUM};
	struct transport_message out, head = message(0, CHUNK);
	struct exec_wait wait;
	struct exec_done done;

	CHECK(!exec_waits(exec, &wait));
	start(exec, plan);
	start(exec, plan);
	CHECK(exec_waits(exec, &wait));
	CHECK_U64(wait.call, 0);
	CHECK_U64(wait.chunk, 0);
	CHECK_U64(wait.peer, 1);
	CHECK(feed(exec, 1, 0, 1) == ESP_OK);
	CHECK(exec_waits(exec, &wait));
	CHECK_U64(wait.peer, 2);
	CHECK(exec_begin(exec, 2, &head) == ESP_OK); /* under way when it fails */
	exec_fail(exec, 2, ESP_EPEER);
	exec_fail(exec, 1, ESP_ETIMEOUT); /* the first reason counts */
	struct exec_failure failure = exec_failure(exec);
	CHECK(failure.status == ESP_EPEER && failure.node == 2);
	CHECK(failure.waited && failure.wait.chunk == 0 && failure.wait.peer == 2);
	CHECK(!exec_waits(exec, &wait));
	memset(output, 7, sizeof(output));
	struct transport_room room = exec_room(exec, 2);
	CHECK((int32_t *)room.at < output || (int32_t *)room.at >= output + CHUNK * CHUNKS / 4);
	memset(room.at, 1, CHUNK);
	exec_arrived(exec, 2, CHUNK);
	exec_ended(exec, 2);
	for (unsigned i = 0; i < CHUNK * CHUNKS / 4; i++)
		CHECK_U64(output[i], 0x07070707);
	CHECK(exec_ready(exec) == UINT32_MAX);
	CHECK(!exec_next(exec, 1, &out));
	CHECK(exec_begin(exec, 1, &head) == ESP_EPEER);
	CHECK(exec_start(exec, &call, NULL) == ESP_EPEER);
	CHECK(exec_take_done(exec, &done) && done.status == ESP_EPEER);
	CHECK(exec_take_done(exec, &done) && done.status == ESP_EPEER);
	CHECK(!exec_take_done(exec, &done));
	exec_close(exec);
	plan_close(plan);
}

static enum esp_status try_call(struct exec *exec, const struct plan *plan, enum esp_type type, enum esp_op op,
                                double factor, struct error *err)
{
	struct exec_call call = {.plan = plan, .in = input, .out = output, .type = type, .op = op, .factor = factor};

	return exec_start(exec, &call, err);
}

/* Calls that fail together come in the order in which they were started, also if others ended before. */
static void many_failing(void)
{
	enum { CALLS = 300 };
	static char cookies[CALLS];
	struct plan *plan = flat_plan();
	struct exec *exec = open_node(0, 4);
	struct exec_done done;

	for (int i = 0; i < CALLS; i++) {
		struct exec_call call = {.plan = plan,
		                         .in = input,
		                         .out = output,
		                         .type = ESP_I32,
		                         .op = ESP_SUM,
		                         .digest = DIGEST,
		                         .cookie = &cookies[i]};

		CHECK(exec_start(exec, &call, NULL) == ESP_OK);
	}
	exec_fail(exec, 2, ESP_EPEER);
	for (int i = 0; i < CALLS; i++)
		CHECK(exec_take_done(exec, &done) && done.status == ESP_EPEER && done.cookie == &cookies[i]);
	CHECK(!exec_take_done(exec, &done));
	exec_close(exec);
	plan_close(plan);
}

static void refusals(void)
{
	struct plan *plan = flat_plan();
	struct exec *exec = open_node(0, 4);
	struct exec_config config = {.credits = 0, .active_chunks = 1, .slot_bytes = 1};
	struct exec_done done;
	struct error err;

	CHECK(try_call(exec, plan, ESP_F32, ESP_BAND, 1, &err) == ESP_EINVAL);
	CHECK(strstr(err.text, "band") && strstr(err.text, "f32"));
	CHECK(try_call(exec, plan, ESP_BYTES, ESP_SUM, 1, &err) == ESP_EINVAL);
	CHECK(try_call(exec, plan, (enum esp_type)99, ESP_SUM, 1, &err) == ESP_EINVAL);
	CHECK(try_call(exec, plan, ESP_I32, (enum esp_op)99, 1, &err) == ESP_EINVAL);
	CHECK(try_call(exec, plan, ESP_I32, ESP_SCALED, 0.5, &err) == ESP_EINVAL);
	CHECK(try_call(exec, plan, ESP_F64, ESP_SUM, 1, &err) == ESP_EINVAL); /* chunks begin at multiples of 4 */
	CHECK(strstr(err.text, "f64"));
	CHECK(!exec_take_done(exec, &done)); /* a refused call leaves no trace */
	CHECK(exec_open(&config, &exec, &err) == ESP_EINVAL && strstr(err.text, "credits"));
	exec_close(exec);
	config = (struct exec_config){.credits = 1, .slot_bytes = 1};
	CHECK(exec_open(&config, &exec, &err) == ESP_EINVAL);
	config = (struct exec_config){.credits = 1, .active_chunks = 1};
	CHECK(exec_open(&config, &exec, &err) == ESP_EINVAL);

	/* A chunk that no slot could hold ends the call, rather than overrun one later. */
	config = (struct exec_config){.credits = 1, .active_chunks = 1, .slot_bytes = CHUNK - 1};
	CHECK(exec_open(&config, &exec, &err) == ESP_OK);
	start(exec, plan);
	CHECK(exec_take_done(exec, &done) && done.status == ESP_ELIMIT);
	exec_close(exec);

	/* The plan is for two buffers: one for both would be overwritten too early. */
	config = (struct exec_config){.credits = 1, .active_chunks = 1, .slot_bytes = CHUNK};
	CHECK(exec_open(&config, &exec, &err) == ESP_OK);
	struct exec_call call = {.plan = plan, .in = output, .out = output, .type = ESP_I32, .op = ESP_SUM};
	CHECK(exec_start(exec, &call, &err) == ESP_OK);
	CHECK(exec_take_done(exec, &done) && done.status == ESP_EINVAL);
	CHECK(exec_failure(exec).status == ESP_EINVAL);
	exec_close(exec);
	plan_close(plan);
	exec_close(NULL);
}

/* Data that a peer took back while it was read is not used: the call fails instead. */
static void revoked(void)
{
	struct plan *plan = flat_plan();
	struct exec *exec = open_node(0, 4);
	int32_t theirs[CHUNK / 4] = {1, 1, 1, 1};
	_Atomic uint32_t flag = 0;
	struct transport_message offer = {.call = DIGEST, .bytes = CHUNK, .data = theirs, .revoked = &flag};
	struct exec_done done;

	start(exec, plan);
	CHECK(exec_offer(exec, 2, &offer) == ESP_OK); /* waits for node 1's */
	CHECK(exec_consumed(exec, 2) == 0);
	flag = 1;
	CHECK(exec_offer(exec, 1, &(struct transport_message){.call = DIGEST, .bytes = CHUNK, .data = theirs}) ==
	      ESP_EPEER);
	CHECK(exec_take_done(exec, &done) && done.status == ESP_EPEER);
	CHECK(exec_failure(exec).node == 2);
	exec_close(exec);
	plan_close(plan);
}

/* ---- many terms at once ---- */

#define MANY 9u
#define LONG_CHUNK 50004u /* several blocks and a part of one */

static float terms[MANY][LONG_CHUNK / 4], many_in[LONG_CHUNK / 4], many_out[LONG_CHUNK / 4];

/* Node 2 of nine sums one chunk; terms are offered, those of the set late only after the call was started. */
static void sum_many(struct plan *plan, unsigned late, const _Atomic uint32_t *flag)
{
	struct exec_config config = {.node = 2, .credits = 4, .active_chunks = 4, .slot_bytes = LONG_CHUNK};
	struct exec_call call = {.plan = plan, .in = many_in, .out = many_out, .type = ESP_F32, .op = ESP_SUM};
	struct exec *exec;

	CHECK(exec_open(&config, &exec, NULL) == ESP_OK);
	for (int after = 0; after < 2; after++) {
		for (uint32_t i = MANY; i-- > 0;) {
			struct transport_message offer = {.bytes = LONG_CHUNK, .data = terms[i], .revoked = i == 5 ? flag : NULL};

			if (i != 2 && (late >> i & 1) == (unsigned)after && exec_failure(exec).status == ESP_OK)
				(void)!exec_offer(exec, i, &offer);
		}
		if (!after)
			CHECK(exec_start(exec, &call, NULL) == ESP_OK);
	}
	struct exec_failure failure = exec_failure(exec);
	CHECK(failure.status == (flag ? ESP_EPEER : ESP_OK) && (!flag || failure.node == 5));
	exec_close(exec);
}

/* Whether terms are combined in one go or one by one, the bits are the same. */
static void many_terms(struct rng *rng)
{
	struct plan_spec spec = {.chunks = {.collective = PLAN_ALLREDUCE,
	                                    .workers = MANY,
	                                    .root = 2,
	                                    .bytes = LONG_CHUNK,
	                                    .chunk_bytes = LONG_CHUNK,
	                                    .align = 4}};
	static float expected[LONG_CHUNK / 4];
	_Atomic uint32_t revoked_flag = 1;
	struct plan *plan;

	CHECK(plan_open(plan_planner_find("central"), &spec, &plan, NULL) == ESP_OK);
	for (uint32_t i = 0; i < MANY; i++) {
		for (uint32_t k = 0; k < LONG_CHUNK / 4; k++)
			terms[i][k] = (float)((double)rng_next(rng) / (double)(1 + rng_below(rng, 1000000)));
	}
	memcpy(many_in, terms[2], LONG_CHUNK);
	for (uint32_t k = 0; k < LONG_CHUNK / 4; k++) {
		expected[k] = terms[0][k];
		for (uint32_t i = 1; i < MANY; i++)
			expected[k] += terms[i][k];
	}
	for (unsigned late = 0; late < 1u << MANY; late += 3) {
		memset(many_out, 0, LONG_CHUNK);
		sum_many(plan, late, NULL);
		CHECK(memcmp((const uint8_t *)many_out, (const uint8_t *)expected, LONG_CHUNK) == 0); /* the very bits */
		sum_many(plan, late, &revoked_flag);
	}
	plan_close(plan);
}

/*
 * A message that is longer than what it is received into at a time, in pieces that split elements, is added as if it
 * had come at once. Wherever it is kept until it is added, it has its place within a cache line. Every second call is
 * started only when its message has come.
 */
static void long_sum(struct rng *rng)
{
	enum { ELEMENTS = 300001, BYTES = ELEMENTS * 2, CALLS = 4 };
	struct plan_spec spec = {
		.chunks = {.collective = PLAN_ALLREDUCE, .workers = 2, .bytes = BYTES, .chunk_bytes = BYTES, .align = 2}};
	struct exec_config config = {.node = 0, .credits = 4, .active_chunks = 4, .slot_bytes = BYTES};
	static uint16_t data[ELEMENTS], sum[ELEMENTS], theirs[ELEMENTS];
	struct exec_call call = {.in = data, .out = sum, .type = ESP_U16, .op = ESP_SUM, .digest = DIGEST, .cookie = sum};
	struct plan *plan;
	struct exec *exec;

	CHECK(plan_open(plan_planner_find("central"), &spec, &plan, NULL) == ESP_OK &&
	      exec_open(&config, &exec, NULL) == ESP_OK);
	for (uint32_t i = 0; i < ELEMENTS; i++) {
		data[i] = (uint16_t)rng_next(rng);
		theirs[i] = (uint16_t)rng_next(rng);
	}
	call.plan = plan;
	for (uint32_t number = 0; number < CALLS; number++) {
		struct transport_message head = message(number, BYTES), out;
		bool is_early = number % 2 == 1;
		uint32_t rooms = 0;

		head.shift = (uint8_t)rng_below(rng, TRANSPORT_SHIFTS);
		CHECK(is_early || exec_start(exec, &call, NULL) == ESP_OK);
		CHECK(exec_begin(exec, 1, &head) == ESP_OK);
		for (uint32_t done = 0, bytes; done < BYTES; done += bytes, rooms++) {
			struct transport_room room = exec_room(exec, 1);

			bytes = rng_chance(rng, 1, 2) ? room.bytes : 1 + (uint32_t)rng_below(rng, room.bytes);
			CHECK((uintptr_t)room.at % 64 == (head.shift + done) % 64);
			memcpy(room.at, (uint8_t *)theirs + done, bytes);
			exec_arrived(exec, 1, bytes);
		}
		exec_ended(exec, 1);
		CHECK(is_early ? exec_start(exec, &call, NULL) == ESP_OK : rooms > 2);
		for (uint32_t i = 0; i < ELEMENTS; i++)
			CHECK_U64(sum[i], (uint16_t)(data[i] + theirs[i]));
		CHECK(exec_next(exec, 1, &out) && out.bytes == BYTES);
		exec_sent(exec, out.cookie);
		memset(sum, 0, sizeof(sum));
	}
	CHECK_U64(exec_stats(exec).slots, 1); /* it was found again, whatever the shift */
	exec_close(exec);
	plan_close(plan);
}

/*
 * An update of the caller's in place of the library's: once per chunk, on the whole sum, and its result is what leaves.
 */
struct doubler {
	unsigned runs;
	uint64_t chunks; /* bits */
};

static void double_sum(void *context, uint64_t chunk, void *sum, uint64_t bytes)
{
	struct doubler *doubler = context;
	int32_t *values = sum;

	CHECK_U64(bytes, CHUNK);
	CHECK(!(doubler->chunks & UINT64_C(1) << chunk));
	doubler->chunks |= UINT64_C(1) << chunk;
	doubler->runs++;
	for (uint64_t i = 0; i < bytes / sizeof(*values); i++)
		values[i] *= 2;
}

static void updating(void)
{
	struct plan_spec spec = {
		.chunks = {.collective = PLAN_ALLREDUCE, .workers = 2, .bytes = 2 * CHUNK, .chunk_bytes = CHUNK, .align = 4}};
	struct plan *plan;
	struct exec *exec = open_node(0, 4);
	struct doubler doubler = {0};
	const struct exec_update update = {double_sum, &doubler};
	struct exec_call call = {.plan = NULL,
	                         .in = input,
	                         .out = output,
	                         .type = ESP_I32,
	                         .op = ESP_SUM,
	                         .digest = DIGEST,
	                         .update = &update,
	                         .has_update = true,
	                         .cookie = output};
	struct transport_message sent;
	struct exec_done done;

	CHECK(plan_open(plan_planner_find("central"), &spec, &plan, NULL) == ESP_OK);
	call.plan = plan;
	for (uint32_t i = 0; i < 2 * CHUNK / 4; i++)
		input[i] = (int32_t)i + 1;
	CHECK(exec_start(exec, &call, NULL) == ESP_OK);
	for (uint32_t i = 0; i < 2; i++)
		CHECK(feed(exec, 1, i, 5) == ESP_OK);
	CHECK_U64(doubler.runs, 2);
	for (uint32_t i = 0; i < 2 * CHUNK / 4; i++)
		CHECK(output[i] == 2 * (input[i] + 5));
	for (uint32_t i = 0; i < 2; i++) {
		CHECK(exec_next(exec, 1, &sent));
		CHECK(((const int32_t *)sent.data)[0] == 2 * (input[i * CHUNK / 4] + 5));
		exec_sent(exec, sent.cookie);
	}
	CHECK(exec_take_done(exec, &done) && done.status == ESP_OK);
	exec_close(exec);
	plan_close(plan);
}

int main(int argc, char **argv)
{
	struct rng rng;

	rng_init(&rng, test_seed(argc, argv, 1));
	for (unsigned i = 0; i < CHUNK * CHUNKS / 4; i++)
		input[i] = (int32_t)i;
	for (int i = 0; i < 2; i++) {
		takes = i > 0;
		violations();
		early();
		credits();
		around();
			waiting_to_send();
		waiting_and_failing();
	}
	many_failing();
	refusals();
	revoked();
	other_calls();
	later_call();
	contents();
	many_terms(&rng);
	for (int i = 0; i < 20; i++)
		long_sum(&rng);
	updating();
	return 0;
}
