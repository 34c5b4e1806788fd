/*
 * trial.c - the cluster of a trial.
 */
#include "sim/trial.h"

#include <stdlib.h>

#define GBPS_MOST 1e6

static uint64_t bits_of(double gbps)
{
	return (uint64_t)(gbps * 1e9 + 0.5);
}

/* Hosts of each rack: its share of the workers, a hub where there are any, and in the last one the servers. */
static enum esp_status make_topology(const struct trial *trial, struct topology **out, struct error *err)
{
	const struct mechanism *mechanism = trial->train.mechanism;
	uint32_t racks = trial->racks ? trial->racks : 1, workers = trial->train.load->workers;
	uint32_t servers = mechanism->spread ? trial->train.servers : 0;

	if (!(trial->gbps > 0 && trial->gbps <= GBPS_MOST) || !(trial->server_gbps >= 0 && trial->server_gbps <= GBPS_MOST))
		return error_set(err, ESP_EINVAL, "%g and %g Gbps are no rates of links", trial->gbps, trial->server_gbps);
	if (racks > workers)
		return error_set(err, ESP_EINVAL, "%u racks for %u workers: some would be empty", racks, workers);
	uint32_t *hosts = calloc(racks, sizeof(*hosts)), *apart = calloc(racks, sizeof(*apart));
	for (uint32_t i = 0; hosts && apart && i < racks; i++) {
		apart[i] = (mechanism->uses_hubs ? 1 : 0) + (i + 1 == racks ? servers : 0);
		hosts[i] = workers / racks + (i < workers % racks) + apart[i];
	}
	const struct topology_spec spec = {
		.racks = racks,
		.hosts = workers + servers + (mechanism->uses_hubs ? racks : 0),
		.rack_hosts = hosts,
		.rack_servers = apart,
		.rate_bits = bits_of(trial->gbps),
		.server_bits = bits_of(trial->server_gbps),
		.oversubscribe = trial->oversubscribe,
		.delay_ns = (uint64_t)(trial->delay_s * 1e9 + 0.5),
	};
	enum esp_status status =
		hosts && apart ? topology_make(&spec, out, err) : error_set(err, ESP_ENOMEM, "no memory for %u racks", racks);
	free(hosts);
	free(apart);
	return status;
}

enum esp_status sim_trial_run(const struct trial *trial, struct train_result *out, struct error *err)
{
	struct train_config config = trial->train;
	struct topology *made = NULL;
	enum esp_status status = config.topology ? ESP_OK : make_topology(trial, &made, err);

	if (made)
		config.topology = made;
	if (status == ESP_OK)
		status = sim_train_run(&config, out, err);
	topology_close(made);
	return status;
}
