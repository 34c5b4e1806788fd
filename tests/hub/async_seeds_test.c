/*
 * An asynchronous job by seeds: lanes of a hub, its gate, and workers that read, offer, send, and die, in any order of
 * the pieces. Each update is applied once on every chunk or on none, its delay is within the bound by the version that
 * its worker had really read, each read has the weights of one version per chunk, and the end is what the same updates
 * give one after the other, bit for bit.
 */
#define TEST_OPTIONS "--seed", "--seeds"
#include "base/check.h"
#include "base/rng.h"
#include "fabric/gate.h"
#include "hub/store/store_lane.h"
#include "math/math.h"
#include "wire/hub_frame.h"

#define WORKERS_MOST 6u
#define LANES_MOST 3u
#define CHUNKS_MOST 16u
#define ELEMENTS_MOST 1024u
#define UPDATES 12u  /* of a worker */
#define VERSIONS (WORKERS_MOST * UPDATES + 1)
#define ORDERS 512u
#define STEPS_MOST 400000u

/* A connection of a worker to a lane: requests that are to be sent, and one that arrives piece by piece. */
struct conn {
	uint32_t chunks[CHUNKS_MOST], first, count;
	uint8_t kind;
	bool is_busy, is_lost;
	uint32_t done, bytes, sent, got;
	float data[LAYOUT_CHUNK_LEAST];
};

enum doing {
	READS,    /* pulls all chunks                            */
	COMPUTES, /* has read                                    */
	SENDS,    /* its offer was granted                       */
	ENDS,     /* all answers are awaited, and the result     */
};

struct worker {
	uint8_t doing; /* enum doing */
	bool is_dead, is_known_dead, has_result;
	uint32_t answers; /* that are missing */
	uint64_t number, read; /* of its update; the least version that it has read */
	uint64_t position;
};

struct order {
	uint8_t kind; /* 'a'pply, 'd'rop, 'l'ost */
	uint32_t worker;
};

struct world {
	struct rng rng;
	struct hub_layout layout;
	struct store_model model;
	struct store_lane *lanes[LANES_MOST];
	uint32_t lane_count, workers;
	struct gate gate;
	uint64_t now, positions;
	uint64_t whole[WORKERS_MOST], lanes_needed;
	struct conn conns[WORKERS_MOST][LANES_MOST];
	struct worker worker[WORKERS_MOST];
	struct order orders[LANES_MOST][ORDERS];
	uint32_t order_first[LANES_MOST], order_count[LANES_MOST];
	float history[VERSIONS][ELEMENTS_MOST];
	uint64_t offered, ended, applied, whole_after_death;
};

static struct world world;
static const struct transport_user *const user = &store_lane_user;

static float gradient(uint32_t worker, uint64_t number, uint64_t element)
{
	return (float)((worker * 31 + number * 17 + element * 7) % 13) - 6;
}

/* ---- opening ---- */

static void draw_layout(void)
{
	struct layout_tensor tensors[4];
	uint32_t count = (uint32_t)rng_below(&world.rng, 4) + 1;

	for (uint32_t t = 0; t < count; t++)
		tensors[t] = (struct layout_tensor){.name = t + 1,
		                                    .elements = rng_below(&world.rng, 200),
		                                    .type = rng_chance(&world.rng, 1, 4) ? ESP_BF16 : ESP_F32};
	tensors[0].elements++;
	world.lane_count = (uint32_t)rng_below(&world.rng, LANES_MOST) + 1;
	CHECK(hub_layout_make(tensors, count, LAYOUT_CHUNK_LEAST, world.lane_count, &world.layout, NULL) == ESP_OK);
	CHECK(world.layout.chunks <= CHUNKS_MOST && world.layout.elements <= ELEMENTS_MOST);
}

static void open_world(uint64_t seed)
{
	const struct optimizer sgd = {.kind = OPTIMIZER_SGD, .lr = 1};

	memset(&world, 0, sizeof(world));
	rng_init(&world.rng, seed);
	world.workers = (uint32_t)rng_below(&world.rng, WORKERS_MOST) + 1;
	draw_layout();
	world.model.weights = calloc(world.layout.elements, sizeof(float));
	world.model.sums = calloc(world.layout.elements, sizeof(float));
	world.model.halves = calloc(world.layout.elements, sizeof(*world.model.halves));
	gate_init(&world.gate, world.workers, (uint32_t)rng_below(&world.rng, 2 * world.workers) + 1);
	for (uint32_t lane = 0; lane < world.lane_count; lane++) {
		const struct store_lane_config config = {.layout = &world.layout, .model = &world.model, .lane = lane,
		                                         .workers = world.workers, .optimizers = &sgd, .is_async = true};

		CHECK(store_lane_open(&config, &world.lanes[lane], NULL) == ESP_OK);
		if (world.layout.lane_first[lane + 1] > world.layout.lane_first[lane])
			world.lanes_needed |= UINT64_C(1) << lane;
	}
}

