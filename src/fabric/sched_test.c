/*
 * The scheduler of a job: decisions, leases, rates and refusals; and by seeds with workers and a hub's gate in virtual
 * time: links of other rates than the scheduler believes, workers that die, a scheduler that is started anew.
 */
#define TEST_OPTIONS "--seed", "--seeds"
#include <math.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/rng.h"
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

static void test_batch(void)
{
	struct sched *sched = open_sched(3, 4);
	struct sched_decision decision;
	const struct sched_done done = {.number = 1, .end = LEDGER_APPLIED, .version = 1, .delay = 1, .took_ns = NS_PER_MS};

	for (uint32_t worker = 0; worker < 3; worker++)
		CHECK(sched_join(sched, worker, worker == 2 ? 10 * MB : 0, 0, NULL) == ESP_OK);
	CHECK_U64(sched_due(sched), UINT64_MAX);
	ready(sched, 0, 1, 0, 4 * MB, 10 * NS_PER_MS);
	ready(sched, 1, 1, 0, 2 * MB, 20 * NS_PER_MS);
	CHECK_U64(sched_due(sched), BATCH);
	sched_tick(sched, BATCH - 1);
	CHECK(!sched_next(sched, &decision));
	sched_tick(sched, BATCH);
	decision = next(sched); /* the shorter one */
	CHECK(decision.worker == 1 && decision.end == LEDGER_APPLIED && decision.position == 1 && decision.start_ns == 0);
	CHECK_U64(decision.rate, 100 * MB);
	decision = next(sched);
	CHECK(decision.worker == 0 && decision.position == 2 && decision.start_ns == 20 * NS_PER_MS);
	CHECK(!sched_next(sched, &decision));
	CHECK(sched_done(sched, 1, &done, BATCH + NS_PER_MS, NULL) == ESP_OK);
	CHECK(sched_ledger(sched)->version == 1 && sched_ledger(sched)->ends[LEDGER_APPLIED] == 1);
	sched_close(sched);
}

/* Beside 5 versions that others have decided, an update of version 0 is too late with bound 4; one of version 3 is not.
 */
static void test_drop(void)
{
	struct sched *sched = open_sched(2, 4);
	struct sched_decision decision;

	CHECK(sched_join(sched, 0, 0, 0, NULL) == ESP_OK && sched_join(sched, 1, 0, 0, NULL) == ESP_OK);
	ready(sched, 0, 1, 4, MB, 0); /* the version 4 is heard of */
	ready(sched, 1, 1, 0, MB, 0);
	sched_tick(sched, BATCH);
	decision = next(sched);
	CHECK(decision.worker == 1 && decision.end == LEDGER_LATE && decision.delay == 5);
	decision = next(sched);
	CHECK(decision.worker == 0 && decision.end == LEDGER_APPLIED);
	CHECK_U64(sched_ledger(sched)->unsent_bytes, MB);
	ready(sched, 1, 2, 1, MB, BATCH); /* an update that is decided and not yet applied counts */
	sched_tick(sched, 2 * BATCH);
	decision = next(sched);
	CHECK(decision.worker == 1 && decision.end == LEDGER_LATE && decision.delay == 5);
	sched_close(sched);
}

/* Of the version each worker tells for itself: one that only a worker told of that is away counts for no others. */
static void test_false_version(void)
{
	struct sched *sched = open_sched(2, 4);

	CHECK(sched_join(sched, 0, 0, 0, NULL) == ESP_OK && sched_join(sched, 1, 0, 0, NULL) == ESP_OK);
	ready(sched, 0, 1, 1000000, MB, 0);
	ready(sched, 1, 1, 3, MB, 0);
	CHECK_U64(sched_ledger(sched)->version, 1000000);
	sched_gone(sched, 0, NS_PER_MS);
	CHECK_U64(sched_ledger(sched)->version, 3);
	sched_tick(sched, BATCH);
	struct sched_decision decision = next(sched);
	CHECK(decision.worker == 1 && decision.end == LEDGER_APPLIED);
	sched_close(sched);
}

