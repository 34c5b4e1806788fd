#include "studies/discover_tune.h"

#include <math.h>
#include <stdlib.h>

#include "network/topo/groups.h"
#include "studies/tuned.h"

#define DELAY_NS 5000u /* of a host's link, one way */

struct experiment {
	const struct autotune_config *config;
	uint32_t *slow_of; /* by rack: number of its slow machines */
	struct tuned tuned;
	struct plan_masters even;
};

static enum esp_status check_config(const struct autotune_config *config, struct error *err)
{
	if (config->machines < 2 || config->machines > 1024)
		return error_set(err, ESP_EINVAL, "%u machines: from 2 to 1024 are tuned", config->machines);
	if (config->racks == 0 || config->racks > config->machines)
		return error_set(err, ESP_EINVAL, "%u machines in %u racks: each rack needs one", config->machines,
		                 config->racks);
	if (!(config->slow > 0 && config->slow <= 1))
		return error_set(err, ESP_EINVAL, "a slow machine has more than 0 and at most 1 of its rate, not %g",
		                 config->slow);
	if (config->slow_from > config->slow_to)
		return error_set(err, ESP_EINVAL, "it cannot recover before it is slow");
	return ESP_OK;
}

static enum esp_status experiment_open(struct experiment *it, const struct autotune_config *config, struct error *err)
{
	enum esp_status status = check_config(config, err);

	*it = (struct experiment){.config = config};
	if (status != ESP_OK)
		return status;
	uint32_t *group_of = calloc(config->machines, sizeof(*group_of));
	it->slow_of = calloc(config->racks, sizeof(*it->slow_of));
	if (!group_of || !it->slow_of) {
		free(group_of);
		return error_set(err, ESP_ENOMEM, "no memory for %u machines", config->machines);
	}
	it->slow_of[config->racks - 1] = 1;
	groups_racks(config->machines, config->racks, PLACE_CONTIGUOUS, group_of);
	status = tuned_init(&it->tuned, group_of, config->machines, err);
	if (status == ESP_OK && plan_masters_copy(&it->even, &it->tuned.tuner.masters) != ESP_OK)
		status = error_set(err, ESP_ENOMEM, "no memory for the masters of %u machines", config->machines);
	free(group_of);
	return status;
}

static void experiment_close(struct experiment *it)
{
	tuned_fini(&it->tuned);
	plan_masters_fini(&it->even);
	free(it->slow_of);
}

/* The network of a step, in which the last machine may be slow. */
static enum esp_status network_of(const struct experiment *it, uint32_t step, struct topology **out, struct error *err)
{
	const struct autotune_config *config = it->config;
	bool is_slow = step >= config->slow_from && step < config->slow_to;
	const struct topology_spec spec = {
		.racks = config->racks, .hosts = config->machines, .rate_bits = (uint64_t)llround(config->rate * 8),
		.rack_servers = it->slow_of, .server_bits = is_slow ? (uint64_t)llround(config->rate * config->slow * 8) : 0,
		.oversubscribe = config->oversubscribe, .delay_ns = DELAY_NS, .uplink_delay_ns = config->racks > 1
		                 ? DELAY_NS : 0};

	return topology_make(&spec, out, err);
}

static enum esp_status run_step(struct experiment *it, uint32_t step, struct autotune_step *out, struct error *err)
{
	const struct autotune_config *config = it->config;
	struct topology *topology = NULL;
	enum esp_status status = network_of(it, step, &topology, err);

	*out = (struct autotune_step){0};
	if (status == ESP_OK)
		status = tuned_without(&it->tuned, &it->even, topology, &config->load, &out->even, err);
	if (status == ESP_OK)
		status = tuned_step(&it->tuned, topology, &config->load, &out->tuned, &out->report, err);
	if (status == ESP_OK) {
		out->balance = tuned_balance(&it->tuned);
		out->sent = it->tuned.nodes[config->machines - 1].sent_bytes;
	}
	topology_close(topology);
	return status;
}

enum esp_status autotune_run(const struct autotune_config *config, struct autotune_step *out, struct error *err)
{
	struct experiment it;
	enum esp_status status = experiment_open(&it, config, err);

	for (uint32_t step = 0; step < config->steps && status == ESP_OK; step++)
		status = run_step(&it, step, &out[step], err);
	experiment_close(&it);
	return status;
}
