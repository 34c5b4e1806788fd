#include "sim/fabric/fabric_study.h"

#include <math.h>

#include "base/clock.h"

#define BATCH_STREAM (10 * NS_PER_MS) /* chains are begun when the hub's link is free, so batches may be short */
#define BATCH_PAPER (100 * NS_PER_MS)
#define WARM (10 * NS_PER_S)
#define LR_LEAST 0.01
#define LR_STEPS 6u
#define SGD_SECONDS UINT64_C(150)
#define SGD_UPDATES UINT64_C(12000)

const char *const fabric_way_names[] = {"ring",           "ring, overlapped", "plain asynchronous", "sums",
                                        "chains", "chains, two in flight", "no sums", "no deadlines", "no drops", "no trees", NULL};

struct fabric_cell fabric_study_cell(void)
{
	return (struct fabric_cell){.stragglers = &fabric_stragglers[1], .weather = &fabric_weathers[1], .hosts = 15,
	                            .per_host = 2, .bytes = 100000000, .compute_ns = 100 * NS_PER_MS, .rate = 1250000000,
	                            .seed = 1, .seconds = 100};
}

static struct fabric_config config_of(const struct fabric_cell *cell, enum fabric_way way)
{
	uint32_t workers = cell->hosts * cell->per_host;
	struct fabric_config config = {.workers = workers,
	                               .per_host = cell->per_host,
	                               .bound = 2 * workers,
	                               .in_flight = 1,
	                               .aggregates = way != FABRIC_PLAIN && way != FABRIC_NO_SUMS,
	                               .chains = way != FABRIC_SUMS,
	                               .batch_ns = way == FABRIC_SUMS ? BATCH_PAPER : BATCH_STREAM,
	                               .bytes = cell->bytes,
	                               .compute_ns = cell->compute_ns,
	                               .host_rate = cell->rate,
	                               .hub_rate = cell->rate,
	                               .weather = cell->weather,
	                               .stragglers = cell->stragglers,
	                               .period_ns = 5 * NS_PER_S,
	                               .lag_ns = cell->lag_ns,
	                               .warm_ns = WARM,
	                               .seed = cell->seed};

	if (way == FABRIC_PLAIN)
		config.has_no_sched = true;
	if (way == FABRIC_CHAINS_TWO) {
		config.in_flight = 2;
		config.bound = 3 * workers;
	}
	config.order_flags = way == FABRIC_NO_DEADLINES ? ORDER_NO_DEADLINES : way == FABRIC_NO_DROPS ? ORDER_NO_DROPS : 0;
	config.has_no_trees = way == FABRIC_NO_TREES;
	return config;
}

/* ---- bounds ---- */

static double step_mean(const struct fabric_cell *cell)
{
	double slow = cell->stragglers->percent / 100.0;

	return (double)cell->compute_ns / (double)NS_PER_S * (1 + slow * (cell->stragglers->times - 1));
}

/* Updates per second of one worker whose links have these parts of the rate. */
static double alone(const struct fabric_cell *cell, bool has_two, double out, double in)
{
	double step = step_mean(cell), sends = (double)cell->bytes / ((double)cell->rate * out),
	       gets = (double)cell->bytes / ((double)cell->rate * in);

	return has_two ? 1 / fmax(step, fmax(sends, gets)) : 1 / (step + sends + gets);
}

/* The mean over all weathers, as no worker is in another's way. */
static double bound_of(const struct fabric_cell *cell, enum fabric_way way)
{
	const struct fabric_weather *weather = cell->weather;
	double sum = 0, hub = (double)cell->rate / (double)cell->bytes * cell->hosts * cell->per_host;

	for (uint32_t out = 0; out < FABRIC_WEATHER_RATES; out++) {
		for (uint32_t in = 0; in < FABRIC_WEATHER_RATES; in++)
			sum += weather->chance[out] * weather->chance[in] *
			       alone(cell, way == FABRIC_CHAINS_TWO, weather->part[out], weather->part[in]);
	}
	sum *= cell->hosts * cell->per_host;
	if (way == FABRIC_PLAIN || way == FABRIC_NO_SUMS) /* each update passes the hub's link by itself */
		hub = (double)cell->rate / (double)cell->bytes;
	return fmin(sum, hub);
}

/* ---- rates ---- */