static void close_world(void)
{
	for (uint32_t lane = 0; lane < world.lane_count; lane++)
		store_lane_close(world.lanes[lane]);
	free(world.model.weights);
	free(world.model.sums);
	free(world.model.halves);
	hub_layout_fini(&world.layout);
}

/* ---- workers ---- */

/* All chunks of the worker's lanes, in an order of their own. */
static void request_all(uint32_t number, uint8_t kind)
{
	struct worker *worker = &world.worker[number];

	worker->answers = world.layout.chunks;
	for (uint32_t lane = 0; lane < world.lane_count; lane++) {
		struct conn *conn = &world.conns[number][lane];
		const uint32_t *chunks = &world.layout.lane_chunks[world.layout.lane_first[lane]];
		uint32_t count = world.layout.lane_first[lane + 1] - world.layout.lane_first[lane];

		conn->kind = kind;
		conn->first = 0;
		conn->count = count;
		for (uint32_t i = 0; i < count; i++) {
			uint32_t at = (uint32_t)rng_below(&world.rng, i + 1);

			conn->chunks[i] = conn->chunks[at];
			conn->chunks[at] = chunks[i];
		}
	}
}

static void offer(uint32_t number)
{
	struct worker *worker = &world.worker[number];
	struct gate_offer offer = {.worker = number, .number = ++worker->number, .computed_from = worker->read, .epoch = 1,
	                           .patience_ns = rng_below(&world.rng, 500)};
	struct gate_result result;

	if (rng_chance(&world.rng, 2, 3))
		offer.position = world.positions += 1 + (uint64_t)rng_chance(&world.rng, 1, 8);
	world.offered++;
	enum esp_status status = gate_offer(&world.gate, &offer, &result);
	CHECK(status == ESP_OK || status == ESP_ETIMEOUT);
	worker->has_result = false;
	if (status == ESP_OK) {
		worker->doing = SENDS;
		request_all(number, HUB_PUSH);
		return;
	}
	CHECK(world.gate.version + 1 - worker->read > world.gate.bound);
	world.ended++;
	worker->doing = ENDS;
	worker->has_result = true;
	worker->answers = 0;
}

static void step_worker(uint32_t number)
{
	struct worker *worker = &world.worker[number];

	if (worker->doing == ENDS && worker->has_result && worker->answers == 0 && worker->number < UPDATES) {
		worker->doing = READS;
		worker->read = UINT64_MAX;
		request_all(number, HUB_PULL);
	} else if (worker->doing == COMPUTES) {
		offer(number);
	}
}

/* ---- pieces of messages ---- */

/* The chunk's elements as they are sent. */
static void put(uint32_t chunk, const float *from, void *out)
{
	uint32_t elements = world.layout.chunk[chunk].elements;

	if (hub_layout_chunk_type(&world.layout, chunk) == ESP_F32)
		memcpy(out, from, elements * sizeof(float));
	else
		math_narrow(ESP_BF16, out, from, elements);
}

static void fill(struct conn *conn, uint32_t worker, uint32_t chunk)
{
	const struct layout_chunk *cut = &world.layout.chunk[chunk];
	float data[LAYOUT_CHUNK_LEAST];

	for (uint32_t i = 0; i < cut->elements; i++)
		data[i] = conn->kind == HUB_SET ? 0 : gradient(worker, world.worker[worker].number, cut->at + i);
	put(chunk, data, conn->data);
}