/* The update of a worker that leaves is first, the longest one, too; it waits for no free link and is in no sum. */
static void test_leaves(void)
{
	const struct sched_config config = {.workers = 3, .bound = 99, .batch_ns = BATCH, .hub_rate = 100 * MB,
	                                    .worker_rate = 100 * MB, .aggregates = true};
	struct ledger_update last = {.number = 1, .bytes = 80 * MB, .leaves = true};
	struct sched *sched;

	CHECK(sched_open(&config, &sched, NULL) == ESP_OK);
	for (uint32_t worker = 0; worker < 3; worker++) {
		CHECK(sched_join(sched, worker, 0, 0, NULL) == ESP_OK);
		sched_set_aggregator(sched, worker, true);
	}
	ready(sched, 0, 1, 0, 50 * MB, 0);
	sched_tick(sched, BATCH);
	CHECK(next(sched).worker == 0); /* for half a second the link is busy */
	ready(sched, 1, 1, 0, 40 * MB, BATCH);
	CHECK(sched_ready(sched, 2, &last, BATCH, NULL) == ESP_OK);
	sched_tick(sched, 2 * BATCH);
	struct sched_decision decision = next(sched);
	CHECK(decision.worker == 2 && decision.position == 2 && decision.bundle == 0 && decision.start_ns >= 3 * BATCH);
	sched_close(sched);
}

/* Beyond the next batch nothing is booked; after three batches an update is sent nonetheless. */
static void test_waits(void)
{
	struct sched *sched = open_sched(4, 99);
	struct sched_decision decision;
	uint32_t sent[4] = {0}, batch = 0;

	for (uint32_t worker = 0; worker < 4; worker++) {
		CHECK(sched_join(sched, worker, 0, 0, NULL) == ESP_OK);
		ready(sched, worker, 1, 0, 50 * MB, 0); /* half a second each */
	}
	while (sched_ledger(sched)->decided < 4) {
		sched_tick(sched, sched_due(sched));
		batch++;
		while (sched_next(sched, &decision))
			sent[decision.worker] = batch;
	}
	CHECK(sent[0] == 1 && sent[1] == 4 && sent[2] == 4 && sent[3] == 4);
	sched_close(sched);
}

static void test_lease_and_gone(void)
{
	struct sched *sched = open_sched(2, 9);
	struct sched_decision decision;

	CHECK(sched_join(sched, 0, 0, 0, NULL) == ESP_OK && sched_join(sched, 1, 0, 0, NULL) == ESP_OK);
	ready(sched, 0, 1, 0, 100 * MB, 0);
	ready(sched, 1, 1, 0, MB, 0);
	sched_tick(sched, BATCH);
	sched_gone(sched, 1, BATCH); /* before its decision was handed out */
	decision = next(sched);
	CHECK(decision.worker == 0 && !sched_next(sched, &decision));
	CHECK(sched_hub_booked_until(sched) > BATCH);
	uint64_t lease = sched_due(sched);
	sched_tick(sched, lease);
	CHECK(sched_due(sched) == UINT64_MAX && sched_ledger(sched)->decided == 0);
	CHECK(sched_ledger(sched)->ends[LEDGER_UNHEARD] == 1 && sched_ledger(sched)->ends[LEDGER_GONE] == 1);
	ready(sched, 0, 2, 0, MB, lease); /* it goes on */
	sched_close(sched);
}