static enum esp_status run_rate(const struct fabric_cell *cell, struct fabric_config *config, struct fabric_row *out,
                                struct error *err)
{
	struct fabric_result result;
	uint64_t all = 0;

	config->end_ns = (uint64_t)(cell->seconds * (double)NS_PER_S) + WARM;
	enum esp_status status = fabric_world_run(config, &result, err);
	if (status != ESP_OK)
		return status;
	if (result.failure[0])
		return error_set(err, ESP_ECORRUPT, "the modelled job broke a promise: %.240s", result.failure);
	for (uint32_t end = 0; end < LEDGER_ENDS; end++)
		all += result.ends[end];
	out->per_second = result.per_second;
	out->dropped = all > 0 ? 1 - (double)result.applied / (double)all : 0;
	out->delay_mean = result.applied > 0 ? (double)result.delay_sum / (double)result.applied : 0;
	out->delay_most = result.delay_most;
	return ESP_OK;
}

/* ---- updates that SGD needs ---- */

static enum esp_status run_once(const struct fabric_cell *cell, enum fabric_way way, double lr, uint64_t seed,
                                uint64_t *out_updates, struct error *err)
{
	struct fabric_config config = config_of(cell, way);
	struct fabric_learner_run *learner;
	struct fabric_result result;
	enum esp_status status = fabric_learner_open(cell->task, config.workers, lr, seed, &learner, err);

	if (status != ESP_OK)
		return status;
	if (way == FABRIC_RING || way == FABRIC_RING_OVERLAP) {
		*out_updates = fabric_learner_synchronous(learner, SGD_UPDATES);
	} else {
		config.learner = fabric_learner_hooks(learner);
		config.seed = seed;
		config.end_ns = SGD_SECONDS * NS_PER_S;
		status = fabric_world_run(&config, &result, err);
		if (status == ESP_OK && result.failure[0])
			status = error_set(err, ESP_ECORRUPT, "the modelled job broke a promise: %.240s", result.failure);
		*out_updates = fabric_learner_reached(learner);
	}
	fabric_learner_close(learner);
	return status;
}

/* The best learning rate is the one with the fewest updates in the mean, if all seeds reach the target with it. */
static enum esp_status run_sgd(const struct fabric_cell *cell, struct fabric_row *out, struct error *err)
{
	double lr = LR_LEAST;

	for (uint32_t step = 0; step < LR_STEPS; step++, lr *= 2) {
		double sum = 0;
		uint32_t seed = 0;

		for (uint64_t updates = 1; seed < cell->seeds && updates > 0; seed++) {
			enum esp_status status = run_once(cell, out->way, lr, cell->seed + seed, &updates, err);

			if (status != ESP_OK)
				return status;
			sum = updates > 0 ? sum + (double)updates : INFINITY;
		}
		if (sum < INFINITY && (out->updates == 0 || sum / cell->seeds < out->updates)) {
			out->updates = sum / cell->seeds;
			out->lr = lr;
		}
	}
	return ESP_OK;
}

enum esp_status fabric_study_row(const struct fabric_cell *cell, enum fabric_way way, struct fabric_row *out,
                                 struct error *err)
{
	struct fabric_config config = config_of(cell, way);
	enum esp_status status = ESP_OK;

	*out = (struct fabric_row){.way = way};
	if (cell->hosts < 2 || cell->hosts * cell->per_host > FABRIC_WORKERS_MOST || !(cell->seconds > 0) ||
	    cell->seconds > 1e5)
		return error_set(err, ESP_EINVAL, "%u hosts of %u workers for %g s: out of range (2 hosts, at most %u workers)",
		                 cell->hosts, cell->per_host, cell->seconds, FABRIC_WORKERS_MOST);
	if (way == FABRIC_RING || way == FABRIC_RING_OVERLAP) {
		config.end_ns = (uint64_t)(cell->seconds * (double)NS_PER_S);
		out->per_second = config.workers * (double)NS_PER_S / fabric_world_ring(&config, way == FABRIC_RING_OVERLAP);
	} else {
		out->bound = config.bound;
		out->most = bound_of(cell, way);
		status = run_rate(cell, &config, out, err);
	}
	if (status == ESP_OK && cell->seeds > 0)
		status = run_sgd(cell, out, err);
	if (out->updates > 0 && out->per_second > 0)
		out->seconds = out->updates / out->per_second;
	return status;
}
