#include "tools/bench/fabric_plan.h"

#include <assert.h>
#include <math.h>

#include "base/clock.h"

#define BOOKED 0.94
#define CHUNK_BYTES 32768u /* of the hub, as it is unless a job says otherwise */

const char *const fabric_plan_ways[FABRIC_PLAN_WAYS + 1] = {"best", "paper", "plain", "ring", NULL};

double bench_fabric_plan_part(const struct fabric_plan *plan, uint32_t worker, uint64_t period)
{
	return fabric_weather_part(plan->weather, plan->seed, worker, period);
}

/* Of what a link carries a scheduler books this: 94 % of its rate, of which packets of 1500 bytes leave 95.6 %. */
static uint64_t booked(uint64_t goodput, enum fabric_plan_way way)
{
	bool has_sched = way == FABRIC_PLAN_BEST || way == FABRIC_PLAN_PAPER;

	return has_sched ? (uint64_t)((double)goodput * BOOKED * 1514 / 1448) : goodput;
}

/* Without a scheduler links serve the workers in turn: live, it is not shared fairly between so few streams. */
static struct fabric_config config_of(const struct fabric_plan *plan, enum fabric_plan_way way)
{
	return (struct fabric_config){.workers = plan->workers,
	                              .per_host = 1,
	                              .bound = plan->delay_bound,
	                              .in_flight = 1,
	                              .has_no_sched = way == FABRIC_PLAN_PLAIN,
	                              .aggregates = way != FABRIC_PLAN_PLAIN,
	                              .chains = way == FABRIC_PLAN_BEST,
	                              .batch_ns = plan->batch_ns,
	                              .bytes = plan->bytes,
	                              .compute_ns = plan->compute_ns,
	                              .host_rate = booked(plan->rate, way),
	                              .hub_rate = booked(plan->hub_rate, way),
	                              .chunk_bytes = plan->is_ideal ? 0 : CHUNK_BYTES,
	                              .begins_within_step = !plan->is_ideal,
	                              .has_turns = way == FABRIC_PLAN_PLAIN && !plan->is_ideal,
	                              .weather = plan->weather,
	                              .has_one_rate = true,
	                              .stragglers = plan->stragglers,
	                              .period_ns = plan->period_ns,
	                              .seed = plan->seed,
	                              .warm_ns = plan->warm_ns,
	                              .end_ns = plan->warm_ns + plan->window_ns};
}

/* ---- bounds ---- */

/* Seconds of a step in the mean. */
static double step_mean(const struct fabric_plan *plan)
{
	double slow = plan->stragglers->percent / 100.0;

	return (double)plan->compute_ns / (double)NS_PER_S * (1 + slow * (plan->stragglers->times - 1));
}

/* Updates per second of a worker whose link has this part of its rate. */
static double alone(const struct fabric_plan *plan, double part)
{
	double rate = fmin((double)plan->rate * part, (double)plan->hub_rate);

	return 1 / (step_mean(plan) + 2 * (double)plan->bytes / rate);
}

/* The mean over the window, in the weather that was drawn. */
static double all_alone(const struct fabric_plan *plan)
{
	uint64_t end = plan->warm_ns + plan->window_ns;
	double sum = 0;

	for (uint64_t from = plan->warm_ns; from < end;) {
		uint64_t period = from / plan->period_ns, until = (period + 1) * plan->period_ns;

		until = until < end ? until : end;
		for (uint32_t worker = 0; worker < plan->workers; worker++)
			sum += alone(plan, bench_fabric_plan_part(plan, worker, period)) * (double)(until - from);
		from = until;
	}
	return sum / (double)plan->window_ns;
}

static double ring_rate(const struct fabric_plan *plan)
{
	const struct fabric_config config = config_of(plan, FABRIC_PLAN_RING);

	return plan->workers * (double)NS_PER_S / fabric_world_ring(&config, false);
}

struct fabric_plan_bound bench_fabric_plan_bound(const struct fabric_plan *plan, enum fabric_plan_way way)
{
	double waiting = all_alone(plan), hub = (double)plan->hub_rate / (double)plan->bytes;

	assert(plan->period_ns > 0 && plan->window_ns > 0 && plan->bytes > 0 && plan->rate > 0 && plan->hub_rate > 0);
	if (way == FABRIC_PLAN_RING)
		return (struct fabric_plan_bound){ring_rate(plan), "slowest worker and link"};
	if (way == FABRIC_PLAN_PLAIN && hub < waiting)
		return (struct fabric_plan_bound){hub, "the hub's link"};
	return (struct fabric_plan_bound){waiting, "computing, sending, getting"};
}

/* ---- virtual time ---- */

enum esp_status bench_fabric_plan_model(const struct fabric_plan *plan, enum fabric_plan_way way,
                                        struct fabric_result *out, struct error *err)
{
	const struct fabric_config config = config_of(plan, way);

	if (way == FABRIC_PLAN_RING) {
		*out = (struct fabric_result){.per_second = ring_rate(plan)};
		return ESP_OK;
	}
	enum esp_status status = fabric_world_run(&config, out, err);
	if (status == ESP_OK && out->failure[0])
		return error_set(err, ESP_ECORRUPT, "the modelled job broke a promise: %.200s", out->failure);
	return status;
}