static void test_rates(void)
{
	struct sched *sched = open_sched(1, 9);
	struct sched_done done = {.end = LEDGER_APPLIED, .delay = 1};
	uint64_t now = 0;

	CHECK(sched_join(sched, 0, 0, 0, NULL) == ESP_OK);
	for (uint64_t i = 1; i <= 30; i++) { /* the link has 10 MB/s: what is granted comes to that */
		ready(sched, 0, i, i - 1, 10 * MB, now);
		sched_tick(sched, sched_due(sched));
		struct sched_decision decision = next(sched);
		uint64_t rate = decision.rate < 10 * MB ? decision.rate : 10 * MB;

		done.number = done.version = i;
		done.took_ns = 10 * MB * NS_PER_S / rate;
		now += 20 * NS_PER_S;
		CHECK(sched_done(sched, 0, &done, now, NULL) == ESP_OK);
	}
	CHECK(sched_worker(sched, 0)->rate > 9 * MB && sched_worker(sched, 0)->rate < 14 * MB);
	sched_close(sched);
}

/* The hub's link was the bottleneck: a transfer that is slower than it was given says little of the worker's link. */
static void test_rate_behind_hub(void)
{
	const struct sched_config config = {
		.workers = 1, .bound = 9, .batch_ns = BATCH, .hub_rate = 10 * MB, .worker_rate = 80 * MB};
	struct sched *sched;
	struct sched_done done = {.end = LEDGER_APPLIED, .delay = 1};

	CHECK(sched_open(&config, &sched, NULL) == ESP_OK && sched_join(sched, 0, 0, 0, NULL) == ESP_OK);
	for (uint64_t i = 1; i <= 9; i++) {
		ready(sched, 0, i, i - 1, 10 * MB, i * 20 * NS_PER_S);
		sched_tick(sched, sched_due(sched));
		CHECK_U64(next(sched).rate, 10 * MB);
		done.number = done.version = i;
		done.took_ns = i < 9 ? NS_PER_S * 10 / 8 : 4 * NS_PER_S; /* 8 MB/s; then 2.5 MB/s */
		CHECK(sched_done(sched, 0, &done, i * 20 * NS_PER_S + 5 * NS_PER_S, NULL) == ESP_OK);
		CHECK_U64(sched_worker(sched, 0)->rate, i < 9 ? 80 * MB : 41250000);
	}
	sched_close(sched);
}

static void test_refused(void)
{
	struct sched_config config = {.workers = 1, .bound = 1, .batch_ns = BATCH, .hub_rate = MB, .worker_rate = MB}, bad;
	const struct ledger_update good = {.number = 1, .bytes = 1}, updates[] = {
		{.number = 0, .bytes = 1}, {.number = 1, .bytes = 0}, {.number = 1, .bytes = UINT64_MAX},
		{.number = 1, .bytes = 1, .norm = -1}, {.number = 1, .bytes = 1, .norm = (double)NAN},
		{.number = 1, .bytes = 1, .norm = (double)INFINITY}};
	const struct sched_done dones[] = {{.number = 1, .end = LEDGER_LATE},
	                                   {.number = 1, .version = 3, .delay = 0},
	                                   {.number = 1, .version = 1, .delay = 2},
	                                   {.number = 1, .version = 9, .delay = 2}};
	struct sched *sched;

	bad = config, bad.workers = 0;
	CHECK(sched_open(&bad, &sched, NULL) == ESP_EINVAL);
	bad = config, bad.bound = 0;
	CHECK(sched_open(&bad, &sched, NULL) == ESP_EINVAL);
	bad = config, bad.hub_rate = 0;
	CHECK(sched_open(&bad, &sched, NULL) == ESP_EINVAL);
	CHECK(sched_open(&config, &sched, NULL) == ESP_OK);
	CHECK(sched_ready(sched, 0, &good, 0, NULL) == ESP_EINVAL); /* not here */
	CHECK(sched_join(sched, 1, 0, 0, NULL) == ESP_EINVAL && sched_join(sched, 0, UINT64_MAX, 0, NULL) == ESP_EINVAL);
	CHECK(sched_join(sched, 0, 0, 0, NULL) == ESP_OK && sched_report(sched, 0, 0, 0, NULL) == ESP_EINVAL);
	for (uint32_t i = 0; i < 6; i++)
		CHECK(sched_ready(sched, 0, &updates[i], 0, NULL) == ESP_EINVAL);
	CHECK(sched_ready(sched, 1, &good, 0, NULL) == ESP_EINVAL && sched_ready(sched, 0, &good, 0, NULL) == ESP_OK);
	CHECK(sched_ready(sched, 0, &good, 0, NULL) == ESP_EINVAL); /* its former one has not ended */
	for (uint32_t i = 0; i < 4; i++)
		CHECK(sched_done(sched, 0, &dones[i], 0, NULL) == ESP_EINVAL);
	sched_close(sched);
}

