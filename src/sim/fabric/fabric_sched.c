/*
 * fabric_sched.c - the scheduler of the modelled job: its life, its decisions, and faults of all roles.
 */
#include <string.h>

#include "base/clock.h"
#include "fabric/sched_log.h"
#include "sim/fabric/fabric_world_state.h"

/* ---- the scheduler ---- */

void fabric_start_scheduler(struct fabric_world *world)
{
	const struct fabric_config *config = world->config;
	uint32_t hosts[FABRIC_WORKERS_MOST];
	struct error err;

	for (uint32_t worker = 0; worker < config->workers; worker++)
		hosts[worker] = fabric_host(world, worker);
	const struct sched_config sched = {.workers = config->workers, .bound = config->bound, .batch_ns = config->batch_ns,
	                                   .hub_rate = config->hub_rate, .worker_rate = config->host_rate, .hosts = hosts,
	                                   .aggregates = config->aggregates, .chains = config->chains, .order_flags = config->order_flags,
	                                   .has_no_trees = config->has_no_trees};
	if (sched_open(&sched, &world->sched, &err) != ESP_OK) {
		fabric_fail(world, "no scheduler: %.200s", err.text);
		return;
	}
	world->epoch++;
	const struct sched_log_begin begin = {world->epoch, 1, config->workers, config->bound};
	sched_log_begin(config->log, world->now, &begin);
	for (uint32_t worker = 0; worker < config->workers; worker++) {
		if (!world->workers[worker].is_dead)
			fabric_register(world, worker);
	}
	fabric_report(world, world->period);
}

static void take_decision(struct fabric_world *world, const struct sched_decision *decision)
{
	struct fabric_worker *of = &world->workers[decision->worker];

	sched_log_decision(world->config->log, world->now, decision);
	of->decision = *decision;
	of->epoch = world->epoch;
	if (decision->end != LEDGER_APPLIED) {
		of->decision.position = 0; /* the scheduler has ended it */
		fabric_end_update(world, decision->worker, decision->end, decision->delay);
		return;
	}
	of->doing = FABRIC_WAITS;
	of->start_ns = world->now + decision->start_ns;
	of->wait_until_ns =
		world->config->mutant == FABRIC_NO_GIVE_UP ? UINT64_MAX : world->now + decision->wait_ns;
	of->got = UINT64_C(1) << decision->worker;
	memcpy(of->sum, of->values, sizeof(of->sum));
}

void fabric_run_scheduler(struct fabric_world *world)
{
	struct sched_decision decision;
	struct sched_model model;
	bool has_models = false;

	if (!world->sched)
		return;
	sched_tick(world->sched, world->now);
	while (sched_next(world->sched, &decision))
		take_decision(world, &decision);
	for (; sched_next_model(world->sched, &model); has_models = true) {
		sched_log_model(world->config->log, world->now, &model);
		world->workers[model.worker].model = model;
		world->workers[model.worker].has_model_decision = true;
	}
	if (has_models)
		fabric_send_trees(world);
	world->result->batches = sched_batches(world->sched);
}

/* ---- faults ---- */

static void stop_scheduler(struct fabric_world *world)
{
	sched_close(world->sched);
	world->sched = NULL;
	world->result->restarts++;
	world->sched_up_ns = world->now + rng_below(&world->rng, 4 * world->config->batch_ns) + 1;
	for (uint32_t worker = 0; worker < world->config->workers; worker++) {
		struct fabric_worker *of = &world->workers[worker];
		bool waits = of->is_registered && of->is_asking && !of->gets_directly;

		of->is_registered = false;
		if (waits && !of->is_dead) {
			bool is_coming = false;

			for (uint32_t i = 0; i < FABRIC_WORKERS_MOST; i++)
				is_coming |= world->trees[i].is_open && (world->trees[i].workers >> worker & 1);
			of->is_asking = is_coming;
			fabric_ask_model(world, worker);
		}
		if (!of->is_dead && of->doing == FABRIC_READY)
			fabric_go_directly(world, worker);
	}
}

static void kill_worker(struct fabric_world *world, uint32_t worker)
{
	struct fabric_worker *of = &world->workers[worker];
	struct gate_result result;

	of->is_dead = true;
	of->is_computing = false;
	world->result->deaths++;
	fabric_send_lost(world, worker);
	if (world->sched && of->is_registered)
		sched_gone(world->sched, worker, world->now);
	if (gate_gone(&world->gate, worker, &result) || of->doing == FABRIC_READY || of->doing == FABRIC_WAITS)
		fabric_end_update(world, worker, LEDGER_GONE, 0);
}

uint64_t fabric_draw_fault(struct fabric_world *world, uint32_t left)
{
	if (left == 0 || world->now >= world->config->faults_ns)
		return UINT64_MAX;
	return world->now + 1 + rng_below(&world->rng, (world->config->faults_ns - world->now) / left + 1);
}

static uint32_t count_alive(const struct fabric_world *world)
{
	uint32_t count = 0;

	for (uint32_t worker = 0; worker < world->config->workers; worker++)
		count += !world->workers[worker].is_dead;
	return count;
}

void fabric_make_faults(struct fabric_world *world)
{
	uint32_t worker = (uint32_t)rng_below(&world->rng, world->config->workers);

	if (world->next_kill_ns <= world->now) {
		if (!world->workers[worker].is_dead && count_alive(world) > 1) {
			kill_worker(world, worker);
			world->last_fault_ns = world->now;
		}
		world->next_kill_ns = fabric_draw_fault(world, --world->kills_left);
	}
	if (world->next_sched_kill_ns <= world->now) {
		if (world->sched) {
			stop_scheduler(world);
			world->last_fault_ns = world->now;
		}
		world->next_sched_kill_ns = fabric_draw_fault(world, --world->sched_kills_left);
	}
	if (!world->config->has_no_sched && !world->sched && world->sched_up_ns <= world->now)
		fabric_start_scheduler(world);
}
