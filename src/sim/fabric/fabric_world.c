#include "sim/fabric/fabric_world.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "sim/fabric/fabric_world_state.h"

#define STUCK 1000000u /* events without that time goes on */
#define SLOWEST 10u    /* the least part of a link's rate */
#define RATE_LEAST 1000.0

void fabric_fail(struct fabric_world *world, const char *format, ...)
{
	va_list args;

	if (world->result->failure[0])
		return; /* the first one counts */
	va_start(args, format);
	vsnprintf(world->result->failure, sizeof(world->result->failure), format, args);
	va_end(args);
}

/* ---- weather and the monitor ---- */

static double link_rate(const struct fabric_world *world, uint32_t link, uint64_t period)
{
	const struct fabric_config *config = world->config;
	uint32_t drawn = config->has_one_rate ? link % world->hosts : link;
	double rate = (double)config->host_rate * fabric_weather_part(config->weather, config->seed, drawn, period);

	return rate > RATE_LEAST ? rate : RATE_LEAST;
}

static void change_weather(struct fabric_world *world)
{
	for (uint32_t link = 0; link < 2 * world->hosts; link++)
		fabric_flows_set_rate(&world->flows, link, link_rate(world, link, world->period));
	if (world->config->has_no_sched || world->reports == FABRIC_REPORTS_MOST)
		return;
	world->report_at[world->reports] = world->now + world->config->lag_ns;
	world->report_period[world->reports++] = world->period;
}

static uint64_t reported(struct fabric_world *world, uint32_t link, uint64_t period)
{
	double rate = link_rate(world, link, period);

	if (world->config->wrong_percent > 0 && rng_chance(&world->rng, world->config->wrong_percent, 100))
		rate *= rng_chance(&world->rng, 1, 2) ? 0.25 + rng_unit(&world->rng) : 1 + 3 * rng_unit(&world->rng);
	return rate > RATE_LEAST ? (uint64_t)rate : (uint64_t)RATE_LEAST;
}

void fabric_report(struct fabric_world *world, uint64_t period)
{
	struct error err;

	for (uint32_t host = 0; world->sched && host < world->hosts; host++) {
		if (sched_report_ways(world->sched, host * world->config->per_host, reported(world, world->hosts + host, period),
		                      reported(world, host, period), world->now, &err) != ESP_OK)
			fabric_fail(world, "a report is refused: %.200s", err.text);
	}
}

static void make_reports(struct fabric_world *world)
{
	while (world->reports > 0 && world->report_at[0] <= world->now) {
		fabric_report(world, world->report_period[0]);
		world->reports--;
		memmove(world->report_at, world->report_at + 1, world->reports * sizeof(world->report_at[0]));
		memmove(world->report_period, world->report_period + 1, world->reports * sizeof(world->report_period[0]));
	}
}

/* ---- time ---- */

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t next_event(struct fabric_world *world)
{
	uint64_t next = (world->period + 1) * world->config->period_ns;

	next = least(next, least(fabric_flows_due(&world->flows), fabric_send_next(world)));
	next = least(next, least(gate_due(&world->gate), least(world->next_kill_ns, world->next_sched_kill_ns)));
	if (world->reports > 0)
		next = least(next, world->report_at[0]);
	if (world->sched)
		next = least(next, sched_due(world->sched));
	else if (!world->config->has_no_sched)
		next = least(next, world->sched_up_ns);
	for (uint32_t worker = 0; worker < world->config->workers; worker++) {
		const struct fabric_worker *of = &world->workers[worker];

		if (of->is_computing)
			next = least(next, of->until_ns);
	}
	return next > world->now ? next : world->now;
}

static void step(struct fabric_world *world)
{
	uint64_t cookie;

	while (world->now >= (world->period + 1) * world->config->period_ns) {
		world->period++;
		change_weather(world);
	}
	make_reports(world);
	fabric_make_faults(world);
	while (fabric_flows_ended(&world->flows, &cookie))
		fabric_send_ended(world, cookie);
	for (uint32_t worker = 0; worker < world->config->workers; worker++) {
		if (world->workers[worker].is_computing && world->workers[worker].until_ns <= world->now)
			fabric_end_step(world, worker);
	}
	fabric_pump(world);
	fabric_run_scheduler(world);
	fabric_send_due(world);
	fabric_pump(world);
}

/*
 * After the last fault an update ends within three batches, the transfers of all before it at the slowest rate and the
 * gate's patience for a position that does not come; if updates are added on the way, after sums that have failed.
 */
static uint64_t longest_wait(const struct fabric_world *world)
{
	const struct fabric_config *config = world->config;
	uint64_t slowest = config->bytes * SLOWEST * NS_PER_S / least(config->host_rate, config->hub_rate);

	return (SCHED_WAITED + 4) * config->batch_ns + (2 * config->workers + 4) * slowest + NS_PER_S / 10 +
	       (config->aggregates ? SCHED_ATTEMPTS * GATE_PATIENCE_MOST : 0);
}

