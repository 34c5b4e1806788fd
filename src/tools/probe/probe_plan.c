/*
 * probe_plan.c - which plan a large sum would take in a topology that was found, chosen by the runtime's own code.
 */
#include <stdlib.h>

#include "base/conf.h"
#include "engine/exec.h"
#include "rank/comm/plan_cache.h"
#include "tools/probe/probe_outcome.h"

#define HOSTS_MOST 256u /* walking all plans takes time that grows with the square of the ranks: see docs/topology.md */
#define LANES 2u

static void choose(const struct layout *layout, char *text, size_t size)
{
	const uint64_t bytes = (uint64_t)PROBE_PLAN_MIB << 20;
	const struct call call = {
		.collective = PLAN_ALLREDUCE, .element_bytes = 4, .block_bytes = bytes, .count = bytes / 4};
	struct failure failure = FAILURE_NONE;
	struct planned *planned = NULL;
	struct plan_cache plans = {0};
	char how[PLANNED_TEXT];

	if (comm_plan_cache_get(&plans, layout, &call, bytes, true, &planned, &failure) == ESP_OK)
		snprintf(text, size, "%s", comm_planned_describe(planned, how));
	comm_plan_cache_put(planned);
	comm_plan_cache_fini(&plans);
}

void probe_tool_find_plan(const struct topology *topology, char *text, size_t size)
{
	uint32_t hosts = topology->host_count;
	uint32_t *host_of = calloc(hosts, sizeof(*host_of));
	struct conf conf;
	struct error err;

	if (host_of && hosts >= 2 && hosts <= HOSTS_MOST && conf_load(&conf, NULL, NULL, &err) == ESP_OK) {
		for (uint32_t i = 0; i < hosts; i++)
			host_of[i] = i;
		choose(&(struct layout){
			       .members = hosts,
			       .hosts = hosts,
			       .host_of = host_of,
			       .topology = topology,
			       .place = topology->hosts,
			       .chunk_bytes = conf.chunk_bytes ? conf.chunk_bytes : PLAN_CACHE_CHUNK,
			       .slot_bytes = PLAN_CACHE_CHUNK,
			       .chunk_is_set = conf.chunk_bytes != 0,
			       .buffer_bytes = conf.buffer_bytes / LANES,
			       .credits = exec_credits(conf.credits),
			       .lanes = LANES,
		       }, text, size);
	}
	free(host_of);
}
