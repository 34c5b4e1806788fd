/*
 * fabric_worker.c - workers that compute, announce their updates, wait for models, and hear how updates end.
 */
#include <string.h>

#include "base/clock.h"
#include "fabric/sched_log.h"
#include "sim/fabric/fabric_world_state.h"

#define ATTEMPTS_MOST 4u /* then an update goes to the hub without the scheduler, as live */

static void log_end(struct fabric_world *world, uint32_t worker, uint8_t how, uint64_t delay)
{
	const struct fabric_worker *of = &world->workers[worker];
	const struct sched_log_end end = {worker, of->number, of->computed_from, delay, world->gate.version, how};

	sched_log_end(world->config->log, world->now, &end);
}

/* ---- steps ---- */

void fabric_begin_step(struct fabric_world *world, uint32_t worker)
{
	struct fabric_worker *of = &world->workers[worker];
	double slowness = fabric_weather_slowness(world->config->stragglers, world->config->seed, worker, of->steps++);

	if (world->config->begins_within_step && of->steps == 1)
		slowness *= fabric_weather_rest(world->config->seed, worker);
	of->is_computing = true;
	of->step_from = of->model_from;
	of->until_ns = world->now + (uint64_t)((double)world->config->compute_ns * slowness);
	if (world->config->learner)
		world->config->learner->begin(world->config->learner->user, worker);
}

static bool has_more(const struct fabric_world *world, uint32_t worker)
{
	return world->config->updates == 0 || world->workers[worker].made < world->config->updates;
}

void fabric_go_directly(struct fabric_world *world, uint32_t worker)
{
	struct fabric_worker *of = &world->workers[worker];

	of->decision = (struct sched_decision){.worker = worker};
	of->epoch = world->epoch;
	memcpy(of->sum, of->values, sizeof(of->sum));
	fabric_send_offer(world, worker);
}

void fabric_register(struct fabric_world *world, uint32_t worker)
{
	struct error err;

	if (sched_join(world->sched, worker, 0, world->now, &err) != ESP_OK)
		fabric_fail(world, "worker %u is not let in: %.200s", worker, err.text);
	sched_set_aggregator(world->sched, worker, world->config->aggregates);
	sched_set_forwarder(world->sched, worker, true);
	world->workers[worker].is_registered = true;
}

static void announce(struct fabric_world *world, uint32_t worker)
{
	struct fabric_worker *of = &world->workers[worker];
	const struct ledger_update update = {.number = ++of->number,
	                                     .computed_from = of->computed_from,
	                                     .bytes = world->config->bytes,
	                                     .norm = 1,
	                                     .attempts = of->attempts};
	struct error err;

	if (!world->sched || of->attempts >= ATTEMPTS_MOST) {
		fabric_go_directly(world, worker);
		return;
	}
	if (!of->is_registered)
		fabric_register(world, worker);
	of->doing = FABRIC_READY;
	if (sched_ready(world->sched, worker, &update, world->now, &err) != ESP_OK)
		fabric_fail(world, "worker %u's update is refused: %.200s", worker, err.text);
}

/* The step's gradient is an update; with two in flight the next step begins at once. */
static void push(struct fabric_world *world, uint32_t worker)
{
	struct fabric_worker *of = &world->workers[worker];

	of->made++;
	of->attempts = 0;
	of->computed_from = of->step_from;
	of->ready_ns = world->now;
	for (uint32_t i = 0; i < FABRIC_VALUES; i++)
		of->values[i] = rng_next(&world->rng);
	if (world->config->learner)
		world->config->learner->push(world->config->learner->user, worker);
	if (world->config->in_flight > 1 && has_more(world, worker))
		fabric_begin_step(world, worker);
	announce(world, worker);
}

void fabric_end_step(struct fabric_world *world, uint32_t worker)
{
	struct fabric_worker *of = &world->workers[worker];

	of->is_computing = false;
	if (of->doing != FABRIC_NO_UPDATE || of->is_asking)
		of->is_stalled = true;
	else
		push(world, worker);
}

void fabric_ask_model(struct fabric_world *world, uint32_t worker)
{
	struct fabric_worker *of = &world->workers[worker];
	const uint32_t links[] = {fabric_hub_out(world), fabric_in(world, worker)};
	struct error err;

	if (of->is_dead || of->is_asking)
		return;
	of->is_asking = true;
	if (world->sched && of->is_registered) {
		if (sched_wants(world->sched, worker, world->config->bytes, world->now, &err) != ESP_OK)
			fabric_fail(world, "worker %u gets no model: %.200s", worker, err.text);
		return;
	}
	of->gets_directly = true;
	of->incoming_from = world->gate.version;
	if (world->config->learner)
		world->config->learner->send(world->config->learner->user, worker);
	fabric_flows_start(&world->flows, links, 2, world->config->bytes, 0, fabric_cookie(FABRIC_MODEL, worker));
}

void fabric_deliver_model(struct fabric_world *world, uint32_t worker)
{
	struct fabric_worker *of = &world->workers[worker];

	if (of->is_dead)
		return;
	of->is_asking = of->gets_directly = false;
	of->model_from = of->incoming_from;
	if (world->config->learner)
		world->config->learner->receive(world->config->learner->user, worker);
	if (world->config->in_flight == 1) {
		fabric_begin_step(world, worker);
	} else if (of->is_stalled) {
		of->is_stalled = false;
		push(world, worker);
	}
}

/* ---- ends of updates ---- */

/* The scheduler hears of it, if it has decided it. */
static void tell(struct fabric_world *world, uint32_t worker, uint8_t how, uint64_t delay)
{
	const struct fabric_worker *of = &world->workers[worker];
	const struct sched_done done = {.number = of->number, .end = how, .version = world->gate.version, .delay = delay,
	                                .took_ns = of->took_ns};
	struct error err;

	if (world->sched && of->is_registered && of->decision.position > 0 && of->epoch == world->epoch &&
	    sched_done(world->sched, worker, &done, world->now, &err) != ESP_OK)
		fabric_fail(world, "the end of worker %u's update is refused: %.200s", worker, err.text);
}

void fabric_end_update(struct fabric_world *world, uint32_t worker, uint8_t how, uint64_t delay)
{
	struct fabric_worker *of = &world->workers[worker];

	log_end(world, worker, how, delay);
	world->result->ends[how]++;
	if (world->now - of->ready_ns > world->result->longest_ns)
		world->result->longest_ns = world->now - of->ready_ns;
	of->doing = FABRIC_NO_UPDATE;
	if (of->is_dead)
		return;
	tell(world, worker, how, delay);
	if (has_more(world, worker) || (world->config->in_flight > 1 && (of->is_computing || of->is_stalled)))
		fabric_ask_model(world, worker);
}

void fabric_again(struct fabric_world *world, uint32_t worker)
{
	struct fabric_worker *of = &world->workers[worker];

	if (world->config->mutant == FABRIC_NO_AGAIN)
		return;
	fabric_send_forget(world, worker);
	log_end(world, worker, LEDGER_BROKEN, 0);
	of->doing = FABRIC_NO_UPDATE;
	if (of->is_dead)
		return;
	world->result->again++;
	of->attempts++;
	tell(world, worker, LEDGER_BROKEN, 0);
	announce(world, worker);
}
