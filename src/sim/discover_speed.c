#include "sim/discover_speed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/tuned.h"
#include "topo/quality.h"

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
	double *sorted = malloc(runs * sizeof(*sorted)), sum = 0;

	if (!sorted)
		return error_set(err, ESP_ENOMEM, "no memory for %u runs", runs);
	memcpy(sorted, seconds, runs * sizeof(*sorted));
	qsort(sorted, runs, sizeof(*sorted), ascending);
	for (uint32_t i = 0; i < runs; i++)
		sum += sorted[i];
	*out = (struct speed_summary){sum / runs, speed_percentile(sorted, runs, 50), speed_percentile(sorted, runs, 95), sorted[0], sorted[runs - 1]};
	free(sorted);
	return ESP_OK;
}

/* One run's groupings by way; those of FLAT are not used. */
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
		status = region_topology(&run->made.region, run->made.crowd.host_share, run->made.crowd.flows, &run->topology, err);
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

/* What the job takes once its masters have settled. */
static enum esp_status measure_tuned(const struct speed_config *config, const struct run *run, double *out_seconds, struct error *err)
{
	const struct grouping *groups = run->by[SPEED_TUNED];
	struct tuned tuned;
	enum esp_status status = tuned_init(&tuned, groups->group_of, groups->nodes, err);

	if (status != ESP_OK)
		return status;
	for (uint32_t step = 0; step <= SPEED_STEPS && status == ESP_OK; step++) {
		status = tuned_step(&tuned, run->topology, config->find.bytes, config->chunk_bytes, out_seconds, NULL, err);
		if (step < SPEED_STEPS)
			discover_tell(&config->watch);
	}
	tuned_fini(&tuned);
	return status;
}

static enum esp_status measure(const struct speed_config *config, struct run *run, uint32_t nth, struct speed_result *out, struct error *err)
{
	enum esp_status status = ESP_OK;

	for (unsigned way = 0; way < SPEED_WAYS && status == ESP_OK; way++) {
		const struct grouping *groups = run->by[way];

		double *seconds = &out->seconds[way * out->runs + nth];

		status = way == SPEED_TUNED ? measure_tuned(config, run, seconds, err)
		                            : find_seconds(run->topology, groups ? groups->group_of : NULL, config->find.bytes, config->chunk_bytes, seconds, err);
		if (groups) {
			out->groups[way] += (double)groups->count / out->runs;
			out->ami[way] += quality_ami(groups, &run->truth) / out->runs;
		}
		discover_tell(&config->watch);
	}
	return status;
}

enum esp_status speed_run(const struct speed_config *config, struct speed_result *out, struct error *err)
{
	enum esp_status status = ESP_OK;

	*out = (struct speed_result){.runs = config->runs, .seconds = calloc((size_t)config->runs * SPEED_WAYS, sizeof(double))};
	if (!out->seconds)
		return error_set(err, ESP_ENOMEM, "no memory for %u runs", config->runs);
	for (uint32_t i = 0; i < config->runs && status == ESP_OK; i++) {
		struct run run = {0};

		status = run_open(&run, config, config->seed + i, err);
		if (status == ESP_OK)
			status = measure(config, &run, i, out, err);
		for (unsigned level = 0; level < REGION_LEVELS && status == ESP_OK; level++)
			out->held[level] = region_held(&run.made.region, (enum region_level)level);
		run_close(&run);
	}
	out->ami[SPEED_FLAT] = NAN;
	for (unsigned way = 0; way < SPEED_WAYS && status == ESP_OK; way++)
		status = summarise(&out->seconds[way * config->runs], config->runs, &out->summary[way], err);
	if (status != ESP_OK)
		speed_fini(out);
	return status;
}

void speed_fini(struct speed_result *result)
{
	free(result->seconds);
	*result = (struct speed_result){0};
}
