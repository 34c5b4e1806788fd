#include "studies/crowd.h"

#include <stdlib.h>

#include "studies/chance.h"

#define PURPOSE UINT64_C(0x63726f7764) /* "crowd" */

static void draw(struct crowd *crowd, const struct region *region, uint64_t seed)
{
	struct rng rng;

	chance_init(&rng, seed, PURPOSE);
	for (uint32_t i = 2; i < crowd->links; i++) {
		double flows = crowd->x[i] = chance_lognormal(&rng, CROWD_WIDTH);

		flows = round(flows * region->switches[i / 2].rate / region->spec.host_rate);
		crowd->flows[i] = flows < CROWD_FLOWS_MOST ? (uint32_t)flows : CROWD_FLOWS_MOST;
	}
	for (uint32_t i = 0; i < crowd->machines; i++)
		crowd->host_share[i] = rng_chance(&rng, 1, 10) ? chance_between(&rng, 0.5, 0.9) : 1;
}

enum esp_status crowd_init(struct crowd *crowd, const struct region *region, uint64_t seed, struct error *err)
{
	uint32_t links = 2 * region->switch_count, machines = region->spec.machines;

	*crowd = (struct crowd){
		.links = links,
		.x = calloc(links, sizeof(*crowd->x)),
		.flows = calloc(links, sizeof(*crowd->flows)),
		.machines = machines,
		.host_share = calloc(machines, sizeof(*crowd->host_share)),
	};
	if (!crowd->x || !crowd->flows || !crowd->host_share) {
		crowd_fini(crowd);
		return error_set(err, ESP_ENOMEM, "no memory for the traffic on %u links", links);
	}
	draw(crowd, region, seed);
	return ESP_OK;
}

void crowd_clear_hosts(struct crowd *crowd)
{
	for (uint32_t i = 0; i < crowd->machines; i++)
		crowd->host_share[i] = 1;
}

void crowd_fini(struct crowd *crowd)
{
	free(crowd->x);
	free(crowd->flows);
	free(crowd->host_share);
	*crowd = (struct crowd){0};
}