/* News of a time before others' are refused with a reason, and change nothing. */
static void test_time_backwards(void)
{
	struct sched *sched = open_sched(1, 9);
	const struct ledger_update update = {.number = 1, .bytes = MB};
	const struct sched_done done = {.number = 1, .end = LEDGER_APPLIED, .version = 1, .delay = 1};
	struct sched_decision decision;
	struct error err;

	CHECK(sched_join(sched, 0, 0, 5 * BATCH, NULL) == ESP_OK);
	CHECK(sched_ready(sched, 0, &update, 5 * BATCH - 1, &err) == ESP_EINVAL && strstr(err.text, "backwards"));
	CHECK(sched_join(sched, 0, 0, BATCH, NULL) == ESP_EINVAL && sched_worker(sched, 0)->is_here);
	CHECK(sched_report(sched, 0, MB, BATCH, NULL) == ESP_EINVAL);
	CHECK(sched_wants(sched, 0, MB, BATCH, NULL) == ESP_EINVAL);
	CHECK(sched_ready(sched, 0, &update, 5 * BATCH, NULL) == ESP_OK);
	CHECK(sched_done(sched, 0, &done, BATCH, NULL) == ESP_EINVAL);
	sched_tick(sched, BATCH); /* nothing is due */
	CHECK(!sched_next(sched, &decision) && sched_due(sched) == 6 * BATCH);
	sched_tick(sched, 6 * BATCH);
	CHECK(sched_next(sched, &decision) && decision.number == 1);
	sched_close(sched);
}

/* Three equal hosts are one chain: the last one has the hub next, each other one has a worker. */
static void test_chain(void)
{
	const struct sched_config config = {.workers = 3, .bound = 9, .batch_ns = BATCH, .hub_rate = 100 * MB,
	                                    .worker_rate = 100 * MB, .aggregates = true, .chains = true};
	struct sched *sched;
	uint32_t inputs = 0, next_hops = 0, aggregator = SCHED_ALONE;

	CHECK(sched_open(&config, &sched, NULL) == ESP_OK);
	for (uint32_t worker = 0; worker < 3; worker++) {
		CHECK(sched_join(sched, worker, 0, 0, NULL) == ESP_OK);
		sched_set_aggregator(sched, worker, true);
		ready(sched, worker, 1, 0, 10 * MB, 0);
	}
	sched_tick(sched, BATCH);
	for (uint32_t i = 0; i < 3; i++) {
		const struct sched_decision decision = next(sched);

		CHECK(decision.is_chain && decision.bundle == 1 && decision.position == i + 1 && decision.rate == 100 * MB);
		CHECK(i == 0 || decision.aggregator == aggregator);
		aggregator = decision.aggregator;
		CHECK((decision.next_hop == SCHED_HUB) == (decision.worker == aggregator));
		CHECK_U64(decision.members, decision.worker == aggregator ? 7 : 0);
		next_hops |= decision.next_hop == SCHED_HUB ? 8u : 1u << decision.next_hop;
		inputs += decision.inputs;
	}
	CHECK(inputs == 2 && __builtin_popcount(next_hops) == 3 && (next_hops & 8u));
	for (uint32_t worker = 0; worker < 3; worker++)
		sched_gone(sched, worker, BATCH);
	CHECK_U64(sched_hub_booked_until(sched), BATCH); /* nothing is booked any more */
	sched_close(sched);
}

