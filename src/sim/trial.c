/*
 * trial.c - the cluster of a trial.
 */
#include "sim/trial.h"

#define GBPS_MOST 1e6

enum esp_status trial_run(const struct trial *trial, struct train_result *out, struct error *err)
{
	struct train_config config = trial->train;
	uint32_t racks = trial->racks ? trial->racks : 1, servers = config.mechanism->spread ? config.servers : 0;
	struct topology *made = NULL;
	enum esp_status status = ESP_OK;

	if (!config.topology) {
		if (!(trial->gbps > 0 && trial->gbps <= GBPS_MOST))
			return error_set(err, ESP_EINVAL, "%g Gbps is no rate of a link", trial->gbps);
		const struct topology_spec spec = {
			.racks = racks,
			.hosts = config.load->workers + servers + (config.mechanism->uses_hubs ? racks : 0),
			.rate_bits = (uint64_t)(trial->gbps * 1e9 + 0.5),
			.oversubscribe = trial->oversubscribe,
			.delay_ns = (uint64_t)(trial->delay_s * 1e9 + 0.5),
		};
		status = topology_make(&spec, &made, err);
		config.topology = made;
	}
	if (status == ESP_OK)
		status = train_run(&config, out, err);
	topology_close(made);
	return status;
}
