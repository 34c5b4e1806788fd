#include "studies/discover_speed.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/jobs.h"
#include "network/discover/quality.h"
#include "studies/tuned.h"

static const char *const way_names[SPEED_WAYS] = {"flat", "probed", "probed+tuned", "probed-root", "random", "truth"};

const char *speed_way_name(enum speed_way way)
{
	return way_names[way];
}

double speed_percentile(const double *sorted, uint32_t count, double percent)
{
	double rank = ceil(percent / 100 * count);

	return sorted[rank < 1 ? 0 : (uint32_t)rank - 1];
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static enum esp_status summarise(const double *seconds, uint32_t runs, struct speed_summary *out, struct error *err)
{
	assert(runs > 0);
	double *sorted = malloc(runs * sizeof(*sorted)), sum = 0;

	if (!sorted)
		return error_set(err, ESP_ENOMEM, "no memory for %u runs", runs);
	memcpy(sorted, seconds, runs * sizeof(*sorted));
	qsort(sorted, runs, sizeof(*sorted), ascending);
	for (uint32_t i = 0; i < runs; i++)
		sum += sorted[i];
	*out = (struct speed_summary){sum / runs, speed_percentile(sorted, runs, 50), speed_percentile(sorted, runs, 95),
	                              sorted[0], sorted[runs - 1]};
	free(sorted);
	return ESP_OK;
}

/* One run's groupings by way; SPEED_FLAT has none. */
struct run {
	struct discover_case made;
	struct topology *topology;
	struct discovered found;
	struct grouping random, truth;
	const struct grouping *by[SPEED_WAYS];
};

static enum esp_status run_open(struct run *run, const struct speed_config *config, uint64_t seed, struct error *err)
{
	uint32_t machines = config->spec.machines;
	enum esp_status status = discover_open(&run->made, &config->spec, config->seed, seed, err);

	if (status == ESP_OK && config->whole_hosts)
		crowd_clear_hosts(&run->made.crowd);
	if (status == ESP_OK)
		status = region_topology(&run->made.region, run->made.crowd.host_share, run->made.crowd.flows, &run->topology,
		                         err);
	if (status == ESP_OK)
		status = find_groups(&run->made, &config->find, seed, &run->found, err);
	discover_tell(&config->watch);
	if (status == ESP_OK)
		status = grouping_random(&run->random, machines, discover_root(machines), seed, err);
	if (status == ESP_OK)
		status = region_grouping(&run->made.region, REGION_RACK, &run->truth, err);
	run->by[SPEED_PROBED] = &run->found.chosen;
	run->by[SPEED_TUNED] = &run->found.chosen;
	run->by[SPEED_ROOT] = &run->found.root;
	run->by[SPEED_RANDOM] = &run->random;
	run->by[SPEED_TRUTH] = &run->truth;
	return status;
}

static void run_close(struct run *run)
{
	discovered_fini(&run->found);
	grouping_fini(&run->random);
	grouping_fini(&run->truth);
	topology_close(run->topology);
	discover_close(&run->made);
}

/* The time of an allreduce once the masters have settled. */
static enum esp_status measure_tuned(const struct speed_config *config, const struct run *run, double *out_seconds,
                                     struct error *err)
{
	const struct grouping *groups = run->by[SPEED_TUNED];
	struct tuned tuned;
	enum esp_status status = tuned_init(&tuned, groups->group_of, groups->nodes, err);

	if (status != ESP_OK)
		return status;
	for (uint32_t step = 0; step <= SPEED_STEPS && status == ESP_OK; step++) {
		status = tuned_step(&tuned, run->topology, &config->load, out_seconds, NULL, err);
		if (step < SPEED_STEPS)
			discover_tell(&config->watch);
	}
	tuned_fini(&tuned);
	return status;
}

/* All runs, several at a time. */
struct race {
	struct speed_config config; /* as given, but for the watch */
	const struct discover_watch *watch;
	pthread_mutex_t lock; /* only one run at a time reports */
	struct speed_result *result;
	struct found_by {
		double groups, ami;
	} *found; /* by way and run, like seconds */
};

static void report_part(void *user)
{
	struct race *race = user;

	pthread_mutex_lock(&race->lock);
	discover_tell(race->watch);
	pthread_mutex_unlock(&race->lock);
}

static enum esp_status measure(const struct race *race, const struct run *run, uint32_t nth, struct error *err)
{
	const struct speed_config *config = &race->config;
	enum esp_status status = ESP_OK;

	for (unsigned way = 0; way < SPEED_WAYS && status == ESP_OK; way++) {
		const struct grouping *groups = run->by[way];
		size_t at = (size_t)way * config->runs + nth;
		double *seconds = &race->result->seconds[at];

		status = way == SPEED_TUNED ? measure_tuned(config, run, seconds, err)
		                            : find_seconds(run->topology, groups ? groups->group_of : NULL, &config->load,
		                                           seconds, err);
		if (groups)
			race->found[at] = (struct found_by){groups->count, discover_quality_ami(groups, &run->truth)};
		discover_tell(&config->watch);
	}
	return status;
}

static enum esp_status run_once(void *user, uint32_t nth, struct error *err)
{
	const struct race *race = user;
	struct run run = {0};
	enum esp_status status = run_open(&run, &race->config, race->config.seed + nth, err);

	if (status == ESP_OK)
		status = measure(race, &run, nth, err);
	/* machines stay where they are */
	for (unsigned level = 0; level < REGION_LEVELS && status == ESP_OK && nth == 0; level++)
		race->result->held[level] = region_held(&run.made.region, (enum region_level)level);
	run_close(&run);
	return status;
}

/* In the order of the runs, so that the bits do not depend on which one ended first. */
static enum esp_status sum_up(const struct race *race, struct error *err)
{
	struct speed_result *out = race->result;
	enum esp_status status = ESP_OK;

	for (unsigned way = 0; way < SPEED_WAYS && status == ESP_OK; way++) {
		for (uint32_t i = 0; i < out->runs; i++) {
			out->groups[way] += race->found[way * out->runs + i].groups / out->runs;
			out->ami[way] += race->found[way * out->runs + i].ami / out->runs;
		}
		status = summarise(&out->seconds[way * out->runs], out->runs, &out->summary[way], err);
	}
	out->ami[SPEED_FLAT] = NAN;
	return status;
}

enum esp_status speed_run(const struct speed_config *config, struct speed_result *out, struct error *err)
{
	size_t cells = (size_t)config->runs * SPEED_WAYS;
	struct race race = {.config = *config, .watch = &config->watch, .lock = PTHREAD_MUTEX_INITIALIZER, .result = out,
	                    .found = calloc(cells, sizeof(*race.found))};
	enum esp_status status = ESP_OK;

	race.config.watch = (struct discover_watch){&race, report_part};
	*out = (struct speed_result){.runs = config->runs, .seconds = calloc(cells, sizeof(double))};
	if (!out->seconds || !race.found)
		status = error_set(err, ESP_ENOMEM, "no memory for %u runs", config->runs);
	if (status == ESP_OK)
		status = jobs_run(config->runs, config->at_once ? config->at_once : 1, run_once, &race, err);
	if (status == ESP_OK)
		status = sum_up(&race, err);
	if (status != ESP_OK)
		speed_fini(out);
	free(race.found);
	pthread_mutex_destroy(&race.lock);
	return status;
}

void speed_fini(struct speed_result *result)
{
	free(result->seconds);
	*result = (struct speed_result){0};
}