/* Two of three workers share a host's link: by themselves their updates take it one after the other. */
static void test_hosts(void)
{
	const uint32_t hosts[] = {0, 0, 1};
	const struct sched_config config = {
		.workers = 3, .bound = 9, .batch_ns = BATCH, .hub_rate = 1000 * MB, .worker_rate = 100 * MB, .hosts = hosts};
	struct sched *sched;
	struct sched_decision decisions[3];
	uint64_t starts = 0;

	CHECK(sched_open(&config, &sched, NULL) == ESP_OK);
	for (uint32_t worker = 0; worker < 3; worker++) {
		CHECK(sched_join(sched, worker, 0, 0, NULL) == ESP_OK);
		ready(sched, worker, 1, 0, 5 * MB, 0);
	}
	sched_tick(sched, BATCH);
	for (uint32_t i = 0; i < 3; i++) {
		decisions[i] = next(sched);
		starts += decisions[i].start_ns;
	}
	CHECK_U64(starts, 50 * NS_PER_MS);
	CHECK(sched_report_ways(sched, 1, 0, 9 * MB, BATCH, NULL) == ESP_EINVAL);
	CHECK(sched_report_ways(sched, 1, 8 * MB, 9 * MB, BATCH, NULL) == ESP_OK);
	CHECK_U64(sched_worker(sched, 0)->rate, 9 * MB);
	CHECK_U64(sched_worker(sched, 2)->rate, 100 * MB);
	sched_close(sched);
}

/* ---- by seeds ---- */

#define WORKERS 8u
#define UPDATES 20u
#define STEP NS_PER_MS
#define PATIENCE (NS_PER_S + 10 * BATCH) /* of a worker for a decision */
/* From when it is ready: a decision, the booked time at the slowest rate, the gate's patience and its own transfer. */
#define LONGEST (20 * NS_PER_S)

enum doing { COMPUTES, ASKS, WAITS, SENDS, IS_WHOLE, RESTS, IS_DEAD };

struct player {
	uint8_t doing;
	bool is_registered;
	uint64_t until, ready_ns, number, announced, from, rate, true_rate, position, epoch, patience;
	uint64_t left, began; /* bytes; of the transfer */
	uint32_t done;
};

struct world {
	struct rng rng;
	struct sched *sched; /* NULL: it is down */
	struct gate gate;
	struct player players[WORKERS];
	uint32_t workers, bound;
	uint64_t now, bytes, epoch, applied, up_at;
	uint64_t ends[LEDGER_ENDS], direct, restarts, longest;
};

static uint64_t draw_rate(struct world *world)
{
	return (rng_below(&world->rng, 20) + 1) * MB / 2;
}

static void start_scheduler(struct world *world)
{
	const struct sched_config config = {.workers = world->workers, .bound = world->bound, .batch_ns = BATCH,
	                                    .hub_rate = 20 * MB, .worker_rate = 5 * MB};

	CHECK(sched_open(&config, &world->sched, NULL) == ESP_OK);
	world->epoch++;
	for (uint32_t i = 0; i < world->workers; i++)
		world->players[i].is_registered = false;
}

static void compute(struct world *world, struct player *player)
{
	player->doing = COMPUTES;
	player->from = world->gate.version - (world->gate.version > 0 ? rng_below(&world->rng, 2) : 0);
	player->until = world->now + rng_below(&world->rng, 300) * NS_PER_MS;
}

static void end(struct world *world, uint32_t worker, uint8_t how, uint64_t delay)
{
	struct player *player = &world->players[worker];
	const struct sched_done done = {.number = player->announced, .end = how, .version = world->gate.version,
	                                .delay = delay, .took_ns = world->now - player->began};

	world->ends[how]++;
	if (world->now - player->ready_ns > world->longest)
		world->longest = world->now - player->ready_ns;
	CHECK_MSG(world->now - player->ready_ns <= LONGEST, "worker %u's update took %" PRIu64 " ms", worker,
	          (world->now - player->ready_ns) / NS_PER_MS);
	if (world->sched && player->position > 0 && player->epoch == world->epoch && player->is_registered)
		CHECK(sched_done(world->sched, worker, &done, world->now, NULL) == ESP_OK);
	player->done++;
	if (player->done == UPDATES)
		player->doing = RESTS;
	else
		compute(world, player);
}