static void check_progress(struct fabric_world *world)
{
	for (uint32_t worker = 0; worker < world->config->workers; worker++) {
		const struct fabric_worker *of = &world->workers[worker];
		uint64_t since = of->ready_ns > world->last_fault_ns ? of->ready_ns : world->last_fault_ns;

		if (!of->is_dead && of->doing != FABRIC_NO_UPDATE && world->now > since + longest_wait(world))
			fabric_fail(world, "update %" PRIu64 " of worker %u has not ended %" PRIu64 " ms after it was ready",
			            of->number, worker, (world->now - of->ready_ns) / NS_PER_MS);
	}
}

static bool is_over(const struct fabric_world *world)
{
	if (world->result->failure[0])
		return true;
	if (world->config->learner && world->config->learner->is_done(world->config->learner->user))
		return true;
	for (uint32_t worker = 0; worker < world->config->workers; worker++) {
		const struct fabric_worker *of = &world->workers[worker];

		if (!of->is_dead && (world->config->updates == 0 || of->made < world->config->updates ||
		                     of->doing != FABRIC_NO_UPDATE || of->is_computing || of->is_stalled))
			return false;
	}
	return true;
}

static void run(struct fabric_world *world)
{
	uint64_t end = world->config->end_ns > 0 ? world->config->end_ns : UINT64_MAX;

	for (uint64_t stuck = 0; !is_over(world); stuck++) {
		uint64_t next = next_event(world);

		if (next >= end)
			break;
		if (next > world->now)
			stuck = 0;
		if (stuck > STUCK)
			fabric_fail(world, "time stands still at %" PRIu64 " ns", world->now);
		fabric_flows_advance(&world->flows, next);
		world->now = next;
		step(world);
		check_progress(world);
	}
}

/* ---- opening ---- */

static enum esp_status check_config(const struct fabric_config *config, struct error *err)
{
	if (config->workers < 1 || config->workers > FABRIC_WORKERS_MOST || config->per_host < 1 || config->bound < 1 ||
	    config->in_flight < 1 || config->in_flight > 2)
		return error_set(err, ESP_EINVAL, "%u workers, %u on a host, bound %u, %u in flight: out of range",
		                 config->workers, config->per_host, config->bound, config->in_flight);
	if (config->bytes == 0 || config->bytes > CALENDAR_BYTES_MOST || config->host_rate < 10000 ||
	    config->hub_rate < 10000 || config->host_rate > CALENDAR_RATE_MOST || config->hub_rate > CALENDAR_RATE_MOST)
		return error_set(err, ESP_EINVAL, "%" PRIu64 " bytes over links of %" PRIu64 " and %" PRIu64
		                 " bytes per second: out of range", config->bytes, config->host_rate, config->hub_rate);
	if (config->period_ns == 0 || config->batch_ns < NS_PER_MS || (config->updates == 0 && config->end_ns == 0))
		return error_set(err, ESP_EINVAL, "the weather's period, a batch's length or the end of the run is missing");
	return ESP_OK;
}

static void begin(struct fabric_world *world)
{
	const struct fabric_config *config = world->config;

	rng_init(&world->rng, config->seed);
	world->hosts = (config->workers + config->per_host - 1) / config->per_host;
	fabric_flows_init(&world->flows, 2 * world->hosts + 2);
	world->flows.has_turns = config->has_turns;
	fabric_flows_set_rate(&world->flows, fabric_hub_in(world), (double)config->hub_rate);
	fabric_flows_set_rate(&world->flows, fabric_hub_out(world), (double)config->hub_rate);
	change_weather(world);
	world->reports = 0;
	gate_init(&world->gate, config->workers, config->mutant == FABRIC_NO_BOUND ? UINT32_MAX : config->bound);
	if (config->aggregates)
		gate_take_sums(&world->gate);
	if (!config->has_no_sched)
		fabric_start_scheduler(world);
	world->kills_left = config->worker_kills;
	world->sched_kills_left = config->sched_kills;
	world->next_kill_ns = fabric_draw_fault(world, world->kills_left);
	world->next_sched_kill_ns = fabric_draw_fault(world, world->sched_kills_left);
	for (uint32_t worker = 0; worker < config->workers; worker++)
		fabric_begin_step(world, worker);
}

enum esp_status fabric_world_run(const struct fabric_config *config, struct fabric_result *out, struct error *err)
{
	enum esp_status status = check_config(config, err);

	if (status != ESP_OK)
		return status;
	struct fabric_world *world = calloc(1, sizeof(*world));
	if (!world)
		return error_set(err, ESP_ENOMEM, "no memory for a modelled job");
	*out = (struct fabric_result){0};
	world->config = config;
	world->result = out;
	begin(world);
	run(world);
	out->ended_ns = world->now;
	if (world->now > config->warm_ns)
		out->per_second = (double)out->applied_warm * (double)NS_PER_S / (double)(world->now - config->warm_ns);
	sched_close(world->sched);
	free(world);
	return ESP_OK;
}