static void send_piece(uint32_t worker, uint32_t lane)
{
	struct conn *conn = &world.conns[worker][lane];

	if (!conn->is_busy) {
		uint32_t chunk = conn->chunks[conn->first];

		conn->bytes = conn->kind == HUB_PULL ? 0 : hub_layout_chunk_bytes(&world.layout, chunk);
		conn->done = 0;
		conn->is_busy = true;
		fill(conn, worker, chunk);
		const struct transport_message message = {.channel = conn->kind, .index = conn->sent++, .bytes = conn->bytes,
		                                          .call = conn->chunks[conn->first]};
		CHECK(user->begin(world.lanes[lane], worker, &message) == ESP_OK);
	} else if (conn->done < conn->bytes) {
		struct transport_room room = user->room(world.lanes[lane], worker, conn->kind);
		uint32_t piece = (uint32_t)rng_below(&world.rng, room.bytes) + 1;

		memcpy(room.at, (const uint8_t *)conn->data + conn->done, piece);
		user->arrived(world.lanes[lane], worker, conn->kind, piece);
		conn->done += piece;
	} else {
		conn->is_busy = false;
		conn->first++;
		user->ended(world.lanes[lane], worker, conn->kind);
	}
}

static void check_weights(const struct transport_message *message)
{
	float expected[LAYOUT_CHUNK_LEAST];

	CHECK(message->ack <= world.gate.version && message->bytes == hub_layout_chunk_bytes(&world.layout, message->call));
	put(message->call, world.history[message->ack] + world.layout.chunk[message->call].at, expected);
	CHECK(memcmp(message->data, expected, message->bytes) == 0);
}

static void take_answer(uint32_t number, uint32_t lane)
{
	struct worker *worker = &world.worker[number];
	struct transport_message message;

	if (!user->next(world.lanes[lane], number, &message))
		return;
	CHECK(message.index == world.conns[number][lane].got++ && worker->answers > 0);
	worker->answers--;
	if (message.channel == HUB_WEIGHTS) {
		CHECK(worker->doing == READS);
		check_weights(&message);
		user->sent(world.lanes[lane], number, HUB_WEIGHTS, message.cookie);
		worker->read = message.ack < worker->read ? message.ack : worker->read;
		worker->doing = worker->answers == 0 ? COMPUTES : READS;
	}
}

static void move(uint32_t worker, uint32_t lane)
{
	struct conn *conn = &world.conns[worker][lane];

	if (conn->is_lost)
		return;
	if (conn->first < conn->count && !world.worker[worker].is_dead && rng_chance(&world.rng, 2, 3))
		send_piece(worker, lane);
	else if (!world.worker[worker].is_dead)
		take_answer(worker, lane);
}

/* ---- the hub's control thread ---- */

static void order(uint8_t kind, uint32_t worker)
{
	for (uint32_t lane = 0; lane < world.lane_count; lane++) {
		CHECK(world.order_count[lane] < ORDERS);
		world.orders[lane][world.order_count[lane]++] = (struct order){kind, worker};
	}
}

static void settle(const struct gate_result *result)
{
	struct worker *worker = &world.worker[result->worker];

	CHECK(result->number == worker->number && !worker->has_result);
	worker->has_result = true;
	worker->doing = ENDS;
	world.whole[result->worker] = 0;
	world.ended++;
	order(result->why == GATE_APPLIED ? 'a' : 'd', result->worker);
	if (result->why != GATE_APPLIED)
		return;
	world.applied++;
	world.whole_after_death += worker->is_dead;
	CHECK_U64(result->version, world.applied);
	CHECK(result->version - worker->read <= world.gate.bound);
	for (uint32_t i = 0; i < world.layout.elements; i++)
		world.history[world.applied][i] =
			world.history[world.applied - 1][i] - gradient(result->worker, result->number, i);
}

static void pump(void)
{
	struct gate_result result;

	while (gate_next(&world.gate, world.now, &result))
		settle(&result);
}

static void hear_lane(uint32_t lane)
{
	uint32_t worker;

	while (store_lane_take_whole(world.lanes[lane], &worker)) {
		world.whole[worker] |= UINT64_C(1) << lane;
		if (world.whole[worker] == world.lanes_needed)
			CHECK(gate_whole(&world.gate, worker, world.now) || world.worker[worker].is_known_dead);
	}
	pump();
}

static void lose_on_lane(uint32_t worker, uint32_t lane)
{
	if (!world.conns[worker][lane].is_lost)
		user->lost(world.lanes[lane], worker, ESP_EPEER);
	world.conns[worker][lane].is_lost = true;
}

static void obey(uint32_t lane)
{
	if (world.order_first[lane] == world.order_count[lane])
		return;
	const struct order *next = &world.orders[lane][world.order_first[lane]++];
	if (next->kind == 'a')
		store_lane_apply(world.lanes[lane], next->worker, 1);
	else if (next->kind == 'd')
		store_lane_drop(world.lanes[lane], next->worker);
	else
		lose_on_lane(next->worker, lane);
}