static void offer(struct world *world, uint32_t worker)
{
	struct player *player = &world->players[worker];
	const struct gate_offer wants = {.worker = worker,
	                                 .number = ++player->number,
	                                 .computed_from = player->from,
	                                 .epoch = player->epoch,
	                                 .position = player->position,
	                                 .patience_ns = player->patience};
	struct gate_result result;

	player->began = world->now;
	if (gate_offer(&world->gate, &wants, &result) != ESP_OK) {
		end(world, worker, LEDGER_LATE_AT_OFFER, 0);
		return;
	}
	player->doing = SENDS;
	player->left = world->bytes;
}

static void ask(struct world *world, uint32_t worker)
{
	struct player *player = &world->players[worker];
	const struct ledger_update update = {
		.number = ++player->announced, .computed_from = player->from, .bytes = world->bytes};

	player->ready_ns = world->now;
	player->position = player->rate = 0;
	if (!world->sched) {
		world->direct++;
		offer(world, worker);
		return;
	}
	if (!player->is_registered)
		CHECK(sched_join(world->sched, worker, 0, world->now, NULL) == ESP_OK);
	player->is_registered = true;
	CHECK(sched_ready(world->sched, worker, &update, world->now, NULL) == ESP_OK);
	player->doing = ASKS;
	player->until = world->now + PATIENCE;
}

static void on_decision(struct world *world, const struct sched_decision *decision)
{
	struct player *player = &world->players[decision->worker];

	if (player->doing != ASKS)
		return;
	CHECK(decision->number == player->announced);
	if (decision->end != LEDGER_APPLIED) {
		CHECK(decision->end != LEDGER_LATE || decision->delay > world->bound);
		end(world, decision->worker, decision->end, 0);
		return;
	}
	player->doing = WAITS;
	player->until = world->now + decision->start_ns;
	player->rate = decision->rate;
	player->position = decision->position;
	player->patience = decision->patience_ns;
	player->epoch = world->epoch;
}

static void send(struct world *world, uint32_t worker)
{
	struct player *player = &world->players[worker];
	uint64_t rate = player->rate > 0 && player->rate < player->true_rate ? player->rate : player->true_rate;
	uint64_t bytes = rate * STEP / NS_PER_S;

	player->left -= bytes < player->left ? bytes : player->left;
	if (player->left > 0)
		return;
	CHECK(gate_whole(&world->gate, worker, world->now));
	player->doing = IS_WHOLE;
}

static void step_worker(struct world *world, uint32_t worker)
{
	struct player *player = &world->players[worker];

	if (player->doing == SENDS)
		send(world, worker);
	else if (player->doing == COMPUTES && world->now >= player->until)
		ask(world, worker);
	else if (player->doing == WAITS && world->now >= player->until)
		offer(world, worker);
	else if (player->doing == ASKS && (world->now >= player->until || !player->is_registered)) {
		world->direct++; /* the scheduler is gone, or does not answer */
		if (world->sched && player->is_registered)
			sched_gone(world->sched, worker, world->now);
		player->is_registered = false;
		offer(world, worker);
	}
}

static void kill_one(struct world *world, uint32_t worker)
{
	struct gate_result result;

	if (world->sched && world->players[worker].is_registered)
		sched_gone(world->sched, worker, world->now);
	if (gate_gone(&world->gate, worker, &result))
		CHECK_U64(result.why, GATE_GONE);
	world->players[worker].doing = IS_DEAD;
}

