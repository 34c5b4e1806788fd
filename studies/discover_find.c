#include "studies/discover_find.h"

#include <stdlib.h>

#include "sim/once.h"
#include "network/discover/choose_grouping.h"

void discovered_fini(struct discovered *found)
{
	grouping_fini(&found->root);
	grouping_fini(&found->chosen);
}

/* The first candidate with so many groups, which is the tight one, or with the next fewer. */
static const struct grouping *with_groups(const struct candidates *candidates, uint32_t groups)
{
	const struct grouping *best = &candidates->list[0].grouping;

	for (uint32_t i = 1; i < candidates->count; i++) {
		const struct grouping *other = &candidates->list[i].grouping;

		if (other->count <= groups && other->count > best->count)
			best = other;
	}
	return best;
}

static enum esp_status choose(const struct candidates *candidates, const struct tune_network *network, uint64_t bytes,
                              struct grouping *out, struct error *err)
{
	const uint32_t **list = calloc(candidates->count, sizeof(*list));
	uint32_t best = 0;

	if (!list)
		return error_set(err, ESP_ENOMEM, "no memory to choose among %u groupings", candidates->count);
	for (uint32_t i = 0; i < candidates->count; i++)
		list[i] = candidates->list[i].grouping.group_of;
	enum esp_status status = discover_choose_grouping(network, list, candidates->count, bytes, &best, NULL, err);
	free(list);
	if (status != ESP_OK)
		return status;
	return grouping_from(out, candidates->list[best].grouping.group_of, network->nodes, err);
}

/* Latency is always read: rounds cost it, whatever the groups are based on. */
static enum esp_status read_both(const struct discover_case *made, const struct find_config *config, uint64_t seed,
                                 struct matrix *latency, struct matrix *rates, struct error *err)
{
	enum esp_status status = reading_latency(&made->region, &made->crowd, config->noise, config->level, seed, latency,
	                                         err);

	if (status == ESP_OK && config->by == FIND_BY_BANDWIDTH)
		status = reading_bandwidth(&made->region, &made->crowd, seed, rates, err);
	return status;
}

enum esp_status find_groups(const struct discover_case *made, const struct find_config *config, uint64_t seed,
                            struct discovered *out, struct error *err)
{
	struct matrix latency = {0}, rates = {0};
	struct candidates candidates = {0};
	struct candidates_options options = config->candidates;
	uint32_t machines = made->region.spec.machines;
	enum esp_status status = read_both(made, config, seed, &latency, &rates, err);

	*out = (struct discovered){0};
	options.seed = seed;
	options.ratios = true; /* as in espalier probe */
	if (status == ESP_OK)
		status =
			discover_candidates_make(config->by == FIND_BY_BANDWIDTH ? &rates : &latency, &options, &candidates, err);
	if (status == ESP_OK)
		status = grouping_from(&out->root, with_groups(&candidates, discover_root(machines))->group_of, machines, err);
	for (size_t i = 0; status == ESP_OK && i < (size_t)machines * machines; i++)
		latency.at[i] /= 2; /* one way */
	const struct tune_network network = {.nodes = machines, .seconds_per_byte = rates.at, .latency = latency.at};
	if (status == ESP_OK)
		status = choose(&candidates, &network, config->bytes, &out->chosen, err);
	discover_candidates_fini(&candidates);
	matrix_fini(&latency);
	matrix_fini(&rates);
	if (status != ESP_OK)
		discovered_fini(out);
	return status;
}

enum esp_status find_seconds(const struct topology *topology, const uint32_t *group_of, const struct once_load *load,
                             double *out_seconds, struct error *err)
{
	const struct plan_spec spec = {
		.chunks = {.collective = PLAN_ALLREDUCE, .workers = topology->host_count, .bytes = load->bytes,
		           .chunk_bytes = load->chunk_bytes, .align = 4},
		.in_place = true,
		.group_of = group_of,
	};
	struct once_config config = {.topology = topology, .place = topology->hosts, .model = NETWORK_FLUID,
	                             .order = CLUSTER_SHARED, .grain = load->grain, .credits = 16};
	struct once_result result;
	struct plan *plan = NULL;
	enum esp_status status = plan_open(plan_planner_find(group_of ? "two-level" : "flat"), &spec, &plan, err);

	if (status == ESP_OK)
		status = sim_once_run(plan, &config, &result, err);
	if (status == ESP_OK)
		*out_seconds = result.seconds;
	plan_close(plan);
	return status;
}