static void hear_death(uint32_t number)
{
	struct worker *worker = &world.worker[number];
	struct gate_result result;

	if (!worker->is_dead || worker->is_known_dead)
		return;
	worker->is_known_dead = true;
	order('l', number);
	if (gate_gone(&world.gate, number, &result))
		settle(&result);
	pump();
}

/* ---- a run ---- */

static bool is_over(void)
{
	for (uint32_t i = 0; i < world.workers; i++) {
		const struct worker *worker = &world.worker[i];

		if (worker->is_dead ? !worker->is_known_dead || world.gate.updates[i].state != GATE_IDLE
		                    : worker->number < UPDATES || !worker->has_result || worker->answers > 0)
			return false;
	}
	for (uint32_t lane = 0; lane < world.lane_count; lane++) {
		if (world.order_first[lane] < world.order_count[lane])
			return false;
	}
	return true;
}

static void step(bool kills)
{
	uint32_t worker = (uint32_t)rng_below(&world.rng, world.workers),
			 lane = (uint32_t)rng_below(&world.rng, world.lane_count);

	world.now++;
	switch (rng_below(&world.rng, 12)) {
	case 0:
		if (!world.worker[worker].is_dead)
			step_worker(worker);
		break;
	case 1:
		hear_lane(lane);
		break;
	case 2:
		obey(lane);
		break;
	case 3:
		hear_death(worker);
		break;
	case 4: /* a lane may notice a death first */
		if (world.worker[worker].is_dead)
			lose_on_lane(worker, lane);
		break;
	case 5:
		world.worker[worker].is_dead |= kills && rng_chance(&world.rng, 1, 200);
		break;
	default:
		move(worker, lane);
	}
}

static void set_weights(void)
{
	for (uint32_t i = 0; i < world.workers; i++)
		world.worker[i] = (struct worker){.doing = ENDS, .has_result = true};
	request_all(0, HUB_SET);
	while (world.worker[0].answers > 0)
		move(0, (uint32_t)rng_below(&world.rng, world.lane_count));
}

static void check_end(void)
{
	uint64_t least, most;
	struct store_trouble trouble;

	CHECK_U64(world.ended, world.offered);
	CHECK_U64(world.applied, world.gate.version);
	for (uint32_t lane = 0; lane < world.lane_count; lane++) {
		CHECK(!store_lane_take_trouble(world.lanes[lane], &trouble));
		if (store_lane_versions(world.lanes[lane], &least, &most))
			CHECK(least == world.applied && most == world.applied);
	}
	for (uint32_t t = 0; t < world.layout.tensors; t++) {
		uint64_t at = world.layout.place[t].at, bytes = world.layout.tensor[t].elements * sizeof(float);

		CHECK(memcmp(world.model.weights + at, world.history[world.applied] + at, bytes) == 0);
	}
}

static uint64_t seed_now = UINT64_MAX;

/* A failed check ends the program: the seed by which to replay it. */
static void tell_seed(void)
{
	if (seed_now != UINT64_MAX)
		fprintf(stderr, "seed %" PRIu64 " (--seed %" PRIu64 " --seeds 1)\n", seed_now, seed_now);
}

int main(int argc, char **argv)
{
	uint64_t first = test_option(argc, argv, "--seed", 1), count = test_option(argc, argv, "--seeds", 2000);
	uint64_t applied = 0, offered = 0, late = 0, gone = 0, after_death = 0;

	atexit(tell_seed);
	for (seed_now = first; seed_now < first + count; seed_now++) {
		open_world(seed_now);
		set_weights();
		for (uint32_t steps = 0; !is_over(); steps++) {
			CHECK(steps < STEPS_MOST);
			step(seed_now % 2 == 0);
		}
		check_end();
		offered += world.offered;
		applied += world.applied;
		late += world.gate.count[GATE_LATE] + world.gate.count[GATE_LATE_OFFER];
		gone += world.gate.count[GATE_GONE];
		after_death += world.whole_after_death;
		close_world();
	}
	seed_now = UINT64_MAX;
	printf("%" PRIu64 " jobs: %" PRIu64 " updates offered, %" PRIu64 " applied (%" PRIu64
	       " after their worker's death), %" PRIu64 " late, %" PRIu64 " of lost workers\n",
	       count, offered, applied, after_death, late, gone);
	return 0;
}