static void fault(struct world *world)
{
	if (world->sched && rng_chance(&world->rng, 1, 20000)) { /* the scheduler is killed */
		sched_close(world->sched);
		world->sched = NULL;
		world->restarts++;
		world->up_at = world->now + rng_below(&world->rng, 4000) * NS_PER_MS;
		for (uint32_t i = 0; i < world->workers; i++)
			world->players[i].is_registered = false;
	}
	if (!world->sched && world->now >= world->up_at)
		start_scheduler(world);
	if (rng_chance(&world->rng, 1, 100000))
		kill_one(world, (uint32_t)rng_below(&world->rng, world->workers));
	if (rng_chance(&world->rng, 1, 1000))
		world->players[rng_below(&world->rng, world->workers)].true_rate = draw_rate(world);
}

static void step(struct world *world)
{
	struct sched_decision decision;
	struct gate_result result;

	world->now += STEP;
	fault(world);
	for (uint32_t i = 0; i < world->workers; i++)
		step_worker(world, i);
	while (gate_next(&world->gate, world->now, &result)) {
		struct player *player = &world->players[result.worker];

		if (result.why == GATE_APPLIED) {
			CHECK_U64(result.version, ++world->applied);
			CHECK(result.version - player->from == result.delay && result.delay <= world->bound);
		}
		if (player->doing != IS_DEAD) /* one that was whole when its worker died */
			end(world, result.worker, result.why == GATE_APPLIED ? LEDGER_APPLIED : LEDGER_LATE_AT_HUB, result.delay);
	}
	if (!world->sched)
		return;
	sched_tick(world->sched, world->now);
	while (sched_next(world->sched, &decision))
		on_decision(world, &decision);
}

static bool is_over(const struct world *world)
{
	for (uint32_t i = 0; i < world->workers; i++) {
		if (world->players[i].doing != RESTS && world->players[i].doing != IS_DEAD)
			return false;
	}
	return true;
}

static void play(uint64_t seed, uint64_t ends[LEDGER_ENDS], uint64_t *direct, uint64_t *restarts, uint64_t *longest)
{
	struct world world = {.now = NS_PER_S};

	rng_init(&world.rng, seed);
	world.workers = (uint32_t)rng_below(&world.rng, WORKERS) + 1;
	world.bound = (uint32_t)rng_below(&world.rng, 2 * world.workers) + 1;
	world.bytes = rng_below(&world.rng, 2 * MB) + 1;
	gate_init(&world.gate, world.workers, world.bound);
	start_scheduler(&world);
	for (uint32_t i = 0; i < world.workers; i++) {
		world.players[i].true_rate = draw_rate(&world);
		compute(&world, &world.players[i]);
	}
	while (!is_over(&world))
		step(&world);
	sched_close(world.sched);
	for (uint32_t i = 0; i < LEDGER_ENDS; i++)
		ends[i] += world.ends[i];
	*direct += world.direct;
	*restarts += world.restarts;
	*longest = world.longest > *longest ? world.longest : *longest;
}

int main(int argc, char **argv)
{
	uint64_t first = test_option(argc, argv, "--seed", 1), count = test_option(argc, argv, "--seeds", 3000);
	uint64_t ends[LEDGER_ENDS] = {0}, direct = 0, restarts = 0, longest = 0;

	test_batch();
	test_drop();
	test_false_version();
	test_leaves();
	test_waits();
	test_lease_and_gone();
	test_rates();
	test_rate_behind_hub();
	test_refused();
	test_time_backwards();
	test_chain();
	test_hosts();
	for (uint64_t seed = first; seed < first + count; seed++)
		play(seed, ends, &direct, &restarts, &longest);
	for (uint8_t end = 0; end < LEDGER_ENDS; end++)
		printf("%s %" PRIu64 "%s", ledger_end_name(end), ends[end], end + 1 < LEDGER_ENDS ? ", " : "");
	printf("; %" PRIu64 " without a scheduler, which was started anew %" PRIu64 " times; the longest took %" PRIu64
	       " ms\n",
	       direct, restarts, longest / NS_PER_MS);
	return 0;
}
